"""Requests: the fields of each command and Python function, defined once.

A request is a frozen dataclass. Each field declares its type, default and help text, bounds and
option name, for example

    top_k: Annotated[int, option("Number of predictions to show.", ge=1, le=100)] = 5

This module and `cli.commands` generate everything else: the command-line option, the signature and
docstring of the Python function (`Function`), the JSON record of pages and files (`record`,
`from_record`), and the exported command and Python call (`command_line`, `python_call`). Rules that
involve several fields are in the request's method `check`.
"""

import dataclasses
import inspect
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from lama_core.errors import UserError, choose, did_you_mean
from lama_core.files import check_path
from lama_core.progress import OnNote, OnProgress, ignore, log_note, reporting

SURROGATE = re.compile("[\ud800-\udfff]")  # half a character: valid in JSON, invalid in UTF-8
PROGRAM = "lama-explorer"
LONGEST = 60  # characters of an invalid value that an error shows
CALLBACKS = ("on_progress", "on_note")  # of every request

SomeRequest = TypeVar("SomeRequest", bound="Request")
Answer = TypeVar("Answer")
Returned = TypeVar("Returned")
P = ParamSpec("P")


def option(help_text: str, *, name: str = "", selects: bool = False, **bounds: Any) -> msgspec.Meta:
    """Declare a field as a command-line option.

    Args:
        help_text: One sentence for `--help`, docstrings and forms.
        name: Name of the option, such as `--model` for the field `models`. Default: the field's.
        selects: Without it, everything is selected; so in Python, an empty list is refused.
        **bounds: `ge`, `le`, `min_length` or `max_length` of `msgspec.Meta`.
    """
    extra = {"option": name, "selects": selects}
    return msgspec.Meta(description=help_text, extra=extra, **bounds)


def argument(help_text: str, *, takes_dash: bool = False, selects: bool = False) -> msgspec.Meta:
    """Declare a field as a positional argument of the command, with one or several values.

    Args:
        help_text: One sentence for `--help` and docstrings.
        takes_dash: A table's file; accept `-` (standard input), and in Python a DataFrame.
            Otherwise words that begin with `-` are options.
        selects: As of `option`.
    """
    extra = {"argument": True, "takes_dash": takes_dash, "selects": selects}
    return msgspec.Meta(description=help_text, extra=extra)


@dataclasses.dataclass(frozen=True, slots=True)
class RequestField:
    """One declared field of a request.

    Attributes:
        name: Its name in Python.
        option: Name on the command line, such as `--top-k`; for an argument, the field's name.
        help_text: One sentence for users.
        kind: The type without its annotations.
        checked: The type with its bounds, without None.
        default: The default; `dataclasses.MISSING` if the field is required.
        always: Records and exports always include the value, because the default depends on the
            machine.
        takes_dash: The argument may begin with `-`.
        is_argument: It is an argument of the command, not an option.
        is_positional: The Python function takes it by position.
        selects: Without it, everything is selected.
    """

    name: str
    option: str
    help_text: str
    kind: Any
    checked: Any
    default: Any
    always: bool
    is_argument: bool
    takes_dash: bool
    is_positional: bool
    selects: bool

    @property
    def is_several(self) -> bool:
        """Whether it has several values: a repeatable option, or all remaining arguments."""
        return get_origin(self.kind) is Sequence

    @property
    def is_path(self) -> bool:
        """Whether its value is a path."""
        return _without_none(self.kind) is Path

    @property
    def label(self) -> str:
        """The field's name in error messages."""
        return self.option.removeprefix("--").replace("-", " ")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """The base class of all requests.

    Attributes:
        command: The words of its command, such as ("analogy", "solve").
        python: The name of its function in `lama_core`.
        on_progress: Called with a `Progress` for each step.
        on_note: Called with each message for the user, such as a fallback.
    """

    command: ClassVar[tuple[str, ...]] = ()
    python: ClassVar[str] = ""

    on_progress: OnProgress = dataclasses.field(default=ignore, compare=False, repr=False)
    on_note: OnNote = dataclasses.field(default=log_note, compare=False, repr=False)

    def __init_subclass__(cls, *, command: str = "", python: str = "") -> None:
        """Set `command` and `python`; a subclass that names neither has those of its base.

        Args:
            command: The words of the command, separated by spaces.
            python: The name of the Python function.
        """
        if python:
            cls.command, cls.python = tuple(command.split()), python

    def __post_init__(self) -> None:
        """Convert what notebooks have to plain values: see `_converted`."""
        for choice in request_fields(type(self)):
            object.__setattr__(self, choice.name, _converted(choice, getattr(self, choice.name)))

    def check(self) -> None:
        """Check every value against its declaration.

        Raises:
            UserError: For the first invalid value, which it names.
        """
        for choice in request_fields(type(self)):
            _check(choice, getattr(self, choice.name))


# What an error calls the types of msgspec.
_TYPES = {
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "None",
}


_CHOICES: dict[type, tuple[RequestField, ...]] = {}


def request_fields(kind: type[Request]) -> tuple[RequestField, ...]:
    """Return the declared fields of a request class, in the order of its constructor."""
    if kind not in _CHOICES:
        hints = get_type_hints(kind, include_extras=True)
        _CHOICES[kind] = tuple(
            _field(field, hints[field.name])
            for field in dataclasses.fields(kind)
            if any(
                type(one) is msgspec.Meta for one in getattr(hints[field.name], "__metadata__", ())
            )
        )
    return _CHOICES[kind]


def _field(field: "dataclasses.Field[Any]", hint: Any) -> RequestField:
    meta = next(one for one in hint.__metadata__ if type(one) is msgspec.Meta)
    extra = meta.extra or {}
    is_argument = bool(extra.get("argument"))
    declared = get_args(hint)[0]
    has_factory = field.default_factory is not dataclasses.MISSING
    return RequestField(
        name=field.name,
        option=field.name
        if is_argument
        else extra.get("option") or "--" + field.name.replace("_", "-"),
        help_text=meta.description or "",
        kind=declared,
        checked=Annotated[_without_none(declared), meta],
        default=cast(Any, field.default_factory)() if has_factory else field.default,
        always=has_factory,
        is_argument=is_argument,
        takes_dash=bool(extra.get("takes_dash")),
        is_positional=is_argument and not field.kw_only,
        selects=bool(extra.get("selects")),
    )


def _without_none(kind: Any) -> Any:
    """Return the type without `| None`: bounds can't be checked on a union with None."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    return Union[tuple(item for item in get_args(kind) if item is not type(None))]  # noqa: UP007


def _converted(choice: RequestField, value: Any) -> Any:
    """Convert a value to the field's plain type, without checking it.

    Several values become a tuple (a string or path is one value, None the default); numpy's numbers
    become Python's; a text and a Path become what the field has. A Series or array is a list; of a
    DataFrame, a list is the column with the field's name, or the only column. Where a table's file
    is meant, a Series or DataFrame is saved to one that lasts as long as this process.
    """
    if value is None and choice.is_several and choice.default is not dataclasses.MISSING:
        return choice.default
    value = _from_table(choice, value)
    value = _scalar(value)
    if choice.is_several and isinstance(value, str):
        return (value,)
    if choice.is_several and isinstance(value, Iterable) and not isinstance(value, Mapping):
        return tuple(map(_scalar, value))
    return as_path(value) if isinstance(value, str) and choice.is_path else value


def _scalar(value: Any) -> Any:
    """Return a numpy number as Python's, and a path as text."""
    numpy = sys.modules.get("numpy")  # slow to import; without it, no value is numpy's
    if numpy is not None and isinstance(value, numpy.generic):
        value = value.item()
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _from_table(choice: RequestField, value: Any) -> Any:
    """Return a Series, DataFrame or array as the list or file that the field has."""
    pandas, numpy = sys.modules.get("pandas"), sys.modules.get("numpy")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        if choice.takes_dash:
            return _save_table(value)
        return _column(choice, value).tolist() if choice.is_several else value
    is_column = pandas is not None and isinstance(value, pandas.Series | pandas.Index)
    if pandas is not None and is_column and choice.takes_dash:
        return _save_table(pandas.DataFrame({"text": value}))
    is_array = is_column or (numpy is not None and isinstance(value, numpy.ndarray))
    return value.tolist() if is_array and choice.is_several else value


def _column(choice: RequestField, table: Any) -> Any:
    """Return the column of a DataFrame that a field means; raise UserError if it isn't clear."""
    names = [name for name in (choice.name, choice.name.removesuffix("s")) if name in table.columns]
    if names or len(table.columns) == 1:
        return table[names[0] if names else table.columns[0]]
    columns = ", ".join(map(repr, table.columns))[:LONGEST]
    raise UserError(
        f"{choice.label}: the table has the columns {columns}. Give one of them, such as "
        f"table[{table.columns[0]!r}]."
        if len(table.columns)
        else f"{choice.label}: the table has no columns."
    )


@cache
def _tables() -> "TemporaryDirectory[str]":
    return TemporaryDirectory(prefix="lama-tables-")


def _save_table(table: Any) -> str:
    """Save a DataFrame as CSV, named by its content, and return the file's path."""
    text = table.to_csv(index=False)
    file = Path(_tables().name, f"{sha256(text.encode()).hexdigest()[:16]}.csv")
    file.write_text(text, encoding="utf-8", newline="")
    return str(file)


def as_path(value: str | Path) -> Path:
    """Return the value of a path field. Raises UserError as `check_path`."""
    check_path(value)
    return Path(value)


def _check(choice: RequestField, value: Any) -> None:
    """Raise UserError if a value has the wrong type, is out of bounds or is an unknown name."""
    if value is None and type(None) in get_args(choice.kind):
        return
    names = literal_values(choice.kind)
    if names and isinstance(value, str):
        choose(value, names, choice.label)
        return
    if any(isinstance(item, str) and SURROGATE.search(item) for item in _each(value)):
        raise UserError(f"{choice.label}: {str(value)[:LONGEST]!r} is not valid text.")
    try:
        msgspec.convert(value, choice.checked, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        reason = str(error).split(" - at ")[0].lower()
        reason = re.sub("`(.*?)`", lambda kind: _TYPES.get(kind[1], kind[1]), reason)
        shown = ascii(value) if isinstance(value, float | int) else repr(str(value)[:LONGEST])
        raise UserError(f"{choice.label} can't be {shown}: {reason}.") from error


def _each(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def literal_values(kind: Any) -> tuple[str, ...]:
    """Return the values of a type `Literal[...]`, with or without `| None`; () for other types."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        return next(filter(None, map(literal_values, get_args(kind))), ())
    return ()


def _changed(request: Request) -> Iterator[tuple[RequestField, Any]]:
    """Yield the fields that define the request: arguments, and options that aren't the default."""
    for choice in request_fields(type(request)):
        value = getattr(request, choice.name)
        if choice.is_argument or choice.always or value != choice.default:
            yield choice, value


def arguments(request: Request, *more: str) -> list[str]:
    """Return the words after `lama-explorer` that make the same request; defaults are omitted.

    *more: Further options, such as `--json`.
    """
    words: list[str] = []
    names: list[str] = []
    for choice, value in _changed(request):
        if choice.is_argument:
            names += map(str, _each(value))
        elif isinstance(value, bool):
            words.append(choice.option if value else choice.option.replace("--", "--no-", 1))
        else:
            # `--gold=-x`: a value that begins with a hyphen would be taken for an option.
            for text in map(str, _each(value)):
                words += [f"{choice.option}={text}"] if text[:1] == "-" else [choice.option, text]
    # All words after `--` are arguments.
    separator = ["--"] if any(name.startswith("-") for name in names) else []
    return [*request.command, *words, *more, *separator, *names]


def command_line(request: Request, *more: str) -> str:
    """Return the whole command, quoted for a shell.

    *more: Further options, such as `--json`.
    """
    return shlex.join([PROGRAM, *arguments(request, *more)])


def python_call(request: Request) -> str:
    """Return the call of the Python function that makes the same request."""
    given = sorted(_changed(request), key=lambda one: not one[0].is_positional)
    words = [
        f"{'' if choice.is_positional else f'{choice.name}='}{_plain(value)!r}"
        for choice, value in given
    ]
    return f"lama.{request.python}({', '.join(words)})"


def _plain(value: Any) -> Any:
    """Return a value for JSON: a list for several values, text for a path."""
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def field_values(request: Request) -> dict[str, Any]:
    """Return every field and its value."""
    return {choice.name: getattr(request, choice.name) for choice in request_fields(type(request))}


def record(request: Request) -> dict[str, Any]:
    """Return the fields that differ from their default or are `always` recorded, as JSON values."""
    return {
        choice.name: _plain(value)
        for choice, value in _changed(request)
        if choice.always or value != choice.default
    }


@dataclasses.dataclass(frozen=True, slots=True)
class StoredRequest:
    """A request as it is stored in files.

    Attributes:
        function: Name of its function in `lama_core`, such as `probe`.
        fields: Its fields, as `record` returns them.
        folder: The working folder from which relative paths in `fields` start.
        package: The package of the plug-in with this function; empty if it comes with the project.
    """

    function: str
    fields: dict[str, Any]
    folder: str = ""
    package: str = ""


def from_record(kind: type[SomeRequest], given: object) -> SomeRequest:
    """Return the request that a record describes.

    Args:
        kind: The class of the request.
        given: The fields as returned by `record`; untrusted, from a file or URL.

    Raises:
        UserError: If the record is invalid; names the first invalid field.
    """
    if not isinstance(given, dict):
        raise UserError("A query must be a JSON object.")
    known = {choice.name: choice for choice in request_fields(kind)}
    if unknown := [name for name in given if name not in known]:
        raise UserError(f"Unknown field {str(unknown[0])[:LONGEST]!r}.")
    for name, choice in known.items():
        if name in given:
            value = given[name]
            if choice.is_several and not isinstance(value, list):
                raise UserError(f"{name} must be a list.")
            try:
                _check(choice, _converted(choice, value))
            except UserError as error:
                raise UserError(f"{name}: {error}") from error
        elif choice.default is dataclasses.MISSING:
            raise UserError(f"{name} is missing.")
    return kind(**given)


class Function(Generic[P, SomeRequest, Answer, Returned]):
    """A function of the Python API, made from a request class and an implementation.

    Call it with the fields of the request to get the result for notebooks, mostly a DataFrame.
    Commands and pages call `answer` with a request to get the full result.
    """

    def __init__(
        self,
        request: Callable[P, SomeRequest],
        answer: Callable[[SomeRequest], Answer],
        shown: Callable[[Answer], Returned],
        doc: str,
    ) -> None:
        self.request = cast(type[SomeRequest], request)
        self._answer = answer
        self._shown = shown
        self.__name__ = self.__qualname__ = self.request.python
        self.__doc__ = _documented(doc, self.request)
        by_name = {choice.name: choice for choice in request_fields(self.request)}
        parameters = []
        for name, parameter in inspect.signature(self.request).parameters.items():
            if choice := by_name.get(name):
                parameter = parameter.replace(annotation=choice.kind)
                if choice.always:
                    parameter = parameter.replace(default=choice.default)
            elif name not in CALLBACKS:
                continue  # set by the app only
            parameters.append(parameter)
        parameters.sort(key=lambda one: (one.kind, one.name in CALLBACKS))
        self.__signature__ = inspect.Signature(parameters)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Returned:
        """Return the result for a notebook; arguments and errors: as of `asked`."""
        return self._shown(self.answer(self.asked(*args, **kwargs)))

    def asked(self, *args: P.args, **kwargs: P.kwargs) -> SomeRequest:
        """Return the request with these fields.

        Raises:
            TypeError: If an argument is missing, unknown or given by position without being
                positional; names the function, and the most similar argument.
            UserError: If a selection is empty, such as the relations of `relations=[]`; None and
                the default `()` select everything.
        """
        try:
            given = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"lama.{self.__name__}(): {self._misuse(error, kwargs)}") from None
        for choice in request_fields(self.request):
            selected = given.arguments.get(choice.name)
            if choice.selects and selected is not None and not isinstance(selected, tuple):
                given.arguments[choice.name] = _converted(choice, selected)
                if given.arguments[choice.name] == ():
                    raise UserError(
                        f"The list of {choice.name} is empty: name at least one, or leave it out "
                        "to choose all."
                    )
        return cast(SomeRequest, cast(Any, self.request)(*given.args, **given.kwargs))

    def _misuse(self, error: TypeError, named: Iterable[str]) -> str:
        """Return what is wrong with a call, for an error message."""
        known = self.__signature__.parameters
        for name in named:
            if name not in known:
                return f"unknown argument {name!r}{did_you_mean(name, known)}"
        if "too many positional" not in str(error):
            return str(error)
        by_position = [one.name for one in known.values() if one.kind is not one.KEYWORD_ONLY]
        if not by_position:
            return "name every argument"
        return f"only {', '.join(by_position)} can be given without a name"

    def answer(self, request: SomeRequest) -> Answer:
        """Return the full result of a request.

        Raises:
            UserError: If a field is invalid, or the request can't be carried out.
        """
        request.check()
        with reporting(request.on_progress):
            return self._answer(request)


def _documented(doc: str, kind: type[Request]) -> str:
    """Return a docstring with the request's fields as `Args`, inserted before `Returns`."""
    names = {choice.option: f"`{choice.name}`" for choice in request_fields(kind)}
    lines = []
    for choice in request_fields(kind):
        text = choice.help_text.replace("; repeat for ", "; a list for ")
        text = re.sub("--[a-z][a-z-]*", lambda option: names.get(option[0], option[0]), text)
        lines.append(f"    {choice.name}: {text}")
    lines.append("    on_progress: Called with a `lama_core.progress.Progress` for each step.")
    lines.append("    on_note: Called with each message for the user, such as a fallback.")
    head, heading, rest = inspect.cleandoc(doc).partition("Returns:")
    return "\n".join([head.rstrip(), "", "Args:", *lines, "", heading + rest])
