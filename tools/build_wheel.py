"""Build hook: put the app, the assets and the documentation into the wheel, inside `lama_core`.

`[tool.hatch.build.targets.wheel.hooks.custom.inside]` in pyproject.toml maps the files; the page of
each plug-in is with the documentation. An editable install doesn't need them: the library finds the
checkout's folders (`lama_core/paths.py`).
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class InsideThePackage(BuildHookInterface[Any]):
    """Adds files from outside `lama_core` to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, unless the wheel is for an editable install."""
        if version != "editable":
            pages = (
                path.relative_to(self.root) for path in Path(self.root).glob("plugins/*/README.md")
            )
            added = {str(path): f"lama_core/docs/{path.as_posix()}" for path in pages}
            build_data["force_include"].update(self.config["inside"] | added)
