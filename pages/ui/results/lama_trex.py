"""This project's results on LAMA's T-REx next to the published ones; LAMA needn't be installed."""

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
from lama_core.published import published_table
from lama_core.views.colours import model_colours
from lama_core.views.conclusions import listed
from lama_core.views.curves import lines_figure
from pages.ui.results.draw_view import draw_figure
from pages.ui.results.overview import published_cells
from pages.ui.shared import url_state
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import draw_headline, plain
from pages.ui.shared.run_choice import RunChoice
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import BOUND

COMPARED = "BERT-large"  # the published model that the conclusion names
DEFAULT_PUBLISHED = ("Freq", "BERT-base", "BERT-large")
PYTHON = (
    "from lama_core.papers.own_results import measured_curves, measured_table\n\n"
    'measured_table("relation", "{ranking}")\nmeasured_table("type", "{ranking}")\n'
    'measured_table("source", "{ranking}")\nmeasured_curves("{ranking}")\n'
)


def draw_measured(choice: RunChoice) -> None:
    """Draw totals, P@k curve and scores by relation, in the chosen ranking."""
    measured, ranking = load_measured(), choice.ranking
    shown = st.multiselect(
        "Compare with published",
        published_table("petroni2019", "table2").columns,
        default=list(DEFAULT_PUBLISHED),
        key="published_lama",
        bind=BOUND,
        placeholder="None",
        help="P@1 in percent, from Table 2 of Petroni et al. 2019.",
        select_all=False,
    )
    names = [model.model for model in measured.models]
    draw_headline(_conclusion(choice))
    _draw_totals(choice, names, shown)
    st.caption(_description(measured, choice))
    st.markdown("### Mean P@k by k, T-REx")
    curves = measured_curves(ranking).assign(run=lambda table: table["model"], chance=float("nan"))
    figure = lines_figure(
        curves,
        {name: url_state.title_of(name) for name in names},
        counts="facts",
        title="Mean P@k from 1 to 100, LAMA T-REx, measured",
        caption=f"{ranking} ranking",
    )
    draw_figure(choice, figure, "measured curve chart", model_colours(names))
    st.caption(
        "Mean over the 41 relations. Hover for the 95 % interval. The paper reports P@10 of around "
        "60 % and P@100 of around 80 % for BERT (section 5, Figure 2).",
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


def _conclusion(choice: RunChoice) -> str:
    """Return P@1 of this project's models on T-REx, and of the published BERT-large."""
    ours = measured_table("source", choice.ranking).set_index("model")["p_at_k"]
    each = listed({str(name): url_state.title_of(str(name)) for name in ours.index}, ours)
    (paper,) = published_cells(SOURCE, None, [COMPARED]).values()
    return (
        f"{each} of first answers are right on LAMA's T-REx; published: {paper:.1f} % ({COMPARED})"
    )


def _description(measured: MeasuredLama, choice: RunChoice) -> str:
    """Describe the facts, models and ranking of the results, and what differs from the paper."""
    n_paper = next(
        row.labels[3]
        for row in published_table("petroni2019", "table2").rows
        if row.labels[0] == SOURCE and row.labels[2] is None
    )
    counted = " and ".join(
        f"{model.n:,} ({plain(url_state.title_of(model.model))}, "
        f"{plain(model.note) + ', ' if model.note else ''}{model.precision}, "
        f"{'left context' if model.context == 'left' else 'whole sentence'})"
        for model in measured.models
    )
    ranked = (
        "**filtered** ranking, as in the paper's text (its released code uses the raw ranking: see "
        "More options)"
        if choice.ranking == "filtered"
        else "**raw** ranking, as in the paper's released code"
    )
    return (
        f"This project's results on all 41 relations, {measured.n_facts:,} of the paper's "
        f"{n_paper:,} facts. Each model is scored on the facts whose object is "
        f"one of its tokens: {counted}. So the facts differ slightly between the models, and from "
        f"the paper's. Candidates: {plain(measured.candidates)}, as far as they are in the model's "
        f"vocabulary; {ranked}. Of the options above, only the ranking applies here.\n\n"
        f"Command: `{measured.command}`, commit {measured.commit}. The project includes only these "
        "numbers, not their facts. To see facts, download LAMA on the page **Data and runs**."
    )


def _draw_totals(choice: RunChoice, names: Sequence[str], published: Sequence[str]) -> None:
    """Draw the T-REx rows of Table 2: this project's results and the published ones."""
    both = pd.concat([measured_table(by, choice.ranking) for by in ("type", "source")])
    grid = []
    for kind in (*dict.fromkeys(both["type"].dropna()), None):
        part = both[both["type"].isna() if kind is None else both["type"] == kind]
        row: dict[str, Any] = {"relations": kind or "total", "#rel": part["n_relations"].iloc[0]}
        for line in part.to_dict("records"):
            row |= _cells(str(line["model"]), {str(key): line[key] for key in line}, short=True)
        grid.append(row | published_cells(SOURCE, kind, published))
    number = st.column_config.NumberColumn
    config: dict[str, Any] = {"#rel": number(help="Number of relations in the mean.")}
    config |= _columns(names, METHOD_OF_MEANS)
    config |= {
        f"{name} *": number(
            f"{name} (published)", format="%.1f", help="Petroni et al. 2019, Table 2, 34,039 facts."
        )
        for name in published
    }
    draw_table(pd.DataFrame(grid), column_config=config, placeholder="–")


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
    draw_table(pd.DataFrame(grid), column_config=config, height=460)


def _cells(name: str, line: dict[str, Any], *, short: bool) -> dict[str, Any]:
    """Return the cells of a model's measures. short: without MRR and mean rank."""
    cells = {
        name: rounding.percentage(line["p_at_k"]),
        f"{name} interval": f"{rounding.percent(line['low'])}–{rounding.percent(line['high'])}",
        f"{name} 10": rounding.percentage(line["p_at_10"]),
        f"{name} n": line["n"],
    }
    if not short:
        cells[f"{name} mrr"] = rounding.rounded(line["mrr"], 3)
        cells[f"{name} rank"] = rounding.rounded(line["mean_rank"], 1)
    return cells


def _columns(names: Sequence[str], method: str) -> dict[str, Any]:
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    config: dict[str, Any] = {}
    for name in names:
        title = url_state.title_of(name)
        config |= {
            name: number(f"{title.partition(' (')[0]} · P@1", format="%.1f", help="In percent."),
            f"{name} interval": text("95 %", help=f"95 % interval of P@1: {method}.", width=84),
            f"{name} 10": number("P@10", format="%.1f", help=f"P@10 of {title}, in percent."),
            f"{name} n": number(
                "facts", format="localized", help=f"Facts that {title} is scored on."
            ),
            f"{name} mrr": number("MRR", format="%.3f", help=f"Mean reciprocal rank of {title}."),
            f"{name} rank": number("mean rank", format="%.1f", help=f"Mean rank of {title}."),
        }
    return config
