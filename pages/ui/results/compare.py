"""Two runs on the same facts: who is ahead, by how much, how surely, and on which facts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core import metrics
from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.metrics.comparison import CompareRequest, Comparison, what_differs
from lama_core.metrics.fact_answers import join_answers
from lama_core.metrics.intervals import METHOD_OF_DIFFERENCES, Interval
from lama_core.metrics.slices import slice_differences
from lama_core.rounding import fixed, percent
from lama_core.runs.alignment import align, differing_candidates
from lama_core.runs.find import RunListing
from lama_core.runs.info import Run, RunInfo
from pages.ui.shared import cache, charts, links, screens
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import counted, plain, show_note
from pages.ui.shared.run_choice import RunChoice, draw_same, run_names
from pages.ui.shared.url_state import BOUND, title_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

Points = list[dict[str, Any]]
FACTS_HELP = (
    "Every one of the {unit} counts the same. Interval: {method}. McNemar's exact test: if neither "
    "run were better, each of the {unit} that only one gets right would go to either with "
    "probability 1/2. p is the chance of a split at least as uneven."
)
RELATIONS_HELP = (
    "Every relation counts the same, as in LAMA's tables: the mean of the relations' differences. "
    "Interval and test are Student's t over the relations, taken as a sample: would others show it "
    "too? With few relations the interval is wide."
)


@dataclass(frozen=True)
class Pair:
    """The runs A and B. titles: as people read them. colours: of the charts."""

    runs: tuple[RunInfo, RunInfo]
    titles: tuple[str, str]
    colours: tuple[str, str]

    def show(self, figure: "go.Figure", choice: RunChoice, key: str, of: str = "") -> Points:
        """A chart of the differences; what was clicked. of: what its rows are, for its title."""
        a, b = self.titles
        return charts.show(
            figure,
            key,
            title=f"P@{choice.k} of {b} (B) minus {a} (A){of}",
            footnote=f"{choice.ranking} ranking",
            picture=choice.picture,
        )


def draw_comparison(choice: RunChoice, listing: RunListing) -> None:
    """The tab: choose A and B among all runs, see the difference by relation and where they differ.

    Raises UserError for two runs without a fact in common.
    """
    pair = _choose_pair(choice, listing)
    if pair is None:
        return
    try:
        found: Comparison = cache.of_runs(
            "comparison",
            pair.runs,
            choice.ranking,
            choice.relations,
            lambda both: _compare(both, choice),
            choice.k,
        )
    except UserError as error:
        show_note(
            f"{plain(str(error))} Choose two runs on the same facts, or make another on the page "
            "**Data and runs**."
        )
        return
    with st.container(key="headline"):
        said = plain(metrics.paired_headline(found, pair.titles, k=choice.k))
        st.subheader(said, anchor=False)
    if note := what_differs(*(run.info for run in cache.aligned(pair.runs))):
        st.warning(note, icon=":material/balance:")
    _draw_flips(choice, pair, found)
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
        charts.differences(table, pair.titles, pair.colours, k=choice.k, unit=found.units),
        choice,
        "difference chart",
    )
    st.caption(
        f"On the {found.over_facts.n:,} {found.units} of "
        f"{counted(found.over_relations.n, 'relation')} that both count. Whiskers: 95 % intervals; "
        "filled where the interval excludes 0. Click a relation to see the facts where the runs "
        "differ.",
        help=f"Interval: {METHOD_OF_DIFFERENCES}.",
    )
    for point in points:
        relation = point["customdata"][0]
        ahead = 1 if float(point["x"]) >= 0 else 0
        _to_flips(choice, pair, ahead, [choice.labels.get(relation, relation)])
    draw_same(replace(choice, runs=pair.runs, names=run_names(pair.runs)))
    _draw_tests(found)
    a, b = (run.id for run in pair.runs)
    draw_export(
        "comparison",
        lambda: table,
        choice.made() | {"a": a, "b": b} | _tests(found),
        CompareRequest(a, b, choice.ranking, choice.k, choice.relations),
    )
    _draw_slices(choice, pair)


def _choose_pair(choice: RunChoice, listing: RunListing) -> Pair | None:
    """Runs A and B, at first the first two that are shown; None, with a note, without two."""
    shown = [run.id for run in choice.runs]
    here = choice.runs[0].dataset
    others = sorted(listing, key=lambda run: run.dataset != here)
    runs = [*choice.runs, *(run for run in others if run.id not in shown)]
    if len(runs) < 2:
        show_note("This needs two runs: make another on the page **Data and runs**.")
        return None
    titles = dict(zip([run.id for run in runs], run_names(runs, show=title_of), strict=True))
    with st.container(key="pair"):  # style.css hides it on a telephone with the choice of runs
        left, right = st.columns(2)
    a = _choose_run("A", "run_a", titles, runs[0].id, left)
    b = _choose_run("B", "run_b", titles, runs[1].id, right)
    if a == b:
        show_note("A run does not differ from itself: choose another.")
        return None
    by_id = {run.id: run for run in listing}
    both = (by_id[a], by_id[b])
    first, second = run_names(both, show=title_of)
    return Pair(both, (first, second), run_colours(choice, both))


def _choose_run(
    label: str, key: str, titles: Mapping[str, str], first: str, place: DeltaGenerator
) -> str:
    """A run by its title; its name stands in the address."""
    asked, widget = st.query_params.get(key), f"{key} shown"
    if asked in titles and links.entered():
        st.session_state[widget] = asked
    elif st.session_state.get(widget) not in titles:
        st.session_state[widget] = first
    chosen = place.selectbox(label, list(titles), key=widget, format_func=titles.__getitem__)
    links.put(key, [chosen])
    return chosen


def _draw_slices(choice: RunChoice, pair: Pair) -> None:
    """The difference on slices of the facts, of the way of slicing that is chosen."""
    st.markdown("### On slices of the facts")
    table = cache.of_runs(
        "differences",
        pair.runs,
        choice.ranking,
        choice.relations,
        lambda both: slice_differences(
            join_answers(both, ranking=choice.ranking), k=choice.k, relations=choice.relations
        ),
        choice.k,
    )
    ways = [str(name) for name in dict.fromkeys(table["by"]) if name != "all"]
    by = st.selectbox("Slice by", ways, key="differ_by", bind=BOUND, width=320)
    shown = table[table["by"] == by]
    shown = shown.assign(relation=shown["slice"], label=shown["slice"])
    pair.show(
        charts.differences(
            shown, pair.titles, pair.colours, k=choice.k, unit="facts", rows="slice"
        ),
        choice,
        "slice difference chart",
        f", by {by}",
    )
    st.caption(
        "Each slice over all its facts together. Whiskers: 95 % intervals.",
        help=f"Interval: {METHOD_OF_DIFFERENCES}.",
    )
    a, b = (run.id for run in pair.runs)
    request = CompareRequest(a, b, choice.ranking, choice.k, choice.relations, slices=True)
    draw_export("slice differences", lambda: table, choice.made(), request)


def _compare(both: list[Run], choice: RunChoice) -> Comparison:
    if differing_candidates([run.info for run in both]):
        both = list(align(both))
    return metrics.compare(
        both[0], both[1], ranking=choice.ranking, k=choice.k, relations=choice.relations or None
    )


def _tests(found: Comparison) -> dict[str, object]:
    """Both differences over all relations, each with the interval and the test of its unit."""
    whole, mean = found.over_facts, found.over_relations
    return {
        "intervals": f"95 %, {METHOD_OF_DIFFERENCES}",
        "over_facts": {
            "unit": found.unit,
            "n": whole.n,
            "difference": whole.difference,
            "low": whole.interval.low,
            "high": whole.interval.high,
            "test": "McNemar, exact",
            "p": found.mcnemar.p,
        },
        "over_relations": {
            "unit": "relation",
            "n": mean.n,
            "difference": mean.difference,
            "low": _known(mean.interval.low),
            "high": _known(mean.interval.high),
            "test": "Student's t",
            "p": _known(mean.p),
            "ahead_a": mean.ahead_a,
            "ahead_b": mean.ahead_b,
            "equal": mean.equal,
        },
    }


def _known(value: float) -> float | None:
    return None if value != value else value


def run_colours(choice: RunChoice, pair: tuple[RunInfo, RunInfo]) -> tuple[str, str]:
    """The two runs' colours: as in the other charts, where they are shown there."""
    both = RunChoice(pair, run_names(pair), "", "", (), (), (), 1, "filtered", "png")
    known = dict(zip([run.id for run in choice.runs], choice.colours.values(), strict=True))
    first, second = (
        known.get(run.id, colour) for run, colour in zip(pair, both.colours.values(), strict=True)
    )
    return (first, second if second != first else list(both.colours.values())[1])


def _draw_flips(choice: RunChoice, pair: Pair, found: Comparison) -> None:
    """The two lists of facts where the runs differ."""
    with st.container(horizontal=True, key="ways"):
        for ahead, n in enumerate((found.mcnemar.only_a, found.mcnemar.only_b)):
            label = f"{counted(n, found.unit)} that only {plain(pair.titles[ahead])} gets right"
            if st.button(label, icon=":material/list:", type="tertiary", disabled=not n):
                _to_flips(choice, pair, ahead, None)


def _draw_tests(found: Comparison) -> None:
    """The figures over all facts and over relations, each with its interval and test."""
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
        f"McNemar's test over the {unit}: p {_p_value(test.p)} ({test.only_a:,} that only A gets "
        f"right, {test.only_b:,} only B)"
    )
    cells[1].metric(
        f"B minus A over {counted(mean.n, 'relation')}",
        _points(mean.difference),
        help=RELATIONS_HELP,
    )
    cells[1].caption(
        f"mean {percent(mean.a)} → {percent(mean.b)} %; "
        + (
            "no interval and no test: they need several relations whose differences vary"
            if mean.p != mean.p
            else f"95 % interval {_ends(mean.interval)}. Student's t over the relations: p "
            f"{_p_value(mean.p)} (A ahead in {mean.ahead_a:,}, B in {mean.ahead_b:,}, equal in "
            f"{mean.equal:,})"
        )
    )
    cells[2].metric("Same first answer", f"{percent(agreed.same_first)} %")
    cells[2].caption(
        f"both right {percent(agreed.both_right)} %, both wrong {percent(agreed.both_wrong)} %"
    )
    cells[3].metric("Kappa of being right", fixed(agreed.kappa, 2), help=explain("Kappa"))
    cells[3].caption(f"{counted(found.n_unpaired, 'row')} that only one run counts: excluded")


def _to_flips(choice: RunChoice, pair: Pair, ahead: int, relations: list[str] | None) -> None:
    """Open Wrong answers on the facts that one run gets right and the other wrong."""
    names = run_names(pair.runs)
    params: dict[str, str | list[str]] = {**choice.params(), "models": [], "prompts": ""}
    params |= {"data": pair.runs[0].dataset, "runs": [run.id for run in pair.runs]}
    params |= {"of": names[1 - ahead], "right": [names[ahead]], "wrong": [names[1 - ahead]]}
    if relations is not None:
        params["relations"] = relations
    links.go(screens.RESULTS, {**params, **screens.WRONG_ANSWERS})


def _points(difference: float) -> str:
    return f"{percent(difference, signed=True)} points"


def _ends(interval: Interval) -> str:
    return f"{percent(interval.low, signed=True)} to {percent(interval.high, signed=True)}"


def _p_value(p: float) -> str:
    return f"= {fixed(p, 3)}" if p >= 0.001 else "< 0.001"
