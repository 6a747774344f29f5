"""The form for a new analogy probe, below the chart Analogy probes."""

from typing import Any, get_args

import streamlit as st

from lama_core.datasets.library.installed import analogy_names
from lama_core.probes.analogy.request import AnalogyRequest, SettingChoice
from lama_core.queries.analogy_templates import DEFAULT_TEMPLATE, TEMPLATES
from lama_core.queries.pairs import NORMALISATIONS
from pages.ui.shared import cache
from pages.ui.shared.messages import show_note
from pages.ui.shared.run_form import (
    KEPT,
    RunForm,
    choose_limit,
    choose_models,
    choose_relations,
    draw_run_form,
)
from pages.ui.shared.url_state import pick


def draw_form() -> None:
    """Draw the form, a button that starts the run, and its progress."""
    draw_run_form(
        RunForm(
            "an analogy probe",
            _choose,
            "To run the baselines, word vectors and RelBERT, use the command line: "
            "`analogy probe --help`.",
        )
    )


def _choose() -> AnalogyRequest | None:
    """Draw the fields of a new probe and return its request; None without a model.

    The URL doesn't contain these fields.
    """
    left, right = st.columns(2, gap="large")
    with left:
        data = st.selectbox("Analogies", analogy_names(), key="new analogies", persist_state=KEPT)
        known = {relation.name: relation.name for relation in cache.analogies_of(data).relations}
        relations = choose_relations(known, "new analogy relations")
        models = choose_models("new analogy models")
    with right:
        options: dict[str, Any] = {
            "setting": pick("Setting", get_args(SettingChoice), key="new setting", bound=False),
            "limit": choose_limit(
                20,
                "new analogy limit",
                what="Instances per relation (at most)",
                help="Drawn at random with a fixed seed. Empty: all.",
            ),
            "template": st.selectbox(
                "Template",
                [DEFAULT_TEMPLATE, *(t for t in TEMPLATES if t != DEFAULT_TEMPLATE)],
                key="new template",
                persist_state=KEPT,
            ),
            "normalise": pick(
                "Log-probabilities", NORMALISATIONS, key="new normalise", first="sum", bound=False
            ),
        }
    if not models:
        show_note("Choose at least one model.")
        return None
    return AnalogyRequest(dataset=data, models=models, relations=relations, **options)
