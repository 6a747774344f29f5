"""The user's prompt compared with the manual one on the same facts.

A prompt of the study shows its stored result at once. With a new prompt, the model is queried
in batches of facts until all facts are done or the user stops.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import streamlit as st

from lama_core.datasets.prompt_sets import check_templates
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.probes.prompts.accuracy_growth import PromptTrial, stored_trial
from lama_core.rounding import percent
from lama_core.scoring.blanks import shows_subject
from lama_core.service import queries
from pages.ui.prompts.study_choice import PromptsChoice
from pages.ui.prompts.table import LEAST_FACTS, draw_facts, keep_trial
from pages.ui.shared import cache, links
from pages.ui.shared.fetching import draw_offer
from pages.ui.shared.messages import counted, errors_shown, plain
from pages.ui.shared.url_state import BOUND, title_of

BATCH = 8
PLACEHOLDER = "[X] is a city in [Y] ."
HELP = (
    "[X] is the subject, [Y] the blank. Prompts of the study show their result at once; the model "
    "is queried with a new one."
)
SENTENCE = re.compile(r"[^:;()]* (is|was|are) [^:;()]*\.")
STATE = "trying"
TYPED = "typed prompt"  # session key: the user has typed a prompt, which isn't tried yet
EXAMPLE = "tried example"  # session key: the example prompt that was filled in last


def example_of(choice: PromptsChoice) -> str:
    """Return the study's best prompt on the training facts, other than the manual one.

    Prefers whole sentences: mined prompts can be fragments.
    """
    pool, accuracies = choice.study.pool, choice.study.train_accuracies
    eligible = choice.eligible or pool.eligible("all")
    others = [number for number in eligible if number != pool.manual]
    sentences = [number for number in others if SENTENCE.fullmatch(pool.templates[number])]
    best = max(sentences or others, key=lambda number: accuracies[number], default=None)
    return "" if best is None else pool.templates[best]


def draw_entry(choice: PromptsChoice, open_relation: Callable[[], None]) -> None:
    """Draw an input for a prompt, whose result is on the screen that `open_relation` opens."""

    def take() -> None:
        st.session_state["try"] = st.session_state["first_try"]
        links.set_param("try", [st.session_state["try"]])
        st.session_state[TYPED] = True
        open_relation()

    _draw_task(choice)
    st.text_input("Prompt", key="first_try", placeholder=PLACEHOLDER, help=HELP, on_change=take)


def _draw_task(choice: PromptsChoice) -> None:
    study = choice.study
    fact, manual = study.test[0], study.pool.manual
    relation = plain(study.relation.label or study.relation.name)
    beat = (
        ""
        if manual is None
        else f" Can you beat the manual prompt “{plain(study.pool.templates[manual])}”?"
    )
    st.markdown(
        f"Write a sentence for the relation **{relation}**: [X] stands for the subject (such as "
        f"{plain(fact.subject)}), [Y] for the right answer ({plain(fact.object)}).{beat}"
    )


def draw_try(choice: PromptsChoice) -> str:
    """Draw the input and the prompt's result, from the study or the model; return the prompt."""
    study, model = choice.study, plain(title_of(choice.info.model))
    _draw_task(choice)
    example = example_of(choice)
    before = st.session_state.get("try", "")
    if links.is_new_url() or not before:
        before = st.query_params.get("try", before)
    if before in ("", st.session_state.get(EXAMPLE)) and example:
        st.session_state["try"] = example
        links.set_param("try", [example])
    st.session_state[EXAMPLE] = example
    box, go_box = st.columns([4, 1], vertical_alignment="bottom")
    template = box.text_input(
        "Prompt",
        key="try",
        bind=BOUND,
        placeholder=PLACEHOLDER,
        help=HELP,
        on_change=st.session_state.update,
        args=({TYPED: True},),
    )
    if template == example != "":
        of = "whole sentences" if SENTENCE.fullmatch(example) else "other prompts"
        st.caption(
            f"Shown as an example until you type: of the study's {of}, the best on the "
            f"{len(study.train):,} training facts. Can you beat it, too?"
        )
    clicked = go_box.button("Try it", type="primary", icon=":material/play_arrow:")
    clicked |= st.session_state.pop(TYPED, False)
    if "[X]" in template and not shows_subject(template, choice.info.context):
        st.caption(
            f"The blank comes before the subject: this prompt hides the subject from {model}, and "
            "every fact gets the same answers."
        )
    stored = study.pool.find(template)
    if stored is not None:
        facts = range(len(study.test))
        _draw_result(choice, stored_trial(study, stored, facts), facts)
        return template
    entry = find_model(choice.info.model)
    if not is_here(entry):
        draw_offer(entry)
        return template
    mark = (choice.info.digest, study.relation.name, template)
    if clicked:
        with errors_shown():
            check_templates([template])
            growth = PromptTrial(template, len(study.test))
            st.session_state[STATE] = {"mark": mark, "growth": growth, "running": True}
    state = st.session_state.get(STATE)
    if state is None or state["mark"] != mark:
        st.caption(f"Click **Try it** to query {model} about the {len(study.test):,} test facts.")
    else:
        _draw_tried(choice, state)
    return template


def _draw_tried(choice: PromptsChoice, state: dict[str, Any]) -> None:
    """Draw the result on the facts queried so far; unless stopped, query the other facts."""
    place = st.empty()
    if state["growth"].asked:
        with place.container():
            _draw_grown(choice, state)
    if state["growth"].is_whole:
        return
    running = state["running"]
    st.button(
        "Stop" if running else "Resume",
        icon=":material/stop:" if running else ":material/play_arrow:",
        on_click=state.update,
        args=({"running": not running},),
    )
    if not running:
        return
    study, info = choice.study, choice.info
    with errors_shown():
        if "facts" not in state:
            state["facts"] = cache.uncached(
                queries.prompt_facts,
                info.model,
                info.precision,
                study.relation,
                study.test,
                choice.whole.candidates,
                info.context,
                template=study.pool.prompts[0].template,
                known=study.known(),
            )
            n_facts = len(state["facts"].facts)
            state["order"] = np.random.default_rng(0).permutation(n_facts).tolist()
            state["growth"] = PromptTrial(state["growth"].template, n_facts)
        while not state["growth"].is_whole:
            state["growth"] = cache.uncached(
                queries.extended_trial,
                info.model,
                info.precision,
                state["growth"],
                state["facts"],
                info.context,
                study.ranking,
                n_facts=BATCH,
                order=state["order"],
            )
            with place.container():
                _draw_grown(choice, state)
    state["running"] = False
    if state["growth"].is_whole:
        st.rerun()


def _draw_grown(choice: PromptsChoice, state: dict[str, Any]) -> None:
    """Draw the result so far."""
    growth: PromptTrial = state["growth"]
    places = {fact.id: place for place, fact in enumerate(choice.study.test)}
    asked = (state["facts"].facts[number] for number in state["order"][: len(growth.asked)])
    facts = [places[fact.id] for fact in asked]
    if growth.is_whole:
        keep_trial(choice, growth, facts)
    _draw_result(choice, growth, facts, running=state["running"])


def _draw_result(
    choice: PromptsChoice, growth: PromptTrial, facts: Sequence[int], *, running: bool = False
) -> None:
    """Draw the prompts' paired difference, P@1 of each, and facts that only one gets right.

    `facts` holds the indexes of the queried facts among the test facts.
    """
    study = choice.study
    name = "This prompt" if study.pool.find(growth.template) is not None else "Your prompt"
    name = "The example" if growth.template == example_of(choice) else name
    shown = {name: growth}
    manual = study.pool.manual
    if manual is not None:
        shown["Manual prompt"] = other = stored_trial(study, manual, facts)
        st.markdown(_headline(growth, other, name))
    for column, (title, result) in zip(st.columns(2), shown.items(), strict=False):
        with column.container(border=True, height="stretch"):
            st.markdown(f"**{title}**: {plain(result.template)}")
            end = result.curve()[-1]
            st.metric(
                f"P@1, {study.ranking} ranking",
                f"{percent(end.value)} %",
                help="The interval is Wilson's. It is too narrow if you stop because you like the "
                "result so far (repeated looks at the data).",
            )
            st.caption(
                f"95 % interval {percent(end.low)} to {percent(end.high)} %; "
                f"{len(result.asked):,} of {growth.total:,} test facts"
            )
    if manual is not None and not running:
        _draw_flips(choice, growth, other, facts, name)


def _headline(own: PromptTrial, manual: PromptTrial, name: str) -> str:
    """Return in a sentence which of the two prompts is better."""
    found = own.less(manual)
    low, high = found.interval.low, found.interval.high
    few = "" if found.n >= LEAST_FACTS else f" {counted(found.n, 'fact')} can't tell them apart."
    if found.difference == 0:
        n_right = counted(int(own.right.sum()), "fact")
        return f"**No difference**: both prompts get {n_right} of {found.n:,} right.{few}"
    comparison = (
        f"P@1 of {name.lower()} is {percent(abs(found.difference))} points "
        f"{'higher' if found.difference > 0 else 'lower'} than that of the manual prompt on the "
        f"same {found.n:,} facts (95 % interval of the paired difference: "
        f"{percent(low, signed=True)} to {percent(high, signed=True)})."
    )
    if low <= 0 <= high:
        return f"**No clear difference**: {comparison}{few}"
    return f"**{name} is {'better' if low > 0 else 'worse'}**: {comparison}"


def _draw_flips(
    choice: PromptsChoice, own: PromptTrial, manual: PromptTrial, facts: Sequence[int], name: str
) -> None:
    """Draw the facts that only one prompt gets right; a click opens one on the page Ask."""
    flips = np.flatnonzero(own.right != manual.right).tolist()
    gained = int(own.right[flips].sum())
    said = (
        f"Facts where the prompts differ: {gained:,} right only with {name.lower()}, "
        f"{len(flips) - gained:,} right only with the manual prompt"
    )
    if not len(flips):
        st.caption(said)
        return
    with st.expander(said, icon=":material/fact_check:"):
        rows = [
            {
                "subject": own.asked[at].subject,
                "right answer": own.asked[at].gold,
                name.lower(): own.asked[at].first + " ✓" * bool(own.right[at]),
                "manual prompt": manual.asked[at].first + " ✓" * bool(manual.right[at]),
            }
            for at in flips
        ]
        draw_facts(choice, own.template, rows, [facts[at] for at in flips])
