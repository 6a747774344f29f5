"""This project's results on LAMA's T-REx next to the published ones; LAMA needn't be installed."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from lama_core import rounding
from lama_core.glossary import explain
from lama_core.metrics.intervals import METHOD, METHOD_OF_MEANS
from lama_core.papers.own_results import (
    SOURCE,
    load_measured,
    measured_curves,
    measured_table,
)
from lama_core.published import published_table
from lama_core.scoring.ranking import RANKINGS, Ranking
from lama_core.views.colours import model_colours
from lama_core.views.conclusions import listed
from lama_core.views.curves import lines_figure
from pages.ui.results.overview import published_cells
from pages.ui.shared import figures, links, screens, url_state
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import draw_headline, plain
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import BOUND, pick

COMPARED = "BERT-large"  # the published model that the conclusion names


def draw_measured() -> None:
    """Draw totals, P@k curve and scores by relation, in the chosen ranking."""
    links.keep_params()  # for the way back
    links.draw_link("Overview", "arrow_back", screens.RESULTS, links.params_without(["large"]))
    st.subheader("How well do two models do on LAMA's own T-REx facts?", anchor=False)
    measured = load_measured()
    left, right = st.columns([1, 3], vertical_alignment="bottom")
    ranking: Ranking = pick(
        "Ranking", RANKINGS, key="ranking", place=left, help=explain("Filtered and raw ranking")
    )
    shown = right.multiselect(
        "Compare with published",
        published_table("petroni2019", "table2").columns,
        default=["Freq", "BERT-base", "BERT-large"],
        key="published_lama",
        bind=BOUND,
        placeholder="None",
        help="P@1 in percent, from Table 2 of Petroni et al. 2019. Freq: words "
        "ranked by how often they are objects of the relation.",
        select_all=False,
    )
    titles = {
        one["model"]: url_state.title_of(one["model"])
        + (f", {one['note'].partition(',')[0]}" if "note" in one else "")
        for one in measured["models"]
    }
    (published,) = published_cells(SOURCE, None, [COMPARED]).values()
    first, more = _description(measured, ranking)
    p_at_1 = listed(titles, measured_table("source", ranking).set_index("model")["p_at_k"])
    draw_headline(
        f"{p_at_1} of first answers are right on LAMA's T-REx; published: {published:.1f} % "
        f"({COMPARED}); {first}"
    )
    _draw_totals(ranking, titles, shown)
    with st.expander("How these runs were made", icon=":material/info:"):
        st.caption(more)
    links.draw_link("To see facts, download LAMA", "database", screens.DATA, {})
    figure = lines_figure(
        measured_curves(ranking).assign(run=lambda table: table["model"], chance=float("nan")),
        titles,
        counts="facts",
        title="Mean P@k from 1 to 100, LAMA T-REx",
        caption=f"{ranking} ranking",
    )
    figures.draw_figure(figure, model_colours(list(titles)), "measured curve chart")
    st.caption(
        "Mean over the 41 relations. Whiskers: 95 % intervals. The paper reports P@10 of around "
        "60 % and P@100 of around 80 % for BERT (section 5, Figure 2).",
        help=f"Interval: {METHOD_OF_MEANS}.",
    )
    st.markdown("### By relation")
    grid = []
    for relation, part in measured_table("relation", ranking).groupby("relation", sort=False):
        line = part.iloc[0]
        head = {"relation": f"{relation} {line['label']}", "type": line["type"]}
        grid.append(head | _cells(part, with_n=True))
    config = {"relation": st.column_config.TextColumn(pinned=True)} | _columns(titles, METHOD)
    draw_table(pd.DataFrame(grid), column_config=config, height=460)
    draw_export(
        "lama-trex",
        lambda: pd.concat(
            [measured_table(by, ranking).assign(by=by) for by in ("source", "type", "relation")],
            ignore_index=True,
        ),
        {
            "ranking": ranking,
            **{name: measured[name] for name in ("candidates", "data", "command", "commit")},
            "weights": {model["model"]: model["weights"] for model in measured["models"]},
        },
        "from lama_core.papers.own_results import measured_curves, measured_table\n\n"
        f'measured_table("relation", "{ranking}")\nmeasured_table("type", "{ranking}")\n'
        f'measured_table("source", "{ranking}")\nmeasured_curves("{ranking}")\n',
    )


def _description(measured: Mapping[str, Any], ranking: Ranking) -> tuple[str, str]:
    """Describe the facts; and the models, the ranking, and what differs from the paper."""
    n_paper = next(
        row.labels[3]
        for row in published_table("petroni2019", "table2").rows
        if row.labels[0] == SOURCE and row.labels[2] is None
    )
    n_facts = measured_table("source", ranking).set_index("model")["n"]
    counted = " and ".join(
        f"{n_facts[model['model']]:,} ({plain(url_state.title_of(model['model']))}, "
        f"{plain(model['note']) + ', ' if 'note' in model else ''}{model['precision']}, "
        f"{'left context' if model['context'] == 'left' else 'whole sentence'})"
        for model in measured["models"]
    )
    scored = " and ".join(f"{n:,} ({url_state.title_of(str(name))})" for name, n in n_facts.items())
    ranked = {
        "filtered": "**filtered** ranking, as in the paper's text (its released code uses the raw "
        "ranking)",
        "raw": "**raw** ranking, as in the paper's released code",
    }
    return (
        f"means over 41 relations, {scored} of the paper's {n_paper:,} facts",
        "Each model is scored on the facts whose object is "
        f"one of its tokens: {counted}. So the facts differ between the models, and from the "
        f"paper's {n_paper:,}, of which {measured['n_facts']:,} are in the data used here. "
        f"Candidates: {plain(measured['candidates'])}, as far as they are in the model's "
        f"vocabulary; {ranked[ranking]}.\n\n"
        f"Command: `{measured['command']}`, commit {measured['commit']}. The project includes only "
        "these numbers, not their facts.",
    )


def _draw_totals(ranking: Ranking, titles: Mapping[str, str], published: Sequence[str]) -> None:
    """Draw the T-REx rows of Table 2: this project's results and the published ones."""
    both = pd.concat([measured_table(by, ranking) for by in ("type", "source")])
    grid = [
        {"type": kind or "all", "relations": part["n_relations"].iloc[0]}
        | _cells(part)
        | published_cells(SOURCE, kind or None, published)
        for kind, part in both.groupby(both["type"].fillna(""), sort=False)
    ]
    number = st.column_config.NumberColumn
    config: dict[str, Any] = {"relations": number(help="Number of relations in the mean.")}
    config |= _columns(titles, METHOD_OF_MEANS) | {
        f"{name} *": number(
            f"{name} (published)", format="%.1f", help="Petroni et al. 2019, Table 2, 34,039 facts."
        )
        for name in published
    }
    draw_table(pd.DataFrame(grid), column_config=config, placeholder="–")


def _cells(lines: pd.DataFrame, *, with_n: bool = False) -> dict[str, Any]:
    """Return the cells of a row: each model's P@1 with its interval and, if wanted, n."""
    cells: dict[str, Any] = {}
    for line in lines.to_dict("records"):
        ends, name = (rounding.percent(line[end]) for end in ("low", "high")), line["model"]
        cells |= {name: rounding.percentage(line["p_at_k"]), f"{name} interval": "–".join(ends)}
        cells |= {f"{name} n": line["n"]} if with_n else {}
    return cells


def _columns(titles: Mapping[str, str], method: str) -> dict[str, Any]:
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    config: dict[str, Any] = {}
    for name, title in titles.items():
        config |= {
            name: number(title, format="%.1f", help="P@1 in percent."),
            f"{name} interval": text("95 % interval", help=f"Of P@1: {method}.", width=110),
            f"{name} n": number(
                "facts", format="localized", help=f"Facts that {title} is scored on."
            ),
        }
    return config
