"""The tab Sentence: a sentence with blanks, and the words that each model ranks there."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.lessons.stored_answers import Stored
from lama_core.models.protocols import KINDS
from lama_core.published import PublishedExample, published_examples
from lama_core.queries.batch_lines import BatchLine, write_lines
from lama_core.queries.blank_answers import ModelAnswer
from lama_core.queries.cloze import ClozeAsked, ClozeRequest, ClozeText, fill
from lama_core.queries.grid import GRID_EXAMPLE, has_alternatives
from lama_core.queries.kind import Answer
from lama_core.rounding import fixed
from lama_core.scoring.blanks import BLANK, parse_query
from lama_core.scoring.retrieval import with_passage
from lama_core.texts import word_key
from pages.ui.queries import widgets
from pages.ui.queries.answers import kept_answers
from pages.ui.queries.form import DrawField, Form, Widget
from pages.ui.queries.grid import open_alternatives
from pages.ui.queries.inspection import draw_inspection
from pages.ui.queries.open_book import choose_book
from pages.ui.queries.outside_candidates import draw_outside_candidates
from pages.ui.queries.tab import Tab
from pages.ui.shared import cache, links, predictions, screens, url_state
from pages.ui.shared.messages import plain
from pages.ui.shared.model_columns import ModelColumn, reserve_line

# Examples that are always shown; the others are one click away.
CHIPS = (
    "The capital of France is ___.",
    "The capital of Australia is ___.",
    "The official language of Mauritius is ___.",
    "Ravens can ___.",
)


def _layout(draw: DrawField) -> None:
    url_state.SENTENCE.start()
    text, gold = widgets.draw_with_ask(draw, "text", "gold")
    if has_alternatives(text):
        open_alternatives([text], gold or "")
    if text.strip() and not BLANK.search(text):
        _draw_missing_blank(" ".join(text.split()))
    published = {
        one.query: "BERT-large, as published: " + _published(one) for one in published_examples()
    }
    examples = [
        replace(one, help=published.get(one.label, ""))
        for one in widgets.examples_of(url_state.SENTENCE)
    ]
    chips = [one for one in examples if one.label in CHIPS]
    widgets.draw_chips([*chips, widgets.Example(GRID_EXAMPLE, {"text": GRID_EXAMPLE})])
    widgets.draw_models_and_options(
        draw,
        "top_k",
        "open_book",
        cloze=True,
        more=lambda _: widgets.draw_examples(
            examples,
            caption="Most are from Petroni et al. 2019, Figure 1 and Table 3.",
            below=_draw_all_examples,
        ),
    )


def _draw_missing_blank(text: str) -> None:
    """Draw a button that adds the blank: in place of a whole sentence's last word, or at the end.

    A question is opened on the tab Question.
    """
    if text.endswith("?"):
        if st.button("Ask it as a question", icon=":material/add:", key="blank"):
            links.go(screens.ASK, {"tab": "Question", "question": text})
        return
    start, _, last = text.rstrip(".!").rpartition(" ")
    values = {"text": f"{text} ___.", "gold": ""}
    if start and text[-1] in ".!":
        values = {"text": f"{start} ___.", "gold": last}
    st.button(
        f"Add the blank: {plain(values['text'])}",
        icon=":material/add:",
        key="blank",
        on_click=st.session_state.update,
        args=(values,),
    )


def _draw_all_examples() -> None:
    """Draw the link to the paper's queries as a list."""
    lines = [BatchLine(0, one.query, one.gold) for one in published_examples()]
    if st.button(f"All {len(lines)} as a list", icon=":material/list:", key="all examples"):
        kept = links.params_without(("text", "gold", "k", "book", "look"))
        links.go(screens.ASK, {**kept, **screens.LIST, "sentences_many": write_lines(lines)})


def _published(example: PublishedExample) -> str:
    """BERT-large's five words for a query of the paper, with their log-probabilities."""
    return ", ".join(
        f"{word}{' ✓' * (word == example.gold)} {fixed(log_prob, 1)}"
        for word, log_prob in example.answers
    )


FORM = Form(
    ClozeRequest,
    {
        "text": widgets.example_field(
            url_state.SENTENCE,
            "text",
            "Sentence with a blank",
            help="Write ___ (three underscores), [MASK], <mask> or [Y] where a word is missing. "
            "With several blanks, each blank gets its own list. Alternatives, such as "
            "{nurse|engineer}, are compared on the tab Several.",
        ),
        "gold": widgets.typed_gold_field(
            help="The word that should fill the blank. Its rank is shown for every model, even if "
            "it is far down the list. A word of several subword tokens is scored token by token. "
            "For several blanks, give one answer each with | between them.",
        ),
        "models": widgets.MODELS,
        "top_k": widgets.TOP_K,
        **widgets.CLOZE_OPTIONS,
        "open_book": Widget(lambda _: choose_book(), widgets.kept("open_book", "book")),
    },
    _layout,
)


def _heading(number: int, n_blanks: int) -> str:
    return f"Blank {number + 1} of {n_blanks}" if n_blanks > 1 else ""


def _draw_above(asked: ClozeAsked) -> list[DeltaGenerator]:
    """Draw the open-book passage; return a placeholder for a line about each blank."""
    book, passage = asked.request.open_book, asked.shared.passage
    if book is not None and passage is None:
        st.caption(
            "Open book: no passage shares a word with the sentence, so it is asked without context."
        )
    elif book is not None and passage is not None:
        st.markdown(
            f":material/menu_book: **Open-book context** "
            f"({plain(book)}, score {fixed(passage.score, 2)}): {plain(passage.passage)}"
        )
    return [reserve_line(f"blank {number}") for number in range(asked.shared.query.n_blanks)]


def _draw_answers(asked: ClozeAsked, column: ModelColumn[ModelAnswer]) -> None:
    """Draw a model's answers at each blank."""
    blanks = column.answer.blanks
    for number, answers in enumerate(blanks):
        with st.container() if number == 0 else column.box.container():
            if heading := _heading(number, len(blanks)):
                st.caption(heading)
            if number and not KINDS[column.answer.kind].fills_together:
                filled = plain(answers.asked.replace("[MASK]", "___"))
                st.caption(f"Query with the model's own first answers filled in: {filled}")
            predictions.draw_answers(answers, column.colour, asked.request.candidates)


def _draw_below(
    answer: Answer[ClozeRequest, ClozeText, ModelAnswer],
    lines: Sequence[DeltaGenerator],
    stored: Mapping[str, Stored | None],
) -> None:
    """Draw the models' first answers at each blank, the ranked words and the models' notes."""
    models, candidates = answer.models, answer.asked.candidates
    blanks = {one.name: one.blanks for one in models}
    blanks |= {name: (found.blank,) for name, found in stored.items() if found}
    for number, line in enumerate(lines):
        with line.container(gap="xsmall"):
            with st.container(horizontal=True, vertical_alignment="center"):
                if heading := _heading(number, len(lines)):
                    st.caption(heading, width="content")
                predictions.draw_first_answers(
                    {name: blanks[name][number] for name in stored if name in blanks}
                )
            with st.container(horizontal=True, vertical_alignment="center"):
                draw_outside_candidates("cloze", models, number)
    sizes = {one.name: one.n_candidates for one in models}
    caption = [predictions.describe_candidates(candidates, sizes)]
    caption += [
        plain(
            f"Stored answers of {url_state.title_of(name)}: from {found.n_candidates:,} words "
            f"(list: {found.candidates})."
        )
        for name, found in stored.items()
        if found
    ]
    for one in models:
        notes = list(one.notes)
        if one.blanks[0].over == "rescored":
            notes.append(f"ranks only the {one.blanks[0].n_over:,} words it rescores.")
        caption += [plain(f"{url_state.title_of(one.name)}: {note}") for note in notes]
    if {one.name for one in models} >= {"minilm-mlm", "minilm-mlm-twin"}:
        caption.append(
            "The twin is MiniLM-MLM trained on less text: without sixteen sources of facts, such "
            "as GeoNames."
        )
    text = answer.asked.request.text
    for example in (each for each in published_examples() if each.query == text):
        caption.append(plain(f"BERT-large's published log-probabilities: {_published(example)}."))
    st.caption(" ".join(caption))
    words = [*(one.blanks[0].predictions[0].token for one in models), answer.asked.request.gold]
    proposed = {word_key(word): word for word in words if word}
    kept_answers().setdefault(text, "\n".join(proposed.values()))


def _stored(asked: ClozeAsked) -> dict[str, Stored | None]:
    """The answers of models that aren't installed, from finished runs without a passage.

    None for models whose runs don't have the sentence.
    """
    if asked.shared.passage:
        return {}
    text = asked.shared.query.text()
    return {
        name: answers[text].judged(asked.request.gold) if answers else None
        for name, answers in cache.stored_answers(asked.request, (text,)).items()
    }


def _draw_inspection(answer: Answer[ClozeRequest, ClozeText, ModelAnswer]) -> None:
    asked, passage = answer.asked, answer.asked.shared.passage
    text = with_passage(asked.shared.query, passage).text() if passage else asked.request.text
    draw_inspection(text, asked.request)


SENTENCE = Tab(
    kind=fill.kind,
    name="Sentence",
    opens={},
    caption="Type a sentence with a blank. Each model ranks the words that could fill it.",
    form=FORM,
    language_of=lambda request: " ".join(parse_query(request.text).parts),
    above=_draw_above,
    stored=_stored,
    calls=lambda colour: {"on_first": predictions.preliminary_drawer(colour)},
    draw=_draw_answers,
    describe=predictions.describe,
    below=_draw_below,
    exported="cloze",
    has_details=True,
    after=_draw_inspection,
)
