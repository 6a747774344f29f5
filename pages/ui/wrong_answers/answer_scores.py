"""Scores of all answers to one fact of a whole-answer run, as bars."""

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.metrics.fact_answers import RunAnswers, right_answers
from lama_core.rounding import fixed
from lama_core.runs.info import Run
from pages.ui.shared import charts
from pages.ui.shared.run_choice import RunChoice

MAX_HEIGHT = 460  # pixels; a taller chart scrolls


def scores_table(run: Run, at: int, gold: str) -> tuple[pd.DataFrame, int] | None:
    """Return all answers to the fact in row `at`, best first, and the number without a score.

    Columns: word, score, prob (softmax over the answers), mark (`gold`, `also right` or empty).
    None if the run didn't store the scores. Answers that the model can't tokenize have no score.
    """
    found = run.scores_of(at)
    if found is None:
        return None
    also = right_answers(run, at) - {gold}
    written = np.isfinite(found.scores)
    scores = found.scores[written].astype(np.float64)
    words = [word for word, known in zip(found.words, written.tolist(), strict=True) if known]
    chances = np.exp(scores - scores.max(initial=-np.inf))
    table = pd.DataFrame(
        {
            "word": words,
            "score": scores,
            "prob": chances / chances.sum(),
            "mark": [
                "gold" if word == gold else "also right" if word in also else "" for word in words
            ],
        }
    )
    ordered = table.sort_values("score", ascending=False, kind="stable")
    return ordered.reset_index(drop=True), int((~written).sum())


def draw_scores_of_answers(
    run: RunAnswers, row: int, gold: str, colour: str, name: str, choice: RunChoice
) -> None:
    """Draw the bars, and notes on the margin and on marked and missing answers."""
    at = int(run.at[row])
    found = scores_table(run.run, at, gold)
    if found is None:
        st.caption(
            "This relation has many answers, so the run stored only the scores of the ten best and "
            "of the right answer."
        )
        return
    table, n_unknown = found
    figure = charts.answer_scores(table, colour)
    with st.container(height=min(MAX_HEIGHT, figure.layout["height"] + 60), border=False):
        charts.draw_chart(
            figure,
            f"answer scores {name}",
            title=f"Scores of all {len(table):,} answers, {name}",
            picture=choice.picture,
        )
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
