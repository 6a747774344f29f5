"""An accuracy that grows fact by fact, and the leaderboard of a relation's prompts, by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from probe_fakes import CITIES, HashFiller

from lama_core.candidates.columns import Candidates
from lama_core.errors import UserError
from lama_core.metrics.comparison import paired_difference
from lama_core.metrics.intervals import difference_intervals
from lama_core.probes.prompts.accuracy_growth import (
    OWN,
    PromptTrial,
    TriedFact,
    extended_trial,
    leaderboard,
)
from lama_core.probes.prompts.fact_queries import make_prepared_facts
from lama_core.types import Fact, Prompt, Relation

RELATION = Relation("P19", "TREx", prompts=(Prompt("[X] in [Y] ."),))


def test_two_prompts_are_compared_fact_by_fact() -> None:
    right, wrong = (TriedFact("Anna", "Rome", rank, "Rome") for rank in (1, 2))
    own = PromptTrial("[X] of [Y] .", 4, (right, right, wrong, right))
    manual = PromptTrial("[X] in [Y] .", 4, (right, wrong, right, wrong))
    found = own.less(manual)
    assert (found.a, found.b, found.difference) == (2 / 4, 3 / 4, (2 - 1) / 4)
    assert (found.only_a, found.only_b) == (1, 2)
    ends = difference_intervals(np.array([2]), np.array([1]), np.array([4]))
    assert found.interval == ends[0]


def test_growing_in_steps_gives_what_growing_at_once_gives() -> None:
    model = HashFiller(CITIES)
    facts = [Fact(f"{n}", f"Person {n}", "P19", CITIES[n], "TREx") for n in range(30)]
    words = Candidates("file:cities", CITIES)
    asked = make_prepared_facts(RELATION, facts, words, model, "both", template="[X] in [Y] .")
    at_once = extended_trial(
        PromptTrial("[X] of [Y] .", 30), model, asked, "both", "raw", n_facts=30
    )
    stepwise = PromptTrial("[X] of [Y] .", 30)
    while not stepwise.is_whole:
        stepwise = extended_trial(stepwise, model, asked, "both", "raw", n_facts=7)
    assert stepwise == at_once
    assert stepwise.curve()[-1].value == pytest.approx(
        np.mean([one.rank == 1 for one in at_once.asked])
    )
    with pytest.raises(UserError, match=r"no \[Y\]"):
        extended_trial(PromptTrial("[X] is.", 30), model, asked, "both", "raw")


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
