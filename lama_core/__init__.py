"""A scoring library for what language models know: cloze queries, analogies, probing runs.

For notebooks: `import lama_core as lama`, then `lama.fill`, `lama.rank`, `lama.analogy`,
`lama.look` and `lama.load_run`, which give pandas' tables, and `lama.command` for the rest
(`api.py`). What they need is imported when they are first named.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lama_core.api import analogy, command, fill, load_run, look, rank

__all__ = ["__version__", "analogy", "command", "fill", "load_run", "look", "rank"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """A function of `api.py`."""
    if name in __all__:
        from lama_core import api

        return getattr(api, name)
    raise AttributeError(f"module 'lama_core' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What there is, with what isn't imported yet."""
    return sorted({*globals(), *__all__})
