"""Runs of results that other tools wrote."""

from pathlib import Path
from typing import Any

from lama_core.runs.find import load_run
from lama_core.runs.info import Run
from lama_tool_results.importing import ImportRunRequest, import_run, open_results


def imported(path: Path, **more: Any) -> Run:
    """Import a file of one model, `toy` by default; return the saved run."""
    (one,) = import_run.answer(ImportRunRequest(str(path), **{"model": "toy", **more}))
    return load_run(one["run"])


def ranks(path: Path, **more: Any) -> dict[str, float | None]:
    """Subject -> rank, of the rows that an import would save."""
    (one,) = open_results(ImportRunRequest(str(path), **{"model": "toy", **more}))
    rows = one.finished.rows.to_pylist()
    return {row["subject"]: row["rank_raw"] for row in rows}
