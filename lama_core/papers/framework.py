"""One framework of reproduction: a paper is what is prepared once, and specifications of tables.

The paper's file in `assets/published` has a row of data for each table that is reproduced; here it
gets a source of items (cells, charts, notes, what is missing). The source is called with what is
prepared; a source by model, once for each of its models. What can't be had is listed with the
reason and the command that brings it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from lama_core.datasets.library.installed import installed_names
from lama_core.errors import UserError, choose
from lama_core.papers.published import TableSpec, published_paper
from lama_core.progress import OnProgress, Progress, ignore
from lama_core.reports.tables import (
    Chart,
    Item,
    ReproducedRow,
    ReproducedTable,
    Reproduction,
    Series,
    TableContents,
    UnavailableItem,
)
from lama_core.requests import Request, argument, option
from lama_core.runs.spec import load_by_name
from lama_core.scoring import shared_fields

EMBEDDED = ("minilm-mlm", "smollm2-135m")
NO_DATA = "not in the data that is here"
NUMBERS = (float, int)


@dataclass(frozen=True)
class ReproduceOptions(Request):
    """A paper's tables to reproduce: the fields of `reproduce`."""

    command: ClassVar[tuple[str, ...]] = ("reproduce",)
    python: ClassVar[str] = "reproduce"

    paper: Annotated[str, argument("petroni2019, jiang2020, rezaee2022 or wiland2024.")] = field(
        default="", kw_only=True
    )
    dataset: Annotated[
        str | None,
        option(
            "A dataset's name or folder. Default: the paper's data, fetched; if unavailable, the "
            "starter data (not for wiland2024)."
        ),
    ] = None
    models: Annotated[
        Sequence[str],
        option("Also this model, without a published value; repeat for several.", name="--model"),
    ] = ()
    limit: shared_fields.Limit = None
    tables: Annotated[
        Sequence[str],
        option(
            "Only this table or figure (table2, figure3, leaderboard); repeat for several.",
            name="--table",
        ),
    ] = ()
    html: Annotated[
        Path | None, option("HTML file with the charts to write. Default: in the user's data.")
    ] = None


@dataclass(frozen=True, slots=True)
class Data:
    """What a paper's tables are made on.

    name: a dataset's name or folder. other: what it is where it isn't the paper's data or the
    user's own choice ("starter facts"). absent: the paper's own data, where it can't be had.
    """

    name: str
    other: str = ""
    absent: tuple[UnavailableItem, ...] = ()


def find_data(
    asked: str | None,
    *,
    own: str,
    installed: tuple[str, ...],
    instead: Data,
    on_progress: OnProgress = ignore,
) -> Data:
    """The data that a user named; else the paper's, fetched; else the ones instead.

    own: the name of the paper's data. installed: the names of what is here.
    """
    # It would load the downloading library where a page needs only `differing`.
    from lama_core.datasets.library.download import get_dataset

    if asked is not None:
        return Data(asked)
    if own not in installed:
        try:
            get_dataset(own, on_progress=on_progress)
        except UserError as error:
            missing = UnavailableItem(own, str(error), f"lama-explorer data get {own}")
            return Data(instead.name, instead.other, (missing,))
    return Data(own)


@dataclass
class Prepared:
    """The base of what a paper's tables are made from; runs are made when a table needs them.

    own: the name of the paper's data. instead: what is used where that can't be had. missing: what
    else can't be had, by the name that is shown.
    """

    own: ClassVar[str] = ""
    instead: ClassVar[Data] = Data("")

    options: ReproduceOptions
    missing: dict[str, UnavailableItem] = field(default_factory=dict)

    @property
    def on_progress(self) -> OnProgress:
        """The options' own."""
        return self.options.on_progress

    @property
    def notes(self) -> Sequence[str]:
        """Notes on all tables: the data, the ranking, the candidates."""
        return ()

    @property
    def asked(self) -> Iterable[str]:
        """The models, as they are shown, that sources by model are called with."""
        return ()

    @property
    def installed(self) -> tuple[str, ...]:
        """The names of the data that are here."""
        return installed_names()

    @cached_property
    def data(self) -> Data:
        """The data that the user named, or the paper's, or those instead."""
        return find_data(
            self.options.dataset,
            own=self.own,
            installed=self.installed,
            instead=self.instead,
            on_progress=self.on_progress,
        )

    def absent(self) -> tuple[UnavailableItem, ...]:
        """The data and the models that can't be had."""
        return (*self.data.absent, *self.missing.values())

    def load(self, reference: str, *, precision: Any = "auto") -> Any:
        """A model, fetched where it must be. Raises UserError if it can't be had."""
        return load_by_name(reference, precision=precision, on_progress=self.on_progress)

    @contextmanager
    def noting(self, name: str, command: str = "") -> Iterator[None]:
        """A block whose UserError is recorded in `missing`. command: what brings the thing."""
        try:
            yield
        except UserError as error:
            self.missing[name] = UnavailableItem(name, str(error), command)


P = TypeVar("P", bound=Prepared)


def of_models(prepared: P, items: Callable[[P, str], Iterable[Item]]) -> Iterator[Item]:
    """The items of every model; of one that can't be run, a row with the reason."""
    for model in prepared.asked:
        try:
            yield from items(prepared, model)
        except UserError as error:
            yield ReproducedRow(model, "", 0, None, None, str(error))


@dataclass(frozen=True, slots=True)
class Paper(Generic[P]):
    """A paper that can be reproduced. name: `petroni2019`.

    prepared: the class of what the tables are made from; raises UserError where there is nothing.
    sources: of the items of each table that the paper's file specifies, by its id.
    """

    name: str
    prepared: Callable[[ReproduceOptions], P]
    sources: Mapping[str, Callable[[P], Iterable[Item]] | Callable[[P, str], Iterable[Item]]]

    def reproduce(self, options: ReproduceOptions) -> Reproduction:
        """The tables that were requested; one that can't be made has the reason instead.

        Raises UserError for a table that the paper doesn't have here.
        """
        paper = published_paper(self.name)
        named = {table.id: table for table in paper.reproduced}
        chosen = [choose(_plain(name), named, "table") for name in options.tables] or list(named)
        prepared = self.prepared(options)
        notes = tuple(prepared.notes)
        made = []
        for table in (named[name] for name in dict.fromkeys(chosen)):
            options.on_progress(Progress(f"{table.name}: {table.title}"))
            try:
                found = self._made(table, prepared)
            except UserError as error:
                found = TableContents((), absent=(UnavailableItem(table.name, str(error)),))
            head = (table.id, table.title, table.unit, table.counts, table.digits)
            made.append(ReproducedTable(*head, found))
        return Reproduction(self.name, paper.citation, notes, tuple(made))

    def _made(self, table: TableSpec, prepared: P) -> TableContents:
        source: Any = self.sources[table.id]
        items = of_models(prepared, source) if table.by_model else source(prepared)
        made = [*table.notes, *items]
        return TableContents.of([*prepared.absent(), *made])


def _plain(name: str) -> str:
    """A table's name as its id: `Table 2`, `table-2` and `2` are `table2`."""
    short = "".join(sign for sign in name.lower() if sign.isalnum())
    return f"table{short}" if short.isdigit() else short


def joined(*words: str) -> str:
    """The words that aren't empty, each once: `20 of 41 relations; other candidates`."""
    return "; ".join(dict.fromkeys(filter(None, words)))


def differing(
    *,
    data: str = "",
    relations: tuple[int, int] | None = None,
    facts: tuple[int, int] | None = None,
    limit: int | None = None,
    model: str = "",
) -> str:
    """What isn't the paper's, for `ReproducedRow.differs`; "" where all is the same.

    data: its name where it is other data ("starter facts"). relations, facts: how many are here,
    and how many the paper has. limit: facts a relation. model: the paper's, where another is used.
    """
    counts = [
        f"{counted[0]:,} of {counted[1]:,} {name}"
        for counted, name in ((relations, "relations"), (facts, "facts"))
        if not data and counted and counted[0] != counted[1]
    ]
    limited = "" if limit is None else f"at most {limit:,} a relation"
    return joined(data, *counts, limited, model and f"not {model}")


def bars(
    title: str,
    rows: Iterable[ReproducedRow],
    *,
    x: Callable[[ReproducedRow], str] = lambda row: row.what,
    y_title: str,
    x_title: str = "",
    name: Callable[[ReproducedRow], str] = lambda row: row.model,
    published: Callable[[ReproducedRow], bool] = lambda row: True,
) -> Iterator[Chart]:
    """Rows as bars, a series for each name: ours, then the paper's; no chart without a value.

    published: the rows whose published value is drawn.
    """
    values: dict[tuple[bool, str], dict[str, float]] = {}
    for row in rows:
        if isinstance(row.ours, NUMBERS):
            values.setdefault((False, name(row)), {})[x(row)] = row.ours
        if isinstance(row.published, NUMBERS) and published(row):
            values.setdefault((True, f"{name(row)} (paper)"), {})[x(row)] = row.published
    series = [
        Series(label, tuple(of_label), tuple(of_label.values()), of_paper)
        for (of_paper, label), of_label in sorted(values.items(), key=lambda one: one[0][0])
    ]
    if series:
        yield Chart(title, "bars", x_title, y_title, tuple(series))
