"""`data`: list, fetch, import, rename and delete knowledge sources."""

from typing import Annotated

from cyclopts import Parameter

from lama_core.api import data as api
from lama_core.api.data import Brought
from lama_core.cli import commands, corpus, output
from lama_core.errors import UserError

Name = Annotated[str, Parameter(help="A name of `data list` that is here.")]


def list_sources(*, json: commands.Json = False) -> None:
    """List the knowledge sources: what is here, what can be fetched, licence and citation."""
    if json:
        output.print_json(api.dataset_records())
        return
    rows = api.listed()
    output.print_table(
        ("name", "kind", "where", "relations", "facts or pairs", "to fetch", "licence"),
        [
            (
                row.name,
                row.kind,
                ("damaged" if row.fault else "here") if row.installed else "can be fetched",
                "" if row.n_relations is None else f"{row.n_relations:,}",
                "" if row.n_facts is None else f"{row.n_facts:,}",
                output.size(row.size),
                row.licence,
            )
            for row in rows
        ],
    )
    for row in rows:
        if row.fault:
            output.complain(row.fault)


def print_brought(brought: Brought) -> None:
    """Print what was fetched or imported, and what was excluded from it."""
    record = brought.to_json()
    what = "facts" if record["sources"] else "pairs"
    print(f"{record['name']}: {record['n_relations']} relations, {record['n_facts']:,} {what}")
    for row in record["sources"]:
        print(f"  {row['source']}: {row['n_relations']} relations, {row['n_facts']:,} facts")
    if summary := brought.installed.dataset.report.summary(limit=20):
        print(summary)
    print(f"In {record['path']}")


def rename(name: Name, new: Annotated[str, Parameter(help="Its name from now on.")], /) -> None:
    """Rename a source that was fetched or imported; runs made on it keep the old name."""
    users = api.users_of(name)
    print(f"{name} is now {api.rename_dataset(name, new)}")
    if users:
        output.say(f"Its templates were also those of {', '.join(users)}, which have none now.")


def delete(name: Name, /, *, yes: commands.Yes = False) -> None:
    """Delete a source that was fetched or imported from the disk; runs made on it stay."""
    users = api.users_of(name)
    lost = f" Its templates are also those of {', '.join(users)}." if users else ""
    if not yes:
        size = output.size(api.dataset_bytes(name))
        raise UserError(f"This permanently deletes {name} ({size}).{lost} Pass --yes to confirm.")
    print(f"{name} is deleted: {output.size(api.delete_dataset(name))} are free again")


data = commands.make_group("data", list_sources)
data.command(list_sources, name="list", help_epilogue="Example: lama-explorer data list --json")
data.command(commands.make(api.get_data, print_brought, "data get lama"))
data.command(commands.make(api.import_data, print_brought, "data import ~/lama/data.zip"))
data.command(rename, help_epilogue="Example: lama-explorer data rename facts capitals")
data.command(delete, help_epilogue="Example: lama-explorer data delete facts --yes")
data.command(
    corpus.build_corpus,
    name="build-corpus",
    help_epilogue="Example: lama-explorer data build-corpus",
)
data.command(
    corpus.find_stated,
    name="find-stated",
    help_epilogue="Example: lama-explorer data find-stated --dataset starter --prompts manual",
)
