"""`reproduce`: print a paper's tables and figures, our numbers next to the published ones."""

from lama_core.cli import commands, output
from lama_papers.reproduce import ReproducedPaper
from lama_papers.reproduce import reproduce as reproduce_paper


def print_reproduced(paper: ReproducedPaper) -> None:
    """Print each table, then the unavailable items with the commands that fetch them.

    A table has our numbers, the paper's and the difference, with numbered remarks.
    """
    found = paper.found
    output.print_line(found.citation)
    for note in found.notes:
        output.print_line(note)
    for table in found.tables:
        remarks, which = table.remarks()
        title = f"\n{table.name}: {table.title} ({table.about})"
        if not table.made.rows:
            output.print_line(f"{title}\nNo row of this table is available here.")
        else:
            output.print_table(
                (
                    "model",
                    "what",
                    "n",
                    "ours",
                    *["95 % interval"] * table.has_intervals,
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
                        "" if remark is None else f"[{remark + 1}]",
                    )
                    for row, remark in zip(table.made.rows, which, strict=True)
                ],
                title=title,
            )
        for note in table.made.notes:
            output.print_line(note)
        for number, remark in enumerate(remarks, start=1):
            output.print_line(f"[{number}] {remark}")
    if found.absent:
        output.print_table(
            ("unavailable", "reason", "command that fetches it"),
            [(absent.what, absent.reason, absent.command) for absent in found.absent],
        )
    output.print_line(f"Report with charts: {paper.html}")


reproduce = commands.make(reproduce_paper, print_reproduced, "reproduce petroni2019 --table table2")
