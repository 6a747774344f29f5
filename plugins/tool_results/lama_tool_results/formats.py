"""The known formats of results: tables, and those of plug-ins, which are recognised before tables.

To add one, write a reader and add a row to the table `result_formats` of a plug-in. The lines of
other tools are tables, too.
"""

from contextlib import suppress
from pathlib import Path

from lama_core import plugins
from lama_core.errors import UserError, did_you_mean
from lama_core.runs.importers.results import ResultsFormat
from lama_tool_results import table

TABLE = ResultsFormat("table", "table with subject, object and rank", table.recognizes, table.read)


def all_formats() -> tuple[ResultsFormat, ...]:
    """Return the formats in the order in which they are recognised."""
    return (*plugins.rows("result_formats").values(), TABLE)


def find_format(name: str) -> ResultsFormat:
    """Return the format called `name`, or raise UserError with the most similar name."""
    known = {form.name: form for form in all_formats()}
    if name not in known:
        raise UserError(
            f"No format of results is called {name!r}{did_you_mean(name, [*known])}; "
            f"known: {', '.join(known)}."
        )
    return known[name]


def recognize(path: Path) -> ResultsFormat | None:
    """Return the format of the results at a path, None if there are none or they can't be read."""

    def is_one(form: ResultsFormat) -> bool:
        with suppress(UserError):
            return form.recognizes(path)
        return False

    found: ResultsFormat | None = plugins.first("result_formats", is_one)
    return found or (TABLE if is_one(TABLE) else None)
