"""A new run of cloze queries, from the Results page."""

from collections.abc import Sequence

import streamlit as st

from lama_core.asking.prompts import LPAQA_SETS, PROMPT_SETS
from lama_core.candidates.lists import explain_lists, impossible_lists, list_names
from lama_core.datasets.library.installed import listing
from lama_core.probes.probing import ProbeRequest
from lama_core.runs.find import load_run
from pages.ui.shared import cache, links
from pages.ui.shared.run_form import (
    KEPT,
    RunForm,
    choose_models,
    choose_possible,
    choose_relations,
    draw_no_data,
    draw_run_form,
)


def draw_form() -> None:
    """Choose what to run, start it, watch it."""
    draw_run_form(RunForm("a probing run", _choose, _show))


def _show(names: Sequence[str]) -> None:
    data = load_run(names[0]).info.dataset
    links.go(links.RESULTS, {"data": data, "runs": list(names)})


def _choose() -> ProbeRequest | None:
    """The widgets of a new run; they are not part of the page's address."""
    names = [row.name for row in listing() if row.installed and row.kind == "facts"]
    if not names:
        draw_no_data("facts")
        return None
    left, right = st.columns(2, gap="large")
    with left:
        data = st.selectbox("Data", names, key="new data", persist_state=KEPT)
        relations = choose_relations(cache.relations_of(data), "new relations")
        models = choose_models("new models")
    with right:
        limit = st.number_input(
            "Facts a relation (at most)", 1, None, 100, key="new limit", persist_state=KEPT,
            help="The first so many facts of each relation in file order. Empty: all.",
        )  # fmt: skip
        prompts = choose_possible(
            "Prompts",
            (*PROMPT_SETS, *LPAQA_SETS),
            cache.impossible_prompts(data, relations, int(limit) if limit else None),
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
    if not models:
        st.info("Choose at least one model.", icon=":material/info:")
        return None
    if prompts is None or candidates is None:
        st.info("Choose other data: nothing can be asked of these.", icon=":material/info:")
        return None
    return ProbeRequest(
        dataset=data,
        models=models,
        relations=relations,
        prompts=prompts,
        candidates=candidates,
        context="both" if context == "both" else None,
        limit=int(limit) if limit else None,
    )
