"""The Compare tab of Results: the paired difference of two runs on the same facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core import metrics
from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.metrics.comparison import (
    CompareRequest,
    Comparison,
    Difference,
    MeanDifference,
    what_differs,
)
from lama_core.metrics.fact_answers import join_answers
from lama_core.metrics.intervals import (
    METHOD_OF_DIFFERENCES,
    METHOD_OF_MEAN_DIFFERENCES,
    Interval,
)
from lama_core.metrics.slices import slice_differences
from lama_core.rounding import fixed, percent
from lama_core.runs.alignment import align, differing_candidates
from lama_core.runs.find import RunListing
from lama_core.runs.info import Run, RunInfo
from pages.ui.results.draw_view import open_facts
from pages.ui.results.slices import shown_slicing
from pages.ui.shared import cache, charts, links
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import counted, draw_headline, plain, show_note
from pages.ui.shared.run_choice import RunChoice, draw_comparison_basis, run_names
from pages.ui.shared.url_state import BOUND, title_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

Points = list[dict[str, Any]]
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


@dataclass(frozen=True)
class Pair:
    """The runs A and B, with their titles on screen and their colours in charts."""

    runs: tuple[RunInfo, RunInfo]
    titles: tuple[str, str]
    colours: tuple[str, str]

    def show(self, figure: "go.Figure", choice: RunChoice, key: str, suffix: str = "") -> Points:
        """Draw a chart of differences and return the clicked points; suffix: end of the title."""
        a, b = self.titles
        return charts.draw_chart(
            figure,
            key,
            title=f"P@{choice.k} of {b} (B) minus {a} (A){suffix}",
            footnote=f"{choice.ranking} ranking",
            picture=choice.picture,
        )


def draw_comparison(choice: RunChoice, listing: RunListing) -> Sequence[RunInfo] | None:
    """Draw runs A and B compared overall, by relation and by slice; return A and B."""
    pair = _choose_pair(choice, listing)
    if pair is None:
        return None
    try:
        found: Comparison = cache.table_of_runs(
            "comparison",
            pair.runs,
            choice.ranking,
            choice.relations,
            lambda runs: _compare(runs, choice),
            choice.k,
        )
    except UserError as error:
        show_note(
            f"{plain(str(error))} Choose two runs on the same facts, or start another on the page "
            "**Data and runs**."
        )
        return pair.runs
    draw_headline(metrics.paired_headline(found, pair.titles, k=choice.k))
    if note := what_differs(*(run.info for run in cache.aligned(pair.runs))):
        st.warning(note, icon=":material/balance:")
    _draw_flips(choice, pair, found)
    _draw_tests(found)
    table = pd.DataFrame(
        [
            {
                "relation": line.relation,
                "label": choice.labels.get(line.relation, line.relation),
                "n": line.n,
                "a": line.a,
                "b": line.b,
                "difference": line.difference,
                "low": line.interval.low,
                "high": line.interval.high,
                "only_a": line.only_a,
                "only_b": line.only_b,
            }
            for line in found.relations
        ]
    )
    points = pair.show(
        charts.differences(
            table.sort_values("difference", kind="stable"),
            pair.titles,
            pair.colours,
            k=choice.k,
            unit=found.units,
        ),
        choice,
        "difference chart",
    )
    st.caption(
        f"On the {found.over_facts.n:,} {found.units} of "
        f"{counted(found.over_relations.n, 'relation')} that both are scored on. Whiskers: 95 % "
        "intervals. Filled point: the interval excludes 0. Click a relation to see the facts where "
        "the runs differ.",
        help=f"Interval: {METHOD_OF_DIFFERENCES}.",
    )
    for point in points:
        relation = point["customdata"][0]
        ahead = 1 if float(point["x"]) >= 0 else 0
        _open_flips(choice, pair, ahead, [choice.labels.get(relation, relation)])
    draw_comparison_basis(choice.with_runs(pair.runs))
    a, b = (run.id for run in pair.runs)
    draw_export(
        "comparison",
        lambda: table,
        choice.made() | {"a": a, "b": b} | _tests(found),
        CompareRequest(a, b, choice.ranking, choice.k, choice.relations),
    )
    _draw_slices(choice, pair)
    return pair.runs


def _choose_pair(choice: RunChoice, listing: RunListing) -> Pair | None:
    """Choose runs A and B, by default the first two; return None without two different runs."""
    dataset = choice.runs[0].dataset
    by_id = {run.id: run for run in choice.runs}
    for run in sorted(listing, key=lambda run: run.dataset != dataset):
        by_id.setdefault(run.id, run)
    if len(by_id) < 2:
        show_note("A comparison needs two runs: start another on the page **Data and runs**.")
        return None
    first, second, *_ = ids = list(by_id)
    titles = dict(zip(ids, run_names(list(by_id.values()), show=title_of), strict=True))
    with st.container(key="pair"):  # style.css hides it on phones, like the choice of runs
        left, right = st.columns(2)
    a = _choose_run("A", "run_a", titles, first, left)
    b = _choose_run("B", "run_b", titles, second, right)
    if a == b:
        show_note("A and B are the same run: choose another.")
        return None
    listed = {run.id: run for run in listing}
    runs = (listed[a], listed[b])
    title_a, title_b = run_names(runs, show=title_of)
    return Pair(runs, (title_a, title_b), run_colours(choice, runs))


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


def _draw_slices(choice: RunChoice, pair: Pair) -> None:
    """Draw the difference on slices of the facts, by the selected slicing."""
    st.markdown("### On slices of the facts")
    table = cache.table_of_runs(
        "differences",
        pair.runs,
        choice.ranking,
        choice.relations,
        lambda runs: slice_differences(
            join_answers(runs, ranking=choice.ranking), k=choice.k, relations=choice.relations
        ),
        choice.k,
    )
    ways = [str(name) for name in dict.fromkeys(table["by"]) if name != "all"]
    by = st.selectbox(
        "Slice by", ways, key="differ_by", bind=BOUND, width=320, format_func=shown_slicing
    )
    shown = table[table["by"] == by]
    shown = shown.assign(relation=shown["slice"], label=shown["slice"])
    pair.show(
        charts.differences(
            shown, pair.titles, pair.colours, k=choice.k, unit="facts", rows="slice"
        ),
        choice,
        "slice difference chart",
        f", by {shown_slicing(by)}",
    )
    st.caption(
        "P@k over all facts of a slice, not averaged by relation. Whiskers: 95 % intervals.",
        help=f"Interval: {METHOD_OF_DIFFERENCES}.",
    )
    a, b = (run.id for run in pair.runs)
    request = CompareRequest(a, b, choice.ranking, choice.k, choice.relations, slices=True)
    draw_export("slice differences", lambda: table, choice.made(), request)


def _compare(runs: list[Run], choice: RunChoice) -> Comparison:
    """Compare two runs, aligned first if their candidates differ."""
    a, b = align(runs) if differing_candidates([run.info for run in runs]) else runs
    return metrics.compare(
        a, b, ranking=choice.ranking, k=choice.k, relations=choice.relations or None
    )


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


def _draw_flips(choice: RunChoice, pair: Pair, found: Comparison) -> None:
    """Draw links to the facts that only A, or only B, gets right."""
    with st.container(horizontal=True, key="ways"):
        for ahead, n in enumerate((found.mcnemar.only_a, found.mcnemar.only_b)):
            label = f"{counted(n, found.unit)} that only {plain(pair.titles[ahead])} gets right"
            if st.button(label, icon=":material/list:", type="tertiary", disabled=not n):
                _open_flips(choice, pair, ahead, None)


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
        f"B minus A over {whole.n:,} {unit}",
        _points(whole.difference),
        help=FACTS_HELP.format(unit=unit, method=METHOD_OF_DIFFERENCES),
    )
    cells[0].caption(
        f"{percent(whole.a)} → {percent(whole.b)} %; 95 % interval {_ends(whole.interval)}. "
        f"McNemar's test over the {unit}: p {_p_value(test.p)} "
        f"(right only in A: {test.only_a:,}, only in B: {test.only_b:,})"
    )
    cells[1].metric(
        f"B minus A over {counted(mean.n, 'relation')}",
        _points(mean.difference),
        help=RELATIONS_HELP.format(method=METHOD_OF_MEAN_DIFFERENCES),
    )
    cells[1].caption(
        f"mean {percent(mean.a)} → {percent(mean.b)} %; 95 % interval {_ends(mean.interval)}. "
        + (
            "No test over relations: it needs several relations with different differences"
            if mean.p != mean.p
            else f"For other relations: {_ends(mean.sample_interval)}; Student's t over the "
            f"relations: p {_p_value(mean.p)}"
        )
        + f" (A ahead in {mean.ahead_a:,}, B in {mean.ahead_b:,}, equal in {mean.equal:,})"
    )
    cells[2].metric("Same first answer", f"{percent(agreed.same_first)} %")
    cells[2].caption(
        f"both right {percent(agreed.both_right)} %, both wrong {percent(agreed.both_wrong)} %"
    )
    cells[3].metric("Cohen's kappa of right answers", fixed(agreed.kappa, 2), help=explain("Kappa"))
    if found.n_unpaired:
        excluded = counted(found.n_unpaired, "row")
        cells[3].caption(f"excluded: {excluded} that only one run is scored on")


def _open_flips(choice: RunChoice, pair: Pair, ahead: int, relations: list[str] | None) -> None:
    """Open the facts that run `ahead` (0: A, 1: B) gets right and the other run gets wrong."""
    names = run_names(pair.runs)
    params: dict[str, Any] = {"data": pair.runs[0].dataset, "of": names[1 - ahead]}
    params |= {"right": [names[ahead]], "wrong": [names[1 - ahead]]}
    if relations is not None:
        params["relations"] = relations
    open_facts(choice.with_runs(pair.runs), **params)


def _points(difference: float) -> str:
    return f"{percent(difference, signed=True)} points"


def _ends(interval: Interval) -> str:
    return f"{percent(interval.low, signed=True)} to {percent(interval.high, signed=True)}"


def _p_value(p: float) -> str:
    return f"= {fixed(p, 3)}" if p >= 0.001 else "< 0.001"
