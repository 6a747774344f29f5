"""The Compare tab of Results: the paired difference of two runs on the same facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core import metrics
from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.metrics.comparison import CompareRequest, Comparison, Difference, MeanDifference
from lama_core.metrics.intervals import (
    METHOD_OF_DIFFERENCES,
    METHOD_OF_MEAN_DIFFERENCES,
    Interval,
)
from lama_core.rounding import fixed, percent
from lama_core.runs.find import RunListing
from lama_core.runs.info import RunInfo
from lama_core.views.compare import Compared, compare
from lama_core.views.slices import slicing_label
from lama_core.views.view import Facts, Shown
from pages.ui.results.draw_view import draw_shown, draw_view_export, open_behind
from pages.ui.shared import cache, links
from pages.ui.shared.messages import counted, draw_headline, plain, show_note
from pages.ui.shared.run_choice import RunChoice, draw_comparison_basis, run_names, run_titles
from pages.ui.shared.url_state import BOUND

FACTS_HELP = (
    "All {unit} have the same weight. Interval: {method}. p is from McNemar's exact test: the "
    "probability of a split at least this uneven if each of the {unit} that only one run gets "
    "right were equally likely to favour A or B."
)
RELATIONS_HELP = (
    "Mean of the relations' differences; all relations have the same weight, as in LAMA's tables. "
    "The first interval is for these relations: {method}. The second interval and the test are for "
    "other relations of the same kind: Student's t, with the relations as a sample. With few "
    "relations this interval is wide."
)
_UNSURE = ", the lead isn't certain"
MOST_LEADS = 10  # of each run in the chart, until the user wants all
ONE_AHEAD = (
    "the facts that only the leading model gets right, and from there those that only the other "
    "gets right."
)


@dataclass(frozen=True)
class RunPair:
    """The runs A and B, with their titles on screen and their colours in charts.

    choice: The choice with these runs instead.
    """

    choice: RunChoice
    runs: tuple[RunInfo, RunInfo]
    titles: tuple[str, str]
    colours: tuple[str, str]

    def view(self, *, slices: bool = False) -> Shown[CompareRequest, Compared]:
        """The comparison, by relation or on slices."""
        a, b = (run.id for run in self.runs)
        ranking = self.choice.ranking
        return self.choice.view(compare, run_a=a, run_b=b, ranking=ranking, slices=slices)

    def draw(self, shown: Shown[CompareRequest, Compared], key: str, **changed: Any) -> None:
        """Draw a chart of differences in the runs' colours; a click on a mark opens its facts."""
        inks = dict(zip("ab", self.colours, strict=True))
        draw_shown(self.choice, shown, key, inks, **changed)


def draw_comparison(choice: RunChoice, listing: RunListing) -> Sequence[RunInfo] | None:
    """Draw runs A and B compared overall, by relation and by slice; return A and B."""
    pair = _choose_pair(choice, listing)
    if pair is None:
        return None
    try:
        shown = pair.view()
    except UserError as error:
        show_note(
            f"{plain(str(error))} Choose two runs on the same facts, or start another on the page "
            "**Data and runs**."
        )
        return pair.runs
    found = shown.found.whole
    draw_headline(metrics.paired_headline(found, pair.titles, k=choice.k))
    aligned = tuple(run.info for run in cache.aligned(pair.choice.runs))
    if all(run.exact_to is None for run in aligned):  # else the basis below says so
        for note in shown.notes:
            st.warning(note, icon=":material/balance:")
    with st.container(horizontal=True, key="ways"):
        for ahead, n in enumerate((found.mcnemar.only_a, found.mcnemar.only_b)):
            label = f"{counted(n, found.unit)} that only {plain(pair.titles[ahead])} gets right"
            if n and st.button(label, icon=":material/list:", type="tertiary"):
                right, wrong = pair.runs[ahead].id, pair.runs[1 - ahead].id
                open_behind(pair.choice, Facts(wrong, right=(right,), wrong=(wrong,)))
    _draw_tests(found)
    figure = shown.figure
    rows = _largest(figure.frame)
    most = f", the {MOST_LEADS} largest leads of each" * (len(rows) < len(figure.frame))
    pair.draw(shown, "difference chart", frame=rows, title=figure.title + most)
    st.caption(
        "Whiskers: 95 % intervals. Filled point: the interval excludes 0. "
        f"Click a relation to see {ONE_AHEAD}",
        help=f"Interval: {METHOD_OF_DIFFERENCES}.",
    )
    draw_comparison_basis(replace(pair.choice, runs=aligned))
    a, b = (run.id for run in pair.runs)
    draw_view_export(pair.choice, shown, name="comparison", made={"a": a, "b": b} | _tests(found))
    _draw_slices(pair)
    return pair.runs


def _largest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the largest leads of each run, unless there are few or all are wanted.

    rows: sorted by the column `difference`.
    """
    if len(rows) <= 2 * MOST_LEADS or st.toggle(
        f"All {len(rows)} relations",
        key="every_lead",
        bind=BOUND,
        help=f"Otherwise the {MOST_LEADS} relations in which each run is most ahead.",
    ):
        return rows
    return pd.concat([rows[rows["difference"] < 0].head(MOST_LEADS),
                      rows[rows["difference"] > 0].tail(MOST_LEADS)])  # fmt: skip


def _choose_pair(choice: RunChoice, listing: RunListing) -> RunPair | None:
    """Choose runs A and B, by default the first two, the better one as B.

    Returns None without two different runs.
    """
    dataset = choice.runs[0].dataset
    by_id = {run.id: run for run in choice.runs}
    for run in sorted(listing, key=lambda run: run.dataset != dataset):
        by_id.setdefault(run.id, run)
    if len(by_id) < 2:
        show_note("A comparison needs two runs: start another on the page **Data and runs**.")
        return None
    ids = list(by_id)
    listed = {run.id: run for run in listing}
    first, second = _better_last(_pair_of(choice, (listed[ids[0]], listed[ids[1]])))
    titles = dict(zip(ids, run_titles(list(by_id.values())), strict=True))
    with st.container(key="pair"):  # style.css hides it on phones, like the choice of runs
        left, right = st.columns(2)
    a = _choose_run("A (baseline)", "run_a", titles, first, left)
    b = _choose_run("B", "run_b", titles, second, right)
    if a == b:
        show_note("A and B are the same run: choose another.")
        return None
    return _pair_of(choice, (listed[a], listed[b]))


def _pair_of(choice: RunChoice, runs: tuple[RunInfo, RunInfo]) -> RunPair:
    title_a, title_b = run_titles(runs)
    chosen = replace(choice.with_runs(runs), data=runs[0].dataset)
    return RunPair(chosen, runs, (title_a, title_b), run_colours(choice, runs))


def _better_last(pair: RunPair) -> tuple[str, str]:
    """Return the runs' ids in an order in which B minus A isn't negative, if they have one."""
    a, b = (run.id for run in pair.runs)
    try:
        difference = pair.view().found.whole.over_relations.difference
    except UserError:  # without facts in common, the page says so
        return a, b
    return (b, a) if difference < 0 else (a, b)


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


def _draw_slices(pair: RunPair) -> None:
    """Draw the difference on slices of the facts, by the selected slicing."""
    st.markdown("### On slices of the facts")
    try:
        every = pair.view(slices=True)
    except UserError as error:
        show_note(plain(str(error)))
        return
    ways = [str(name) for name in dict.fromkeys(every.frame["by"]) if name != "all"]
    by = st.selectbox(
        "Slice by", ways, key="differ_by", bind=BOUND, width=320, format_func=slicing_label
    )
    table = every.frame
    found = replace(every.found, table=table[table["by"].isin(("all", by))])
    shown = replace(every, found=found)
    figure = shown.figure
    rows = figure.frame[figure.frame["by"] == by]
    pair.draw(
        shown,
        "slice difference chart",
        frame=rows.assign(row=rows["slice"]),
        by=replace(figure.by, title=slicing_label(by)),
        title=f"{figure.title}, by {slicing_label(by)}",
    )
    st.caption(
        f"{slicing_label(by).capitalize()}: {every.found.slicings[by].help} P@{pair.choice.k} "
        "over all facts of a slice, not averaged by relation. Whiskers: 95 % intervals. Click "
        f"a slice to see {ONE_AHEAD}",
        help=f"Interval: {METHOD_OF_DIFFERENCES}.",
    )
    draw_view_export(pair.choice, every, name="slice differences")


def _tests(found: Comparison) -> dict[str, object]:
    """Return the differences over facts and over relations with interval and test, for exports."""
    mean = found.over_relations
    ahead = {"ahead_a": mean.ahead_a, "ahead_b": mean.ahead_b, "equal": mean.equal}
    return {
        "intervals": f"95 %, {METHOD_OF_DIFFERENCES}",
        "over_facts": _test(found.unit, found.over_facts, "McNemar, exact", found.mcnemar.p),
        "over_relations": _test("relation", mean, "Student's t", mean.p)
        | _known({f"sample_{end}": getattr(mean.sample_interval, end) for end in ("low", "high")})
        | ahead,
    }


def _test(unit: str, found: Difference | MeanDifference, test: str, p: float) -> dict[str, object]:
    """Return a difference with interval and test; NaN becomes None."""
    record: dict[str, object] = {"unit": unit, "n": found.n, "difference": found.difference}
    ends = _known({"low": found.interval.low, "high": found.interval.high})
    return record | ends | {"test": test} | _known({"p": p})


def _known(numbers: dict[str, float]) -> dict[str, object]:
    return {name: None if value != value else value for name, value in numbers.items()}


def run_colours(choice: RunChoice, pair: tuple[RunInfo, RunInfo]) -> tuple[str, str]:
    """Return the colours of the two runs, as in the other charts if the runs are in them."""
    both = RunChoice(pair, run_names(pair), "", "", (), (), (), 1, "filtered", "png")
    defaults = list(both.colours.values())
    known = dict(zip([run.id for run in choice.runs], choice.colours.values(), strict=True))
    a, b = (known.get(run.id, default) for run, default in zip(pair, defaults, strict=True))
    return a, b if b != a else defaults[1]


def _draw_tests(found: Comparison) -> None:
    """Draw the differences over facts and relations with interval and test, and the agreement."""
    whole, mean, test, agreed = (
        found.over_facts,
        found.over_relations,
        found.mcnemar,
        found.agreement,
    )
    unit = found.units
    cells = st.columns(4)
    cells[0].metric(
        f"B minus A over {counted(mean.n, 'relation')}",
        _points(mean.difference),
        help=RELATIONS_HELP.format(method=METHOD_OF_MEAN_DIFFERENCES),
    )
    cells[0].caption(
        f"mean {percent(mean.a)} → {percent(mean.b)} %; 95 % interval {_ends(mean.interval)}. "
        + (
            "No test over relations: it needs several relations with different differences"
            if mean.p != mean.p
            else f"For relations not in this data{_UNSURE * mean.sample_interval.includes_zero}: "
            f"{_ends(mean.sample_interval)}; Student's t over the relations: p {_p_value(mean.p)}"
        )
        + f" (A ahead in {mean.ahead_a:,}, B in {mean.ahead_b:,}, equal in {mean.equal:,})"
    )
    cells[1].metric(
        f"B minus A over {whole.n:,} {unit}",
        _points(whole.difference),
        help=FACTS_HELP.format(unit=unit, method=METHOD_OF_DIFFERENCES),
    )
    cells[1].caption(
        f"{percent(whole.a)} → {percent(whole.b)} %; 95 % interval {_ends(whole.interval)}. "
        f"McNemar's test over the {unit}: p {_p_value(test.p)} "
        f"(right only in A: {test.only_a:,}, only in B: {test.only_b:,})"
    )
    is_known, units = agreed.same_first == agreed.same_first, found.units
    cells[2].metric(
        "Same first answer", f"{percent(agreed.same_first)} %" if is_known else "unknown"
    )
    if agreed.n_unknown:
        cells[2].caption(f"not known for {agreed.n_unknown:,} of {whole.n:,} {units}")
    cells[2].caption(
        f"both right {percent(agreed.both_right)} %, both wrong {percent(agreed.both_wrong)} %"
    )
    kappa = fixed(agreed.kappa, 2) if agreed.kappa == agreed.kappa else "undefined"
    cells[3].metric("Cohen's kappa of right answers", kappa, help=explain("Kappa"))
    if found.n_unpaired:
        excluded = counted(found.n_unpaired, "row")
        cells[3].caption(f"excluded: {excluded} that only one run is scored on")


def _points(difference: float) -> str:
    return f"{percent(difference, signed=True)} points"


def _ends(interval: Interval) -> str:
    return f"{percent(interval.low, signed=True)} to {percent(interval.high, signed=True)}"


def _p_value(p: float) -> str:
    return f"= {fixed(p, 3)}" if p >= 0.001 else "< 0.001"
