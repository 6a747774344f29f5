"""The runs that come with the project are whole, small, and say what they were made from."""

from pathlib import Path

import numpy as np
import pytest
from every_kind import plan_runs

import lama_core as lama
from lama_core import metrics
from lama_core.errors import UserError
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.probes.kinds import request_of
from lama_core.requests import Request, command_line
from lama_core.runs.facts_table import UNRANKED
from lama_core.runs.find import bundled_dir, list_runs, load_run
from lama_core.runs.info import FACT_KINDS, RunInfo

EVERY = list(list_runs([bundled_dir()]))
BUNDLED = [info for info in EVERY if info.kind in FACT_KINDS]
if not BUNDLED:
    pytest.skip("no runs come with this version", allow_module_level=True)


REQUESTS = {
    request: [info.id for info in EVERY if request_of(info) == request]
    for request in dict.fromkeys(map(request_of, EVERY))
}


@pytest.mark.parametrize("request_", [one for one in REQUESTS if one], ids=command_line)
def test_a_bundled_run_is_that_of_its_stored_request(request_: Request) -> None:
    models = getattr(request_, "models", ()) or [getattr(request_, "model", "")]
    if getattr(request_, "vectors", ()) or not all(is_here(find_model(one)) for one in models):
        pytest.skip("a model isn't installed")
    assert sorted(spec.run_id for spec in plan_runs(request_)) == sorted(REQUESTS[request_])


def test_a_beginning_of_several_runs_means_the_only_bundled_one(home: Path) -> None:
    bundled = load_run("starter-minilm_mlm-manual")
    for limit in (1, 2):
        lama.probe("starter", models=["minilm-mlm"], relations=["P36"], limit=limit)
    assert load_run("starter-minilm_mlm-manual").info == bundled.info
    with pytest.raises(UserError, match=f"{len(EVERY) + 2} runs begin with 'starter'"):
        load_run("starter")


@pytest.mark.parametrize("info", BUNDLED, ids=lambda info: info.id)
def test_a_bundled_run_agrees_with_its_own_description(info: RunInfo) -> None:
    run = load_run(info.folder)
    facts, top = run.facts, run.top
    kept = facts["excluded"].isna()
    assert (int(kept.sum()), int((~kept).sum())) == (info.n, info.n_excluded)
    table = metrics.score_table([run])
    assert table["n"].tolist() == [relation.n for relation in info.relations]
    if info.generates:  # a text has no rank beyond the first
        assert (facts["rank_filtered"][facts["exact_match"]] == 1).all()
        assert (facts["rank_filtered"] <= facts["rank_raw"]).all()
        assert set(facts["rank_raw"]) == {1, UNRANKED}
        return
    ranks = facts["rank_raw"].to_numpy()
    rows = np.flatnonzero(ranks <= 10)
    places = ranks[rows].astype(int) - 1
    named = top.log_probs[rows, places]
    assert (named == facts["log_prob"].to_numpy()[rows]).all()
    assert (facts["rank_filtered"] <= facts["rank_raw"])[kept].all()
    assert (facts["log_prob"][kept] <= 1e-5).all()
