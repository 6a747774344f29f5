"""The form for a new study of prompts, on the page Data and runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import streamlit as st

from lama_core.datasets.library.installed import (
    pair_set_names,
    prompt_set_names,
    prompts_dir,
)
from lama_core.datasets.prompt_sets import TITLES, relations_in
from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.probes.prompts.request import COMBINATIONS, StudyRequest
from lama_core.probes.prompts.spec import list_studies
from lama_core.probes.run_time import size_of
from lama_core.runs.find import list_runs
from lama_core.scoring.shared_fields import DEFAULT_MODEL
from lama_core.views.figure import relation_label
from pages.ui.prompts.study_choice import MADE_STUDY_KEY
from pages.ui.prompts.table import LEAST_FACTS
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
from pages.ui.shared.url_state import BOUND, choose, pick, title_of

FIRST_RELATION = "P30"  # continent: a prompt is clearly the best
OWN_PROMPTS = "The relations' own"
HALVES = "Half of the facts"


def draw_form() -> None:
    """Draw the form, start the study and show its progress."""
    note = (
        "Top-1 and the optimised ensembles are also stored as runs. Results shows them in the "
        "ranking chosen there."
    )
    draw_run_form(RunForm("a study of prompts", _choose, note, _result, "Study", _show))


def _show(names: Sequence[str]) -> NoReturn:
    (study,) = (run for run in list_runs(kinds=("study",)) if run.id in names)
    st.session_state[MADE_STUDY_KEY] = [study.id]
    there = {**screens.PROMPTS, "study": [study.id]}
    if len(study.relations) == 1:  # with the visitor's own prompts
        one = study.relations[0]
        title = relation_label(one.name, one.label)
        there |= {"prompts_view": screens.ONE_RELATION, "relation": title, "set": TITLES["all"]}
    links.go(screens.RESULTS, there)


def _result(names: Sequence[str]) -> str:
    """State how many test facts the best prompts and the manual ones get right, as Markdown."""
    (study,) = (one for one in list_studies() if one.info.id in names)
    n = n_best = n_manual = n_of_manual = 0
    for relation in map(study.relation, study.relations):
        scores = {one.combination: one for one in relation.scores() if one.method == "top1"}
        every = max(scores, key=lambda name: len(relation.pool.members(name)))
        n += scores[every].n
        n_best += round(scores[every].micro * scores[every].n)
        if "manual" in scores:
            n_manual += round(scores["manual"].micro * scores["manual"].n)
            n_of_manual += scores["manual"].n
    few = f". {n:,} facts can't tell them apart" * (n < LEAST_FACTS)
    manual = f", the manual prompts {n_manual:,} of {n_of_manual:,}{few}" * (n_of_manual > 0)
    return (
        f"The prompts that are best on the training facts get {n_best:,} of {n:,} test facts right"
        f"{manual}."
    )


def _choose() -> StudyRequest | None:
    """Draw the widgets of a new study and return its request; None without data or models.

    The URL holds the choices, except for prompts and training pairs, which may be folders.
    """
    data = facts_here()
    models = visitors.models_here()
    if not data or not models:
        draw_no_data("facts" if not data else "models")
        return None
    st.markdown(
        "Which prompt of a relation works best? A study scores all its prompts on training facts, "
        "picks the best one, combines prompts into ensembles, and tests them on other facts."
    )
    left, right = st.columns(2, gap="large")
    dataset = choose("Data", data, key="data", place=left)
    first = DEFAULT_MODEL if DEFAULT_MODEL in models else models[0]
    model = choose("Model", models, key="study_model", first=first, show=title_of, place=right)
    left, right = st.columns(2, gap="large")
    below = st.container()
    options = _choose_options()
    with left:
        known = cache.relations_of(dataset)
        if offered := options["prompts"]:
            with_prompts = relations_in(prompts_dir(offered))
            known = {name: title for name, title in known.items() if name in with_prompts}
            if not known:
                raise UserError(
                    f"{offered} has no prompts for the relations of {dataset}. Choose another set."
                )
        relations = choose_relations(
            known,
            "study_relations",
            help="Choose one relation to add your own prompts. Empty: all relations.",
            bound=True,
            default=[name for name in known if name == FIRST_RELATION] or list(known)[:1],
        )
    with right:
        limit = choose_limit(
            100,
            "study_limit",
            what="Training facts per relation (the test gets as many)",
            help="At most. Fewer than about 50 facts give wide intervals. Empty: all.",
            bound=True,
        )
    templates: tuple[str, ...] = ()
    if len(relations) == 1:
        prompts = cache.dataset_of(dataset).relation(relations[0]).prompts
        own = below.text_area(
            "Your own prompts (optional, one per line)",
            key="study_own",
            persist_state=KEPT,
            placeholder=prompts[0].template if prompts else "[X] is a city in [Y] .",
            help="[X] is the subject, [Y] the blank.",
        )
        templates = tuple(line.strip() for line in own.splitlines() if line.strip())
    request = StudyRequest(
        dataset=dataset,
        model=model,
        relations=relations,
        own=templates,
        combinations=(*COMBINATIONS, "user") if templates else COMBINATIONS,
        limit=limit,
        train_limit=limit,
        drop_overlap=options["training"] is not None,
        **options,
    )
    size_of(request, cache.dataset_of(dataset))  # raises for a mistake
    return request


def _choose_options() -> dict[str, Any]:
    """Draw the options of a study that most visitors leave as they are; return their fields."""
    with st.expander("Options", icon=":material/tune:"):
        left, right = st.columns(2, gap="large")
        with left:
            sets = {
                "prompts": _choose_set(
                    "Prompts",
                    OWN_PROMPTS,
                    prompt_set_names(),
                    "study prompts",
                    "An imported set (for example LPAQA's, from the tab Import), or the path of a "
                    "folder with the subfolders mine, paraphrase and manual_paraphrase. The "
                    "relation's own template and paraphrases are always included.",
                ),
                "training": _choose_set(
                    "Training pairs",
                    HALVES,
                    pair_set_names(),
                    "study training",
                    "An imported set with training pairs (such as LPAQA's), or the path of a "
                    f"folder with one P*.jsonl per relation. **{HALVES}**: half of the facts are "
                    "for training, the other half for the test.",
                ),
            }
        with right:
            return sets | {
                "ranking": pick(
                    "Ranking",
                    ("raw", "filtered"),
                    key="study_ranking",
                    help=f"{explain('Filtered and raw ranking')} The study chooses prompts by this "
                    "ranking and reports all results in it. The published values use the raw "
                    "ranking.",
                ),
                "blind": st.toggle(
                    "Include subject-blind prompts in ensembles",
                    key="study_blind",
                    bind=BOUND,
                    help="A causal model sees only the text before the blank, so a prompt with the "
                    "subject after the blank hides the subject from it. Turn on to include such "
                    "prompts in ensembles.",
                ),
            }


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
