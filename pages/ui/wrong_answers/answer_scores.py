"""One fact of a run of statements: the scores of all its answers, as bars."""

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.metrics.fact_answers import RunAnswers, right_answers
from lama_core.rounding import fixed
from lama_core.runs.info import Run
from pages.ui.shared import charts
from pages.ui.shared.run_choice import RunChoice

HIGHEST = 460  # pixels; more answers are scrolled


def scores_table(run: Run, at: int, gold: str) -> tuple[pd.DataFrame, int] | None:
    """All answers to the fact of a row of `Run.facts`, best first, and how many can't be written.

    Columns word, score, prob (softmax over the answers), mark (`gold`, `also right` or empty).
    None where the run didn't keep them.
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
    """The bars, and what else there is to know of them."""
    at = int(run.at[row])
    found = scores_table(run.run, at, gold)
    if found is None:
        st.caption("Of so many answers the run keeps the ten best and the gold, not every score.")
        return
    table, n_unknown = found
    figure = charts.answer_scores(table, colour)
    with st.container(height=min(HIGHEST, figure.layout.height + 60), border=False):
        charts.show(
            figure,
            f"answer scores {name}",
            title=f"Scores of all {len(table):,} answers, {name}",
            picture=choice.picture,
        )
    said = [f"Margin of the gold: {fixed(float(run.margin[row]), 2, signed=True)} nats."]
    if np.isnan(run.margin[row]):
        said = ["No answer is wrong, so the gold has no margin."]
    n_valid = int(run.run.facts["n_valid"].iloc[at])
    n_known = len(right_answers(run.run, at))
    if n_valid > n_known:
        said.append(
            f"The data have {n_valid:,} right answers; the run's facts name {n_known:,} of them, "
            "which are marked."
        )
    if n_unknown:
        said.append(f"{n_unknown:,} answers aren't shown: the model can't write them.")
    st.caption(" ".join(said))
