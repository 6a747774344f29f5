"""`probe`: a dataset asked of some models, as runs that can be stopped and taken up again."""

from pathlib import Path
from typing import Annotated

import typer

from lama_core.asking.prompts import LPAQA_SETS, PROMPT_SETS
from lama_core.candidates.lists import list_names

EXAMPLE = """
Example: python -m lama_core probe --dataset starter --relation P36 --model minilm-mlm
"""
PROMPTS = (
    f"{', '.join(PROMPT_SETS)}; or LPAQA's {', '.join(LPAQA_SETS)} once its prompts are here, or a "
    "folder of such prompts."
)
CANDIDATES = f"The words that are ranked: {', '.join(list_names(of_relations=True))}, file:PATH"


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
    prompts: Annotated[str, typer.Option(help=PROMPTS)] = "manual",
    candidates: Annotated[str, typer.Option(help=CANDIDATES)] = "common",
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
    from lama_core.asking.executors import make_executor
    from lama_core.asking.ranking import RANKINGS
    from lama_core.asking.settings import parse_context, parse_precision
    from lama_core.cli.results import print_scores
    from lama_core.cli.running import make_runs, open_with
    from lama_core.errors import choose
    from lama_core.models.loader import chosen_precision
    from lama_core.probes.probing import ProbeRequest, plan

    request = ProbeRequest(
        dataset=dataset,
        models=tuple(model or ()),
        relations=tuple(relation or ()),
        prompts=prompts,
        candidates=candidates,
        ranking=choose(ranking, RANKINGS, "ranking"),
        context=parse_context(context),
        precision=chosen_precision(parse_precision(precision)),
        limit=limit,
    )
    workers = make_executor(executor)
    planned = open_with(lambda load: plan(request, load=load))
    runs = [make_runs([spec], out, workers)[0] for spec in planned.specs]
    print_scores(runs, by="relation", ranking=request.ranking, as_json=as_json)
