"""The definition of a kind of query, and how a query is run.

A kind is a file with a class derived from `QueryKind` and a `QueryFunction`, and a row in `QUERIES`
(`lama_core.queries.table`). A query takes these steps:

    request --prepare--> what no model is needed for --answer--> each model's answer

The Python function and the command run all models here. The app asks the scoring process for one
model at a time (`lama_core.service.queries.answer`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeVar

from lama_core.candidates.columns import Candidates
from lama_core.progress import OnProgress, ignore
from lama_core.requests import Function
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.scoring.model_info import AboutModel
from lama_core.scoring.shared_fields import (
    CandidateSettings,
    ModelSettings,
    choose_candidates,
    load_models,
)
from lama_core.tables import FirstAnswers, Table, first_answers, frame_row, json_row

if TYPE_CHECKING:
    import pandas as pd

R = TypeVar("R", bound=ModelSettings)
S = TypeVar("S")
One = TypeVar("One", bound=AboutModel)
P = ParamSpec("P")

NO_CANDIDATES = Candidates("", (), False)  # of kinds that rank no words of a list


@dataclass(frozen=True, slots=True)
class Calls:
    """The limits of one model's answer, and what it calls meanwhile.

    on_first: Called with a preliminary answer, by kinds that have one.
    """

    limits: Limits = UNLIMITED
    on_progress: OnProgress = ignore
    on_first: Callable[[Any], object] | None = None


@dataclass(frozen=True, slots=True)
class Asked(Generic[R, S]):
    """A query as the models get it.

    Attributes:
        request: The request.
        shared: What `prepare` made of it.
        candidates: The candidates of the compared models together.
    """

    request: R
    shared: S
    candidates: Candidates = NO_CANDIDATES


class QueryKind(ABC, Generic[R, S, One]):
    """A kind of query, by its request, what is prepared from it, and one model's answer.

    Attributes:
        name: Its name in files of pins and of exports.
        example: A command, without the program's name.
        row: The class of its rows (see `lama_core.tables`).
        items: The key of the rows in a model's JSON.
        answer_field: The field of a row that holds the answer; empty if answers can't be pinned.
    """

    name: ClassVar[str]
    example: ClassVar[str]
    row: ClassVar[type]
    items: ClassVar[str] = ""
    answer_field: ClassVar[str] = ""

    @abstractmethod
    def prepare(self, request: R, limits: Limits) -> S:
        """Return what the models' answers share; small, hashable, and picklable.

        Raises:
            UserError: If the request can't be carried out.
        """

    def check_model(self, model: Any) -> None:
        """Raise UserError if a model can't answer; called before any model answers."""

    @abstractmethod
    def answer(self, model: Any, asked: Asked[R, S], calls: Calls) -> One:
        """Return one model's answer. Raises UserError if the model can't give it."""

    @abstractmethod
    def rows(self, asked: Asked[R, S], one: One) -> Sequence[object]:
        """Return the rows of one model's answer, instances of `row`."""

    def tables(self, asked: Asked[R, S], one: One) -> Iterator[Table | str]:
        """Yield the tables and lines that the command prints for one model."""
        yield from ()

    def printed(self, answer: "Answer[R, S, One]") -> Iterator[Table | str]:
        """Yield the tables and lines that the command prints: by default model by model."""
        for one in answer.models:
            yield from self.tables(answer.asked, one)
            yield ""

    @abstractmethod
    def title(self, request: R) -> str:
        """Return the query in one line."""

    def head(self, answer: "Answer[R, S, One]") -> dict[str, Any]:
        """Return what comes before the models in the JSON."""
        return {}

    def foot(self, answer: "Answer[R, S, One]") -> dict[str, Any]:
        """Return what comes after the models in the JSON."""
        return {}

    def details(self, asked: Asked[R, S], one: One) -> dict[str, Any]:
        """Return what comes before the rows in a model's JSON."""
        return {}

    def json(self, asked: Asked[R, S], one: One) -> dict[str, Any]:
        """Return one model's answer as JSON values."""
        rows = [json_row(row) for row in self.rows(asked, one)]
        return {**one.model_json(), **self.details(asked, one), self.items: rows}

    def frame_rows(self, asked: Asked[R, S], one: One) -> list[dict[str, Any]]:
        """Return the rows of one model's answer as plain values, for the DataFrame and CSV."""
        return [
            {
                "model": one.name,
                **frame_row(row),
                **self.constants(asked, one),
                "precision": one.precision,
                "device": one.device,
            }
            for row in self.rows(asked, one)
        ]

    def constants(self, asked: Asked[R, S], one: One) -> dict[str, Any]:
        """Return the columns that have the same value in all rows of a model."""
        return {}

    def first_answers(self, asked: Asked[R, S], one: One, n: int) -> FirstAnswers:
        """Return one model's first answers, for pins."""
        return first_answers(self.rows(asked, one), self.answer_field, n)

    def settings(self, asked: Asked[R, S], one: One) -> dict[str, str]:
        """Return setting -> value, for what one model's answer depends on, for pins."""
        return {}

    def gold(self, asked: Asked[R, S], one: One) -> str:
        """Return the right answer and its rank as text; empty if there is none."""
        return ""


@dataclass(frozen=True, slots=True)
class Answer(Generic[R, S, One]):
    """All models' answers to one query."""

    kind: QueryKind[R, S, One]
    asked: Asked[R, S]
    models: tuple[One, ...]

    def to_json(self) -> dict[str, Any]:
        """Return what the command prints with `--json`; unknown values are None."""
        models = [self.kind.json(self.asked, one) for one in self.models]
        return {**self.kind.head(self), "models": models, **self.kind.foot(self)}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row of plain values for each model and row."""
        return [row for one in self.models for row in self.kind.frame_rows(self.asked, one)]

    def frame(self) -> "pd.DataFrame":
        """Return the rows as a DataFrame."""
        import pandas as pd  # slow to import (0.4 s), and not needed by the command line

        return pd.DataFrame(self.rows())


def run(kind: QueryKind[R, S, One], request: R) -> Answer[R, S, One]:
    """Return all models' answers, computed here.

    Raises:
        UserError: If the request is invalid, or a model can't be loaded or can't answer.
    """
    return ask_models(kind, request, kind.prepare(request, UNLIMITED), load_models(request))


def ask_models(
    kind: QueryKind[R, S, One],
    request: R,
    shared: S,
    models: Sequence[Any],
    limits: Limits = UNLIMITED,
) -> Answer[R, S, One]:
    """Return the answers of loaded models; the models that the request names are ignored."""
    for model in models:
        kind.check_model(model)
    candidates = NO_CANDIDATES
    if isinstance(request, CandidateSettings):
        candidates = choose_candidates(request, models)
    asked, calls = Asked(request, shared, candidates), Calls(limits, request.on_progress)
    return Answer(kind, asked, tuple(kind.answer(model, asked, calls) for model in models))


class QueryFunction(Function[P, R, Answer[R, S, One], "pd.DataFrame"]):
    """The Python function of a kind of query; it returns a DataFrame."""

    def __init__(self, request: Callable[P, R], kind: QueryKind[R, S, One], doc: str) -> None:
        super().__init__(request, partial(run, kind), Answer.frame, doc)
        self.kind = kind
