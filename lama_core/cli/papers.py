"""`reproduce`: a paper's tables and figures, our numbers next to the published ones."""

from lama_core.api import papers as api
from lama_core.api.papers import Reproduced, ReproducedTable
from lama_core.cli import commands, output


def print_reproduced(made: Reproduced) -> None:
    """Print each table, and what can't be computed here."""
    found = made.found
    print(found.citation)
    for note in found.notes:
        print(note)
    for table in found.tables:
        _print_reproduced(table)
    if found.absent:
        output.print_table(
            ("what", "why it is unavailable here", "command that fetches it"),
            [(one.what, one.reason, one.command) for one in found.absent],
        )
    print(f"With charts: {made.html}")


def _print_reproduced(table: ReproducedTable) -> None:
    """One table of a paper: ours, theirs and the difference, and why one of them is missing."""
    remarks, which = table.remarks()
    title = f"\n{table.name}: {table.title} ({table.about})"
    if not table.made.rows:
        print(f"{title}\nNone of it is available here.")
    else:
        output.print_table(
            (
                "model",
                "what",
                "n",
                "ours",
                *(("95% interval",) * table.has_intervals),
                "paper",
                "difference",
                "note",
            ),
            [
                (
                    row.model,
                    row.what,
                    row.n or "",
                    table.shown(row.ours),
                    *table.shown_interval(row),
                    table.shown(row.published),
                    table.shown(row.difference, signed=True),
                    "" if at is None else f"[{at + 1}]",
                )
                for row, at in zip(table.made.rows, which, strict=True)
            ],
            title=title,
        )
    for note in table.made.notes:
        print(note)
    for number, remark in enumerate(remarks, start=1):
        print(f"[{number}] {remark}")


reproduce = commands.make(api.reproduce, print_reproduced, "reproduce petroni2019 --table table2")
