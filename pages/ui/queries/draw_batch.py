"""Draw a list of sentences: query the models in parts, and draw the table of their answers."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.errors import UserError
from lama_core.models.server.addresses import is_chat
from lama_core.progress import Pace, Progress, describe
from lama_core.queries.batch import AskedLines, BatchAnswer, BatchRow, ManyRequest
from lama_core.queries.batch_lines import (
    BATCH_SIZE,
    BatchLine,
    BatchModelAnswers,
    LineAnswer,
    differ,
    join_answers,
    read_lines,
)
from lama_core.queries.blank_answers import marked_answer
from lama_core.queries.kind import Answer, Asked
from lama_core.rounding import fixed
from lama_core.scoring.limits import load_page_limits
from pages.ui.queries import history
from pages.ui.queries.answer_table import LIKELIER, answer_columns, draw_answer_table
from pages.ui.queries.batch import BATCH, FORM, KIND, typed_sentences
from pages.ui.shared import cache, predictions, url_state, visitors
from pages.ui.shared.export import Rows, draw_answer_export
from pages.ui.shared.messages import plain
from pages.ui.shared.model_columns import ModelColumn, draw_language_note, query_models
from pages.ui.shared.query_queue import if_cached, queue_last

STOPPED = "many stopped"  # session key: the hash of the batch that the user stopped
UNASKED = "Not asked: the batch was stopped."
# The columns of each model in the CSV, and their fields in a row.
CSV = {
    "answer": "word",
    "begins": "begins",
    "log_prob": "log_prob",
    "prob": "prob",
    "prob_of": "prob_of",
    "gold_rank": "gold_rank",
    "gold_is_candidate": "gold_is_candidate",
    "context": "context",
    "not_ranked": "not_ranked",
    "fault": "fault",
}
MAX_FAULTS = 5


def draw_batch() -> None:
    """Draw the tab."""
    request = FORM.draw()
    lines = read_lines(typed_sentences(), models=request.models)
    url_state.follow_query(lines, {"many_find": ""})
    request.check()
    valid = [line for line in lines if not line.fault]
    if not visitors.is_local_user():
        load_page_limits().check_sentences(len(valid), len(request.models))
    history.add_entry(request, typed_sentences())
    place = st.empty()
    if reasons := [f"Line {line.number}: {line.fault}" for line in lines if line.fault]:
        if len(reasons) > MAX_FAULTS:
            reasons[MAX_FAULTS:] = [f"And {len(reasons) - MAX_FAULTS:,} more."]
        place.warning("  \n".join(map(plain, reasons)), icon=":material/rule:")
    draw_language_note(" ".join(line.text for line in valid), request.models)
    columns = _draw_columns(Asked(request, lines))
    if not columns:
        return
    request = replace(request, models=tuple(columns))
    asked = Asked(request, lines, cache.candidates_for(request))
    answer = Answer(KIND, asked, tuple(column.answer for column in columns.values()))
    rows = _filtered_rows(answer)
    lines = tuple(asked.shared[row] for row in rows)
    shown = replace(
        answer,
        asked=replace(asked, shared=lines),
        models=tuple(
            replace(one, answers=tuple(one.answers[row] for row in rows)) for one in answer.models
        ),
    )
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    sizes = {one.name: one.n_candidates for one in answer.models if not is_chat(one.name)}
    notes = []
    if sizes:
        notes += [
            predictions.describe_candidates(answer.asked.candidates, sizes),
            "Log-probabilities are natural logarithms. P@1: of the sentences whose right answer is "
            "among the model's candidates, the share that has it first. In brackets: the 95 % "
            "interval.",
        ]
    if len(sizes) < len(answer.models):
        notes.append(
            "P@1 of a chat server: of the lines with a right answer, the share whose text gives it "
            "in whole words."
        )
    if any(one.begins for model in answer.models for one in model.answers):
        notes.append(predictions.CONTINUES)
    draw_answer_table(
        make_table(shown),
        [(line.text, line.gold or "") for line in lines],
        [model.name for model in answer.models],
        columns={
            "line": number("line", format="localized", width=44),
            "sentence": text("sentence", width=228),
            "gold": text("right answer", width=90),
        },
        model_columns={
            "answer": text(
                help="First answer, → the longer word that it begins; ✓: right, ✗: wrong, –: not "
                "counted, as the right answer isn't among the model's candidates."
            ),
            "likelier": LIKELIER,
            "log-prob.": text(
                "log-prob.",
                help="Log-probability of the first answer.",
                alignment="right",
                width=74,
            ),
            "rank": number(
                "rank",
                format="localized",
                width=46,
                help="Rank of the right answer among all candidates; empty if it isn't one.",
            ),
        },
        note=" ".join(notes),
        key=f"many {hash(lines)}",
    )
    draw_answer_export(BATCH.exported, shown, request, rows=lambda: _csv(shown))


def _draw_columns(asked: AskedLines) -> dict[str, ModelColumn[BatchModelAnswers]]:
    """Draw a box per model: its progress, then P@1; or a download button."""
    request, batch_id = asked.request, hash((asked.request, asked.shared))
    stopped = st.session_state.get(STOPPED) == batch_id

    columns = query_models(
        request.models,
        lambda name, installed: _query_model(
            replace(request, models=installed), name, asked.shared, batch_id, stopped=stopped
        ),
        BATCH.describe,
        draw=partial(BATCH.draw, asked),
    )
    has_rest = len(columns) < len(request.models) or any(
        one.fault == UNASKED for column in columns.values() for one in column.answer.answers
    )
    if stopped and has_rest:
        st.button(
            "Resume",
            icon=":material/play_arrow:",
            help="Ask the remaining sentences.",
            on_click=st.session_state.pop,
            args=(STOPPED, None),
        )
    return columns


def _query_model(
    request: ManyRequest,
    name: str,
    lines: tuple[BatchLine, ...],
    batch_id: int,
    *,
    stopped: bool,
) -> BatchModelAnswers:
    """Query a model in parts, with a progress bar and a Stop button; return its answers.

    After Stop, only cached answers are used; the other lines have the fault UNASKED.
    """
    box, pace, parts = st.empty(), Pace(), list[BatchModelAnswers]()
    total = len(lines)
    bar: DeltaGenerator | None = None

    def show_progress(step: Progress) -> None:
        done = first + step.done
        pace.see(progress := Progress("Asked", done, total, "sentences"))
        if bar is not None:
            bar.progress(done / total, describe(progress, pace))

    def next_part() -> BatchModelAnswers:
        # An answer doesn't depend on the number of the line.
        part = tuple(replace(line, number=0) for line in lines[first : first + BATCH_SIZE])
        return cache.answer(KIND, request, name, part, on_progress=show_progress)

    first = 0
    while first < total:
        part = if_cached(next_part)
        if part is None:
            if stopped:
                break
            if bar is None:
                with box.container():
                    bar = st.progress(0.0)
                    st.button(
                        "Stop",
                        key=f"stop {name}",
                        icon=":material/stop:",
                        on_click=st.session_state.update,
                        args=({STOPPED: batch_id},),
                    )
            queue_last()
            part = next_part()
        parts.append(part)
        first += len(part.answers)
    box.empty()
    if not parts:
        raise UserError("Stopped before the first answers. Press Resume to continue.")
    answer = join_answers(parts)
    n_left = total - len(answer.answers)
    return replace(answer, answers=answer.answers + (LineAnswer(fault=UNASKED),) * n_left)


def _filtered_rows(answer: BatchAnswer) -> list[int]:
    """Draw the filters; return the indexes of the sentences that they keep."""
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    find = left.text_input(
        "Find", key="many_find", bind=url_state.BOUND, placeholder="in sentences and answers"
    )
    chosen = url_state.pick(
        "Show",
        ("all", "right", "wrong", "models differ"),
        key="many_show",
        place=right,
        help="**right**: the right answer is first in every model that has it among its "
        "candidates. **wrong**: it isn't first in at least one of these models. "
        "**models differ**: their first answers differ, ignoring case.",
    )
    wanted = (find or "").strip().lower()
    rows = []
    for row, line in enumerate(answer.asked.shared):
        answers = [model.answers[row] for model in answer.models]
        words = (one.word or "" for one in answers)
        searched = "\n".join((line.text, line.gold or "", *words)).lower()
        known = [one.is_right for one in answers if one.is_right is not None]
        kept = {
            "all": True,
            "right": bool(known) and all(known),
            "wrong": not all(known),
            "models differ": differ(answers),
        }
        if wanted in searched and kept[str(chosen)]:
            rows.append(row)
    n = len(answer.asked.shared)
    if len(rows) < n:
        st.caption(
            f"{len(rows):,} of {n:,} sentences are shown. CSV and JSON have only these; the "
            "command has all."
        )
    return rows


def make_table(answer: BatchAnswer) -> pd.DataFrame:
    """The table of the sentences.

    A row has the line number if some line is invalid, the sentence and the right answer; then for
    each model the first answer, its log-probability and the rank of the right answer.
    """
    lines = answer.asked.shared
    columns: dict[str, Sequence[Any]] = {"sentence": [line.text for line in lines]}
    if any(line.fault for line in lines):
        columns = {"line": [line.number for line in lines]} | columns
    with_gold = any(line.gold for line in lines)
    if with_gold:
        columns["gold"] = [line.gold for line in lines]
    for name, found in _tables(answer).items():
        columns |= answer_columns(name, found, list(map(_answer_cell, found, lines)))
        columns[f"{name} log-prob."] = [
            None if one.log_prob is None else fixed(one.log_prob, 2) for one in found
        ]
        if with_gold:
            columns[f"{name} rank"] = [
                one.gold_rank if one.gold_is_candidate else None for one in found
            ]
    return pd.DataFrame(columns)


def _tables(answer: BatchAnswer) -> dict[str, Sequence[BatchRow]]:
    """Each model's rows."""
    return {one.name: KIND.rows(answer.asked, one) for one in answer.models}


def _answer_cell(row: BatchRow, line: BatchLine) -> str:
    """The first answer, or in brackets why this model has none; empty for an invalid line."""
    if row.word is not None:
        uncounted = " –" if line.gold and row.right is None else ""
        return marked_answer(row.word, row.begins, row.right) + uncounted
    return "" if line.fault else f"({row.fault})"


def _csv(answer: BatchAnswer) -> Rows:
    """A row for each sentence, in columns that `batch FILE` can read."""
    tables = _tables(answer)
    rows: Rows = []
    for row, line in enumerate(answer.asked.shared):
        found: dict[str, Any] = {
            "line": line.number,
            "text": line.text,
            "gold": line.gold,
            "fault": line.fault or None,
        }
        for name, table in tables.items():
            found |= {f"{name} {head}": getattr(table[row], field) for head, field in CSV.items()}
        rows.append(found)
    return rows
