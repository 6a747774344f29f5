"""Named candidate lists. To add one, add a row to `CANDIDATE_LISTS`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lama_core.candidates.columns import Candidates
from lama_core.candidates.spelling import OpenVocabulary, Vocabulary, token_text
from lama_core.datasets.library.installed import lama_vocabulary_path
from lama_core.errors import NotFetchedError, Unavailable, UserError, did_you_mean
from lama_core.files import read_file, user_path

FILE = "file:"
COMMON = "common"  # the default list of requests
WORDS = "words"  # the same with function words
OWN = "own"  # the default list of the page Ask
OWN_WITH_FUNCTION_WORDS = "own-words"
FULL = "full"

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
    """.split()  # noqa: SIM905 - a list of this length is easier to read as a text
)


def is_content_word(word: str) -> bool:
    """Return whether the common vocabulary may include a word: alphanumeric and not a stop word.

    Single letters are excluded, too: in every vocabulary they are mostly parts of words.
    """
    return len(word) > 1 and word.isalnum() and word.lower() not in STOP_WORDS


def is_word(word: str) -> bool:
    """Return whether a token is a word: alphanumeric; of single characters only `a` and `I`."""
    return word.isalnum() and (len(word) > 1 or word in ("a", "A", "i", "I"))


def common_vocabulary(
    vocabularies: Sequence[Vocabulary],
    name: str = COMMON,
    keep: Callable[[str], bool] = is_content_word,
    models: Sequence[str] = (),
) -> Candidates:
    """Return the words that are one token in every vocabulary, in alphabetical order.

    Words are cased if all vocabularies are; otherwise they are lower-cased and the probabilities
    of case variants are summed. The vocabularies of server models are unknown and ignored; if all
    are unknown, the candidates are the words that each model predicts.
    Source: Petroni et al. 2019, section 4.5.
    Departure: The common vocabulary

    Args:
        vocabularies: The vocabulary of each model.
        name: Name of the list.
        keep: Returns whether to include a word; the default excludes stop words, punctuation,
            symbols and special tokens.
        models: The models' names, for the reasons why words of one model aren't candidates.

    Raises:
        UserError: If the vocabularies share no word.
    """
    pairs = zip(models or [""] * len(vocabularies), vocabularies, strict=True)
    known = [(one, words) for one, words in pairs if not isinstance(words, OpenVocabulary)]
    if not known:
        return Candidates(FULL, None)
    fold_case = not all(vocabulary.cased for _, vocabulary in known)
    own = [
        {word.lower() if fold_case else word for word in vocabulary.single_words() if keep(word)}
        for _, vocabulary in known
    ]
    shared = set.intersection(*own)
    if not shared:
        raise UserError("The chosen models have no word in common: choose candidates 'own'.")
    lacking = {
        word: tuple(one for (one, _), words in zip(known, own, strict=True) if word not in words)
        for word in (set.union(*own) - shared if models else ())
    }
    return Candidates(name, tuple(sorted(shared)), fold_case, lacking=lacking)


class NotRanked(NamedTuple):
    """Why a token of a model isn't a candidate, and the list with which it would be; or empty."""

    reason: str
    ranked_with: str


GIVEN = NotRanked("word of the query", "")  # of words that a setting excludes


def why_not_ranked(candidates: Candidates, vocabulary: Vocabulary, token: int) -> NotRanked:
    """Return why a token of a model isn't a candidate."""
    text = token_text(vocabulary, token)
    if not vocabulary.can_predict(token):
        return NotRanked("special token", "")
    if text.lower() in candidates.excluded:
        return GIVEN
    is_whole = text in vocabulary.single_words()
    lists = {OWN: is_content_word, OWN_WITH_FUNCTION_WORDS: is_word}
    ranked_with = next((name for name, keep in lists.items() if is_whole and keep(text)), FULL)
    lacking = candidates.lacking.get(text.lower() if candidates.fold_case else text)
    if lacking:
        reason = f"several tokens in {', '.join(lacking)}"
    elif candidates.name not in (COMMON, WORDS, *lists) or (is_whole and is_content_word(text)):
        reason = f"not in the list {candidates.name}"
    elif not any(map(str.isalnum, text)):
        reason = "punctuation"
    elif not is_whole:
        reason = "part of a word"
    else:
        reason = "function word" if is_word(text) else "not a word of letters and digits"
    return NotRanked(reason, ranked_with)


def read_candidate_file(path: Path) -> tuple[str, ...]:
    """Return the words of a candidate file without duplicates. Raises as `read_lines`."""
    return tuple(dict.fromkeys(read_lines(path)))


def read_lines(path: Path, what: str = "candidate file", one: str = "word") -> tuple[str, ...]:
    """Return the non-empty lines of a file, stripped.

    Args:
        path: The file.
        what: What the file is, for error messages.
        one: What each line holds, for error messages.

    Raises:
        UserError: If the file is missing, too large, not UTF-8 text or empty.
    """
    data = read_file(path)
    if b"\0" in data:
        raise UserError(f"{path}: the {what} is not text: write one {one} per line in UTF-8.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: the {what} is not UTF-8 text (byte {error.start}).") from error
    lines = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not lines:
        raise UserError(f"{path}: the {what} is empty: write one {one} per line.")
    return lines


@dataclass(frozen=True, slots=True)
class CandidateList:
    """A candidate list that a user can choose.

    Attributes:
        name: Its name in requests.
        meaning: Its explanation for users, without a full stop.
        make: Returns the candidates for the vocabularies and the names of the compared models.
        per_relation: Whether it consists of a relation's objects, so that it needs a relation.
        per_model: Whether each model has its own words, so that it works only in queries.
        source: Name of the published source that contains it; empty if none.
        is_here: Returns whether that source is installed.
    """

    name: str
    meaning: str
    make: Callable[[Sequence[Vocabulary], Sequence[str]], Candidates]
    per_relation: bool = False
    per_model: bool = False
    source: str = ""
    is_here: Callable[[], bool] = lambda: True


def _published(*_: Sequence[object]) -> Candidates:
    path = lama_vocabulary_path()
    if path is None:
        raise NotFetchedError("The published LAMA vocabulary is", "lama")
    return Candidates("lama", read_candidate_file(path))


CANDIDATE_LISTS: dict[str, CandidateList] = {
    one.name: one
    for one in (
        CandidateList(
            COMMON,
            "words that are one token in every chosen model, without stop words and punctuation "
            "(Petroni et al. 2019, section 4.5)",
            lambda words, models: common_vocabulary(words, models=models),
        ),
        CandidateList(
            WORDS,
            "the same with function words (*the*, *it*, *would*), which the paper excludes",
            lambda words, models: common_vocabulary(words, WORDS, is_word, models),
        ),
        CandidateList(
            OWN,
            "each model's own words: those that are one token of it, without stop words and "
            "punctuation",
            lambda *_: Candidates(OWN, None, keep=is_content_word),
            per_model=True,
        ),
        CandidateList(
            OWN_WITH_FUNCTION_WORDS,
            "each model's own words with function words",
            lambda *_: Candidates(OWN_WITH_FUNCTION_WORDS, None, keep=is_word),
            per_model=True,
        ),
        CandidateList(FULL, "each model's whole vocabulary", lambda *_: Candidates(FULL, None)),
        CandidateList(
            "lama",
            "LAMA's published common vocabulary (download it first)",
            _published,
            source="lama",
            is_here=lambda: lama_vocabulary_path() is not None,
        ),
        CandidateList(
            "relation",
            "the objects of the relation's facts",
            lambda *_: Candidates("relation", (), per_relation=True),
            per_relation=True,
        ),
    )
}


def is_per_model(name: str) -> bool:
    """Return whether each model has its own words in a list."""
    return name in CANDIDATE_LISTS and CANDIDATE_LISTS[name].per_model


def list_names(*, of_relations: bool) -> tuple[str, ...]:
    """Return the names of the lists for runs (`of_relations`), or for queries."""
    return tuple(
        name
        for name, found in CANDIDATE_LISTS.items()
        if not (found.per_model if of_relations else found.per_relation)
    )


def unavailable_lists(*, of_relations: bool) -> dict[str, Unavailable]:
    """Return the lists that aren't installed: name -> the reason and the source to install."""
    return {
        name: Unavailable("the published words aren't installed", CANDIDATE_LISTS[name].source)
        for name in list_names(of_relations=of_relations)
        if not CANDIDATE_LISTS[name].is_here()
    }


def explain_lists(*, of_relations: bool) -> str:
    """Return an explanation of the lists for a help text, in Markdown."""
    return " ".join(
        f"**{name}**: {CANDIDATE_LISTS[name].meaning}."
        for name in list_names(of_relations=of_relations)
    )


def named_candidates(
    name: str,
    vocabularies: Sequence[Vocabulary],
    *,
    of_relations: bool = False,
    models: Sequence[str] = (),
) -> Candidates:
    """Return the candidates of a named list; they are lower-cased if any model is uncased.

    Args:
        name: A name in `CANDIDATE_LISTS`, or `file:PATH`.
        vocabularies: The vocabulary of each model that will be compared.
        of_relations: Whether they are for a run, where a relation's objects are possible, and
            words that differ between models aren't.
        models: The models' names, for the reasons why words aren't candidates.

    Raises:
        UserError: If the name is unknown, the list isn't installed or the file is unreadable.
    """
    if name.startswith(FILE):
        words = read_candidate_file(user_path(name.removeprefix(FILE)))
        return Candidates(name, words).fitting(vocabularies)
    found = CANDIDATE_LISTS.get(name)
    if found is None:
        raise UserError(
            f"Unknown candidates {name!r}{did_you_mean(name, CANDIDATE_LISTS)}: "
            f"choose {', '.join(list_names(of_relations=of_relations))} or file:PATH."
        )
    if found.per_model and of_relations:
        raise UserError(
            f"Candidates {name!r} differ between models, so they work only in queries: choose "
            "'common', which are the model's own words in a run of one model."
        )
    if found.per_relation and not of_relations:
        raise UserError(
            f"Candidates {name!r} are a relation's objects, so they work only in runs: use them "
            "with `probe`, or choose 'common'."
        )
    return found.make(vocabularies, models).fitting(vocabularies)


def check_words_known(candidates: Candidates, vocabularies: Sequence[Vocabulary]) -> Candidates:
    """Return the candidates unchanged; a run needs their words before it starts.

    Raises:
        UserError: If the candidates are a server model's whole vocabulary, which is unknown.
    """
    if candidates.words is None and any(isinstance(one, OpenVocabulary) for one in vocabularies):
        raise UserError(
            f"Candidates {candidates.name!r} are the model's whole vocabulary, which a server "
            "doesn't list: choose relation, lama or file:PATH."
        )
    return candidates
