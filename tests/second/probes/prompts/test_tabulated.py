"""What the paper tabulates of a study, worked by hand."""

import math
from typing import Any

import numpy as np
import pytest

from lama_core.datasets.prompt_sets import PooledPrompt, PromptPool
from lama_core.probes.prompts.paper_tables import (
    edit_distances,
    fact_statistics,
    find_prompt,
    majority,
    mean_curves,
    mined_gain,
    prompt_gain,
    weighted_gain,
    word_changes,
)
from lama_core.probes.prompts.selection import Ensemble
from lama_core.probes.prompts.study import RelationStudy
from lama_core.scoring.top_answers import ROW
from lama_core.types import Fact, Prompt, Relation

FACTS = tuple(Fact(f"f{n}", f"Person {n}", "P19", obj, "TREx") for n, obj in enumerate("aabc"))
PROMPTS = (
    ("[X] was born in [Y] .", {"manual"}, [1, 2, 2, 1]),  # 2 / 4 right
    ("[X] , native of [Y] .", {"mined"}, [1, 1, 1, 2]),  # 3 / 4
    ("near [X] lies [Y] .", {"mined"}, [2, 2, 2, 1]),  # 1 / 4
    ("[X] is born in [Y].", {"manual-paraphrased"}, [1, 1, 1, 1]),  # 4 / 4
)


def _ensemble(method: str, weights: list[float]) -> Ensemble:
    return Ensemble("mine", method, np.array(weights, np.float32))


def _study(**other: Any) -> RelationStudy:
    """Four prompts on four facts, by their ranks."""
    rows = np.zeros((len(PROMPTS), len(FACTS)), ROW)
    rows["rank_raw"] = [ranks for _, _, ranks in PROMPTS]
    ensembles = (_ensemble("top1", [0, 1, 0, 0]), _ensemble("optimised", [0, 0.25, 0.75, 0]))
    mixed = np.zeros((2, len(FACTS)), ROW)
    mixed["rank_raw"] = [PROMPTS[1][2], [1, 1, 1, 1]]
    entries = tuple(PooledPrompt(Prompt(text), frozenset(origins)) for text, origins, _ in PROMPTS)
    known: dict[str, Any] = dict(
        relation=Relation("P19", "TREx", "place of birth"), model="m",
        ranking="raw", pool=PromptPool("P19", entries), train=FACTS, test=FACTS,
        objects=tuple("aabc"), train_ranks=rows["rank_raw"], rows=rows, ensembles=ensembles,
        ensemble_rows=mixed, shortlist=None, removed=None, curves=(), words={}, n_candidates=3,
        excluded=(), notes=(),
    )  # fmt: skip
    return RelationStudy(**(known | other))


def test_the_entropy_of_objects_is_in_natural_units() -> None:
    found = fact_statistics([*FACTS, FACTS[0]])  # objects a a a b c, one pair twice
    entropy = -(3 / 5 * math.log(3 / 5) + 2 * (1 / 5) * math.log(1 / 5))
    assert [*found.values()] == [5, 4, 3, pytest.approx(entropy)]


def test_the_majority_is_right_on_the_most_frequent_object() -> None:
    assert majority("aabc") == {"micro": 2 / 4, "macro": 1 / 3}


def test_the_best_mined_prompt_gains_over_the_manual_one() -> None:
    found = mined_gain(_study())
    assert found is not None
    assert (found.before, found.after) == ("[X] was born in [Y] .", "[X] , native of [Y] .")
    assert found.gain == 3 / 4 - 2 / 4 and found.n == 4


def test_weights_gain_over_the_best_prompt_and_come_heaviest_first() -> None:
    found = weighted_gain(_study())
    assert found is not None
    assert found.gain == 4 / 4 - 3 / 4
    assert found.weights == (("near [X] lies [Y] .", 0.75), ("[X] , native of [Y] .", 0.25))


def test_a_change_of_one_word_goes_from_the_worse_prompt_to_the_better() -> None:
    ((change, found),) = word_changes(_study(), ("man+para",))
    assert change == "update"  # was -> is: the full stops don't count
    assert (found.before, found.after) == ("[X] was born in [Y] .", "[X] is born in [Y].")
    assert found.gain == 4 / 4 - 2 / 4
    assert word_changes(_study(), ("mine",)) == []


def test_edit_distances_are_of_each_two_prompts() -> None:
    # "[X] , native of [Y]" and "near [X] lies [Y]": near added, "," to lies, two words gone.
    assert edit_distances(_study(), "mine") == [4]
    assert edit_distances(_study(), "manual") == []


def test_a_prompt_is_found_as_the_paper_writes_it() -> None:
    study = _study()
    assert find_prompt(study, "x was born in y") == 0
    assert find_prompt(study, "Near x lies y") == 2
    assert find_prompt(study, "x died in y") is None
    assert prompt_gain(study, 2, 0).gain == 2 / 4 - 1 / 4


def test_a_curve_averages_the_relations_that_have_so_many_prompts() -> None:
    long = _study(curves=(("mine", "linear", (0.2, 0.4)),))
    short = _study(curves=(("mine", "linear", (0.6,)),))
    assert mean_curves([long, short]) == {("mine", "linear"): [(0.2 + 0.6) / 2, 0.4]}
