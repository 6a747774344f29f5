"""Candidates: the words that are ranked at a blank.

A word's probability is the sum over the model's single tokens that write it. With `fold_case`
the words are lower-cased and a cased model's `Paris`, `paris` and `PARIS` count together: the only
fair comparison with an uncased model. Source: Petroni et al. 2019, section 4.4 (common
vocabulary); the case folding is ours.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from lama_core.errors import UserError, did_you_mean

NAMES = ("full", "common", "lama", "relation")
Place = Literal["after space", "open"]

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


class Vocabulary(Protocol):
    """A model's tokens as words; what the candidates need of a tokenizer."""

    @property
    def cased(self) -> bool:
        """Whether `Paris` and `paris` are different tokens."""
        ...

    @property
    def size(self) -> int:
        """How many entries the model's output distribution has."""
        ...

    def forms(self, place: Place) -> dict[str, tuple[int, ...]]:
        """Every word that is one token in this place, with the ids of the tokens that write it.

        `after space`: in running text. `open`: at the start of a text or after a bracket, where a
        tokenizer that writes spaces into its tokens may write the word with or without one.
        """
        ...

    def pieces(self, word: str, place: Place = "after space") -> tuple[int, ...]:
        """The ids of the tokens that the tokenizer makes of a word in running text."""
        ...

    def show_text(self, token_ids: Sequence[int]) -> tuple[str, ...]:
        """The tokens of a text as a person reads them."""
        ...

    def tokens(self) -> dict[int, str]:
        """Every token but the special ones, as it is shown: id -> text."""
        ...


@dataclass(frozen=True, slots=True)
class Columns:
    """A candidate list as columns of one model's distribution.

    words: the candidates that the model has, in candidate order.
    token_ids: place -> int64 [candidate, form]; -1 where a word has fewer forms than the widest.
    missing: the wanted words that are not one token of the model.
    """

    words: tuple[str, ...]
    token_ids: dict[Place, NDArray[np.int64]]
    missing: tuple[str, ...] = ()

    def index(self) -> dict[str, int]:
        """Word -> column."""
        return {word: column for column, word in enumerate(self.words)}


# The columns found last in each vocabulary that is still in use, by the candidates' digest: finding
# tens of thousands of words takes longer than a query.
_KEPT: WeakKeyDictionary[Vocabulary, dict[str, Columns]] = WeakKeyDictionary()
MAX_KEPT = 64


@dataclass(frozen=True)
class Candidates:
    """The words to rank, before any model's tokens are known.

    name: `full`, `common`, `lama`, `relation` or `file:PATH`, as the user chose them.
    words: in candidate order, which breaks ties; None stands for each model's whole vocabulary.
    fold_case: the words are lower-cased and a cased model's case variants are summed.
    """

    name: str
    words: tuple[str, ...] | None
    fold_case: bool = False

    @cached_property
    def digest(self) -> str:
        """SHA-256 of name-independent content: the words in order, and the case rule."""
        text = "\n".join(("\0full",) if self.words is None else self.words)
        return hashlib.sha256(f"{self.fold_case}\n{text}".encode()).hexdigest()

    def folded(self) -> "Candidates":
        """The same words lower-cased, doubles dropped, with case variants summed."""
        if self.words is None:
            return self
        words = tuple(dict.fromkeys(word.lower() for word in self.words))
        return Candidates(self.name, words, fold_case=True)

    def key(self, word: str) -> str:
        """The word as it would be written in this list."""
        return word.lower() if self.fold_case else word

    def columns(self, vocabulary: Vocabulary) -> Columns:
        """Where each candidate stands in a model's distribution; kept for the next query.

        Raises UserError if the model has none of the words as a single token.
        """
        kept = _KEPT.setdefault(vocabulary, {})
        columns = kept.get(self.digest)
        if columns is None:
            columns = self._find_columns(vocabulary)
            if len(kept) >= MAX_KEPT:
                kept.pop(next(iter(kept)), None)
            kept[self.digest] = columns
        return columns

    def _find_columns(self, vocabulary: Vocabulary) -> Columns:
        if self.words is None:
            tokens = vocabulary.tokens()
            ids = np.fromiter(tokens, dtype=np.int64, count=len(tokens)).reshape(-1, 1)
            return Columns(tuple(tokens.values()), {"after space": ids, "open": ids})
        spaced, opened = (
            _fold(vocabulary.forms(place)) if self.fold_case else vocabulary.forms(place)
            for place in ("after space", "open")
        )
        if self.fold_case or not vocabulary.cased:
            words = tuple(dict.fromkeys(word.lower() for word in self.words))
        else:
            words = self.words
        known = tuple(word for word in words if word in spaced)
        if not known:
            raise UserError(
                f"None of the {len(words):,} words of the candidates '{self.name}' is a single "
                "token of the model: choose another candidate list."
            )
        return Columns(
            known,
            {
                "after space": _padded([spaced[word] for word in known]),
                "open": _padded([opened.get(word, spaced[word]) for word in known]),
            },
            tuple(word for word in words if word not in spaced),
        )


def _fold(forms: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    folded: dict[str, tuple[int, ...]] = {}
    for word, ids in forms.items():
        folded[word.lower()] = folded.get(word.lower(), ()) + ids
    return folded


def _padded(rows: Sequence[tuple[int, ...]]) -> NDArray[np.int64]:
    width = max(len(row) for row in rows)
    table = np.full((len(rows), width), -1, dtype=np.int64)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table


def is_content_word(word: str) -> bool:
    """Whether a word may stand in the common vocabulary: letters and digits, no stop word.

    Single letters are left out too: in every vocabulary they are mostly pieces of words.
    """
    return len(word) > 1 and word.isalnum() and word.lower() not in STOP_WORDS


def common_vocabulary(vocabularies: Sequence[Vocabulary]) -> Candidates:
    """The words that are one token in every vocabulary, in alphabetical order.

    Cased words when all vocabularies are cased, else lower-cased with case variants summed.
    Stop words, punctuation, symbols and special tokens are left out.
    Source: Petroni et al. 2019, section 4.4.
    """
    fold_case = not all(vocabulary.cased for vocabulary in vocabularies)
    shared: set[str] | None = None
    for vocabulary in vocabularies:
        words = {word for word in vocabulary.forms("after space") if is_content_word(word)}
        if fold_case:
            words = {word.lower() for word in words}
        shared = words if shared is None else shared & words
    if not shared:
        raise UserError("The chosen models have no word in common: choose candidates 'full'.")
    return Candidates("common", tuple(sorted(shared)), fold_case)


def read_candidate_file(path: Path) -> tuple[str, ...]:
    """The words of a candidate file, one a line, in file order, doubles dropped.

    Raises UserError if the file is missing, too large, not UTF-8 text or empty.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: the candidate file can't be read: {error.strerror}.") from error
    if b"\0" in data:
        raise UserError(f"{path}: the candidate file is not text: give one word a line in UTF-8.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: the candidate file is not UTF-8 text (byte {error.start})."
        ) from error
    words = tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
    if not words:
        raise UserError(f"{path}: the candidate file is empty: give one word a line.")
    return words


def resolve_candidates(
    name: str,
    vocabularies: Sequence[Vocabulary],
    *,
    lama: Path | None = None,
    relation_objects: Sequence[str] | None = None,
) -> Candidates:
    """The candidates that a user means by `name`, for the models that will be compared.

    lama: the published list, where it has been fetched. relation_objects: the objects of the
    relation at hand, in file order. Words are folded to lower case as soon as one model is uncased.
    Raises UserError for an unknown name, or a list that isn't there.
    """
    if name == "full":
        return Candidates("full", None)
    if name == "common":
        return common_vocabulary(vocabularies)
    if name.startswith("file:"):
        chosen = Candidates(name, read_candidate_file(Path(name.removeprefix("file:"))))
    elif name == "lama":
        if lama is None:
            raise UserError(
                "The published LAMA vocabulary is not here yet: "
                "run `python -m lama_core data get lama`."
            )
        chosen = Candidates("lama", read_candidate_file(lama))
    elif name == "relation":
        if not relation_objects:
            raise UserError(
                "Candidates 'relation' need a relation: they are its objects. Use them with "
                "`probe`, or choose 'common'."
            )
        chosen = Candidates("relation", tuple(dict.fromkeys(relation_objects)))
    else:
        raise UserError(
            f"Unknown candidates {name!r}{did_you_mean(name, NAMES) or '.'} "
            "Choose full, common, lama, relation or file:PATH."
        )
    uncased = not all(vocabulary.cased for vocabulary in vocabularies)
    return chosen.folded() if uncased else chosen
