"""The form for a new study of prompts, on the page Data and runs."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from lama_core.datasets.library.installed import (
    pair_set_names,
    prompt_set_names,
    prompts_dir,
)
from lama_core.datasets.prompt_sets import relations_in
from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.probes.prompts.plan import COMBINATIONS, StudyRequest, check_study
from lama_core.runs.find import list_runs
from pages.ui.prompts.study_choice import MADE_STUDY_KEY
from pages.ui.shared import cache, links, screens, visitors
from pages.ui.shared.run_form import (
    KEPT,
    RunForm,
    choose_limit,
    choose_relations,
    draw_no_data,
    draw_run_form,
    facts_here,
)
from pages.ui.shared.url_state import pick

OWN_PROMPTS = "The relations' own"
HALVES = "Half of the facts"


def draw_form() -> None:
    """Draw the form, start the study and show its progress."""
    note = (
        "Top-1 and the optimised ensembles are also stored as runs. Results shows them in the "
        "ranking chosen there."
    )
    draw_run_form(RunForm("a study of prompts", _choose, _show, note))


def _show(names: Sequence[str]) -> None:
    studies = [run.id for run in list_runs(kinds=("study",)) if run.id in names]
    st.session_state[MADE_STUDY_KEY] = studies[:1]
    links.go(screens.RESULTS, {**screens.PROMPTS, "study": studies[:1]})


def _choose() -> StudyRequest | None:
    """Draw the widgets of a new study and return its request; None without data or models.

    The URL doesn't contain these widgets' values.
    """
    data = facts_here()
    models = visitors.models_here()
    if not data or not models:
        draw_no_data("facts" if not data else "models")
        return None
    left, right = st.columns(2, gap="large")
    with left:
        dataset = st.selectbox("Data", data, key="study data", persist_state=KEPT)
        prompts = _choose_set(
            "Prompts",
            OWN_PROMPTS,
            prompt_set_names(),
            "study prompts",
            "An imported set (for example LPAQA's, from the tab Import), or the path of a folder "
            "with the subfolders mine, paraphrase and manual_paraphrase. The relation's own "
            "template and paraphrases are always included.",
        )
        known = cache.relations_of(dataset)
        if prompts:
            with_prompts = relations_in(prompts_dir(prompts))
            known = {name: title for name, title in known.items() if name in with_prompts}
            if not known:
                raise UserError(
                    f"{prompts} has no prompts for the relations of {dataset}. Choose another set."
                )
        relations = choose_relations(known, "study relations")
        first = models.index("minilm-mlm") if "minilm-mlm" in models else 0
        model = st.selectbox("Model", models, index=first, key="study model", persist_state=KEPT)
        limit = choose_limit(
            100, "study limit", what="Facts per relation (at most, for training and test each)"
        )
    with right:
        training = _choose_set(
            "Training pairs",
            HALVES,
            pair_set_names(),
            "study training",
            "An imported set with training pairs (such as LPAQA's), or the path of a folder with "
            f"one P*.jsonl per relation. **{HALVES}**: half of the facts are for training, the "
            "other half for the test.",
        )
        ranking = pick(
            "Ranking",
            ("raw", "filtered"),
            key="study ranking",
            bound=False,
            help=f"{explain('Filtered and raw ranking')} The study chooses prompts by this ranking "
            "and reports all results in it. The published values use the raw ranking.",
        )
        own = st.text_area(
            "Your own prompts (optional, one per line)",
            key="study own",
            persist_state=KEPT,
            help="Only for a study of a single relation. [X] is the subject, [Y] the blank.",
        )
        blind = st.toggle(
            "Include subject-blind prompts in ensembles",
            key="study blind",
            persist_state=KEPT,
            help="A causal model sees only the text before the blank, so a prompt with the subject "
            "after the blank hides the subject from it. Turn on to include such prompts in "
            "ensembles.",
        )
    templates = tuple(line.strip() for line in own.splitlines() if line.strip())
    request = StudyRequest(
        dataset=dataset,
        model=model,
        relations=relations,
        prompts=prompts,
        own=templates,
        training=training,
        ranking="filtered" if ranking == "filtered" else "raw",
        combinations=(*COMBINATIONS, "user") if templates else COMBINATIONS,
        limit=limit,
        train_limit=limit,
        drop_overlap=training is not None,
        blind=blind,
    )
    check_study(request, cache.dataset_of(dataset))
    return request


def _choose_set(
    label: str, without: str, names: Sequence[str], key: str, meaning: str
) -> Path | None:
    """Draw the choice of an imported set or a typed folder; None for the option `without`."""
    chosen = st.selectbox(
        label,
        [without, *names],
        key=key,
        persist_state=KEPT,
        accept_new_options=visitors.may("paths"),
        help=meaning,
    )
    return Path(chosen) if chosen and chosen != without else None
