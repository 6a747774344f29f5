"""`data`: list, fetch, import, rename and delete knowledge sources."""

from collections.abc import Mapping
from typing import Annotated, Any

from cyclopts import Parameter

from lama_core.cli import commands, corpus, output
from lama_core.datasets.library import manage
from lama_core.datasets.library.download import Installed, get_data, import_data
from lama_core.datasets.library.installed import dataset_records, listing
from lama_core.errors import UserError
from lama_core.rounding import counted

Name = Annotated[str, Parameter(help="Name of an installed source, as `data list` prints it.")]


def list_sources(*, json: commands.Json = False) -> None:
    """List the knowledge sources: installed or available to fetch, size and licence."""
    if json:
        output.print_json(dataset_records())
        return
    rows = listing()
    output.print_table(
        ("name", "kind", "where", "relations", "facts, pairs or questions", "to fetch", "licence"),
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
            output.print_error(row.fault)


def print_added(added: Installed) -> None:
    """Print the size of a fetched or imported source, and what was excluded from it."""
    record = added.to_json()
    dataset = added.dataset
    output.print_line(f"{record['name']}: {_size(record, dataset.item)}")
    for row in record["sources"]:
        output.print_line(f"  {row['source']}: {_size(row, 'fact')}")
    if summary := dataset.report.summary(limit=20):
        output.print_line(summary)
    output.print_line(f"Folder: {record['path']}")


def _size(row: Mapping[str, Any], what: str) -> str:
    relations = "" if row["n_relations"] is None else f"{counted(row['n_relations'], 'relation')}, "
    return relations + counted(row["n_facts"], what)


def rename(name: Name, new: Annotated[str, Parameter(help="The new name.")], /) -> None:
    """Rename a fetched or imported source; existing runs keep the old name."""
    users = manage.users_of(name)
    output.print_line(f"Renamed {name} to {manage.rename_dataset(name, new)}")
    if users:
        output.print_note(f"{', '.join(users)} used its templates and now have none.")


def delete(name: Name, /, *, yes: commands.Yes = False) -> None:
    """Delete a fetched or imported source from the disk; its runs are kept."""
    users = manage.users_of(name)
    warning = f" {', '.join(users)} use its templates." if users else ""
    if not yes:
        size = output.size(manage.dataset_bytes(name))
        raise UserError(
            f"This permanently deletes {name} ({size}).{warning} Pass --yes to confirm."
        )
    output.print_line(f"Deleted {name} and freed {output.size(manage.delete_dataset(name))}")


data = commands.make_group("data", list_sources)
data.command(list_sources, name="list", help_epilogue="Example: lama-explorer data list --json")
data.command(commands.make(get_data, print_added, "data get lama"))
data.command(commands.make(import_data, print_added, "data import ~/lama/data.zip"))
data.command(rename, help_epilogue="Example: lama-explorer data rename facts capitals")
data.command(delete, help_epilogue="Example: lama-explorer data delete facts --yes")
data.command(
    corpus.find_cooccurring,
    name="find-cooccurring",
    help_epilogue="Example: lama-explorer data find-cooccurring --prompts manual",
)
