"""What the documentation site has besides docs/, made while mkdocs builds it.

- README, CONTRIBUTING and the embedded model's card, as they are, and files that they and docs/
  link to: links between files of the project become links between pages;
- the glossary's figures, from the table that computes them (`METRICS`);
- the command line, from its own `--help`;
- the library, a page a room, from its docstrings;
- files of docs/ that the navigation in mkdocs.yml doesn't name, under More.
"""

import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from cyclopts import App
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from rich.console import Console

from lama_core.cli import make_app
from lama_core.metrics.relation_figures import figures_text
from lama_core.requests import PROGRAM

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "lama_core"
# Page -> the file of the project that it is.
PAGES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "minilm-mlm.md": "assets/models/minilm-mlm/README.md",
}
COMMANDS = "commands.md"
GLOSSARY = "glossary.md"
FILES = "files"  # the folder of what else is linked to
NOT_SHOWN = ("cli", "__main__")  # its page is the command line's own
WIDTH = 80
# The target of a link or an image that is no address and no place on its own page.
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)[^)\s#]+")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation, with the library's pages and whatever else lies in docs/."""
    assert config.nav is not None
    named = {page for entry in config.nav for page in entry.values()}
    config.nav.append({"Library": [{name: uri} for name, uri, _ in _library()]})
    others = sorted({path.name for path in Path(config.docs_dir).glob("*.md")} - named)
    if others:
        config.nav.append({"More": list(others)})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The pages that are made, and what they link to."""
    for page, path in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / path)))
    inside = [f"docs/{path.name}" for path in Path(config.docs_dir).glob("*.md")]
    for path in _linked([*PAGES.values(), *inside]):
        made = File.generated(
            config,
            join(FILES, path),
            abs_src_path=str(ROOT / path),
            inclusion=InclusionLevel.NOT_IN_NAV,
        )
        files.append(made)
    for page, text in ((COMMANDS, commands_text()), *(made[1:] for made in _library())):
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page's text, with links to files of the project as links to pages of the site."""
    uri = page.file.src_uri
    if uri == GLOSSARY:
        markdown += f"\n{figures_text()}"
    made = uri.removeprefix(f"{FILES}/")
    source = PAGES.get(uri, f"docs/{uri}" if made == uri else made)
    return _LINK.sub(lambda found: _place_of(_path_of(source, found[0]), uri), markdown)


def commands_text() -> str:
    """The command line, a section a command, each with its own help."""
    app = make_app()
    parts = ["# The command line", "Each command's `--help`, as it prints it."]
    for path, _ in commands_of(app):
        text = StringIO()
        console = Console(file=text, width=WIDTH, color_system=None)
        app.help_print(list(path), console=console)
        level = "#" * min(2 + max(0, len(path) - 1), 4)
        parts.append(f"{level} {' '.join(path) or PROGRAM}")
        parts.append(f"```text\n{text.getvalue().rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def commands_of(app: App, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], App]]:
    """A command and all below it: the words that call it, and itself."""
    yield path, app
    for name in app:
        if not name.startswith("-"):
            yield from commands_of(app[name], (*path, name))


def _library() -> Iterator[tuple[str, str, str]]:
    """The library's pages: name, address, text; first the modules that are in no room."""
    rooms = sorted(path.parent for path in LIBRARY.glob("*/__init__.py"))
    for folder in (LIBRARY, *(room for room in rooms if room.name not in NOT_SHOWN)):
        found = folder.glob("*.py") if folder == LIBRARY else folder.rglob("*.py")
        names = sorted(map(_module_of, found))
        shown = [name for name in names if name.rpartition(".")[2] not in NOT_SHOWN]
        first, *others = (f"::: {name}\n" for name in shown)
        title = f"{first}    options:\n      heading_level: 1\n"
        yield folder.name, f"library/{folder.name}.md", "\n".join((title, *others))


def _module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _linked(sources: list[str]) -> list[str]:
    """The files outside docs/ that these, and what they link to, link to; without these."""
    found: list[str] = []
    for source in (waiting := list(sources)):
        if not source.endswith(".md"):
            continue
        text = (ROOT / source).read_text(encoding="utf-8")
        for path in (_path_of(source, link) for link in _LINK.findall(text)):
            known = path in waiting or path.startswith(("docs/", ".."))
            if not known and (ROOT / path).is_file():
                found.append(path)
                waiting.append(path)
    return found


def _path_of(source: str, link: str) -> str:
    return normpath(join(dirname(source), link))


def _place_of(path: str, page: str) -> str:
    """How a page of the site links to a file of the project."""
    pages = {source: uri for uri, source in PAGES.items()}
    inside = path.removeprefix("docs/") if path.startswith("docs/") else join(FILES, path)
    return relpath(pages.get(path, inside), dirname(page) or ".")
