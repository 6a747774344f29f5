"""A new study of prompts, from the Prompts page."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from lama_core.datasets.library.installed import listing
from lama_core.probes.prompts.probing import COMBINATIONS, StudyRequest
from lama_core.runs.find import list_runs
from pages.ui.shared import cache, links
from pages.ui.shared.run_form import (
    KEPT,
    RunForm,
    choose_relations,
    draw_no_data,
    draw_run_form,
    models_here,
)


def draw_form() -> None:
    """Choose what to study, start it, watch it."""
    note = "Top-1 and the optimised ensembles are kept as runs, too: see them on Results."
    draw_run_form(RunForm("a study of prompts", _choose, _show, note))


def _show(names: Sequence[str]) -> None:
    studies = [run.id for run in list_runs(kinds=("study",)) if run.id in names]
    links.go(links.PROMPTS, links.PROMPTS, {"study": studies[:1]})


def _choose() -> StudyRequest | None:
    """The widgets of a new study; they are not part of the page's address."""
    data = [row.name for row in listing() if row.installed and row.kind == "facts"]
    models = models_here()
    if not data or not models:
        draw_no_data("facts" if not data else "models")
        return None
    left, right = st.columns(2, gap="large")
    with left:
        dataset = st.selectbox("Data", data, key="study data", persist_state=KEPT)
        relations = choose_relations(cache.relations_of(dataset), "study relations")
        first = models.index("minilm-mlm") if "minilm-mlm" in models else 0
        model = st.selectbox("Model", models, index=first, key="study model", persist_state=KEPT)
        limit = st.number_input(
            "Facts a relation (at most, to train and to test)", 1, None, 100, key="study limit",
            persist_state=KEPT,
        )  # fmt: skip
    with right:
        prompts = st.text_input(
            "LPAQA's prompts (optional)", key="study prompts", persist_state=KEPT,
            help="A folder with mine, paraphrase and manual_paraphrase in it. Without it: the "
            "relation's own template and paraphrases.",
        )  # fmt: skip
        training = st.text_input(
            "Training pairs (optional)", key="study training", persist_state=KEPT,
            help="A folder with one P*.jsonl a relation. Without it half of the facts train and "
            "the other half test.",
        )  # fmt: skip
        own = st.text_area(
            "Your own prompts (optional, one a line)", key="study own", persist_state=KEPT,
            help="For a single relation. [X] stands for the subject, [Y] for the blank.",
        )  # fmt: skip
    templates = tuple(line.strip() for line in own.splitlines() if line.strip())
    return StudyRequest(
        dataset=dataset,
        model=model,
        relations=relations,
        prompts=Path(prompts) if prompts else None,
        own=templates,
        training=Path(training) if training else None,
        combinations=(*COMBINATIONS, "user") if templates else COMBINATIONS,
        limit=int(limit) if limit else None,
        train_limit=int(limit) if limit else None,
        drop_overlap=bool(training),
    )
