"""The papers that can be reproduced, by name.

To add one, add a file here and a row below, or a row to the table `papers` of a plug-in.
"""

from typing import Any

from lama_core import plugins
from lama_core.errors import UserError, choose
from lama_core.papers.framework import Paper
from lama_core.papers.jiang2020 import LPAQA_PAPER
from lama_core.papers.petroni2019 import LAMA_PAPER
from lama_core.papers.rezaee2022 import ANALOGY_PAPER
from lama_core.papers.wiland2024 import BEAR_PAPER

REPRODUCTIONS: dict[str, Paper[Any]] = {
    one.name: one for one in (LAMA_PAPER, LPAQA_PAPER, ANALOGY_PAPER, BEAR_PAPER)
}


def find_paper(name: str) -> Paper[Any]:
    """Return the paper of that name, or raise UserError for an empty or unknown name."""
    if not name.strip():
        *first, last = REPRODUCTIONS
        raise UserError(f"No paper given: choose {', '.join(first)} or {last}.")
    if name in REPRODUCTIONS:
        return REPRODUCTIONS[name]
    papers: dict[str, Paper[Any]] = {**plugins.rows("papers"), **REPRODUCTIONS}
    return papers[choose(name, papers, "paper")]
