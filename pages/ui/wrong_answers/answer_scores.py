"""Scores of all answers to one fact of a whole-answer run, as points."""

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.metrics.fact_answers import RunAnswers, right_answers
from lama_core.rounding import fixed, percent
from lama_core.runs.info import Run
from lama_core.views.colours import PUBLISHED
from lama_core.views.figure import Axis, Figure, said
from pages.ui.shared.figures import draw_figure

OTHER = "other answers"
MARKS = {"gold": "right answer", "also right": "also right", "": OTHER}


def scores_table(run: Run, at: int, gold: str) -> tuple[pd.DataFrame, int] | None:
    """Return all answers to the fact in row `at`, best first, and the number without a score.

    Columns: word, score, prob (softmax over the answers), mark (`gold`, `also right` or empty).
    None if the run didn't store the scores. Answers that the model can't tokenize have no score.
    """
    found = run.scores_of(at)
    if found is None:
        return None
    every = pd.DataFrame({"word": found.words, "score": found.scores.astype(np.float64)})
    table = every[np.isfinite(every["score"])].sort_values("score", ascending=False, kind="stable")
    table["prob"] = np.exp(table["score"] - table["score"].max())
    table["prob"] /= table["prob"].sum()
    marks = dict.fromkeys(right_answers(run, at), "also right") | {gold: "gold"}
    table["mark"] = [marks.get(word, "") for word in table["word"]]
    return table.reset_index(drop=True), len(every) - len(table)


def score_points(table: pd.DataFrame, title: str) -> Figure:
    """Return a row with a point for each answer, best first; right answers are bold and full.

    table: of `scores_table`.
    """
    lines = [
        said(
            f"{line['word']}, {MARKS[line['mark']]}",
            f"rank {rank:,}, score {fixed(line['score'], 2)}",
            f"{percent(line['prob'])} % of the answers' softmax",
        )
        for rank, line in enumerate(table.to_dict("records"), start=1)
    ]
    low, high = float(table["score"].min()), float(table["score"].max())
    pad = 0.04 * (high - low or 1.0)
    return Figure(
        shape="points",
        frame=table.assign(
            said=lines, kind=table["mark"].map(MARKS), hollow=table["mark"] != "gold"
        ),
        by=Axis(column="word", title="answer"),
        value=Axis(column="score", title="score, in nats", ends=(low - pad, high + pad)),
        series="kind",
        names={one: one for one in MARKS.values()},
        hollow="hollow",
        bold=frozenset(table["word"][table["mark"] != ""]),
        title=title,
    )


def draw_scores_of_answers(run: RunAnswers, row: int, gold: str, colour: str, name: str) -> None:
    """Draw the points, and notes on the margin and on marked and missing answers."""
    at = int(run.at[row])
    found = scores_table(run.run, at, gold)
    if found is None:
        st.caption(
            "This relation has many answers, so the run stored only the scores of the ten best and "
            "of the right answer."
        )
        return
    table, n_unknown = found
    figure = score_points(table, f"Scores of all {len(table):,} answers, {name}")
    with st.container(height=min(460, 23 * len(table) + 140), border=False):  # 23 pixels a row
        inks = {one: PUBLISHED if one == OTHER else colour for one in MARKS.values()}
        draw_figure(figure, inks, f"answer scores {name}")
    margin = float(run.margin[row])
    notes = [f"Margin of the right answer: {fixed(margin, 2, signed=True)} nats."]
    if np.isnan(margin):
        notes = ["No margin: no answer is wrong."]
    n_valid = int(run.run.facts["n_valid"].iloc[at])
    n_known = len(right_answers(run.run, at))
    if n_valid > n_known:
        notes.append(
            f"The data have {n_valid:,} right answers. Only the {n_known:,} among the run's facts "
            "are marked."
        )
    if n_unknown:
        notes.append(f"{n_unknown:,} answers aren't shown: the model can't tokenize them.")
    st.caption(" ".join(notes))
