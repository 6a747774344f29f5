"""A new run of cloze queries or of statements, for the page Data and runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.candidates.lists import FILE, explain_lists, impossible_lists, list_names
from lama_core.datasets.passages import STARTER
from lama_core.glossary import explain
from lama_core.models.protocols import HIDINGS
from lama_core.paths import corpus_files
from lama_core.probes.plan import ProbeRequest
from lama_core.probes.statements.answer_spaces import RELATION
from lama_core.probes.statements.plan import StatementsRequest, most_templates
from lama_core.probes.statements.scoring import AGGREGATES, PARTS
from lama_core.runs.find import load_run
from lama_core.scoring.prompt_choice import LPAQA_SETS, PROMPT_SETS
from pages.ui.shared import cache, links, screens, visitors
from pages.ui.shared.messages import show_note
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
from pages.ui.shared.url_state import pick

WORDS, ANSWERS = ASKED = ("words at a blank", "whole answers")
TEMPLATE_HELP = (
    "Which of each relation's templates, counted from 0. Relations without templates use their "
    "facts' own sentences, with 0 only."
)


def draw_form() -> None:
    """Choose what to run, start it, watch it."""
    asked = pick(
        "Rank",
        ASKED,
        key="new kind",
        first=WORDS,
        bound=False,
        help=explain("Words or whole answers"),
    )
    if asked == ANSWERS:
        draw_run_form(RunForm("a run of statements", _choose_statements, _show))
    else:
        draw_run_form(RunForm("a probing run", _choose, _show))


@dataclass(frozen=True, slots=True)
class What:
    """What is asked of whom, in a run of either kind, and the columns for its other widgets."""

    data: str
    relations: tuple[str, ...]
    models: tuple[str, ...]
    left: DeltaGenerator
    right: DeltaGenerator


def _show(names: Sequence[str]) -> None:
    data = load_run(names[0]).info.dataset
    links.go(screens.RESULTS, {"data": data, "runs": list(names)})


def _choose_what() -> What | None:
    """The widgets that both kinds of run have; None where no facts are here."""
    names = facts_here()
    if not names:
        draw_no_data("facts")
        return None
    left, right = st.columns(2, gap="large")
    with left:
        data = st.selectbox("Data", names, key="new data", persist_state=KEPT)
        relations = choose_relations(cache.relations_of(data), "new relations")
        models = choose_models("new models")
    return What(data, relations, models, left, right)


def _choose_statements() -> StatementsRequest | None:
    """The widgets of a new run of statements; they are not part of the page's address."""
    what = _choose_what()
    if what is None:
        return None
    with what.left:
        limit = choose_limit(
            20,
            "new statements limit",
            help="The first so many facts of each relation in file order; of each, all answers are "
            "scored. Empty: all.",
        )
    with what.right:
        template = st.number_input(
            "Template",
            0,
            most_templates(cache.dataset_of(what.data), what.relations) - 1,
            0,
            key=f"new template {what.data} {what.relations}",
            persist_state=KEPT,
            help=TEMPLATE_HELP,
        )
        answers = _choose_answers()
        part = pick("Score", PARTS, key="new part", bound=False, help=explain("Tokens that count"))
        aggregate = pick(
            "Taken together by",
            AGGREGATES,
            key="new aggregate",
            bound=False,
            help=explain("Sum and mean"),
        )
        hiding = pick(
            "Hidden with a token",
            HIDINGS,
            key="new hiding",
            bound=False,
            help=explain("Hidden with a token"),
        )
    if not what.models:
        show_note("Choose at least one model.")
        return None
    return StatementsRequest(
        dataset=what.data,
        models=what.models,
        relations=what.relations,
        template=int(template),
        answers=answers,
        aggregate=aggregate,
        part=part,
        hiding=hiding,
        limit=limit,
    )


def _choose_answers() -> str:
    """What is ranked: the relations' own answers, or a file's, for whoever may type paths."""
    if not visitors.may("paths"):
        return RELATION
    path = st.text_input(
        "Answers from a file",
        key="new answers",
        persist_state=KEPT,
        placeholder="Each relation's own",
        help="A file with an answer a line, for every relation; "
        "left empty, the relation's own: the data's list, or all its objects.",
    ).strip()
    if not path:
        return RELATION
    visitors.check("paths")
    return FILE + path.removeprefix(FILE)


def _choose() -> ProbeRequest | None:
    """The widgets of a new run; they are not part of the page's address."""
    what = _choose_what()
    if what is None:
        return None
    with what.right:
        meaning = "The first so many facts of each relation in file order. Empty: all."
        limit = choose_limit(100, "new limit", help=meaning)
        prompts = choose_possible(
            "Prompts",
            (*PROMPT_SETS, *LPAQA_SETS),
            cache.impossible_prompts(what.data, what.relations, limit),
            key="new prompts",
            help="\n\n".join(
                [f"**{name}**: {one.meaning}" for name, one in PROMPT_SETS.items()]
                + [f"**{', '.join(LPAQA_SETS)}**: LPAQA's prompts, mined and paraphrased"]
            ),
        )
        candidates = choose_possible(
            "Candidates",
            list_names(of_relations=True),
            impossible_lists(of_relations=True),
            key="new candidates",
            help=explain_lists(of_relations=True),
        )
        context = pick(
            "Causal models see",
            ("left", "both"),
            key="new context",
            bound=False,
            help="**left**: the text left of the blank, as in the paper. **both**: the whole "
            "sentence; slower.",
        )
        book = _choose_book()
    if not what.models:
        show_note("Choose at least one model.")
        return None
    if prompts is None or candidates is None:
        show_note("Choose other data: these have no prompts or candidates that work.")
        return None
    return ProbeRequest(
        dataset=what.data,
        models=what.models,
        relations=what.relations,
        prompts=prompts,
        candidates=candidates,
        context="both" if context == "both" else None,
        limit=limit,
        open_book=book,
    )


def _choose_book() -> str | None:
    """What models read from, where the embedded model's training text is here."""
    if not corpus_files():
        return None
    opened = st.toggle(
        "Open-book context",
        key="new open book",
        persist_state=KEPT,
        help="Puts the passage of minilm-mlm's training text that is nearest to a query before it: "
        "the run measures whether a model can read the answer.",
    )
    return STARTER if opened else None
