"""The framework of lenses: what a lens defines, and what lenses share.

A lens is a file that makes a `Lens`, and a row in `LENSES` (`table`). Only the first blank is
inspected. A causal model sees only the text left of the blank.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import places_of
from lama_core.errors import UserError
from lama_core.models.protocols import Encoded
from lama_core.queries.blank_answers import TextWithBlank
from lama_core.requests import option
from lama_core.scoring import shared_fields
from lama_core.scoring.limits import Limits
from lama_core.scoring.model_info import AboutModel, model_fields
from lama_core.scoring.ranking import best_candidates
from lama_core.tables import Table
from lama_core.types import Query

TRACKED_ANSWER = "answer to track"  # label of the word to explain


@dataclass(frozen=True, kw_only=True)
class LensRequest(shared_fields.ModelSettings):
    """The fields that all lenses use; `InspectRequest` lists the valid lenses."""

    text: TextWithBlank = field(kw_only=False)
    lens: str = ""


@dataclass(frozen=True, kw_only=True)
class AnswerRequest(LensRequest):
    """The fields of lenses that explain one answer."""

    answer: Annotated[
        str | None,
        option(
            "Lenses other than layers: the answer to explain. Default: each model's first "
            "prediction."
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class LensResult(AboutModel, ABC):
    """Result of a lens for one model; notes: Notes for users."""

    notes: tuple[str, ...] = field(kw_only=True)

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return what `inspect --json` prints after the model's name and kind."""

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the Python API's table, with plain values."""

    @abstractmethod
    def text(self) -> Iterator[Table | str]:
        """Yield the tables and sentences that `inspect` prints before the remarks."""

    def remarks(self) -> tuple[str, ...]:
        """Return the sentences below the result: the notes."""
        return self.notes


Options = TypeVar("Options", bound=LensRequest)


@dataclass(frozen=True, slots=True)
class Inspection(Generic[Options]):
    """The input of a lens: a model, and the first blank of a text.

    Attributes:
        model: The model; it has the protocol that the lens requires.
        query: The text.
        columns: The candidates' columns.
        request: The request with the lens's options.
        limits: The limits of a query.
        encoded: The text as the model's tokens.
        notes: Notes on the parts of the text that aren't used.
    """

    model: Any
    query: Query
    columns: Columns
    request: Options
    limits: Limits
    encoded: Encoded
    notes: tuple[str, ...]

    def choose_answer(self, word: str | None) -> tuple[str, tuple[int, ...], str]:
        """Return the answer to explain, the tokens that each write it, and `tokens_of`'s note.

        word: The answer; None chooses the model's first prediction.
        """
        word = " ".join(word.split()) if word else None
        if word:
            return word, *self.tokens_of(word)
        scores = self.model.blank_log_probs([self.encoded], self.columns)
        column = int(best_candidates(scores.log_probs[:1], 1).columns[0, 0])
        forms = self.columns.tokens_of(column, self.encoded.places[0])
        return self.columns.words[column], forms, ""

    def tokens_of(self, word: str) -> tuple[tuple[int, ...], str]:
        """Return the tokens that each write a word; if it needs several, the first and a note."""
        place, spelling = places_of(self.query)[0], self.columns.spelling
        column = self.columns.find(word, place)
        if isinstance(column, int):
            return self.columns.tokens_of(column, place), ""
        if forms := spelling.tokens(word, place):
            return forms, ""
        vocabulary = self.model.vocabulary
        if not vocabulary.can_write(word):
            raise UserError(f"{self.model.name} can't write {word[:60]!r}: choose another word.")
        pieces = vocabulary.pieces(word, place)
        start = vocabulary.show_text(pieces[:1])[0]
        note = f"“{word}” is {len(pieces)} tokens of the model: only the first, “{start}”, counts."
        return pieces[:1], note

    def about(self, *notes: str) -> dict[str, Any]:
        """Return the fields of `LensResult`, with further notes; empty notes are omitted."""
        return {"notes": tuple(filter(None, (*self.notes, *notes))), **model_fields(self.model)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lens(Generic[Options]):
    """A lens: shows how a model reaches its answer at the first blank of a text.

    Attributes:
        name: The value of `--lens`.
        title: The name of its view on the page.
        about: What it shows, for the help of `--lens`.
        rows: What has a row in the Python API's table, for its docstring.
        caption: How to read the page's drawing.
        options: The request's fields that the lens uses. `InspectRequest` inherits from it.
        requires: The protocol of the models that support the lens.
        compute: Returns the result of an inspection.
        check: Raises UserError if the lens's fields contradict each other.
    """

    name: str
    title: str
    about: str
    rows: str
    caption: str
    options: type[Options]
    requires: type
    compute: Callable[[Inspection[Options]], LensResult]
    check: Callable[[Options], None] = lambda _: None


def check_inspectable(model: Any, protocol: type) -> None:
    """Raise UserError if a model doesn't have the protocol that a lens requires."""
    if not isinstance(model, protocol):
        raise UserError(
            f"{model.name} can't be inspected, because only its answers are available: choose "
            "another model."
        )
