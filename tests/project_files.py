"""The project's packages and modules: the library, the pages, the tools and each plug-in."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"  # the releases themselves, where they are
PLUGINS = {path.name: path for path in sorted(ROOT.glob("plugins/*/lama_*"))}
PACKAGES = {name: ROOT / name for name in ("lama_core", "pages", "tools")} | PLUGINS
SOURCES = sorted([*(p for path in PACKAGES.values() for p in path.rglob("*.py")), ROOT / "app.py"])


def of_values(value: Any) -> Iterator[str]:
    """Yield the texts of a lesson's tables and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from of_values(one)
