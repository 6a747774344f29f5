"""The form for a new run, on the page Data and runs.

Its tabs are the kinds of probe whose requests name facts and models; most of their options are
drawn as the request declares them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from lama_core.candidates.lists import FILE, explain_lists, list_names, unavailable_lists
from lama_core.datasets.passages import STARTER
from lama_core.glossary import explain
from lama_core.paths import corpus_files
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.generation.request import GenerateRequest
from lama_core.probes.kinds import KINDS
from lama_core.probes.statements.plan import most_templates
from lama_core.queries.question import can_generate
from lama_core.requests import RequestField, field_values
from lama_core.rounding import percent
from lama_core.runs.info import FACT_KINDS
from lama_core.scoring.answer_spaces import RELATION
from lama_core.scoring.prompt_choice import LPAQA_SETS, PROMPT_SETS
from lama_core.scoring.shared_fields import RunSettings
from lama_core.views.scores import results
from pages.ui.shared import cache, jobs, links, screens, visitors
from pages.ui.shared.messages import counted, plain, show_note
from pages.ui.shared.request_fields import draw_field, fields_of
from pages.ui.shared.run_form import (
    KEPT,
    OPENED_MODELS,
    RunForm,
    choose_limit,
    choose_models,
    choose_possible,
    choose_relations,
    draw_no_data,
    draw_run_form,
    facts_here,
    infos_of,
)
from pages.ui.shared.run_time import about
from pages.ui.shared.url_state import BOUND, choose, pick, title_of

WORDS_AT_BLANK, WHOLE_ANSWERS = "words at a blank", KINDS["statements"].title
# What a run asks -> its request: all kinds of probe of facts, with models.
REQUESTS: dict[str, type[RunSettings]] = {
    WORDS_AT_BLANK if kind.spec.kind == "cloze" else kind.title: request
    for kind in KINDS.values()
    for request in kind.requests
    if issubclass(request, RunSettings)
}
# Kind of run -> what it does, and what is counted.
MEANINGS = {
    "cloze": "The model ranks single words at the blank; the share of right first words is P@1.",
    "statements": "The model scores the sentence with each answer of the relation, also with "
    "answers of several words; the likeliest sentence is its answer.",
    "generation": "The model answers a question in its own words; the text is right if it names "
    "the right answer.",
    "trace": "For facts whose right answer is the model's first one: through which words and "
    "layers does the fact pass? The subject is hidden by noise, and one inner value at a time is "
    "put back.",
}
PROBING = "a probing run"  # the job's name
MOST_FACTS, FEW_FACTS = 100, 20  # of a relation, unless the user types another number; few: slow
# Fields above the options, and those that the form leaves at their defaults.
COMMON = ("dataset", "models", "relations", "limit")
DEFAULTS = ("ranking", "precision", "revisions", "segments", "out", "executor", "parts_at")


def draw_form() -> None:
    """Draw the form, start the run and show its progress."""
    draw_run_form(RunForm(PROBING, _choose, result=_result))


def start_run(data: str, models: Sequence[str]) -> None:
    """Start the run that the form starts without changes. models: the names of the models."""
    request = ProbeRequest(data, models=tuple(models), limit=MOST_FACTS)
    jobs.start(PROBING, request, about=about(request))


def open_form(request: RunSettings, model: str) -> None:
    """Open the form with the values of a request and one of its models, to run it again."""
    values = field_values(request)
    models = (model,) if model in values["models"] else tuple(values["models"])
    way = next(name for name, kind in REQUESTS.items() if type(request) is kind)
    st.session_state["new models"] = list(models)
    st.session_state[OPENED_MODELS] = models
    if "template" in values:  # these fields aren't in the URL
        st.session_state[_template_key(values)] = values["template"]
        st.session_state["new answers"] = values["answers"].removeprefix(RELATION)
    params = {
        f"run_{name}": str(values[name])
        for name, field in fields_of(type(request)).items()
        if name not in (*COMMON, *DEFAULTS) and values[name] != field.default
    }
    params |= {"data": values["dataset"], "run_rank": way, "run_relations": values["relations"]}
    if values["limit"] is None:  # the URL can't say that there is none
        st.session_state[_limit_key(way)] = None
    else:
        params[_limit_key(way)] = str(values["limit"])
    links.go(screens.DATA, {**screens.NEW_RUN, **params})


def _limit_key(way: str) -> str:
    return "run_limit" if way == WORDS_AT_BLANK else "answers_limit"


def _result(names: Sequence[str]) -> str:
    """State the right first answers of each run of facts, and the traced facts, as Markdown."""
    every = infos_of(names)
    infos = {info.id: info for info in every if info.kind in FACT_KINDS}
    lines = [
        f"{plain(title_of(info.model))}: {info.n:,} of {counted(info.n + info.n_excluded, 'fact')} "
        "traced; the others are excluded, mostly because the first answer is wrong."
        for info in every
        if info.id not in infos
    ]
    for run, table in results([*infos]).groupby("run", sort=False) if infos else ():
        n = int(table["n"].sum())
        if n:
            share = float((table["p_at_1"] * table["n"]).sum() / n)
            lines.append(
                f"{plain(title_of(infos[str(run)].model))}: {round(share * n):,} of {n:,} first "
                f"answers are right (P@1 {percent(share)} %)."
            )
    return " ".join(lines)


def _choose() -> RunSettings | None:
    """Draw the widgets of a new run; return its request, None if a choice is missing.

    The URL holds the choices, except for the models, which may be folders.
    """
    names = facts_here()
    if not names:
        draw_no_data("facts")
        return None
    st.markdown(
        "How much does a model know? A run asks it every fact of a data set, such as “The capital "
        "of Peru is ___”."
    )
    left, right = st.columns(2, gap="large")
    data = choose("Data", names, key="data", place=left)
    with right:
        models = choose_models("new models")
    way = pick(
        "How to ask",
        [*REQUESTS],
        key="run_rank",
        first=WORDS_AT_BLANK,
        help=explain("Words or whole answers"),
    )
    st.caption(
        MEANINGS[next(name for name, kind in KINDS.items() if REQUESTS[way] in kind.requests)]
    )
    common: dict[str, Any] = {"dataset": data, "models": models}
    left, right = st.columns(2, gap="large")
    with left:
        relations = cache.relations_of(data)
        common["relations"] = choose_relations(relations, "run_relations", bound=True)
    with right:
        common["limit"] = choose_limit(
            MOST_FACTS if way == WORDS_AT_BLANK else FEW_FACTS,
            _limit_key(way),
            help="Uses the first N facts of each relation, in file order. Empty: all facts.",
            bound=True,
        )
    options = _choose_options(REQUESTS[way], common)
    if not models:
        show_note("Choose at least one model.")
        return None
    silent = [title_of(name) for name in models if not can_generate(name)]
    if silent and REQUESTS[way] is GenerateRequest:
        show_note(f"{', '.join(silent)} can't generate text. Choose causal models or chat servers.")
        if usual := [name for name in visitors.models_here() if can_generate(name)]:
            st.button(
                f"Choose {plain(title_of(usual[0]))}",
                on_click=st.session_state.update,
                args=({"new models": usual[:1]},),
            )
        return None
    if any(options.get(name, "") is None for name in ("prompts", "candidates")):
        show_note("No prompts or candidates work with these data. Choose other data.")
        return None
    request = REQUESTS[way](**common, **options)
    request.check()
    return request


def _choose_options(kind: type[RunSettings], common: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the options of a kind of run, in two columns; return field -> value."""
    fields = {
        name: field
        for name, field in fields_of(kind).items()
        if name not in (*COMMON, *DEFAULTS) and (name != "open_book" or corpus_files())
    }
    values = {}
    with st.expander("Options", icon=":material/tune:"):
        columns = st.columns(2, gap="large")
        for number, (name, field) in enumerate(fields.items()):
            with columns[2 * number // len(fields)]:
                values[name] = _choose_option(name, field, common)
    return values


def _choose_option(name: str, field: RequestField, common: Mapping[str, Any]) -> Any:
    """Draw the widget of an option; some depend on the data or on what is installed."""
    data, relations = common["dataset"], common["relations"]
    match name:
        case "prompts":
            return choose_possible(
                "Prompts",
                (*PROMPT_SETS, *LPAQA_SETS),
                cache.impossible_prompts(data, relations, common["limit"]),
                key="run_prompts",
                help="\n\n".join(
                    [f"**{name}**: {one.meaning}" for name, one in PROMPT_SETS.items()]
                    + [f"**{', '.join(LPAQA_SETS)}**: LPAQA's prompts, mined and paraphrased"]
                ),
            )
        case "candidates":
            return choose_possible(
                "Candidates",
                list_names(of_relations=True),
                unavailable_lists(of_relations=True),
                key="run_candidates",
                help=explain_lists(of_relations=True),
            )
        case "context":
            context = pick(
                "Causal models see",
                ("left", "both"),
                key="run_context",
                help="**left**: only the text before the blank, as in the paper. **both**: the "
                "whole sentence (slower).",
            )
            return context if context == "both" else None
        case "open_book":
            is_open_book = st.toggle(
                "Open-book context",
                key="run_open_book",
                bind=BOUND,
                help="Prepends the most similar passage of MiniLM-MLM's training text to each "
                "query. The run then measures whether a model can read the answer there.",
            )
            return STARTER if is_open_book else None
        case "template":
            return int(
                st.number_input(
                    "Template",
                    0,
                    most_templates(cache.dataset_of(data), relations) - 1,
                    0,
                    key=_template_key(common),
                    persist_state=KEPT,
                    help="Number of the template of each relation, from 0. For relations without "
                    "templates only 0 is possible: they use the sentence of each fact.",
                )
            )
        case "answers":  # from the data or, if the visitor may type paths, from a file
            if not visitors.may("paths"):
                return RELATION
            path = st.text_input(
                "Answers from a file",
                key="new answers",
                persist_state=KEPT,
                placeholder="Each relation's own",
                help="A text file with one answer per line, used for every relation. Empty: each "
                "relation's own answers, which are the list in the data or, without one, all "
                "objects.",
            ).strip()
            return FILE + path.removeprefix(FILE) if path else RELATION
        case _:  # Field -> label and help, if they aren't the field's own
            said = {
                "part": ("Score", explain("Tokens that count")),
                "aggregate": ("Combine tokens by", explain("Sum and mean")),
                "hiding": ("Hidden with a token", explain("Masked together with a token")),
                "start_token": ("Start token of causal models", explain("Start token")),
            }
            return draw_field(field, f"run_{name}", *said.get(name, ("", None)))


def _template_key(common: Mapping[str, Any]) -> str:
    return f"new template {common['dataset']} {common['relations']}"
