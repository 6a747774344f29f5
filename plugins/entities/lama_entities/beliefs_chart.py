"""The chart Beliefs of Results, and the list of beliefs that break a constraint."""

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from lama_core.reports.table_files import csv_of
from lama_core.rounding import counted, percent, percentage
from lama_core.runs.find import RunListing
from lama_core.tables import Line
from lama_core.views.view import Shown
from lama_entities.beliefs import BASIS, RULES, BeliefsRequest, Check, CheckedBeliefs, beliefs
from pages.ui.results.draw_view import draw_whole
from pages.ui.results.more import MenuChart
from pages.ui.shared import links, screens
from pages.ui.shared.export import draw_download, file_stem
from pages.ui.shared.messages import plain
from pages.ui.shared.run_choice import RunChoice
from pages.ui.shared.url_state import choose_row, pick

MOST = 200  # broken constraints in a table
OF, KIND, ROW = "broken_of", "broken_kind", "broken"
BAR = "bar of beliefs"  # in the session: the model and constraint of the last clicked bar
HINT = "Click a bar to see its beliefs that disagree."
RULES_SAID = "\n".join(f"- **{name}**: {rule}." for name, rule in RULES.items()) + f"\n\n{BASIS}"


def draw_beliefs(choice: RunChoice, _: RunListing) -> None:
    """Draw the shares, and the broken beliefs of a model."""
    line = draw_whole(choice, beliefs, HINT, "constraint model n kept share interval")
    draw_rules()
    shown = choice.view(beliefs)
    follow_bar(shown, line)
    draw_broken(shown, {run.id: run.model for run in choice.runs})


def draw_rules() -> None:
    """Draw what each constraint means, folded."""
    with st.expander("When a belief keeps a constraint"):
        st.markdown(RULES_SAID)


def follow_bar(shown: Shown[BeliefsRequest, CheckedBeliefs], line: Line | None) -> None:
    """Choose the model and the constraint of a clicked bar in the list below it."""
    bar = line and (shown.names[line["run"]], line["constraint"])
    if bar and st.session_state.get(BAR) != bar:
        st.session_state[BAR] = bar
        there = dict(zip((OF, KIND), bar, strict=True))
        links.go(st.session_state[links.PAGE], links.params_without((OF, KIND, ROW)) | there)


def draw_broken(shown: Shown[BeliefsRequest, CheckedBeliefs], models: Mapping[str, str]) -> None:
    """Draw the pairs of sentences that disagree; a click shows the queries.

    models: run id -> the model that answers the queries on Ask.
    """
    st.markdown("### Beliefs that disagree")
    by_name = {shown.names[info.id]: info.id for info in shown.infos}
    name = next(iter(by_name))
    if len(by_name) > 1:
        name = pick("Model", [*by_name], key=OF, format_func=plain)
    kinds = ("all", *(one for one in RULES if one in set(shown.frame["constraint"])))
    kind = pick("Constraint", kinds, key=KIND)
    run = by_name[name]
    found = [one for one in shown.found.broken(run) if kind in ("all", one.constraint)]
    if not found:
        st.caption("Every belief keeps it.")
        return
    rows = [
        {
            "the model believes": one.belief.sentence,
            "but": one.against,
            "constraint": one.constraint,
            "relation": one.belief.label,
            "probability, %": percentage(one.belief.probability),
        }
        for one in found
    ]
    beliefs_of_rows = [(one.constraint, *one.belief.asked, one.belief.object) for one in found]
    names = [": ".join(each) for each in beliefs_of_rows]
    chosen = choose_row(
        "Broken constraint",
        pd.DataFrame(rows[:MOST]),
        names[:MOST],
        key=ROW,
        column_config={"probability, %": st.column_config.NumberColumn(format="%.1f")},
    )
    st.caption(
        f"{counted(len(found), 'broken constraint')}, the most probable belief first"
        + f"; the table has {MOST}" * (len(rows) > MOST)
        + ". Click a row, or tap its card, to see its queries below."
    )
    one = found[names.index(chosen)]
    for belief in filter(None, (one.belief, one.other)):
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            is_missing = belief is one.other and one.lacks_subject
            said = belief.query.replace("[MASK]", "___") if is_missing else belief.sentence
            st.markdown(f"**{plain(said)}**", width="stretch")
            if not is_missing:
                st.caption(f"{percent(belief.probability)} %", width="content")
            params = {"text": belief.query.replace("[MASK]", "___"), "models": [models[run]]}
            key = f"ask {belief.asked} {belief.object}"
            links.draw_link("Ask it", "edit_note", screens.ASK, params, key=key)
    if one.note:
        st.caption(plain(one.note))
    draw_download(
        f"All {len(rows):,}, CSV",
        lambda: csv_of(pd.DataFrame(map(Check.row, found)).assign(run=run)),
        f"{file_stem('broken', {'run': run})}.csv",
        key="broken csv",
        icon=":material/download:",
    )


BELIEFS = MenuChart(beliefs.view.question, draw_beliefs, of_runs=False)
