"""`models`: list models; fetch, add, convert, look up or forget one."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lama_core.cli import commands, output
from lama_core.files import user_path
from lama_core.models import listing
from lama_core.models.cache import check_and_add_model
from lama_core.models.conversion.convert import convert as convert_release
from lama_core.models.sources.catalog import all_models, find_model, forget_model
from lama_core.models.sources.locations import fault_of, locate
from lama_core.progress import Progress, Result

HEADS = (
    "name",
    "kind",
    "size",
    "to fetch",
    "in fp32",
    "case",
    "trained on",
    "corpus size",
    "where",
)
WHERE = {
    "assets": "not installed",
    "folder": "missing",
    "hub": "Hugging Face hub",
    "wheel": "Python package",
    "release": "authors' download",
    "server": "server",
    "none": "unavailable",
}


def list_models(*, json: commands.Json = False) -> None:
    """List the models: where each comes from, its size, and whether it is on this machine."""
    entries = all_models()
    if json:
        output.print_json([listing.model_record(entry) for entry in entries])
        return
    output.print_table(
        HEADS,
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
    for entry in entries:
        if fault := fault_of(entry):
            output.print_note(f"{entry.name}: {fault}")


def print_fetched(fetched: listing.FetchedModel) -> None:
    """Print the folder of a model."""
    name, folder = fetched.entry.name, fetched.folder
    output.print_line(f"Added {name} to the list" if folder is None else f"{name} is in {folder}")


def convert(
    folder: Annotated[Path, Parameter(help="Folder with the files of the release.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="New folder for the model; it must not exist yet.")],
    json: commands.Json = False,
) -> None:
    """Convert a release in an old format (ELMo, Transformer-XL, fconv, ERNIE) to a model folder."""
    with output.progress() as on_progress:
        target = user_path(out)
        release = convert_release(user_path(folder), target, on_progress)
        on_progress(Progress("Converted", 1, 1, result=Result("model", str(target))))
    if json:
        output.print_json({"release": release.title, "folder": str(target)})
    else:
        output.print_line(f"Converted {release.title}. Query it with --model {target}")


def add(
    name: Annotated[str, Parameter(help="A folder, a GGUF file, a hub name, or server:URL#MODEL.")],
    /,
) -> None:
    """Add a model to the list, after checking that it can be queried."""
    entry = check_and_add_model(name)
    output.print_line(
        f"Added {entry.name}" if entry.added else f"{entry.name} is already in the list"
    )


def forget(
    name: Annotated[str, Parameter(help="Name of a model that you added, as listed.")], /
) -> None:
    """Remove a model that you added from the list; its files are kept."""
    forget_model(find_model(name).name)
    output.print_line(f"Removed {name} from the list")


def info(
    name: Annotated[str, Parameter(help="Name of a listed model, a folder, or a hub name.")],
    /,
    *,
    json: commands.Json = False,
) -> None:
    """Show a model's kind, size, training text, source and location."""
    record = listing.model_info(name)
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
models.command(commands.make(listing.get_model, print_fetched, "models get smollm2-135m"))
