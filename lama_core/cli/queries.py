"""Commands of the kinds of query: `cloze`, `relation`, `rank`, `inspect`, ..."""

from typing import Any

from cyclopts import App

from lama_core.cli import commands, output
from lama_core.queries.kind import Answer
from lama_core.queries.table import QUERIES


def print_answer(answer: Answer[Any, Any, Any]) -> None:
    """Print the tables and lines of an answer."""
    output.print_parts(answer.kind.printed(answer))


def __getattr__(name: str) -> App:
    """Return the command of a kind of query. name: the last word of the command."""
    for query in QUERIES:
        if query.request.command[-1] == name:
            return commands.make(query, print_answer, query.kind.example)
    raise AttributeError(f"no kind of query has the command {name!r}")
