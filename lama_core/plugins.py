"""Plug-ins: packages that add rows to the tables of the library and of the app.

A package offers a plug-in with an entry point of the group `lama_explorer.plugins`, whose object is
a `Plugin`. A row is a text, `module:object`, so a plug-in costs nothing until a row of it is used.
The rows of the library always come first: plug-ins are looked up only for a name that the library
doesn't know, and for lists of everything. See docs/plugins.md.
"""

import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from operator import attrgetter
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
    "papers": ("reproduce",),
    "tool_results": ("import_run", "export_run"),
}
Rows = Mapping[str, str]  # name -> `module:object`
log = logging.getLogger("lama_explorer")
_looking = threading.local()  # `now`: whether this thread imports plug-ins


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """The rows that a package adds. Each row is a name and the text `module:object`.

    Attributes:
        name: Its name, in messages.
        about: What it adds, in one sentence.
        queries: Python function -> the `QueryFunction` of a kind of query.
        views: Python function -> the `ViewFunction` of a view of finished runs; its chart, if it
            has one, is a chart of lessons, too.
        probes: Python function -> the `RunFunction` that makes runs.
        kinds: Kind of run in `run.json` -> its `ProbeKind`.
        imports: Python function -> the `Function` that imports runs, which store its request.
        functions: Python function -> the object itself.
        commands: Command, or `runs` and a command of this group -> the `cyclopts.App`; queries,
            views and probes have commands already, named as their functions, with - for _.
        backends: `model_type` in a model's `config.json` -> the `Backend` that opens the folder.
        sources: Prefix of models' names, such as `ollama` for `ollama:NAME` -> the `AddedSource`.
        releases: Name of an old format of weights -> the `Release` that `models convert` reads.
        formats: Name of a format of data -> the `Format`.
        result_formats: Name of a format of other tools' results -> the `ResultsFormat`.
        executors: Value of `--executor` -> the function that makes the executor.
        stores: Scheme of the addresses of `--parts-at`, or `*` for all others -> a function of an
            address that returns an object with the methods of `runs.parts.Folder`.
        papers: Paper -> the `Paper` for `reproduce` (`plugins/papers`).
        tabs: Title of a tab of the page Ask -> the `Tab` that draws a kind of query.
        lessons: Name of a lesson -> the `Path` of its file, which has this name.
        charts: Name of a chart of the tab More -> the `MenuChart`.
        file_forms: What files have -> the `FileForm` of the tab Import that takes them.
        pages: Path of a page's URL -> the function that draws the page, without arguments.
        help: Command -> what `--help` says of it, where `about` says less.
    """

    name: str
    about: str = ""
    queries: Rows = field(default_factory=dict)
    views: Rows = field(default_factory=dict)
    probes: Rows = field(default_factory=dict)
    kinds: Rows = field(default_factory=dict)
    imports: Rows = field(default_factory=dict)
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
    lessons: Rows = field(default_factory=dict)
    charts: Rows = field(default_factory=dict)
    file_forms: Rows = field(default_factory=dict)
    pages: Rows = field(default_factory=dict)
    help: Rows = field(default_factory=dict)

    def rows(self) -> dict[str, Rows]:
        """Return table -> the plug-in's rows in it, without empty tables."""
        tables = {name: getattr(self, name) for name in TABLES}
        return {name: rows for name, rows in tables.items() if rows}


# Table -> the class of its rows' objects.
TABLES = {
    "queries": "lama_core.queries.kind:QueryFunction",
    "views": "lama_core.views.view:ViewFunction",
    "probes": "lama_core.probes.making_runs:RunFunction",
    "kinds": "lama_core.probes.kinds:ProbeKind",
    "imports": "lama_core.requests:Function",
    "functions": "builtins:object",
    "commands": "cyclopts:App",
    "backends": "lama_core.models.registry:Backend",
    "sources": "lama_core.models.sources.catalog:AddedSource",
    "releases": "lama_core.models.conversion.convert:Release",
    "formats": "lama_core.datasets.formats:Format",
    "result_formats": "lama_core.runs.importers.results:ResultsFormat",
    "executors": "collections.abc:Callable",
    "stores": "collections.abc:Callable",
    "papers": "builtins:object",
    "lessons": "pathlib:Path",
    "tabs": "pages.ui.queries.tab:Tab",
    "charts": "pages.ui.results.more:MenuChart",
    "file_forms": "pages.ui.data.file_forms:FileForm",
    "pages": "collections.abc:Callable",
}
# Tables whose rows' objects know their names.
NAMED = ("queries", "views", "probes", "kinds", "imports", "formats", "result_formats", "papers")
FUNCTIONS = ("queries", "views", "probes", "imports", "functions")  # tables of names in `lama_core`
WORDS = r"\S(.*\S)?"
TARGET = r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*"
# How the names in a table are written; those of other tables are any words.
NAMES = {
    **dict.fromkeys(FUNCTIONS, r"[A-Za-z][A-Za-z0-9_]*"),
    "commands": r"(runs )?[a-z][a-z0-9-]*",
    "sources": r"[a-z][a-z0-9-]+",
    "pages": r"[a-z0-9][a-z0-9_-]*",
}


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """An installed plug-in. package, version: of its distribution."""

    plugin: Plugin
    package: str
    version: str

    @property
    def modules(self) -> frozenset[str]:
        """The names of the package's top-level modules."""
        targets = (target for rows in self.plugin.rows().values() for target in rows.values())
        tops = {target.partition(":")[0].partition(".")[0] for target in targets}
        return frozenset(tops - {"lama_core", "pages"} - sys.stdlib_module_names)


class PluginError(UserError):
    """A plug-in can't be used; the message names it and its package."""


@cache
def find_plugins() -> tuple[tuple[InstalledPlugin, ...], tuple[str, ...]]:
    """Return the installed plug-ins, the project's first, and a sentence for each mistake.

    Raises:
        RuntimeError: If the module of a plug-in asks for plug-ins while it is imported here.
    """
    if getattr(_looking, "now", False):
        raise RuntimeError("it looks for plug-ins while it is imported")
    _looking.now = True
    try:
        return _find_plugins()
    finally:
        _looking.now = False


def _find_plugins() -> tuple[tuple[InstalledPlugin, ...], tuple[str, ...]]:
    from importlib.metadata import distributions  # slow to import

    found: dict[str, InstalledPlugin] = {}
    entries: dict[tuple[str, str], tuple[str, str]] = {}  # name, package -> value, version
    owners: dict[tuple[str, str], str] = {}  # table, row -> plug-in
    problems = []
    for place in distributions():
        try:
            for entry in place.entry_points.select(group=GROUP):
                key = entry.name, place.name or entry.value
                entries.setdefault(key, (entry.value, place.version or ""))  # first on the path
        except Exception as error:  # noqa: BLE001 - a damaged package
            problems.append(_fault("", f"{place.locate_file('')}", error, "can't be read"))
    for (name, package), (value, version) in sorted(
        entries.items(), key=lambda entry: (entry[0][1] != PROJECT, entry)
    ):
        try:
            with _foreign(name, package):
                target = re.sub(r"\s|\[.*\]$", "", value)  # without extras
                _check(target, TARGET, "is not of the form module:object")
                plugin = _import(target)
                if not isinstance(plugin, Plugin):
                    raise TypeError(f"{value} is not a Plugin")
                _check_rows(plugin)
        except PluginError as error:
            problems.append(str(error))
            continue
        first = found.setdefault(plugin.name, InstalledPlugin(plugin, package, version))
        if first.plugin is not plugin:
            problems.append(
                f"The plug-in {plugin.name} of {package} isn't used: {first.package} has the same "
                "name."
            )
    for one in found:
        for table, rows in found[one].plugin.rows().items():
            problems += [
                f"The row {row!r} of {table} of the plug-in {one} isn't used: {owner} has it, too."
                for row in rows
                if (owner := owners.setdefault((table, row), one)) != one
            ]
    return tuple(found.values()), tuple(problems)


def _usable() -> tuple[InstalledPlugin, ...]:
    """Return the installed plug-ins; log why others can't be used."""
    found, problems = find_plugins()
    for problem in problems:
        _warn(problem)
    return found


@cache
def _warn(text: str) -> None:
    """Log a sentence once."""
    log.warning(text)


def _check_rows(plugin: Plugin) -> None:
    _check(plugin.name, WORDS, "can't be a plug-in's name")
    for text in plugin.help.values():
        _check(text, WORDS, "can't be a sentence of help")
    for table in TABLES:
        for name, target in getattr(plugin, table).items():
            _check(name, NAMES.get(table, WORDS), f"can't be a name in {table}")
            _check(target, TARGET, "is not of the form module:object")


def _check(text: object, pattern: str, fault: str) -> None:
    if not isinstance(text, str) or not re.fullmatch(pattern, text):
        raise ValueError(f"{text!r} {fault}")


def _import(target: str) -> Any:
    module, _, name = target.partition(":")
    return attrgetter(name)(import_module(module))


@contextmanager
def _foreign(name: str, package: str, what: str = "can't be used") -> Iterator[None]:
    """Raise PluginError for any mistake of a plug-in's code in the block; it prints to stderr."""
    # Only one thread may change where all print.
    is_main = threading.current_thread() is threading.main_thread()
    try:
        with redirect_stdout(sys.stderr) if is_main else nullcontext():
            yield
    except BaseException as error:
        # Rust's panics aren't Exceptions; what stops a script of Streamlit isn't one, either.
        if isinstance(error, KeyboardInterrupt) or type(error).__module__.startswith("streamlit"):
            raise
        raise PluginError(_fault(name, package, error, what)) from error


def _fault(name: str, package: str, error: BaseException, what: str) -> str:
    first = re.sub(r"[^\x20-\x7e\xa0-\U0010ffff]", " ", str(error).strip().split("\n")[0][:300])
    reason = f"{type(error).__name__}: {first}" if first else type(error).__name__
    whose = f"The plug-in {name} of the package" if name else "A package in"
    return f"{whose} {package} {what} ({reason.rstrip('.')})."


def find(table: str, name: str) -> Any:
    """Return a plug-in's row of a table; None if no plug-in has it.

    Args:
        table: A field of `Plugin`.
        name: The row's name.

    Raises:
        PluginError: If the row's object can't be imported, or isn't what the table holds.
    """
    for one in _usable():
        if target := getattr(one.plugin, table).get(name):
            with _foreign(one.plugin.name, one.package):
                found = _import(target)
                if not isinstance(found, _import(TABLES[table])):
                    raise TypeError(f"{target} is not a {TABLES[table].partition(':')[2]}")
                if table in NAMED:
                    own = getattr(found, "name", "") or found.request.python
                    if own != name:
                        raise ValueError(f"the row {name!r} of {table} is called {own!r}")
                return found
    return None


def names(table: str) -> list[str]:
    """Return the names of all plug-ins' rows of a table."""
    return [*dict.fromkeys(name for one in _usable() for name in getattr(one.plugin, table))]


@cache
def rows(table: str) -> dict[str, Any]:
    """Return all plug-ins' rows of a table by name, without those that can't be imported."""
    found = {}
    for name in names(table):
        try:
            found[name] = find(table, name)
        except PluginError as error:
            _warn(str(error))
    return found


def first(table: str, is_wanted: Callable[[Any], object]) -> Any:
    """Return the first of the plug-ins' rows that is wanted; None if none is.

    A mistake in a plug-in's function is logged and means no: it mustn't hide the other rows.
    """
    for name, row in rows(table).items():
        one = next(one for one in _usable() if name in getattr(one.plugin, table))
        try:
            with _foreign(one.plugin.name, one.package, "failed"):
                if is_wanted(row):
                    return row
        except PluginError as error:
            _warn(str(error))
    return None


def missing(name: str) -> str:
    """Return a sentence if the project's plug-in that has a row isn't installed; else "".

    name: of the row.
    """
    found = [one.plugin.name for one in _usable()]
    for plugin, own in OWN.items():
        if name in own and plugin not in found:
            return (
                f"{name} needs the plug-in {plugin}, which is part of {PROJECT} but not installed "
                f"here: install {PROJECT} again."
            )
    return ""


def find_function(name: str) -> Any:
    """Return the Python function that a plug-in adds to `lama_core`; None if there is none.

    Raises:
        AttributeError: If it can't be imported.
    """
    try:
        found = (find(table, name) for table in FUNCTIONS)
        return next((one for one in found if one is not None), None)
    except PluginError as error:
        raise AttributeError(str(error)) from error


def package_of(module: str) -> str:
    """Return the package of the plug-in with a module; "" if it comes with the project."""
    top = module.partition(".")[0]
    if top in ("lama_core", "pages"):
        return ""
    owners = (one.package for one in _usable() if top in one.modules)
    return next((package for package in owners if package != PROJECT), "")


def blame(error: BaseException) -> str:
    """Return a sentence that says whose mistake an exception is; "" if no plug-in's code ran.

    It is that of the last plug-in in whose code, or with whose objects at hand, it was raised.
    """
    owner, at = None, error.__traceback__
    while at is not None:
        kinds = {type(value).__module__ for value in at.tb_frame.f_locals.values()}
        modules = kinds | {at.tb_frame.f_globals.get("__name__", "")}
        tops = {str(module).partition(".")[0] for module in modules}
        owner = next((one for one in _usable() if tops & one.modules), owner)
        at = at.tb_next
    return _fault(owner.plugin.name, owner.package, error, "failed") if owner else ""


def check_returned(by: Callable[..., object], found: object, is_right: bool) -> None:
    """Raise PluginError if a plug-in's function returned what isn't right. by: the function."""
    top = str(getattr(by, "__module__", "")).partition(".")[0]
    for one in () if is_right else _usable():
        if top in one.modules:
            error = TypeError(f"{by.__qualname__} returned {type(found).__name__}")
            raise PluginError(_fault(one.plugin.name, one.package, error, "failed"))
