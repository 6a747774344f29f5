"""The documentation site: it builds, leads nowhere that isn't there, and says all that it must."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from calling import options
from project_files import ROOT

from lama_core.cli import make_app
from lama_core.glossary import glossary_text, read_terms
from lama_core.metrics.relation_figures import METRICS
from lama_core.requests import PROGRAM
from pages.ui.shared.tables import TERMS
from tools.documentation.site import commands_of

# Attributes that make a browser load what they name.
LOADS = {"src", "srcset", "poster", "data"}
EXPLAIN = ("explain", "glossary.explain")


class Reader(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if not value:
                continue
            if name == "id":
                self.anchors.add(value)
            elif name in LOADS or (tag, name) == ("link", "href"):
                self.loads.append(value)
            elif name == "href":
                self.links.append(value)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as for its readers: a warning fails it."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Reader]:
    return {
        path.relative_to(site): Reader(path.read_text(encoding="utf-8"))
        for path in site.rglob("*.html")
        if path.name != "404.html"  # its links are from the site's root
    }


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Reader]) -> None:
    elsewhere = {
        f"{name}: {what}"
        for name, page in pages.items()
        for what in page.loads
        if urlsplit(what).netloc
    }
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        elsewhere |= set(re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"']+", text))
    assert not elsewhere
    # The theme's own script fetches a library when a page has a diagram of this class.
    assert not [path for path in site.rglob("*.html") if 'class="mermaid"' in path.read_text()]


def test_every_link_leads_to_a_page_and_a_place_on_it(
    site: Path, pages: dict[Path, Reader]
) -> None:
    broken = []
    for name, page in pages.items():
        for link in (*page.links, *page.loads):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (site / name.parent / unquote(parts.path)) if parts.path else site / name
            anchors = pages.get(target.resolve().relative_to(site.resolve()))
            place = unquote(parts.fragment)
            if not target.is_file() or (anchors and place and place not in anchors.anchors):
                broken.append(f"{name}: {link}")
    assert not broken


def test_every_command_stands_there_with_its_help(site: Path, pages: dict[Path, Reader]) -> None:
    text = pages[Path("commands.html")].text
    commands = dict(commands_of(make_app()))
    assert {("cloze",), ("data", "import"), ("prompts", "fit"), ("bench",)} <= set(commands)
    for path, command in commands.items():
        called = " ".join((PROGRAM, *path))
        assert f"Usage: {called} " in text, called
        for option in options(command) if command.default_command else ():
            assert option in text, f"{called} {option}"


def asked_terms() -> Iterator[tuple[str, str]]:
    """File and term of every `explain("...")` in the pages, and of titles of columns."""
    yield from (("titles of columns", term) for term in TERMS.values())
    for path in sorted((ROOT / "pages").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in EXPLAIN:
                (argument,) = node.args
                if ast.unparse(argument) == "term" and path.stem == "tables":
                    continue  # one of TERMS
                assert isinstance(argument, ast.Constant), f"{path}:{node.lineno}: not a literal"
                yield str(path.relative_to(ROOT)), argument.value


def test_every_term_that_the_app_explains_is_in_the_glossary(pages: dict[Path, Reader]) -> None:
    terms = read_terms(glossary_text())
    asked = list(asked_terms())
    assert len(asked) > 25
    assert not [(path, term) for path, term in asked if not terms.get(term)]
    shown = pages[Path("glossary.html")].text
    for term in (*terms, *(one.label[0].upper() + one.label[1:] for one in METRICS.values())):
        assert f"{term} ¶" in shown or f"{term}¶" in shown
