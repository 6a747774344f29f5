"""The list of formats: its order, what names it, and what holds without this plug-in."""

from pathlib import Path

import pytest
from calling import call, told
from test_results_of_tools import QUIZ, start

from lama_core import plugins


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
