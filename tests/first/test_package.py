"""The package: one version, and every file that the wheel takes from outside `lama_core`."""

import re
import tomllib

from project_files import ROOT

import lama_core
from lama_core import paths

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TWIN = tomllib.loads((ROOT / "tools" / "twin" / "pyproject.toml").read_text(encoding="utf-8"))


def test_all_files_name_one_version() -> None:
    version = lama_core.__version__
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert TWIN["project"]["version"] == version
    extras = PROJECT["project"]["optional-dependencies"]
    assert extras["twin"] == [f"lama-explorer-twin=={version}"]
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^version: {re.escape(version)}$", cited, re.M)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changes, re.M)[1] == version  # type: ignore[index]


def test_the_wheel_takes_what_paths_looks_for() -> None:
    targets = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    inside = targets["hooks"]["custom"]["inside"]
    assert all((ROOT / source).exists() for source in inside)
    assert all(place.startswith("lama_core/") for place in inside.values())
    assert inside["app.py"] == "lama_core/web/app.py" and inside["pages"] == "lama_core/web/pages"
    assert paths.IS_CHECKOUT and paths.ROOT == ROOT and paths.APP_FILE == ROOT / "app.py"
    carried = {place.name for place in (ROOT / "assets").iterdir()} - {"screenshots", "models"}
    assert {f"assets/{name}" for name in carried} <= inside.keys()
