"""`stress`: campaigns against the project itself, and the table of what came of them."""

import importlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lama_core.cli import options, show
from lama_core.errors import choose
from lama_core.progress import Progress
from tools.stress.campaign import Campaign, Outcome

EXAMPLE = """
Example: python -m lama_core stress commands --n 5000 --seed 1
"""
ALL = "all"
CAMPAIGNS = {"commands": 5000, "data": 1000, "models": 300, "kills": 60, "disk": 25, "clients": 30}
COLUMNS = ("campaign", "thrown", "endings", "slowest", "peak memory", "seconds", "faults")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=EXAMPLE)(stress)


def stress(
    name: Annotated[str, typer.Argument(help=f"{', '.join(CAMPAIGNS)}, or {ALL}.")],
    n: Annotated[
        int | None,
        typer.Option("--n", help="How many to throw; by default a long campaign.", min=1),
    ] = None,
    seed: Annotated[int, typer.Option(help="Draws the same ones again.")] = 1,
    as_json: options.Json = False,
) -> None:
    """Throw at the project what it should withstand; exit status 1 if it did not withstand it."""
    chosen = choose(name, (*CAMPAIGNS, ALL), "campaign")
    outcomes: list[Outcome] = []
    with show.progress() as on_progress:
        for one in CAMPAIGNS if chosen == ALL else (chosen,):
            total = n or CAMPAIGNS[one]
            outcomes.append(
                throw(
                    one, total, seed,
                    lambda done, one=one, total=total: on_progress(  # type: ignore[misc]
                        Progress(f"Throwing {one}", done, total)
                    ),
                )
            )  # fmt: skip
    if as_json:
        show.print_json([asdict(outcome) for outcome in outcomes])
    else:
        _print(outcomes)
    if any(outcome.faults for outcome in outcomes):
        raise typer.Exit(1)


def throw(name: str, n: int, seed: int, tell: Callable[[int], None]) -> Outcome:
    """What came of a campaign, in a home of its own that is gone afterwards.

    Clients ask an app with a home of its own and the user's weights.
    """
    campaign: Campaign = importlib.import_module(f"tools.stress.{name}").run
    if name == "clients":
        with tempfile.TemporaryDirectory(prefix="lama-stress-") as place:
            return campaign(n, seed, Path(place), tell)
    before = os.environ.get("LAMA_HOME")
    with tempfile.TemporaryDirectory(prefix="lama-stress-") as place:
        home, folder = Path(place, "home"), Path(place, "folder")
        home.mkdir()
        folder.mkdir()
        os.environ["LAMA_HOME"] = str(home)
        try:
            return campaign(n, seed, folder, tell)
        finally:
            if before is None:
                del os.environ["LAMA_HOME"]
            else:
                os.environ["LAMA_HOME"] = before


def _print(outcomes: list[Outcome]) -> None:
    rows = [
        (
            outcome.name,
            f"{outcome.n:,}",
            ", ".join(f"{number:,} {ending}" for ending, number in sorted(outcome.counts.items())),
            f"{outcome.slowest:.1f} s",
            show.size(outcome.peak),
            f"{outcome.seconds:,.0f}",
            len(outcome.faults),
        )
        for outcome in outcomes
    ]
    show.print_table(COLUMNS, rows)
    for outcome in outcomes:
        for what, figure in outcome.figures.items():
            print(f"{outcome.name}, {what}: {figure}")
    for outcome in outcomes:
        for fault in outcome.faults:
            print(f"\n{outcome.name}: {fault.what}\n  given: {fault.given}\n  said: {fault.said}")
