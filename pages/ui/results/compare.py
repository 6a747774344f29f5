"""Two runs on the same facts: who is ahead, by how much, how surely, and on which facts."""

import pandas as pd
import streamlit as st

from lama_core import metrics
from lama_core.errors import UserError
from lama_core.metrics.comparison import CompareRequest, Comparison
from lama_core.runs.find import RunListing
from lama_core.runs.info import Run, RunInfo
from pages.ui.shared import cache, charts, links
from pages.ui.shared.choice import RunChoice, run_names
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import plain
from pages.ui.shared.state import BOUND

MCNEMAR_HELP = (
    "McNemar's exact test: if neither run were better, each of the facts that only one gets right "
    "would go to either with probability 1/2. p is the chance of a split at least as uneven."
)
KAPPA_HELP = (
    "Cohen's kappa = (observed - expected agreement) / (1 - expected), of being right: 0 is what "
    "chance gives, 1 is perfect."
)


def draw_comparison(choice: RunChoice, listing: RunListing) -> None:
    """The tab: choose A and B among all runs, see the difference by relation and the flips."""
    st.markdown("#### Two runs on the same facts")
    runs = list(listing)
    shown = [run.id for run in choice.runs]
    others = sorted(runs, key=lambda run: run.dataset != choice.runs[0].dataset)
    ids = shown + [run.id for run in others if run.id not in shown]
    if len(ids) < 2:
        st.info("Two runs are needed: make another under **New run**.", icon=":material/info:")
        return
    by_id = {run.id: run for run in runs}
    left, right = st.columns(2)
    a = left.selectbox("Run A", ids, index=0, key="run_a", bind=BOUND)
    b = right.selectbox("Run B", ids, index=1, key="run_b", bind=BOUND)
    if a == b:
        st.info("A run has no difference from itself: choose another.", icon=":material/info:")
        return
    pair = (by_id[a], by_id[b])
    try:
        found: Comparison = cache.of_runs(
            "comparison", pair, choice.ranking, choice.relations,
            lambda both: _compare(both, choice), choice.k,
        )  # fmt: skip
    except UserError as error:
        st.info(
            f"{plain(str(error))} Choose two runs on the same facts, or make another under "
            "**New run**.",
            icon=":material/info:",
        )
        return
    names = run_names(pair)
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
    colours = run_colours(choice, pair, names)
    points = charts.show(
        charts.differences(table, (names[0], names[1]), colours),
        "difference chart",
        title=f"P@{choice.k} of {names[1]} less {names[0]}",
        footnote=f"{choice.ranking} ranking, A: {a}, B: {b}",
        picture=choice.picture,
    )
    st.caption(
        "Whiskers: 95 % bootstrap intervals of the paired difference; filled where the interval "
        "leaves out 0. Click a relation to see the facts that flip."
    )
    for point in points:
        relation = point["customdata"][0]
        ahead = 1 if float(point["x"]) >= 0 else 0
        _to_flips(choice, pair, names, ahead, [choice.labels.get(relation, relation)])
    draw_export(
        "comparison",
        lambda: table,
        choice.made() | {"a": a, "b": b, "mcnemar_p": found.mcnemar.p},
        CompareRequest(a, b, choice.ranking, choice.k, choice.relations),
    )


def _compare(both: list[Run], choice: RunChoice) -> Comparison:
    return metrics.compare(
        both[0], both[1], ranking=choice.ranking, k=choice.k, relations=choice.relations or None
    )


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
    total, test, agreed = found.total, found.mcnemar, found.agreement
    st.caption(f"A is {plain(names[0])}, B is {plain(names[1])}; B less A, on {total.n:,} facts")
    cells = st.columns(4)
    cells[0].metric(
        f"P@{choice.k}: B less A",
        f"{100 * total.difference:+.1f} points",
        help="The unweighted mean over relations of the paired differences, with its 95 % "
        "bootstrap interval over facts.",
    )
    cells[0].caption(
        f"{100 * total.interval.low:+.1f} to {100 * total.interval.high:+.1f} "
        f"({100 * total.a:.1f} → {100 * total.b:.1f})"
    )
    cells[1].metric("McNemar's p", _p_value(test.p), help=MCNEMAR_HELP)
    cells[1].caption(f"{test.only_a:,} against {test.only_b:,} facts")
    cells[2].metric("Same first answer", f"{100 * agreed.same_first:.1f} %")
    cells[2].caption(f"both right {100 * agreed.both_right:.1f} %, "
                     f"both wrong {100 * agreed.both_wrong:.1f} %")  # fmt: skip
    cells[3].metric("Kappa of being right", f"{agreed.kappa:.2f}", help=KAPPA_HELP)
    cells[3].caption(f"{found.n_unpaired:,} rows that only one run counts are left out")
    with st.container(horizontal=True):
        if st.button(f"{test.only_a:,} facts that only A gets right", icon=":material/list:"):
            _to_flips(choice, pair, names, 0, None)
        if st.button(f"{test.only_b:,} facts that only B gets right", icon=":material/list:"):
            _to_flips(choice, pair, names, 1, None)


def _to_flips(
    choice: RunChoice,
    pair: tuple[RunInfo, RunInfo],
    names: tuple[str, ...],
    ahead: int,
    relations: list[str] | None,
) -> None:
    """Open the Facts page on the facts that one run gets right and the other wrong."""
    params: dict[str, str | list[str]] = {**choice.params(), "models": [], "prompts": ""}
    params |= {"data": pair[0].dataset, "runs": [run.id for run in pair]}
    params |= {"of": names[1 - ahead], "right": [names[ahead]], "wrong": [names[1 - ahead]]}
    if relations is not None:
        params["relations"] = relations
    links.go(links.FACTS, params)


def _p_value(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else f"{p:.0e}".replace("e-0", "e-")
