"""The known formats of results, in the order in which they are recognised.

To add one, write a reader in this folder and add a row, here or to the table `result_formats` of a
plug-in. "table" is last: the lines of other tools are tables, too.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from lama_core import plugins
from lama_core.errors import UserError, did_you_mean
from lama_core.runs.importers import (
    helm,
    inspect_logs,
    lama_scripts,
    lm_evaluation_harness,
    lm_pub_quiz,
    opencompass,
    table,
)
from lama_core.runs.importers.results import ResultsFormat

RESULT_FORMATS: tuple[ResultsFormat, ...] = (
    ResultsFormat(
        "lm-pub-quiz",
        "lm-pub-quiz results folder",
        lm_pub_quiz.recognizes,
        lm_pub_quiz.read,
    ),
    ResultsFormat(
        "lm-evaluation-harness",
        "lm-evaluation-harness output folder with samples",
        lm_evaluation_harness.recognizes,
        lm_evaluation_harness.read,
    ),
    ResultsFormat(
        "lama",
        "file of LAMA's or OptiPrompt's predictions",
        lama_scripts.recognizes,
        lama_scripts.read,
    ),
    ResultsFormat("inspect", "Inspect log", inspect_logs.recognizes, inspect_logs.read),
    ResultsFormat("helm", "HELM run folder", helm.recognizes, helm.read),
    ResultsFormat(
        "opencompass",
        "OpenCompass output folder",
        opencompass.recognizes,
        opencompass.read,
    ),
    ResultsFormat("table", "table with subject, object and rank", table.recognizes, table.read),
)


def all_formats() -> Iterator[ResultsFormat]:
    """Yield the formats in the order of recognition: plug-ins' before tables."""
    *first, last = RESULT_FORMATS
    yield from first
    yield from plugins.rows("result_formats").values()
    yield last


def find_format(name: str) -> ResultsFormat:
    """Return the format called `name`, or raise UserError with the most similar name."""
    for form in all_formats():
        if form.name == name:
            return form
    known = [form.name for form in all_formats()]
    raise UserError(
        f"No format of results is called {name!r}{did_you_mean(name, known)}; "
        f"known: {', '.join(known)}."
    )


def recognize(path: Path) -> ResultsFormat | None:
    """Return the format of the results at a path, None if there are none or they can't be read."""

    def is_one(form: ResultsFormat) -> bool:
        with suppress(UserError):
            return form.recognizes(path)
        return False

    *own, table = RESULT_FORMATS
    found: ResultsFormat | None = next(filter(is_one, own), None)
    found = found or plugins.first("result_formats", is_one)
    return found or (table if is_one(table) else None)
