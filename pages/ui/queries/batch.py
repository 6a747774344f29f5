"""The form of a list of sentences: up to 500 sentences, typed or from a file."""

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

import numpy as np
import streamlit as st

from lama_core.errors import UserError
from lama_core.queries.batch import AskedLines, ManyKind, ManyRequest
from lama_core.queries.batch_lines import (
    MAX_BYTES,
    MAX_LINES,
    BatchLine,
    BatchModelAnswers,
    read_file,
    write_lines,
)
from lama_core.queries.grid import has_alternatives
from lama_core.rounding import percent
from pages.ui.queries import widgets
from pages.ui.queries.form import DrawField, Form, Widget
from pages.ui.queries.grid import open_alternatives
from pages.ui.queries.tab import Tab
from pages.ui.shared import links, predictions, screens, visitors
from pages.ui.shared.messages import counted, errors_shown
from pages.ui.shared.model_columns import ModelColumn

KIND = ManyKind()
TEXT, PARAM = "many sentences", "sentences_many"
OPENED = "asked text"  # session key: the sentences of an opened entry of the history
# Of these, MiniLM-MLM has six right answers first, and its twin four.
EXAMPLES = (
    ("The capital of France is ___.", "Paris"),
    ("The capital of Australia is ___.", "Canberra"),
    ("The Nile is a river in ___.", "Egypt"),
    ("The official language of Brazil is ___.", "Portuguese"),
    ("Beethoven was a ___.", "composer"),
    ("Mount Fuji is in ___.", "Japan"),
    ("The native language of Voltaire is ___.", "French"),
    ("The official language of Mauritius is ___.", "English"),
)
EXAMPLE_TEXT = write_lines([BatchLine(0, *example) for example in EXAMPLES])
EXAMPLES_IN_URL = "examples"  # in place of the text
MAX_TYPED = 100_000  # characters
MAX_ADDRESS = 6000  # characters of the sentences as a URL encodes them


def typed_sentences() -> str:
    """The typed sentences. Raises UserError if they are too long."""
    text = st.session_state[TEXT] or ""
    if len(text) > MAX_TYPED:
        raise UserError(
            f"The sentences have {len(text):,} characters, more than the limit of {MAX_TYPED:,}: "
            "remove some."
        )
    return text


def _layout(draw: DrawField) -> None:
    widgets.draw_with_ask(draw, "file")
    widgets.draw_models_and_options(draw, cloze=True, more=_draw_upload)
    note = st.empty()  # always drawn, so that elements below keep their place during a rerun
    text = st.session_state[TEXT] or ""
    if len(quote(text)) <= MAX_ADDRESS:
        links.set_param(PARAM, [EXAMPLES_IN_URL if text == EXAMPLE_TEXT else text])
    else:
        note.caption("These sentences are too long for the URL. Export them as CSV below.")


def _type_sentences(_: object) -> str:
    """Draw the field of the sentences; return the file that the exported command reads."""
    if links.is_new_url():
        given = st.session_state.pop(OPENED, "") or st.query_params.get(PARAM)
        if given:
            st.session_state[TEXT] = EXAMPLE_TEXT if given == EXAMPLES_IN_URL else given
    st.session_state.setdefault(TEXT, EXAMPLE_TEXT)
    if has_alternatives(typed := st.session_state[TEXT] or ""):
        del st.session_state[TEXT]
        lines = [line.partition("\t") for line in typed.splitlines()]
        open_alternatives([text for text, _, _ in lines], lines[0][2])
    st.text_area(
        "Sentences, one per line",
        key=TEXT,
        height=216,
        max_chars=MAX_TYPED,
        persist_state="session",
        help="Write ___ (three underscores), [MASK], <mask> or [Y] once in each sentence. The text "
        "after a tab (or, in a line without a tab, after |) is the right answer. A chat server "
        "answers in free text, also lines without a blank.",
    )
    return "many.csv"


def _draw_upload(models: Sequence[str]) -> None:
    """Draw the popover for a file whose sentences replace those in the text field."""
    with st.popover("From a file", icon=":material/upload_file:"):
        if not visitors.may("upload"):
            st.caption(f"{visitors.WHO_HAS_RIGHT['upload']} Paste the sentences instead.")
            return
        number = st.session_state.get("many files", 0)
        file = st.file_uploader(
            "A table, or one sentence per line",
            key=f"many file {number}",
            max_upload_size=MAX_BYTES // 1_000_000,
            help="A table (CSV, TSV, JSON, Parquet, Arrow, Excel, ODS) has a column **text**, "
            "and a column **gold** if there are right answers. Other files have one sentence per "
            "line.",
        )
        if file is None:
            return

        with errors_shown():
            lines = read_file(file.getvalue(), file.name, models=models)
            st.button(
                f"Ask its {counted(len(lines), 'sentence')}",
                icon=":material/play_arrow:",
                on_click=st.session_state.update,
                args=({TEXT: write_lines(lines), "many files": number + 1},),
            )


def _draw_summary(_: AskedLines, column: ModelColumn[BatchModelAnswers]) -> None:
    """Draw how many right answers a model has first, and below it P@1 and what it counts."""
    rest = column.answer.summary()
    if column.answer.precision_at_1 is not None:
        from lama_core.metrics.intervals import share_intervals  # slow to import

        headline, rest = rest.split(": ", maxsplit=1)
        right, rest = rest.split("; ", maxsplit=1)
        ends = share_intervals(np.array(column.answer.n_right), np.array(column.answer.n_counted))
        predictions.draw_conclusion(f"<b>{escape(right)}</b>")
        rest = f"{headline} ({percent(float(ends.low))} to {percent(float(ends.high))}); {rest}"
    st.html(f'<div class="lx-muted">{escape(rest)}</div>')


FORM = Form(
    ManyRequest,
    {
        "file": Widget(_type_sentences, lambda _: {}),
        "models": widgets.MODELS,
        **widgets.CLOZE_OPTIONS,
    },
    _layout,
)
BATCH = Tab(
    kind=KIND,
    name="List",
    opens=screens.LIST,
    caption=f"Paste up to {MAX_LINES} sentences, one per line, each with a blank; put the right "
    "answer after a tab or |.",
    form=FORM,
    draw=_draw_summary,
    exported="many",
)
