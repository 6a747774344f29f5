"""Confusion matrix: gold answers by first answers.

    n        facts with this gold answer and this first answer
    share    n / facts with this gold answer that have a first answer

Equal words (`texts.word_key`) count as one. The matrix has a row for each of the most frequent gold
answers and columns for all of these words that are first answers, and for the most frequent other
first answers; the most frequent wrong pair is always among them. All others share one row and one
column, so that the cells add up to all facts. Words with both a row and a column come first, so
right answers are a diagonal from the top left.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.metrics.fact_answers import JoinedAnswers, as_written
from lama_core.rounding import counted, percent
from lama_core.runs.alignment import Bools
from lama_core.runs.info import Run
from lama_core.scoring.ranking import Ints
from lama_core.texts import word_key

N_WORDS = 20


@dataclass(frozen=True)
class Confusion:
    """Gold answers by first answers.

    pairs: DataFrame of all pairs that occur, most frequent first: gold, answer, n, share.
    golds, answers: labels of the matrix. n_golds, n_answers: number of distinct words, including
    those without a label. counts: int64 [gold, answer]; if there are more words than labels, the
    last row or column counts the others.
    """

    pairs: pd.DataFrame
    golds: tuple[str, ...]
    answers: tuple[str, ...]
    n_golds: int
    n_answers: int
    counts: Ints

    @property
    def n(self) -> int:
        """Facts that have an answer."""
        return int(self.counts.sum())

    @property
    def is_other(self) -> Bools:
        """Whether a cell counts pairs with a word without a label, bool [gold, answer]."""
        others = np.ones(self.counts.shape, dtype=bool)
        others[: len(self.golds), : len(self.answers)] = False
        return others

    @property
    def is_right(self) -> Bools:
        """Whether a cell's two labels are the same word, bool [gold, answer]."""
        right = np.zeros(self.counts.shape, dtype=bool)
        for row, gold in enumerate(self.golds):
            same = [word_key(gold) == word_key(answer) for answer in self.answers]
            right[row, : len(same)] = same
        return right

    def conclusion(self, title: str, run: Run | None = None) -> str:
        """Return how often a run is right, and its most frequent wrong pair.

        title: the run's. run: if given, the answer of the pair is as `as_written` says.
        """
        is_right = are_right(self.pairs)
        n_right = int(self.pairs.loc[is_right, "n"].sum())
        said = f"{title} is right on {percent(n_right / self.n)} % of {self.n:,} facts"
        if is_right.all():
            return said
        worst = self.pairs[~is_right].iloc[0]
        if worst["n"] == 1:
            return f"{said}; no pair of right and wrong answer occurs more than once"
        answer = worst["answer"] if run is None else as_written(run, [worst["answer"]])[0]
        return (
            f"{said}; most often it answers “{answer}” instead of “{worst['gold']}” "
            f"({counted(int(worst['n']), 'time')})"
        )


def confusion(joined: JoinedAnswers, rows: Ints, *, of: int = 0, n: int = N_WORDS) -> Confusion:
    """Return the confusion matrix of run number `of` on these rows.

    It has n columns and three quarters as many rows, which leaves columns for other answers.
    Rows without an answer (excluded, or not in this run) aren't counted. Words with a row and a
    column come first, by the gold answer's frequency; then the others by frequency.
    """
    answer = joined.runs[of].answer
    rows = rows[answer.codes[rows] >= 0]
    golds, gold_at = _by_frequency(joined.facts["object"].array, rows)
    answers, answer_at = _by_frequency(answer, rows)
    cells, counts = np.unique(gold_at * max(1, len(answers)) + answer_at, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    cells, counts = cells[order], counts[order]
    at_gold, at_answer = np.divmod(cells, max(1, len(answers)))
    pairs = pd.DataFrame(
        {
            "gold": golds[at_gold],
            "answer": answers[at_answer],
            "n": counts,
            "share": counts / np.bincount(gold_at, minlength=len(golds))[at_gold],
        }
    )
    named = list(range(min(n - n // 4, len(golds))))
    frequent = list(range(len(answers)))
    for worst in np.flatnonzero(~are_right(pairs))[:1]:
        if at_gold[worst] not in named:
            named[-1] = int(at_gold[worst])
        frequent.insert(0, frequent.pop(at_answer[worst]))
    places = {word_key(str(answers[at])): at for at in frequent}
    keys = [word_key(str(gold)) for gold in golds]
    diagonal = [places[keys[at]] for at in named if keys[at] in places]
    shown = list(dict.fromkeys([*diagonal, *frequent]))[:n]
    named.sort(key=lambda at: keys[at] not in places)
    lines, columns = np.full(len(golds), len(named)), np.full(len(answers), len(shown))
    lines[named], columns[shown] = np.arange(len(named)), np.arange(len(shown))
    grid = np.zeros((min(len(named) + 1, len(golds)), min(n + 1, len(answers))), dtype=np.int64)
    np.add.at(grid, (lines[at_gold], columns[at_answer]), counts)
    return Confusion(
        pairs,
        tuple(str(golds[at]) for at in named),
        tuple(str(answers[at]) for at in shown),
        len(golds),
        len(answers),
        grid,
    )


def are_right(pairs: pd.DataFrame) -> pd.Series:
    """Return for each pair of gold and answer whether they are the same word."""
    return pairs["gold"].map(word_key) == pairs["answer"].map(word_key)


def _by_frequency(words: pd.Categorical, rows: Ints) -> tuple[NDArray[np.object_], Ints]:
    """Return the distinct words of some rows by frequency, and each row's index into these."""
    spelled = np.array([str(word) for word in words.categories], dtype=object)
    merged, _ = pd.factorize(np.array(list(map(word_key, spelled)), dtype=object))
    codes = merged[words.codes[rows]]
    counts = np.bincount(codes, minlength=merged.max(initial=-1) + 1)
    best = np.argsort(-counts, kind="stable")
    places = np.empty(len(best), dtype=np.int64)
    places[best] = np.arange(len(best))
    _, firsts = np.unique(merged, return_index=True)
    return spelled[firsts[best[counts[best] > 0]]], places[codes]
