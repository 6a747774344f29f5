"""The chart Ways of asking: one model's cloze, whole-answer and generated answers compared."""

from collections.abc import Mapping
from functools import partial

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.api.results import WAYS, WaysOfAsking, compare_ways
from lama_core.errors import UserError
from lama_core.metrics import METRICS
from lama_core.rounding import percent, percentage
from lama_core.runs.find import RunListing
from lama_core.runs.info import Run, RunInfo
from pages.ui.shared import cache, charts, links, screens
from pages.ui.shared.colours import model_colours
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import counted, plain, show_note
from pages.ui.shared.run_choice import RunChoice
from pages.ui.shared.url_state import choose, title_of

ByWay = dict[str, list[RunInfo]]
MOST_FACTS = 500  # rows of the table on screen; the export has all


def runs_by_way(choice: RunChoice, listing: RunListing) -> dict[str, ByWay]:
    """Return model -> way -> its runs on the chosen data, largest first.

    Only models with a run of each way; a cloze run with the relations' own templates comes first.
    """
    found: dict[str, ByWay] = {}
    for run in listing:
        if run.dataset == choice.data and run.kind in WAYS:
            found.setdefault(run.model, {}).setdefault(WAYS[run.kind], []).append(run)
    complete = {}
    for model, ways in found.items():
        if len(ways) == len(WAYS):
            complete[model] = {
                way: sorted(ways[way], key=lambda run: (run.prompts != "manual", -run.n))
                for way in WAYS.values()
            }
    return complete


def ways_need(choice: RunChoice, listing: RunListing) -> str:
    """Return what is missing for the chart, in words; empty if nothing is missing."""
    if runs_by_way(choice, listing):
        return ""
    return "a cloze run, a whole-answer run and a run of generated answers of one model"


def draw_ways(choice: RunChoice, listing: RunListing) -> None:
    """Draw P@1 of each way by relation, and the facts that the model knows in one way only."""
    models = runs_by_way(choice, listing)
    shown = [run.model for run in choice.runs if run.model in models]
    boxes = st.columns(len(WAYS) + 1, vertical_alignment="bottom")
    first = (shown or list(models))[0]
    model = choose(
        "Model", list(models), key="ways_model", first=first, show=title_of, place=boxes[0]
    )
    runs = {
        way: _choose_run(way, key, models[model][way], box)
        for (key, way), box in zip(WAYS.items(), boxes[1:], strict=True)
    }
    try:
        found: WaysOfAsking = cache.table_of_runs(
            "ways",
            tuple(runs.values()),
            choice.ranking,
            choice.relations,
            lambda loaded: _compare(dict(zip(runs, loaded, strict=True)), choice),
        )
    except UserError as error:
        show_note(f"{plain(str(error))} Start a run on the same facts on the page Data and runs.")
        return
    _draw(found, choice, runs, title_of(model))


def _compare(runs: Mapping[str, Run], choice: RunChoice) -> WaysOfAsking:
    return compare_ways(runs, ranking=choice.ranking, relations=choice.relations)


def _choose_run(way: str, key: str, runs: list[RunInfo], box: DeltaGenerator) -> RunInfo:
    """Choose the run of a way; each is named by its prompts and number of facts."""
    names = {run.id: f"{run.title or run.prompts} ({counted(run.n, 'fact')})" for run in runs}
    chosen = choose(
        way.capitalize(), list(names), key=f"ways_{key}", show=names.__getitem__, place=box
    )
    return next(run for run in runs if run.id == chosen)


def _draw(found: WaysOfAsking, choice: RunChoice, runs: Mapping[str, RunInfo], title: str) -> None:
    totals, n = found.totals(), len(found.facts)
    st.markdown(f"**{plain(title)}** on the {counted(n, 'fact')} that all three runs count")
    st.dataframe(
        pd.DataFrame(
            {
                "way": totals["way"],
                "P@1": totals["value"].map(percentage),
                "95 %": _ends(totals, "low", "high"),
                "minus": totals["minus_first"].map(partial(percent, signed=True)),
                "paired": _ends(totals, "minus_low", "minus_high", signed=True),
                "only": totals["only"],
            }
        ),
        hide_index=True,
        column_config={
            "P@1": st.column_config.NumberColumn(format="%.1f", help="Percent of the facts."),
            "minus": st.column_config.TextColumn(f"minus {found.ways[0]}"),
            "paired": st.column_config.TextColumn(
                "95 % of the difference", help="Tango's score interval of paired shares."
            ),
            "only": st.column_config.NumberColumn(
                "known only so", help="Facts that are right in this way and wrong in the others."
            ),
        },
    )
    rows = found.by_relation()
    labels = {
        r.name: choice.labels.get(r.name, r.name) for run in runs.values() for r in run.relations
    }
    nan = float("nan")
    table = rows.assign(name=rows["way"], label=rows["relation"].map(labels), freq=nan, chance=nan)
    points = charts.draw_chart(
        charts.precision_by_relation(
            table, model_colours(found.ways), what="P@1", metric=METRICS["p_at_1"]
        ),
        "ways chart",
        title=f"P@1 by way of asking, {title}",
        footnote=f"{choice.data}, {choice.ranking} ranking",
        picture=choice.picture,
    )
    st.caption(
        "**Word at a blank**: the right word is ranked first. **Whole answers**: the statement with "
        "the right answer is the likeliest one. **Generated answer**: the text contains a right "
        "answer. The first two choose from a list, so compare them with the third with care. "
        "Whiskers: 95 % intervals. Click a bar to see its facts."
    )
    for point in points:
        way, relation = point["customdata"][:2]
        _open(choice, runs[way], relations=[labels[relation]])
    made = {"runs": {way: run.id for way, run in runs.items()}, "ranking": choice.ranking}
    draw_export("ways", lambda: rows, made, _python(choice, runs, "by_relation"))
    _draw_known_in_one(found, choice, runs, labels)


def _draw_known_in_one(
    found: WaysOfAsking,
    choice: RunChoice,
    runs: Mapping[str, RunInfo],
    labels: Mapping[str, str],
) -> None:
    """Draw the table of facts that the model knows in one way only; a row opens its fact."""
    st.markdown("### Facts known in one way only")
    table = found.known_in_one_way()
    if table.empty:
        st.info("All facts are known in no way or in several ways.", icon=":material/check:")
        return
    shown = table.head(MOST_FACTS)
    columns = {"known as": shown["way"], "subject": shown["subject"]}
    columns |= {"relation": shown["relation"].map(labels), "right answer": shown["object"]}
    columns |= {way: shown[f"{way} answer"] for way in found.ways}
    event = st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        key="ways facts",
        on_select="rerun",
        selection_mode="single-row",
        placeholder="",
        height=420 if len(shown) > 10 else "content",
    )
    first = f"the first {MOST_FACTS:,} of " * (len(table) > MOST_FACTS)
    st.caption(f"Shown: {first}{counted(len(table), 'fact')}. Tick a row to open the fact.")
    if picked := event["selection"]["rows"]:
        fact = table.iloc[picked[0]]
        _open(choice, *runs.values(), fact=f"{fact['fact_id']}#0")
    made = {"runs": {way: run.id for way, run in runs.items()}, "ranking": choice.ranking}
    draw_export("known in one way", lambda: table, made, _python(choice, runs, "known_in_one_way"))


def _open(choice: RunChoice, *runs: RunInfo, **params: str | list[str]) -> None:
    """Open Wrong answers with these runs."""
    ids = {"runs": [run.id for run in runs], "models": [], "prompts": ""}
    links.go(screens.RESULTS, {**choice.params(), **ids, **params, **screens.WRONG_ANSWERS})


def _ends(totals: pd.DataFrame, low: str, high: str, *, signed: bool = False) -> list[str]:
    return [
        f"{percent(a, signed=signed)} to {percent(b, signed=signed)}"
        for a, b in zip(totals[low], totals[high], strict=True)
    ]


def _python(choice: RunChoice, runs: Mapping[str, RunInfo], table: str) -> str:
    """Return Python code that computes the same table."""
    loaded = ", ".join(f'"{way}": lama.load_run("{run.id}")' for way, run in runs.items())
    return (
        "import lama_core as lama\nfrom lama_core.api.results import compare_ways\n\n"
        f"runs = {{{loaded}}}\n"
        f'found = compare_ways(runs, ranking="{choice.ranking}", relations={choice.relations!r})\n'
        f"found.{table}()"
    )
