"""Charts of Results beyond P@1: P@k curves, ranks, calibration, margins and correlations."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from lama_core import metrics
from lama_core.datasets.library.installed import STARTER
from lama_core.glossary import explain
from lama_core.metrics.correlates import LABELS
from lama_core.metrics.intervals import METHOD_OF_MEANS
from lama_core.models.protocols import KINDS
from lama_core.published import published_table
from lama_core.rounding import percent
from lama_core.runs.find import RunListing
from lama_core.runs.info import Run
from lama_core.service import queries
from lama_core.views.curves import curves
from pages.ui.results.draw_view import draw_figure, draw_view_export, open_behind, open_facts
from pages.ui.shared import cache, charts
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import plain, show_note
from pages.ui.shared.run_choice import RunChoice, run_names
from pages.ui.shared.url_state import BOUND

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TEN_SENTENCES = "ten-sentences"
PATTERNS = (
    " **The starter's sentences are templates**, the same for all facts of a relation, so the "
    "spread shows sensitivity to wording. The paper uses ten natural mentions of each fact."
)
BOX = (
    "Box: lower to upper quartile (the middle half of the facts); line: median; whiskers: 5th to "
    "95th percentile; diamond: mean."
)


def _options(choice: RunChoice) -> dict[str, Any]:
    """Return the options that most functions of `metrics` take."""
    return {"ranking": choice.ranking, "relations": choice.relations or None}


def python_of(choice: RunChoice, call: str) -> str:
    """Return Python code that computes the same numbers from the runs."""
    relations = list(choice.relations) or None
    return (
        f"from lama_core import metrics\n{choice.lines_of_runs()}"
        f'options = {{"ranking": "{choice.ranking}", "relations": {relations}}}\n{call}'
    )


def draw_curves(choice: RunChoice) -> None:
    """Draw mean P@k for k from 1 to 100 (Petroni et al. 2019, Figure 2)."""
    shown = choice.view(curves)
    figure = replace(shown.figure, guide=choice.k if choice.k > 1 else None)
    mark = draw_figure(choice, figure, "curve chart")
    st.caption(
        "P@k: share of facts whose right answer is among the first k, averaged over relations, as "
        "in Figure 2 of Petroni et al. 2019. Hover for the 95 % interval. "
        + "Dotted: P@k of a random order of the answers. " * choice.guessable
        + "Click a point to see its facts.",
        help=f"Interval: {METHOD_OF_MEANS}.",
    )
    if mark is not None:
        open_behind(choice, shown.facts(mark))
    draw_view_export(choice, shown, made={"intervals": f"95 %, {METHOD_OF_MEANS}"})


def draw_ranks(choice: RunChoice, listing: RunListing) -> None:
    """Draw the ranks of the right answers as a histogram and as box plots."""
    options = _options(choice)
    table = choice.table_of("histogram", lambda runs: metrics.rank_histogram(runs, **options))
    points = choice.show(
        charts.rank_histogram(table, choice.inks, choice.counts),
        "rank chart",
        f"Rank of the right answer, {choice.data}",
    )
    st.caption(
        f"The rank of the right answer among {choice.ranked_among}. Click a bar to see its facts."
    )
    for point in points:
        title, low, high = point["customdata"][:3]
        open_facts(choice, title, rank_min=int(low), rank_max=int(high))
    boxes = choice.table_of("quartiles", lambda runs: metrics.rank_quartiles(runs, **options))
    st.markdown("### Spread of the ranks by model")
    _draw_boxes(
        choice,
        boxes,
        "box chart",
        axis="rank",
        title=f"Ranks by model, {choice.data}",
        caption=f"{BOX} Click a diamond to see the facts.",
    )
    lines = python_of(
        choice, "metrics.rank_histogram(runs, **options)\nmetrics.rank_quartiles(runs, **options)"
    )
    draw_export("ranks", lambda: table, choice.made(), lines)
    _draw_spread(choice, listing)


def _draw_spread(choice: RunChoice, listing: RunListing) -> None:
    """Draw the mean rank over ten sentences per fact (Petroni et al. 2019, Figure 4)."""
    models = {run.model for run in choice.runs}
    spread = {
        run.model: run
        for run in listing
        if (run.dataset, run.prompts) == (choice.data, TEN_SENTENCES) and run.model in models
    }
    if not spread:
        st.caption(
            "**The same fact asked in ten sentences (Figure 4)** needs "
            + plain(f"a run of these models on {choice.data} with the prompts {TEN_SENTENCES}.")
        )
        return
    st.markdown("### The same fact asked in ten sentences (Figure 4)")
    runs = tuple(spread.values())
    shown = replace(choice, runs=runs, names=run_names(runs))

    quantiles = {"low": 0.05, "q1": 0.25, "median": 0.5, "q3": 0.75, "high": 0.95}

    def distributions(runs: list[Run]) -> pd.DataFrame:
        lines = []
        for run in runs:
            ranks = metrics.average_ranks(run, ranking=choice.ranking)["mean_rank"]
            line = {"run": run.info.id, "n": len(ranks), "mean": float(ranks.mean())}
            lines.append(line | {name: ranks.quantile(q) for name, q in quantiles.items()})
        return pd.DataFrame(lines)

    table = replace(shown, relations=()).table_of("spread", distributions)
    _draw_boxes(
        replace(shown, prompts=TEN_SENTENCES, exact=()),
        table,
        "spread chart",
        axis="mean rank",
        title=f"Mean rank over ten sentences, {choice.data}",
        caption="Each fact's rank is the mean over ten sentences that state the fact, for at most "
        "100 scored facts per relation, chosen at random. The boxes show the spread over facts, "
        f"not over the ten sentences of one fact. {BOX} Click a diamond to see the facts."
        + PATTERNS
        * (choice.data == STARTER),
    )


def _draw_boxes(
    choice: RunChoice, boxes: pd.DataFrame, key: str, *, axis: str, title: str, caption: str
) -> None:
    """Draw one box per run; a click on its mean opens the run's facts."""
    points = choice.show(charts.rank_boxes(boxes, choice.inks, axis, choice.counts), key, title)
    st.caption(caption)
    for point in points:
        if "customdata" in point:
            open_facts(choice, point["customdata"][0])


def draw_calibration(choice: RunChoice) -> None:
    """Draw a reliability diagram and the expected calibration error of each run."""

    def bins(runs: list[Run]) -> pd.DataFrame:
        found = [metrics.calibrate(run, **_options(choice)) for run in runs]
        return pd.DataFrame(
            [{"run": one.run, "ece": one.ece, **asdict(bin)} for one in found for bin in one.bins]
        )

    table = choice.table_of("bins", bins)
    left, right = st.columns([3, 1], gap="large")
    with left:
        points = choice.show(
            charts.reliability(table, choice.inks, choice.counts),
            "calibration chart",
            f"Reliability diagram, {choice.data}",
        )
    with right:
        for title in choice.titles:
            ece = table.loc[table["name"] == title, "ece"].iloc[0]
            st.metric(
                f"ECE · {plain(title)}",
                f"{percent(ece)} %",
                help=explain("Expected calibration error"),
            )
    st.caption(
        f"Ten bins of facts by the probability of the first answer ({_normalisation(choice)}). "
        "Below the dashed line a model is overconfident. Larger points have more facts; click one "
        "to see them."
    )
    for point in points:
        if "customdata" in point:
            title, low, high = point["customdata"][:3]
            open_facts(choice, title, conf=[f"{low:.2f}", f"{high:.2f}"])
    lines = python_of(choice, "[metrics.calibrate(run, **options) for run in runs]")
    draw_export("calibration", lambda: table, choice.made(), lines)


def _normalisation(choice: RunChoice) -> str:
    """Describe how the probabilities of first answers are normalised."""
    words, answers = "over the model's whole vocabulary", "softmax over all answers' scores"
    texts = "product of the tokens of the generated text"
    if choice.all_generated:
        return texts
    if choice.generated:
        return f"{words} or {answers}; of generated answers: {texts}"
    if not choice.any_statements:
        return words
    return answers if choice.all_statements else f"{words}; in whole-answer runs {answers}"


def draw_margins(choice: RunChoice) -> None:
    """Draw a histogram of the margins of right answers; only whole-answer runs have margins."""
    options = _options(choice)
    table = choice.table_of("margins", lambda runs: metrics.margin_histogram(runs, **options))
    if table.empty:
        show_note("No margins: the relations of these facts have no wrong answers.")
        return
    points = choice.show(
        charts.margins(table, choice.inks, choice.counts),
        "margin chart",
        f"Facts by margin of the right answer, {choice.data}",
    )
    without = [
        title
        for title, run in zip(choice.titles, choice.runs, strict=True)
        if not run.ranks_statements
    ]
    st.caption(
        "Margin = score of the right answer minus the best score of a wrong answer, in nats; each "
        "run has its own answers and score. Above 0 the right answer is first in the filtered "
        "ranking. Click a bar to see its facts."
        + f" Runs without margins, because they rank words: {plain(', '.join(without))}."
        * bool(without)
    )
    for point in points:
        title, low, high, right = point["customdata"][:4]
        open_facts(
            choice,
            title,
            margin_min=_end(low),
            margin_max=_end(high),
            **{"right" if right else "wrong": [choice.name_of(title)]},
        )
    lines = python_of(choice, "metrics.margin_histogram(runs, **options)")
    draw_export("margins", lambda: table, choice.made(), lines)


def _end(value: float | None) -> str:
    return "" if value is None else f"{value:.9g}"


def draw_correlates(choice: RunChoice) -> None:
    """Draw the correlations of one run next to the paper's (Petroni et al. 2019, Figure 3)."""
    which, of, vectors_field = st.columns([2, 1, 3], vertical_alignment="bottom")
    name = which.selectbox("Model", choice.names, key="of", bind=BOUND)
    number = choice.names.index(name)
    run, title = choice.runs[number], choice.titles[number]
    is_model = run.model_kind in KINDS
    with_vectors = is_model & vectors_field.toggle(
        "Include SOCS: this loads the model",
        key="vectors",
        bind=BOUND,
        disabled=not is_model,
        help="SOCS: cosine similarity of subject and object. Here it uses the model's input "
        "embeddings, averaged over a name's subword tokens; the paper uses spaCy's vectors.",
    )
    sources = metrics.correlation_sources(run, choice.relations)
    source = of.selectbox(
        "Facts of",
        sources,
        key="figure_source",
        bind=BOUND,
        help="The paper's figure covers T-REx only.",
    )

    def vectors_of(words: Sequence[str]) -> "NDArray[np.float32]":
        return cache.uncached(queries.word_vectors, run.model, words)

    def matrix(runs: list[Run]) -> metrics.Correlations:
        has_vectors = with_vectors and cache.uncached(queries.has_word_vectors, run.model)
        vectors = vectors_of if has_vectors else None
        mentions = metrics.mentions_of(run.model) if is_model else metrics.wordfreq_mentions()
        return metrics.correlate(runs[0], mentions, vectors, source=source, **_options(choice))

    with st.spinner("Correlating", show_time=True):
        found = cache.table_of_runs(
            f"correlations {with_vectors} {source}",
            (run,),
            choice.ranking,
            choice.relations,
            matrix,
        )
    ours, paper = st.columns(2, gap="large")
    with ours:
        st.markdown(
            f"**{plain(title)}** · {found.n:,} facts of {plain(source)}, {choice.ranking} ranking"
        )
        points = charts.draw_chart(
            charts.correlation_matrix(found.matrix, found.n, choice.counts),
            "correlation chart",
            title=f"Correlations over facts, {title}",
            footnote=replace(choice, runs=(run,), names=(name,)).footnote(),
            picture=choice.picture,
        )
    with paper:
        st.markdown("**BERT-large on T-REx** · published, Petroni et al. 2019, Figure 3")
        table = published_table("petroni2019", "figure3").frame().set_index("measure")
        full = pd.DataFrame(index=list(LABELS), columns=list(LABELS), dtype=float)
        full.loc[table.index, table.columns] = table.astype(float)
        charts.draw_chart(
            charts.correlation_matrix(full, None),
            "published correlations",
            title="Correlations, BERT-large (published)",
            footnote="Petroni et al. 2019, Figure 3",
            picture=choice.picture,
        )
    st.caption(
        "Pearson's correlation over facts. "
        + ", ".join(f"**{short}**: {long}" for short, long in LABELS.items())
        + f". Source of the mention counts: {plain(found.mentions)}."
    )
    if points:
        open_facts(choice, title)
    call = (
        "from lama_core.models.cache import load_model\n"
        f'vectors = load_model("{run.model}").word_vectors\n'
        if with_vectors
        else "vectors = None\n"
    )
    mentions = "metrics.wordfreq_mentions()"
    if "wordfreq" not in found.mentions:
        call += (
            "from pathlib import Path\nfrom lama_core.metrics.correlates import corpus_mentions\n"
        )
        mentions = f'corpus_mentions(Path("assets/models/{run.model}"))'
    call += f"metrics.correlate(runs[{number}], {mentions}, vectors, source={source!r}, **options)"
    draw_export(
        "correlations",
        lambda: found.matrix.rename_axis("measure").reset_index(),
        choice.made() | {"mentions": found.mentions, "of": run.id, "source": source},
        python_of(choice, call),
    )
