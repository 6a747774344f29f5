"""The papers that can be reproduced: the rows of the table `papers` of all plug-ins."""

from typing import Any

from lama_core import plugins
from lama_core.errors import UserError, choose
from lama_papers.framework import Paper


def find_paper(name: str) -> Paper[Any]:
    """Return the paper of that name, or raise UserError for an empty or unknown name."""
    papers = {key: row for key, row in plugins.rows("papers").items() if isinstance(row, Paper)}
    if not name.strip():
        *first, last = papers
        raise UserError(f"No paper given: choose {', '.join(first)} or {last}.")
    return papers[choose(name, papers, "paper")]
