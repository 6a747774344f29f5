"""Framework for reproducing papers: prepare data and models once, then make the tables.

The paper's file in `assets/published` specifies each reproduced table. Here each table gets a
source: a function that yields items (cells, charts, notes, missing data or models) from the
prepared data and models. If a table is `by_model`, its source is called once per model. Unavailable
data and models are listed with the reason and the command that fetches them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from lama_core.datasets.library.download import get_dataset
from lama_core.datasets.library.installed import installed_names
from lama_core.errors import UserError, choose
from lama_core.progress import OnProgress, Progress, ignore
from lama_core.published import published_paper
from lama_core.requests import Request, argument, option
from lama_core.runs.spec import load_by_name
from lama_core.scoring import shared_fields
from lama_papers.tables import (
    Item,
    ReproducedRow,
    ReproducedTable,
    Reproduction,
    TableContents,
    UnavailableItem,
)

EMBEDDED = ("minilm-mlm", "smollm2-135m")
NO_DATA = "not in this dataset"


@dataclass(frozen=True)
class ReproduceOptions(Request, command="reproduce", python="reproduce"):
    """Request to reproduce a paper's tables: the fields of `reproduce`."""

    paper: Annotated[str, argument("petroni2019, jiang2020, rezaee2022 or wiland2024.")] = ""
    dataset: Annotated[
        str | None,
        option(
            "A dataset's name or folder. Default: the paper's data, fetched; if unavailable, the "
            "starter data (not for wiland2024)."
        ),
    ] = None
    models: Annotated[
        Sequence[str],
        option("Add this model, without a published value; repeat for several.", name="--model"),
    ] = ()
    limit: shared_fields.Limit = None
    tables: Annotated[
        Sequence[str],
        option(
            "Only this table or figure (table2, figure3, leaderboard); repeat for several.",
            name="--table",
            selects=True,
        ),
    ] = ()
    html: Annotated[
        Path | None, option("Write an HTML file with the charts here. Default: in the data folder.")
    ] = None


@dataclass(frozen=True, slots=True)
class Data:
    """The data that a paper's tables are computed on.

    name: a dataset's name or folder. other: description of data that replace the paper's ("starter
    facts"), else "". absent: the paper's data if unavailable.
    """

    name: str
    other: str = ""
    absent: tuple[UnavailableItem, ...] = ()


def find_data(
    asked: str | None,
    *,
    own: str,
    instead: Data,
    on_progress: OnProgress = ignore,
) -> Data:
    """Return the data that the user chose; else the paper's, fetched if needed; else `instead`.

    asked: the user's choice. own: name of the paper's data.
    """
    if asked is not None:
        return Data(asked)
    if own not in installed_names():
        try:
            get_dataset(own, on_progress=on_progress)
        except UserError as error:
            missing = UnavailableItem(own, str(error), f"lama-explorer data get {own}")
            return Data(instead.name, instead.other, (missing,))
    return Data(own)


@dataclass
class PaperInputs:
    """Base class for the data, models and runs of a paper's tables; runs are made when needed.

    own: name of the paper's data. instead: data to use if the paper's are unavailable. missing:
    unavailable models and other needs, by displayed name.
    """

    own: ClassVar[str] = ""
    instead: ClassVar[Data] = Data("")

    options: ReproduceOptions
    missing: dict[str, UnavailableItem] = field(default_factory=dict)

    @property
    def notes(self) -> Sequence[str]:
        """Notes that apply to all tables: data, ranking, candidates."""
        return ()

    @property
    def asked(self) -> Iterable[str]:
        """Displayed names of the models; sources of `by_model` tables are called once for each."""
        return ()

    @cached_property
    def data(self) -> Data:
        """The data that the user chose, else the paper's, else `instead`."""
        return find_data(
            self.options.dataset,
            own=self.own,
            instead=self.instead,
            on_progress=self.options.on_progress,
        )

    def absent(self) -> tuple[UnavailableItem, ...]:
        """Return the unavailable data and models."""
        return (*self.data.absent, *self.missing.values())

    def load(self, reference: str, *, precision: Any = "auto") -> Any:
        """Load a model, fetching it if needed, or raise UserError if it is unavailable."""
        return load_by_name(reference, precision=precision, on_progress=self.options.on_progress)

    @contextmanager
    def noting(self, name: str, command: str = "") -> Iterator[None]:
        """Catch a UserError of the block and record it in `missing`.

        name: the item that an error makes unavailable. command: fetches it.
        """
        try:
            yield
        except UserError as error:
            self.missing[name] = UnavailableItem(name, str(error), command)


P = TypeVar("P", bound=PaperInputs)


def of_models(prepared: P, items: Callable[[P, str], Iterable[Item]]) -> Iterator[Item]:
    """Yield the items of every model; a model that fails gets a row with the reason."""
    for model in prepared.asked:
        try:
            yield from items(prepared, model)
        except UserError as error:
            yield ReproducedRow(model, "", 0, None, None, str(error))


@dataclass(frozen=True, slots=True)
class Paper(Generic[P]):
    """A paper that can be reproduced.

    name: such as `petroni2019`. prepared: subclass of `PaperInputs`; raises UserError if nothing
    can be reproduced. sources: id of each table in the paper's file -> the source of its items.
    """

    name: str
    prepared: Callable[[ReproduceOptions], P]
    sources: Mapping[str, Callable[[P], Iterable[Item]] | Callable[[P, str], Iterable[Item]]]

    def reproduce(self, options: ReproduceOptions) -> Reproduction:
        """Make the requested tables; a table that fails has the reason as its content.

        Raises:
            UserError: If a requested table isn't one of the paper's reproduced tables.
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
                source: Any = self.sources[table.id]
                # Make the items first: this can add to what `absent` returns.
                items = list(of_models(prepared, source) if table.by_model else source(prepared))
                found = TableContents.of([*prepared.absent(), *table.notes, *items])
            except UserError as error:
                found = TableContents((), absent=(UnavailableItem(table.name, str(error)),))
            made.append(
                ReproducedTable(
                    table.id, table.title, table.unit, table.counts, table.digits, found
                )
            )
        return Reproduction(self.name, paper.citation, notes, tuple(made))


def _plain(name: str) -> str:
    """Return the id for a table's name: `table2` for `Table 2`, `table-2` and `2`."""
    short = "".join(sign for sign in name.lower() if sign.isalnum())
    return f"table{short}" if short.isdigit() else short
