"""The table of several sentences, such as wordings: a row each, with the models' first answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from lama_core.queries.batch import BatchRow
from lama_core.queries.blank_answers import NOT_RANKED
from lama_core.queries.wordings import WordingRow
from pages.ui.shared import links, screens, url_state
from pages.ui.shared.predictions import short_title
from pages.ui.shared.tables import draw_table

SWITCH = "Ranks and probabilities"
# The column of a model's likelier tokens.
LIKELIER = st.column_config.TextColumn(
    "likelier",
    width=104,
    help="A token that isn't a candidate, but is likelier than the first answer, and its "
    "probability.",
)
DETAILS = "details"  # key of the switch for what isn't shown at first
# URL parameters of these views, of lists and of facts, that the tab Sentence doesn't have.
PARAMS = (
    *("tab", "what", "details"),
    *("sentences_many", "many_find", "many_show"),
    *("data", "relation", "subject", "object", "mined"),
)


def answer_columns(
    name: str, rows: Sequence[BatchRow | WordingRow], answers: Sequence[str]
) -> dict[str, list[str]]:
    """The columns of a model's first answers, and of likelier tokens if there are any.

    A * after an answer refers to the likelier token, which the user can show.
    """
    likelier = [row.not_ranked.partition(NOT_RANKED)[0] for row in rows]
    marked = [f"{text}{' *' * bool(token)}" for text, token in zip(answers, likelier, strict=True)]
    return {f"{name} answer": marked} | ({f"{name} likelier": likelier} if any(likelier) else {})


def draw_answer_table(
    table: pd.DataFrame,
    sentences: Sequence[tuple[str, str]],
    models: Sequence[str],
    *,
    columns: Mapping[str, Any],
    model_columns: Mapping[str, Any],
    note: str,
    **options: Any,
) -> None:
    """Draw the table; a click on a row opens its sentence on the tab Sentence.

    Args:
        table: A row per sentence; each model has the column `MODEL answer` and further columns.
        sentences: Text and gold answer ("" if unknown) of each row.
        models: Names of the models.
        columns: Column -> configuration, for the columns that don't belong to a model.
        model_columns: Column without the model's name -> configuration. All but `answer` are
            hidden until the user turns on the toggle.
        note: What the table counts, drawn below it.
        options: Passed to `st.dataframe`.
    """
    details = st.toggle(SWITCH, key=DETAILS, bind=url_state.BOUND)
    config = dict(columns)
    for model in models:
        for name, column in model_columns.items():
            config[f"{model} {name}"] = column
        # Without a width, a reason in brackets would make the column as wide as the reason.
        has_reason = any(cell.startswith("(") for cell in table[f"{model} answer"])
        answer = {**model_columns["answer"], "label": short_title(model)}
        config[f"{model} answer"] = answer | ({"width": "medium"} if has_reason else {})
    hidden = {f"{model} {name}" for model in models for name in model_columns if name != "answer"}
    picked = draw_table(
        table,
        column_config=config,
        column_order=[name for name in table.columns if details or name not in hidden],
        picks="single-row",
        placeholder="",
        height=580 if len(table) > 15 else "content",
        **options,
    )
    if any(name.endswith(" likelier") for name in table.columns):
        note = f"*: a token that isn't a candidate is likelier; {SWITCH} shows it. {note}"
    st.caption(
        "Tick a row, or tap its card, to ask its sentence alone, with all answers of each model. "
        + note
    )
    if picked.rows:
        text, gold = sentences[picked.rows[0]]
        links.go(screens.ASK, links.params_without(PARAMS) | {"text": text, "gold": gold})
