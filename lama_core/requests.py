"""What users ask for, as command lines, as records, and back: what a page shows can be had in a
terminal, kept in a file, and asked again.

A request is a frozen dataclass. `command` names its command; a field is the option of its name
(`top_k` is `--top-k`), or, by its metadata, an option of another name or an argument without one.
"""

import dataclasses
import re
import shlex
from collections.abc import Mapping
from types import UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from lama_core.errors import UserError, choose

SURROGATE = re.compile("[\ud800-\udfff]")  # half a sign, which JSON can hold and no text
PROGRAM = ("python", "-m", "lama_core")


class Request(Protocol):
    """A dataclass that a command answers. command: such as ("analogy", "solve")."""

    command: ClassVar[tuple[str, ...]]
    __dataclass_fields__: ClassVar[dict[str, Any]]


Asked = TypeVar("Asked", bound=Request)


def option(name: str, **default: Any) -> Any:
    """A field that is an option of another name, such as `--model` for `models`."""
    return dataclasses.field(metadata={"option": name}, **default)


def argument(**default: Any) -> Any:
    """A field that stands in the command without a name, as one word or several."""
    return dataclasses.field(metadata={"argument": True}, **default)


def read(kind: type[Asked], options: Mapping[str, Any], **instead: Any) -> Asked:
    """The request that a command's options ask for: the way back from `arguments`.

    options: by the names of the command's parameters, which are a field's or its option's. None
    stands for the field's default. instead: fields whose options aren't taken as they were typed.
    Raises UserError for a value that isn't one of those that the field's type names.
    """
    made = {}
    for field in dataclasses.fields(kind):
        named = field.metadata.get("option", "--").removeprefix("--").replace("-", "_")
        value = options[field.name] if field.name in options else options[named]
        value = instead.get(field.name, value)
        if value is None:
            continue
        choices = next((get_args(one) for one in (field.type, *get_args(field.type))
                        if get_origin(one) is Literal), ())  # fmt: skip
        if choices:
            choose(value, choices, field.name)
        made[field.name] = tuple(value) if isinstance(value, list) else value
    return kind(**made)


def arguments(request: Request, *more: str) -> list[str]:
    """The words that follow `python -m lama_core` to ask for the same.

    What stands at its default is left out. A tuple is an option given several times; True is an
    option without a value, and False the same with `no-` before its name. more: further options.
    """
    words: list[str] = []
    names: list[str] = []
    for field in dataclasses.fields(request):
        value = getattr(request, field.name)
        if field.metadata.get("argument"):
            names += [str(one) for one in (value if isinstance(value, tuple) else (value,))]
            continue
        if value is None or value == field.default:
            continue
        name = field.metadata.get("option", "--" + field.name.replace("_", "-"))
        if isinstance(value, bool):
            words.append(name if value else name.replace("--", "--no-", 1))
            continue
        for one in value if isinstance(value, tuple) else (value,):
            words += [name, str(one)]
    # Behind `--` nothing is an option, whatever it begins with.
    marked = ["--", *names] if any(name.startswith("-") for name in names) else names
    return [*request.command, *words, *more, *marked]


def python_call(request: Request) -> str:
    """The call of the library that gives the same.

    A request with a function of its own names it: `python`, such as "fill". Any other is asked as
    the command that it is.
    """
    name = getattr(request, "python", None)
    if name is None:
        return f"lama.command({', '.join(map(repr, arguments(request)))})"
    given: list[str] = []
    named: list[str] = []
    for field in dataclasses.fields(request):
        value = getattr(request, field.name)
        if field.metadata.get("argument"):
            given += map(repr, value if isinstance(value, tuple) else (value,))
        elif value != field.default:
            shown = list(value) if isinstance(value, tuple) else value
            named.append(f"{field.name}={shown!r}")
    return f"lama.{name}({', '.join([*given, *named])})"


def command_line(request: Request, *more: str) -> str:
    """The whole command, quoted for a shell. more: further words, such as `--json`."""
    return shlex.join([*PROGRAM, *arguments(request, *more)])


def record(request: Request) -> dict[str, Any]:
    """The fields that don't stand at their default, as JSON has them."""
    values = {field.name: getattr(request, field.name) for field in dataclasses.fields(request)}
    defaults = {field.name: field.default for field in dataclasses.fields(request)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value != defaults[name]
    }


def from_record(kind: type[Asked], given: object) -> Asked:
    """The request whose `record` was given: by a file or an address, so that nothing is trusted.

    Raises UserError for what is no record of that kind, naming the first field that isn't right.
    """
    if not isinstance(given, dict):
        raise UserError("a query is no JSON object.")
    types = get_type_hints(kind)
    made = {}
    for field in dataclasses.fields(kind):
        if field.name in given:
            value = given[field.name]
            value = tuple(value) if isinstance(value, list) else value
            if not _fits(value, types[field.name]):
                raise UserError(f"{field.name} can't be {str(value)[:60]!r}.")
            made[field.name] = value
        elif field.default is dataclasses.MISSING:
            raise UserError(f"{field.name} is missing.")
    unknown = [name for name in given if name not in made]
    if unknown:
        raise UserError(f"{str(unknown[0])[:60]!r} is nothing that a query has.")
    return kind(**made)


def _fits(value: object, kind: Any) -> bool:
    """Whether a value is of a field's type: text, number, yes or no, some texts, a choice."""
    if get_origin(kind) in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(kind))
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(_fits(one, str) for one in value)
    if kind is str and isinstance(value, str):
        return not SURROGATE.search(value)
    return type(value) is kind
