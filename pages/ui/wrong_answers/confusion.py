"""Confusion matrix of right answers and a model's first answers, as a chart and a table."""

from dataclasses import asdict
from hashlib import blake2b
from typing import Any

import streamlit as st

from lama_core.metrics.confusion import N_WORDS, Confusion, are_right, confusion
from lama_core.metrics.fact_answers import AnswerFilter, JoinedAnswers
from lama_core.rounding import percentage
from lama_core.runs.info import RunInfo
from pages.ui.shared import charts
from pages.ui.shared.cache import cached
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import counted, draw_headline, plain
from pages.ui.shared.run_choice import RunChoice
from pages.ui.shared.style import theme
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import BOUND, pick
from pages.ui.wrong_answers.filters import narrow
from pages.ui.wrong_answers.rows import Ints, python_of

SIZES = (10, N_WORDS, 40)
N_NARROW = 8  # on phones


def draw_confusion(
    joined: JoinedAnswers, rows: Ints, chosen: AnswerFilter, choice: RunChoice
) -> None:
    """Draw a chart of the most frequent words and a table of every pair."""
    title, of = choice.titles[chosen.of], choice.names[chosen.of]
    headline = st.container()
    size = pick(
        "Columns",
        SIZES,
        key="words",
        first=N_WORDS,
        help="Number of first answers. There are three quarters as many rows; the other words are "
        "grouped.",
    )
    found, chart = _found(
        joined,
        rows,
        chosen,
        choice,
        int(size),
        title=f"Right and first answers of {title}",
        footnote=f"prompts: {choice.question}; " * bool(choice.question) + choice.basis,
    )
    if not found.n:
        st.info(
            f"{plain(title)} isn't scored on any of these facts. Remove a filter.",
            icon=":material/filter_alt_off:",
        )
        return
    with headline:
        draw_headline(found.conclusion(title, joined.runs[chosen.of].run))
    with st.container(key="confusion-large"):
        points = charts.draw_ready(chart, "confusion chart")
        st.caption(_describe(found, title))
    # On phones `style.css` shows this smaller chart instead.
    with st.container(key="confusion-small"):
        small, chart = _found(
            joined,
            rows,
            chosen,
            choice,
            N_NARROW,
            title=f"The most frequent right and first answers of {title}",
        )
        points += charts.draw_ready(chart, "confusion chart small")
        st.caption(_describe(small, title))
    for point in points:
        gold, answer = point["customdata"][:2]
        if gold and answer:
            _open(of, gold, answer)
    _draw_pairs(found, of)
    n = "" if int(size) == N_WORDS else f", n={size}"
    lines = (
        python_of(chosen, choice)
        + "\n\nfrom lama_core.metrics.confusion import confusion\n\n"
        + f"found = confusion(joined, rows, of={chosen.of}{n})\npairs = found.pairs"
    )
    made = choice.made() | {"filter": asdict(chosen)}
    draw_export("confusion", lambda: found.pairs, made, lines)


def _found(
    joined: JoinedAnswers,
    rows: Ints,
    chosen: AnswerFilter,
    choice: RunChoice,
    n: int,
    **texts: Any,
) -> tuple[Confusion, charts.TitledChart]:
    """Return the matrix of n words and its chart, which is kept; texts: see `charts.ready`."""
    facts = f"{choice.ranking} {chosen.of} {blake2b(rows.tobytes()).hexdigest()}"
    texts |= {"picture": choice.picture}
    return _made(facts, choice.runs, n, texts, theme(), joined, rows, chosen.of)


@cached(60)
def _made(
    facts: str,
    infos: tuple[RunInfo, ...],
    n: int,
    texts: dict[str, Any],
    theme: str,
    _joined: JoinedAnswers,
    _rows: Ints,
    _of: int,
) -> tuple[Confusion, charts.TitledChart]:
    found = confusion(_joined, _rows, of=_of, n=n)
    return found, charts.ready(charts.confusion(found, narrow=n == N_NARROW), **texts)


def _describe(found: Confusion, title: str) -> str:
    """Return the numbers of facts and words in the chart."""
    text = f"{counted(found.n, 'fact')} with a first answer of {plain(title)}: "
    text += (
        f"{found.n_golds:,} different right answers, {found.n_answers:,} different first answers. "
        "Green: right answers."
    )
    golds, answers = found.n_golds - len(found.golds), found.n_answers - len(found.answers)
    if golds or answers:
        other = [f"{golds:,} right answers"] * bool(golds)
        other += [f"{answers:,} first answers"] * bool(answers)
        text += f" **Other** groups {' and '.join(other)}; the table lists all."
    return f"{text} Click a cell to see its facts."


def _draw_pairs(found: Confusion, of: str) -> None:
    """Draw a table of the pairs of right and first answer; a ticked row opens its facts.

    of: the name of the selected run.
    """
    st.markdown("### Pairs of right and first answer")
    pairs = found.pairs
    if not st.toggle("Right answers, too", key="every_pair", bind=BOUND):
        pairs = pairs[~are_right(pairs)]
    number = st.column_config.NumberColumn
    picked = draw_table(
        pairs.assign(share=pairs["share"].map(percentage)),
        column_config={
            "gold": st.column_config.TextColumn("right answer"),
            "answer": st.column_config.TextColumn("first answer"),
            "n": number("facts", format="localized"),
            "share": number(
                "% of the right answer's facts",
                format="%.1f",
            ),
        },
        key="confusion pairs",
        picks="single-row",
        height=420 if len(pairs) > 10 else "content",
    )
    st.caption(
        "Tick a row, or tap a card, to see its facts; on the keyboard, press Shift and Space."
    )
    if picked.rows and picked.rows[0] < len(pairs):
        line = pairs.iloc[picked.rows[0]]
        _open(of, str(line["gold"]), str(line["answer"]))


def _open(of: str, gold: str, answer: str) -> None:
    """Open the facts of a cell, whether the answer is right or wrong."""
    others = [name for name in st.session_state.get("wrong", ()) if name != of]
    narrow(of=of, gold=gold, answer=answer, wrong=others)
