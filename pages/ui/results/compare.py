"""The Compare tab of Results: the paired difference of two runs on the same facts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core import metrics, tables
from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.metrics.comparison import CompareRequest, Comparison
from lama_core.metrics.intervals import (
    METHOD_OF_DIFFERENCES,
    METHOD_OF_MEAN_DIFFERENCES,
    Interval,
)
from lama_core.rounding import fixed, percent
from lama_core.runs.find import RunListing
from lama_core.runs.info import RunInfo
from lama_core.views.colours import run_colours
from lama_core.views.compare import Compared, compare, seen_in_training
from lama_core.views.slices import slice_label, slicing_label
from lama_core.views.view import Facts, Shown
from pages.ui.results.draw_view import draw_shown, draw_view_export, open_behind
from pages.ui.shared import cache, links
from pages.ui.shared.messages import counted, draw_headline, errors_shown, plain, show_note
from pages.ui.shared.run_choice import RunChoice, draw_comparison_basis, run_titles
from pages.ui.shared.url_state import BOUND

MOST_LEADS = 10  # of each run in the chart, until the user wants all
ONE_AHEAD = (
    "the facts that only the leading model gets right, and from there those that only the other "
    "gets right."
)


ShownPair = Shown[CompareRequest, Compared]


def draw_comparison(choice: RunChoice, listing: RunListing) -> Sequence[RunInfo] | None:
    """Draw runs A and B compared overall, by relation and by slice; return A and B."""
    pair = _choose_pair(choice, listing)
    if pair is None:
        return None
    try:
        shown = _compared(pair)
    except UserError as error:
        show_note(
            f"{plain(str(error))} Choose two runs on the same facts, or start another on the page "
            "**Data and runs**."
        )
        return pair.runs
    found, (a, b), (title_a, title_b) = shown.found.whole, pair.exact, run_titles(pair.runs)
    draw_headline(metrics.paired_headline(found, (title_a, title_b), k=choice.k))
    caveats = st.container()
    aligned = tuple(run.info for run in cache.aligned(pair.runs))
    if all(run.exact_to is None for run in aligned):  # else the basis below says so
        for note in shown.notes:
            st.warning(note, icon=":material/balance:")
    with st.container(horizontal=True, key="ways"):
        for n, title, right, wrong in (
            (found.over_facts.only_a, title_a, a, b),
            (found.over_facts.only_b, title_b, b, a),
        ):
            if n and st.button(
                f"{counted(n, found.unit)} that only {plain(title)} gets right",
                icon=":material/list:",
                type="tertiary",
            ):
                open_behind(pair, Facts(wrong, right=(right,), wrong=(wrong,)))
    _draw_tests(found)
    defaults = run_colours(pair.runs)
    ink_a, ink_b = (choice.colours.get(name, default) for name, default in defaults.items())
    # As in the other charts, if the runs are in them.
    inks = {"a": ink_a, "b": ink_b if ink_b != ink_a else defaults[b]}
    figure = shown.figure
    rows, changed, said = figure.frame, dict[str, Any](), "Filled point: the interval excludes 0."
    clear = rows[~rows["unsure"]]
    if (
        len(rows) > 2 * MOST_LEADS
        and len(clear)
        and not st.toggle(
            f"All {len(rows)} relations",
            key="every_lead",
            bind=BOUND,
            help=f"Otherwise up to {MOST_LEADS} relations in which each run is most clearly ahead.",
        )
    ):  # rows are sorted by the difference
        drawn = pd.concat(
            (
                clear[clear["difference"] < 0].head(MOST_LEADS),
                clear[clear["difference"] > 0].tail(MOST_LEADS),
            )
        )
        said = f"Not drawn: {counted(len(rows) - len(clear), 'relation')} without a clear lead" + (
            f", {len(clear) - len(drawn):,} with a smaller one." if len(drawn) < len(clear) else "."
        )
        title = f"{figure.title}, the largest clear leads of each, at most {MOST_LEADS}"
        changed = {"frame": drawn, "title": title}
    seen = draw_shown(pair, shown, "difference chart", inks, **changed)
    st.caption(
        f"Whiskers: 95 % intervals. {said} Click a relation to see {ONE_AHEAD}",
        help=f"Interval: {METHOD_OF_DIFFERENCES}.",
    )
    draw_comparison_basis(replace(pair, runs=aligned))
    made = {"a": a, "b": b, "intervals": f"95 %, {METHOD_OF_DIFFERENCES}"} | {
        unit: {name: tables.plain(value) for name, value in shown.to_json()[unit].items()}
        for unit in ("over_facts", "over_relations")
    }
    draw_view_export(pair, shown, name="comparison", made=made, figure=seen)
    with errors_shown():
        _draw_slices(pair, inks, caveats)
    return pair.runs


def _compared(pair: RunChoice, *, slices: bool = False) -> ShownPair:
    """Return the comparison of the two runs of a choice, by relation or on slices."""
    a, b = pair.exact
    return pair.view(compare, run_a=a, run_b=b, ranking=pair.ranking, slices=slices)


def _choose_pair(choice: RunChoice, listing: RunListing) -> RunChoice | None:
    """Choose runs A and B, by default the best two, the better one as B.

    Returns None without two different runs.
    """

    def place(run: RunInfo) -> tuple[bool, list[str]]:  # step2 before step16
        parts = [f"{one:>9}" for one in re.findall(r"[0-9]+|[^0-9]+", run.id)]
        return run.dataset != choice.runs[0].dataset, parts

    by_id = {run.id: run for run in choice.runs}
    by_id |= {run.id: run for run in sorted(listing, key=place) if run.id not in by_id}
    if len(by_id) < 2:
        show_note("A comparison needs two runs: start another on the page **Data and runs**.")
        return None
    listed = {run.id: run for run in listing}

    titles = dict(zip(by_id, run_titles(list(by_id.values())), strict=True))
    ranked = choice.runs if len(choice.runs) > 1 else tuple(by_id.values())[:2]
    scores = [np.nan_to_num(cache.precision_of(run)[1], nan=-1.0) for run in ranked]
    second, first = (ranked[at].id for at in np.argsort(scores)[:-3:-1])
    with st.container(key="pair"):  # style.css hides it on phones, like the choice of runs
        left, right = st.columns(2)
    a = _choose_run("A (baseline)", "run_a", titles, first, left)
    b = _choose_run("B", "run_b", titles, second, right)
    if a == b:
        show_note("A and B are the same run: choose another.")
        return None
    return replace(choice.with_runs([listed[a], listed[b]]), data=listed[a].dataset)


def _choose_run(
    label: str, key: str, titles: Mapping[str, str], first: str, place: DeltaGenerator
) -> str:
    """Draw the choice of a run by title; return the run's id, which the URL contains."""
    requested, widget = st.query_params.get(key), f"{key} shown"
    if requested in titles and links.is_new_url():
        st.session_state[widget] = requested
    elif st.session_state.get(widget) not in titles:
        st.session_state[widget] = first
    chosen = place.selectbox(label, list(titles), key=widget, format_func=titles.__getitem__)
    links.set_param(key, [chosen])
    return chosen


def _draw_slices(pair: RunChoice, inks: Mapping[str, str], caveats: DeltaGenerator) -> None:
    """Draw the difference on slices of the facts, by the selected slicing.

    caveats: where to say which facts were in the training text.
    """
    st.markdown("### On slices of the facts")
    every = _compared(pair, slices=True)
    if in_text := seen_in_training(every):
        caveats.caption(in_text)
    ways = [str(name) for name in dict.fromkeys(every.frame["by"]) if name != "all"]
    by = st.selectbox(
        "Slice by", ways, key="differ_by", bind=BOUND, width=320, format_func=slicing_label
    )
    table = every.frame[every.frame["by"].isin(("all", by))]
    shown = replace(every, found=replace(every.found, table=table))
    figure = shown.figure
    rows = figure.frame[figure.frame["by"] == by]
    seen = draw_shown(
        pair,
        shown,
        "slice difference chart",
        inks,
        frame=rows.assign(row=[slice_label(by, name) for name in rows["slice"]]),
        by=replace(figure.by, title=slicing_label(by)),
        title=f"{figure.title}, by {slicing_label(by)}",
    )
    st.caption(
        f"{slicing_label(by).capitalize()}: {every.found.slicings[by].help} P@{pair.k} "
        "over all facts of a slice, not averaged by relation. Whiskers: 95 % intervals. Click "
        f"a slice to see {ONE_AHEAD}",
        help=f"Interval: {METHOD_OF_DIFFERENCES}.",
    )
    draw_view_export(pair, every, name="slice differences", figure=seen)


def _draw_tests(found: Comparison) -> None:
    """Draw the differences over facts and relations with interval and test, and the agreement."""
    whole, mean, agreed = found.over_facts, found.over_relations, found.agreement
    unit = found.units
    cells = st.columns(4)
    cells[0].metric(
        f"B minus A over {counted(mean.n, 'relation')}",
        _points(mean.difference),
        help="Mean of the relations' differences; all relations have the same weight, as in LAMA's "
        f"tables. The first interval is for these relations: {METHOD_OF_MEAN_DIFFERENCES}. The "
        "second interval and the test are for other relations of the same kind: Student's t, with "
        "the relations as a sample. With few relations this interval is wide.",
    )
    cells[0].caption(
        f"mean {percent(mean.a)} → {percent(mean.b)} %; 95 % interval {_ends(mean.interval)}. "
        + (
            "No test over relations: it needs several relations with different differences"
            if mean.p != mean.p
            else "For relations not in this data"
            + ", the lead isn't certain" * mean.sample_interval.includes_zero
            + ": "
            f"{_ends(mean.sample_interval)}; Student's t over the relations: p {_p_value(mean.p)}"
        )
        + f" (A ahead in {mean.ahead_a:,}, B in {mean.ahead_b:,}, equal in {mean.equal:,})"
    )
    cells[1].metric(
        f"B minus A over {whole.n:,} {unit}",
        _points(whole.difference),
        help=f"All {unit} have the same weight. Interval: {METHOD_OF_DIFFERENCES}. p is from "
        "McNemar's exact test: the probability of a split at least this uneven if each of the "
        f"{unit} that only one run gets right were equally likely to favour A or B.",
    )
    cells[1].caption(
        f"{percent(whole.a)} → {percent(whole.b)} %; 95 % interval {_ends(whole.interval)}. "
        f"McNemar's test over the {unit}: p {_p_value(found.mcnemar)} "
        f"(right only in A: {whole.only_a:,}, only in B: {whole.only_b:,})"
    )
    same = agreed.same_first
    cells[2].metric("Same first answer", f"{percent(same)} %" if same == same else "unknown")
    cells[2].caption(
        f"not known for {agreed.n_unknown:,} of {whole.n:,} {unit}"
        if agreed.n_unknown
        else f"same and right {percent(agreed.same_right)} %, same and wrong "
        f"{percent(same - agreed.same_right)} %"
    )
    kappa = fixed(agreed.kappa, 2) if agreed.kappa == agreed.kappa else "undefined"
    cells[3].metric("Cohen's kappa of right answers", kappa, help=explain("Kappa"))
    cells[3].caption(
        f"both right {percent(agreed.both_right)} %, both wrong {percent(agreed.both_wrong)} %"
    )
    if found.n_unpaired:
        cells[3].caption(
            f"excluded: {counted(found.n_unpaired, 'row')} that only one run is scored on"
        )


def _points(difference: float) -> str:
    return f"{percent(difference, signed=True)} points"


def _ends(interval: Interval) -> str:
    return f"{percent(interval.low, signed=True)} to {percent(interval.high, signed=True)}"


def _p_value(p: float) -> str:
    return f"= {fixed(p, 3)}" if p >= 0.001 else "< 0.001"
