"""Plug-ins: packages that add rows to the tables of the library and of the app.

A package offers a plug-in with an entry point of the group `lama_explorer.plugins`, whose object is
a `Plugin`. A row is a text, `module:object`, so a plug-in costs nothing until a row of it is used.
The rows of the library always come first: plug-ins are looked up only for a name that the library
doesn't know, and for lists of everything. See docs/plugins.md.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from lama_core.errors import UserError

GROUP = "lama_explorer.plugins"
PROJECT = "lama-explorer"  # the distribution whose plug-ins are always installed
# The rows of the project's own plug-ins, to say which one is missing.
OWN = {
    "extraction": ("extract", "read"),
    "older_systems": (
        *("elmo", "fconv", "transformer-xl"),
        *("ELMo", "ERNIE (Tsinghua)", "fairseq's fconv_lm", "Transformer-XL"),
    ),
}
Rows = Mapping[str, str]  # name -> `module:object`
log = logging.getLogger("lama_explorer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """What a package adds. Each row is a name and the text `module:object`.

    Attributes:
        name: Its name, in messages and in `needs`.
        about: What it adds, in one sentence.
        queries: Python function -> the `QueryFunction` of a kind of query.
        views: Python function -> the `ViewFunction` of a view of finished runs; its chart, if it
            has one, is a chart of lessons, too.
        probes: Python function -> the `RunFunction` that makes runs.
        kinds: Kind of run in `run.json` -> its `ProbeKind`.
        functions: Python function -> the object itself.
        commands: Command -> the `cyclopts.App`; queries, views and probes have commands already,
            named as their functions, with - for _.
        backends: `model_type` in a model's `config.json` -> the `Backend` that opens the folder.
        sources: Prefix of models' names, such as `ollama` for `ollama:NAME` -> the `AddedSource`.
        releases: Name of an old format of weights -> the `Release` that `models convert` reads.
        formats: Name of a format of data -> the `Format`.
        result_formats: Name of a format of other tools' results -> the `ResultsFormat`.
        executors: Name of a value of `--executor` -> the function that makes the executor.
        stores: Scheme of the addresses of `--parts-at`, or `*` for all others -> the `PartsPlace`.
        papers: Paper -> the `Paper` for `reproduce`.
        tabs: Title of a tab of the page Ask -> the `Tab` that draws a kind of query.
        charts: Name of a chart of the tab More -> the `Chart`.
        pages: Path of a page's URL -> the function that draws the page, without arguments.
        help: Command -> what `--help` says of it, where `about` says less.
        needs: Names of the plug-ins that it imports.
    """

    name: str
    about: str = ""
    queries: Rows = field(default_factory=dict)
    views: Rows = field(default_factory=dict)
    probes: Rows = field(default_factory=dict)
    kinds: Rows = field(default_factory=dict)
    functions: Rows = field(default_factory=dict)
    commands: Rows = field(default_factory=dict)
    backends: Rows = field(default_factory=dict)
    sources: Rows = field(default_factory=dict)
    releases: Rows = field(default_factory=dict)
    formats: Rows = field(default_factory=dict)
    result_formats: Rows = field(default_factory=dict)
    executors: Rows = field(default_factory=dict)
    stores: Rows = field(default_factory=dict)
    papers: Rows = field(default_factory=dict)
    tabs: Rows = field(default_factory=dict)
    charts: Rows = field(default_factory=dict)
    pages: Rows = field(default_factory=dict)
    help: Rows = field(default_factory=dict)
    needs: tuple[str, ...] = ()

    def rows(self) -> dict[str, Rows]:
        """Return table -> the plug-in's rows in it, without empty tables."""
        tables = {name: getattr(self, name) for name in TABLES}
        return {name: rows for name, rows in tables.items() if rows}


TABLES = tuple(
    name for name in Plugin.__dataclass_fields__ if name not in ("name", "about", "help", "needs")
)
FUNCTIONS = ("queries", "views", "probes", "functions")  # tables of names in `lama_core`


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """An installed plug-in. package, version: of its distribution."""

    plugin: Plugin
    package: str
    version: str

    @property
    def modules(self) -> frozenset[str]:
        """The names of its top-level packages."""
        targets = (target for rows in self.plugin.rows().values() for target in rows.values())
        return frozenset(target.partition(":")[0].partition(".")[0] for target in targets)


class PluginError(UserError):
    """A plug-in can't be used; the message names it and its package."""


@cache
def find_plugins() -> tuple[tuple[InstalledPlugin, ...], tuple[str, ...]]:
    """Return the installed plug-ins, by name, and a sentence for each that can't be used."""
    from importlib.metadata import entry_points  # slow to import

    found: dict[str, InstalledPlugin] = {}
    problems = []
    for entry in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        package = entry.dist.name if entry.dist else entry.value
        try:
            plugin = entry.load()
            if not isinstance(plugin, Plugin):
                raise TypeError(f"{entry.value} is not a Plugin")
            bad = [text for rows in plugin.rows().values() for text in rows.values()]
            if wrong := [text for text in bad if not _is_target(text)]:
                raise ValueError(f"{wrong[0]!r} is not of the form module:object")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - somebody else's code
            problems.append(_fault(entry.name, package, error))
            continue
        if plugin.name in found:
            other = found[plugin.name].package
            problems.append(
                f"The plug-in {plugin.name} of {package} isn't used: {other} has the same name."
            )
            continue
        found[plugin.name] = InstalledPlugin(
            plugin, package, entry.dist.version if entry.dist else ""
        )
    for one in [*found.values()]:
        if missing := [name for name in one.plugin.needs if name not in found]:
            del found[one.plugin.name]
            problems.append(
                f"The plug-in {one.plugin.name} isn't used: it needs the plug-in {missing[0]}."
            )
    for problem in problems:
        log.warning(problem)
    return tuple(found.values()), tuple(problems)


def _is_target(text: object) -> bool:
    module, _, name = text.partition(":") if isinstance(text, str) else ("", "", "")
    return bool(name) and all(part.isidentifier() for part in f"{module}.{name}".split("."))


def _fault(name: str, package: str, error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return f"The plug-in {name} of the package {package} can't be used ({reason.rstrip('.')})."


@cache
def find(table: str, name: str) -> Any:
    """Return a plug-in's row of a table; None if no plug-in has it.

    Args:
        table: A field of `Plugin`.
        name: The row's name.

    Raises:
        PluginError: If the row's object can't be imported.
    """
    for one in find_plugins()[0]:
        target = getattr(one.plugin, table).get(name)
        if target is not None:
            module, _, attribute = target.partition(":")
            try:
                return getattr(import_module(module), attribute)
            except (Exception, SystemExit) as error:
                raise PluginError(_fault(one.plugin.name, one.package, error)) from error
    return None


def names(table: str) -> list[str]:
    """Return the names of all plug-ins' rows of a table."""
    return [
        *dict.fromkeys(name for one in find_plugins()[0] for name in getattr(one.plugin, table))
    ]


@cache
def rows(table: str) -> dict[str, Any]:
    """Return all plug-ins' rows of a table by name, without those that can't be imported."""
    found = {}
    for name in names(table):
        try:
            found[name] = find(table, name)
        except PluginError as error:
            log.warning(str(error))
    return found


def missing(name: str) -> str:
    """Return a sentence if the project's plug-in that has a row isn't installed; else "".

    name: of the row.
    """
    found = [one.plugin.name for one in find_plugins()[0]]
    for plugin, own in OWN.items():
        if name in own and plugin not in found:
            return (
                f"{name} needs the plug-in {plugin}, which is part of {PROJECT} but not installed "
                f"here: install {PROJECT} again."
            )
    return ""


def find_function(name: str) -> Any:
    """Return the Python function that a plug-in adds to `lama_core`; None if there is none."""
    for table in FUNCTIONS:
        found = find(table, name)
        if found is not None:
            return found
    return None


def package_of(module: str) -> str:
    """Return the package of the plug-in with a module; "" if it comes with the project."""
    top = module.partition(".")[0]
    if top in ("lama_core", "pages"):
        return ""
    owners = (one.package for one in find_plugins()[0] if top in one.modules)
    return next((package for package in owners if package != PROJECT), "")


def owner_of(error: BaseException) -> InstalledPlugin | None:
    """Return the plug-in in whose code an exception was raised, or that called what raised it."""
    owner, at = None, error.__traceback__
    while at is not None:
        top = str(at.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        owner = next((one for one in find_plugins()[0] if top in one.modules), owner)
        at = at.tb_next
    return owner


def blame(error: Exception) -> str:
    """Return a sentence that says whose mistake an exception is; "" if no plug-in's code ran."""
    owner = owner_of(error)
    if owner is None:
        return ""
    return _fault(owner.plugin.name, owner.package, error).replace("can't be used", "failed")
