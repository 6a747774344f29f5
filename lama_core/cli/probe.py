"""`probe`: a dataset asked of some models, as runs that can be stopped and taken up again."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lama_core.runs.pipeline import Progress

EXAMPLE = """
Example: python -m lama_core probe --dataset starter --relation P36 --model minilm-mlm
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=EXAMPLE)(probe)


def probe(
    dataset: Annotated[str, typer.Option(help="A dataset's name, or a folder in LAMA's layout.")],
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model's name, folder or hub name; repeat it for several runs."),
    ] = None,
    relation: Annotated[
        list[str] | None, typer.Option(help="Only this relation; repeat it for several.")
    ] = None,
    prompts: Annotated[
        str,
        typer.Option(
            help="manual, paraphrases, sentences, ten-sentences, negated, misprimed; or LPAQA's "
            "mine, mine+man, mine+para, man+para once its prompts are here."
        ),
    ] = "manual",
    candidates: Annotated[
        str, typer.Option(help="The words that are ranked: full, common, lama, relation, file:PATH")
    ] = "common",
    ranking: Annotated[
        str,
        typer.Option(
            help="filtered (without the other valid objects) or raw; both are kept, this one is "
            "shown."
        ),
    ] = "filtered",
    context: Annotated[
        str | None,
        typer.Option(
            help="What a causal model sees: left (the paper's way, the default), or both sides."
        ),
    ] = None,
    precision: Annotated[str, typer.Option(help="auto, fp32 or bf16.")] = "fp32",
    limit: Annotated[
        int | None, typer.Option(help="The first so many facts of each relation.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the runs; by default the user's own.")
    ] = None,
    executor: Annotated[str, typer.Option(help="local, or ray for a Ray cluster.")] = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask a dataset of one or more models; the same command again takes up where it stopped."""
    from lama_core.asking import settings
    from lama_core.asking.executors import make_executor
    from lama_core.cli import show
    from lama_core.cli.results import parse_ranking, print_scores
    from lama_core.models.loader import chosen_precision, load_model
    from lama_core.runs import pipeline

    request = pipeline.ProbeRequest(
        dataset=dataset,
        models=tuple(model or ()),
        relations=tuple(relation or ()),
        prompts=prompts,
        candidates=candidates,
        ranking=parse_ranking(ranking),
        context=settings.parse_context(context),
        precision=chosen_precision(settings.parse_precision(precision)),
        limit=limit,
    )
    workers = make_executor(executor)
    with show.progress() as on_progress:
        planned = pipeline.plan(
            request,
            load=lambda name, precision: load_model(
                name, precision=settings.parse_precision(precision), on_progress=on_progress
            ),
        )
    runs = []
    for spec in planned.specs:
        try:
            with _bar(spec.model_name) as report:
                run = pipeline.execute(
                    spec, folder=out, executor=workers, on_progress=report, on_note=_say
                )
        except KeyboardInterrupt:
            _say("Stopped. What was scored is kept; the same command goes on from there.")
            raise typer.Exit(130) from None
        info = run.info
        _say(f"{info.id}: {info.n:,} queries, {info.n_excluded:,} left out, in {info.folder}")
        runs.append(run)
    print_scores(runs, by="relation", ranking=request.ranking, as_json=as_json)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def _bar(name: str) -> Iterator[Callable[["Progress"], None]]:
    """A bar with facts a second and the time left, on standard error.

    With LAMA_PROGRESS=json, a JSON line a batch instead.
    """
    if os.environ.get("LAMA_PROGRESS") == "json":
        yield lambda step: _say(json.dumps({"progress": [name, step.done, step.total]}))
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None, pace="")
        yield lambda step: bar.update(
            task, completed=step.done, total=step.total, pace=describe_pace(step)
        )


def describe_pace(step: "Progress") -> str:
    """Facts a second and the time left, as people read them; empty before the first batch."""
    if step.seconds_left is None:
        return f"{step.resumed:,} were done before" if step.resumed else ""
    minutes, seconds = divmod(round(step.seconds_left), 60)
    hours, minutes = divmod(minutes, 60)
    left = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
    return f"{step.per_second:,.0f} facts/s, {left} left"
