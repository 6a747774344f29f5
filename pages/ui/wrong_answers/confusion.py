"""Confusion matrix of right answers and a model's first answers, as a chart and a table."""

from dataclasses import asdict
from hashlib import blake2b

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.metrics.confusion import N_WORDS, Confusion, are_right, confusion
from lama_core.metrics.fact_answers import AnswerFilter, JoinedAnswers
from lama_core.rounding import percent, percentage
from lama_core.runs.info import RunInfo
from lama_core.views.figure import Axis, Figure
from lama_core.views.vega import between
from pages.ui.shared.cache import cached
from pages.ui.shared.export import draw_export
from pages.ui.shared.figures import draw_figure
from pages.ui.shared.messages import counted, draw_headline, plain
from pages.ui.shared.run_choice import RunChoice
from pages.ui.shared.tables import draw_table
from pages.ui.shared.token_strips import colour_scale
from pages.ui.shared.url_state import BOUND, pick
from pages.ui.wrong_answers.filters import narrow
from pages.ui.wrong_answers.rows import Ints, python_of

N_NARROW = 8  # on phones
MOST_NUMBERED = 24  # most columns of a chart with a number in each cell
# Colours of few and of many facts, white is readable on all; right answers; words without a label.
COUNTED, RIGHT, TOTAL = ("#7a838e", "#a8431f"), ("#5c7f74", "#17704f"), "#5d6670"


def draw_confusion(
    joined: JoinedAnswers, rows: Ints, chosen: AnswerFilter, choice: RunChoice
) -> None:
    """Draw a chart of the most frequent words and a table of every pair."""
    title, of = choice.titles[chosen.of], choice.names[chosen.of]
    headline = st.container()
    size = pick(
        "Columns",
        (10, N_WORDS, 40),
        key="words",
        first=N_WORDS,
        help="Number of first answers. There are three quarters as many rows; the other words are "
        "grouped.",
    )
    facts = f"{choice.ranking} {chosen.of} {blake2b(rows.tobytes()).hexdigest()}"
    found = _found(facts, choice.runs, int(size), joined, rows, chosen.of)
    if not found.n:
        st.info(
            f"{plain(title)} isn't scored on any of these facts. Remove a filter.",
            icon=":material/filter_alt_off:",
        )
        return
    with headline:
        draw_headline(found.conclusion(title, joined.runs[chosen.of].run))
    # On phones `style.css` shows the smaller chart.
    small = _found(facts, choice.runs, N_NARROW, joined, rows, chosen.of)
    what = "right answers (rows) and first answers (columns) of"
    for name, shown, text, caption in (
        (
            "large",
            found,
            f"{what.capitalize()} {title}",
            f"prompts: {choice.question}; " * bool(choice.question) + choice.basis,
        ),
        ("small", small, f"The most frequent {what} {title}", ""),
    ):
        with st.container(key=f"confusion-{name}"):
            most = int(shown.counts[~shown.is_other].max(initial=1))
            if most > 1:
                st.html(colour_scale("facts, log scale: 1", COUNTED, f"{most:,}"))
            figure = cells_of(shown, text, caption, narrow=name == "small")
            line = draw_figure(figure, {}, f"confusion {name}", legend=False)
            if line and line["gold"] and line["answer"]:
                _open(of, line["gold"], line["answer"])
            st.caption(_describe(shown, title))
    _draw_pairs(found, of)
    draw_export(
        "confusion",
        lambda: found.pairs,
        choice.made() | {"filter": asdict(chosen)},
        python_of(chosen, choice)
        + "\n\nfrom lama_core.metrics.confusion import confusion\n\n"
        + f"pairs = confusion(joined, rows, of={chosen.of}).pairs",
    )


@cached(60)
def _found(
    facts: str,
    infos: tuple[RunInfo, ...],
    n: int,
    _joined: JoinedAnswers,
    _rows: Ints,
    _of: int,
) -> Confusion:
    """Return the matrix of n words; facts and infos identify the others."""
    return confusion(_joined, _rows, of=_of, n=n)


def cells_of(found: Confusion, title: str, caption: str, *, narrow: bool = False) -> Figure:
    """Return right answers by first answers, coloured by the number of facts on a log scale.

    Cells where the first answer is right have other colours. The row and the column that group the
    other words have one colour, and "" in the columns `gold` and `answer`. narrow: short names for
    the other words, and large numbers in thousands.
    """
    counts, others = found.counts, found.is_other
    golds = [*found.golds, *[""] * (len(counts) - len(found.golds))]
    answers = [*found.answers, *[""] * (counts.shape[1] - len(found.answers))]
    n_golds, n_answers = found.n_golds - len(found.golds), found.n_answers - len(found.answers)
    rows = [gold or f"{n_golds:,} other right answers" for gold in golds]
    columns = [answer or f"{n_answers:,} others" for answer in answers]
    full = np.log10(max(10, counts[~others].max(initial=1)))
    cells = [
        {
            "row": str(row),
            "column": column,
            "gold": golds[row],
            "answer": answers[column],
            "n": (n := int(counts[row, column])),
            "text": f"{n:,}" if n < 10_000 or not narrow else f"{n / 1000:.0f}k",
            "ink": TOTAL
            if others[row, column]
            else between(
                RIGHT if found.is_right[row, column] else COUNTED, min(1.0, np.log10(n) / full)
            ),
            "said": f"right answer {rows[row]}\nfirst answer {columns[column]}\n"
            f"{counted(n, 'fact')}, {percent(n / counts[row].sum())} % of this right answer's",
        }
        for row, column in np.argwhere(counts).tolist()
    ]
    names, places = rows, columns
    if narrow:
        names, places = ([word or "others" for word in words] for words in (golds, answers))
    return Figure(
        shape="heat map",
        frame=pd.DataFrame(cells),
        by=Axis(
            column="column",
            title="",
            order=tuple(range(len(places))),
            ticks=dict(enumerate(places)),
            on_top=True,
        ),
        value=Axis(column="n", title="facts"),
        series="row",
        names={str(at): name for at, name in enumerate(names)},
        text="text" if len(places) <= MOST_NUMBERED else "",
        cell="ink",
        title=title,
        caption=caption,
    )


def _describe(found: Confusion, title: str) -> str:
    """Return the numbers of facts and words in the chart."""
    text = (
        f"{counted(found.n, 'fact')} with a first answer of {plain(title)}: {found.n_golds:,} "
        f"different right answers, {found.n_answers:,} different first answers. Green: right "
        "answers."
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
        "Tick a row, or tap its card, to see its facts; on the keyboard, press Shift and Space."
    )
    if picked.rows and picked.rows[0] < len(pairs):
        line = pairs.iloc[picked.rows[0]]
        _open(of, str(line["gold"]), str(line["answer"]))


def _open(of: str, gold: str, answer: str) -> None:
    """Open the facts of a cell, whether the answer is right or wrong."""
    wrong = [name for name in st.session_state.get("wrong", ()) if name != of]
    narrow(of=of, gold=gold, answer=answer, wrong=wrong)
