"""`reproduce`: a paper's tables and figures done again, ours beside theirs."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lama_core.cli import options, show
from lama_core.requests import command_line

if TYPE_CHECKING:
    from lama_core.papers.framework import ReproducedTable


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: python -m lama_core reproduce petroni2019 --table table2")(
        reproduce
    )


def reproduce(
    paper: Annotated[str, typer.Argument(help="petroni2019, jiang2020, rezaee2022 or wiland2024.")],
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            help="Only this table or figure (table2, figure3, leaderboard); repeat it for several.",
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            help="The data to use: a name or a folder; else the paper's is fetched, and where it "
            "can't be had the starter data is used (wiland2024: none)."
        ),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option("--model", help="Also this model, without a published value."),
    ] = None,
    limit: options.Limit = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Where the HTML file with the charts goes; else to the user's data."),
    ] = None,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Fetch, run, and print our numbers beside a paper's; what can't be had is listed with why."""
    from lama_core.files import given_path, whole_file
    from lama_core.papers.framework import ReproduceOptions
    from lama_core.papers.known import find_paper
    from lama_core.papers.report import as_html
    from lama_core.paths import data_dir

    known = find_paper(paper)
    asked = ReproduceOptions(dataset, tuple(models or ()), limit, tuple(tables or ()))
    place = given_path(html) if html else data_dir() / "reproductions" / f"{known.name}.html"
    with show.progress() as on_progress:
        found = known.reproduce(asked, on_progress=on_progress, on_note=show.say)
    with whole_file(place) as part:
        part.write_text(as_html(found, command_line(asked, known.name)), encoding="utf-8")
    if as_json:
        show.print_json(
            {
                "paper": found.paper,
                "citation": found.citation,
                "notes": list(found.notes),
                "tables": [_as_json(table) for table in found.tables],
                "absent": [asdict(one) for one in found.absent],
                "html": str(place),
            }
        )
        return
    print(found.citation)
    for note in found.notes:
        print(note)
    for table in found.tables:
        _print_reproduced(table)
    if found.absent:
        show.print_table(
            ("what", "why it can't be had here", "brought by"),
            [(one.what, one.reason, one.command) for one in found.absent],
            title="",
        )
    print(f"With charts: {place}")


def _as_json(table: "ReproducedTable") -> dict[str, object]:
    rows = [{**asdict(row), "difference": row.difference} for row in table.made.rows]
    about = {key: getattr(table, key) for key in ("id", "name", "title", "unit", "counts")}
    return {**about, "notes": table.made.notes, "rows": rows}


def _print_reproduced(table: "ReproducedTable") -> None:
    """One table of a paper: ours, theirs and the difference, and why one of them is missing."""
    remarks, which = table.remarks()
    title = f"\n{table.name}: {table.title} ({table.about})"
    if not table.made.rows:
        print(f"{title}\nNothing of it here.")
    else:
        show.print_table(
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
