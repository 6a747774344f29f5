"""Write docs/licences.md: the packages that LAMA Explorer installs, with their licences.

    python -m tools.documentation.licences

The packages are the project's direct and indirect dependencies, without extras. Licences are from
the packages' metadata; for packages in `STATED`, from the licence file or the description.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs" / "licences.md"
# Licences that the metadata's fields don't state, read in the licence file or the description.
STATED = {
    "locate": "MIT License (its metadata say: Other/Proprietary License)",
    "wordfreq": "Apache-2.0; its word frequencies: CC BY-SA 4.0",
}
HEADER = """# Licences of other packages

`pip install lama-explorer` also installs these packages, in the newest versions that fit the ranges
in `pyproject.toml`; `.ci/install` installs the versions in `requirements.lock`. The licences are
those that these locked versions state; another version may have another licence.
`python -m tools.documentation.licences` writes this page; a test compares it with the installed
packages. With CUDA, torch also installs NVIDIA's libraries.

| package | licence |
| --- | --- |
"""
_CLASSIFIER = "License :: OSI Approved :: "
CUDA = re.compile("nvidia-|cuda-|triton")  # come only with torch's build for CUDA
LONGEST = 60  # characters; longer fields hold the licence's text


def page() -> str:
    """Return the page's text, from `pyproject.toml` and the metadata of the installed packages."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = sorted(set(_packages(project["dependencies"], set())), key=str.lower)
    return HEADER + "".join(f"| {name} | {licence_of(name)} |\n" for name in rows)


def _packages(requirements: Iterable[str], seen: set[str]) -> Iterator[str]:
    """Yield the required packages and all that they need on this machine, without extras."""
    for text in requirements:
        needed = Requirement(text)
        if needed.marker and not needed.marker.evaluate({"extra": ""}):
            continue
        found = re.sub(r"[-_.]+", "-", needed.name).lower()
        if found not in seen and not CUDA.match(found):
            seen.add(found)
            yield found
            yield from _packages(metadata.requires(found) or (), seen)


def licence_of(name: str) -> str:
    """Return the licence of an installed package, from `STATED` or its metadata.

    Raises:
        ValueError: If neither has a licence.
    """
    if name in STATED:
        return STATED[name]
    stated = metadata.metadata(name)
    if "License-Expression" in stated:
        return stated["License-Expression"]
    field = stated["License"].strip() if "License" in stated else ""
    classified = [
        one.removeprefix(_CLASSIFIER)
        for one in stated.get_all("Classifier") or ()
        if one.startswith(_CLASSIFIER)
    ]
    if field and len(field) <= LONGEST and "\n" not in field:
        return field
    if classified:
        return ", ".join(classified)
    raise ValueError(f"{name} states no licence: read its licence file and add it to STATED.")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
