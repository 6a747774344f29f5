"""The Prompts page without a browser: every tab draws, and the first paint needs no torch."""

import subprocess
import sys
from pathlib import Path

from lama_core.probes.prompts.runs import list_studies
from lama_core.runs.find import bundled_dir

ROOT = Path(__file__).resolve().parents[2]
TABS = ("Prompts", "Ensembles", "One fact", "Weights", "Analyses", "New study")

SCRIPT = '''
import sys
from streamlit.testing.v1 import AppTest

PAGE = """
import runpy
from pages.ui.shared.router import routing
with routing():
    runpy.run_path("pages/prompts.py", run_name="__main__")
"""
for tab in sys.argv[1:]:
    app = AppTest.from_string(PAGE, default_timeout=120)
    app.query_params["tab"] = tab
    app.run()
    assert not app.exception, (tab, app.exception)
    assert not app.error, (tab, app.error)
    assert app.header[0].value == "Prompts"
    assert "torch" not in sys.modules, tab
print("drawn")
'''


def _draw(home: Path, *tabs: str) -> str:
    """What the page prints when these tabs are opened, in a process of its own."""
    import os

    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, *tabs],
        cwd=ROOT,
        env={**os.environ, "LAMA_HOME": str(home), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


def test_every_tab_draws_without_torch(tmp_path: Path) -> None:
    assert list_studies([bundled_dir()])
    assert "drawn" in _draw(tmp_path, *TABS)
