"""`runs`: every run on this machine, and what its owner does with it: name it, remove it."""

from typing import Annotated

import typer

from lama_core.cli import options, show
from lama_core.errors import UserError
from lama_core.files import folder_bytes

Name = Annotated[str, typer.Argument(help="A name of `runs list`, in full.")]


def register(app: typer.Typer) -> None:
    """Add the command and its parts."""
    runs = typer.Typer(invoke_without_command=True, epilog="Example: python -m lama_core runs list")
    runs.callback()(_default)
    runs.command("list", epilog="Example: python -m lama_core runs list --json")(list_runs)
    runs.command(
        "rename", epilog='Example: python -m lama_core runs rename RUN "Before the longer training"'
    )(rename)
    runs.command("delete", epilog="Example: python -m lama_core runs delete RUN --yes")(delete)
    app.add_typer(runs, name="runs", help="List the runs, finished or not; name or delete one.")


def _default(context: typer.Context) -> None:
    """List the runs, finished or not; name or delete one."""
    if context.invoked_subcommand is None:
        list_runs(as_json=False)


def list_runs(as_json: options.Json = False) -> None:
    """List every run on this machine: what it is, its state, its size on disk."""
    from lama_core.probes.kinds import KINDS
    from lama_core.runs.keeping import list_kept

    rows = list_kept()
    if as_json:
        show.print_json([row.record() for row in rows])
        return
    table = [
        (
            row.name,
            row.info.title if row.info else "",
            (KINDS[row.info.kind].title if row.info.kind in KINDS else row.info.kind)
            if row.info
            else "",
            f"{row.info.n:,}" if row.info else "",
            row.state,
            row.changed[:10],
            show.size(row.n_bytes),
            "bundled" if row.bundled else "own",
        )
        for row in rows
    ]
    columns = ("run", "called", "kind", "rows", "state", "made", "size", "place")
    show.print_table(columns, table)


def rename(
    run: Name,
    title: Annotated[str, typer.Argument(help='What to call it; "" takes the name away again.')],
) -> None:
    """Give a run of your own a name for people; its identity and its numbers stay."""
    from lama_core.runs.keeping import rename_run

    info = rename_run(run, title)
    print(f"{info.id} is called {info.label!r}" if info.title else f"{info.id} has no name now")


def delete(run: Name, yes: options.Yes = False) -> None:
    """Remove a run of your own, finished or not, from the disk."""
    from lama_core.runs.keeping import delete_run, own_folder

    size = show.size(folder_bytes(own_folder(run)))
    if not yes:
        raise UserError(f"{run} ({size}) would be removed for good: say so with --yes.")
    print(f"{run} is removed: {show.size(delete_run(run))} are free again")
