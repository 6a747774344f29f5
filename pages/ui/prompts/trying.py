"""Type a prompt and see its accuracy grow fact by fact, until you are satisfied."""

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from lama_core.asking.blanks import shows_subject
from lama_core.datasets.prompt_sets import check_templates
from lama_core.models.catalog import find_model
from lama_core.models.sources import is_here
from lama_core.probes.prompts.growing import Growth
from lama_core.rounding import percent
from pages.ui.prompts.choice import PromptsChoice
from pages.ui.shared import charts, waiting
from pages.ui.shared.fetching import draw_offer
from pages.ui.shared.messages import faults_shown, plain
from pages.ui.shared.state import BOUND

BATCH = 8
STATE = "trying"


def draw_try(choice: PromptsChoice) -> None:
    """The prompt, start and stop, and the curve so far."""
    entry = find_model(choice.info.model)
    if not is_here(entry):
        draw_offer(entry)
        return
    box, go_box = st.columns([4, 1], vertical_alignment="bottom")
    template = box.text_input(
        "Your prompt",
        key="try",
        bind=BOUND,
        placeholder="[X] is a city in [Y] .",
        help="[X] stands for the subject, [Y] for the blank. The facts come in a random order "
        "that is always the same.",
    )
    if "[X]" in template and not shows_subject(template, choice.info.context):
        st.caption(
            f"The blank stands before the subject: {plain(choice.info.model)} sees nothing of it, "
            "and says the same for every fact."
        )
    mark = (choice.info.digest, choice.study.relation.name, template)
    state = st.session_state.get(STATE)
    if go_box.button("Try it", type="primary", icon=":material/play_arrow:", disabled=not template):
        with faults_shown():
            check_templates([template])
            growth = Growth(template, len(choice.study.test))
            st.session_state[STATE] = state = {"mark": mark, "growth": growth, "running": True}
    if state is None or state["mark"][:2] != mark[:2]:
        best = max(choice.eligible, key=lambda one: choice.study.test_accuracies[one], default=None)
        if best is not None:
            template = choice.study.pool.prompts[best].template
            st.caption(f"The best of these prompts so far is {plain(template)}")
        return
    _draw_growing(choice)


@st.fragment(run_every=0.4)
def _draw_growing(choice: PromptsChoice) -> None:
    """One more batch of facts at each tick while it runs."""
    state = st.session_state[STATE]
    if state["running"]:
        with faults_shown():
            state["growth"] = _grown(choice, state["growth"])
            state["running"] = not state["growth"].is_whole
            _draw_state(choice, state)
            return
        state["running"] = False
    _draw_state(choice, state)


def _set_running(running: bool) -> None:
    st.session_state[STATE]["running"] = running


def _grown(choice: PromptsChoice, growth: Growth) -> Growth:
    from lama_core.models.loader import load_model
    from lama_core.probes.prompts.asking import make_asked
    from lama_core.probes.prompts.growing import grow

    study, info = choice.study, choice.info
    model = load_model(info.model, precision=info.precision)
    state = st.session_state[STATE]
    if "facts" not in state:
        state["facts"] = make_asked(
            study.relation,
            study.test,
            choice.whole.candidates,
            model,
            info.context,
            template=study.pool.prompts[0].template,
            known=study.known(),
        )
        n_facts = len(state["facts"].facts)
        state["order"] = np.random.default_rng(0).permutation(n_facts).tolist()
        growth = Growth(growth.template, n_facts)
    with waiting.turn():
        return grow(
            growth,
            model,
            state["facts"],
            info.context,
            study.ranking,
            n_facts=BATCH,
            order=state["order"],
        )


def _draw_state(choice: PromptsChoice, state: dict[str, object]) -> None:
    growth = state["growth"]
    assert isinstance(growth, Growth)
    if not growth.asked:
        return
    curve = growth.curve()
    last = curve[-1]
    figures, button = st.columns([4, 1], vertical_alignment="center")
    with figures, st.container(horizontal=True):
        st.metric(f"P@1, {choice.study.ranking} ranking", f"{percent(last.value)} %")
        st.metric(
            "95 % interval",
            f"{percent(last.low)} – {percent(last.high)} %",
            help="Wilson's interval for this many facts. If you stop because you like what you "
            "see, it is too narrow: you have looked many times.",
        )
        st.metric("Facts", f"{len(growth.asked):,} of {growth.total:,}")
    with button:
        if state["running"]:
            st.button(
                "Stop",
                icon=":material/stop:",
                key="stop trying",
                on_click=_set_running,
                args=(False,),
            )
        elif not growth.is_whole:
            st.button(
                "Go on",
                icon=":material/play_arrow:",
                key="go on trying",
                on_click=_set_running,
                args=(True,),
            )
    _draw_curve(choice, growth)
    wrong = [one for one in growth.asked if one.rank != 1][-5:]
    if wrong:
        shown = "; ".join(f"{one.subject}: {one.first}, not {one.gold}" for one in wrong)
        st.caption(plain(f"Lately wrong: {shown}"))


def _draw_curve(choice: PromptsChoice, growth: Growth) -> None:
    curve = growth.curve()
    x = list(range(1, len(curve) + 1))
    figure = go.Figure()
    figure.add_scatter(
        x=x + x[::-1],
        y=[100 * one.high for one in curve] + [100 * one.low for one in reversed(curve)],
        fill="toself",
        line={"width": 0},
        fillcolor=charts.FAINT,
        hoverinfo="skip",
        name="95 % interval",
    )
    figure.add_scatter(
        x=x,
        y=[100 * one.value for one in curve],
        mode="lines",
        hovertext=[percent(one.value) for one in curve],
        line={"color": choice.colour, "width": 2.5},
        name="P@1 so far",
        customdata=[(percent(one.low), percent(one.high)) for one in curve],
        hovertemplate="after %{x:,} facts: %{hovertext} %<br>95 % interval: %{customdata[0]} to "
        "%{customdata[1]}<extra></extra>",
    )
    if choice.eligible:
        best = 100 * float(choice.study.test_accuracies[list(choice.eligible)].max())
        figure.add_hline(
            y=best,
            line={"dash": "dot", "color": charts.GREY},
            annotation_text="best of these prompts",
        )
    figure.update_yaxes(title="P@1, % of the facts asked", range=[0, 100])
    figure.update_xaxes(title="facts asked", range=[0, growth.total])
    charts.show(
        figure.update_layout(height=320),
        f"growth {len(curve)}",
        title=f"Accuracy of {growth.template}",
        footnote=choice.footnote,
    )
