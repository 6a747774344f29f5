"""The commands `runs import` and `runs export`."""

from typing import Any

from lama_core.cli import commands, output
from lama_core.rounding import counted
from lama_tool_results.exporting import ExportedRun, export_run
from lama_tool_results.importing import import_run, said_precision


def print_imported(rows: list[dict[str, Any]]) -> None:
    """Print the name and P@1 of each imported run."""
    for row in rows:
        p_at_1 = said_precision(row)
        if row["n_unusable"] != 0:
            p_at_1 += f", without the unusable rows (n = {row['n']:,})"
        done = "Saved" if row["saved"] else "Not saved (--dry-run)"
        output.print_line(f"{done}: {row['run']}{p_at_1}")


import_command = commands.make(
    import_run,
    print_imported,
    "runs import results.csv --model bert-base-cased",
    list,
    has_device=False,  # the model is only named
)


def print_exported(exported: ExportedRun) -> None:
    """Print what was written."""
    excluded = f"; {exported.n_excluded:,} excluded rows left out" * bool(exported.n_excluded)
    output.print_line(f"{exported.folder}: {counted(exported.n, 'row')}{excluded}")


export_command = commands.make(
    export_run, print_exported, "runs export RUN --format lm-pub-quiz --out FOLDER"
)
