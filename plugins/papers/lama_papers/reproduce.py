"""Reproduce papers' tables and figures, with our numbers next to the published ones."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from lama_core.files import atomic_file, user_path
from lama_core.paths import data_dir
from lama_core.requests import Function, command_line
from lama_papers.framework import ReproduceOptions
from lama_papers.registry import find_paper
from lama_papers.report import as_html
from lama_papers.tables import ReproducedTable, Reproduction


@dataclass(frozen=True)
class ReproducedPaper:
    """A paper's tables and figures with our numbers and the published ones.

    Attributes:
        html: The report with charts.
    """

    found: Reproduction
    html: Path

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each cell of each table."""
        return pd.DataFrame(
            [
                {"table": table["id"], **row}
                for table in map(_table_json, self.found.tables)
                for row in table["rows"]
            ]
        )

    def to_json(self) -> dict[str, Any]:
        """Return what `reproduce --json` prints."""
        return {
            "paper": self.found.paper,
            "citation": self.found.citation,
            "notes": list(self.found.notes),
            "tables": [_table_json(table) for table in self.found.tables],
            "absent": [asdict(one) for one in self.found.absent],
            "html": str(self.html),
        }


def _table_json(table: ReproducedTable) -> dict[str, Any]:
    return {
        **{key: getattr(table, key) for key in ("id", "name", "title", "unit", "counts")},
        "notes": table.made.notes,
        "rows": [{**asdict(row), "difference": row.difference} for row in table.made.rows],
    }


def _reproduce(request: ReproduceOptions) -> ReproducedPaper:
    paper = find_paper(request.paper)
    html = data_dir() / "reproductions" / f"{paper.name}.html"
    if request.html:
        html = user_path(request.html)
    found = paper.reproduce(request)
    with atomic_file(html) as part:
        part.write_text(as_html(found, command_line(request)), encoding="utf-8")
    return ReproducedPaper(found, html)


reproduce = Function(
    ReproduceOptions,
    _reproduce,
    lambda paper: paper.frame,
    """Reproduce a paper's tables and figures: fetch the data, run the probes, compare the numbers.

    Unavailable numbers are listed with the reason.

    Returns:
        A DataFrame with a row for each cell of each table: ours, published, and the difference.

    Raises:
        UserError: If the paper or the table is unknown.
    """,
)
