"""The list of formats: its order, what names it, and what holds without this plug-in."""

import subprocess
import sys
from pathlib import Path

import pytest
from calling import call, told
from test_results_of_tools import QUIZ, start

from lama_core import plugins
from lama_core.errors import UserError
from lama_core.runs.importers.formats import all_formats, find_format

ORDER = ["lm-pub-quiz", "lm-evaluation-harness", "lama", "inspect", "helm", "opencompass"]


def test_tables_are_recognised_last_and_each_format_has_the_name_of_its_row() -> None:
    rows = plugins.rows("result_formats")
    names = [one.name for one in all_formats()]
    assert [name for name in names if name in ORDER] == ORDER
    assert names == [*rows, "table"] and [one.name for one in rows.values()] == [*rows]


def test_an_unknown_format_lists_all_and_the_most_similar_one() -> None:
    with pytest.raises(UserError, match=r"did you mean 'opencompass'.*known: lm-pub-quiz,.* table"):
        find_format("opencompas")


def test_the_import_is_described_without_looking_for_plugins() -> None:
    code = (
        "import lama_core.runs.importers.importing, lama_core.datasets.formats\n"
        "from lama_core import plugins; print(plugins.find_plugins.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("kind", ["quiz", "harness", "optiprompt"])
def test_without_the_plugin_imported_runs_are_scored_and_the_known_formats_named(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = start(kind, tmp_path / "given")
    (run, *_) = told("runs", "import", str(path), "--model", "toy")
    shown = call("results", run["run"], "--json")
    monkeypatch.setattr(plugins, "find_plugins", lambda: ((), ()))
    plugins.rows.cache_clear()
    try:
        assert call("results", run["run"], "--json") == shown
        status, _, errors = call("runs", "import", str(QUIZ), "--model", "toy")
        assert status == 2 and "known: table with subject, object and rank." in errors
    finally:
        plugins.rows.cache_clear()
