"""A new run of cloze queries or of statements, from the Results page."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.asking.prompts import LPAQA_SETS, PROMPT_SETS
from lama_core.candidates.lists import FILE, explain_lists, impossible_lists, list_names
from lama_core.datasets.corpus import STARTER
from lama_core.errors import choose
from lama_core.glossary import explain
from lama_core.models.base import HIDINGS
from lama_core.paths import corpus_files
from lama_core.probes.probing import ProbeRequest
from lama_core.probes.statements.probing import StatementsRequest, most_templates
from lama_core.probes.statements.scoring import AGGREGATES, PARTS
from lama_core.probes.statements.spaces import RELATION
from lama_core.runs.find import load_run
from pages.ui.shared import cache, links, visitors
from pages.ui.shared.run_form import (
    KEPT,
    RunForm,
    choose_models,
    choose_possible,
    choose_relations,
    draw_no_data,
    draw_run_form,
    facts_here,
)

WORDS, ANSWERS = ASKED = ("words at a blank", "whole answers")
TEMPLATE_HELP = (
    "Which of each relation's templates, counted from 0; relations without any are asked by their "
    "facts' own sentences, with 0 alone."
)


def draw_form() -> None:
    """Choose what to run, start it, watch it."""
    asked = st.segmented_control(
        "Rank", ASKED, default=WORDS, required=True, key="new kind", persist_state=KEPT,
        help=explain("Words or whole answers"),
    )  # fmt: skip
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
    links.go(links.RESULTS, {"data": data, "runs": list(names)})


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
        limit = st.number_input(
            "Facts a relation (at most)", 1, None, 20, key="new statements limit",
            persist_state=KEPT,
            help="The first so many facts of each relation in file order; of each, all answers are "
            "scored. Empty: all.",
        )  # fmt: skip
    with what.right:
        template = st.number_input(
            "Template", 0, most_templates(cache.dataset_of(what.data), what.relations) - 1, 0,
            key=f"new template {what.data} {what.relations}", persist_state=KEPT,
            help=TEMPLATE_HELP,
        )  # fmt: skip
        answers = _choose_answers()
        part = st.segmented_control(
            "Score", PARTS, default=PARTS[0], required=True, key="new part", persist_state=KEPT,
            help=explain("Tokens that count"),
        )  # fmt: skip
        aggregate = st.segmented_control(
            "Taken together by", AGGREGATES, default=AGGREGATES[0], required=True,
            key="new aggregate", persist_state=KEPT, help=explain("Sum and mean"),
        )  # fmt: skip
        hiding = st.segmented_control(
            "Hidden with a token", HIDINGS, default=HIDINGS[0], required=True, key="new hiding",
            persist_state=KEPT, help=explain("Hidden with a token"),
        )  # fmt: skip
    if not what.models:
        st.info("Choose at least one model.", icon=":material/info:")
        return None
    return StatementsRequest(
        dataset=what.data,
        models=what.models,
        relations=what.relations,
        template=int(template),
        answers=answers,
        aggregate=choose(str(aggregate), AGGREGATES, "aggregate"),
        part=choose(str(part), PARTS, "part"),
        hiding=choose(str(hiding), HIDINGS, "hiding"),
        limit=int(limit) if limit else None,
    )


def _choose_answers() -> str:
    """What is ranked: the relations' own answers, or a file's, for whoever may type paths."""
    if not visitors.may("paths"):
        return RELATION
    path = st.text_input(
        "Answers from a file", key="new answers", persist_state=KEPT,
        placeholder="Each relation's own", help="A file with an answer a line, for every relation; "
        "left empty, the relation's own: the data's list, or all its objects.",
    ).strip()  # fmt: skip
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
        limit = st.number_input(
            "Facts a relation (at most)", 1, None, 100, key="new limit", persist_state=KEPT,
            help="The first so many facts of each relation in file order. Empty: all.",
        )  # fmt: skip
        prompts = choose_possible(
            "Prompts",
            (*PROMPT_SETS, *LPAQA_SETS),
            cache.impossible_prompts(what.data, what.relations, int(limit) if limit else None),
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
        context = st.segmented_control(
            "Left-to-right models see", ("left", "both"), default="left", required=True,
            key="new context", persist_state=KEPT,
            help="**left**: what stands left of the blank, as in the paper. **both**: the whole "
            "sentence; slower.",
        )  # fmt: skip
        book = _choose_book()
    if not what.models:
        st.info("Choose at least one model.", icon=":material/info:")
        return None
    if prompts is None or candidates is None:
        st.info("Choose other data: nothing can be asked of these.", icon=":material/info:")
        return None
    return ProbeRequest(
        dataset=what.data,
        models=what.models,
        relations=what.relations,
        prompts=prompts,
        candidates=candidates,
        context="both" if context == "both" else None,
        limit=int(limit) if limit else None,
        open_book=book,
    )


def _choose_book() -> str | None:
    """What models read from, where the embedded model's training text is here."""
    if not corpus_files():
        return None
    opened = st.toggle(
        "Open book", key="new open book", persist_state=KEPT,
        help="The passage of minilm-mlm's training text that is nearest to a query stands before "
        "it: does a model know, or can it read?",
    )  # fmt: skip
    return STARTER if opened else None
