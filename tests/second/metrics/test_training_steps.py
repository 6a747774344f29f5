"""What is learned over training steps, worked out by hand on four facts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from probe_fakes import with_facts
from series_fakes import STEPS, make_series

from lama_core.metrics.training import Training, training_of
from lama_core.runs.info import Run
from lama_core.runs.series import earlier_checkpoints, find_series

RANKS = [[9, 1, 1, 1], [9, 1, 7, 1], [1, 1, 1, 4], [9, 8, 7, 6]]


@pytest.fixture
def training() -> Training:
    facts = pd.DataFrame(
        {
            "fact_id": ["a", "b", "c", "d"],
            "prompt": 0,
            "relation": ["P1", "P1", "P2", "P2"],
            "source": "TREx",
            "subject": ["A", "B", "C", "D"],
            "object": ["x", "y", "x", "y"],
            "query": "",
        }
    )
    ranks = np.array(RANKS, dtype=float)
    labels = {"P1": "one", "P2": "two"}
    return Training((0, 1, 10, 100), facts, labels, ranks, -ranks, n_dropped=0)


def test_a_fact_is_learned_from_the_step_after_which_it_is_always_right(training: Training) -> None:
    fates = training.fates
    assert fates["learned"].fillna(-1).tolist() == [1, 100, -1, -1]
    assert fates["first"].fillna(-1).tolist() == [1, 1, 0, -1]


def test_a_forgotten_fact_was_right_once_and_is_wrong_at_the_last_step(training: Training) -> None:
    fates = training.fates
    assert fates["forgotten"].tolist() == [False, False, True, False]
    assert fates["last"].fillna(-1).tolist() == [-1, -1, 10, -1]
    assert (training.n_learned, training.n_forgotten) == (2, 1)


def test_right_means_among_the_first_k(training: Training) -> None:
    later = replace(training, k=4)
    assert later.fates["learned"].fillna(-1).tolist() == [1, 100, 0, -1]
    assert later.n_forgotten == 0


def test_curves_are_means_over_the_facts_of_a_relation(training: Training) -> None:
    curves = training.curves("relation").set_index(["group", "step"])
    assert curves.loc[("P1", 1), "p_at_k"] == 1.0
    assert curves.loc[("P1", 10), "p_at_k"] == 1 / 2
    assert curves.loc[("P2", 100), "mean_rank"] == (4 + 6) / 2
    assert curves.loc[("P2", 100), "log_prob"] == -(4 + 6) / 2
    assert curves.loc[("P1", 100), "n_learned"] == 1
    # Wilson's interval of 1 of 2, and Student's of (4, 6), cut at rank 1.
    assert curves.loc[("P1", 10), "p_at_k_low"] == pytest.approx(0.0945, abs=1e-4)
    assert curves.loc[("P2", 100), "mean_rank_low"] == 1.0
    assert curves.loc[("P2", 100), "mean_rank_high"] == pytest.approx(5 + 12.706, abs=1e-3)


def test_a_source_is_the_mean_over_its_relations(training: Training) -> None:
    curves = training.curves("source").set_index("step")
    assert curves["p_at_k"].tolist() == [(0 + 1 / 2) / 2, (1 + 1 / 2) / 2, (1 / 2 + 1 / 2) / 2,
                                         (1 + 0) / 2]  # fmt: skip
    assert curves.loc[1, "p_at_k_low"] < 0.75 < curves.loc[1, "p_at_k_high"]
    assert training.curves()["p_at_k"].tolist() == curves["p_at_k"].tolist()


def test_relations_are_in_the_order_in_which_they_are_learned(training: Training) -> None:
    table = training.relations()
    assert table["relation"].tolist() == ["P1", "P2"]
    assert table["learned"].fillna(-1).tolist() == [1, -1], "half of P1's facts are learned at 1"
    assert table["n_forgotten"].tolist() == [0, 1]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, ...]:
    home = tmp_path_factory.mktemp("series")
    return make_series(home / "runs", home / "toy")


def test_runs_of_one_series_are_found_by_step(runs: tuple[Run, ...]) -> None:
    (series,) = find_series(run.info for run in reversed(runs))
    assert (series.name, series.steps) == ("lab/tiny", STEPS)
    assert [info.id for info in series.runs] == [run.info.id for run in runs]
    assert earlier_checkpoints(run.info for run in runs) == {run.info.id for run in runs[:-1]}
    other = replace(runs[0].info, limit=3)
    assert len(find_series([other, runs[1].info])) == 0, "runs of other queries aren't compared"


def test_only_facts_that_count_at_every_step_are_compared(runs: tuple[Run, ...]) -> None:
    found = training_of(runs, STEPS)
    assert (len(found.facts), found.n_dropped) == (runs[0].info.n, 0)
    facts = runs[1].facts.copy()
    facts["excluded"] = facts["excluded"].cat.add_categories(["tried"])
    facts.loc[facts.index[0], "excluded"] = "tried"
    found = training_of([runs[0], with_facts(runs[1], facts)], STEPS[:2], relations=["P19"])
    assert (len(found.facts), found.n_dropped) == (19, 1)
    learned = training_of(runs, STEPS).relations().set_index("relation")["n_learned"]
    assert learned["P19"] >= 17, "Person 0 to 16 at step 16"


def test_with_a_run_of_the_model_itself_all_checkpoints_are_earlier(runs: tuple[Run, ...]) -> None:
    final = replace(runs[-1].info, id="final", model="lab/tiny", checkpoint=None)
    found = earlier_checkpoints([*(run.info for run in runs), final])
    assert found == {run.info.id for run in runs}
