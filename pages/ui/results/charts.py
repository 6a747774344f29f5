"""Charts of Results beyond P@1: curves, ranks, calibration, margins, correlations and types."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from lama_core.datasets.library.installed import STARTER
from lama_core.glossary import explain
from lama_core.metrics import correlation_sources
from lama_core.metrics.correlates import LABELS
from lama_core.metrics.intervals import METHOD_OF_MEANS
from lama_core.models.protocols import KINDS
from lama_core.rounding import percent
from lama_core.runs.find import RunListing
from lama_core.service import queries
from lama_core.views.calibration import calibration, errors, normalisation
from lama_core.views.correlations import NAMES, correlations, published_triangle
from lama_core.views.curves import curves
from lama_core.views.margins import margins
from lama_core.views.quartiles import BOX, quartiles, what_is_counted
from lama_core.views.ranks import ranks
from lama_core.views.relation_types import relation_types
from pages.ui.results.draw_view import draw_chart, draw_figure, draw_view_export, open_line
from pages.ui.shared import cache, links
from pages.ui.shared.messages import counted, draw_headline, plain
from pages.ui.shared.run_choice import RunChoice, draw_question
from pages.ui.shared.url_state import BOUND, pick

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Properties of a fact whose names don't say what they are.
MEANINGS = {name: LABELS[name] for name in ("LPFP", "SOCS", "SWP")} | {
    "P@1": "1 if the first answer is right, else 0",
}
TEN_SENTENCES = "ten-sentences"


def draw_curves(choice: RunChoice) -> None:
    """Draw mean P@k for k from 1 to 100 (Petroni et al. 2019, Figure 2)."""
    shown = choice.view(curves)
    draw_chart(
        choice,
        shown,
        "curve chart",
        "P@k: share of facts whose right answer is among the first k, averaged over relations, as "
        "in Figure 2 of Petroni et al. 2019. Bands: 95 % intervals. "
        + "Dotted: P@k of a random order of the answers. " * shown.guessable
        + "Click a point to see its facts.",
        help=f"Interval: {METHOD_OF_MEANS}.",
        made={"intervals": f"95 %, {METHOD_OF_MEANS}"},
        guide=choice.k if choice.k > 1 else None,
    )


def draw_histogram(choice: RunChoice) -> None:
    """Draw the ranks of the right answers as a histogram."""
    draw_chart(
        choice,
        choice.view(ranks),
        "rank chart",
        f"The rank of the right answer among {choice.ranked_among}. Shares are averaged over "
        "relations. Click a bar to see its facts.",
    )


def draw_ranks(choice: RunChoice, listing: RunListing) -> None:
    """Draw the ranks of the right answers as a histogram and as box plots."""
    draw_histogram(choice)
    st.markdown("### Spread of the ranks by model")
    boxes, caption = choice.view(quartiles), f"{BOX} Click a diamond to see the facts."
    draw_chart(choice, boxes, "quartiles chart", caption, caption=what_is_counted(boxes))
    asked = [(run.model, choice.data, TEN_SENTENCES) for run in choice.runs]
    spread = {run.model: run for run in listing if (run.model, run.dataset, run.prompts) in asked}
    if not spread:
        st.caption(
            "**The same fact asked in ten sentences (Figure 4 of Petroni et al. 2019)** needs "
            + plain(f"a run of these models on {choice.data} with the prompts {TEN_SENTENCES}.")
        )
        return
    st.markdown("### The same fact asked in ten sentences (Figure 4 of Petroni et al. 2019)")
    of_spread = replace(choice.with_runs(tuple(spread.values())), prompts=TEN_SENTENCES, exact=())
    n_relations = len({one.name for run in of_spread.runs for one in run.relations if one.n})
    boxes = of_spread.view(quartiles, mean_ranks=True, own=True, relations=())
    draw_chart(
        of_spread,
        boxes,
        "spread chart",
        "Each fact's rank is the mean over ten sentences that state the fact, for at most 100 "
        "scored facts per relation, chosen at random. The boxes show the spread over facts, not "
        f"over the ten sentences of one fact. Not comparable with the ranks above: "
        f"{counted(n_relations, 'relation')} are asked, and the worst sentences weigh most in a "
        f"mean. {BOX} Click a diamond to see the facts."
        + " **The starter's sentences are templates**, the same for all facts of a relation, so "
        "the spread shows sensitivity to wording. The paper uses ten natural mentions of each fact."
        * (choice.data == STARTER),
        name="spread",
        caption=what_is_counted(boxes),
    )


def draw_calibration(choice: RunChoice) -> None:
    """Draw a reliability diagram and the expected calibration error of each run."""
    shown = choice.view(calibration)
    draw_headline(shown.conclusion)
    left, right = st.columns([3, 1], gap="large")
    with left:
        open_line(choice, shown, draw_figure(choice, shown.figure, "calibration chart"))
    with right:
        st.markdown("**Calibration error (ECE)**", help=explain("Expected calibration error"))
        for run, ece in errors(shown).items():
            st.metric(plain(shown.names[run]), f"{percent(ece)} %" if ece == ece else "–")
    st.caption(
        "Ten bins of facts by the probability of the first answer "
        f"({normalisation(choice.runs)}). Below the dashed line a model is overconfident. Larger "
        "points have more facts; click one to see them. Whiskers: 95 % intervals. "
        + plain(" ".join(shown.notes))
    )
    draw_view_export(choice, shown)


def draw_margins(choice: RunChoice) -> None:
    """Draw a histogram of the margins of right answers; only whole-answer runs have margins."""
    shown = choice.view(margins)
    draw_chart(
        choice,
        shown,
        "margin chart",
        "Margin: log-probability of the right answer minus that of the best wrong answer. At 1 the "
        "right answer is 2.7 times as likely, at −1 the wrong one. "
        "Click a bar to see its facts. " + plain(" ".join(shown.notes)),
    )


def draw_correlates(choice: RunChoice) -> None:
    """Draw the correlations of one run next to the paper's (Petroni et al. 2019, Figure 3)."""
    draw_question(choice)
    which, of, vectors_field = st.columns([2, 1, 3], vertical_alignment="bottom")
    titles = dict(zip(choice.names, choice.titles, strict=True))
    links.replace_values("of", titles)
    name = which.selectbox(
        "Model", choice.names, key="of", bind=BOUND, format_func=titles.__getitem__
    )
    run = choice.runs[choice.names.index(name)]
    with_vectors = run.model_kind in KINDS and vectors_field.toggle(
        "Include similar vectors: this loads the model",
        key="vectors",
        bind=BOUND,
        help="Cosine similarity of subject and object (SOCS). Here it uses the model's input "
        "embeddings, averaged over a name's subword tokens; the paper uses spaCy's vectors.",
    )
    source = of.selectbox(
        "Facts of",
        correlation_sources(run, choice.relations),
        key="figure_source",
        bind=BOUND,
        help="The paper's figure covers T-REx only.",
    )
    with st.spinner("Correlating", show_time=True):
        shown = choice.view(
            correlations,
            of=run.id,
            source=source or "",
            vectors=with_vectors,
            vectors_of=_vectors_of,
        )
    draw_headline(shown.conclusion)
    ours, paper = st.columns(2, gap="large")
    with ours:
        open_line(choice, shown, draw_figure(choice, shown.figure, "correlation chart"))
    with paper:
        draw_figure(choice, published_triangle(), "published correlations")
    st.caption(
        "A cell has Pearson's correlation, from -1 to 1, of two properties of a fact, those of its "
        "row and its column. "
        + "; ".join(f"**{NAMES[short]}**: {MEANINGS[short]}" for short in MEANINGS)
        + ".",
        help="In the paper: "
        + "; ".join(f"{NAMES[short]} {short}" for short in LABELS if short != "P@1")
        + ".",
    )
    draw_view_export(choice, shown, made={"of": run.id})


def _vectors_of(model: str) -> "Callable[[Sequence[str]], NDArray[np.float32]] | None":
    """A function that returns a model's vectors of words from the scoring process."""
    if not cache.uncached(queries.has_word_vectors, model):
        return None
    return lambda words: cache.uncached(queries.word_vectors, model, words)


def draw_types(choice: RunChoice) -> None:
    """Draw P@k by type of relation (Petroni et al. 2019, section 5)."""
    draw_question(choice)
    shown = choice.view(relation_types)
    if len(shown.found.sources) > 1:
        first = str(shown.frame["source"].iloc[0])
        source = pick("Source", shown.found.sources, key="type_source", first=first)
        shown = choice.view(relation_types, source=source)
    draw_chart(
        choice,
        shown,
        "type chart",
        "Bars: the unweighted mean over relations, with its 95 % interval over the facts of these "
        "relations; points: relations. Click a bar or a point to see its facts. "
        + f"Diamonds: mean P@{choice.k} of a random order of the answers. "
        * shown.guessable
        + "**1-1**: one object per subject and one subject per object (capitals). **N-1**: many "
        "subjects share an object (birthplaces). **N-M**: many of both (shared borders).",
        help=f"Interval: {METHOD_OF_MEANS}.",
        made={"intervals": f"95 %, {METHOD_OF_MEANS}"},
    )
