"""Results that another tool made, opened as runs."""

from dataclasses import dataclass
from typing import Any

from lama_core.datasets.user_table import TablePreview as TablePreview
from lama_core.progress import Progress, Result
from lama_core.requests import Function
from lama_core.runs.importers.importing import Content as Content
from lama_core.runs.importers.importing import ImportRunRequest as ImportRunRequest
from lama_core.runs.importers.importing import OpenedResults, open_results, report, save_opened
from lama_core.runs.importers.importing import content_of as content_of
from lama_core.runs.importers.importing import preview_results as preview_results
from lama_core.runs.importers.importing import said_precision as said_precision
from lama_core.tables import frame_of


@dataclass(frozen=True)
class ImportedRuns:
    """Imported results, a run for each model. saved: whether they are saved, or only described."""

    opened: tuple[OpenedResults, ...]
    saved: bool

    def to_json(self) -> list[dict[str, Any]]:
        """Return what `runs import --json` prints."""
        return [one.to_json() | {"saved": self.saved} for one in self.opened]


def _import_run(request: ImportRunRequest) -> ImportedRuns:
    opened = open_results(request)
    for line in (line for one in opened for line in report(one)):
        request.on_note(f"{line}.")
    if not request.dry_run:
        for run in save_opened(opened, request.name or ""):
            name = run.info.id
            request.on_progress(Progress(f"{name} is saved", 1, 1, result=Result("run", name)))
    return ImportedRuns(tuple(opened), not request.dry_run)


import_run = Function(
    ImportRunRequest,
    _import_run,
    frame_of,
    """Open results that another tool made as runs; what is matched and dropped is reported first.

    Returns:
        A DataFrame with a row for each run: its name, model, data, tool, counts, how many facts are
        those of an installed dataset, and the dropped rows.

    Raises:
        UserError: If the format is unknown, or nothing is usable.
    """,
)
