"""`plugins`: list the installed plug-ins, write a new one; and the commands that plug-ins add."""

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from lama_core import plugins as installed
from lama_core.cli import commands, output
from lama_core.errors import UserError
from lama_core.files import user_path, work_folder
from lama_core.paths import DOCS

EXAMPLE = DOCS / "example-plugin"
SOURCES = (".py", ".toml", ".md")
ROW = "row "  # begins the names of plug-ins' commands in this module
# Not the attribute of views and queries.
NAMED = re.compile(r"example(?! = ['\"](results|example))")


def list_plugins(*, json: commands.Json = False) -> None:
    """List the installed plug-ins: their packages, and what they add."""
    found, problems = installed.find_plugins()
    records: list[dict[str, Any]] = [
        {
            "name": one.plugin.name,
            "package": one.package,
            "version": one.version,
            "about": one.plugin.about,
            "adds": {table: sorted(rows) for table, rows in one.plugin.rows().items()},
        }
        for one in found
    ]
    if json:
        output.print_json(records)
    else:
        for one in records:
            output.print_line(f"{one['name']} ({one['package']} {one['version']}): {one['about']}")
            for table, names in one["adds"].items():
                output.print_line(f"    {table.replace('_', ' ')}: {', '.join(names)}")
    for problem in problems:
        output.print_note(problem)


plugins = commands.make_group("plugins", list_plugins)
plugins.command(
    list_plugins, name="list", help_epilogue="Example: lama-explorer plugins list --json"
)


def add_commands(app: App, known: Collection[str]) -> None:
    """Add the commands of plug-ins, which are imported when called. known: names to leave alone."""
    added: dict[str, tuple[str, str]] = {}  # word -> row, what it is about
    for one in installed.find_plugins()[0]:
        for name in (*one.plugin.commands, *one.plugin.queries, *one.plugin.probes):
            about = one.plugin.help.get(name, one.plugin.about)
            added.setdefault(name.replace("_", "-"), (name, about))
    for word, (name, about) in added.items():
        if word not in known and " " not in word:
            app.command(f"{__name__}:{ROW}{name}", name=word, help=about)


def add_to_group(group: App, name: str) -> None:
    """Add the commands of plug-ins to a group of commands; those that it has stay."""
    for one in installed.find_plugins()[0]:
        for row in one.plugin.commands:
            first, _, word = row.partition(" ")
            if first == name and word and word not in {*group}:
                about = one.plugin.help.get(row, one.plugin.about)
                group.command(f"{__name__}:{ROW}{row}", name=word, help=about)


def __getattr__(name: str) -> App:
    """Return the command of a plug-in. name: `ROW` and the row of a command, query or probe."""
    name = name.removeprefix(ROW)
    if command := installed.find("commands", name):
        return command
    if query := installed.find("queries", name):
        from lama_core.cli.queries import print_answer  # slow to import

        return commands.make(query, print_answer, query.kind.example)
    if probe := installed.find("probes", name):
        from lama_core.cli.results import print_runs, runs_json

        return commands.make(probe, print_runs, probe.example, runs_json)
    raise AttributeError(f"no plug-in has the command {name!r}")


def write_skeleton(name: str, folder: Path) -> Path:
    """Copy the example of the documentation to a new folder, under the name of the new plug-in.

    Raises:
        UserError: If the name can't be a Python package's, or the folder exists.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UserError(
            f"{name[:60]!r} can't be a plug-in's name: use a-z, 0-9 and _, as in `mine`."
        )
    folder = user_path(folder)
    if os.path.lexists(folder):
        raise UserError(f"{folder} exists already. Choose another folder with --out.")
    with work_folder(folder.absolute().parent) as work:
        for file in sorted(path for path in EXAMPLE.rglob("[!.]*") if path.suffix in SOURCES):
            place = work / "new" / str(file.relative_to(EXAMPLE)).replace("example", name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(NAMED.sub(name, file.read_text(encoding="utf-8")), encoding="utf-8")
        (work / "new").rename(folder)
    return folder


@plugins.command(help_epilogue="Example: lama-explorer plugins new mine")
def new(
    name: Annotated[str, Parameter(help="Name of the plug-in, such as mine.")],
    /,
    *,
    out: Annotated[
        Path | None, Parameter(help="Folder to write to. Default: lama-NAME, here.")
    ] = None,
) -> None:
    """Write a plug-in with a row of each sort, and tests that pass: a place to start."""
    folder = write_skeleton(name, out or Path(f"lama-{name}"))
    output.print_line(
        f"Wrote {folder}. Install it with `pip install -e {folder}`, then run its tests with "
        f"`python -m pytest {folder}`."
    )
