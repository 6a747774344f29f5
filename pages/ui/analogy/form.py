"""A new probe with analogies, from the Analogy page."""

from collections.abc import Sequence
from typing import get_args

import streamlit as st

from lama_core.datasets.library.installed import analogy_names
from lama_core.errors import choose
from lama_core.probes.analogy.probes import MOST_PAIRS, PAIRINGS, REVERSES, TAILS
from lama_core.probes.analogy.probing import AnalogyRequest, Settings
from lama_core.probes.analogy.score import NORMALISATIONS
from lama_core.probes.analogy.templates import DEFAULT_TEMPLATE, TEMPLATES
from lama_core.runs.find import load_run
from pages.ui.shared import cache, links
from pages.ui.shared.run_form import (
    KEPT,
    RunForm,
    choose_models,
    choose_relations,
    draw_run_form,
)

FIRST_LIMIT = 20


def draw_form() -> None:
    """Choose what to probe, start it, watch it."""
    note = (
        "Word vectors and RelBERT, as baselines, are on the command line: `analogy probe --help`."
    )
    draw_run_form(RunForm("an analogy probe", _choose, _show, note))


def _show(names: Sequence[str]) -> None:
    data = load_run(names[0]).info.dataset
    links.go(links.ANALOGY, {"view": "Probes", "data": data})


def _choose() -> AnalogyRequest | None:
    """The widgets of a new probe; they are not part of the page's address."""
    left, right = st.columns(2, gap="large")
    with left:
        data = st.selectbox("Analogies", analogy_names(), key="new analogies", persist_state=KEPT)
        known = {relation.name: relation.name for relation in cache.analogies_of(data).relations}
        relations = choose_relations(known, "new analogy relations")
        models = choose_models("new analogy models")
    with right:
        setting = st.segmented_control(
            "Setting", ("unsupervised", "supervised", "both"), default="unsupervised",
            required=True, key="new setting", persist_state=KEPT,
        )  # fmt: skip
        limit = st.number_input(
            "Instances a relation (at most)", 1, None, FIRST_LIMIT, key="new analogy limit",
            persist_state=KEPT,
            help="Drawn at random with a fixed seed. Empty: all.",
        )  # fmt: skip
        template = st.selectbox(
            "Template", [DEFAULT_TEMPLATE, *(t for t in TEMPLATES if t != DEFAULT_TEMPLATE)],
            key="new template", persist_state=KEPT,
        )  # fmt: skip
        tails = st.segmented_control(
            "Tails of a head", TAILS, default=TAILS[0], required=True, key="new tails",
            persist_state=KEPT,
            help="**several**: a head makes a pair with each of its tails, all first tails first, "
            f"up to {MOST_PAIRS} pairs a relation, as in the paper. **first**: with the first one "
            "alone.",
        )  # fmt: skip
        pairing = st.segmented_control(
            "Unsupervised instances of", PAIRINGS, default=PAIRINGS[0], required=True,
            key="new pairing", persist_state=KEPT,
            help="**halves**: a query and its candidates are of the same half of a relation's "
            "pairs, as in the supervised setting, and in the paper. **all**: of all its pairs.",
        )  # fmt: skip
        reverse = st.segmented_control(
            "Reversed pair", REVERSES, default=REVERSES[0], required=True, key="new reverse",
            persist_state=KEPT,
            help="What the reverse probe turns round: a **random** pair of the relation, as the "
            "paper says, or the **positive** one.",
        )  # fmt: skip
        normalise = st.segmented_control(
            "Log-probabilities", NORMALISATIONS, default="sum", required=True, key="new normalise",
            persist_state=KEPT,
        )  # fmt: skip
    if not models:
        st.info("Choose at least one model.", icon=":material/info:")
        return None
    return AnalogyRequest(
        dataset=data,
        models=models,
        relations=relations,
        setting=choose(str(setting), get_args(Settings), "setting"),
        template=template,
        normalise=choose(str(normalise), NORMALISATIONS, "normalisation"),
        tails=choose(str(tails), TAILS, "tails"),
        pairing=choose(str(pairing), PAIRINGS, "pairing"),
        reverse=choose(str(reverse), REVERSES, "reverse"),
        limit=int(limit) if limit else None,
    )
