"""What tests of pages share."""

from collections.abc import Iterator

import pytest
from visiting import (  # noqa: F401
    at_the_machine,
    components_are_sought_once,
    gone,
)

from lama_core.runs.info import Run
from tools.bench.made_up import make_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Run]]:
    """Model -> its made-up run on the same facts; LAMA_HOME has no others."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMA_HOME", str(home))
        made = make_runs(home / "data" / "runs", n_relations=6, n_facts=600)
        yield {run.info.model: run for run in made}
