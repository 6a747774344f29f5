"""Pages of the documentation site that aren't in docs/, generated during the mkdocs build.

- README, CONTRIBUTING, the embedded model's card, the plug-ins' pages, and the files that these or
  docs/ link to. Links between files of the project become links between pages.
- The metrics in the glossary, from the `METRICS` table.
- The command line, from the output of `--help`.
- The library, one page per package, from its docstrings.
- Files in docs/ that aren't in the navigation of mkdocs.yml, under More.
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

import lama_core
from lama_core.cli import make_app
from lama_core.metrics.relation_figures import figures_text
from lama_core.paths import plugin_pages
from lama_core.requests import PROGRAM

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "lama_core"
PLUGINS = {
    f"plugins/{path.parent.name}.md": path.relative_to(ROOT).as_posix() for path in plugin_pages()
}
# Page -> the project file that it shows.
PAGES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "minilm-mlm.md": "assets/models/minilm-mlm/README.md",
    **PLUGINS,
}
COMMANDS = "commands.md"
GLOSSARY = "glossary.md"
FILES = "files"  # the folder of other linked files
NOT_SHOWN = ("cli", "__main__")  # documented on the page of the command line
WIDTH = 80
# The target of a link or image, unless it is a URL or an anchor on the same page.
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)[^)\s#]+")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages of plug-ins and of the library and the rest of docs/ to the navigation."""
    assert config.nav is not None
    named = {page for entry in config.nav for page in entry.values()}
    config.nav.append({"Plug-ins": list(PLUGINS)})
    config.nav.append({"Library": [{name: uri} for name, uri, _ in _library()]})
    others = sorted({path.name for path in Path(config.docs_dir).glob("*.md")} - named)
    if others:
        config.nav.append({"More": list(others)})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and the files that they link to."""
    for page, path in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / path)))
    inside = [f"docs/{path.name}" for path in Path(config.docs_dir).glob("*.md")]
    for path in _linked([*PAGES.values(), *inside]):
        linked = File.generated(
            config,
            join(FILES, path),
            abs_src_path=str(ROOT / path),
            inclusion=InclusionLevel.NOT_IN_NAV,
        )
        files.append(linked)
    for page, text in ((COMMANDS, commands_text()), *(entry[1:] for entry in _library())):
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page's text with links to project files replaced by links to pages."""
    uri = page.file.src_uri
    if uri == GLOSSARY:
        markdown += f"\n{figures_text()}"
    path = uri.removeprefix(f"{FILES}/")
    source = PAGES.get(uri, f"docs/{uri}" if path == uri else path)
    return _LINK.sub(lambda link: _url_of(_path_of(source, link[0]), uri), markdown)


def commands_text() -> str:
    """Return the page of the command line: one section per command with its help."""
    app = make_app()
    parts = ["# The command line", "The `--help` of each command."]
    for path, _ in commands_of(app):
        text = StringIO()
        console = Console(file=text, width=WIDTH, color_system=None)
        app.help_print(list(path), console=console)
        level = "#" * min(2 + max(0, len(path) - 1), 4)
        parts.append(f"{level} {' '.join(path) or PROGRAM}")
        parts.append(f"```text\n{text.getvalue().rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def commands_of(app: App, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], App]]:
    """Yield (words of the call, app) for a command and all its subcommands."""
    yield path, app
    for name in app:
        if not name.startswith("-"):
            yield from commands_of(app[name], (*path, name))


def _library() -> Iterator[tuple[str, str, str]]:
    """Yield name, URI and text of each library page: top-level modules, then each package."""
    packages = sorted(path.parent for path in LIBRARY.glob("*/__init__.py"))
    for folder in (LIBRARY, *(path for path in packages if path.name not in NOT_SHOWN)):
        found = folder.glob("*.py") if folder == LIBRARY else folder.rglob("*.py")
        names = sorted(map(_module_of, found))
        shown = [name for name in names if name.rpartition(".")[2] not in NOT_SHOWN]
        first, *others = (f"::: {name}\n" for name in shown)
        title = f"{first}    options:\n      heading_level: 1\n"
        if folder == LIBRARY:
            title += f"      members: {[name for name in lama_core.__all__ if name[0] != '_']}\n"
        yield folder.name, f"library/{folder.name}.md", "\n".join((title, *others))


def _module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _linked(sources: list[str]) -> list[str]:
    """Return the files outside docs/ that the source files link to, directly or indirectly."""
    found: list[str] = []
    for source in (queue := list(sources)):
        if not source.endswith(".md"):
            continue
        text = (ROOT / source).read_text(encoding="utf-8")
        for path in (_path_of(source, link) for link in _LINK.findall(text)):
            known = path in queue or path.startswith(("docs/", ".."))
            if not known and (ROOT / path).is_file():
                found.append(path)
                queue.append(path)
    return found


def _path_of(source: str, link: str) -> str:
    return normpath(join(dirname(source), link))


def _url_of(path: str, page: str) -> str:
    """Return the link from a page of the site to the page of a project file."""
    pages = {source: uri for uri, source in PAGES.items()}
    inside = path.removeprefix("docs/") if path.startswith("docs/") else join(FILES, path)
    return relpath(pages.get(path, inside), dirname(page) or ".")
