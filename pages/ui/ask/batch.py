"""Batch: up to 500 sentences, with every model's first answer to each in one table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.api.generation import is_chat
from lama_core.errors import UserError
from lama_core.models.protocols import KINDS
from lama_core.progress import Pace, Progress, describe
from lama_core.queries.batch import (
    BATCH_SIZE,
    MAX_BYTES,
    MAX_LINES,
    BatchAnswer,
    BatchLine,
    BatchModelAnswers,
    LineAnswer,
    ManyRequest,
    join_answers,
    read_file,
    read_lines,
    write_lines,
)
from lama_core.requests import field_values
from lama_core.rounding import fixed
from lama_core.scoring.limits import load_page_limits
from lama_core.scoring.shared_fields import ClozeSettings
from pages.ui.queries import history
from pages.ui.queries.answer_table import draw_answer_table, shown_answer
from pages.ui.shared import cache, links, predictions, url_state, visitors
from pages.ui.shared.export import Rows, draw_answer_export
from pages.ui.shared.messages import counted, plain, show_error
from pages.ui.shared.model_columns import Column, draw_language_note, query_models
from pages.ui.shared.query_queue import if_cached, queue_last

TEXT, PARAM = "many sentences", "sentences_many"
STOPPED = "many stopped"  # session key: the hash of the batch that the user stopped
FILTERS = ("all", "right", "wrong", "models differ")
FILTERS_HELP = (
    "**right**: the right answer is first in every model that has it among its candidates. "
    "**wrong**: it isn't first in at least one of these models. **models differ**: their first "
    "answers differ, ignoring case."
)
UNASKED = "Not asked: the batch was stopped."
MAX_FAULTS = 5
MAX_TYPED = 100_000  # characters
MAX_ADDRESS = 6000  # characters of the sentences as a URL encodes them
ENDINGS = ("csv", "tsv", "jsonl", "ndjson", "json", "txt", "parquet", "xlsx", "gz")


@dataclass(frozen=True, slots=True)
class Batch:
    """The sentences as typed and as parsed lines, and the settings of the form."""

    text: str
    lines: tuple[BatchLine, ...]
    choice: url_state.ClozeChoice

    def request(self, settings: ClozeSettings) -> ManyRequest:
        """The request that gives the same answers on the command line, for the exported CSV."""
        return ManyRequest(
            **field_values(settings), file="many.csv", renormalise=self.choice.renormalise
        )


def draw_batch() -> None:
    """Draw the tab."""
    st.caption(
        f"Paste up to {MAX_LINES} sentences, one per line, each with a blank; put the right answer "
        "after a tab or |. Chat servers answer in free text, also questions without a blank."
    )
    batch = _draw_form()
    batch.choice.settings.check()
    if not visitors.is_local_user():
        n_valid = sum(not line.fault for line in batch.lines)
        load_page_limits().check_sentences(n_valid, len(batch.choice.settings.models))
    history.add_entry(batch.request(batch.choice.settings), batch.text)
    _draw_faults(batch.lines)
    texts = " ".join(line.text for line in batch.lines if not line.fault)
    draw_language_note(texts, batch.choice.settings.models)
    columns = _draw_columns(batch)
    if not columns:
        return
    settings = replace(batch.choice.settings, models=tuple(columns))
    candidates = cache.candidates_of(settings)
    models = tuple(column.answer for column in columns.values())
    answer = BatchAnswer(batch.lines, candidates, models)
    rows = _filtered_rows(answer)
    _draw_table(answer, rows)
    _draw_caption(answer)
    draw_answer_export("many", answer, batch.request(settings), rows=lambda: _csv(answer, rows))


def _draw_caption(answer: BatchAnswer) -> None:
    """Describe what the numbers of models that rank words, and of those that generate, count."""
    sizes = [model.n_candidates for model in answer.models if not is_chat(model.name)]
    texts = []
    if sizes:
        texts += [
            predictions.describe_candidates(answer.candidates, sizes),
            "Log-probabilities are natural logarithms. P@1: of the sentences whose right answer is "
            "among the model's candidates, the share that has it first.",
        ]
    if len(sizes) < len(answer.models):
        texts.append(
            "P@1 of a chat server: of the lines with a right answer, the share whose text gives it "
            "in whole words."
        )
    st.caption(" ".join(texts))


def _draw_form() -> Batch:
    if links.is_new_url():
        given = history.take_text() or st.query_params.get(PARAM)
        if given:
            st.session_state[TEXT] = given
    if TEXT not in st.session_state:
        examples = [BatchLine(0, *example) for example in url_state.examples()[:8]]
        st.session_state[TEXT] = write_lines(examples)
    typed = st.text_area(
        "Sentences, one per line",
        key=TEXT,
        height=216,
        max_chars=MAX_TYPED,
        persist_state="session",
        help="Write ___ (three underscores), [MASK], <mask> or [Y] once in each sentence. The text "
        "after a tab (or, in a line without a tab, after |) is the right answer.",
    )
    text = typed or ""
    models, more = st.columns([3, 1.6], vertical_alignment="bottom")
    with models:
        names = url_state.choose_models()
    with more, st.container(horizontal=True):
        with st.popover("From a file", icon=":material/upload_file:"):
            _draw_upload(names)
        with st.popover("Options", icon=":material/tune:"):
            choice = url_state.choose_cloze_options(names, lists=False)
    note = st.empty()  # always drawn, so that elements below keep their place during a rerun
    if len(quote(text)) <= MAX_ADDRESS:
        links.set_param(PARAM, [text])
    else:
        note.caption("These sentences are too long for the URL. Export them as CSV below.")
    if len(text) > MAX_TYPED:
        raise UserError(
            f"The sentences have {len(text):,} characters, more than the limit of {MAX_TYPED:,}: "
            "remove some."
        )
    return Batch(text, read_lines(text, models=names), choice)


def _draw_upload(models: Sequence[str]) -> None:
    """Draw the upload of a file whose sentences replace those in the text field."""
    if not visitors.may("upload"):
        st.caption(f"{visitors.WHO_HAS_RIGHT['upload']} Paste the sentences instead.")
        return
    number = st.session_state.get("many files", 0)
    file = st.file_uploader(
        "A table, or one sentence per line",
        type=ENDINGS,
        key=f"many file {number}",
        max_upload_size=MAX_BYTES // 1_000_000,
        help="A table (CSV, TSV, JSON, Parquet or Excel) has a column **text**, and a column "
        "**gold** if there are right answers. Other files have one sentence per line. In UTF-8.",
    )
    if file is None:
        return

    def take(lines: Sequence[BatchLine]) -> None:
        st.session_state[TEXT] = write_lines(lines)
        st.session_state["many files"] = number + 1

    try:
        lines = read_file(file.getvalue(), file.name, models=models)
    except UserError as error:
        show_error(str(error))
        return
    st.button(
        f"Ask its {counted(len(lines), 'sentence')}",
        icon=":material/play_arrow:",
        on_click=take,
        args=(lines,),
    )


def _draw_faults(lines: Sequence[BatchLine]) -> None:
    """Warn about the lines that can't be queried, with the reasons."""
    place, wrong = st.empty(), [line for line in lines if line.fault]
    if wrong:
        reasons = [f"Line {line.number}: {line.fault}" for line in wrong[:MAX_FAULTS]]
        reasons += [f"And {len(wrong) - MAX_FAULTS:,} more."] if len(wrong) > MAX_FAULTS else []
        place.warning("  \n".join(map(plain, reasons)), icon=":material/rule:")


def _draw_columns(batch: Batch) -> dict[str, Column[BatchModelAnswers]]:
    """Draw a box per model: its progress, then P@1; or a download button."""
    choice = batch.choice
    batch_id = hash((batch.lines, choice))
    stopped = st.session_state.get(STOPPED) == batch_id

    def query_model(name: str, installed: tuple[str, ...]) -> BatchModelAnswers:
        settings = replace(choice.settings, models=installed)
        return _query_model(settings, name, batch, batch_id, stopped=stopped)

    columns = query_models(choice.settings.models, query_model, _describe)
    for column in columns.values():
        column.place.caption(plain(column.answer.summary()))
    faults = [one.fault for column in columns.values() for one in column.answer.answers]
    if stopped and (UNASKED in faults or len(columns) < len(choice.settings.models)):
        st.button(
            "Resume",
            icon=":material/play_arrow:",
            help="Ask the remaining sentences.",
            on_click=lambda: st.session_state.pop(STOPPED, None),
        )
    return columns


def _query_model(
    settings: ClozeSettings, name: str, batch: Batch, batch_id: int, *, stopped: bool
) -> BatchModelAnswers:
    """Query a model in parts, with a progress bar and a Stop button; return its answers.

    After Stop, only cached answers are used; the other lines have the fault UNASKED.
    """
    box, pace, parts = st.empty(), Pace(), list[BatchModelAnswers]()
    total = len(batch.lines)
    bar: DeltaGenerator | None = None

    def stop() -> None:
        st.session_state[STOPPED] = batch_id

    def show_progress(step: Progress) -> None:
        done = first + step.done
        pace.see(progress := Progress("Asked", done, total, "sentences"))
        if bar is not None:
            bar.progress(done / total, describe(progress, pace))

    def next_part() -> BatchModelAnswers:
        part = batch.lines[first : first + BATCH_SIZE]
        renormalise = batch.choice.renormalise
        return cache.first_answers(settings, name, part, renormalise, on_progress=show_progress)

    first = 0
    while first < total:
        part = if_cached(next_part)
        if part is None:
            if stopped:
                break
            if bar is None:
                with box.container():
                    bar = st.progress(0.0)
                    st.button("Stop", key=f"stop {name}", icon=":material/stop:", on_click=stop)
            queue_last()
            part = next_part()
        parts.append(part)
        first += len(part.answers)
    box.empty()
    if not parts:
        raise UserError("Stopped before the first answers. Press Resume to continue.")
    answer = join_answers(parts)
    rest = (LineAnswer(fault=UNASKED),) * (total - len(answer.answers))
    return replace(answer, answers=answer.answers + rest)


def _describe(model: BatchModelAnswers) -> str:
    kind = KINDS[model.kind].title
    return predictions.join_details(kind, precision=model.precision, device=model.device)


def _filtered_rows(answer: BatchAnswer) -> list[int]:
    """Draw the filters; return the indexes of the sentences that they keep."""
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    find = left.text_input(
        "Find", key="many_find", bind=url_state.BOUND, placeholder="in sentences and answers"
    )
    chosen = url_state.pick("Show", FILTERS, key="many_show", place=right, help=FILTERS_HELP)
    wanted = (find or "").strip().lower()
    rows = []
    for row, line in enumerate(answer.lines):
        words = (model.answers[row].word or "" for model in answer.models)
        searched = "\n".join((line.text, line.gold or "", *words)).lower()
        if wanted in searched and _is_kept(answer, row, str(chosen)):
            rows.append(row)
    if len(rows) < len(answer.lines):
        st.caption(
            f"{len(rows):,} of {len(answer.lines):,} sentences are shown. The CSV has only these; "
            "JSON and the command have all."
        )
    return rows


def _is_kept(answer: BatchAnswer, row: int, chosen: str) -> bool:
    verdicts = [model.answers[row].is_right for model in answer.models]
    known = [right for right in verdicts if right is not None]
    return {
        "all": True,
        "right": bool(known) and all(known),
        "wrong": not all(known),
        "models differ": answer.differs(row),
    }[chosen]


def make_table(answer: BatchAnswer, rows: Sequence[int]) -> pd.DataFrame:
    """The table of the given sentences.

    A row has the line number, the sentence and the right answer; then for each model the first
    answer, its log-probability and the rank of the right answer.
    """
    lines = [answer.lines[row] for row in rows]
    columns: dict[str, list[Any]] = {
        "line": [line.number for line in lines],
        "sentence": [line.text for line in lines],
    }
    with_gold = any(line.gold for line in answer.lines)
    if with_gold:
        columns["gold"] = [line.gold for line in lines]
    for model in answer.models:
        answers = [model.answers[row] for row in rows]
        columns[f"{model.name} answer"] = [
            _answer_cell(one, line) for one, line in zip(answers, lines, strict=True)
        ]
        columns[f"{model.name} log-prob."] = [
            None if one.log_prob is None else fixed(one.log_prob, 2) for one in answers
        ]
        if with_gold:
            columns[f"{model.name} rank"] = [
                one.blank.gold.rank if one.blank and one.blank.gold else None for one in answers
            ]
    return pd.DataFrame(columns)


def _answer_cell(answer: LineAnswer, line: BatchLine) -> str:
    """The first answer, or in brackets why this model has none; empty for an invalid line."""
    right = bool(answer.is_right)
    if answer.blank is not None:
        return shown_answer(answer.blank.predictions[0], right=right)
    if answer.generated is not None:
        return f"{answer.word} ✓" if right else str(answer.word)
    return "" if line.fault else f"({answer.fault})"


def _draw_table(answer: BatchAnswer, rows: Sequence[int]) -> None:
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    draw_answer_table(
        make_table(answer, rows),
        [(answer.lines[row].text, answer.lines[row].gold or "") for row in rows],
        [model.name for model in answer.models],
        columns={
            "line": number("line", format="localized", width="small", pinned=True),
            "sentence": text("sentence", width="large", pinned=True),
            "gold": text("right answer"),
        },
        model_columns={
            "answer": text(help="First answer, → the longer word that it begins; ✓: right."),
            "log-prob.": text(
                "log-prob.", help="Log-probability of the first answer.", alignment="right"
            ),
            "rank": number(
                "rank",
                format="localized",
                help="Rank of the right answer among all candidates. If it is not a candidate, "
                "the rank that it would have.",
            ),
        },
        key=f"many {hash((answer.lines, tuple(rows)))}",
    )


def _csv(answer: BatchAnswer, shown: Sequence[int]) -> Rows:
    """A row for each shown sentence, in columns that `batch FILE` can read."""
    rows: Rows = []
    for row in shown:
        line = answer.lines[row]
        found: dict[str, Any] = {
            "line": line.number,
            "text": line.text,
            "gold": line.gold,
            "fault": line.fault or None,
        }
        for model in answer.models:
            one = model.answers[row]
            gold = one.blank.gold if one.blank else None
            found |= {
                f"{model.name} answer": one.word,
                f"{model.name} begins": one.begins,
                f"{model.name} log_prob": one.log_prob,
                f"{model.name} prob": one.prob,
                f"{model.name} prob_of": one.blank.shown_over() if one.blank else None,
                f"{model.name} gold_rank": gold.rank if gold else None,
                f"{model.name} gold_is_candidate": gold.in_candidates if gold else None,
                f"{model.name} context": one.context,
                f"{model.name} fault": one.fault or None,
            }
        rows.append(found)
    return rows
