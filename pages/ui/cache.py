"""The only place where pages keep results between reruns."""

import streamlit as st

from lama_core.candidates import Candidates, Columns
from lama_core.cloze import ModelAnswer, ask
from lama_core.models.loader import load_model
from lama_core.prompts import parse_query
from lama_core.settings import ClozeSettings, choose_candidates, load_models


@st.cache_resource(max_entries=16, show_spinner=False)
def candidates_of(settings: ClozeSettings) -> tuple[Candidates, dict[str, Columns]]:
    """The candidates of a choice of models, and where each model has them."""
    models = load_models(settings)
    candidates = choose_candidates(settings, models)
    return candidates, {model.name: candidates.columns(model.vocabulary) for model in models}


@st.cache_data(max_entries=500, show_spinner=False)
def cloze_answer(
    settings: ClozeSettings, name: str, text: str, gold: str, top_k: int, renormalise: bool
) -> ModelAnswer:
    """One model's answers to a text; `name` is one of the models that are compared."""
    candidates, columns = candidates_of(settings)
    model = load_model(name, precision=settings.precision)
    return ask(
        model,
        parse_query(text),
        candidates,
        top_k=top_k,
        gold=gold or None,
        context=settings.context,
        renormalise=renormalise,
        n_rescored=settings.n_rescored,
        columns=columns[name],
    )
