"""Ensembles of prompts: P@1 and published values, custom weights, P@1 by number of prompts."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.datasets.prompt_sets import TITLES
from lama_core.glossary import explain
from lama_core.metrics.comparison import Difference, paired_difference
from lama_core.metrics.intervals import METHOD_OF_MEANS, mean_share_intervals, share_intervals
from lama_core.probes.prompts.ensemble import PAPER
from lama_core.probes.prompts.published_scores import BERTS, LINES, Averaging, published
from lama_core.probes.prompts.study import RelationStudy, Score
from lama_core.rounding import fixed, percent, percentage
from lama_core.views.colours import PUBLISHED
from lama_core.views.figure import Axis, Figure, said, said_interval
from pages.ui.prompts.study_choice import PromptsChoice, load_relations
from pages.ui.prompts.weights import draw_weights
from pages.ui.shared import screens
from pages.ui.shared.export import draw_export
from pages.ui.shared.figures import draw_figure
from pages.ui.shared.messages import draw_headline, errors_shown, show_note
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
METHODS_SAID = (
    "**Manual**: the relation's own prompt. **Top1**: the prompt that is best on the training "
    "facts. **Top3**, **Top5**: the mean of the 3 or 5 best. **Optimised**: all prompts, with "
    "weights fitted on the training facts. **Oracle**: share of facts that at least one prompt "
    "gets right."
)
AVERAGES: tuple[Averaging, ...] = ("micro", "macro")
AVERAGES_IN_WORDS: dict[str, str] = {
    "micro": "micro (over a relation's facts)",
    "macro": "macro (over a relation's answers)",
}
METHODS_IN_WORDS = {
    "top1": "the best prompt alone",
    "top3": "mean of the best 3",
    "top5": "mean of the best 5",
    "optimised": "optimised weights",
    "optimised (paper)": "optimised weights, paper's recipe",
    "optimised (exact)": "optimised weights, exact",
}
MEANS = {"log-linear": "log-probabilities", "linear": "probabilities"}
SCOPES = ("this relation", "all relations")


def score_rows(scores: Sequence[Score], model: str, averaging: Averaging) -> pd.DataFrame:
    """Return P@1 in percent by prompt set and method, averaged over relations.

    `low` and `high` are the ends of its interval; only micro averages have one.
    `model` is the model's name in the paper; with "" the column `published` stays empty.
    """
    frame = pd.DataFrame(
        [
            {
                "set": score.combination,
                "method": score.method,
                "n": score.n,
                "value": percentage(getattr(score, averaging), 6),
                "hits": round(score.micro * score.n),
            }
            for score in scores
        ]
    )
    groups = frame.groupby(["set", "method"], sort=False)
    table = groups.agg(
        value=("value", "mean"), relations=("value", "size"), facts=("n", "sum")
    ).reset_index()
    ends = [
        mean_share_intervals(group["hits"].to_numpy(np.int64), group["n"].to_numpy(np.int64))
        for _, group in groups
    ]
    for name in ("low", "high"):
        table[name] = [
            100 * float(getattr(one, name)) if averaging == "micro" else np.nan for one in ends
        ]
    table["published"] = [
        published(model, averaging, set_, method)
        for set_, method in zip(table["set"], table["method"], strict=True)
    ]
    table["title"] = table["method"].map(lambda method: METHOD_TITLES.get(method, method))
    return table


def draw_ensembles(choice: PromptsChoice) -> None:
    """Draw the bars, the sliders for custom weights, and the curve over K."""
    left, right = st.columns(2, vertical_alignment="bottom")
    averaging: Averaging = pick(
        "Average",
        AVERAGES,
        key="average",
        first="micro",
        place=left,
        format_func=AVERAGES_IN_WORDS.__getitem__,
        help=explain("Micro and macro average"),
    )
    scope = pick("Facts", SCOPES, key="scope", place=right)
    studies = (choice.study,) if scope == SCOPES[0] else load_relations(choice.whole)
    scores = [score for study in studies for score in study.scores()]
    if any(score.combination == choice.combination for score in scores):
        _draw_scores(choice, scores, studies, averaging)
    else:
        show_note(
            "This study has no ensemble of these prompts. Choose another set, or start a study "
            "under **New study**."
        )
    with errors_shown():
        draw_weights(choice)
    _draw_curve(choice)


def _draw_scores(
    choice: PromptsChoice,
    scores: Sequence[Score],
    studies: Sequence[RelationStudy],
    averaging: Averaging,
) -> None:
    """Draw P@1 of a prompt set's ensembles as bars, with published values if the paper has any."""
    single = len(studies) == 1
    # The paper reports means over all relations only.
    paper_name = "" if single else BERTS.get(choice.info.model, "")
    model = title_of(choice.info.model)
    table = score_rows(scores, paper_name, averaging)
    here = table[table["set"] == choice.combination]
    manual = table[(table["set"] == "manual") & (table["method"] == "top1")]
    rows = pd.concat([manual.assign(title="Manual"), here], ignore_index=True)
    rows = rows.drop_duplicates("title")
    n_facts = int(rows["facts"].max())
    relations = choice.study.relation.name if single else f"{len(studies)} relations"
    gain = _gain_of_best(rows, studies, choice.combination)
    draw_headline(_conclusion(rows, gain, averaging, len(studies)))
    y_title = f"P@1, {averaging}, % of {n_facts:,} test facts"
    if averaging == "macro" or not single:
        y_title = f"P@1, {averaging} average{f', {relations}' * (not single)}, %"
    figure = method_columns(
        rows,
        {"ours": model, "published": f"{paper_name} (published)"},
        y_title,
        title=f"{TITLES[choice.combination]} prompts, {averaging}, {choice.study.ranking} ranking",
        caption=f"{model} on {choice.info.dataset}, {relations}, {n_facts:,} test facts, "
        f"{choice.study.ranking} ranking"
        + f"; published: {paper_name}, T-REx, 41 relations (Jiang et al. 2020)"
        * bool(paper_name),
    )
    draw_figure(figure, {"ours": choice.colour, "published": PUBLISHED}, "ensembles chart")
    published_note = (
        f"Grey: {paper_name} in the paper, on all 41 relations of T-REx, raw ranking."
        if paper_name and choice.combination in LINES
        else f"For the paper's models, see **{screens.IN_PAPER}**."
    )
    st.caption(
        METHODS_SAID + " Whiskers: 95 % intervals." * (averaging == "micro") + f" {published_note}",
        help=f"Interval: {METHOD_OF_MEANS}.",
    )
    if "optimised (paper)" in set(rows["method"]):
        st.caption(
            f"The paper's recipe: Adam with default parameters and batches of {PAPER.batch_size}. "
            "The paper doesn't report epochs and patience; here training stops after "
            f"{PAPER.max_epochs} epochs, or {PAPER.patience} in which the mean log-probability "
            f"gains less than {PAPER.min_gain:g}."
        )
    names = tuple(study.relation.name for study in studies)
    made = {**choice.made(), "relation": list(names)}
    draw_export("ensembles", lambda: table, made, choice.request(names))


def _best_of(rows: pd.DataFrame) -> pd.Series | None:
    """Return the best way of combining prompts; None without one."""
    ways = rows[~rows["title"].isin(("Oracle", "Manual"))]
    return None if ways.empty else ways.iloc[int(ways["value"].argmax())]


def _gain_of_best(
    rows: pd.DataFrame, studies: Sequence[RelationStudy], combination: str
) -> Difference | None:
    """Return P@1 of the best way minus that of the best prompt alone, paired over all facts."""
    best = _best_of(rows)
    if best is None:
        return None
    pairs = [
        (alone[1], way[1])
        for study in studies
        if (alone := study.ensemble(combination, "top1"))
        and (way := study.ensemble(combination, best["method"]))
    ]
    if not pairs:
        return None
    alone, way = (np.concatenate(ranks) == 1 for ranks in zip(*pairs, strict=True))
    return paired_difference(alone, way)


def _conclusion(
    rows: pd.DataFrame, gain: Difference | None, averaging: Averaging, n_relations: int
) -> str:
    """Return how the best way of combining prompts does, compared with single prompts.

    gain: its paired difference from the best prompt alone, over the facts of all relations: it
    belongs to no macro average, and with several relations to no average at all.
    """
    best = _best_of(rows)
    if best is None or gain is None:
        return ""
    shown = {row["title"]: f"{fixed(row['value'], 1)} %" for row in rows.to_dict("records")}
    ends = " to ".join(percent(end, signed=True) for end in (gain.interval.low, gain.interval.high))
    is_share = averaging == "micro" and n_relations == 1
    averaged = f"on average over {n_relations} relations" if n_relations > 1 else ""
    kind = "(macro average over answers)" if averaging == "macro" else ""
    of = f"of {best['facts']:,} test facts" if is_share else f"{averaged} {kind}".strip()
    manual = f"; the manual prompt {shown['Manual']}" if "Manual" in shown else ""
    if shown.get("Top1") == shown[best["title"]]:
        right = " are right" * is_share
        return f"No combination beats the best prompt alone: {shown['Top1']} {of}{right}{manual}"
    if is_share:
        return (
            f"{best['title']} gets {shown[best['title']]} {of} right, "
            f"{'' if gain.interval.low > 0 else 'not '}clearly "
            f"more than the best prompt alone, {shown['Top1']} (difference {ends} points){manual}"
        )
    text = f"{best['title']}: {shown[best['title']]} {of}; the best prompt alone {shown['Top1']}"
    over = f" (difference over all {best['facts']:,} test facts: {ends} points)"
    return text + over * (averaging == "micro") + manual


def method_columns(
    rows: pd.DataFrame, names: dict[str, str], y_title: str, *, title: str, caption: str
) -> Figure:
    """Return P@1 by method of combining prompts as columns with numbers, next to published ones.

    Args:
        rows: Of `score_rows`.
        names: `ours` and `published` -> the name of the series.
        y_title: What the values are.
        title: The title.
        caption: What is counted.
    """
    none = {"low": np.nan, "high": np.nan}
    marks = pd.concat(
        [rows.assign(run="ours"), rows.assign(run="published", value=rows["published"], **none)],
        ignore_index=True,
    )
    marks = marks[marks["value"].notna()].reset_index(drop=True)
    marks["text"] = [fixed(value, 1) for value in marks["value"]]
    marks["said"] = [
        said(
            f"{line['title']}{', published' * (line['run'] == 'published')}: {line['text']} %",
            said_interval(line["low"] / 100, line["high"] / 100),
            "" if line["run"] == "published" else f"{line['facts']:,} test facts",
        )
        for line in marks.to_dict("records")
    ]
    return Figure(
        shape="columns",
        frame=marks,
        by=Axis(column="title", title="method of combining prompts", order=tuple(rows["title"])),
        value=Axis(column="value", title=y_title, from_zero=True),
        names=names,
        low="low",
        high="high",
        text="text",
        title=title,
        caption=caption,
    )


def _draw_curve(choice: PromptsChoice) -> None:
    """Draw P@1 of Top-K by K, for log-linear and linear ensembles."""
    curves = {
        kind: values for name, kind, values in choice.study.curves if name == choice.combination
    }
    if not curves or max(map(len, curves.values())) < 2:
        return
    log_linear, linear = curves.get("log-linear", ()), curves.get("linear", ())
    values, mean = (log_linear, "log-linear") if log_linear else (linear, "linear")
    best, every = int(np.argmax(values)), f"all {len(values)} prompts {percent(values[-1])} %"
    every += f" (linear: {percent(linear[-1])} %)" if linear and log_linear else ""
    one = f"the mean of the {best + 1} best prompts" if best else "the best prompt alone"
    draw_headline(
        f"On the {len(choice.study.test):,} test facts of {choice.study.relation.name} {one} has "
        f"the highest P@1, {percent(values[best])} % (K chosen on the same facts), the {mean} "
        f"mean of {every}",
        help=explain("Log-linear and linear"),
        key="headline curve",
    )
    n = len(choice.study.test)
    hits = np.round(np.array(log_linear or linear) * n).astype(np.int64)
    ends = share_intervals(hits, np.full_like(hits, n))
    rows = [
        {
            "k": k,
            "run": kind,
            "value": value,
            "low": ends.low[k - 1] if kind == mean else np.nan,
            "high": ends.high[k - 1] if kind == mean else np.nan,
            "said": f"K = {k}, {kind}: {percent(value)} %\n{n:,} test facts",
        }
        for kind, values in curves.items()
        for k, value in enumerate(values, start=1)
    ]
    most = max(map(len, curves.values()))
    figure = Figure(
        shape="lines",
        frame=pd.DataFrame(rows),
        by=Axis(
            column="k",
            title="K: number of prompts, the best on training facts first",
            ticks={k: str(k) for k in range(1, most + 1) if most < 16 or k % 5 == 0},
            ends=(1, most),
        ),
        value=Axis(column="value", title="P@1, % of test facts", share=True),
        names={kind: f"{kind}: mean of {MEANS[kind]}" for kind in MEANS},
        low="low",
        high="high",
        bands=True,
        title=f"P@1 by number of prompts, {choice.study.relation.name}",
        caption=choice.footnote,
    )
    draw_figure(figure, dict.fromkeys(MEANS, PUBLISHED) | {mean: choice.colour}, "curve chart")
    st.caption(f"Band: 95 % intervals of the {mean} mean, over the test facts.")
