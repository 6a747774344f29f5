"""The papers that can be reproduced, by name: a new one is a file here and a row in the table."""

from typing import Any

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
    """The paper of that name. Raises UserError without a name, and for an unknown one."""
    if not name.strip():
        *first, last = REPRODUCTIONS
        raise UserError(f"No paper given: choose {', '.join(first)} or {last}.")
    return REPRODUCTIONS[choose(name, REPRODUCTIONS, "paper")]
