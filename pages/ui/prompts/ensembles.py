"""Ensembles of prompts: P@1 and published values, custom weights, P@1 by number of prompts."""

from collections.abc import Callable, Sequence
from statistics import fmean

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from lama_core.datasets.prompt_sets import TITLES
from lama_core.glossary import explain
from lama_core.grouping import grouped
from lama_core.metrics.comparison import paired_difference
from lama_core.metrics.intervals import METHOD_OF_MEANS, mean_share_intervals, share_intervals
from lama_core.probes.prompts.ensemble import PAPER, top_k_weights
from lama_core.probes.prompts.published_scores import BERTS, LINES, Averaging, published
from lama_core.probes.prompts.study import RelationStudy, Score
from lama_core.rounding import fixed, percent, percentage, rounded
from lama_core.views.colours import PUBLISHED
from lama_core.views.figure import Axis, Figure, said, said_interval
from pages.ui.prompts.study_choice import PromptsChoice, load_relations
from pages.ui.prompts.table import said_ends
from pages.ui.shared import links, screens
from pages.ui.shared.export import draw_export
from pages.ui.shared.figures import draw_figure
from pages.ui.shared.messages import draw_headline, errors_shown, plain, show_note
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import BOUND, pick, title_of

METHOD_TITLES = {
    "top1": "Top1",
    "top3": "Top3",
    "top5": "Top5",
    "optimised": "Optimised",
    "optimised (paper)": "Opt., paper's recipe",
    "oracle": "Oracle",
}
GAIN = "Top1 − Manual"
AVERAGES: dict[Averaging, str] = {
    "micro": "micro (over a relation's facts)",
    "macro": "macro (over a relation's answers)",
}
METHODS_IN_WORDS = {
    "top1": "the best prompt alone",
    "top3": "mean of the best 3",
    "top5": "mean of the best 5",
    "optimised": "optimised weights",
    "optimised (paper)": "optimised weights, paper's recipe",
}
MEANS = {"log-linear": "log-probabilities", "linear": "probabilities"}


def score_rows(scores: Sequence[Score], model: str, averaging: Averaging) -> pd.DataFrame:
    """Return P@1 in percent by prompt set and method, averaged over relations.

    `low` and `high` are the ends of its interval; only micro averages have one.
    `model` is the model's name in the paper; with "" the column `published` stays empty.
    """
    rows = []
    groups = grouped(((score.combination, score.method), score) for score in scores)
    for (set_, method), several in groups.items():
        n = np.array([score.n for score in several])
        hits = np.array([round(score.micro * score.n) for score in several])
        ends = mean_share_intervals(hits, n)
        has_ends = averaging == "micro"
        rows.append(
            {
                "set": set_,
                "method": method,
                "value": fmean(percentage(getattr(score, averaging), 6) for score in several),
                "relations": len(several),
                "facts": int(n.sum()),
                "low": 100 * float(ends.low) if has_ends else np.nan,
                "high": 100 * float(ends.high) if has_ends else np.nan,
                "published": published(model, averaging, set_, method),
                "title": METHOD_TITLES.get(method, method),
            }
        )
    return pd.DataFrame(rows)


def draw_all_relations(choice: PromptsChoice) -> None:
    """Draw means over all relations, and the relations; a row opens its relation."""
    studies = load_relations(choice.info)
    headline = st.container()
    averaging: Averaging = pick(
        "Average",
        list(AVERAGES),
        key="average",
        first="micro",
        format_func=AVERAGES.__getitem__,
        help=explain("Micro and macro average"),
    )
    table = relation_rows(studies, choice.combination, averaging)
    with headline:
        draw_headline(said_over_relations(table, choice.title_of))
    _draw_scores(choice, studies, averaging)
    st.markdown("### P@1 by relation")
    shown = table.assign(relation=table["relation"].map(choice.title_of))
    if {"Manual", "Top1", "gain from"} <= set(table):
        ends = (table[["gain from", "gain to"]] / 100).to_numpy()
        shown = shown.drop(columns=["gain from", "gain to"])
        at = [*shown].index("Top1") + 1
        shown.insert(at, GAIN, table["Top1"] - table["Manual"])
        said_gains = [said_ends(*one, signed=True) or "same prompt" for one in ends]
        shown.insert(at + 1, "its interval", said_gains)
    picked = draw_table(
        shown,
        key="relations of prompts",
        picks="row-or-cell",
        column_config={
            name: st.column_config.NumberColumn(format="%+.1f" if name == GAIN else "%.1f")
            for name in shown.select_dtypes("float")
        },
        placeholder="–",
        height="content",
    )
    st.caption("In percent of the test facts. Click a row, or tap its card, to see its prompts.")
    if picked.rows:
        name = str(table["relation"][picked.rows[0]])
        there = {"prompts_view": screens.ONE_RELATION, "relation": name}
        links.go(screens.RESULTS, {**links.params_without(["prompts_part"]), **there})


def draw_relation(choice: PromptsChoice) -> None:
    """Draw the bars of a relation, the sliders for custom weights, and the curve over K."""
    headline = st.container()
    rows = _draw_scores(choice, (choice.study,), "micro")
    with headline:
        draw_headline(_conclusion(choice, rows))
    if len(choice.eligible) > 1:
        is_asked = any(key.startswith(("weight", "start")) for key in st.query_params)
        title = "Your own weights: move sliders to see how P@1 changes"
        with errors_shown(), st.expander(title, expanded=is_asked):
            _draw_sliders(choice)
    _draw_curve(choice)


def relation_rows(
    studies: Sequence[RelationStudy], combination: str, averaging: Averaging
) -> pd.DataFrame:
    """Return P@1 in percent by relation: of the manual prompt, and of each way of combining.

    gain from, gain to: 95 % interval (Tango's) of Top1 minus the manual prompt over the facts; NaN
    if Top1 is the manual prompt.
    """
    rows = []
    for study in studies:
        row: dict[str, object] = {"relation": study.relation.name, "test facts": len(study.test)}
        for score in study.scores():
            value = percentage(getattr(score, averaging), 6)
            if (score.combination, score.method) == ("manual", "top1"):
                row["Manual"] = value
            elif score.combination == combination:
                row[METHOD_TITLES.get(score.method, score.method)] = value
        top1, manual = study.ensemble(combination, "top1"), study.pool.manual
        if top1 and manual is not None:
            found = paired_difference(study.ranks[manual] == 1, top1[1] == 1).interval
            row |= {"gain from": percentage(found.low, 6), "gain to": percentage(found.high, 6)}
            if top1[0].weights[manual] == 1:
                row |= {"gain from": np.nan, "gain to": np.nan}
        rows.append(row)
    return pd.DataFrame(rows)


def said_over_relations(table: pd.DataFrame, names: Callable[[str], str]) -> str:
    """Return how the best prompt on training facts does over all relations, next to the manual one.

    table: as of `relation_rows`. names: relation -> its title.
    """
    if not {"Manual", "Top1", "gain from"} <= set(table):
        return ""
    table = table.dropna(subset=["Manual", "Top1"]).reset_index(drop=True)
    gain = table["Top1"] - table["Manual"]
    n, most = len(table), int(gain.abs().argmax())
    is_most = "; most of the gain comes from " if gain[most] > gain.sum() / 2 > 0 else ", most on "
    largest = (
        f"{is_most}{names(str(table['relation'][most]))} "
        f"({fixed(gain[most], 1, signed=True)} points)"
    ) * bool(gain[most])
    return (
        f"On average over {n} relations ({table['test facts'].sum():,} test facts), the best "
        f"prompt on the training facts gets {fixed(table['Top1'].mean(), 1)} % right, the manual "
        f"prompt {fixed(table['Manual'].mean(), 1)} %; it is clearly better in "
        f"{(table['gain from'] > 0).sum()} of {n} relations (interval above 0) and clearly worse "
        f"in {(table['gain to'] < 0).sum()}{largest}"
    )


def _draw_scores(
    choice: PromptsChoice, studies: Sequence[RelationStudy], averaging: Averaging
) -> pd.DataFrame:
    """Draw P@1 of a prompt set's ensembles as bars, with published values if the paper has any.

    Returns the bars; without columns if the study has no ensemble of these prompts.
    """
    scores = [score for study in studies for score in study.scores()]
    if not any(score.combination == choice.combination for score in scores):
        show_note(
            "This study has no ensemble of these prompts. Choose another set, or start a study "
            "under **New study**."
        )
        return pd.DataFrame()
    single = len(studies) == 1
    # The paper reports means over all relations only.
    paper_name = "" if single else BERTS.get(choice.info.model, "")
    model = title_of(choice.info.model)
    table = score_rows(scores, paper_name, averaging)
    manual = table[(table["set"] == "manual") & (table["method"] == "top1")]
    rows = pd.concat(
        [manual.assign(title="Manual"), table[table["set"] == choice.combination]],
        ignore_index=True,
    ).drop_duplicates("title")
    n_facts = int(rows["facts"].max())
    relations = choice.study.relation.name if single else f"{len(studies)} relations"
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
        "**Manual**: the relation's own prompt. **Top1**: the prompt that is best on the training "
        "facts. **Top3**, **Top5**: the mean of the 3 or 5 best. **Optimised**: all prompts, with "
        "weights fitted on the training facts. **Oracle**: share of facts that at least one prompt "
        "gets right."
        + " Whiskers: 95 % intervals." * (averaging == "micro")
        + f" {published_note}",
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
    return rows


def _conclusion(choice: PromptsChoice, rows: pd.DataFrame) -> str:
    """Return how a relation's best way of combining prompts does, compared with single prompts."""
    if rows.empty:
        return ""
    ways = rows[~rows["title"].isin(("Oracle", "Manual"))]
    best = ways.iloc[int(ways["value"].argmax())]
    alone, way = (
        choice.study.ensemble(choice.combination, method) for method in ("top1", best["method"])
    )
    if alone is None or way is None:
        return ""
    shown = {row["title"]: f"{fixed(row['value'], 1)} %" for row in rows.to_dict("records")}
    of = f"of {best['facts']:,} test facts"
    manual = f"; the manual prompt {shown['Manual']}" if "Manual" in shown else ""
    on = f"On {choice.title_of(choice.study.relation.name)}, "
    if shown.get("Top1") == shown[best["title"]]:
        return f"{on}no combination beats the best prompt alone: {shown['Top1']} {of}{manual}"
    ends = paired_difference(alone[1] == 1, way[1] == 1).interval
    chosen = f", the best of {len(ways)} ways on these facts," * (len(ways) > 1)
    return (
        f"{on}{best['title']}{chosen} gets {shown[best['title']]} {of} right, "
        f"{'not ' * (ends.low <= 0)}clearly more than the best prompt alone, {shown['Top1']} "
        f"(difference "
        f"{said_ends(ends.low, ends.high, signed=True)} points){manual}"
    )


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
    theirs = rows.assign(run="published", value=rows["published"], low=np.nan, high=np.nan)
    marks = pd.concat([rows.assign(run="ours"), theirs]).dropna(subset="value", ignore_index=True)
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
    n = len(choice.study.test)
    draw_headline(
        f"On the {n:,} test facts of {choice.study.relation.name} {one} has the highest P@1, "
        f"{percent(values[best])} % (K chosen on the same facts), the {mean} mean of {every}",
        help=explain("Log-linear and linear"),
        key="headline curve",
    )
    hits = np.round(np.array(values) * n).astype(np.int64)
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


MOST_SLIDERS = 8
Floats = NDArray[np.float32]


def starting_weights(choice: PromptsChoice, start: str) -> Floats:
    """Return the weights that the sliders begin with, float32 [prompt of the pool]."""
    study = choice.study
    members = list(choice.eligible)
    weights = np.zeros(len(study.pool.entries), np.float32)
    found = study.ensemble(choice.combination, "optimised")
    if start == "optimised" and found is not None:
        return found[0].weights
    k = {"top1": 1, "top3": 3}.get(start, len(members))
    weights[members] = top_k_weights(study.train_accuracies[members], k)
    return weights


def _draw_sliders(choice: PromptsChoice) -> None:
    """Draw sliders for the prompts with the largest weights, and P@1 with the chosen weights."""
    study = choice.study
    start = pick(
        "Begin with",
        ("optimised", "top1", "top3", "equal"),
        key="start",
        help="**optimised**: the fitted weights. **top1**, **top3**: the best prompts on the "
        "training facts, equally weighted. **equal**: all prompts, equally weighted.",
    )
    first = starting_weights(choice, start)
    order = np.argsort(-first - 1e-3 * study.train_accuracies, kind="stable")
    shown = [int(number) for number in order if int(number) in choice.eligible][:MOST_SLIDERS]
    sliders, result = st.columns([3, 2], gap="large")
    weights = np.zeros_like(first)
    with sliders:
        for position, number in enumerate(shown):
            weights[number] = st.slider(
                plain(study.pool.prompts[number].template),
                0,
                100,
                round(100 * float(first[number])),
                format="%d",
                key=f"weight{position}-{study.relation.name}-{choice.combination}-{start}",
                bind=BOUND,
                help=f"P@1 on training facts: {percent(study.train_accuracies[number])} %",
            )
        if rest := len(choice.eligible) - len(shown):
            st.caption(f"The other {rest} prompts have weight 0.")
    with result:
        if weights.sum():
            _draw_accuracy(choice, weights / weights.sum())
        else:
            st.info("Give at least one prompt a weight above 0.", icon=":material/tune:")


def _draw_accuracy(choice: PromptsChoice, weights: Floats) -> None:
    """Draw P@1 with these weights, optimised weights, the best prompt alone, and equal weights."""
    study = choice.study
    own = study.judge(weights)
    accuracy = float(own.correct.mean())
    shares = {
        title: percentage(study.judge(starting_weights(choice, start)).correct.mean(), 6)
        for title, start in (("optimised",) * 2, ("best prompt", "top1"), ("equal",) * 2)
    }
    gain = percentage(accuracy, 6) - shares["optimised"]
    st.metric(
        "P@1 of your weights",
        f"{percent(accuracy)} %",
        f"{fixed(gain, 1, signed=True)} points compared with optimised"
        if abs(gain) >= 0.05
        else None,
    )
    draw_table(
        pd.DataFrame({"weights": title, "P@1": rounded(one, 1)} for title, one in shares.items()),
        column_config={
            "P@1": st.column_config.ProgressColumn(
                "P@1 on the same facts", format="%.1f %%", min_value=0, max_value=100
            )
        },
    )
    unsure = int((~own.certain).sum())
    st.caption(
        f"{len(own.correct):,} test facts, {study.ranking} ranking; log-linear: the weighted mean "
        "of log-probabilities."
        + f" For {unsure} of them, a word outside the {study.shortlist.n_kept} stored candidates "
        "could have the highest score." * bool(unsure)
    )
    table = pd.DataFrame({"prompt": study.pool.templates, "weight": weights.astype(float)})
    table = table[table["weight"] > 0]
    by_prompt = dict(zip(table["prompt"], table["weight"].round(6), strict=True))
    draw_export(
        "weights",
        lambda: table,
        {**choice.made(), "p_at_1": accuracy},
        "import numpy as np\nfrom lama_core.probes.prompts.spec import find_study\n\n"
        f'study = find_study("{choice.info.id}").relation({choice.study.relation.name!r})\n'
        f"weights = {by_prompt!r}\n"
        "given = [weights.get(template, 0) for template in study.pool.templates]\n"
        "study.judge(np.array(given, np.float32)).correct.mean()",
    )
