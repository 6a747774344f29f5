"""The commands of crawls: `crawl`, `crawl-export` and `crawl-query`."""

from typing import Any

import pandas as pd

from lama_core.cli import commands, output
from lama_core.probes.making_runs import Runs
from lama_core.rounding import fixed
from lama_entities.crawl import crawl as crawl_function
from lama_entities.triples import (
    SparqlAnswer,
    believed_rows,
    crawl_export,
    crawl_query,
    summary,
)
from lama_entities.types import relation_types

MOST_LISTED = 20  # beliefs; --json has all


def print_crawls(runs: Runs) -> None:
    """Print what each crawl found, with the first beliefs."""
    for crawl in runs:
        rows = believed_rows(crawl)
        output.print_line(f"{crawl.info.model}: {'; '.join(summary(crawl))}.")
        output.print_table(
            ("depth", "subject", "relation", "answer", "probability", "", "right answers"),
            [
                (
                    row["depth"],
                    row["subject"],
                    relation_types()[str(row["relation"])].label,
                    row["object"],
                    fixed(row["probability"], 3),
                    row["truth"],
                    row["right"] if row["truth"] == "wrong" else "",
                )
                for row in rows.head(MOST_LISTED).to_dict("records")
            ],
        )
        if (n_more := len(rows) - MOST_LISTED) > 0:
            output.print_line(f"And {n_more:,} more: --json, or `crawl-export {crawl.info.id}`.")


def records(runs: Runs) -> list[dict[str, Any]]:
    """Return the rows of all crawls for `--json`."""
    tables = [crawl.facts.assign(run=crawl.info.id, model=crawl.info.model) for crawl in runs]
    rows = pd.concat([table.astype(object) for table in tables])
    return [
        {str(name): value for name, value in row.items()}
        for row in rows.where(rows.notna(), None).to_dict("records")
    ]


def print_answer(answer: SparqlAnswer) -> None:
    """Print the answer to a query."""
    output.print_parts([answer.table])
    if answer.is_cut:
        output.print_note(f"Only the first {len(answer.rows):,} rows: --rows takes more.")


crawl = commands.make(crawl_function, print_crawls, crawl_function.example, records)
export = commands.make(
    crawl_export,
    lambda path: output.print_line(f"Wrote {path}."),
    "crawl-export RUN --format ttl --out crawl.ttl",
    lambda path: {"file": str(path)},
)
query = commands.make(
    crawl_query,
    print_answer,
    'crawl-query RUN "SELECT ?country ?city WHERE { ?country wdt:P36 ?city }"',
)
