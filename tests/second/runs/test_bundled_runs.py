"""The runs that come with the project are those of the requests that they keep."""

from pathlib import Path

import pytest
from every_kind import plan_runs

import lama_core as lama
from lama_core.errors import UserError
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.probes.kinds import request_of
from lama_core.requests import Request, command_line
from lama_core.runs.find import bundled_dir, list_runs, load_run

EVERY = list(list_runs([bundled_dir()]))
if not EVERY:
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
