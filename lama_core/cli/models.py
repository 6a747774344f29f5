"""`models`: list models; fetch, add, convert, look up or forget one."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lama_core.api import models as api
from lama_core.api.models import Fetched, locate
from lama_core.cli import commands, output

WHERE = {
    "assets": "not installed",
    "folder": "gone",
    "hub": "on the hub",
    "wheel": "as a wheel",
    "release": "at its address",
    "server": "on a server",
    "none": "can't run",
}


def list_models(*, json: commands.Json = False) -> None:
    """List the models: where each comes from, its size, and whether it is here."""
    entries = api.entries()
    if json:
        output.print_json([api.model_record(entry) for entry in entries])
        return
    output.print_table(
        (
            "name",
            "kind",
            "size",
            "to fetch",
            "in fp32",
            "case",
            "trained on",
            "corpus size",
            "where",
        ),
        [
            (
                entry.name,
                entry.kind or "?",
                f"{entry.n_parameters / 1e6:,.0f}M" if entry.n_parameters else "",
                output.size(entry.source.n_bytes),
                output.size(entry.bytes_held("fp32")),
                {True: "cased", False: "uncased", None: "?"}[entry.cased],
                entry.corpus,
                entry.corpus_size,
                "here" if locate(entry) else WHERE[entry.source.how],
            )
            for entry in entries
        ],
    )


def print_fetched(fetched: Fetched) -> None:
    """Print where a model is."""
    name = fetched.entry.name
    print(
        f"{name} is in the list" if fetched.folder is None else f"{name} is here: {fetched.folder}"
    )


def convert(
    folder: Annotated[Path, Parameter(help="A folder with the release's files.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="The folder to make; it must not exist yet.")],
    json: commands.Json = False,
) -> None:
    """Convert a release in an old format (ELMo, Transformer-XL, fconv, ERNIE) to a model folder."""
    with output.progress() as on_progress:
        title, target = api.convert_model(folder, out, on_progress=on_progress)
    if json:
        output.print_json({"release": title, "folder": str(target)})
    else:
        print(f"{target} holds {title}: query it with --model {target}")


def add(
    name: Annotated[str, Parameter(help="A folder, a GGUF file, a hub name, or server:URL#MODEL.")],
    /,
) -> None:
    """Add a model of your own to the list; one that can't be queried is refused."""
    entry = api.add_model(name)
    print(f"{entry.name} is in the list" if entry.added else f"{entry.name} is known already")


def forget(
    name: Annotated[str, Parameter(help="A model of your own, as the list names it.")], /
) -> None:
    """Remove a model of your own from the list; its files stay."""
    api.forget_model(name)
    print(f"{name} is off the list")


def info(
    name: Annotated[str, Parameter(help="A known name, a folder, or a hub name.")],
    /,
    *,
    json: commands.Json = False,
) -> None:
    """Show what is known of a model."""
    record = api.model_info(name)
    if json:
        output.print_json(record)
        return
    rows = [
        (key.replace("_", " "), output.size(value) if key.startswith("bytes") else value)
        for key, value in record.items()
        if value is not None
    ]
    output.print_table(("what", "value"), [row for row in rows if row[1] != ""])


models = commands.make_group("models", list_models)
for name, command, example in (
    ("list", list_models, "list --json"),
    ("add", add, "add ~/models/mine"),
    ("forget", forget, "forget lab/tiny"),
    ("convert", convert, "convert ~/elmo --out ~/models/elmo"),
    ("info", info, "info bert-base-cased"),
):
    models.command(command, name=name, help_epilogue=f"Example: lama-explorer models {example}")
models.command(commands.make(api.get_model, print_fetched, "models get smollm2-135m"))
