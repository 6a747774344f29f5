"""`data`: what knowledge sources there are; fetch, import, rename or delete one."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lama_core.cli import options, show
from lama_core.datasets.base import AnalogyDataset, Dataset
from lama_core.datasets.library import installed
from lama_core.datasets.library.catalog import source
from lama_core.datasets.variants import Guess
from lama_core.errors import UserError

if TYPE_CHECKING:
    from lama_core.datasets.library.download import Installed

_JSON_FIELDS = (
    "name", "title", "kind", "installed", "n_relations", "n_facts", "licence", "citation",
    "homepage", "size", "path",
)  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the command and its parts."""
    data = typer.Typer(
        invoke_without_command=True, epilog="Example: python -m lama_core data get lama"
    )
    data.callback()(_default)
    data.command("list", epilog="Example: python -m lama_core data list --json")(list_sources)
    data.command("get", epilog="Example: python -m lama_core data get lama")(get)
    data.command("import", epilog="Example: python -m lama_core data import ~/lama/data.zip")(
        import_source
    )
    data.command("rename", epilog="Example: python -m lama_core data rename facts capitals")(rename)
    data.command("delete", epilog="Example: python -m lama_core data delete facts --yes")(delete)
    app.add_typer(
        data, name="data", help="List the knowledge sources; fetch, import, rename or delete one."
    )


def _default(context: typer.Context) -> None:
    """List the knowledge sources; fetch, import, rename or delete one."""
    if context.invoked_subcommand is None:
        list_sources(as_json=False)


def list_sources(as_json: options.Json = False) -> None:
    """List the knowledge sources: what is here, what can be fetched, licence and citation."""
    rows = installed.listing()
    if as_json:
        records = [asdict(row) for row in rows]
        show.print_json([{name: record[name] for name in _JSON_FIELDS} for record in records])
        return
    table = [
        (
            row.name,
            row.kind,
            ("damaged" if row.fault else "here") if row.installed else "can be fetched",
            "" if row.n_relations is None else f"{row.n_relations:,}",
            "" if row.n_facts is None else f"{row.n_facts:,}",
            show.size(row.size),
            row.licence,
        )
        for row in rows
    ]
    columns = ("name", "kind", "where", "relations", "facts or pairs", "to fetch", "licence")
    show.print_table(columns, table)
    for row in rows:
        if row.fault:
            show.complain(row.fault)


def get(
    name: Annotated[str, typer.Argument(help="A name of `data list`, such as lama.")],
    repin: Annotated[
        bool, typer.Option("--repin", help="Accept a file that changed since its first fetch.")
    ] = False,
    compute: Annotated[
        bool, typer.Option("--compute", help="lama-uhn: compute it from LAMA, don't fetch it.")
    ] = False,
    guesser: Annotated[
        str | None,
        typer.Option(help="With --compute: the masked model that guesses from names."),
    ] = None,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Fetch a published source from its authors' address; a broken fetch is continued."""
    from lama_core.datasets.library.download import get_dataset

    published = source(name)
    show_licence(published.title, published.licence, published.citation, published.note)
    if guesser and not compute:
        raise UserError("--guesser goes with --compute: add it, or leave the guesser out")
    guess = _guess_with(guesser) if guesser else None
    with show.progress() as report:
        installed = get_dataset(name, on_progress=report, repin=repin, compute=compute, guess=guess)
    _print_installed(installed, as_json=as_json)


def import_source(
    path: Annotated[
        Path, typer.Argument(help="A folder, an archive, or a CSV, TSV or JSONL file.")
    ],
    name: Annotated[
        str | None,
        typer.Option(help="What it is called here; the folder's or file's name if left."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of a source of the same name.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Take a source that is on this machine already: what was read, what was left out and why."""
    from lama_core.datasets.library.download import import_dataset

    with show.progress() as report:
        installed = import_dataset(path, name=name, replace=replace, on_progress=report)
    _print_installed(installed, as_json=as_json)


def rename(
    name: Annotated[str, typer.Argument(help="A name of `data list` that is here.")],
    new: Annotated[str, typer.Argument(help="What it is called from now on.")],
) -> None:
    """Give a source that was fetched or imported another name; runs made on it keep the old one."""
    from lama_core.datasets.library.keeping import rename_dataset, users_of

    users = users_of(name)
    print(f"{name} is now {rename_dataset(name, new)}")
    if users:
        show.say(f"Its templates were also those of {', '.join(users)}, which have none now.")


def delete(
    name: Annotated[str, typer.Argument(help="A name of `data list` that is here.")],
    yes: options.Yes = False,
) -> None:
    """Remove a source that was fetched or imported from the disk; runs made on it stay."""
    from lama_core.datasets.library.keeping import dataset_bytes, delete_dataset, users_of

    users = users_of(name)
    lost = f" Its templates are also those of {', '.join(users)}." if users else ""
    if not yes:
        size = show.size(dataset_bytes(name))
        raise UserError(f"{name} ({size}) would be removed for good: say so with --yes.{lost}")
    print(f"{name} is removed: {show.size(delete_dataset(name))} are free again")


def show_licence(title: str, licence: str, citation: str, note: str) -> None:
    """Say, on standard error and before anything is fetched, what it is and how it may be used."""
    typer.echo(f"{title}\nLicence: {licence}\nCite: {citation}", err=True)
    if note:
        typer.echo(note, err=True)


def _guess_with(model_name: str) -> Guess:
    """The most probable words of the model's whole vocabulary at a blank."""
    from lama_core.asking.blanks import parse_query
    from lama_core.candidates.lists import named_candidates
    from lama_core.models.base import KINDS
    from lama_core.models.loader import load_model
    from lama_core.probes.cloze.ask import ask

    model = load_model(model_name)
    if not KINDS[model.kind].sees_both:
        raise UserError(f"{model_name} sees no right side: choose a model that sees both.")
    candidates = named_candidates("full", [model.vocabulary])
    columns = candidates.columns(model.vocabulary)

    def guess(text: str, k: int) -> list[str]:
        answer = ask(model, parse_query(text), candidates, top_k=k, columns=columns)
        return [prediction.token for prediction in answer.blanks[0].predictions]

    return guess


def _print_installed(installed: "Installed", *, as_json: bool) -> None:
    dataset = installed.dataset
    show.announce("data", installed.folder.name)
    if as_json:
        show.print_json(_record(installed))
        return
    if isinstance(dataset, AnalogyDataset):
        print(f"{dataset.name}: {len(dataset.relations)} relations, {dataset.n_pairs:,} pairs")
    else:
        print(f"{dataset.name}: {len(dataset.relations)} relations, {len(dataset.facts):,} facts")
        for row in _by_source(dataset):
            print(f"  {row['source']}: {row['n_relations']} relations, {row['n_facts']:,} facts")
    summary = dataset.report.summary(limit=20)
    if summary:
        print(summary)
    print(f"In {installed.folder}")


def _record(installed: "Installed") -> dict[str, object]:
    dataset = installed.dataset
    return {
        "name": dataset.name,
        "n_relations": len(dataset.relations),
        "n_facts": len(dataset.facts) if isinstance(dataset, Dataset) else dataset.n_pairs,
        "sources": _by_source(dataset) if isinstance(dataset, Dataset) else [],
        "dropped": [asdict(item) for item in dataset.report.dropped],
        "notes": list(dataset.report.notes),
        "digest": dataset.digest,
        "path": str(installed.folder),
    }


def _by_source(dataset: Dataset) -> list[dict[str, object]]:
    n_facts = dataset.n_facts_by_source()
    return [
        {
            "source": name,
            "n_relations": sum(relation.source == name for relation in dataset.relations),
            "n_facts": n_facts.get(name, 0),
        }
        for name in dataset.sources()
    ]
