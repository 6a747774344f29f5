"""The score table in three steps is the score table."""

import pandas as pd
import pytest

from lama_core import metrics
from lama_core.metrics import BYS, relation_figures, relation_precision, summarise
from lama_core.runs.info import Run
from tools.bench.made_up import make_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, ...]:
    return make_runs(tmp_path_factory.mktemp("runs"), n_relations=7, n_facts=400)[:2]


@pytest.mark.parametrize("by", BYS)
@pytest.mark.parametrize("k", [1, 10])
def test_the_steps_give_the_score_table(runs: tuple[Run, ...], by: metrics.By, k: int) -> None:
    parts = [
        summarise([(relation_figures(run), relation_precision(run, k))], by=by) for run in runs
    ]
    whole = metrics.score_table(runs, by=by, k=k)
    together = pd.concat(parts, ignore_index=True)[list(whole.columns)]
    pd.testing.assert_frame_equal(together, whole, check_dtype=False)


@pytest.mark.parametrize("by", BYS)
def test_chosen_relations_give_the_figures_of_these_alone(
    runs: tuple[Run, ...], by: metrics.By
) -> None:
    chosen = [relation.name for relation in runs[0].info.relations][1:4]
    ours = metrics.score_table(runs[:1], by=by, k=5, relations=chosen)
    alone = metrics.scored_rows(runs[0], "filtered", chosen)
    shares = alone.mean(alone.ranks <= 5)
    groups = {
        "relation": [relation.name for relation in alone.relations],
        "source": [relation.source for relation in alone.relations],
        "type": [relation.type for relation in alone.relations],
    }[by]
    for value, group in zip(ours["p_at_k"], dict.fromkeys(groups), strict=True):
        members = [share for share, name in zip(shares, groups, strict=True) if name == group]
        assert value == pytest.approx(sum(members) / len(members))
    assert (ours["low"] <= ours["p_at_k"]).all() and (ours["p_at_k"] <= ours["high"]).all()
