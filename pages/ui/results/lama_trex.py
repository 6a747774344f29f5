"""LAMA's T-REx as this project measured it, next to the paper's rows: LAMA without fetching it."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from lama_core import rounding
from lama_core.metrics.intervals import METHOD, METHOD_OF_MEANS
from lama_core.papers.own_results import (
    SOURCE,
    MeasuredLama,
    load_measured,
    measured_curves,
    measured_table,
)
from lama_core.papers.published import published_scores, published_table
from pages.ui.shared import charts, url_state
from pages.ui.shared.colours import model_colours
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import plain
from pages.ui.shared.run_choice import RunChoice
from pages.ui.shared.url_state import BOUND

DEFAULT_PUBLISHED = ("Freq", "BERT-base", "BERT-large")
PYTHON = (
    "from lama_core.papers.own_results import measured_curves, measured_table\n\n"
    'measured_table("relation", "{ranking}")\nmeasured_table("type", "{ranking}")\n'
    'measured_table("source", "{ranking}")\nmeasured_curves("{ranking}")\n'
)


def draw_measured(choice: RunChoice) -> None:
    """The chart: by type and in total, the curve, and by relation. Of the choice: the ranking."""
    measured, ranking = load_measured(), choice.ranking
    shown = st.multiselect(
        "Compare with published",
        published_table("petroni2019", "table2").columns,
        default=list(DEFAULT_PUBLISHED),
        key="published_lama",
        bind=BOUND,
        placeholder="None",
        help="P@1 in percent as printed in Table 2 of Petroni et al. 2019.",
    )
    names = [model.model for model in measured.models]
    _draw_totals(choice, names, shown)
    st.caption(_said(measured, choice))
    st.markdown("### Mean P@k as k grows, T-REx")
    curves = measured_curves(ranking).assign(
        name=lambda table: table["model"].map(url_state.title_of), chance=float("nan")
    )
    colours = {url_state.title_of(name): colour for name, colour in model_colours(names).items()}
    charts.show(
        charts.precision_curves(curves, colours, 1),
        "measured curve chart",
        title="Mean P@k from 1 to 100, LAMA T-REx, measured",
        footnote=f"{ranking} ranking",
        picture=choice.picture,
    )
    st.caption(
        "Mean over the 41 relations. Hover for the 95 % interval. For BERT the paper finds the "
        "object among the ten best in around 60 % of facts, and among the hundred best in 80 % "
        "(section 5, Figure 2).",
        help=f"Interval: {METHOD_OF_MEANS}.",
    )
    _draw_relations(choice, names)
    made = {
        "ranking": ranking,
        "candidates": measured.candidates,
        "data": measured.data,
        "command": measured.command,
        "commit": measured.commit,
        "weights": {model.model: model.weights for model in measured.models},
    }
    draw_export(
        "lama-trex",
        lambda: pd.concat(
            [measured_table(by, ranking).assign(by=by) for by in ("source", "type", "relation")],
            ignore_index=True,
        ),
        made,
        PYTHON.format(ranking=ranking),
    )


def _said(measured: MeasuredLama, choice: RunChoice) -> str:
    """What the numbers are of, and how far they compare."""
    of_paper = next(
        row.labels[3]
        for row in published_table("petroni2019", "table2").rows
        if row.labels[0] == SOURCE and row.labels[2] is None
    )
    counted = " and ".join(
        f"{model.n:,} ({plain(url_state.title_of(model.model))}, {model.precision}, "
        f"{'sees the left side' if model.context == 'left' else 'sees both sides'})"
        for model in measured.models
    )
    ranked = (
        "**filtered** ranking, as the paper's text has it (its released code ranks raw: see More "
        "options)"
        if choice.ranking == "filtered"
        else "**raw** ranking, as the paper's released code has it"
    )
    return (
        f"This project's own results on all 41 relations, {measured.n_facts:,} of the paper's "
        f"{of_paper:,} facts. Each model counts the facts whose object is one of its tokens: "
        f"{counted}. So the two are not scored on quite the same facts, nor on the paper's. "
        f"Ranked: {plain(measured.candidates)}, those that the model has; {ranked}. Of the choices "
        "above, only the ranking counts here.\n\n"
        f"Made with `{measured.command}`, at commit {measured.commit}. Only figures come with the "
        "project, so no number leads to its facts: the page **Data and runs** fetches LAMA."
    )


def _draw_totals(choice: RunChoice, names: Sequence[str], published: Sequence[str]) -> None:
    """Table 2's rows of T-REx: ours, and the paper's."""
    both = pd.concat([measured_table(by, choice.ranking) for by in ("type", "source")])
    theirs = published_scores()
    theirs = theirs[theirs["source"] == SOURCE]
    grid = []
    for kind in (*dict.fromkeys(both["type"].dropna()), None):
        part = both[both["type"].isna() if kind is None else both["type"] == kind]
        row: dict[str, Any] = {"relations": kind or "total", "#rel": part["n_relations"].iloc[0]}
        for line in part.to_dict("records"):
            row |= _cells(str(line["model"]), {str(key): line[key] for key in line}, short=True)
        values = theirs[theirs["type"].isna() if kind is None else theirs["type"] == kind]
        known = dict(zip(values["model"], values["p_at_1"], strict=True))
        grid.append(row | {f"{one} *": _percent(known.get(one)) for one in published})
    number = st.column_config.NumberColumn
    config: dict[str, Any] = {"#rel": number(help="Relations, of which the value is the mean.")}
    config |= _columns(names, METHOD_OF_MEANS)
    config |= {
        f"{one} *": number(
            f"{one} (published)", format="%.1f", help="Petroni et al. 2019, Table 2, 34,039 facts"
        )
        for one in published
    }
    st.dataframe(pd.DataFrame(grid), hide_index=True, column_config=config, placeholder="–")


def _draw_relations(choice: RunChoice, names: Sequence[str]) -> None:
    st.markdown("### LAMA T-REx by relation")
    table = measured_table("relation", choice.ranking)
    grid = []
    for relation, part in table.groupby("relation", sort=False):
        first = part.iloc[0]
        row: dict[str, Any] = {"relation": f"{relation} {first['label']}", "type": first["type"]}
        for line in part.to_dict("records"):
            row |= _cells(str(line["model"]), {str(key): line[key] for key in line}, short=False)
        grid.append(row)
    config = {"relation": st.column_config.TextColumn(pinned=True)} | _columns(names, METHOD)
    st.dataframe(pd.DataFrame(grid), hide_index=True, column_config=config, height=460)


def _percent(value: float | None) -> float | None:
    return None if value is None else rounding.percentage(value)


def _cells(name: str, line: dict[str, Any], *, short: bool) -> dict[str, Any]:
    """A model's figures in a row. short: without those that only a relation's row shows."""
    cells = {
        name: rounding.percentage(line["p_at_k"]),
        f"{name} interval": f"{rounding.percent(line['low'])}–{rounding.percent(line['high'])}",
        f"{name} 10": rounding.percentage(line["p_at_10"]),
        f"{name} n": line["n"],
    }
    more = {
        f"{name} mrr": rounding.rounded(line["mrr"], 3),
        f"{name} rank": rounding.rounded(line["mean_rank"], 1),
    }
    return cells if short else cells | more


def _columns(names: Sequence[str], method: str) -> dict[str, Any]:
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    config: dict[str, Any] = {}
    for name in names:
        title = url_state.title_of(name)
        config |= {
            name: number(f"{title} · P@1", format="%.1f", help="In percent."),
            f"{name} interval": text("95 %", help=f"95 % interval of P@1. {method}.", width=84),
            f"{name} 10": number("P@10", format="%.1f", help=f"Of {title}, in percent."),
            f"{name} n": number("facts", format="localized", help=f"That {title} counts."),
            f"{name} mrr": number("MRR", format="%.3f", help=f"Of {title}."),
            f"{name} rank": number("mean rank", format="%.1f", help=f"Of {title}."),
        }
    return config
