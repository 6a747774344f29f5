"""The question, and the answers of the class and the models as bars."""

import math
from collections.abc import Sequence
from html import escape

import streamlit as st

from lama_core.queries.blank_answers import marked_answer, visible
from lama_core.rounding import counted, percent
from lama_core.scoring.blanks import parse_query
from lama_core.views.colours import model_colours
from pages.ui.poll.rooms import Room
from pages.ui.shared import predictions
from pages.ui.shared.messages import plain
from pages.ui.shared.model_columns import make_boxes

MOST_SHOWN = 10
MOST_FIRST = 3  # equally frequent answers of the class in the line above the bars
CLASS = "Class"
CLASS_COLOUR = "currentColor"  # no model has the colour of texts


def draw_question(room: Room) -> None:
    """Draw the sentence in large type, after the reveal with the right answer; its question."""
    blank = predictions.BLANK
    if room.models is not None and room.question.gold:
        blank = f"<b>{escape(room.question.gold)}</b>"
    sentence = predictions.with_blank(parse_query(room.question.text).parts, blank)
    st.html(f'<div class="lx-sentence">{sentence}</div>')
    if room.question.asks:
        st.markdown(f"**{plain(room.question.asks)}**")


def draw_class(room: Room, *, reveals: bool, counts_only: bool = False) -> None:
    """Draw the class's answers.

    reveals: whether the right answer is marked. counts_only: whether only their number is shown.
    """
    tally = room.tally()
    n, is_gold = sum(number for _, number in tally), room.question.is_gold
    detail = f"{counted(n, 'answer')} of {counted(room.n_participants(), 'participant')}"
    if reveals and room.question.gold and n:
        right = sum(number for word, number in tally if is_gold(word))
        detail += f" · {percent(right / n, 0)}\N{NO-BREAK SPACE}%\N{NO-BREAK SPACE}right"
    predictions.draw_head(CLASS, CLASS, CLASS_COLOUR, "" if counts_only else detail)
    if counts_only:
        st.subheader(detail, anchor=False)  # as large as the room's code
        return
    shares = [(word, number, number / max(1, n)) for word, number in tally[:MOST_SHOWN]]
    rows = [
        (escape(word), share, f"{number} ({percent(share, 0)} %)", reveals and is_gold(word))
        for word, number, share in shares
    ]
    _draw_bars(rows, CLASS_COLOUR, _rest(tally[MOST_SHOWN:]) if n else "No answers yet.")


def draw_results(room: Room) -> None:
    """Draw the answers of the class and the models side by side, after the reveal."""
    models, gold, tally = room.models or (), room.question.gold, room.tally()
    is_gold = room.question.is_gold
    firsts = [word for word, number in tally if number and number == tally[0][1]]
    one_right = any(map(is_gold, firsts))
    tied = f"{CLASS}, tied{', one right' * one_right}" if len(firsts) > 1 else CLASS
    named = {tied: ", ".join(firsts[:MOST_FIRST])} if firsts else {}
    ranked = {one.name: one.first for one in models}
    beaten_by = {one.name: one.rows[0].text for one in models if one.rows[0] != one.first}
    line = f"Right answer: <b>{escape(gold)}</b> · " if gold else ""
    rights = {name: is_gold(one.text) for name, one in ranked.items() if gold}
    if len(firsts) == 1 and gold:
        rights[tied] = one_right
    named |= {name: marked_answer(one.text, one.begins, None) for name, one in ranked.items()}
    line += predictions.describe_first_answers(named, rights, beaten_by)
    st.html(f"<div>{line}</div>")
    names = (CLASS, *(one.name for one in models))
    boxes = make_boxes(names, per_row=3)  # wide, to read from afar
    with boxes[CLASS]:
        draw_class(room, reveals=True)
    colours = model_colours([one.name for one in models])
    for one in models:
        with boxes[one.name]:
            title = predictions.short_title(one.name)
            number = f"{one.number} of each answer"
            predictions.draw_head(one.name, title, colours[one.name], number)
            rows = []
            for row in one.rows:
                prob = 0.0 if row.log_prob is None else math.exp(row.log_prob)
                unranked = "– " * (row.rank is None and row != one.first)
                shown = (
                    f"{unranked}{escape(visible(row.text))}{predictions.longer_word(row.begins)}"
                )
                value = predictions.probability(prob)
                rows.append((shown, prob, value, is_gold(row.text) and not unranked))
            _draw_bars(rows, colours[one.name], one.note)


def _draw_bars(rows: Sequence[tuple[str, float, str, bool]], colour: str, note: str = "") -> None:
    """Draw a row for each (word as HTML, share, text of its value, whether it is marked right)."""
    shown = "".join(
        f'<tr class="{"gold" if is_right else ""}">'
        f'<td class="word">{word}</td><td class="bar">'
        f'<div style="width:{100 * share:.2f}%;background:{colour}"></div></td>'
        f'<td class="num">{text}</td></tr>'
        for word, share, text, is_right in rows
    )
    under = f'<div class="lx-muted">{escape(note)}</div>' if note else ""
    st.html(f'<table class="lx lx-poll"><tbody>{shown}</tbody></table>{under}')


def _rest(tally: Sequence[tuple[str, int]]) -> str:
    n = sum(number for _, number in tally)
    return f"and {counted(len(tally), 'other answer')} of {counted(n, 'participant')}" if n else ""
