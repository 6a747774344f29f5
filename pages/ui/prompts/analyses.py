"""Analyses of prompts: divergence by edit distance."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.glossary import explain
from lama_core.probes.prompts.analyses import (
    AnalyseRequest,
    Divergence,
    PromptPair,
    measure_divergence,
    prompt_pairs,
)
from lama_core.probes.prompts.published_scores import PAPER
from lama_core.published import published_table
from lama_core.rounding import fixed
from lama_core.views.figure import Axis, Figure, said
from pages.ui.prompts.study_choice import PromptsChoice, load_relations
from pages.ui.shared.export import draw_export
from pages.ui.shared.figures import draw_figure
from pages.ui.shared.messages import counted
from pages.ui.shared.url_state import title_of


def draw_analyses(choice: PromptsChoice) -> None:
    """Draw divergence by edit distance, over all relations."""
    studies = load_relations(choice.info)
    pairs = [pair for study in studies for pair in prompt_pairs(study, choice.combination)]
    found = measure_divergence(pairs)
    st.markdown(
        f"**Do prompts with a larger edit distance get different facts right?** {_answer(found)}",
        help=f"{explain('Divergence')} {explain('Edit distance')}",
    )
    n_relations = counted(len(studies), "relation")
    figure = divergence_boxes(
        found,
        pairs,
        title=f"Divergence by edit distance of two prompts (scaled to 0–1), {n_relations}",
        caption=f"{title_of(choice.info.model)} on {choice.info.dataset}, "
        f"{counted(found.n_pairs, 'pair')} of prompts of {n_relations}, test facts, "
        f"{choice.study.ranking} ranking",
    )
    if len(figure.frame):
        draw_figure(figure, {"": choice.colour}, "divergence chart")
    st.caption(
        "A pair is two prompts of the same relation. Its divergence is the share of the relation's "
        "test facts that exactly one of the two gets right. Box: lower to upper quartile of the "
        "pairs; line: median; diamond: mean; whiskers: lowest to highest pair."
    )
    draw_export(
        "divergence",
        lambda: pd.DataFrame(
            [(p.relation, p.first, p.second, p.distance, p.divergence) for p in pairs],
            columns=["relation", "first", "second", "distance", "divergence"],
        ),
        choice.made(),
        AnalyseRequest(choice.info.id, choice.combination),
    )


def divergence_boxes(
    found: Divergence, pairs: Sequence[PromptPair], *, title: str, caption: str
) -> Figure:
    """Return a box of the pairs' divergence in percent for each bin of edit distances."""
    rows = []
    for number, bin_ in enumerate(found.bins):
        values = [100 * pair.divergence for pair in pairs if pair.bin_number == number]
        if not values:
            continue
        low, q1, median, q3, high = np.percentile(values, (0, 25, 50, 75, 100)).tolist()
        name = f"{bin_.low:.1f} – {bin_.high:.1f}, {counted(len(values), 'pair')}"
        lines = said(
            f"edit distance {name}",
            f"mean {fixed(float(np.mean(values)), 1)} %, median {fixed(median, 1)} %",
            f"half between {fixed(q1, 1)} and {fixed(q3, 1)} %",
            f"all between {fixed(low, 1)} and {fixed(high, 1)} %",
        )
        rows.append((name, "", float(np.mean(values)), low, q1, median, q3, high, lines))
    return Figure(
        shape="boxes",
        frame=pd.DataFrame(
            rows, columns=["bin", "run", "mean", "low", "q1", "median", "q3", "high", "said"]
        ),
        by=Axis(column="bin", title="edit distance"),
        value=Axis(
            column="mean",
            title="divergence: % of test facts that only one gets right",
            from_zero=True,
        ),
        names={"": ""},
        low="low",
        high="high",
        title=title,
        caption=caption,
    )


def _answer(found: Divergence) -> str:
    """Return the correlation of divergence and edit distance, with the paper's."""
    if found.n_pairs < 30:  # with fewer, a correlation says nothing
        return f"Too few prompts to tell: {counted(found.n_pairs, 'pair')}"
    correlation = "none" if math.isnan(found.correlation) else fixed(found.correlation, 2)
    of_paper = published_table(PAPER, "figure3").number("Pearson") or math.nan
    return (
        f"Pearson's correlation {correlation} ({fixed(of_paper, 2)} in the paper, on other models "
        "and facts)"
    )
