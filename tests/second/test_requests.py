"""A request's command line, Python call and record, read back, are the same request again."""

import json
import shlex
from dataclasses import MISSING
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from calling import invoke
from hypothesis import given
from hypothesis import strategies as st

import lama_core as lama
from lama_core.errors import UserError
from lama_core.queries.batch import ManyRequest
from lama_core.queries.batch_lines import read_file
from lama_core.queries.cloze import ClozeRequest
from lama_core.requests import (
    Function,
    Request,
    RequestField,
    arguments,
    command_line,
    from_record,
    literal_values,
    python_call,
    record,
    request_fields,
)

FUNCTIONS: list[Function[..., Any, Any, Any]] = [
    value for name in lama.__all__ if isinstance(value := getattr(lama, name), Function)
]
every_function = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
ODD = '-a \'b "c"'


def other(choice: RequestField) -> Any:
    """A value of a field's type that is not its default."""
    if names := literal_values(choice.kind):
        return next(name for name in names if name != choice.default)
    if choice.is_several:
        return (ODD, "d")
    kind = str(choice.kind)
    if "bool" in kind:
        return not choice.default
    if "float" in kind:
        return 0.5
    if "int" in kind:
        return 9
    return Path(ODD) if "Path" in kind else ODD


def changed(kind: type[Request]) -> Request:
    """A request of which every field has another value than its default."""
    made = kind(**{choice.name: other(choice) for choice in request_fields(kind)})
    assert all(getattr(made, choice.name) != choice.default for choice in request_fields(kind))
    return made


@every_function
def test_a_request_reads_itself_back(
    function: Function[..., Any, Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Request] = []

    def see(_: object, request: Request) -> None:
        asked.append(request)
        raise UserError("seen")

    monkeypatch.setattr(Function, "answer", see)
    request = changed(function.request)
    invoke(shlex.split(command_line(request, "--json"))[1:])
    names = {"lama": SimpleNamespace(**{function.__name__: function})}
    with pytest.raises(UserError, match="seen"):
        exec(python_call(request), names)
    assert asked == [request, request]


@every_function
def test_a_record_is_the_same_request_again(function: Function[..., Any, Any, Any]) -> None:
    kind = function.request
    request = changed(kind)
    kept = json.loads(json.dumps(record(request)))
    assert from_record(kind, kept) == request
    for choice in request_fields(kind):
        for wrong in ({}, "1.5" if "float" in str(choice.kind) else 1.5):
            with pytest.raises(UserError, match=choice.name):
                from_record(kind, {**kept, choice.name: wrong})
    with pytest.raises(UserError, match="Unknown field 'nothing'"):
        from_record(kind, {**kept, "nothing": 1})
    written = {one.name for one in request_fields(kind) if one.always or one.default is MISSING}
    short = {name: value for name, value in kept.items() if name in written}
    again = record(from_record(kind, short)).keys()
    assert written <= again <= written | {"combinations"}  # which a study fills in


@given(st.text(max_size=9), st.none() | st.text(max_size=9), st.lists(st.text(max_size=9)))
def test_any_text_stays_one_word_of_the_shell(
    text: str, gold: str | None, names: list[str]
) -> None:
    request = ClozeRequest(text, gold=gold, models=names)
    words = shlex.split(command_line(request, "--json"))
    assert words[0] == "lama-explorer" and words[1:] == arguments(request, "--json")
    assert words[-1] == text
    for option, values in (("--gold", [] if gold is None else [gold]), ("--model", names)):
        for value in values:
            assert f"{option}={value}" in words or [option, value] in [
                words[at : at + 2] for at in range(len(words))
            ]


def test_a_wrong_value_is_refused_in_a_sentence() -> None:
    wrong: dict[str, Any]
    for wrong, said in (
        ({"top_k": 0}, "top k can't be 0: expected an integer >= 1"),
        ({"top_k": True}, "top k can't be True: expected an integer"),
        ({"top_k": np.float64(1.5)}, "top k can't be 1.5"),
        ({"gold": "\ud800"}, "not valid text"),
        ({"precision": "fp3"}, "did you mean 'fp32'"),
        ({"models": ()}, "No model is chosen"),
        ({"models": ("a", "a")}, "chosen twice"),
        ({"models": ("a", 1)}, "model can't be"),
        ({"text": None}, "text can't be 'None': expected text"),
    ):
        with pytest.raises(UserError, match=said):
            ClozeRequest(**{"text": "___", **wrong}).check()
    frame = pd.DataFrame({"x": ["a"], "y": ["b"]})
    for table in (frame, pd.DataFrame(), {"x": ["a"], "y": ["b"]}):  # columns' names are no values
        with pytest.raises(UserError, match=r"^model"):
            ClozeRequest("a ___", models=table).check()


def test_a_notebooks_values_are_those_of_a_plain_call(tmp_path: Path) -> None:
    plain = ClozeRequest("Paris is in ___.", models=["a", "b"], top_k=3)
    for models_given in (
        np.array(["a", "b"]),
        pd.Series(["a", "b"], index=["x", "y"]),
        pd.DataFrame({"gold": ["g", "h"], "model": ["a", "b"]}),
        pd.DataFrame({"any": ["a", "b"]}),
        (Path("a"), np.str_("b")),
    ):
        request = ClozeRequest(np.str_("Paris is in ___."), models=models_given, top_k=np.int64(3))
        request.check()
        assert request == plain
        assert python_call(request) == python_call(plain)
    assert ClozeRequest("a ___", models=tmp_path).models == (str(tmp_path),)


def test_a_table_is_the_file_that_is_meant() -> None:
    frame = pd.DataFrame({"gold": ["Japan", None], "text": ["Tokyo is in ___.", "a, b: ___"]})
    by_frame = ManyRequest(frame)
    by_frame.check()
    read = read_file(Path(by_frame.file).read_bytes(), "table")
    assert [(line.text, line.gold) for line in read] == [
        ("Tokyo is in ___.", "Japan"),
        ("a, b: ___", None),
    ]
    column = read_file(Path(ManyRequest(frame["text"]).file).read_bytes(), "column")
    assert [line.text for line in column] == ["Tokyo is in ___.", "a, b: ___"]


SELECTIONS = [
    (function, choice.name)
    for function in FUNCTIONS
    for choice in request_fields(function.request)
    if choice.selects
]


@pytest.mark.parametrize(
    ("function", "name"), SELECTIONS, ids=lambda one: getattr(one, "__name__", one)
)
def test_an_empty_selection_selects_nothing_and_is_refused(
    function: Function[..., Any, Any, Any], name: str
) -> None:
    required = {one.name: "x" for one in request_fields(function.request) if one.default is MISSING}
    for empty in ([], pd.Series([], dtype=str), np.array([]), iter(()), {}.keys(), set()):
        with pytest.raises(UserError, match=f"The list of {name} is empty"):
            function(**required | {name: empty})
    assert function.request(**required | {name: None}) == function.request(**required)
