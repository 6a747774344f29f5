"""What departs from a paper is marked in the code, and says how to undo it.

It is in docs/departures.md, or, of a plug-in, under a heading of the plug-in's page.
"""

import re

from calling import options
from project_files import ROOT, SOURCES

from lama_core.cli import make_app
from lama_core.paths import plugin_pages
from tools.documentation.site import commands_of

# The one form of a marker: in a comment or a docstring, the name to the end of the line.
MARKER = re.compile(r'\bDeparture: (.+?)\.?(?:""")?$', re.M)
NOTHING = "no option"


def departures() -> dict[str, str]:
    """Name -> the last paragraph, which says what undoes it."""
    texts = [(ROOT / "docs" / "departures.md").read_text(encoding="utf-8")]
    for page in plugin_pages():
        own = page.read_text(encoding="utf-8").partition("\n## Departures from the papers\n")[2]
        texts.append(re.split(r"^## ", own, flags=re.M)[0])
    found = re.findall(r"^### ([^\n]+)\n(.*?)(?=^##|\Z)", "\n".join(texts), re.M | re.S)
    return {name: " ".join(body.strip().split("\n\n")[-1].split()) for name, body in found}


def test_the_code_marks_every_departure_by_its_name() -> None:
    named = {name for path in SOURCES for name in MARKER.findall(path.read_text(encoding="utf-8"))}
    assert named == departures().keys()


def test_every_departure_says_which_option_undoes_it_or_that_none_does() -> None:
    known = set().union(*(options(one) for _, one in commands_of(make_app())))
    found = departures()
    assert len(found) > 40
    for name, last in found.items():
        undone_by = last.partition("**To restore:** ")[2]
        words = re.findall(r"`([^`]+)`", undone_by)
        assert words or undone_by.startswith(NOTHING), f"{name}: no **To restore:** in {last!r}"
        flags = re.findall(r"--[a-z-]+", " ".join(words))
        assert set(flags) <= known, f"{name}: the command line has no such option"
