"""Draw a view of runs: its figure, its table with a column for each run, and its export.

Every number links to its facts: a click on a mark or a chosen cell opens Wrong answers with the
filter that `View.facts` gives.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.rounding import percent, percentage, rounded
from lama_core.tables import Column, Line
from lama_core.views import vega
from lama_core.views.figure import Figure
from lama_core.views.figure_files import (
    FONT_SIZE,
    FONT_SIZES,
    FORMATS,
    WIDTH,
    WIDTHS,
    FigureFile,
    draw,
    n_files,
    zipped,
)
from lama_core.views.view import EDITED, Facts, Shown, ViewFunction
from pages.ui.shared import figures, links, screens
from pages.ui.shared.cache import cached
from pages.ui.shared.export import draw_download, draw_export
from pages.ui.shared.messages import draw_headline, plain, short
from pages.ui.shared.run_choice import RunChoice
from pages.ui.shared.tables import Picked, draw_table
from pages.ui.wrong_answers.filters import params_of

MOST_ROWS = 15  # of a table without a scroll bar
# Letters of a relation in a table, those that need the width below, and this width in pixels.
MOST_LETTERS, FEW_LETTERS, OF_RELATION = 38, 20, 240
MOST_INTERVALS = 3  # with more runs, interval columns are hidden; the table's menu shows them


def open_facts(choice: RunChoice, **filters: str | list[str]) -> None:
    """Open Wrong answers on the facts behind a number; `filters` are URL parameters."""
    links.go(screens.RESULTS, {**choice.params(), **filters, **screens.WRONG_ANSWERS})


def open_behind(choice: RunChoice, found: Facts | None) -> None:
    """Open the facts behind a cell or mark of the chosen runs; nothing if there are none."""
    if found is None:
        return
    names = {run.id: name for run, name in zip(choice.runs, choice.names, strict=True)}
    fields = {name: value for name, value in found.filter.items() if value not in ((), None)}
    relations = choice.labels_of(fields.pop("relations", choice.relations))
    params = {"of": names.get(found.run, ""), **params_of(fields), "relations": relations}
    for end in ("right", "wrong"):
        if ids := getattr(found, end):
            params[end] = [names[one] for one in ids]
    if found.counting != "counted":
        params["rows"] = found.counting
    open_facts(choice, **params)


def open_line(
    choice: RunChoice,
    shown: Shown[Any, Any],
    line: Line | None,
    column: str = "",
    *,
    alone: bool = False,
) -> None:
    """Open the facts behind a cell or mark of a view; nothing without a row.

    Args:
        choice: The choice of runs.
        shown: The view.
        line: The row of the view's frame.
        column: The name of the column.
        alone: Whether only the row's run is shown with the facts.
    """
    if line is None:
        return
    if alone:
        choice = choice.with_runs([run for run in choice.runs if run.id == line["run"]])
    open_behind(choice, shown.facts(line, column))


def draw_figure(
    choice: RunChoice,
    figure: Figure,
    key: str,
    inks: Mapping[str, str] | None = None,
    **options: Any,
) -> Line | None:
    """Draw a figure; return the row of its frame of the clicked mark, if any.

    inks: series -> colour; by default the colours of the chosen runs. options: as for
    `figures.draw_figure`.
    """
    return figures.draw_figure(figure, choice.colours if inks is None else inks, key, **options)


def draw_shown(
    choice: RunChoice,
    shown: Shown[Any, Any],
    key: str,
    inks: Mapping[str, str] | None = None,
    alone: bool = False,
    **changed: Any,
) -> Figure:
    """Draw a view's conclusion and its figure; a click on a mark opens its facts.

    alone: as of `open_line`. changed: fields of the figure that the page changes. Returns the
    figure as it is drawn, for `draw_view_export`.
    """
    draw_headline(shown.conclusion, key=f"headline {key}")
    figure = replace(shown.figure, **changed)
    open_line(choice, shown, draw_figure(choice, figure, key, inks), alone=alone)
    return figure


def draw_chart(
    choice: RunChoice,
    shown: Shown[Any, Any],
    key: str,
    meaning: str,
    *,
    help: str | None = None,
    name: str = "",
    made: Mapping[str, Any] | None = None,
    **changed: Any,
) -> None:
    """Draw a view's conclusion, its figure, what the marks mean, and its export.

    Args:
        choice: The choice of runs.
        shown: The view.
        key: The figure's key.
        meaning: What the marks mean, as Markdown.
        help: Its help text.
        name: As of `draw_view_export`.
        made: As of `draw_view_export`.
        changed: Fields of the figure that the page changes.
    """
    seen = draw_shown(choice, shown, key, **changed)
    st.caption(meaning, help=help)
    draw_view_export(choice, shown, name=name, made=made, figure=seen)


@dataclass(frozen=True)
class Cell:
    """A chosen cell of a table.

    Attributes:
        line: The row of the view's frame: of the cell's run, or of the first run that has one.
        column: The name of the column.
    """

    line: Line
    column: str


def draw_facts_button(
    chosen: Cell | None,
    describe: Callable[[Cell], str],
    open_cell: Callable[[Cell], object],
    place: DeltaGenerator,
    key: str,
    *,
    explains: bool = True,
) -> None:
    """Draw the button that opens the facts of the chosen cell.

    Selecting a cell doesn't open the facts by itself, because moving the keyboard focus to or past
    a table selects its first cell. `describe` names the cell's facts, and `open_cell` opens them.
    place: above the table, a container whose key ends in `way`: style.css gives it the height of
    the button, so that the table doesn't move.
    explains: whether the page says that a number has facts; for the first table of a screen.
    """
    if chosen is None:  # the text keeps the height of the place
        says = "Click a number, or tap its card, to see its facts." * explains
        place.html(f'<div class="lx-muted">{says}</div>')
    elif place.button(f"Facts: {describe(chosen)}", icon=":material/fact_check:", key=key):
        open_cell(chosen)


def draw_wide(
    choice: RunChoice,
    shown: Shown[Any, Any],
    frame: pd.DataFrame,
    key: str,
    columns: Sequence[Column],
    *,
    widths: Mapping[str, int | str],
    keys: Sequence[str] | None = None,
    hidden: Sequence[str] = (),
    more: Sequence[Mapping[str, Any]] = (),
    more_columns: Mapping[str, Any] | None = None,
    height: Any = "content",
) -> Cell | None:
    """Draw a table with a row for each group and columns for each run; return the chosen cell.

    Args:
        choice: The choice of runs, which gives their titles.
        shown: The view.
        frame: Its rows, or some of them.
        key: The widget's key.
        columns: The columns; the first one of a run is under the run's title.
        widths: Column -> its width.
        keys: The columns of the frame that identify a row; by default the view's.
        hidden: Names of columns of a run that only the table's menu shows.
        more: For each row, further cells that belong to no run.
        more_columns: The configuration of their columns.
        height: The height of the table.
    """
    keys = keys or shown.view.keys_of(shown)
    grouped: dict[tuple[Any, ...], dict[str, Line]] = {}  # of each group: run -> row of the frame
    for line in frame.to_dict("records"):
        grouped.setdefault(tuple(line[name] for name in keys), {})[line["run"]] = line
    groups = list(grouped.values())
    # Name in the table -> the column and its run, "" for a column of all runs.
    wide = {column.head: (column, "") for column in columns if not column.of_run}
    config = {
        name: configured(column, pinned=column.name in keys) for name, (column, _) in wide.items()
    }
    for run, title in zip(choice.runs, choice.titles, strict=True):
        for number, column in enumerate(one for one in columns if one.of_run):
            name = f"{title} {column.name}" if number else title
            wide[name] = column, run.id
            config[name] = configured(column, label="" if number else choice.heads[title])
            config[name]["help"] = f"{column.head}, {title}. {column.help}".strip()
    for name, (column, _) in wide.items():
        if column.name in widths:
            config[name]["width"] = widths[column.name]
    rows = []
    for group, extra in zip(groups, more or [{}] * len(groups), strict=True):
        row, of_all = {}, {}
        for name, (column, run_id) in wide.items():
            if run_id or column.name in keys:
                row[name] = cell(column, group.get(run_id or next(iter(group))))
            else:  # of a text all values, else the first one
                values = dict.fromkeys(cell(column, line) for line in group.values())
                of_all[name] = next(iter(values))
                if column.kind == "text":
                    of_all[name] = " / ".join(filter(None, values)) or None
        rows.append(row | dict(extra) | of_all)
    only_in_menu = {
        name for name, (column, run_id) in wide.items() if run_id and column.name in hidden
    }
    table = pd.DataFrame(rows)
    picked = draw_table(
        table,
        column_order=[name for name in map(str, table) if name not in only_in_menu],
        column_config=config | dict(more_columns or {}),
        key=key,
        picks="single-cell",
        placeholder="–",
        height=height,
    ).cell
    if picked is None:
        return None
    group = groups[picked[0]]
    if picked[1] not in wide:  # a cell of `more`
        return Cell(next(iter(group.values())), "")
    column, run_id = wide[picked[1]]
    return Cell(group.get(run_id) or next(iter(group.values())), column.name)


def draw_rows(
    frame: pd.DataFrame,
    columns: Sequence[Column],
    key: str = "",
    *,
    pinned: Sequence[str] = (),
    **options: Any,
) -> Picked:
    """Draw a table with a row for each row of a frame; return what the user picked.

    Args:
        frame: The rows.
        columns: The columns.
        key: The widget's key, if the user can pick.
        pinned: Names of columns that stay in sight.
        options: Passed to `draw_table`.
    """
    lines = frame.to_dict("records")
    grid: dict[str, Any] = {}
    config: dict[str, Any] = {}
    for column in columns:
        values = [cell(column, line) for line in lines]
        if column.name == "relation":
            values = [value and short(value, MOST_LETTERS) for value in values]
        grid[column.head] = pd.Series(values, dtype="Int64" if column.kind == "count" else None)
        config[column.head] = configured(
            column, pinned=column.name in pinned, sign=" %%" * ("%" not in column.head)
        )
        if (
            column.name == "relation"
            and max(map(len, filter(None, values)), default=0) > FEW_LETTERS
        ):
            config[column.head]["width"] = OF_RELATION
    return draw_table(pd.DataFrame(grid), key=key, column_config=config, **options)


def draw_whole(
    choice: RunChoice,
    function: ViewFunction[..., Any, Any],
    caption: str,
    shown_columns: str = "",
    panels: Callable[[Shown[Any, Any]], Sequence[Figure]] = lambda shown: [shown.figure],
    **options: Any,
) -> Line | None:
    """Draw a view as a whole: its figure, its table, its notes and its export.

    Returns a clicked mark of the figure, whose facts are opened if the view has facts.

    Args:
        choice: The choice of runs.
        function: The view.
        caption: What the marks mean, as Markdown.
        shown_columns: The names of the table's columns, separated by spaces; "" is all.
        panels: Returns the charts, which are drawn side by side.
        options: Fields of the view's request.
    """
    with st.spinner("Counting", show_time=True):
        shown = choice.view(function, **options)
    name = function.view.name
    draw_headline(shown.conclusion, key=f"headline {name}")
    drawn, mark = panels(shown), None
    for number, (figure, box) in enumerate(zip(drawn, st.columns(len(drawn)), strict=True)):
        with box:
            line = draw_figure(
                choice,
                figure,
                f"{name} chart" + f" {number}" * (number > 0),
                legend=True if len(drawn) > 1 else None,  # plots at the same height
            )
            open_line(choice, shown, line)
            mark = line or mark
    st.caption(f"{caption} {plain(' '.join(shown.notes))}")
    columns = shown.chosen(shown_columns or " ".join(shown.columns))
    frame = shown.frame
    if "run" in frame:  # model by model
        order = [info.id for info in shown.infos]
        frame = frame.iloc[frame["run"].map(order.index).argsort(kind="stable")]
    texts = [column for column in columns if column.kind == "text"]
    place = st.container(key=f"{name} way") if shown.view.has_facts else st.container()
    picked = draw_rows(
        frame,
        columns,
        f"{name} table",
        pinned=shown.view.keys_of(shown),
        picks="single-cell" if shown.view.has_facts else None,
        placeholder="–",
        height="content" if len(frame) <= MOST_ROWS else 460,
    ).cell
    if shown.view.has_facts:
        heads = {column.head: column.name for column in columns}
        draw_facts_button(
            picked and Cell(frame.to_dict("records")[picked[0]], heads[picked[1]]),
            lambda chosen: ", ".join(str(cell(column, chosen.line)) for column in texts),
            lambda chosen: open_line(choice, shown, chosen.line, chosen.column),
            place,
            f"{name} facts",
        )
    draw_view_export(choice, shown)
    return mark


def configured(
    column: Column, *, label: str = "", pinned: bool = False, sign: str = ""
) -> dict[str, Any]:
    """Streamlit's configuration of a column; sign: what follows a share, such as ` %%`."""
    config = st.column_config
    common: dict[str, Any] = {"label": label or column.head, "help": column.help or None}
    if column.kind in ("text", "interval"):
        width = 84 if column.kind == "interval" else None
        return {**config.TextColumn(**common, pinned=pinned or None, width=width)}
    form = {"count": "localized", "share": f"%.1f{sign}"}.get(column.kind, f"%.{column.digits}f")
    return {**config.NumberColumn(**common, format=form)}


def cell(column: Column, line: Line | None) -> Any:
    """A cell's value on a page: text, or a number rounded as the table shows it."""
    if line is None:
        return None
    value = column.value(line)
    if column.kind == "text":
        return column.format(value)
    if column.kind == "interval":
        low, high = value
        return "" if low != low else f"{percent(low)}–{percent(high)}"
    if value is None or value != value:
        return None
    if column.kind == "count":
        return int(value)
    return percentage(value) if column.kind == "share" else rounded(value, column.digits)


def described(cell: Cell, choice: RunChoice, name: str) -> str:
    """The facts of a chosen cell in words; name: the group's name."""
    titles = dict(zip([run.id for run in choice.runs], choice.titles, strict=True))
    excluded = ", excluded" * (cell.column == "n_excluded")
    return f"{name}{excluded}, {titles.get(cell.line['run'], choice.titles[0])}"


def draw_view_export(
    choice: RunChoice,
    shown: Shown[Any, Any],
    *,
    name: str = "",
    made: Mapping[str, Any] | None = None,
    figure: Figure | None = None,
) -> None:
    """Draw the Export button of a view, with its figure if it has one.

    Args:
        choice: The choice of runs.
        shown: The view.
        name: The files' name; by default the view's.
        made: Further provenance.
        figure: The figure as the page shows it; by default the view's.
    """
    name = name or shown.view.name
    draw_export(
        name,
        lambda: shown.frame,
        choice.made() | dict(made or {}),
        (shown.request,),
        inside=partial(_draw_figure_export, choice, shown, name, figure)
        if shown.view.has_figure
        else None,
    )


@cached(64)
def _n_files(
    figure: Figure, inks: dict[str, str], width: float, font_size: float, titled: bool
) -> int:
    """Return the number of a figure's files, which the page's button says whenever it is drawn."""
    return n_files(figure, inks, width=width, font_size=font_size, titled=titled)


def _draw_figure_export(
    choice: RunChoice, shown: Shown[Any, Any], name: str, seen: Figure | None
) -> None:
    """Draw the downloads of a view's figure: for papers, and as a specification of Vega-Lite."""
    st.caption("The figure for a paper, on white:")
    boxes = st.columns([2, 3, 3], vertical_alignment="bottom")
    file_format = boxes[0].selectbox("Format", FORMATS, key=f"{name} figure format")
    width = boxes[1].number_input(
        "Width, cm", *WIDTHS, WIDTH, 0.5, format="%g", key=f"{name} figure width"
    )
    font_size = boxes[2].number_input(
        "Font size, pt", *FONT_SIZES, FONT_SIZE, 0.5, format="%g", key=f"{name} figure font"
    )
    figure = seen or shown.figure
    if len(shown.figure.frame) > len(figure.frame) and st.toggle(
        f"All {len(shown.figure.places)} rows", key=f"{name} figure rows"
    ):
        figure = shown.figure
    titled = st.toggle("Title and caption in the picture", value=True, key=f"{name} figure title")
    if not titled:
        st.code(f"{figure.title}. {figure.caption}.", language=None, wrap_lines=True)
    inks = shown.view.inks(shown, choice.colours)
    n = _n_files(figure, dict(inks), width, font_size, titled)

    def drawn() -> bytes:
        path = Path(f"{name}.{file_format}")
        files = FigureFile(path).named(
            draw(figure, file_format, inks, width=width, font_size=font_size, titled=titled)
        )
        return files[path] if path in files else zipped(files)

    draw_download(
        f"Figure, {file_format.upper()}" + f" ({n} files)" * (n > 1),
        drawn,
        f"{name}.{'zip' if n > 1 else file_format}",
        key=f"{name} figure",
        icon=":material/insert_chart:",
    )
    draw_download(
        "Figure as Vega-Lite, JSON",
        lambda: json.dumps(vega.specification(figure, inks, EDITED), allow_nan=False),
        f"{name}.vl.json",
        key=f"{name} vega",
        icon=":material/data_object:",
    )
