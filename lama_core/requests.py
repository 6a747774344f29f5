"""Requests: one definition of each field, from which every form of a request is made.

A request is a frozen dataclass. A field's type, default and `option(...)` or `argument(...)`
(help text, bounds, another name) are declared once, as in

    top_k: Annotated[int, option("Number of predictions to show.", ge=1, le=100)] = 5

From them come the option of the command line (`cli.commands`), the signature and docstring of the
Python function (`Function`), the JSON record that pages and files keep (`record`, `from_record`),
and the exported command and Python call (`command_line`, `python_call`). Rules that involve several
fields are in the request's `check`.
"""

import dataclasses
import inspect
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
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

from lama_core.errors import UserError, choose
from lama_core.progress import OnNote, OnProgress, log_note, silent

SURROGATE = re.compile("[\ud800-\udfff]")  # half a character, which JSON can hold and text can't
PROGRAM = "lama-explorer"
LONGEST = 60  # characters of a refused value that an error repeats

Asked = TypeVar("Asked", bound="Request")
Answer = TypeVar("Answer")
Shown = TypeVar("Shown")
P = ParamSpec("P")


def option(help_text: str, *, name: str = "", **bounds: Any) -> msgspec.Meta:
    """Declare a field as a command-line option, named after the field unless `name` is given.

    Args:
        help_text: One sentence for `--help`, docstrings and forms.
        name: Another name of the option, such as `--model` for the field `models`.
        bounds: `ge`, `le`, `min_length`, `max_length`, as of `msgspec.Meta`.
    """
    return msgspec.Meta(description=help_text, extra={"option": name}, **bounds)


def argument(help_text: str, *, takes_dash: bool = False) -> msgspec.Meta:
    """Declare a field as a positional argument of the command, one word or several.

    takes_dash: The word may be `-`, standard input; of all others, what begins so is an option.
    """
    return msgspec.Meta(description=help_text, extra={"argument": True, "takes_dash": takes_dash})


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """One field of a request, as its declaration says.

    Attributes:
        option: Name on the command line, such as `--top-k`; of an argument the field's name.
        kind: The type without its annotations.
        checked: The type with its bounds, without None.
        default: `dataclasses.MISSING` of a field that must be given.
        takes_dash: As an argument, it may begin with `-`.
        is_positional: The Python function takes it without its name.
        always: The default depends on the machine, so records and exports always name the value.
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

    @property
    def is_several(self) -> bool:
        """Whether it holds several values: an option to repeat, or the last arguments."""
        return get_origin(self.kind) is Sequence

    @property
    def label(self) -> str:
        """The field for people, in errors."""
        return self.option.removeprefix("--").replace("-", " ")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """The base of all requests.

    Attributes:
        command: The words of its command, such as ("analogy", "solve").
        python: The name of its function in `lama_core`.
        on_progress: Called with a `Progress` for each step.
        on_note: Called with each sentence that the user should read, such as a fallback.
    """

    command: ClassVar[tuple[str, ...]] = ()
    python: ClassVar[str] = ""

    on_progress: OnProgress = dataclasses.field(default=silent, compare=False, repr=False)
    on_note: OnNote = dataclasses.field(default=log_note, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Keep several values as a tuple, and the text of a path as a path."""
        for choice in choices(type(self)):
            object.__setattr__(self, choice.name, _kept(choice, getattr(self, choice.name)))

    def check(self) -> None:
        """Raise UserError, naming the field, for a value that its declaration doesn't allow."""
        for choice in choices(type(self)):
            _check(choice, getattr(self, choice.name))


_CHOICES: dict[type, tuple[Choice, ...]] = {}


def choices(kind: type[Request]) -> tuple[Choice, ...]:
    """Return the declared fields of a request class, in the order of its constructor."""
    if kind not in _CHOICES:
        _CHOICES[kind] = tuple(_read_choices(kind))
    return _CHOICES[kind]


def _read_choices(kind: type[Request]) -> Iterator[Choice]:
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        meta = next(
            (
                one
                for one in getattr(hints[field.name], "__metadata__", ())
                if isinstance(one, msgspec.Meta)
            ),
            None,
        )
        if meta is None:
            continue
        extra = meta.extra or {}
        is_argument = bool(extra.get("argument"))
        stated = get_args(hints[field.name])[0]
        kind_alone = _without_none(stated)
        made = field.default_factory is not dataclasses.MISSING
        yield Choice(
            name=field.name,
            option=field.name
            if is_argument
            else extra.get("option") or "--" + field.name.replace("_", "-"),
            help_text=meta.description or "",
            kind=stated,
            checked=Annotated[kind_alone, meta],
            default=cast(Any, field.default_factory)() if made else field.default,
            always=made,
            is_argument=is_argument,
            takes_dash=bool(extra.get("takes_dash")),
            is_positional=is_argument and not field.kw_only,
        )


def _without_none(kind: Any) -> Any:
    """The type without `| None`: bounds are of a number or text."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    return Union[tuple(one for one in get_args(kind) if one is not type(None))]  # noqa: UP007


def _kept(choice: Choice, value: Any) -> Any:
    """A value as a request keeps it: several as a tuple (one text counts as one), paths as such."""
    if choice.is_several and isinstance(value, Iterable):
        return (value,) if isinstance(value, str) else tuple(value)
    is_path = isinstance(value, str) and _without_none(choice.kind) is Path
    return Path(value) if is_path else value


def _check(choice: Choice, value: Any) -> None:
    """Raise UserError for a value of another type, outside the bounds, or none of the names."""
    if value is None and type(None) in get_args(choice.kind):
        return
    names = literals(choice.kind)
    if names and isinstance(value, str):
        choose(value, names, choice.label)
        return
    if any(isinstance(one, str) and SURROGATE.search(one) for one in _each(value)):
        raise UserError(f"{choice.label}: {str(value)[:LONGEST]!r} is not valid text.")
    try:
        msgspec.convert(value, choice.checked, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        reason = str(error).replace("`", "").split(" - at ")[0]
        shown = ascii(value) if isinstance(value, float | int) else repr(str(value)[:LONGEST])
        raise UserError(f"{choice.label} can't be {shown}: {reason.lower()}.") from error


def _each(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def literals(kind: Any) -> tuple[str, ...]:
    """Return the names that a type allows, `Literal[...]` or such or None; () of any other."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        return next(filter(None, map(literals, get_args(kind))), ())
    return ()


def _changed(request: Request) -> Iterator[tuple[Choice, Any]]:
    """The fields to name for the same request again: arguments, and what isn't at its default."""
    for choice in choices(type(request)):
        value = getattr(request, choice.name)
        if choice.is_argument or choice.always or value != choice.default:
            yield choice, value


def arguments(request: Request, *more: str) -> list[str]:
    """Return the words after `lama-explorer` that make the same request.

    Fields at their default are left out. more: further options, such as `--json`.
    """
    words: list[str] = []
    names: list[str] = []
    for choice, value in _changed(request):
        if choice.is_argument:
            names += [str(one) for one in _each(value)]
        elif isinstance(value, bool):
            words.append(choice.option if value else choice.option.replace("--", "--no-", 1))
        else:
            # A value that looks like an option is joined to its name.
            for text in map(str, _each(value)):
                words += [f"{choice.option}={text}"] if text[:1] == "-" else [choice.option, text]
    # After `--`, nothing is an option.
    marked = ["--", *names] if any(name.startswith("-") for name in names) else names
    return [*request.command, *words, *more, *marked]


def command_line(request: Request, *more: str) -> str:
    """Return the whole command, quoted for a shell. more: further words, such as `--json`."""
    return shlex.join([PROGRAM, *arguments(request, *more)])


def python_call(request: Request) -> str:
    """Return the call of the Python function that makes the same request."""
    given: list[str] = []
    named: list[str] = []
    for choice, value in _changed(request):
        text = repr(_plain(value))
        if choice.is_positional:
            given.append(text)
        else:
            named.append(f"{choice.name}={text}")
    return f"lama.{request.python}({', '.join([*given, *named])})"


def _plain(value: Any) -> Any:
    """A value as JSON and Python's text have it: several as a list, a path as text."""
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def values(request: Request) -> dict[str, Any]:
    """Return every field and its value."""
    return {choice.name: getattr(request, choice.name) for choice in choices(type(request))}


def record(request: Request) -> dict[str, Any]:
    """Return the fields that aren't at their default, as JSON holds them."""
    return {
        choice.name: _plain(value)
        for choice, value in _changed(request)
        if choice.always or value != choice.default
    }


def from_record(kind: type[Asked], given: object) -> Asked:
    """Return the request of which `record` made `given`, which may come from a file or a URL.

    Raises:
        UserError: If it isn't such a record; names the first field that is wrong.
    """
    if not isinstance(given, dict):
        raise UserError("A query must be a JSON object.")
    known = {choice.name: choice for choice in choices(kind)}
    for name in given:
        if name not in known:
            raise UserError(f"Unknown field {str(name)[:LONGEST]!r}.")
    for name, choice in known.items():
        if name in given:
            value = given[name]
            if choice.is_several and not isinstance(value, list):
                raise UserError(f"{name} must be a list.")
            try:
                _check(choice, _kept(choice, value))
            except UserError as error:
                raise UserError(f"{name}: {error}") from error
        elif choice.default is dataclasses.MISSING:
            raise UserError(f"{name} is missing.")
    return kind(**given)


class Function(Generic[P, Asked, Answer, Shown]):
    """A function of the Python API, made from a request class and what answers it.

    Called with the fields of the request, it returns what a notebook shows: mostly a DataFrame.
    `answer` takes a whole request and returns everything that is known; commands and pages use it.
    """

    def __init__(
        self,
        request: Callable[P, Asked],
        answer: Callable[[Asked], Answer],
        shown: Callable[[Answer], Shown],
        doc: str,
    ) -> None:
        self.request = cast(type[Asked], request)
        self._answer = answer
        self._shown = shown
        self.__name__ = self.__qualname__ = self.request.python
        self.__doc__ = _documented(doc, self.request)
        self.__signature__ = _signature(self.request)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Shown:
        """Answer the request of these fields."""
        return self._shown(self.answer(cast(Any, self.request)(*args, **kwargs)))

    def answer(self, request: Asked) -> Answer:
        """Answer a request. Raises UserError for one that can't be answered."""
        request.check()
        return self._answer(request)


def _signature(kind: type[Request]) -> inspect.Signature:
    """The fields, by keyword but for the arguments, then on_progress and on_note."""
    by_name = {choice.name: choice for choice in choices(kind)}
    found = []
    for name, one in inspect.signature(kind).parameters.items():
        choice = by_name.get(name)
        if choice is not None and choice.always:
            one = one.replace(default=choice.default)
        found.append(one.replace(annotation=choice.kind if choice else one.annotation))
    return inspect.Signature(found)


def _documented(doc: str, kind: type[Request]) -> str:
    """A docstring with the request's fields as its `Args`, before the `Returns`."""
    lines = [f"    {choice.name}: {choice.help_text}" for choice in choices(kind)]
    lines.append("    on_progress: Called with a `lama_core.progress.Progress` for each step.")
    lines.append("    on_note: Called with each sentence that the user should read.")
    head, mark, rest = inspect.cleandoc(doc).partition("Returns:")
    return "\n".join([head.rstrip(), "", "Args:", *lines, "", mark + rest])
