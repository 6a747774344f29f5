"""Commands made from functions of the Python API: the options are the fields of the request."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, replace
from typing import Annotated, Any

from cyclopts import App, Parameter

from lama_core.cli import output
from lama_core.requests import PROGRAM, Choice, Function, choices

Json = Annotated[bool, Parameter(help="Print JSON.", negative="", show_default=False)]
Yes = Annotated[
    bool, Parameter(help="Actually delete. Default: say what would be deleted.", negative="")
]
Device = Annotated[
    str | None,
    Parameter(
        help="Where models compute: auto (a GPU if there is one), cpu, cuda, cuda:N, mps, or "
        "spread (over all GPUs, and memory). Default: LAMA_DEVICE, or auto."
    ),
]
# Requests with any of these fields load models.
_LOADS = {"models", "model", "readers", "guesser"}

Print = Callable[[Any], None]


def make_help(app: App) -> Callable[[], None]:
    """Return what a group does without a command: print its help, and exit with status 2."""

    def print_help() -> None:
        app.help_print()
        raise SystemExit(2)

    return print_help


def make_group(name: str, function: Callable[..., None] | None = None) -> App:
    """Return a group of commands, such as `models`. function: what it does without a command."""
    group = App(name=name, help_flags=["--help", "-h"], version_flags=[])
    if function is None:
        group.usage = f"Usage: {PROGRAM} {name} COMMAND"
    group.default(function or make_help(group))
    return group


def make(
    function: Function[..., Any, Any, Any],
    print_answer: Print,
    example: str,
    as_json: Callable[[Any], object] = lambda answer: answer.to_json(),
    *,
    has_device: bool = False,
) -> App:
    """Return the command of a function of the Python API.

    Args:
        function: Its request gives the options, its docstring the help.
        print_answer: Prints the whole answer for people.
        example: A command to show under `--help`, without the program's name.
        as_json: Returns what `--json` prints.
        has_device: It loads models though no field names them.
    """
    summary, more = help_of(function)
    app = App(
        name=function.request.command[-1],
        help=summary,
        help_epilogue="\n\n".join(filter(None, (more, f"Example: lama-explorer {example}"))),
        help_flags=["--help", "-h"],
        version_flags=[],
    )
    app.default(make_command(function, print_answer, as_json, has_device=has_device))
    return app


def help_of(function: Callable[..., Any]) -> tuple[str, str]:
    """Return the first paragraph of a docstring, and the rest before its sections."""
    text = (inspect.getdoc(function) or "").split("\n\nArgs:")[0].split("\n\nReturns:")[0]
    first, *rest = (part.replace("\n", " ").strip() for part in text.split("\n\n"))
    return first, "\n\n".join(rest)


def make_command(
    function: Function[..., Any, Any, Any],
    print_answer: Print,
    as_json: Callable[[Any], object],
    *,
    has_device: bool = False,
) -> Callable[..., None]:
    """Return a function with one parameter for each field, `device` where models are loaded, and
    `json`.
    """
    kind = function.request
    fields = {choice.name: choice for choice in choices(kind)}

    def command(*args: Any, json: bool = False, device: str | None = None, **options: Any) -> None:
        if device is not None:
            from lama_core.api.models import use_device  # heavy: --help doesn't need it

            use_device(device)
        request = kind(**_given(fields, args), **options, on_note=output.say)
        with output.progress() as on_progress:
            answer = function.answer(replace(request, on_progress=on_progress))
        if json:
            output.print_json(as_json(answer))
        else:
            print_answer(answer)

    made = [_parameter(choice) for choice in fields.values()]
    # Arguments come first, a list of them last; then options, where runs are kept last.
    made.sort(key=lambda one: (one.kind, one.name in ("out", "executor")))
    keyword = inspect.Parameter.KEYWORD_ONLY
    if has_device or fields.keys() & _LOADS:
        made.append(inspect.Parameter("device", keyword, default=None, annotation=Device))
    made.append(inspect.Parameter("json", keyword, default=False, annotation=Json))
    command.__signature__ = inspect.Signature(made)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in made}
    return command


def _given(fields: dict[str, Choice], args: tuple[Any, ...]) -> dict[str, Any]:
    """The positional arguments by their fields; those of a list come one by one."""
    given: dict[str, Any] = {}
    left = list(args)
    for choice in fields.values():
        if choice.is_argument:
            if choice.is_several:
                given[choice.name], left = tuple(left), []
            elif left:
                given[choice.name] = left.pop(0)
    return given


def _show_default(value: Any) -> str:
    """A default as it would be typed."""
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _parameter(choice: Choice) -> inspect.Parameter:
    """A field as a parameter that cyclopts reads."""
    kind: Any = choice.kind
    if choice.is_argument:
        if choice.is_several:
            kind = str
        declared = Parameter(help=choice.help_text, allow_leading_hyphen=choice.takes_dash)
        annotated: Any = Annotated[kind, declared]
        if choice.is_several:
            place: Any = inspect.Parameter.VAR_POSITIONAL
            return inspect.Parameter(choice.name, place, annotation=annotated)
        place = inspect.Parameter.POSITIONAL_ONLY
        default = inspect.Parameter.empty if choice.default is MISSING else choice.default
        return inspect.Parameter(choice.name, place, default=default, annotation=annotated)
    if choice.is_several:
        kind = list[str]
    declared = Parameter(
        name=choice.option,
        help=choice.help_text,
        show_default=_show_default if choice.default not in (False, None, ()) else False,
        negative=None if kind is bool and choice.default is True else "",
        allow_leading_hyphen=True,
    )
    return inspect.Parameter(
        choice.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if choice.default is MISSING else choice.default,
        annotation=Annotated[kind, declared],
    )
