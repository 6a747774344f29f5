"""The library from Python: what docstrings and the notebook show, and the pages' calls of it."""

import ast
import doctest
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair
import pandas as pd
import pytest
from calling import told
from project_files import ROOT

import lama_core as lama
from lama_core.metrics.comparison import CompareRequest
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.statements.request import StatementsRequest
from lama_core.queries.lenses.table import InspectRequest
from lama_core.requests import Function, Request, arguments, python_call
from lama_core.runs.find import bundled_dir, load_run
from lama_core.views.choice import model_names
from lama_core.views.scores import ResultsRequest

pytestmark = pytest.mark.usefixtures("home")
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
MODEL = "minilm-mlm"
TEXT = "The capital of Norway is ___."
RUN = next(bundled_dir().glob("starter-minilm_mlm-manual-*")).name
FACTS: dict[str, Any] = {"dataset": "starter", "models": (MODEL,), "relations": ("P36",)}
# Of the other queries, tests/first/pages/test_every_query.py compares all that they give.
REQUESTS: tuple[Request, ...] = (
    InspectRequest(TEXT, lens="tokens", method="gradients", answer="Rome", steps=16),
    ProbeRequest(**FACTS, limit=3),
    StatementsRequest("starter", (MODEL,), ("P30",), limit=2),  # six answers
    ResultsRequest((RUN,), by="source", k=5),
    CompareRequest(RUN, "starter-smollm2_135m-manual", k=5),
)
FUNCTIONS = {
    name: value for name in lama.__all__ if isinstance(value := getattr(lama, name), Function)
}
WITH_EXAMPLES = [name for name in lama.__all__ if ">>>" in (getattr(lama, name).__doc__ or "")]


def test_type_checkers_read_the_same_names_as_users_get() -> None:
    tree = ast.parse(Path(lama.__file__).read_text(encoding="utf-8"))
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = {
        (alias.asname, f"{node.module}.{alias.name}")
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == {(name, ".".join(place)) for name, place in lama._NAMES.items()}


def test_the_package_is_light_until_something_is_asked() -> None:
    code = (
        "import sys, lama_core as lama;"
        "print(sorted({'torch', 'numpy', 'pandas'} & {*sys.modules}));"
        "lama.fill; print(sorted({'torch', 'pandas', 'transformers'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["[]", "[]"]
    assert {"fill", "rank", "analogy", "inspect", "load_run"} <= {*dir(lama)}
    with pytest.raises(AttributeError, match="no attribute 'fil'"):
        lama.fil  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_a_docstring_shows_what_comes_out(name: str) -> None:
    (test,) = doctest.DocTestFinder(recurse=False).find(getattr(lama, name), name, globs={})
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_the_call_of_a_request_gives_the_numbers_of_its_command(request_: Any) -> None:
    call = python_call(request_)
    assert call.startswith(f"lama.{request_.python}(")
    names: dict[str, Any] = {"lama": lama}
    exec(f"found = {call}", names)
    found = names["found"]
    if not isinstance(found, pd.DataFrame):  # runs
        assert len(found.frame) and len(found) == 1
        found = lama.results([found[0].info.id])
    expected = numbers(told(*arguments(request_)))
    columns = ("log_prob", "prob", "rank", "score", "value", "sum", "perplexity", "p_at_1", "mrr",
               "difference")  # fmt: skip
    shown = [value for name in columns if name in found for value in found[name].dropna()]
    assert shown
    for value in shown:
        assert any(abs(value - one) < 1e-9 for one in expected), value


def numbers(value: Any) -> list[float]:
    """All numbers in a JSON value."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [number for one in inner for number in numbers(one)]
    return [float(value)] if isinstance(value, int | float) else []


def test_runs_are_a_sequence_with_their_rows_in_one_table() -> None:
    runs = lama.probe("starter", ["minilm-mlm"], ["P36"], limit=2)
    (run,) = runs
    assert runs[0] is run and len(runs) == 1
    table = runs.frame
    assert set(table["run"]) == {run.info.id} and len(table) == len(lama.load_run(run.info.id)) == 2
    assert run.info.id in set(lama.list_runs()["run"])


def test_progress_and_notes_are_told() -> None:
    steps: list[str] = []
    notes: list[str] = []
    lama.probe("starter", ["minilm-mlm"], ["P36"], limit=2,
               on_progress=lambda step: steps.append(step.stage), on_note=notes.append)  # fmt: skip
    assert steps[-1] == "Finished" and "2 rows, 0 excluded" in notes[-1]


def test_a_wrong_call_names_the_function_and_the_nearest_argument() -> None:
    call: Any = lama.fill
    with pytest.raises(
        TypeError, match=r"lama.fill\(\): unknown argument 'model' \(did you mean 'models'\?\)"
    ):
        call(TEXT, model=MODEL)
    with pytest.raises(TypeError, match=r"lama.fill\(\): only text can be given without a name"):
        call(TEXT, MODEL)
    call = lama.probe
    with pytest.raises(TypeError, match=r"lama\.probe\(\): missing a required argument: 'models'"):
        call("starter", relations=["P36"])


def test_a_subject_without_facts_is_noted_with_the_nearest_one() -> None:
    notes: list[str] = []
    lama.relation("P36", subject="Norwai", on_note=notes.append)
    assert "starter has no fact of P36 with the subject 'Norwai' (did you mean 'Norway'?)." in notes


def test_runs_with_the_same_label_are_told_apart() -> None:
    (run,) = lama.probe(**FACTS, limit=2)
    runs = [load_run(name) for name in (RUN, run.info.id, "starter-smollm2_135m-manual")]
    assert list(model_names([one.info for one in runs]).values()) == [
        f"minilm-mlm on starter, {RUN[-10:]}", f"minilm-mlm on starter, {run.info.id[-10:]}",
        "smollm2-135m",
    ]  # fmt: skip


def run_cells(cells: Sequence[str]) -> list[str]:
    """What each cell of code shows: its last expression as text and the picture, or nothing."""
    names: dict[str, Any] = {}
    shown = []
    for cell in cells:
        *lines, last = ast.parse(cell).body
        names["shown"] = None
        if isinstance(last, ast.Expr):
            (kept,) = ast.parse("shown = 0").body
            assert isinstance(kept, ast.Assign)
            kept.value, last = last.value, kept
        module = ast.fix_missing_locations(ast.Module([*lines, last], []))
        exec(compile(module, "cell", "exec"), names)
        found = names["shown"]
        picture = found._repr_mimebundle_() if hasattr(found, "_repr_mimebundle_") else {}
        shown.append("" if found is None else repr(found) + picture.get("image/svg+xml", ""))
    return shown


def test_the_notebook_runs_and_shows_what_comes_out() -> None:
    cells = [
        one
        for one in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
        if one["cell_type"] == "code"
    ]
    options = pd.option_context("display.width", 80, "display.max_columns", 20)
    with options, altair.renderers.enable("default"):  # and afterwards as before
        found = run_cells(["".join(one["source"]) for one in cells])
    stored = [
        "".join(
            line for output in one["outputs"] for text in output["data"].values() for line in text
        )
        for one in cells
    ]
    for shows, showed in zip(found, stored, strict=True):
        words, numbers = words_and_numbers(shows)
        wanted_words, wanted = words_and_numbers(showed)
        assert words == wanted_words
        # Last digits move log-probabilities by 1e-5, and ranks in a layer that ranks all words
        # nearly alike by a place or two in ten thousand; smaller ranks stay.
        assert numbers == pytest.approx(wanted, rel=2e-4, abs=1e-4)


def words_and_numbers(text: str) -> tuple[list[str], list[float]]:
    """The words of a text, and its numbers; how far they are apart doesn't matter.

    Of a picture, the texts of its marks.
    """
    if "<svg" in text:
        text = text.partition("<svg")[0] + "".join(re.findall(r'aria-label="([^"]*)"', text))
    numbers = re.compile(r"-?\d+(?:\.\d+)?")
    return numbers.sub("#", text).split(), list(map(float, numbers.findall(text)))
