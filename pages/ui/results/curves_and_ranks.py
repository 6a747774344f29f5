"""The Results page beyond P@1: curves, ranks, calibration, and what goes with a right answer."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from lama_core import metrics
from lama_core.datasets.library.installed import STARTER
from lama_core.glossary import explain
from lama_core.metrics.correlates import LABELS
from lama_core.metrics.intervals import METHOD_OF_MEANS
from lama_core.models.protocols import KINDS
from lama_core.papers.published import published_table
from lama_core.rounding import percent
from lama_core.runs.find import RunListing
from lama_core.runs.info import Run
from pages.ui.results.overview import made, to_facts, with_chance
from pages.ui.shared import cache, charts
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import plain, show_note
from pages.ui.shared.run_choice import RunChoice, run_names
from pages.ui.shared.url_state import BOUND

TEN_SENTENCES = "ten-sentences"
PATTERNS = (
    " **The starter's sentences are patterns**, the same for all facts of a relation: this is how "
    "sensitive a model is to wording. The paper's are ten natural mentions of each fact."
)
BOX = (
    "Box: from the lower to the upper quartile, the middle half of the facts; line: the median; "
    "whiskers: from the 5th to the 95th percentile, 90 % of the facts; diamond: the mean."
)


def python_of(choice: RunChoice, call: str) -> str:
    """The lines of Python that give the same figures from the runs."""
    relations = list(choice.relations) or None
    return (
        f"from lama_core import metrics\n{choice.lines_of_runs()}"
        f'options = {{"ranking": "{choice.ranking}", "relations": {relations}}}\n{call}'
    )


def draw_curves(choice: RunChoice) -> None:
    """Figure 2: mean P@k from 1 to 100."""
    relations = choice.relations or None
    table = choice.table_of(
        "curves",
        lambda runs: metrics.precision_curves(runs, ranking=choice.ranking, relations=relations),
    )
    points = choice.show(
        charts.precision_curves(with_chance(choice, table), choice.inks, choice.k, choice.counts),
        "curve chart",
        f"Mean P@k from 1 to 100, {choice.data}",
    )
    st.caption(
        "Mean over relations of the share of facts whose right answer is among the first k, as in "
        "Figure 2 of Petroni et al. 2019. Hover for the 95 % interval. "
        + "Dotted: the same of a random order of the answers. " * choice.guessable
        + "Click a point to see the facts that it counts.",
        help=f"Interval: {METHOD_OF_MEANS}.",
    )
    for point in points:
        title, k = point["customdata"][:2]
        to_facts(choice, title, rank_max=int(k))
    lines = python_of(choice, "metrics.precision_curves(runs, **options)")
    draw_export("curves", lambda: table, made(choice, "source"), lines)


def draw_ranks(choice: RunChoice, listing: RunListing) -> None:
    """At which rank the right answer comes: a histogram, and box plots as in Figure 4."""
    relations = choice.relations or None
    table = choice.table_of(
        "histogram",
        lambda runs: metrics.rank_histogram(runs, ranking=choice.ranking, relations=relations),
    )
    points = choice.show(
        charts.rank_histogram(table, choice.inks, choice.counts),
        "rank chart",
        f"Rank of the right answer, {choice.data}",
    )
    st.caption(
        f"The rank of the right answer among {choice.gold_stands}. Click a bar to see its facts."
    )
    for point in points:
        title, low, high = point["customdata"][:3]
        to_facts(choice, title, rank_min=int(low), rank_max=int(high))
    boxes = choice.table_of(
        "quartiles",
        lambda runs: metrics.rank_quartiles(runs, ranking=choice.ranking, relations=relations),
    )
    st.markdown("### Spread of the ranks by model")
    _draw_boxes(
        choice,
        boxes,
        "box chart",
        axis="rank of the right answer",
        title=f"Ranks by model, {choice.data}",
        caption=f"Over facts. {BOX} Click a diamond to see the facts.",
    )
    lines = python_of(
        choice, "metrics.rank_histogram(runs, **options)\nmetrics.rank_quartiles(runs, **options)"
    )
    draw_export("ranks", lambda: table, choice.made(), lines)
    _draw_spread(choice, listing)


def _draw_spread(choice: RunChoice, listing: RunListing) -> None:
    """Figure 4 itself: the mean rank over ten sentences a fact."""
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

    def distribution(found: list[Run]) -> pd.DataFrame:
        lines = []
        for run in found:
            ranks = metrics.average_ranks(run, ranking=choice.ranking)["mean_rank"]
            ends = ranks.quantile([0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
            names = ("low", "q1", "median", "q3", "high")
            lines.append(
                {"run": run.info.id, "n": len(ranks), "mean": float(ranks.mean())}
                | dict(zip(names, ends, strict=True))
            )
        return pd.DataFrame(lines)

    table = replace(shown, relations=()).table_of("spread", distribution)
    _draw_boxes(
        replace(shown, prompts=TEN_SENTENCES, exact=()),
        table,
        "spread chart",
        axis="fact's mean rank over ten sentences",
        title=f"Mean rank over ten sentences, {choice.data}",
        caption="Each fact's rank is averaged over ten sentences that state it, for at most 100 "
        f"facts a relation, chosen at random among those that count. The boxes show how these "
        f"averages spread over facts, not how the ten sentences of one fact differ. {BOX} Click a "
        "diamond to see the facts." + PATTERNS * (choice.data == STARTER),
    )


def _draw_boxes(
    choice: RunChoice, boxes: pd.DataFrame, key: str, *, axis: str, title: str, caption: str
) -> None:
    """A box a run; a click on its mean opens the run's facts."""
    points = choice.show(charts.rank_boxes(boxes, choice.inks, axis, choice.counts), key, title)
    st.caption(caption)
    for point in points:
        if "customdata" in point:
            to_facts(choice, point["customdata"][0])


def draw_calibration(choice: RunChoice) -> None:
    """How often a first answer is right, by the probability that the model gives it."""

    def bins(runs: list[Run]) -> pd.DataFrame:
        lines = []
        for run in runs:
            found = metrics.calibrate(
                run, ranking=choice.ranking, relations=choice.relations or None
            )
            lines += [
                {
                    "run": run.info.id,
                    "ece": found.ece,
                    "low": b.low,
                    "high": b.high,
                    "n": b.n,
                    "confidence": b.confidence,
                    "accuracy": b.accuracy,
                }
                for b in found.bins
            ]
        return pd.DataFrame(lines)

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
        f"Facts are put into ten bins by the probability of the first answer ({_over(choice)}). "
        "Below the dashed line a model is surer than it should be. The larger a "
        "point, the more facts. Click one to see them."
    )
    for point in points:
        if "customdata" in point:
            title, low, high = point["customdata"][:3]
            to_facts(choice, title, conf=[f"{low:.2f}", f"{high:.2f}"])
    lines = python_of(choice, "[metrics.calibrate(run, **options) for run in runs]")
    draw_export("calibration", lambda: table, choice.made(), lines)


def _over(choice: RunChoice) -> str:
    """What the probabilities of the runs' first answers sum to one over."""
    words, answers = "over the model's whole vocabulary", "the softmax of all answers' scores"
    if not choice.any_statements:
        return words
    return answers if choice.all_statements else f"{words}; of statements {answers}"


def draw_margins(choice: RunChoice) -> None:
    """How far the right answers are ahead of the best wrong one, of runs of statements."""
    relations = choice.relations or None
    table = choice.table_of(
        "margins",
        lambda runs: metrics.margin_histogram(runs, ranking=choice.ranking, relations=relations),
    )
    if table.empty:
        show_note("No fact of these has a margin: its relation has no wrong answer.")
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
        "Margin = score of the right answer minus the best score of the wrong ones, in nats of the "
        "score that the run was made with. Above 0 the right answer is first in the filtered "
        "ranking. The answers are the run's own. Click a bar to see its facts."
        + (
            f" Without margins, since they rank words: {plain(', '.join(without))}."
            if without
            else ""
        )
    )
    for point in points:
        title, low, high, right = point["customdata"][:4]
        to_facts(
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
    """Figure 3's matrix for one run, next to the paper's."""
    which, of, vectors = st.columns([2, 1, 3], vertical_alignment="bottom")
    name = which.selectbox("Model", choice.names, key="of", bind=BOUND)
    number = choice.names.index(name)
    run, title = choice.runs[number], choice.titles[number]
    is_model = run.model_kind in KINDS
    with_vectors = is_model & vectors.toggle(
        "Include the vectors (SOCS): this loads the model",
        key="vectors",
        bind=BOUND,
        disabled=not is_model,
        help="SOCS is the cosine of subject and object. Ours is of the model's own input "
        "embeddings, the mean over a name's subword tokens; the paper took spaCy's vectors.",
    )
    sources = metrics.correlation_sources(run, choice.relations)
    source = of.selectbox(
        "Facts of",
        sources,
        key="figure_source",
        bind=BOUND,
        help="The paper's figure is of T-REx alone.",
    )

    def matrix(runs: list[Run]) -> metrics.Correlations:
        take = None
        if with_vectors:
            from lama_core.models.cache import load_model

            model = load_model(runs[0].info.model)
            take = getattr(model, "word_vectors", None)
        mentions = metrics.mentions_of(run.model) if is_model else metrics.wordfreq_mentions()
        return metrics.correlate(
            runs[0],
            mentions,
            take,
            ranking=choice.ranking,
            relations=choice.relations or None,
            source=source,
        )

    with st.spinner("Correlating", show_time=True):
        found = cache.of_runs(
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
        points = charts.show(
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
        charts.show(
            charts.correlation_matrix(full, None),
            "published correlations",
            title="Correlations, BERT-large (published)",
            footnote="Petroni et al. 2019, Figure 3",
            picture=choice.picture,
        )
    st.caption(
        "Pearson's correlation over facts. "
        + ", ".join(f"**{short}**: {long}" for short, long in LABELS.items())
        + f". Mentions are counted in: {plain(found.mentions)}."
    )
    if points:
        to_facts(choice, title)
    call = (
        "from lama_core.models.cache import load_model\n"
        f'vectors = load_model("{run.model}").word_vectors\n'
        if with_vectors
        else "vectors = None\n"
    )
    counted = "metrics.wordfreq_mentions()"
    if "wordfreq" not in found.mentions:
        call += (
            "from pathlib import Path\nfrom lama_core.metrics.correlates import corpus_mentions\n"
        )
        counted = f'corpus_mentions(Path("assets/models/{run.model}"))'
    call += f"metrics.correlate(runs[{number}], {counted}, vectors, source={source!r}, **options)"
    draw_export(
        "correlations",
        lambda: found.matrix.rename_axis("measure").reset_index(),
        choice.made() | {"mentions": found.mentions, "of": run.id, "source": source},
        python_of(choice, call),
    )
