"""What departs from a paper is written down, and marked in the code.

It is in docs/departures.md, or, of a plug-in, under a heading of the plug-in's page.
"""

import re
from dataclasses import dataclass

from calling import options
from project_files import ROOT, SOURCES

from lama_core.cli import make_app
from lama_core.paths import plugin_pages
from tools.documentation.site import commands_of

PAGE = ROOT / "docs" / "departures.md"
# The one form of a marker: in a comment or a docstring, the name to the end of the line.
MARKER = re.compile(r'\bDeparture: (.+?)\.?(?:""")?$', re.M)
NOTHING = "no option"


@dataclass(frozen=True)
class Section:
    """A departure: the paper that it stands under, and what is said to undo it."""

    paper: str
    undone_by: str

    @property
    def options(self) -> list[str]:
        return re.findall(r"`([^`]+)`", self.undone_by)


def markers(text: str) -> list[str]:
    """The departures that a module names."""
    return MARKER.findall(text)


def sections(text: str) -> dict[str, Section]:
    """Name -> section, of the whole page."""
    found: dict[str, Section] = {}
    paper = ""
    for part in re.split(r"^(?=##+ )", text, flags=re.M)[1:]:
        heading, _, body = part.partition("\n")
        if heading.startswith("## "):
            paper = heading.removeprefix("## ")
            continue
        name = heading.removeprefix("### ")
        assert name not in found, f"{name!r} is a heading twice"
        last = " ".join(body.strip().split("\n\n")[-1].split())
        found[name] = Section(paper, last.partition("**To restore:** ")[2])
    return found


def listed(names: set[str]) -> str:
    """Names a line each, as a failure tells them."""
    return "".join(f"\n  {name}" for name in sorted(names))


TEXT = PAGE.read_text(encoding="utf-8")
OF_PAGE = sections(TEXT)
OF_PLUGINS = {
    name: section
    for page in plugin_pages()
    for name, section in sections(page.read_text(encoding="utf-8")).items()
    if section.paper == "Departures from the papers"
}
SECTIONS = OF_PAGE | OF_PLUGINS


def test_every_departure_that_the_code_names_is_written_down() -> None:
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in SOURCES
        for name in markers(path.read_text(encoding="utf-8"))
        if name not in SECTIONS
    }
    assert not missing, f"no page has a heading of these: {listed(missing)}"


def test_every_departure_that_is_written_down_is_marked_in_the_code() -> None:
    named = {name for path in SOURCES for name in markers(path.read_text(encoding="utf-8"))}
    silent = set(SECTIONS) - named
    assert not silent, f"no line `Departure: NAME` in the code names these: {listed(silent)}"


def test_every_departure_says_which_option_undoes_it_or_that_none_does() -> None:
    known = set().union(*(options(one) for _, one in commands_of(make_app())))
    silent = {
        name
        for name, section in SECTIONS.items()
        if not (section.options or section.undone_by.startswith(NOTHING))
    }
    assert not silent, (
        f"no last paragraph `**To restore:**` with an option or `no option`: {listed(silent)}"
    )
    unknown = {
        f"{name}: {flag}"
        for name, section in SECTIONS.items()
        for flag in re.findall(r"--[a-z-]+", " ".join(section.options))
        if flag not in known
    }
    assert not unknown, f"the command line has no such option: {listed(unknown)}"
