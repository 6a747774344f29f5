"""The leaderboard of a relation's prompts, from hand-made ranks."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lama_core.metrics.comparison import paired_difference
from lama_core.probes.prompts.accuracy_growth import OWN, PromptTrial, TriedFact, leaderboard

RANKS = np.array([[1, 2, 2, 2], [1, 1, 1, 2], [3, 3, 3, 3]])
TEMPLATES = ("manual [X] [Y]", "mined [X] [Y]", "bad [X] [Y]")


def study(manual: int | None = 0) -> Any:
    pool = SimpleNamespace(templates=TEMPLATES, manual=manual)
    return SimpleNamespace(ranks=RANKS, test=[None] * 4, pool=pool)


def trial(*ranks: int) -> PromptTrial:
    asked = tuple(TriedFact("s", "g", rank, "w") for rank in ranks)
    return PromptTrial("mine [X] [Y]", len(ranks), asked)


def test_prompts_are_sorted_and_compared_with_the_manual_one() -> None:
    table = leaderboard(study(), (0, 1, 2))
    assert list(table["prompt"]) == [TEMPLATES[1], TEMPLATES[0], TEMPLATES[2]]
    assert list(table["p_at_1"]) == [3 / 4, 1 / 4, 0]
    assert table["difference"].iloc[0] == 2 / 4
    assert np.isnan(table["difference"].iloc[1])
    ends = paired_difference(RANKS[0] == 1, RANKS[1] == 1).interval
    assert table["difference_low"].iloc[0] == pytest.approx(ends.low)


def test_an_own_prompt_is_compared_on_the_facts_that_it_was_tried_on() -> None:
    table = leaderboard(study(), (0, 1), [(trial(1, 1), [2, 0])]).set_index("prompt")
    mine = table.loc["mine [X] [Y]"]
    assert (mine["number"], mine["n"], mine["p_at_1"]) == (OWN, 2, 1.0)
    assert mine["difference"] == 1 / 2  # the manual prompt is right on fact 0, not on fact 2


def test_without_a_manual_prompt_there_is_no_difference() -> None:
    assert leaderboard(study(None), (1, 2))["difference"].isna().all()
