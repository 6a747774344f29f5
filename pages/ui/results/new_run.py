"""The form for a new run (words at a blank, or whole answers), on the page Data and runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from lama_core.api.results import results
from lama_core.candidates.lists import FILE, explain_lists, list_names, unavailable_lists
from lama_core.datasets.passages import STARTER
from lama_core.glossary import explain
from lama_core.models.protocols import HIDINGS
from lama_core.paths import corpus_files
from lama_core.probes.plan import ProbeRequest
from lama_core.probes.statements.plan import StatementsRequest, most_templates
from lama_core.rounding import percent
from lama_core.runs.find import load_run
from lama_core.scoring.answer_spaces import RELATION
from lama_core.scoring.prompt_choice import LPAQA_SETS, PROMPT_SETS
from lama_core.scoring.statement_scores import AGGREGATES, PARTS
from pages.ui.shared import cache, jobs, links, screens, visitors
from pages.ui.shared.messages import plain, show_note
from pages.ui.shared.run_form import (
    KEPT,
    RunForm,
    choose_limit,
    choose_models,
    choose_possible,
    choose_relations,
    draw_no_data,
    draw_run_form,
    facts_here,
)
from pages.ui.shared.run_time import about
from pages.ui.shared.url_state import BOUND, choose, pick, title_of

WORDS_AT_BLANK, WHOLE_ANSWERS = RANKED = ("words at a blank", "whole answers")
ABOUT = (
    "How much does a model know? A run asks it every fact of a data set, such as “The capital of "
    "Peru is ___”, and counts how often its first answer is right."
)
PROBING = "a probing run"  # the job's name
OPTIONS = "Options"
MOST_FACTS = 100  # of a relation, unless the user types another number
TEMPLATE_HELP = (
    "Number of the template of each relation, from 0. For relations without templates only 0 is "
    "possible: they use the sentence of each fact."
)


def draw_form() -> None:
    """Draw the form, start the run and show its progress."""
    ranked = st.session_state.get("run_rank") or st.query_params.get("run_rank")
    if ranked == WHOLE_ANSWERS:
        draw_run_form(RunForm("a whole-answer run", _choose_statements, _show, result=_result))
    else:
        draw_run_form(RunForm(PROBING, _choose, _show, result=_result))


def start_run(data: str, models: Sequence[str]) -> None:
    """Start the run that the form starts without changes. models: the names of the models."""
    request = ProbeRequest(data, models=tuple(models), limit=MOST_FACTS)
    jobs.start(PROBING, request, about=about(request))


@dataclass(frozen=True, slots=True)
class Common:
    """The settings that both kinds of run share."""

    data: str
    relations: tuple[str, ...]
    models: tuple[str, ...]
    limit: int | None


def _show(names: Sequence[str]) -> None:
    data = load_run(names[0]).info.dataset
    links.go(screens.RESULTS, {"data": data, "runs": list(names)})


def _result(names: Sequence[str]) -> str:
    """State the number and share of right first answers of each run, as Markdown."""
    lines = []
    for run, table in results(names).groupby("run", sort=False):
        n = int(table["n"].sum())
        if n:
            share = float((table["p_at_1"] * table["n"]).sum() / n)
            title = plain(title_of(load_run(str(run)).info.model))
            lines.append(
                f"{title}: {round(share * n):,} of {n:,} first answers are right "
                f"(P@1 {percent(share)} %)."
            )
    return " ".join(lines)


def _choose_common(most_facts: int, key: str, meaning: str) -> Common | None:
    """Draw the widgets that both kinds of run share; None if no data with facts is installed.

    most_facts, key, meaning: default, key and help of the number of facts per relation.
    """
    names = facts_here()
    if not names:
        draw_no_data("facts")
        return None
    st.markdown(ABOUT)
    left, right = st.columns(2, gap="large")
    data = choose("Data", names, key="data", place=left)
    with right:
        models = choose_models("new models")
    pick(
        "How to ask",
        RANKED,
        key="run_rank",
        first=WORDS_AT_BLANK,
        help=explain("Words or whole answers"),
    )
    left, right = st.columns(2, gap="large")
    with left:
        relations = choose_relations(cache.relations_of(data), "run_relations", bound=True)
    with right:
        limit = choose_limit(most_facts, key, help=meaning, bound=True)
    return Common(data, relations, models, limit)


def _choose_statements() -> StatementsRequest | None:
    """Draw the widgets of a new whole-answer run; return its request, None if a choice is missing.

    The URL holds the choices, except for the models, which may be folders.
    """
    common = _choose_common(
        20,
        "answers_limit",
        "Uses the first N facts of each relation, in file order, and scores every answer for each. "
        "Empty: all facts.",
    )
    if common is None:
        return None
    with st.expander(OPTIONS, icon=":material/tune:"):
        left, right = st.columns(2, gap="large")
        with left:
            template = st.number_input(
                "Template",
                0,
                most_templates(cache.dataset_of(common.data), common.relations) - 1,
                0,
                key=f"new template {common.data} {common.relations}",
                persist_state=KEPT,
                help=TEMPLATE_HELP,
            )
            answers = _choose_answers()
        with right:
            part = pick("Score", PARTS, key="run_part", help=explain("Tokens that count"))
            aggregate = pick(
                "Combine tokens by", AGGREGATES, key="run_aggregate", help=explain("Sum and mean")
            )
            hiding = pick(
                "Hidden with a token",
                HIDINGS,
                key="run_hiding",
                help=explain("Masked together with a token"),
            )
    if not common.models:
        show_note("Choose at least one model.")
        return None
    return StatementsRequest(
        dataset=common.data,
        models=common.models,
        relations=common.relations,
        template=int(template),
        answers=answers,
        aggregate=aggregate,
        part=part,
        hiding=hiding,
        limit=common.limit,
    )


def _choose_answers() -> str:
    """Draw the choice of answers: from the data or, if the visitor may type paths, from a file."""
    if not visitors.may("paths"):
        return RELATION
    path = st.text_input(
        "Answers from a file",
        key="new answers",
        persist_state=KEPT,
        placeholder="Each relation's own",
        help="A text file with one answer per line, used for every relation. Empty: each "
        "relation's own answers, which are the list in the data or, without one, all objects.",
    ).strip()
    if not path:
        return RELATION
    visitors.check("paths")
    return FILE + path.removeprefix(FILE)


def _choose() -> ProbeRequest | None:
    """Draw the widgets of a new cloze run; return its request, None if a choice is missing.

    The URL holds the choices, except for the models, which may be folders.
    """
    common = _choose_common(
        MOST_FACTS,
        "run_limit",
        "Uses the first N facts of each relation, in file order. Empty: all facts.",
    )
    if common is None:
        return None
    with st.expander(OPTIONS, icon=":material/tune:"):
        left, right = st.columns(2, gap="large")
        with left:
            prompts = choose_possible(
                "Prompts",
                (*PROMPT_SETS, *LPAQA_SETS),
                cache.impossible_prompts(common.data, common.relations, common.limit),
                key="run_prompts",
                help="\n\n".join(
                    [f"**{name}**: {one.meaning}" for name, one in PROMPT_SETS.items()]
                    + [f"**{', '.join(LPAQA_SETS)}**: LPAQA's prompts, mined and paraphrased"]
                ),
            )
            context = pick(
                "Causal models see",
                ("left", "both"),
                key="run_context",
                help="**left**: only the text before the blank, as in the paper. **both**: the "
                "whole sentence (slower).",
            )
        with right:
            candidates = choose_possible(
                "Candidates",
                list_names(of_relations=True),
                unavailable_lists(of_relations=True),
                key="run_candidates",
                help=explain_lists(of_relations=True),
            )
            open_book = _choose_open_book()
    if not common.models:
        show_note("Choose at least one model.")
        return None
    if prompts is None or candidates is None:
        show_note("No prompts or candidates work with these data. Choose other data.")
        return None
    return ProbeRequest(
        dataset=common.data,
        models=common.models,
        relations=common.relations,
        prompts=prompts,
        candidates=candidates,
        context="both" if context == "both" else None,
        limit=common.limit,
        open_book=open_book,
    )


def _choose_open_book() -> str | None:
    """Draw the toggle for open-book context from MiniLM-MLM's training text, if installed."""
    if not corpus_files():
        return None
    is_open_book = st.toggle(
        "Open-book context",
        key="run_open_book",
        bind=BOUND,
        help="Prepends the most similar passage of MiniLM-MLM's training text to each query. The "
        "run then measures whether a model can read the answer there.",
    )
    return STARTER if is_open_book else None
