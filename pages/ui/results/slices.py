"""The Slices chart of Results: P@k and kinds of wrong answers on groups of facts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from lama_core.glossary import explain
from lama_core.metrics.fact_answers import WRONG_KINDS
from lama_core.metrics.slices import Slicing, slice_table, slicings, unknown_training
from lama_core.rounding import percent, percentage
from pages.ui.results.overview import (
    MOST_INTERVALS,
    draw_facts_button,
    open_facts,
    results_request,
)
from pages.ui.shared import cache
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import plain, show_note
from pages.ui.shared.run_choice import RunChoice
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import BOUND
from pages.ui.wrong_answers.filters import params_of

EVERY = "every way"
MORE = ("interval", "chance", "macro")  # columns that are hidden if there are many runs
CHANCE_HELP = (
    "P@k of a random order: k / number of the relation's answers, averaged over the slice's facts."
)
MOST_KINDS = 2  # with more runs macro P@1 and the kinds of wrong answers are hidden at first


def draw_slices(choice: RunChoice) -> None:
    """Draw a table with one row per slice: P@k and kinds of wrong answers of each run."""
    joined = cache.joined_answers(choice.runs, choice.ranking)
    slicing = slicings(joined)
    ways = [name for name in slicing if name != "all"]
    way = st.selectbox(
        "Slice by",
        (EVERY, *ways),
        key="slice_by",
        bind=BOUND,
        width=320,
        format_func=shown_slicing,
    )
    table: pd.DataFrame = cache.table_of_runs(
        "slices",
        choice.runs,
        choice.ranking,
        choice.relations,
        lambda _: slice_table(joined, k=choice.k, relations=choice.relations),
        choice.k,
    )
    if table.empty:
        show_note("These relations have no facts in these runs.")
        return
    shown = table if way == EVERY else table[table["by"].isin(["all", way])]
    keys = list(dict.fromkeys(zip(shown["by"], shown["slice"], strict=True)))
    cell = _draw_table(shown, keys, choice, slicing, way)
    title, kind = _split_column(cell[1], choice) if cell else ("", "")
    title = title or choice.titles[0]
    opens = draw_facts_button(
        f"{shown_slicing(' '.join(keys[cell[0]]))}, {title}" if cell else None, "slices way"
    )
    st.caption(
        f"**P@{choice.k}**: percent of all facts of a slice, not averaged by relation. Kinds of "
        "wrong answers, in percent of wrong first answers: "
        + explain("Kinds of wrong answers")
        + " The table's menu shows hidden columns."
    )
    if note := unknown_training(joined.readers):
        st.caption(plain(note))
    # In the order of the command line: one run after another.
    by_run = table.sort_values("number", kind="stable").drop(columns="number")
    draw_export(
        "slices",
        lambda: by_run,
        choice.made(),
        replace(results_request(choice, "relation"), slices=True),
    )
    if cell is None or not opens:
        return
    by, name = keys[cell[0]]
    kinds = {"kind": kind} if kind in WRONG_KINDS else {}
    open_facts(choice, title, **params_of(slicing[by].slices[name]), **kinds)


def shown_slicing(name: str) -> str:
    """The name of a slicing on screen: files and URLs write `gold` for the right answer."""
    return name.replace("gold", "right answer")


def _split_column(column: str, choice: RunChoice) -> tuple[str, str]:
    """Split a column's name into run title and measure; both empty for other columns."""
    for title in choice.titles:
        for measure in ("", "n", *MORE, *WRONG_KINDS):
            if column == f"{title} {measure}".rstrip():
                return title, measure
    return "", ""


def _draw_table(
    table: pd.DataFrame,
    keys: list[tuple[str, str]],
    choice: RunChoice,
    slicing: Mapping[str, Slicing],
    way: str,
) -> tuple[int, str] | None:
    """Draw the table and return the selected cell, if any."""
    lines = {(line["by"], line["slice"], line["number"]): line for line in table.to_dict("records")}
    grid = []
    for by, name in keys:
        row: dict[str, Any] = {"slice by": "" if by == "all" else shown_slicing(by), "slice": name}
        for number, run in enumerate(choice.titles):
            line = lines.get((by, name, number), {})
            known = bool(line) and line["n"] > 0
            row[run] = percentage(line["p_at_k"]) if known else None
            row[f"{run} n"] = line.get("n")
            row[f"{run} interval"] = (
                f"{percent(line['low'])}–{percent(line['high'])}" if known else ""
            )
            if choice.guessable:
                row[f"{run} chance"] = percentage(line["chance"]) if known else None
            row[f"{run} macro"] = percentage(line["macro_p_at_1"]) if known else None
            for kind in WRONG_KINDS:
                row[f"{run} {kind}"] = percentage(line[kind.replace(" ", "_")]) if known else None
        grid.append(row)
    number_column, n_runs = st.column_config.NumberColumn, len(choice.titles)
    help_text = "\n\n".join(
        f"**{shown_slicing(way.name)}**: {way.help}" for way in slicing.values()
    )
    config: dict[str, Any] = {
        "slice by": st.column_config.TextColumn(help=help_text, pinned=True, width=130),
        "slice": st.column_config.TextColumn(pinned=True, width=130 if way == EVERY else 220),
    }
    hidden: set[str] = set() if way == EVERY else {"slice by"}
    for run in choice.titles:
        config[f"{run} n"] = number_column(
            "facts",
            format="localized",
            help=f"Facts of the slice that {run} is scored on.",
            width="small",
        )
        config[run] = number_column(
            choice.heads[run],
            format="%.1f",
            help=f"P@{choice.k}: percent of the slice's facts whose right answer is among {run}'s "
            f"first {choice.k}.",
        )
        config[f"{run} interval"] = st.column_config.TextColumn(
            "95 %", help="95 % interval of P@k, over the slice's facts.", width=84
        )
        config[f"{run} chance"] = number_column("chance", format="%.1f", help=CHANCE_HELP)
        config[f"{run} macro"] = number_column(
            "macro P@1",
            format="%.1f",
            help=f"{run}'s P@1 in percent, averaged over the slice's right answers instead of its "
            "facts, so all answers have the same weight.",
        )
        for kind in WRONG_KINDS:
            config[f"{run} {kind}"] = number_column(
                kind,
                format="%.1f",
                help=f"Percent of {run}'s wrong first answers. "
                + explain("Kinds of wrong answers"),
            )
        hidden |= {f"{run} {measure}" for measure in MORE} if n_runs > MOST_INTERVALS else set()
        rest = ("macro", *WRONG_KINDS) if n_runs > MOST_KINDS else ()
        hidden |= {f"{run} {measure}" for measure in rest}
        hidden |= {f"{run} another valid"} if choice.ranking == "filtered" else set()
    frame = pd.DataFrame(grid)
    return draw_table(
        frame,
        column_order=[str(name) for name in frame if name not in hidden],
        column_config=config,
        key="slices table",
        picks="single-cell",
        placeholder="–",
        height="content",
    ).cell
