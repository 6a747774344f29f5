"""The tab of the query: its form, and how one model's answer is drawn."""

import streamlit as st

from lama_core.queries.kind import Asked
from lama_core.types import Query
from lama_example.surprise import ModelSurprise, SurpriseRequest, example_surprise
from pages.ui.queries import widgets
from pages.ui.queries.form import DrawField, Form
from pages.ui.queries.tab import Tab
from pages.ui.shared.model_columns import ModelColumn


def _layout(draw: DrawField) -> None:
    widgets.draw_with_ask(draw, "text", "words")
    widgets.draw_models_and_options(draw, "precision")


def _draw(_: Asked[SurpriseRequest, Query], column: ModelColumn[ModelSurprise]) -> None:
    words = column.answer.words
    unknown = "can't be written"
    st.table({one.word: unknown if one.bits is None else f"{one.bits:.2f} bits" for one in words})


SURPRISE = Tab(
    kind=example_surprise.kind,
    name="Surprise",
    opens={"tab": "Surprise"},
    caption="Type a sentence with a blank, and words: each model says how much they surprise it.",
    form=Form(
        SurpriseRequest,
        {
            "text": widgets.text_field(
                "text",
                "Sentence",
                key="surprise",
                first="The capital of Norway is ___.",
                help="A sentence with one blank, written ___.",
            ),
            "words": widgets.list_field(
                "words",
                "Words",
                key="surprise_words",
                first=("Oslo", "Bergen"),
                between=", ",
                help="Words, separated by commas.",
            ),
            "models": widgets.MODELS,
            "precision": widgets.PRECISION,
        },
        _layout,
    ),
    draw=_draw,
    exported="surprise",
)
