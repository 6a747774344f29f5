"""The definition of a view of finished runs, and the steps that show it.

A view is a file with a class derived from `View` and a `ViewFunction`, and a row in `VIEWS`
(`lama_core.views.table`). It takes these steps:

    request --choose_runs--> runs --compute--> what is shown --> tables, JSON, figure, facts

The Python function and the command take all steps. The app chooses runs by its widgets, and keeps
what `compute` returns for all visitors.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeVar

import pandas as pd

from lama_core.errors import UserError
from lama_core.metrics.fact_answers import Counting
from lama_core.requests import Function, Request, request_fields
from lama_core.rounding import counted, few, plural
from lama_core.runs.info import RelationInfo, Run, RunInfo
from lama_core.tables import Column, Line, Table
from lama_core.views import vega
from lama_core.views.choice import RunsRequest, choose_runs, model_names
from lama_core.views.colours import run_colours
from lama_core.views.figure import Figure, labels_of, scored_labels

if TYPE_CHECKING:
    import altair

R = TypeVar("R", bound=Request)
To = TypeVar("To", bound=Request)
Found = TypeVar("Found")
P = ParamSpec("P")

MOST_RELATIONS = 3  # that a caption names
EDITED_WIDTH = 640.0
EDITED = vega.Look(width=EDITED_WIDTH, legend=True)  # for notebooks and editors of charts
CHART_WIDTHS = (200, 4000)  # in pixels
MOST_LISTED = 40  # facts that a command lists; --json has all


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts behind a cell or mark.

    Attributes:
        run: The id of the run that the filter applies to.
        filter: Fields of `AnswerFilter`, without those that hold indices of runs.
        counting: Whether the facts are those that count, the excluded ones, or all.
        right: Ids of runs that are right.
        wrong: Ids of runs that are wrong.
    """

    run: str
    filter: Mapping[str, Any] = field(default_factory=dict)
    counting: Counting = "counted"
    right: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


class View(ABC, Generic[R, Found]):
    """A view of finished runs.

    Attributes:
        name: The last word of its command, and its name in files.
        title: Its name on the page.
        question: The question that it answers.
        example: A command, without the program's name.
        keys: The columns of `frame` that, with the run, identify a row.
        aligned: Whether runs of the same data and prompts are restricted to shared facts.
        checkpoints: Whether it includes the earlier checkpoints of training runs.
        of_ranks: Whether it needs ranks, which generated answers and some imported runs don't have.
        of_means: Whether its numbers are means over relations.
        counted: What the column n of its frame counts.
        says_size: Whether its conclusion says of how many relations and facts it is.
        of_probabilities: Whether it needs probabilities, which some imported runs don't have.
        least_runs: The least number of runs.
        most_runs: The largest number of runs; None is unlimited.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    question: ClassVar[str]
    example: ClassVar[str]
    keys: ClassVar[tuple[str, ...]] = ()
    aligned: ClassVar[bool] = True
    checkpoints: ClassVar[bool] = False
    of_ranks: ClassVar[bool] = False
    of_means: ClassVar[bool] = False
    counted: ClassVar[str] = "facts"
    says_size: ClassVar[bool] = False
    of_probabilities: ClassVar[bool] = False
    least_runs: ClassVar[int] = 1
    most_runs: ClassVar[int | None] = None

    def lacks(self, info: RunInfo) -> str:
        """Return what the view needs and a run doesn't have; "" if the view can show the run."""
        if self.of_ranks and not info.has_ranks:
            return "ranks"
        return "probabilities" if self.of_probabilities and not info.has_probabilities else ""

    @abstractmethod
    def compute(self, runs: Sequence[Run], request: R) -> Found:
        """Return what is shown, mostly a DataFrame with a row for each run and group.

        Raises:
            UserError: If these runs or facts can't be shown.
        """

    def frame(self, shown: "Shown[R, Found]") -> pd.DataFrame:
        """Return the DataFrame of the Python function and of the CSV.

        By default, it is what `compute` returns, or the attribute `table` of it.
        """
        found = getattr(shown.found, "table", shown.found)
        if not isinstance(found, pd.DataFrame):
            raise TypeError(f"{type(self).__name__} defines no frame")
        return found

    def keys_of(self, shown: "Shown[R, Found]") -> tuple[str, ...]:
        """Return `keys`; a view whose rows depend on the request returns those of this table."""
        return self.keys

    def columns(self, shown: "Shown[R, Found]") -> tuple[Column, ...]:
        """Return the columns of its tables, for the command and the page."""
        return ()

    @abstractmethod
    def tables(self, shown: "Shown[R, Found]") -> Iterator[Table | str]:
        """Yield the tables and lines that the command prints."""

    def notes(self, shown: "Shown[R, Found]") -> Iterator[str]:
        """Yield what readers must know about the numbers, in sentences."""
        yield from ()

    def conclusion(self, shown: "Shown[R, Found]") -> str:
        """Return in one sentence, with numbers, what these runs show; it may be empty."""
        return ""

    def basis(self, shown: "Shown[R, Found]") -> str:
        """Return of how many relations and facts the conclusion is, see `says_size`."""
        return "means over " * self.of_means + shown.size()

    def json(self, shown: "Shown[R, Found]") -> Any:
        """Return what the command prints with `--json`."""
        return self.frame(shown).to_dict("records")

    def figure(self, shown: "Shown[R, Found]") -> Figure:
        """Return the chart. Raises UserError if the view has none, see `has_figure`."""
        raise UserError(f"{self.title} has no chart.")

    def inks(self, shown: "Shown[R, Found]", of_runs: Mapping[str, str]) -> Mapping[str, str]:
        """Return series of the chart -> its colour; by default, series are runs.

        of_runs: run id -> its colour.
        """
        return of_runs

    @property
    def has_figure(self) -> bool:
        """Whether the view has a chart."""
        return type(self).figure is not View.figure

    @property
    def has_facts(self) -> bool:
        """Whether the facts behind a cell can be shown."""
        return type(self).facts is not View.facts

    def facts(self, shown: "Shown[R, Found]", line: Line, column: str = "") -> Facts | None:
        """Return the facts behind a cell or mark; None if there are none to show.

        Args:
            shown: What is shown.
            line: The row of the frame.
            column: The name of the column.
        """
        return None

    def load(self, request: R) -> list[Run]:
        """Return the runs that a request names; views of other requests override this.

        Raises:
            UserError: If no run is finished, or a run or relation is unknown.
        """
        if not isinstance(request, RunsRequest):
            raise TypeError(f"{type(self).__name__} defines no load")
        return choose_runs(request, aligned=self.aligned, checkpoints=self.checkpoints)

    def check(self, infos: Sequence[RunInfo]) -> None:
        """Raise UserError if these runs can't be shown together."""
        if len(infos) < self.least_runs:
            raise UserError(f"{self.title}: choose at least {self.least_runs} runs.")
        if self.most_runs is not None and len(infos) > self.most_runs:
            raise UserError(f"{self.title}: choose at most {self.most_runs} runs.")


@dataclass(frozen=True)
class Shown(Generic[R, Found]):
    """A view of runs, computed.

    Attributes:
        view: The view.
        request: The request.
        infos: The runs.
        found: What `View.compute` returned.
        names: Run id -> its name for readers.
    """

    view: View[R, Found]
    request: R
    infos: tuple[RunInfo, ...]
    found: Found
    names: Mapping[str, str]

    def asking(self, **fields: Any) -> "Shown[R, Found]":
        """Return the same numbers with other fields of the request, which `compute` doesn't use."""
        return replace(self, request=replace(self.request, **fields))

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The DataFrame."""
        return self.view.frame(self)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Name -> column."""
        return {column.name: column for column in self.view.columns(self)}

    def chosen(self, names: str) -> list[Column]:
        """Return columns. names: their names, separated by spaces."""
        return [self.columns[name] for name in names.split()]

    @cached_property
    def labels(self) -> dict[str, str]:
        """Relation -> its label for readers."""
        return labels_of(self.infos)

    @property
    def guessable(self) -> bool:
        """Whether any run has a chance level worth showing."""
        return any(info.guessable for info in self.infos)

    @property
    def counts(self) -> str:
        """Plural of `unit`."""
        return plural(self.unit)

    @property
    def unit(self) -> str:
        """What is counted, as `RunInfo.unit`: a query if one of the runs counts queries."""
        units = [info.unit for info in self.infos] or ["fact"]
        return next((one for one in units if one.endswith("query")), units[0])

    def title_of(self, what: str) -> str:
        """Return the title of a chart: what it shows, the data, and the relation if it is one."""
        names: Sequence[str] = getattr(self.request, "relations", ())
        data = dict.fromkeys(info.dataset for info in self.infos)
        relation = [labels_of(self.infos)[names[0]]] if len(names) == 1 else []
        return ", ".join((what, *data, *relation))

    def size(
        self,
        keep: Callable[[RelationInfo], bool] = lambda _: True,
        counts: Callable[[RelationInfo], bool] = lambda _: True,
    ) -> str:
        """Return how many relations have facts that count, and how many facts these are.

        Such as `61 of 62 relations, 11,892 facts` if no fact of a relation counts; with two
        numbers if the runs differ. They are of the chosen relations for which `keep` is true, and
        of the runs that the frame has; no fact counts of relations for which `counts` is false.
        """
        names = getattr(self.request, "relations", ())
        ids = {info.id for info in self.infos}
        runs = ids & set(self.frame.get("run", ())) or ids
        of_run = [
            [
                one.n * counts(one)
                for one in info.relations
                if one.name in (names or (one.name,)) and keep(one)
            ]
            for info in self.infos
            if info.id in runs
        ]
        ends = [
            sorted({min(of), max(of)})
            for of in zip(*((sum(n > 0 for n in ns), sum(ns)) for ns in of_run), strict=True)
        ]
        n_relations, n_facts = (" to ".join(f"{n:,}" for n in of) for of in ends)
        most = max(map(len, of_run))
        of = f" of {most:,}" * (0 < ends[0][-1] < most)  # no fact of the others counts
        relations = "relation" if (ends[0], of) == ([1], "") else "relations"
        units = self.unit if ends[1] == [1] else self.counts
        return f"{n_relations}{of} {relations}, {n_facts} {units}"

    @property
    def caption(self) -> str:
        """Data, prompts, relations, number of facts and ranking, for the end of a chart."""
        about = [", ".join(dict.fromkeys(info.dataset for info in self.infos))]
        about.append(
            "prompts: " + ", ".join(dict.fromkeys(info.prompts_said for info in self.infos))
        )
        if not isinstance(self.request, RunsRequest):
            return "; ".join(about)
        if relations := scored_labels(self.infos, self.request.relations):
            several = len(relations) > MOST_RELATIONS
            about.append(counted(len(relations), "relation") if several else ", ".join(relations))
        about.append(self.size().partition(", ")[2] + " for each model" * (len(self.infos) > 1))
        about.append(
            ", ".join(dict.fromkeys(map(self.request.ranking_of, self.infos))) + " ranking"
        )
        return "; ".join(about)

    @property
    def notes(self) -> list[str]:
        """Notes that readers need about the numbers, in sentences."""
        partial = [f"{self.names[one.id]}: {one.unusable}." for one in self.infos if one.unusable]
        return [*partial, *self.view.notes(self)]

    @cached_property
    def conclusion(self) -> str:
        """What the runs show, in one sentence, and of how many facts; see `View.conclusion`."""
        said = self.view.conclusion(self)
        return f"{said}; {self.view.basis(self)}" if said and not self.view.says_size else said

    @cached_property
    def figure(self) -> Figure:
        """The chart; see `View.figure`."""
        return self.view.figure(self)

    @property
    def inks(self) -> Mapping[str, str]:
        """Series of the chart -> its colour, the app's."""
        return self.view.inks(self, run_colours(self.infos))

    def chart(self, width: float = EDITED_WIDTH) -> "altair.LayerChart":
        """Return the chart for a notebook; width: in pixels, from 200 to 4,000.

        Raises:
            UserError: If the view has no chart, or the width isn't in these bounds.
        """
        import altair  # takes longer to load than most views take

        least, most = CHART_WIDTHS
        if not least <= width <= most:
            raise UserError(f"The width of a chart is from {least} to {most:,} pixels.")
        return altair.LayerChart.from_dict(
            vega.specification(self.figure, self.inks, replace(EDITED, width=width))
        )

    def facts(self, line: Line, column: str = "") -> Facts | None:
        """Return the facts behind a cell or mark; see `View.facts`."""
        return self.view.facts(self, line, column)

    def to_json(self) -> Any:
        """Return what the command prints with `--json`."""
        return self.view.json(self)


def show(view: View[R, Found], request: R) -> Shown[R, Found]:
    """Return a view of the runs that the request names.

    Raises:
        UserError: If no run is finished, a run or relation is unknown, or these runs can't
            be shown together.
    """
    runs = view.load(request)
    lacks = {run.info.id: lack for run in runs if (lack := view.lacks(run.info))}
    if lacks:
        what = " or ".join(dict.fromkeys(lacks.values()))
        request.on_note(f"Not shown, because they have no {what}: {few(list(lacks))}.")
        runs = [run for run in runs if run.info.id not in lacks]
        if not runs:
            raise UserError(f"{view.title}: these runs have no {what}. Choose other runs.")
    return show_runs(view, runs, request)


def show_runs(
    view: View[R, Found],
    runs: Sequence[Run],
    request: R,
    names: Mapping[str, str] | None = None,
) -> Shown[R, Found]:
    """Return a view of these runs; names: run id -> its name for readers.

    Raises:
        UserError: If these runs can't be shown together.
    """
    infos = tuple(run.info for run in runs)
    view.check(infos)
    return Shown(view, request, infos, view.compute(runs, request), names or model_names(infos))


def narrowed(kind: type[To], request: Request, **changed: Any) -> To:
    """Return a view's request with the values of another request, and changed ones."""
    known = {one.name for one in request_fields(kind)} | {"on_progress", "on_note"}
    return kind(**{name: value for name, value in vars(request).items() if name in known} | changed)


class ViewFunction(Function[P, R, Shown[R, Found], pd.DataFrame]):
    """The Python function of a view; it returns a DataFrame."""

    def __init__(self, request: Callable[P, R], view: View[R, Found], doc: str) -> None:
        super().__init__(request, partial(show, view), lambda shown: shown.frame, doc)
        self.view = view
