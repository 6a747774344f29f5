"""`models`: what there is, where it comes from, what is here; add, fetch or look at one."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lama_core.cli import options, show
from lama_core.files import bytes_text, given_path
from lama_core.models.catalog import Entry, all_models, find_model, forget_model
from lama_core.models.loader import add_checked
from lama_core.models.sources import fetch, is_here, locate

WHERE = {
    "assets": "not complete",
    "folder": "gone",
    "hub": "on the hub",
    "wheel": "as a wheel",
    "release": "at its address",
    "server": "on a server",
    "none": "can't run",
}


def register(app: typer.Typer) -> None:
    """Add the command and its parts."""
    models = typer.Typer(
        invoke_without_command=True, epilog="Example: python -m lama_core models get smollm2-135m"
    )
    models.callback()(_default)
    models.command("list", epilog="Example: python -m lama_core models list --json")(list_models)
    models.command("get", epilog="Example: python -m lama_core models get smollm2-135m")(get)
    models.command("add", epilog="Example: python -m lama_core models add ~/models/mine")(add)
    models.command("forget", epilog="Example: python -m lama_core models forget lab/tiny")(forget)
    models.command(
        "convert", epilog="Example: python -m lama_core models convert ~/elmo --out ~/models/elmo"
    )(convert)
    models.command("info", epilog="Example: python -m lama_core models info bert-base-cased")(info)
    app.add_typer(models, name="models", help="List the models; add, fetch or look at one.")


def _default(context: typer.Context) -> None:
    """List the models; add, fetch or look at one."""
    if context.invoked_subcommand is None:
        list_models(as_json=False)


def list_models(as_json: options.Json = False) -> None:
    """List the models: what there is, where it comes from, what is here already."""
    entries = all_models()
    if as_json:
        show.print_json([_record(entry) for entry in entries])
        return
    rows = [
        (
            entry.name,
            entry.kind or "?",
            f"{entry.n_parameters / 1e6:,.0f}M" if entry.n_parameters else "",
            _size(entry.source.n_bytes),
            _size(entry.bytes_held("fp32")),
            {True: "cased", False: "uncased", None: "?"}[entry.cased],
            entry.corpus,
            entry.corpus_size,
            "here" if locate(entry) else WHERE[entry.source.how],
        )
        for entry in entries
    ]
    columns = (
        "name", "kind", "size", "to fetch", "in fp32", "case", "trained on", "corpus size", "where",
    )  # fmt: skip
    show.print_table(columns, rows)


def get(
    name: Annotated[str, typer.Argument(help="A known name, a folder, a hub name or a server's.")],
    repin: Annotated[
        bool, typer.Option("--repin", help="Accept files that changed since their first fetch.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Fetch a model, so that it is on this machine from then on."""
    entry = find_model(name)
    if entry.source.how == "server":
        add_checked(name)
        show.announce("model", entry.name)
        if as_json:
            show.print_json(_record(entry))
        else:
            print(f"{entry.name} is in the list")
        return
    with show.progress() as on_progress:
        located = fetch(entry, on_progress, repin=repin and entry.source.how in ("hub", "release"))
    if entry.added:
        add_checked(name)
    show.announce("model", entry.name)
    if as_json:
        show.print_json({**_record(entry), "folder": str(located.folder)})
    else:
        print(f"{entry.name} is here: {located.folder}")


def convert(
    folder: Annotated[Path, typer.Argument(help="A folder with the release's files.")],
    out: Annotated[Path, typer.Option(help="The folder to make; it mustn't be there yet.")],
    as_json: options.Json = False,
) -> None:
    """Make a release in an old format (ELMo, Transformer-XL, fconv, ERNIE) a model folder."""
    from lama_core.models.conversion.convert import convert as convert_release

    source, target = given_path(folder), given_path(out)
    with show.progress() as on_progress:
        release = convert_release(source, target, on_progress)
    show.announce("model", str(target))
    if as_json:
        show.print_json({"release": release.title, "folder": str(target)})
    else:
        print(f"{target} holds {release.title}: ask it with --model {target}")


def add(
    name: Annotated[
        str, typer.Argument(help="A folder, a GGUF file, a hub name, or server:URL#MODEL.")
    ],
) -> None:
    """Keep a model of your own in the list; what can't be asked is refused."""
    entry = add_checked(name)
    print(f"{entry.name} is in the list" if entry.added else f"{entry.name} is known already")


def forget(
    name: Annotated[str, typer.Argument(help="A model of your own, as the list names it.")],
) -> None:
    """Take a model of your own off the list; its files stay where they are."""
    forget_model(find_model(name).name)
    print(f"{name} is off the list")


def info(
    name: Annotated[str, typer.Argument(help="A known name, a folder, or a hub name.")],
    as_json: options.Json = False,
) -> None:
    """Show what is known of a model."""
    record = _record(find_model(name))
    if as_json:
        show.print_json(record)
        return
    rows = [
        (key.replace("_", " "), _size(value) if key.startswith("bytes") else value)
        for key, value in record.items()
        if value is not None
    ]
    show.print_table(("what", "value"), [row for row in rows if row[1] != ""])


def _size(n_bytes: Any) -> str:
    return bytes_text(n_bytes) if n_bytes else ""


def _record(entry: Entry) -> dict[str, object]:
    known = {key: value for key, value in asdict(entry).items() if key not in ("source", "added")}
    located = locate(entry)
    return {
        **known,
        "bytes_to_fetch": entry.source.n_bytes,
        "bytes_in_fp32": entry.bytes_held("fp32"),
        "bytes_in_bf16": entry.bytes_held("bf16"),
        "how": entry.source.how,
        "place": entry.source.place,
        "revision": entry.source.revision,
        "why_not": entry.source.why,
        "here": is_here(entry),
        "identity": located.identity if located else None,
    }
