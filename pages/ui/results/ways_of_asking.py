"""The chart Ways of asking: one model's cloze, whole-answer and generated answers compared."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.api.results import (
    ALL_RELATIONS,
    METHOD,
    METRICS,
    ResultsRequest,
    Run,
    RunInfo,
    RunListing,
    WaysOfAsking,
    compare_ways,
    overridden,
    runs_by_way,
    with_verdicts,
)
from lama_core.errors import UserError
from lama_core.rounding import percent, percentage
from pages.ui.results.draw_view import open_facts
from pages.ui.shared import cache, charts
from pages.ui.shared.colours import model_colours
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import counted, draw_headline, plain, show_note
from pages.ui.shared.run_choice import RunChoice
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import BOUND, choose, title_of

Runs = Mapping[str, RunInfo]  # way of asking -> run
MOST_RELATIONS = 15  # of the chart, until the user wants all
MOST_FACTS = 500  # rows of the table on screen; the export has all
PAIRED = "Interval: Tango's score interval of paired shares."


def ways_need(choice: RunChoice, listing: RunListing) -> str:
    """Return what is missing for the chart, in words; empty if nothing is missing."""
    if _models(choice, listing):
        return ""
    return "runs of one model in at least two ways: cloze, whole answers, generated answers"


def _models(choice: RunChoice, listing: RunListing) -> dict[str, dict[str, list[RunInfo]]]:
    """Model -> way of asking -> runs on the chosen data; models with the most ways come first."""
    found = runs_by_way(listing)
    ways = {model: found[data, model] for data, model in found if data == choice.data}
    return dict(sorted(ways.items(), key=lambda item: -len(item[1])))


def draw_ways(choice: RunChoice, listing: RunListing) -> Sequence[RunInfo]:
    """Draw P@1 of each way by relation, and facts known in one way only; return the runs."""
    models = _models(choice, listing)
    model, runs = _choose_runs(choice, models)
    generated = [cache.finished_run(run) for run in runs.values() if run.generates]
    verdicts = overridden(generated[0]) if generated else {}
    counts = bool(verdicts) and st.toggle(
        f"Count your {counted(len(verdicts), 'verdict')}",
        key="verdicts",
        bind=BOUND,
        help="Verdicts on generated texts that you overrode on Wrong answers.",
    )
    try:
        as_matched, judged = (
            cache.table_of_runs(
                f"ways {use and sorted(verdicts.items())}",
                tuple(runs.values()),
                choice.ranking,
                choice.relations,
                partial(_compare, choice, use),
            )
            for use in (False, bool(verdicts))
        )
    except UserError as error:
        show_note(f"{plain(str(error))} Start a run on the same facts on the page Data and runs.")
        return tuple(runs.values())
    found = judged if counts else as_matched
    _draw_totals(found, title_of(model))
    if verdicts:
        _draw_verdicts(as_matched, judged)
    request = ResultsRequest(
        tuple(run.id for run in runs.values()),
        ranking=choice.ranking,
        relations=choice.relations,
        ways=True,
        verdicts=counts,
    )
    labels = {one.name: one.label for run in runs.values() for one in run.relations}
    labels = {name: f"{name} {label}".strip() for name, label in labels.items()} | choice.labels
    _draw_by_relation(found, choice, labels, request, title_of(model))
    _draw_known_in_one(found, choice, labels, request)
    return tuple(runs.values())


def _choose_runs(
    choice: RunChoice, models: Mapping[str, Mapping[str, list[RunInfo]]]
) -> tuple[str, Runs]:
    """Draw the choice of a model and of its run for each way of asking; return both."""
    with st.container(key="way-choice"):
        boxes = st.columns([1, 1, 1, 1], vertical_alignment="bottom")
    shown = [run.model for run in choice.runs if run.model in models]
    first = next((name for name in models if name in shown), next(iter(models)))
    model = choose(
        "Model", list(models), key="way_model", first=first, show=title_of, place=boxes[0]
    )
    runs = {
        way: _choose_run(way, of_way, box)
        for (way, of_way), box in zip(models[model].items(), boxes[1:], strict=False)
    }
    return model, runs


def _choose_run(way: str, runs: list[RunInfo], box: DeltaGenerator) -> RunInfo:
    """Draw the choice of a way's run, listed by title (or prompts) and number of facts."""
    names = {
        run.id: f"{run.title or run.prompts}, {counted(run.n, run.counts[:-1])}" for run in runs
    }
    if len(set(names.values())) < len(names):
        names = {run.id: f"{names[run.id]}, {run.digest[:6]}" for run in runs}
    key = f"way_{way.split()[0]}"
    chosen = choose(way.capitalize(), list(names), key=key, show=names.__getitem__, place=box)
    return next(run for run in runs if run.id == chosen)


def _compare(choice: RunChoice, verdicts: bool, runs: list[Run]) -> WaysOfAsking:
    used = [with_verdicts(run) for run in runs] if verdicts else runs
    return compare_ways(used, ranking=choice.ranking, relations=choice.relations)


def _draw_totals(found: WaysOfAsking, title: str) -> None:
    """Draw the numbers of facts known in all, some or no ways, the facts compared, P@1 by way."""
    n, n_ways, n_known = len(found.facts), len(found.ways), found.n_known
    every = "all" if n_ways > 2 else "both"
    known = [f"{(n_known == n_ways).sum():,} of {counted(n, 'fact')} in {every} ways"]
    known += [f"{(n_known == 2).sum():,} in two"] * (n_ways > 2)
    known += [f"{(n_known == 1).sum():,} in one way only", f"{(n_known == 0).sum():,} in no way"]
    draw_headline(f"{title} knows {', '.join(known)}")
    runs = "; ".join(f"{way} {info.n:,}" for way, info in found.runs.items())
    st.caption(
        f"Compared on the same {counted(n, 'fact')} of "
        f"{counted(found.facts['relation'].nunique(), 'relation')}, which all "
        f"{n_ways} runs score. Facts that each run scores: {runs}."
    )
    shares = found.shares()
    shares = shares[shares["relation"] == ALL_RELATIONS]
    differences = found.differences()
    differences = differences[differences["relation"] == ALL_RELATIONS]
    left, right = st.columns(2)
    draw_table(
        pd.DataFrame(
            {
                "way": shares["way"],
                "P@1": shares["p_at_1"].map(percentage),
                "P@1 95 %": _ends(shares),
                "only": shares["n_only"],
            }
        ),
        place=left,
        column_config={
            "way": "way of asking",
            "P@1": st.column_config.NumberColumn(
                "P@1, %", format="%.1f", help=f"Percent of the facts. Interval: {METHOD}."
            ),
            "P@1 95 %": "95 % interval",
            "only": st.column_config.NumberColumn(
                "only in this way",
                help="Facts that are right in this way and wrong in the other ways.",
            ),
        },
    )
    draw_table(_difference_table(differences), place=right, column_config=_difference_columns())


def _difference_table(lines: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "pair": lines["b"] + " minus " + lines["a"],
            "points": lines["difference"].map(lambda value: percent(value, signed=True)),
            "points 95 %": _ends(lines, signed=True),
        }
    )


def _difference_columns() -> dict[str, Any]:
    return {
        "pair": "difference",
        "points": st.column_config.TextColumn("points", help=f"Percentage points. {PAIRED}"),
        "points 95 %": "95 % interval",
    }


def _draw_verdicts(as_matched: WaysOfAsking, judged: WaysOfAsking) -> None:
    """Draw P@1 of the generated answers with and without the user's verdicts."""
    first, second = (
        one.shares().query("relation == @ALL_RELATIONS").set_index("way")["p_at_1"].iloc[-1]
        for one in (as_matched, judged)
    )
    st.caption(
        f"P@1 of generated answers: {percent(first)} % as matched, {percent(second)} % with your "
        "verdicts."
    )


def _draw_by_relation(
    found: WaysOfAsking,
    choice: RunChoice,
    labels: Mapping[str, str],
    request: ResultsRequest,
    title: str,
) -> None:
    """Draw the chart of P@1 by relation, and the paired differences."""
    shares, nan = found.shares(), float("nan")
    shares = shares[shares["relation"] != ALL_RELATIONS]
    by_relation = shares.groupby("relation", sort=False)["p_at_1"]
    spread = (by_relation.max() - by_relation.min()).sort_values(ascending=False, kind="stable")
    of_all = len(spread) <= MOST_RELATIONS or st.toggle(
        f"All {len(spread)} relations",
        key="all_relations",
        bind=BOUND,
        help=f"Otherwise the {MOST_RELATIONS} relations in which P@1 differs most between the "
        "ways.",
    )
    if not of_all:
        spread = spread.head(MOST_RELATIONS)
    shares = shares.set_index("relation").loc[spread.index].reset_index()
    rows = shares.assign(
        name=shares["way"],
        label=shares["relation"].map(labels),
        value=shares["p_at_1"],
        freq=nan,
        chance=nan,
    )
    points = charts.draw_chart(
        charts.precision_by_relation(
            rows, model_colours(found.ways), what="P@1", metric=METRICS["p_at_1"]
        ),
        "ways chart",
        title=f"P@1 by way of asking, {title}",
        footnote=f"{choice.data}, {choice.ranking} ranking",
        picture=choice.picture,
    )
    several = ", or of another right answer to the same question" * (choice.ranking == "filtered")
    st.caption(
        "**Word at a blank**: the right word is ranked first. **Whole answers**: the statement "
        "with the right answer is the likeliest one. **Generated answer**: the text gives a "
        f"name of the right answer in whole words{several}. Words and whole answers are chosen "
        "from a list, so part of a difference is due to the list. Whiskers: 95 % intervals. The "
        "relations with the largest differences come first. Click a bar to see its facts."
    )
    for point in points:
        way, relation = point["customdata"][:2]
        open_facts(choice.with_runs([found.runs[way]]), relations=[labels[relation]])
    differences = found.differences()
    differences = differences[differences["relation"] != ALL_RELATIONS]
    with st.expander("Differences by relation", icon=":material/table:"):
        table = _difference_table(differences)
        table.insert(0, "relation", differences["relation"].map(labels))
        table.insert(1, "facts", differences["n"])
        draw_table(table, column_config=_difference_columns())
    made = {"runs": {way: run.id for way, run in found.runs.items()}, "ranking": choice.ranking}
    draw_export("ways", found.shares, made, request)


def _draw_known_in_one(
    found: WaysOfAsking, choice: RunChoice, labels: Mapping[str, str], request: ResultsRequest
) -> None:
    """Draw the table of facts that the model knows in one way only; a ticked row opens the fact."""
    table = found.known_in_one_way()
    st.markdown(f"### {counted(len(table), 'fact')} known in one way only")
    if table.empty:
        st.info("The model knows every fact in several ways or in none.", icon=":material/check:")
        return
    ways = ["any", *found.ways]
    way = st.selectbox("Known as", ways, key="known_as", bind=BOUND, width=240)
    table = table if way == "any" else table[table["way"] == way]
    shown = table.head(MOST_FACTS)
    columns = {"subject": shown["subject"], "known as": shown["way"]}
    columns |= {"relation": shown["relation"].map(labels), "right answer": shown["object"]}
    columns |= {
        f"{one} ": (shown[f"{one} answer"] + " ✓").where(
            shown[f"{one} right"], shown[f"{one} answer"]
        )
        for one in found.ways
    }
    picked = draw_table(
        pd.DataFrame(columns),
        key=f"ways facts {way}",
        picks="single-row",
        placeholder="",
        height=420 if len(shown) > 10 else "content",
    )
    first = f"the first {MOST_FACTS:,} of " * (len(table) > MOST_FACTS)
    st.caption(f"Shown: {first}{counted(len(table), 'fact')}. Tick a row to open the fact.")
    if picked.rows:
        fact = shown.iloc[picked.rows[0]]
        open_facts(choice.with_runs([*found.runs.values()]), fact=f"{fact['fact_id']}#0")
    made = {"runs": {way: run.id for way, run in found.runs.items()}, "ranking": choice.ranking}
    draw_export("known in one way", lambda: table, made, request)


def _ends(table: pd.DataFrame, *, signed: bool = False) -> list[str]:
    return [
        f"{percent(low, signed=signed)} to {percent(high, signed=signed)}"
        for low, high in zip(table["low"], table["high"], strict=True)
    ]
