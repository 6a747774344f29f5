"""The papers that can be done again, by name. A new one is a file here and a row in the table."""

from collections.abc import Callable
from typing import Any

from lama_core.errors import choose
from lama_core.papers.framework import Paper


def _petroni2019() -> Paper[Any]:
    from lama_core.papers.petroni2019 import LAMA_PAPER

    return LAMA_PAPER


def _jiang2020() -> Paper[Any]:
    from lama_core.papers.jiang2020 import LPAQA_PAPER

    return LPAQA_PAPER


def _rezaee2022() -> Paper[Any]:
    from lama_core.papers.rezaee2022 import ANALOGY_PAPER

    return ANALOGY_PAPER


def _wiland2024() -> Paper[Any]:
    from lama_core.papers.wiland2024 import BEAR_PAPER

    return BEAR_PAPER


KNOWN: dict[str, Callable[[], Paper[Any]]] = {
    "petroni2019": _petroni2019,
    "jiang2020": _jiang2020,
    "rezaee2022": _rezaee2022,
    "wiland2024": _wiland2024,
}


def find_paper(name: str) -> Paper[Any]:
    """The paper of that name. Raises UserError if there is none that can be done again."""
    return KNOWN[choose(name, KNOWN, "paper")]()
