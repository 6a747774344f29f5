"""The library from Python: what docstrings and the notebook show, and what a wrong call says."""

import ast
import doctest
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair
import pandas as pd
import pytest
from project_files import ROOT

import lama_core as lama

pytestmark = pytest.mark.usefixtures("home")
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
MODEL = "minilm-mlm"
TEXT = "The capital of Norway is ___."
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


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_a_docstring_shows_what_comes_out(name: str) -> None:
    (test,) = doctest.DocTestFinder(recurse=False).find(getattr(lama, name), name, globs={})
    assert doctest.DocTestRunner().run(test).failed == 0


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
