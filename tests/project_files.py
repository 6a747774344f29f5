"""The project's packages and modules: the library, the pages, the tools and each plug-in."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"  # the releases themselves, where they are
PLUGINS = {path.name: path for path in sorted(ROOT.glob("plugins/*/lama_*"))}
PACKAGES = {name: ROOT / name for name in ("lama_core", "pages", "tools")} | PLUGINS
SOURCES = sorted([*(p for path in PACKAGES.values() for p in path.rglob("*.py")), ROOT / "app.py"])
