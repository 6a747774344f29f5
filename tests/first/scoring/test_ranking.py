"""Ranks and best candidates, checked by hand."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lama_core.candidates.columns import pad_columns
from lama_core.scoring.ranking import best_candidates, rank_gold


def scores(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_tied_candidates_rank_in_column_order() -> None:
    tied = scores([-1, -2, -2, -2], [-1, -2, -2, -2], [-1, -2, -2, -2])
    assert rank_gold(tied, ints(1, 2, 3)).raw.tolist() == [2, 3, 4]


def test_other_valid_objects_ahead_of_the_gold_are_removed() -> None:
    # Gold is column 3, third from the top; column 1 is valid too and ahead, column 4 is behind.
    ranks = rank_gold(
        scores([-9, -1, -2, -3, -4]), ints(3), removed=np.array([[1, 4]], dtype=np.int64)
    )
    assert (ranks.raw[0], ranks.filtered[0]) == (3, 3 - 1)


def test_a_valid_object_tied_with_the_gold_is_removed_only_if_it_came_first() -> None:
    tied = scores([-1, -1, -1], [-1, -1, -1])
    ranks = rank_gold(tied, ints(1, 1), removed=np.array([[0], [2]], dtype=np.int64))
    assert ranks.filtered.tolist() == [2 - 1, 2]


def test_the_gold_itself_is_never_removed() -> None:
    ranks = rank_gold(scores([-2, -1]), ints(0), removed=np.array([[0, -1]], dtype=np.int64))
    assert ranks.filtered.tolist() == [2]


def test_candidates_without_a_score_stand_last_in_the_given_order() -> None:
    inf = float("inf")
    log_probs = scores([-1, -inf, -inf, -2, -inf])
    order = scores([0, -8, -5, 0, -6])
    golds = {0: 1, 3: 2, 2: 3, 4: 4, 1: 5}
    for column, rank in golds.items():
        assert rank_gold(log_probs, ints(column), order=order).raw.tolist() == [rank]


def test_order_never_breaks_a_tie_of_scored_candidates() -> None:
    ranks = rank_gold(scores([-1, -1]), ints(0), order=scores([-9, 0]))
    assert ranks.raw.tolist() == [1]


def test_best_candidates_keep_the_earlier_of_tied_ones() -> None:
    top = best_candidates(scores([-3, -2, -2, -1, -2]), 3)
    assert top.columns.tolist() == [[3, 1, 2]]
    assert top.log_probs.tolist() == [[-1, -2, -2]]


def test_best_candidates_pass_over_removed_ones() -> None:
    top = best_candidates(scores([-1, -2, -3]), 3, removed=pad_columns([[0]]))
    assert top.columns.tolist() == [[1, 2, -1]]


def test_fewer_candidates_than_asked_leave_the_rest_empty() -> None:
    top = best_candidates(scores([-2, -1]), 4)
    assert top.columns.tolist() == [[1, 0, -1, -1]]
    assert np.isneginf(top.log_probs[0, 2:]).all()


log_prob_tables = arrays(
    np.float32, (4, 7), elements=st.sampled_from([-3.0, -2.0, -1.0, -0.5, -np.inf])
)


@given(log_prob_tables, arrays(np.float32, (4, 7), elements=st.sampled_from([-2.0, -1.0])))
def test_best_candidates_stand_at_their_ranks(log_probs: np.ndarray, order: np.ndarray) -> None:
    top = best_candidates(log_probs, 7, order=order)
    for place in range(7):
        ranks = rank_gold(log_probs, top.columns[:, place], order=order)
        assert ranks.raw.tolist() == [place + 1] * 4
