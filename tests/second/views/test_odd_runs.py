"""Runs that views were not made for: each view shows them, or says in one sentence why not."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from lama_core.cli import output
from lama_core.errors import UserError
from lama_core.runs.find import load_run
from lama_core.runs.info import Run
from lama_core.views.choice import RunsRequest
from lama_core.views.table import VIEWS
from lama_core.views.view import narrowed, show_runs
from tools.bench.made_up import make_runs

OF_FACTS = [one for one in VIEWS if issubclass(one.request, RunsRequest)]
RELATIONS = {"every fact excluded": ("date_of_birth",)}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Run, ...]]]:
    folder = tmp_path_factory.mktemp("odd")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMA_HOME", str(folder))
        one = make_runs(folder / "one", n_relations=1, n_facts=1, n_runs=2)
        many = make_runs(folder / "many", n_relations=3, n_facts=60, n_runs=2)
        bundled = load_run("starter-minilm_mlm-manual"), load_run("starter-smollm2_135m-manual")
        yield {
            "one fact": one[:1],
            "two runs of one fact": one,
            "every fact excluded": bundled,
            "different data": (many[0], one[1]),
        }


@pytest.mark.parametrize("function", OF_FACTS, ids=lambda one: one.view.name)
@pytest.mark.parametrize(
    "name", ("one fact", "two runs of one fact", "every fact excluded", "different data")
)
def test_odd_runs_are_shown_or_refused_in_a_sentence(
    name: str, function: Any, odd: dict[str, tuple[Run, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        request = narrowed(function.request, RunsRequest(relations=RELATIONS.get(name, ())))
        shown = show_runs(function.view, odd[name], request)
    except UserError as error:
        assert str(error).endswith(".") and "\n" not in str(error)
        return
    output.print_parts(shown.view.tables(shown))
    output.print_json(shown.to_json())
    assert not re.search(r"\bnan\b", capsys.readouterr().out)
    if shown.view.has_figure:
        assert shown.figure.title
    for line in shown.frame.to_dict("records"):
        for column in shown.frame:
            shown.facts(line, column)
