"""Two runs on the same facts: who is ahead, by how much, how surely, and on which facts."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from lama_core import metrics
from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.metrics.answers import join_answers
from lama_core.metrics.comparison import CompareRequest, Comparison, what_differs
from lama_core.metrics.intervals import METHOD_OF_DIFFERENCES, Interval
from lama_core.metrics.slices import slice_differences
from lama_core.rounding import fixed, percent
from lama_core.runs.aligned import align, differing_candidates
from lama_core.runs.find import RunListing
from lama_core.runs.info import Run, RunInfo
from pages.ui.shared import cache, charts, links, screens
from pages.ui.shared.choice import RunChoice, run_names
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import counted, plain, show_note
from pages.ui.shared.state import BOUND

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


def draw_comparison(choice: RunChoice, listing: RunListing) -> None:
    """The tab: choose A and B among all runs, see the difference by relation and the flips."""
    st.markdown("### Two runs on the same facts")
    runs = list(listing)
    shown = [run.id for run in choice.runs]
    others = sorted(runs, key=lambda run: run.dataset != choice.runs[0].dataset)
    ids = shown + [run.id for run in others if run.id not in shown]
    if len(ids) < 2:
        show_note("Two runs are needed: make another under **New run**.")
        return
    by_id = {run.id: run for run in runs}
    left, right = st.columns(2)
    a = left.selectbox("Run A", ids, index=0, key="run_a", bind=BOUND)
    b = right.selectbox("Run B", ids, index=1, key="run_b", bind=BOUND)
    if a == b:
        show_note("A run has no difference from itself: choose another.")
        return
    pair = (by_id[a], by_id[b])
    try:
        found: Comparison = cache.of_runs(
            "comparison",
            pair,
            choice.ranking,
            choice.relations,
            lambda both: _compare(both, choice),
            choice.k,
        )
    except UserError as error:
        show_note(
            f"{plain(str(error))} Choose two runs on the same facts, or make another under "
            "**New run**."
        )
        return
    names = run_names(pair)
    if note := what_differs(*(run.info for run in cache.aligned(pair))):
        st.warning(note, icon=":material/balance:")
    _draw_summary(choice, pair, names, found)
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
    colours, unit = run_colours(choice, pair, names), found.units
    points = charts.show(
        charts.differences(table, (names[0], names[1]), colours, k=choice.k, unit=unit),
        "difference chart",
        title=f"P@{choice.k} of {names[1]} (B) less {names[0]} (A)",
        footnote=f"{choice.ranking} ranking, A: {a}, B: {b}",
        picture=choice.picture,
    )
    st.caption(
        f"Each relation over its {unit}. Whiskers: 95 % intervals ({METHOD_OF_DIFFERENCES}); "
        "filled where the interval leaves out 0. Click a relation to see the facts that flip."
    )
    for point in points:
        relation = point["customdata"][0]
        ahead = 1 if float(point["x"]) >= 0 else 0
        _to_flips(choice, pair, names, ahead, [choice.labels.get(relation, relation)])
    _draw_slices(choice, pair, names, colours)
    draw_export(
        "comparison",
        lambda: table,
        choice.made() | {"a": a, "b": b} | _tests(found),
        CompareRequest(a, b, choice.ranking, choice.k, choice.relations),
    )


def _draw_slices(
    choice: RunChoice, pair: tuple[RunInfo, RunInfo], names: tuple[str, ...], colours: Sequence[str]
) -> None:
    """The difference on slices of the facts, of the way of slicing that is chosen."""
    st.markdown("### On slices of the facts")
    table = cache.of_runs(
        "differences",
        pair,
        choice.ranking,
        choice.relations,
        lambda both: slice_differences(
            join_answers(both, ranking=choice.ranking), k=choice.k, relations=choice.relations
        ),
        choice.k,
    )
    ways = [str(name) for name in dict.fromkeys(table["by"]) if name != "all"]
    by = st.selectbox("Slice by", ways, key="differ_by", bind=BOUND)
    shown = table[table["by"] == by]
    charts.show(
        charts.differences(
            shown.assign(relation=shown["slice"], label=shown["slice"]),
            (names[0], names[1]),
            colours,
            k=choice.k,
            unit="facts",
            rows="slice",
        ),
        "slice difference chart",
        title=f"P@{choice.k} of {names[1]} (B) less {names[0]} (A), by {by}",
        footnote=f"{choice.ranking} ranking, A: {pair[0].id}, B: {pair[1].id}",
        picture=choice.picture,
    )
    st.caption(
        f"Each slice over its facts, whatever their relation. Whiskers: 95 % intervals "
        f"({METHOD_OF_DIFFERENCES})."
    )
    request = CompareRequest(
        pair[0].id, pair[1].id, choice.ranking, choice.k, choice.relations, slices=True
    )
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
        },
    }


def _known(value: float) -> float | None:
    return None if value != value else value


def run_colours(
    choice: RunChoice, pair: tuple[RunInfo, RunInfo], names: tuple[str, ...]
) -> tuple[str, ...]:
    """The two runs' colours: as in the other charts, where they are shown there."""
    both = RunChoice(pair, names, "", "", (), (), (), 1, "filtered", "png").colours
    known = dict(zip([run.id for run in choice.runs], choice.colours.values(), strict=True))
    first = known.get(pair[0].id, both[names[0]])
    second = known.get(pair[1].id, both[names[1]])
    return (first, second if second != first else both[names[1]])


def _draw_summary(
    choice: RunChoice, pair: tuple[RunInfo, RunInfo], names: tuple[str, ...], found: Comparison
) -> None:
    """The figures over all relations, and the two lists of facts that flip."""
    whole, mean, test, agreed = (
        found.over_facts,
        found.over_relations,
        found.mcnemar,
        found.agreement,
    )
    unit = found.units
    relations = "relation" if mean.n == 1 else "relations"
    st.caption(
        f"A is {plain(names[0])}, B is {plain(names[1])}; B less A in P@{choice.k}, on the "
        f"{whole.n:,} {unit} of {mean.n:,} {relations} that both count"
    )
    cells = st.columns(4)
    cells[0].metric(
        f"Over {whole.n:,} {unit}",
        _points(whole.difference),
        help=FACTS_HELP.format(unit=unit, method=METHOD_OF_DIFFERENCES),
    )
    cells[0].caption(
        f"{percent(whole.a)} → {percent(whole.b)} %; 95 % interval {_ends(whole.interval)}. "
        f"McNemar's test over the {unit}: p {_p_value(test.p)} ({test.only_a:,} that only A gets "
        f"right, {test.only_b:,} only B)"
    )
    cells[1].metric(f"Over {mean.n:,} relations", _points(mean.difference), help=RELATIONS_HELP)
    cells[1].caption(
        f"mean {percent(mean.a)} → {percent(mean.b)} %; "
        + (
            "no interval and no test: they need several relations whose differences vary"
            if mean.p != mean.p
            else f"95 % interval {_ends(mean.interval)}. Student's t over the relations: p "
            f"{_p_value(mean.p)} (A ahead in {mean.ahead_a:,}, B in {mean.ahead_b:,})"
        )
    )
    cells[2].metric("Same first answer", f"{percent(agreed.same_first)} %")
    cells[2].caption(
        f"both right {percent(agreed.both_right)} %, both wrong {percent(agreed.both_wrong)} %"
    )
    cells[3].metric("Kappa of being right", fixed(agreed.kappa, 2), help=explain("Kappa"))
    cells[3].caption(f"{found.n_unpaired:,} rows that only one run counts are left out")
    with st.container(horizontal=True):
        if st.button(
            f"{counted(test.only_a, 'fact')} that only A gets right", icon=":material/list:"
        ):
            _to_flips(choice, pair, names, 0, None)
        if st.button(
            f"{counted(test.only_b, 'fact')} that only B gets right", icon=":material/list:"
        ):
            _to_flips(choice, pair, names, 1, None)


def _to_flips(
    choice: RunChoice,
    pair: tuple[RunInfo, RunInfo],
    names: tuple[str, ...],
    ahead: int,
    relations: list[str] | None,
) -> None:
    """Open Wrong answers on the facts that one run gets right and the other wrong."""
    params: dict[str, str | list[str]] = {**choice.params(), "models": [], "prompts": ""}
    params |= {"data": pair[0].dataset, "runs": [run.id for run in pair]}
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
