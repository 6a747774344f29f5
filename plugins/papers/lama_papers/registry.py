"""The papers that can be reproduced: the rows of the table `papers` of all plug-ins."""

from typing import Any

from lama_core import plugins
from lama_core.errors import UserError, choose
from lama_papers.framework import Paper


def find_paper(name: str) -> Paper[Any]:
    """Return the paper of that name, or raise UserError for an empty or unknown name."""
    papers: dict[str, Paper[Any]] = plugins.rows("papers")
    if not name.strip():
        *first, last = papers
        raise UserError(f"No paper given: choose {', '.join(first)} or {last}.")
    return papers[choose(name, papers, "paper")]
