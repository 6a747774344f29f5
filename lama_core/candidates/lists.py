"""The candidate lists that there are by name. A new one is a row in `CANDIDATE_LISTS`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lama_core.candidates.columns import Candidates
from lama_core.candidates.spelling import OpenVocabulary, Vocabulary
from lama_core.datasets.library.installed import lama_vocabulary_path
from lama_core.errors import Impossible, NotFetched, UserError, did_you_mean
from lama_core.files import given_path, read_file

FILE = "file:"
COMMON = "common"  # the list that is ranked where none is chosen
WORDS = "words"  # the same with function words

# The closed word classes of English: determiners, pronouns, prepositions, conjunctions,
# auxiliaries and particles. The paper drops stop words from its common vocabulary.
STOP_WORDS = frozenset(
    """
    a about above across after again against all almost alone along already also although always
    am among an and another any anybody anyone anything anywhere are aren around as at away
    back be became because become becomes been before behind being below beside besides between
    beyond both but by can cannot could couldn d did didn do does doesn doing don done down during
    each either else elsewhere enough etc even ever every everybody everyone everything everywhere
    except few first for from further had hadn has hasn have haven having he hence her here hers
    herself him himself his how however i if in indeed instead into is isn it its itself just last
    least less ll ltd m many may maybe me meanwhile might mine more moreover most mostly much must
    mustn my myself namely near neither never nevertheless next no nobody none nor not nothing now
    nowhere o of off often on once one only onto or other others otherwise our ours ourselves out
    over own per perhaps quite rather re really s same seem seemed seeming seems several shall shan
    she should shouldn since so some somebody somehow someone something sometime sometimes
    somewhere still such t than that the their theirs them themselves then thence there thereby
    therefore these they this those though through throughout thus to together too toward towards
    under until up upon us ve very via was wasn we well were weren what whatever when whence
    whenever where whereas whereby wherein whereupon wherever whether which while whither who
    whoever whole whom whose why will with within without won would wouldn y yet you your yours
    yourself yourselves
    """.split()  # noqa: SIM905 - a list of this length is read more easily as a text
)


def is_content_word(word: str) -> bool:
    """Whether a word may stand in the common vocabulary: letters and digits, no stop word.

    Single letters are left out too: in every vocabulary they are mostly pieces of words.
    """
    return len(word) > 1 and word.isalnum() and word.lower() not in STOP_WORDS


def is_word(word: str) -> bool:
    """Whether a token is a word, function words included: letters and digits, `a` and `I`."""
    return word.isalnum() and (len(word) > 1 or word in ("a", "A", "i", "I"))


def words_with_function_words(vocabularies: Sequence[Vocabulary]) -> Candidates:
    """The words of `common_vocabulary`, and the function words that every model has."""
    return common_vocabulary(vocabularies, WORDS, is_word)


def common_vocabulary(
    vocabularies: Sequence[Vocabulary],
    name: str = COMMON,
    keep: Callable[[str], bool] = is_content_word,
) -> Candidates:
    """The words that are one token in every vocabulary, in alphabetical order.

    Cased words when all vocabularies are cased, else lower-cased with case variants summed.
    What `keep` refuses is left out: usually stop words, punctuation, symbols and special tokens.
    A model whose tokens nobody says takes no part; where there is no other, it is asked for the
    words that come to its mind.
    Source: Petroni et al. 2019, section 4.5.
    Departure: The common vocabulary
    """
    vocabularies = [one for one in vocabularies if not isinstance(one, OpenVocabulary)]
    if not vocabularies:
        return Candidates("full", None)
    fold_case = not all(vocabulary.cased for vocabulary in vocabularies)
    shared: set[str] | None = None
    for vocabulary in vocabularies:
        words = {word for word in vocabulary.forms("after space") if keep(word)}
        if fold_case:
            words = {word.lower() for word in words}
        shared = words if shared is None else shared & words
    if not shared:
        raise UserError("The chosen models have no word in common: choose candidates 'full'.")
    return Candidates(name, tuple(sorted(shared)), fold_case)


def read_candidate_file(path: Path) -> tuple[str, ...]:
    """The words of a candidate file, one a line, doubles dropped. Raises as `read_lines`."""
    return tuple(dict.fromkeys(read_lines(path)))


def read_lines(path: Path, what: str = "candidate file", one: str = "word") -> tuple[str, ...]:
    """The lines of a list, without spaces around them and empty ones; what, one: for people.

    Raises UserError if the file is missing, too large, not UTF-8 text or empty.
    """
    data = read_file(path)
    if b"\0" in data:
        raise UserError(f"{path}: the {what} is not text: give one {one} a line in UTF-8.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: the {what} is not UTF-8 text (byte {error.start}).") from error
    lines = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not lines:
        raise UserError(f"{path}: the {what} is empty: give one {one} a line.")
    return lines


@dataclass(frozen=True, slots=True)
class CandidateList:
    """A candidate list as a user chooses it.

    meaning: for people, in a sentence. make: the list for the models that will be compared.
    per_relation: it is made of a relation's objects, so a query on its own can't have it.
    source: the published source that brings it, or empty. is_here: whether that has been fetched.
    """

    name: str
    meaning: str
    make: Callable[[Sequence[Vocabulary]], Candidates]
    per_relation: bool = False
    source: str = ""
    is_here: Callable[[], bool] = lambda: True


def _published(_: Sequence[Vocabulary]) -> Candidates:
    path = lama_vocabulary_path()
    if path is None:
        raise NotFetched("The published LAMA vocabulary is", "lama")
    return Candidates("lama", read_candidate_file(path))


CANDIDATE_LISTS: dict[str, CandidateList] = {
    one.name: one
    for one in (
        CandidateList(
            COMMON,
            "words that are one token in every chosen model, without stop words and punctuation "
            "(Petroni et al. 2019, section 4.5)",
            common_vocabulary,
        ),
        CandidateList(
            WORDS,
            "the same with function words (*the*, *it*, *would*), which the paper excludes",
            words_with_function_words,
        ),
        CandidateList("full", "each model's whole vocabulary", lambda _: Candidates("full", None)),
        CandidateList(
            "lama",
            "the paper's published list, once it has been fetched",
            _published,
            source="lama",
            is_here=lambda: lama_vocabulary_path() is not None,
        ),
        CandidateList(
            "relation",
            "the relation's own objects",
            lambda _: Candidates("relation", (), per_relation=True),
            per_relation=True,
        ),
    )
}


def list_names(*, of_relations: bool) -> tuple[str, ...]:
    """Names to choose from; of_relations: also those that need a relation."""
    return tuple(
        one.name for one in CANDIDATE_LISTS.values() if of_relations or not one.per_relation
    )


def impossible_lists(*, of_relations: bool) -> dict[str, Impossible]:
    """Of the names to choose from, those whose words aren't here, and why."""
    lists = [CANDIDATE_LISTS[name] for name in list_names(of_relations=of_relations)]
    return {
        one.name: Impossible("the published words are not here yet", one.source)
        for one in lists
        if not one.is_here()
    }


def explain_lists(*, of_relations: bool) -> str:
    """What the lists are, for a help text in Markdown."""
    names = list_names(of_relations=of_relations)
    return " ".join(f"**{name}**: {CANDIDATE_LISTS[name].meaning}." for name in names)


def named_candidates(
    name: str, vocabularies: Sequence[Vocabulary], *, of_relations: bool = False
) -> Candidates:
    """The candidates that a user means by `name`, for the models that will be compared.

    Words are folded to lower case as soon as one model is uncased.
    Raises UserError for an unknown name, or a list that isn't there.
    """
    if name.startswith(FILE):
        words = read_candidate_file(given_path(name.removeprefix(FILE)))
        return Candidates(name, words).fitting(vocabularies)
    found = CANDIDATE_LISTS.get(name)
    if found is None:
        raise UserError(
            f"Unknown candidates {name!r}{did_you_mean(name, CANDIDATE_LISTS)}: "
            f"choose {', '.join(CANDIDATE_LISTS)} or file:PATH."
        )
    if found.per_relation and not of_relations:
        raise UserError(
            f"Candidates {name!r} need a relation: they are its objects. Use them with `probe`, or "
            "choose 'common'."
        )
    return found.make(vocabularies).fitting(vocabularies)


def known_before(candidates: Candidates, vocabularies: Sequence[Vocabulary]) -> Candidates:
    """The candidates, for a run, whose words must be known before it begins.

    Raises UserError if they are a vocabulary that nobody says.
    """
    if candidates.words is None and any(isinstance(one, OpenVocabulary) for one in vocabularies):
        raise UserError(
            f"Candidates {candidates.name!r} are the words of the model, and a server doesn't say "
            "them: choose relation, lama or file:PATH."
        )
    return candidates
