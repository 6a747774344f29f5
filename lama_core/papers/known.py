"""The papers that can be done again, by name. A new one is a file here and a row in the table."""

from collections.abc import Callable

from lama_core.errors import choose
from lama_core.papers.framework import Reproduce


def _petroni2019() -> Reproduce:
    from lama_core.papers.petroni2019 import reproduce

    return reproduce


def _jiang2020() -> Reproduce:
    from lama_core.papers.jiang2020 import reproduce

    return reproduce


def _rezaee2022() -> Reproduce:
    from lama_core.papers.rezaee2022 import reproduce

    return reproduce


REPRODUCTIONS: dict[str, Callable[[], Reproduce]] = {
    "petroni2019": _petroni2019,
    "jiang2020": _jiang2020,
    "rezaee2022": _rezaee2022,
}


def find_reproduction(paper: str) -> Reproduce:
    """What does the paper called `paper` again. Raises UserError if there is nothing that does."""
    return REPRODUCTIONS[choose(paper, REPRODUCTIONS, "paper")]()
