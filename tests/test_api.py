"""The library from Python: what docstrings and the notebook show, and the pages' calls of it."""

import ast
import doctest
import inspect
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from calling import invoke, printed

import lama_core as lama
from lama_core import api
from lama_core.errors import UserError
from lama_core.probes.analogy.solve import SolveRequest
from lama_core.probes.cloze.ask import ClozeRequest
from lama_core.probes.cloze.inside import InsideRequest
from lama_core.probes.statements.rank import RankRequest
from lama_core.requests import Request, arguments, python_call

pytestmark = pytest.mark.usefixtures("home")
ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
MODEL = "minilm-mlm"
TEXT = "The capital of Norway is ___."
REQUESTS: tuple[Request, ...] = (
    ClozeRequest(models=(MODEL,), text=TEXT, top_k=3, gold="Oslo", candidates="full"),
    RankRequest(models=(MODEL,), text=TEXT, answers=("Oslo", "New York"), part="answer"),
    SolveRequest(models=(MODEL,), text=("Oslo", "Norway", "Paris", "___"), top_k=2),
    InsideRequest(models=(MODEL,), text=TEXT, layers=True, gold="Oslo"),
    InsideRequest(models=(MODEL,), text=TEXT, attribution="gradients", explain="Rome", steps=16),
)


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
    assert {"fill", "rank", "analogy", "look", "load_run"} <= {*dir(lama)}
    with pytest.raises(AttributeError, match="no attribute 'fil'"):
        lama.fil  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", ("fill", "rank", "analogy", "look", "load_run", "command"))
def test_a_docstring_shows_what_comes_out(name: str) -> None:
    function = getattr(lama, name)
    (test,) = doctest.DocTestFinder(recurse=False).find(function, name, globs={})
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_a_function_takes_the_choices_of_its_request(request_: Any) -> None:
    taken = inspect.signature(getattr(api, request_.python)).parameters
    assert {*taken} == {field.name for field in fields(request_)} - unused(request_)
    for field in fields(request_):
        given = taken.get(field.name)
        if given and given.default is not inspect.Parameter.empty and field.name != "models":
            assert given.default == field.default, field.name


def unused(request: Any) -> set[str]:
    """What belongs to rescored words, which a look inside has none of."""
    return {"context", "n_rescored"} if isinstance(request, InsideRequest) else set()


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_the_call_of_a_request_gives_the_numbers_of_its_command(request_: Any) -> None:
    call = python_call(request_)
    assert call.startswith(f"lama.{request_.python}(")
    names: dict[str, Any] = {"lama": lama}
    exec(f"table = {call}", names)
    table = names["table"]
    told = invoke(arguments(request_, "--json"))
    found = numbers(json.loads(told.stdout))
    assert len(table)
    for column in ("log_prob", "prob", "rank", "score", "value"):
        for value in table[column].dropna() if column in table else ():
            assert any(abs(value - one) < 1e-9 for one in found), (column, value)


def numbers(value: Any) -> list[float]:
    """All numbers in a JSON value."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [number for one in inner for number in numbers(one)]
    return [float(value)] if isinstance(value, int | float) else []


def test_a_text_stands_in_a_call_as_it_was_typed() -> None:
    request = ClozeRequest(models=("a'b",), text='"x" \\ ___ \n', gold="it's")
    (call,) = ast.parse(str(python_call(request))).body
    assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)
    assert [ast.literal_eval(one) for one in call.value.args] == ['"x" \\ ___ \n']
    named = {one.arg: ast.literal_eval(one.value) for one in call.value.keywords}
    assert named == {"models": ["a'b"], "gold": "it's"}


def test_a_command_gives_what_it_prints() -> None:
    run = "starter-minilm_mlm-manual"
    scores = lama.command("results", run, "--relation", "P36")
    (row,) = json.loads(printed("results", run, "--relation", "P36", "--json"))
    assert scores.to_dict("records") == [row]
    several = lama.command("cloze", "--model", "minilm-mlm", "--", "-___ is a sign.")
    assert several["text"] == "-[MASK] is a sign.", "what is no table stays as it is"
    with pytest.raises(UserError, match="There is no run 'nothing'"):
        lama.command("results", "nothing")


def test_mistakes_are_a_sentence() -> None:
    with pytest.raises(UserError, match="has no blank"):
        lama.fill("No blank.")
    with pytest.raises(UserError, match="did you mean"):
        lama.fill(TEXT, models=["minilm-mlmm"])
    with pytest.raises(UserError, match="one thing at a time"):
        lama.look(TEXT)
    with pytest.raises(UserError, match="There is no run 'nothing'"):
        lama.load_run("nothing")


def run_cells(cells: Sequence[str]) -> list[str]:
    """What each cell of code shows: its last expression as text, or nothing."""
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
        shown.append("" if names["shown"] is None else repr(names["shown"]))
    return shown


def test_the_notebook_runs_and_shows_what_comes_out() -> None:
    cells = [
        one
        for one in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
        if one["cell_type"] == "code"
    ]
    with pd.option_context("display.width", 80, "display.max_columns", 20):
        found = run_cells(["".join(one["source"]) for one in cells])
    stored = [
        "".join(text)
        for one in cells
        for text in [[line for output in one["outputs"] for line in output["data"]["text/plain"]]]
    ]
    assert found == stored
