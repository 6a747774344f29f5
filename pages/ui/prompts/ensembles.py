"""Top-K, optimised and oracle as bars next to the published values; weights; K and accuracy."""

from collections.abc import Sequence
from functools import partial

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from lama_core.datasets.prompt_sets import TITLES
from lama_core.glossary import explain
from lama_core.papers.jiang2020_scores import LINES, Averaging, paper_model, published
from lama_core.probes.prompts.ensemble import PAPER
from lama_core.probes.prompts.plan import request_of
from lama_core.probes.prompts.study import RelationStudy, Score
from lama_core.rounding import fixed, percent, percentage
from pages.ui.prompts.study_choice import PromptsChoice, all_relations
from pages.ui.prompts.weights import draw_weights
from pages.ui.shared import charts, screens
from pages.ui.shared.colours import PUBLISHED
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import faults_shown, show_note
from pages.ui.shared.url_state import pick, title_of

METHOD_TITLES = {
    "top1": "Top1",
    "top3": "Top3",
    "top5": "Top5",
    "optimised": "Optimised",
    "optimised (paper)": "Opt., paper's recipe",
    "optimised (exact)": "Opt., exact",
    "oracle": "Oracle",
}
AVERAGES: tuple[Averaging, ...] = ("micro", "macro")
SCOPES = ("this relation", "all relations")


def score_rows(scores: Sequence[Score], model: str, averaging: Averaging) -> pd.DataFrame:
    """Means over relations by set and method, with the paper's values in per cent.

    model: what the paper calls it, "" for no values of the paper's.
    """
    frame = pd.DataFrame(
        [
            {
                "set": one.combination,
                "method": one.method,
                "n": one.n,
                "value": percentage(getattr(one, averaging), 6),
            }
            for one in scores
        ]
    )
    table = frame.groupby(["set", "method"], sort=False, as_index=False).agg(
        value=("value", "mean"), relations=("value", "size"), facts=("n", "sum")
    )
    table["published"] = [
        published(model, averaging, one, method)
        for one, method in zip(table["set"], table["method"], strict=True)
    ]
    table["title"] = table["method"].map(lambda method: METHOD_TITLES.get(method, method))
    return table


def draw_ensembles(choice: PromptsChoice) -> None:
    """The bars, then weights to move, and the curve over K."""
    left, right = st.columns(2)
    averaging = pick(
        "Average",
        AVERAGES,
        key="average",
        first="micro",
        place=left,
        help=explain("Micro and macro average"),
    )
    scope = pick("Facts", SCOPES, key="scope", place=right)
    studies = (choice.study,) if scope == SCOPES[0] else all_relations(choice.whole)
    scores = [score for study in studies for score in study.scores()]
    which: Averaging = "macro" if averaging == "macro" else "micro"
    if not any(one.combination == choice.combination for one in scores):
        show_note(
            "This study holds no ensemble of these prompts: choose another set, or make a study "
            "under **New study**."
        )
    else:
        _draw_scores(choice, scores, studies, which)
    with faults_shown():
        draw_weights(choice)
    _draw_curve(choice)


def _draw_scores(
    choice: PromptsChoice,
    scores: Sequence[Score],
    studies: Sequence[RelationStudy],
    averaging: Averaging,
) -> None:
    """The bars of one set, next to the published values where the model is the paper's."""
    single = len(studies) == 1
    # The paper's values are of its models, over all relations.
    same = "" if single else paper_model(choice.info.model)
    model = title_of(choice.info.model)
    table = score_rows(scores, same, averaging)
    here = table[table["set"] == choice.combination]
    manual = table[(table["set"] == "manual") & (table["method"] == "top1")]
    rows = pd.concat([manual.assign(title="Manual"), here], ignore_index=True)
    rows = rows.drop_duplicates("title")
    n_facts = int(rows["facts"].max())
    what = choice.study.relation.name if single else f"{len(studies)} relations"
    charts.show(
        _bars(rows, model, choice.colour, same, averaging),
        "ensembles chart",
        title=f"{TITLES[choice.combination]} prompts, {averaging}, {choice.study.ranking} ranking",
        footnote=f"{model} on {choice.info.dataset}, {what}, {n_facts:,} test facts, "
        f"{choice.study.ranking} ranking"
        + (f"; published: {same}, T-REx, 41 relations (Jiang et al. 2020)" if same else ""),
    )
    beside = (
        f"Grey: {same} in the paper, on all 41 relations of T-REx, raw ranking. "
        if same and choice.combination in LINES
        else f"Values of the paper's models: **{screens.FOLDED}**. "
    )
    st.caption(f"{beside}The oracle counts a fact when any prompt gets it right.")
    if "optimised (paper)" in set(rows["method"]):
        st.caption(
            f"The paper's recipe: Adam with default parameters and batches of {PAPER.batch_size}. "
            "It doesn't give the number of epochs and the patience; here training ends after "
            f"{PAPER.max_epochs} epochs, or {PAPER.patience} without a gain of {PAPER.min_gain:g}."
        )
    names = tuple(study.relation.name for study in studies)
    made = {**choice.made(), "relation": list(names)}
    draw_export("ensembles", lambda: table, made, request_of(choice.whole, names))


def _bars(
    rows: pd.DataFrame, model: str, colour: str, same: str, averaging: Averaging
) -> go.Figure:
    figure = go.Figure()
    said = {"value": ": {} %<br>{:,} test facts", "published": ", published: {} %"}
    inks = {"value": (model, colour, 1.0), "published": (f"{same} (published)", PUBLISHED, 0.6)}
    for column, (name, ink, opacity) in inks.items():
        known = rows[rows[column].notna()]
        if len(known):
            shown = known[column].map(partial(fixed, digits=1))
            texts = [
                f"<b>{title}</b>" + said[column].format(value, n)
                for title, value, n in zip(known["title"], shown, known["facts"], strict=True)
            ]
            style: charts.Style = {"text": shown, "textposition": "outside", "cliponaxis": False}
            style |= {"name": name, "marker_color": ink, "opacity": opacity}
            charts.add(figure, go.Bar, known.assign(hover=texts), "title", column, **style)
    top = max(rows["value"].max(), rows["published"].fillna(0).max(), 5)
    return figure.update_layout(
        xaxis_title="how prompts are combined",
        yaxis={"title": f"P@1, {averaging}, % of test facts", "range": [0, 1.12 * top]},
        height=380,
        barmode="group",
    )


def _draw_curve(choice: PromptsChoice) -> None:
    """P@1 of Top-K for every K, log-linear against linear."""
    curves = {
        kind: values for name, kind, values in choice.study.curves if name == choice.combination
    }
    if not curves or max(map(len, curves.values())) < 2:
        return
    st.markdown(
        "**How many prompts?** P@1 of the mean of the K best prompts",
        help=explain("Log-linear and linear"),
    )
    figure = go.Figure()
    for kind, dash in (("log-linear", "solid"), ("linear", "dot")):
        values = curves.get(kind, ())  # type: ignore[call-overload]
        figure.add_scatter(
            name=kind,
            x=list(range(1, len(values) + 1)),
            y=[100 * value for value in values],
            hovertext=list(map(percent, values)),
            mode="lines+markers",
            line={"color": choice.colour, "dash": dash},
            hovertemplate=f"K = %{{x}}, {kind}: %{{hovertext}} %"
            f"<br>{len(choice.study.test):,} test facts<extra></extra>",
        )
    figure.update_xaxes(title="K, prompts", dtick=1 if len(values) < 16 else 5)
    figure.update_yaxes(title="P@1, % of test facts", rangemode="tozero")
    charts.show(
        figure.update_layout(height=300),
        "curve chart",
        title=f"Top-K of {choice.study.relation.name}",
        footnote=choice.footnote,
    )
