"""Batch: up to 500 sentences, every model's first answer to each, in one table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.errors import UserError
from lama_core.models.protocols import KINDS
from lama_core.probes.cloze.batch import (
    AT_ONCE,
    MAX_BYTES,
    MAX_LINES,
    Line,
    LineAnswer,
    ManyAnswer,
    ManyRequest,
    ModelOnMany,
    joined,
    read_file,
    read_lines,
    write_lines,
)
from lama_core.progress import Pace, Progress, describe
from lama_core.requests import values
from lama_core.rounding import fixed
from lama_core.scoring.limits import limits_of_pages
from lama_core.scoring.shared_fields import ClozeSettings
from pages.ui.shared import cache, history, links, predictions, screens, url_state, visitors
from pages.ui.shared.export import Rows, draw_answer_export
from pages.ui.shared.messages import counted, plain, show_fault
from pages.ui.shared.model_columns import Column, ask_each, draw_language_note
from pages.ui.shared.query_queue import if_kept, step_back

TEXT, PARAM = "many sentences", "sentences_many"
STOPPED = "many stopped"  # in the session: what the reader has stopped
SHOWN = ("all", "right", "wrong", "models differ")
SHOWN_HELP = (
    "**right**: the gold is first in every model that counts it. **wrong**: in one of them it "
    "isn't. **models differ**: on the first answer, whatever its case."
)
UNASKED = "Not asked: it was stopped before."
MAX_FAULTS = 5
MAX_TYPED = 100_000  # characters
MAX_ADDRESS = 6000  # characters, as an address writes them
ENDINGS = ("csv", "tsv", "jsonl", "txt")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the tab asks. text: as it was typed."""

    text: str
    lines: tuple[Line, ...]
    choice: url_state.ClozeChoice

    def request(self, settings: ClozeSettings) -> ManyRequest:
        """What gives the same from a terminal, of the CSV that is taken away."""
        return ManyRequest(
            **values(settings),
            file="many.csv",
            renormalise=self.choice.renormalise,
        )


def draw_many() -> None:
    """The whole tab."""
    st.caption(
        f"Paste up to {MAX_LINES} sentences, one a line, each with a blank; put the right answer "
        "after a tab or |. Each model's first answer to every one of them is in one table."
    )
    asked = _ask()
    asked.choice.settings.check()
    if not visitors.is_owner():
        n_asked = sum(not line.fault for line in asked.lines)
        limits_of_pages().check_sentences(n_asked, len(asked.choice.settings.models))
    history.note(asked.request(asked.choice.settings), asked.text)
    _draw_faults(asked.lines)
    texts = " ".join(line.text for line in asked.lines if not line.fault)
    draw_language_note(texts, asked.choice.settings.models)
    columns = _draw_columns(asked)
    if not columns:
        return
    settings = replace(asked.choice.settings, models=tuple(columns))
    candidates, _ = cache.candidates_of(settings)
    models = tuple(column.answer for column in columns.values())
    answer = ManyAnswer(asked.lines, candidates, models)
    shown = _filter(answer)
    _draw_table(answer, shown)
    sizes = [model.n_candidates for model in answer.models]
    st.caption(
        predictions.describe_candidates(candidates, sizes)
        + " Log-probabilities are natural logarithms. P@1: the share of sentences whose "
        "right answer is first, of those whose right answer is among the model's candidates."
    )
    draw_answer_export("many", answer, asked.request(settings), rows=lambda: _rows(answer, shown))


def _ask() -> Asked:
    """The widgets of the tab."""
    if links.entered():
        given = history.take_text() or st.query_params.get(PARAM)
        if given:
            st.session_state[TEXT] = given
    st.session_state.setdefault(TEXT, _example())
    typed = st.text_area(
        "Sentences, one a line",
        key=TEXT,
        height=216,
        max_chars=MAX_TYPED,
        persist_state="session",
        help="Write ___ (three underscores), [MASK], <mask> or [Y] once in each. What is behind a "
        "tab, or where there is none behind |, is the gold: the word that should be there.",
    )
    text = typed or ""
    models, more = st.columns([3, 1.6], vertical_alignment="bottom")
    with models:
        names = url_state.choose_models()
    with more, st.container(horizontal=True):
        with st.popover("From a file", icon=":material/upload_file:"):
            _draw_upload()
        with st.popover("Options", icon=":material/tune:"):
            choice = url_state.choose_cloze_options(names, lists=False)
    note = st.empty()  # always there: what stands below keeps its place while it is asked anew
    if len(quote(text)) <= MAX_ADDRESS:
        links.put(PARAM, [text])
    else:
        note.caption("So many sentences don't fit into the address: take them away as CSV below.")
    if len(text) > MAX_TYPED:
        raise UserError(
            f"The sentences have {len(text):,} characters; at most {MAX_TYPED:,} are taken at once."
        )
    return Asked(text, read_lines(text), choice)


def _example() -> str:
    return write_lines([Line(0, *one) for one in url_state.examples()[:8]])


def _draw_upload() -> None:
    """A field for a file, whose sentences take the place of those that stand there."""
    if not visitors.may("upload"):
        st.caption(f"{visitors.WHO['upload']} Paste the sentences instead.")
        return
    number = st.session_state.get("many files", 0)
    file = st.file_uploader(
        "A table, or a sentence a line",
        type=ENDINGS,
        key=f"many file {number}",
        max_upload_size=MAX_BYTES // 1_000_000,
        help="CSV and TSV have a column **text** and, where there are golds, a column **gold**; "
        "JSONL has these fields; any other text a sentence a line. In UTF-8.",
    )
    if file is None:
        return

    def take(lines: Sequence[Line]) -> None:
        st.session_state[TEXT] = write_lines(lines)
        st.session_state["many files"] = number + 1

    try:
        lines = read_file(file.getvalue(), file.name)
    except UserError as error:
        show_fault(str(error))
        return
    st.button(
        f"Ask its {counted(len(lines), 'sentence')}",
        icon=":material/play_arrow:",
        on_click=take,
        args=(lines,),
    )


def _draw_faults(lines: Sequence[Line]) -> None:
    """Which lines can't be asked, and why."""
    place, wrong = st.empty(), [line for line in lines if line.fault]
    if wrong:
        said = [f"Line {line.number}: {line.fault}" for line in wrong[:MAX_FAULTS]]
        said += [f"And {len(wrong) - MAX_FAULTS:,} more."] if len(wrong) > MAX_FAULTS else []
        place.warning("  \n".join(map(plain, said)), icon=":material/rule:")


def _draw_columns(asked: Asked) -> dict[str, Column[ModelOnMany]]:
    """A box a model: how far it is, then P@1; a model that isn't here is offered instead."""
    choice = asked.choice
    mark = hash((asked.lines, choice))
    stopped = st.session_state.get(STOPPED) == mark

    def ask(name: str, here: tuple[str, ...]) -> ModelOnMany:
        settings = replace(choice.settings, models=here)
        return _ask_model(settings, name, asked, mark, stopped=stopped)

    columns = ask_each(choice.settings.models, ask, _describe)
    for column in columns.values():
        column.place.caption(plain(column.answer.summary()))
    given = [one.fault for column in columns.values() for one in column.answer.answers]
    if stopped and (UNASKED in given or len(columns) < len(choice.settings.models)):
        st.button(
            "Go on",
            icon=":material/play_arrow:",
            help="Ask what was not asked.",
            on_click=lambda: st.session_state.pop(STOPPED, None),
        )
    return columns


def _ask_model(
    settings: ClozeSettings, name: str, asked: Asked, mark: int, *, stopped: bool
) -> ModelOnMany:
    """One model's answers, part by part, with a bar and a button that stops it.

    stopped: only what is answered already is taken. mark: of what is asked.
    """
    box, pace, parts = st.empty(), Pace(), list[ModelOnMany]()
    lines, total = asked.lines, len(asked.lines)
    bar: DeltaGenerator | None = None

    def stop() -> None:
        st.session_state[STOPPED] = mark

    def tell(step: Progress) -> None:
        done = first + step.done
        pace.see(said := Progress("Asked", done, total, "sentences"))
        if bar is not None:
            bar.progress(done / total, describe(said, pace))

    def answers() -> ModelOnMany:
        part = lines[first : first + AT_ONCE]
        return cache.first_answers(settings, name, part, asked.choice.renormalise, on_progress=tell)

    first = 0
    while first < total:
        found = if_kept(answers)
        if found is None and stopped:
            break
        if found is None and bar is None:
            with box.container():
                bar = st.progress(0.0)
                st.button("Stop", key=f"stop {name}", icon=":material/stop:", on_click=stop)
        if found is None:
            step_back()
            found = answers()
        parts.append(found)
        first += len(found.answers)
    box.empty()
    if not parts:
        raise UserError("It was stopped before its first answers: choose Go on to ask.")
    answer = joined(parts)
    rest = (LineAnswer(fault=UNASKED),) * (total - len(answer.answers))
    return replace(answer, answers=answer.answers + rest)


def _describe(model: ModelOnMany) -> str:
    kind = KINDS[model.kind].title
    return predictions.with_how(kind, precision=model.precision, device=model.device)


def _filter(answer: ManyAnswer) -> list[int]:
    """The rows of the sentences that the filters leave."""
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    find = left.text_input(
        "Find", key="many_find", bind=url_state.BOUND, placeholder="in sentences and answers"
    )
    chosen = url_state.pick("Show", SHOWN, key="many_show", place=right, help=SHOWN_HELP)
    sought = (find or "").strip().lower()
    rows = [
        row
        for row, line in enumerate(answer.lines)
        if _is_shown(answer, row, str(chosen))
        and sought
        in "\n".join(
            (line.text, line.gold or "", *(one.answers[row].word or "" for one in answer.models))
        ).lower()
    ]
    if len(rows) < len(answer.lines):
        shown = f"{len(rows):,} of {len(answer.lines):,} sentences are shown"
        st.caption(f"{shown}; CSV holds these, JSON and the command all.")
    return rows


def _is_shown(answer: ManyAnswer, row: int, chosen: str) -> bool:
    counted = [one.answers[row].is_right for one in answer.models]
    known = [right for right in counted if right is not None]
    return {
        "all": True,
        "right": bool(known) and all(known),
        "wrong": not all(known),
        "models differ": answer.differs(row),
    }[chosen]


def make_table(answer: ManyAnswer, rows: Sequence[int]) -> pd.DataFrame:
    """A row a sentence: its line, text and gold, and of each model the first answer, its
    log-probability and the gold's rank.
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
            _shown(one, line) for one, line in zip(answers, lines, strict=True)
        ]
        columns[f"{model.name} log-prob."] = [
            fixed(one.blank.predictions[0].log_prob, 2) if one.blank else None for one in answers
        ]
        if with_gold:
            columns[f"{model.name} rank"] = [
                one.blank.gold.rank if one.blank and one.blank.gold else None for one in answers
            ]
    return pd.DataFrame(columns)


def _shown(answer: LineAnswer, line: Line) -> str:
    """A first answer; or why there is none, where that isn't said of the line itself."""
    if answer.blank is None:
        return "" if line.fault else f"({answer.fault})"
    first = answer.blank.predictions[0]
    begins = f" → {first.begins}" if first.begins else ""
    return f"{first.token}{begins}{' ✓' * bool(answer.is_right)}"


def _is_reason(shown: str) -> bool:
    return shown.startswith("(")


def _draw_table(answer: ManyAnswer, rows: Sequence[int]) -> None:
    """The table; a click on a row leads to its sentence."""
    table = make_table(answer, rows)
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    config: dict[str, Any] = {
        "line": number("line", format="localized", width="small"),
        "sentence": text("sentence", width="large"),
        "gold": text("right answer"),
    }
    for model in answer.models:
        config |= {
            f"{model.name} answer": text(
                url_state.title_of(model.name),
                width="medium" if any(map(_is_reason, table[f"{model.name} answer"])) else None,
                help="Its first answer, → the longer word that it begins; ✓: right.",
            ),
            f"{model.name} log-prob.": text("log-prob.", help="Of that answer.", alignment="right"),
            f"{model.name} rank": number(
                "rank",
                format="localized",
                help="Among all candidates; of a gold that is none of them, the rank that it would "
                "have.",
            ),
        }
    event: Any = st.dataframe(
        table,
        hide_index=True,
        column_config=config,
        on_select="rerun",
        selection_mode="single-row",
        placeholder="",
        key=f"many {hash((answer.lines, tuple(rows)))}",
        height=560 if len(table) > 14 else "content",
    )
    st.caption("Choose a row to ask its sentence alone, with all answers of each model.")
    if event.selection.rows:
        _to_sentence(answer.lines[rows[int(event.selection.rows[0])]])


def _to_sentence(line: Line) -> None:
    """Open one line on the Sentence tab, with the same models and options."""
    own = ("tab", PARAM, "many_find", "many_show", "text", "gold")
    links.go(screens.ASK, links.kept(own) | {"text": line.text, "gold": line.gold or ""})


def _rows(answer: ManyAnswer, shown: Sequence[int]) -> Rows:
    """A row for each shown sentence, in columns that `cloze --file` reads again."""
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
            first = one.blank.predictions[0] if one.blank else None
            gold = one.blank.gold if one.blank else None
            found |= {
                f"{model.name} answer": first.token if first else None,
                f"{model.name} begins": first.begins if first else None,
                f"{model.name} log_prob": first.log_prob if first else None,
                f"{model.name} prob": first.prob if first else None,
                f"{model.name} prob_of": one.blank.shown_over() if one.blank else None,
                f"{model.name} gold_rank": gold.rank if gold else None,
                f"{model.name} gold_is_candidate": gold.in_candidates if gold else None,
                f"{model.name} context": one.context,
                f"{model.name} fault": one.fault or None,
            }
        rows.append(found)
    return rows
