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
MOST_KINDS = 2  # with more runs macro P@1 and the kinds of wrong answers are hidden at first


def draw_slices(choice: RunChoice) -> None:
    """Draw a table with one row per slice: P@k and kinds of wrong answers of each run."""
    whole = choice.view(slices)
    n_slices = whole.frame[whole.frame["n"] > 0].groupby("by")["slice"].nunique()
    wanted = st.query_params.get("slice_by")  # a URL's way is shown even if it has one slice
    kept = {name for name, n in n_slices.items() if name != "all" and (n > 1 or name == wanted)}
    ways = [name for name in whole.found.slicings if name in kept]
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
    names = (
        f"{'by ' * (way == EVERY)}slice p_at_k n interval {'chance ' * shown.guessable}"
        f"macro_p_at_1 {' '.join(KINDS)}"
    )
    n_runs = len(choice.runs)
    hidden = ["interval", "chance"] * (n_runs > MOST_INTERVALS)
    hidden += ["macro_p_at_1", *KINDS] * (n_runs > MOST_KINDS)
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
    draw_facts_button(
        chosen,
        lambda cell: described(
            cell, choice, slicing_label(f"{cell.line['by']} {cell.line['slice']}")
        ),
        lambda cell: open_line(choice, shown, cell.line, cell.column),
        place,
        "slices facts",
    )
    kinds = (
        "Kinds of wrong answers, in percent of wrong first answers: "
        f"{explain('Kinds of wrong answers')}"
    )
    st.caption(
        f"**P@{choice.k}**: percent of all facts of a slice, not averaged by relation. "
        + (
            kinds
            if n_runs <= MOST_KINDS
            else "On a computer, the menu that appears above the table under the mouse adds macro "
            "P@1 and kinds of wrong answers."
        )
    )
    if way == EVERY or "seen" in way:
        for note in shown.notes:
            st.caption(plain(note))
    draw_view_export(choice, shown)


def _on_page(column: Column, same: bool) -> Column:
    """A column in the page's words; the number of facts once if it is the same for all runs."""
    if column.name == "n":
        return replace(column, of_run=not same)
    if column.name == "interval":
        return replace(column, label="95 % interval")
    if column.name != "by":
        return column
    return replace(
        column,
        help=slicing_label(column.help),
        cell=lambda line: "" if line["by"] == "all" else slicing_label(line["by"]),
    )
