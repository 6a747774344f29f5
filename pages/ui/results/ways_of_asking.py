"""The chart Ways of asking: one model's cloze, whole-answer and generated answers compared."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.errors import UserError
from lama_core.metrics.verdicts import overridden
from lama_core.metrics.ways_of_asking import ALL_RELATIONS, WaysOfAsking, runs_by_way
from lama_core.rounding import percent
from lama_core.runs.find import RunListing
from lama_core.runs.info import RunInfo
from lama_core.tables import Column, Line, text
from lama_core.views.view import Shown
from lama_core.views.ways import WaysRequest, ways
from pages.ui.results.draw_view import (
    draw_figure,
    draw_rows,
    draw_view_export,
    open_facts,
    open_line,
)
from pages.ui.shared import cache
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import counted, draw_headline, plain, show_note
from pages.ui.shared.run_choice import RunChoice, unscored
from pages.ui.shared.url_state import BOUND, choose, title_of

ShownWays = Shown[WaysRequest, tuple[WaysOfAsking, ...]]
MOST_RELATIONS = 15  # of the chart, until the user wants all
MOST_FACTS = 500  # rows of the table on screen; the export has all


def ways_need(choice: RunChoice, listing: RunListing) -> str:
    """Return what is missing for the chart, in words; empty if nothing is missing."""
    needs = "runs of one model in at least two ways: cloze, whole answers, generated answers"
    return needs * (not _models(choice, listing))


def _models(choice: RunChoice, listing: RunListing) -> dict[str, dict[str, list[RunInfo]]]:
    """Model -> way of asking -> runs on the chosen data; models with the most ways come first."""
    found = runs_by_way(listing)
    of_data = ((model, found[data, model]) for data, model in found if data == choice.data)
    return dict(sorted(of_data, key=lambda item: -len(item[1])))


def draw_ways(choice: RunChoice, listing: RunListing) -> Sequence[RunInfo]:
    """Draw P@1 of each way by relation, and facts known in one way only; return the runs."""
    models = _models(choice, listing)
    with st.container(key="way-choice"):
        boxes = st.columns([1, 1, 1, 1], vertical_alignment="bottom")
    wanted = {run.model for run in choice.runs}
    first = next((name for name in models if name in wanted), next(iter(models)))
    model = choose(
        "Model", list(models), key="way_model", first=first, show=title_of, place=boxes[0]
    )
    runs = [
        _choose_run(way, of_way, box)
        for (way, of_way), box in zip(models[model].items(), boxes[1:], strict=False)
    ]
    chosen = choice.with_runs(runs)
    generated = [cache.finished_run(run) for run in runs if run.generates]
    verdicts = overridden(generated[0]) if generated else {}
    counts = bool(verdicts) and st.toggle(
        f"Count your {counted(len(verdicts), 'verdict')}",
        key="verdicts",
        bind=BOUND,
        help="Verdicts on generated texts that you overrode on Wrong answers.",
    )
    try:
        as_matched, judged = (
            chosen.view(ways, ranking=choice.ranking, verdicts=use)
            for use in (False, bool(verdicts))
        )
    except UserError as error:
        show_note(f"{plain(str(error))} Start a run on the same facts on the page Data and runs.")
        return runs
    shown = judged if counts else as_matched
    title = title_of(model)
    (found,) = shown.found
    draw_headline(shown.conclusion.replace(found.model, title, 1))
    facts_of_runs = "; ".join(f"{way} {info.n:,}" for way, info in found.runs.items())
    st.caption(
        f"Compared on the same {counted(len(found.facts), 'fact')} of "
        f"{counted(found.facts['relation'].nunique(), 'relation')}, which all {len(found.ways)} "
        f"runs score. Facts that each run scores: {facts_of_runs}. Differences are of the "
        f"numbers before rounding. {unscored(chosen)} "
        + plain(" ".join(shown.notes).replace(found.model, title, 1))
    )
    with st.container(key="two-tables"):
        left, right = st.columns([6, 5])
    draw_rows(_over_all(found.shares()), shown.chosen("way p_at_1 interval n_only"), place=left)
    draw_rows(_over_all(found.differences()), _differences(shown), place=right)
    if verdicts:
        first, second = (
            _over_all(one.frame).set_index("way")["p_at_1"].iloc[-1] for one in (as_matched, judged)
        )
        st.caption(
            f"P@1 of generated answers: {percent(first)} % as matched, {percent(second)} % with "
            "your verdicts."
        )
    _draw_by_relation(chosen, shown, title)
    _draw_known_in_one(chosen, shown)
    return runs


def _choose_run(way: str, runs: list[RunInfo], box: DeltaGenerator) -> RunInfo:
    """Draw the choice of a way's run, listed by title (or prompts) and number of facts."""
    names = {run.id: f"{run.title or run.prompts_said}, {counted(run.n, run.unit)}" for run in runs}
    if len(set(names.values())) < len(names):
        names = {run.id: f"{names[run.id]}, {run.digest[:6]}" for run in runs}
    chosen = choose(
        way.capitalize(),
        list(names),
        key=f"way_{way.split()[0]}",
        show=names.__getitem__,
        place=box,
    )
    return next(run for run in runs if run.id == chosen)


def _over_all(table: pd.DataFrame) -> pd.DataFrame:
    """The rows over the facts of all relations."""
    return table[table["relation"] == ALL_RELATIONS]


def _differences(shown: ShownWays) -> list[Column]:
    """The columns of differences, with the pair of ways in words."""
    pair = text("pair", "difference", cell=lambda line: f"{line['b']} minus {line['a']}")
    difference, ends = shown.chosen("difference ends")
    return [pair, replace(difference, label="points", help="Percentage points."), ends]


def _draw_by_relation(choice: RunChoice, shown: ShownWays, title: str) -> None:
    """Draw the chart of P@1 by relation, and the paired differences."""
    (found,) = shown.found
    figure = replace(shown.figure, title=f"P@1 by way of asking, {title}")
    rows = figure.frame["row"].unique()
    if len(rows) > MOST_RELATIONS and not st.toggle(
        f"All {len(rows)} relations",
        key="all_relations",
        bind=BOUND,
        help=f"Otherwise the {MOST_RELATIONS} relations in which P@1 differs most between the "
        "ways.",
    ):
        few = f"; the {MOST_RELATIONS} of {len(rows)} relations that differ most"
        first = figure.frame[figure.frame["row"].isin(rows[:MOST_RELATIONS])]
        figure = replace(figure, frame=first, caption=figure.caption + few)
    mark = draw_figure(choice, figure, "ways chart", shown.view.inks(shown, {}))
    several = ", or of another right answer to the same question" * (choice.ranking == "filtered")
    st.caption(
        "**Word at a blank**: the right word is ranked first. **Whole answers**: the statement "
        "with the right answer is the likeliest one. **Generated answer**: the text gives a "
        f"name of the right answer in whole words{several}, whatever else it says. Words and whole "
        "answers are chosen from a list, so part of a difference is due to the list. Whiskers: "
        "95 % intervals. The relations with the largest differences come first. Click a bar to see "
        "all facts of the relation that this way asks, also those that other ways don't ask."
    )
    open_line(choice, shown, mark, alone=True)
    differences = found.differences()
    differences = differences[differences["relation"] != ALL_RELATIONS]
    with st.expander("Differences by relation", icon=":material/table:"):
        draw_rows(
            differences.assign(relation=differences["relation"].map(choice.labels)),
            [*shown.chosen("relation n"), *_differences(shown)],
        )
    draw_view_export(choice, shown, figure=figure)


def _draw_known_in_one(choice: RunChoice, shown: ShownWays) -> None:
    """Draw the table of facts that the model knows in one way only; a ticked row opens the fact."""
    (found,) = shown.found
    table = found.known_in_one_way()
    st.markdown(f"### {counted(len(table), 'fact')} known in one way only")
    if table.empty:
        st.info("The model knows every fact in several ways or in none.", icon=":material/check:")
        return
    way = st.selectbox("Known as", ["any", *found.ways], key="known_as", bind=BOUND, width=240)
    table = table if way == "any" else table[table["way"] == way]
    facts = table.head(MOST_FACTS)
    picked = draw_rows(
        facts.assign(relation=facts["relation"].map(choice.labels)),
        [*shown.chosen("subject relation object"), *map(_answer_column, found.ways)],
        f"ways facts {way}",
        picks="single-row",
        placeholder="",
        height=420 if len(facts) > 10 else "content",
    )
    first = f"the first {MOST_FACTS:,} of " * (len(table) > MOST_FACTS)
    st.caption(
        f"Shown: {first}{counted(len(table), 'fact')}. Tick a row, or tap its card, to open it."
    )
    if picked.rows:
        open_facts(choice, fact=f"{facts['fact_id'].iloc[picked.rows[0]]}#0")
    draw_export("known in one way", lambda: table, choice.made(), shown.request)


def _answer_column(way: str) -> Column:
    """The column of a way's answers, with a tick before right ones."""

    def answer(line: Line) -> str | None:
        given: str | None = line[f"{way} answer"]
        return f"✓ {given}" if given is not None and line[f"{way} right"] else given

    return text(f"{way} answer", f"{way} ", cell=answer)
