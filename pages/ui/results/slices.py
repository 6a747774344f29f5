"""The Slices chart of Results: P@k and kinds of wrong answers on groups of facts."""

from dataclasses import replace

import streamlit as st

from lama_core.glossary import explain
from lama_core.metrics.slices import ORIGIN, TYPE
from lama_core.tables import Column
from lama_core.views.slices import (
    KINDS,
    best_run,
    by_slice,
    most_different,
    slices,
    slicing_label,
)
from pages.ui.results.draw_view import (
    MOST_INTERVALS,
    described,
    draw_facts_button,
    draw_shown,
    draw_view_export,
    draw_wide,
    open_line,
)
from pages.ui.shared.messages import plain, show_note
from pages.ui.shared.run_choice import RunChoice
from pages.ui.shared.url_state import BOUND

EVERY = "every way"
MORE = ("interval", "chance")  # columns that are hidden if there are many runs
MOST_KINDS = 2  # with more runs macro P@1 and the kinds of wrong answers are hidden at first

IN_MENU = (
    "On a computer, the menu that appears above the table under the mouse adds macro P@1 and kinds "
    "of wrong answers."
)


def draw_slices(choice: RunChoice) -> None:
    """Draw a table with one row per slice: P@k and kinds of wrong answers of each run."""
    whole = choice.view(slices)
    n_slices = whole.frame[whole.frame["n"] > 0].groupby("by")["slice"].nunique()
    wanted = st.query_params.get("slice_by")  # a URL's way is shown even if it has one slice
    kept = {name for name, n in n_slices.items() if n > 1 or name == wanted}
    ways = [name for name in whole.found.slicings if name in kept - {"all"}]
    # A newcomer doesn't know the sources of data; types have a chart of their own.
    asked = whole.frame[~whole.frame["by"].isin((ORIGIN, TYPE))]
    best = most_different(asked, best_run(asked))
    way = st.selectbox(
        "Slice by",
        (*ways, EVERY),
        index=ways.index(best) if best in ways else len(ways),
        key="slice_by",
        bind=BOUND,
        width=320,
        format_func=slicing_label,
    )
    if whole.frame.empty:
        show_note("These relations have no facts in these runs.")
        return
    shown = whole if way == EVERY else choice.view(slices, slice_by=way)
    draw_shown(choice, shown, "slices chart")
    rows = by_slice(shown.found)
    same = bool((rows.groupby(["by", "slice"])["n"].nunique() == 1).all())
    names = f"slice p_at_k n interval {'chance ' * shown.guessable}macro_p_at_1 {' '.join(KINDS)}"
    names = f"by {names}" if way == EVERY else names
    n_runs = len(choice.runs)
    hidden = [*MORE] if n_runs > MOST_INTERVALS else []
    hidden += ["macro_p_at_1", *KINDS] if n_runs > MOST_KINDS else []
    place = st.container(key="slices way")
    chosen = draw_wide(
        choice,
        shown,
        rows[rows["by"].isin(("all", *ways))],
        "slices table",
        [_on_page(column, same) for column in shown.chosen(names)],
        hidden=hidden + ["another_valid"] * (choice.ranking == "filtered"),
        widths={"by": 160, "slice": 210 if way == EVERY else 260, "interval": 110},
    )
    if clicked := draw_facts_button(
        chosen,
        lambda cell: described(
            cell, choice, slicing_label(f"{cell.line['by']} {cell.line['slice']}")
        ),
        place,
        "slices facts",
    ):
        open_line(choice, shown, clicked.line, clicked.column)
    kinds = "Kinds of wrong answers, in percent of wrong first answers: "
    kinds += explain("Kinds of wrong answers")
    st.caption(
        f"**P@{choice.k}**: percent of all facts of a slice, not averaged by relation. "
        + (kinds if len(choice.runs) <= MOST_KINDS else IN_MENU)
    )
    if way == EVERY or "seen" in way:
        for note in shown.notes:
            st.caption(plain(note))
    draw_view_export(choice, shown)


def _on_page(column: Column, same: bool) -> Column:
    """A column in the page's words; the number of facts once if it is the same for all runs."""
    if column.name in ("n", "interval"):
        label = {"interval": "95 % interval"}.get(column.name, column.label)
        return replace(column, label=label, of_run=not (same and column.name == "n"))
    if column.name != "by":
        return column
    return replace(
        column,
        help=slicing_label(column.help),
        cell=lambda line: "" if line["by"] == "all" else slicing_label(line["by"]),
    )
