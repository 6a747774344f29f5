"""The checks of the project's own tests on a query, a view and a format, for the tests of plug-ins.

A check raises AssertionError where a claim doesn't hold; see docs/plugins.md.
"""

import contextlib
import io
import json
from math import nan
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import lama_core
from lama_core import cli, plugins
from lama_core.datasets import formats
from lama_core.datasets.dataset import Dataset
from lama_core.metrics.fact_answers import AnswerFilter, join_answers
from lama_core.queries.kind import Answer, QueryFunction
from lama_core.requests import arguments, field_values
from lama_core.runs.alignment import align
from lama_core.runs.find import load_run
from lama_core.scoring.limits import UNLIMITED
from lama_core.tables import columns_of
from lama_core.views.view import Shown, ViewFunction, show

# Columns of a view's frame that count facts.
COUNTS = ("n", "n_excluded", "n_only", "only_a", "only_b")


def command_json(*words: str) -> Any:
    """Return what a command prints with `--json`. words: of the command, after `lama-explorer`.

    Raises:
        UserError: If the command, an option or a value is invalid.
    """
    at, printed = words.index("--") if "--" in words else len(words), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        cli.call(*words[:at], "--json", *words[at:])
    return json.loads(printed.getvalue())


def check_query(
    function: QueryFunction[..., Any, Any, Any], **fields: Any
) -> Answer[Any, Any, Any]:
    """Check that a query's function, command and JSON give the same answer; return it.

    Its columns have a meaning in a sentence, pins find theirs, and what is prepared can be sent to
    the scoring process and be a key of the cache.

    Args:
        function: The query.
        fields: Fields of its request, with models that are on this machine.
    """
    request = function.request(**fields)
    answer = function.answer(request)
    whole = json.loads(json.dumps(answer.to_json(), allow_nan=False))
    assert command_json(*arguments(request)) == whole, "the command gives another answer"
    frame = getattr(lama_core, request.python)(**field_values(request))
    assert frame.to_json(orient="records") == answer.frame().to_json(orient="records")
    columns = columns_of(function.kind.row)
    assert all(column.help.endswith(".") for column in columns.values()), "no sentence"
    assert not function.kind.answer_field or function.kind.answer_field in columns
    sent = (request, function.kind.prepare(request, UNLIMITED))
    here, there = Pipe()  # blocks if it is sent more than 64 kB
    here.send(sent)
    again = there.recv()
    assert again == sent and hash(again) == hash(sent), "can't be sent or hashed"
    return answer


def check_view(function: ViewFunction[..., Any, Any], **fields: Any) -> Shown[Any, Any]:
    """Check that a view's function, command and JSON agree and its parts fit together; return it.

    Each cell that counts facts leads to as many facts.

    Args:
        function: The view.
        fields: Fields of its request.
    """
    found, view = show(function.view, function.request(**fields)), function.view
    printed = command_json(*arguments(found.request))
    assert json.loads(json.dumps(printed, allow_nan=False)) == printed
    frame = getattr(lama_core, function.request.python)(**field_values(found.request))
    assert frame.to_json(orient="records") == found.frame.to_json(orient="records")
    assert len(frame), "no rows"
    assert view.example.split()[: len(function.request.command)] == [*function.request.command]
    assert view.question.endswith((".", "?")) and view.title
    if keys := view.keys_of(found):
        named = [name for name in ("run", *keys) if name in found.frame]
        assert not found.frame.duplicated(named).any(), f"{named} don't identify a row"
    names = [column.name for column in view.columns(found)]
    assert len(set(names)) == len(names)
    assert list(view.tables(found)), "no table"
    if view.has_figure:
        figure = found.figure
        assert figure.title and figure.caption and figure.by.title and figure.value.title
        assert {figure.by.column, figure.value.column, "said"} <= set(figure.frame)
        assert set(figure.frame[figure.series]) <= set(figure.names)
    _check_facts(found)
    return found


def _check_facts(found: Shown[Any, Any]) -> None:
    """Check that the facts behind each cell are as many as it counts."""
    lines = [
        (facts, line[column], column)
        for line in found.frame.to_dict("records")
        for column in COUNTS
        if line.get(column, nan) == line.get(column) and (facts := found.facts(line, column))
    ]
    if not lines:
        return
    runs = [load_run(info.id) for info in found.infos]
    if any(info.beside for info in found.infos):
        runs = [*align(runs)]
    numbers = {run.info.id: at for at, run in enumerate(runs)}
    ranking = getattr(found.request, "ranking", None) or runs[0].info.ranking
    joined = join_answers(runs, ranking=ranking)
    for facts, n, column in lines:
        chosen = AnswerFilter(
            of=numbers[facts.run],
            k=getattr(found.request, "k", 1),
            counting=facts.counting,
            right=tuple(numbers[one] for one in facts.right),
            wrong=tuple(numbers[one] for one in facts.wrong),
            **facts.filter,
        )
        selected = len(joined.select(chosen))
        assert selected == n, f"{column} is {n}, but {facts} selects {selected} facts"


def check_format(name: str, path: Path, facts: int) -> Dataset:
    """Check that data are recognised as a plug-in's format and read the same twice; return them.

    Args:
        name: The format's name.
        path: A file or folder in this format.
        facts: How many facts it has.
    """
    assert name in plugins.names("formats"), f"no plug-in has the format {name}"
    assert formats.detect(path).name == name, f"recognised as {formats.detect(path).name}"
    first, second = formats.load_facts(path), formats.load_facts(path)
    assert first.facts == second.facts, "read differently the second time"
    assert len({fact.id for fact in first.facts}) == len(first.facts) == facts
    return first
