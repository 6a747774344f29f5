"""Make commands from functions of the Python API; the options are the fields of the request."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter, Token

from lama_core.cli import output
from lama_core.requests import PROGRAM, Function, RequestField, as_path, request_fields
from lama_core.views.figure_files import FONT_SIZE, WIDTH, FigureFile

Json = Annotated[bool, Parameter(help="Print JSON.", negative="", show_default=False)]
Yes = Annotated[
    bool,
    Parameter(
        help="Actually delete. Default: only print what it would delete.",
        negative="",
        show_default=False,
    ),
]
Device = Annotated[
    str | None,
    Parameter(
        help="Device of the models: auto (a GPU if there is one), cpu, cuda, cuda:N, mps, or "
        "spread (over all GPUs and main memory). Default: LAMA_DEVICE, or auto."
    ),
]
# Requests with any of these fields load models.
_LOADS = {"models", "model"}

Print = Callable[[Any], None]
WriteFigure = Callable[[Any, FigureFile], None]


def _as_path(_kind: Any, tokens: Sequence[Token]) -> Path:
    """Return a path option's value; unlike `Path`, refuse an empty one."""
    return as_path(tokens[0].value)


# Parameter -> its declaration and default, in the commands of views with a figure.
FIGURE_OPTIONS: dict[str, tuple[Any, Any]] = {
    "figure": (
        Annotated[
            Path | None,
            Parameter(
                help="Also draw the figure to this file: .svg, .pdf or .png.", converter=_as_path
            ),
        ],
        None,
    ),
    "figure_width": (Annotated[float, Parameter(help="Width of the figure in cm.")], WIDTH),
    "font_size": (
        Annotated[float, Parameter(help="Size of the figure's labels in points.")],
        FONT_SIZE,
    ),
    "figure_title": (
        Annotated[
            bool,
            Parameter(help="Put title and caption into the picture; else the caption is printed."),
        ],
        True,
    ),
}


def make_help(app: App) -> Callable[[], None]:
    """Return a function that prints the help of `app` and exits with status 2."""

    def print_help() -> None:
        app.help_print()
        raise SystemExit(2)

    return print_help


def make_group(
    name: str, function: Callable[..., None] | None = None, example: str | None = None
) -> App:
    """Return a command, or a group of commands.

    Args:
        name: Name of the group, such as `models`.
        function: Runs if the user gives no command. Default: print the help.
        example: A command, shown below the help.
    """
    epilogue = f"Example: {PROGRAM} {example}" if example else None
    group = App(name=name, help_epilogue=epilogue, help_flags=["--help", "-h"], version_flags=[])
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
    has_device: bool | None = None,
    write_figure: WriteFigure | None = None,
) -> App:
    """Return the command of a function of the Python API.

    Args:
        function: The function. Its request defines the options, the paragraphs of its docstring
            before the first section the help.
        print_answer: Prints the full result as text.
        example: A command for the end of `--help`, without the program's name.
        as_json: Returns the value that `--json` prints.
        has_device: Whether it has `--device`. Default: if a field of the request names a model.
        write_figure: Writes the full result as a figure; adds `--figure` and its options.
    """
    text = (inspect.getdoc(function) or "").split("\n\nArgs:")[0].split("\n\nReturns:")[0]
    summary, *more = (part.replace("\n", " ").strip() for part in text.split("\n\n"))
    app = App(
        name=function.request.command[-1],
        help=summary,
        help_epilogue="\n\n".join([*more, f"Example: lama-explorer {example}"]),
        help_flags=["--help", "-h"],
        version_flags=[],
    )
    app.default(
        make_command(
            function, print_answer, as_json, has_device=has_device, write_figure=write_figure
        )
    )
    return app


def takes_words(app: App | None) -> bool:
    """Whether a group of commands takes words that aren't commands, such as names of runs."""
    function = app.default_command if app else None
    parameters = inspect.signature(function).parameters.values() if function else ()
    return any(parameter.kind is not inspect.Parameter.KEYWORD_ONLY for parameter in parameters)


def make_command(
    function: Function[..., Any, Any, Any],
    print_answer: Print,
    as_json: Callable[[Any], object],
    *,
    has_device: bool | None = None,
    write_figure: WriteFigure | None = None,
) -> Callable[..., None]:
    """Return a function whose parameters are the request's fields, `device` and `json`.

    See `make` for the arguments.
    """
    kind = function.request
    fields = {choice.name: choice for choice in request_fields(kind)}

    def command(*args: Any, json: bool = False, device: str | None = None, **options: Any) -> None:
        drawn = {name: options.pop(name, one[1]) for name, one in FIGURE_OPTIONS.items()}
        target = None
        if drawn["figure"] is not None:
            target = FigureFile(*drawn.values())
            target.check()  # before the work
        if device is not None:
            from lama_core.models.devices import use_device  # slow to import

            use_device(device)
        by_field: dict[str, Any] = {}
        remaining = list(args)
        for choice in fields.values():
            if choice.is_argument:
                if choice.is_several:
                    by_field[choice.name], remaining = tuple(remaining), []
                elif remaining:
                    by_field[choice.name] = remaining.pop(0)
        request = kind(**by_field, **options, on_note=output.print_note)
        with output.progress() as on_progress:
            answer = function.answer(replace(request, on_progress=on_progress))
        if json:
            output.print_json(as_json(answer))
        else:
            print_answer(answer)
        if target is not None and write_figure is not None:
            write_figure(answer, target)

    parameters = [_parameter(choice) for choice in fields.values()]
    # `--help` lists single arguments, repeated arguments, options, then --out and --executor.
    parameters.sort(key=lambda parameter: (parameter.kind, parameter.name in ("out", "executor")))
    keyword = inspect.Parameter.KEYWORD_ONLY
    if bool(fields.keys() & _LOADS) if has_device is None else has_device:
        parameters.append(inspect.Parameter("device", keyword, default=None, annotation=Device))
    if write_figure is not None:
        parameters += [
            inspect.Parameter(name, keyword, default=default, annotation=annotation)
            for name, (annotation, default) in FIGURE_OPTIONS.items()
        ]
    parameters.append(inspect.Parameter("json", keyword, default=False, annotation=Json))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _parameter(choice: RequestField) -> inspect.Parameter:
    """Return a field as a parameter for cyclopts."""
    kind: Any = choice.kind
    converter = _as_path if choice.is_path else None
    default = inspect.Parameter.empty if choice.default is MISSING else choice.default
    if choice.is_argument:
        declared = Parameter(
            help=choice.help_text, allow_leading_hyphen=choice.takes_dash, converter=converter
        )
        if choice.is_several:
            return inspect.Parameter(
                choice.name, inspect.Parameter.VAR_POSITIONAL, annotation=Annotated[str, declared]
            )
        position: Any = inspect.Parameter.POSITIONAL_ONLY
    else:
        declared = Parameter(
            name=choice.option,
            help=choice.help_text,
            # As the user would type it.
            show_default=(lambda value: " ".join(value) if isinstance(value, tuple) else str(value))
            if choice.default not in (False, None, ())
            else False,
            negative=None if kind is bool and choice.default is True else "",
            allow_leading_hyphen=True,
            converter=converter,
        )
        position = inspect.Parameter.KEYWORD_ONLY
        if choice.is_several:
            kind = list[str]
    return inspect.Parameter(
        choice.name, position, default=default, annotation=Annotated[kind, declared]
    )
