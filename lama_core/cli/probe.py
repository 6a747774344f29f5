"""`probe`: a dataset asked of some models, as runs that can be stopped and taken up again."""

from typing import Annotated

import typer

from lama_core.asking.prompts import LPAQA_SETS, PROMPT_SETS
from lama_core.candidates.lists import COMMON, list_names
from lama_core.cli import options
from lama_core.requests import read

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
    dataset: options.Dataset,
    models: options.Models = None,
    relations: options.Relations = None,
    prompts: Annotated[str, typer.Option(help=PROMPTS)] = "manual",
    candidates: Annotated[str, typer.Option(help=CANDIDATES)] = COMMON,
    ranking: options.Ranking = "filtered",
    context: options.Context = None,
    precision: options.Precision = "auto",
    device: options.Device = None,
    limit: options.Limit = None,
    open_book: options.OpenBook = None,
    out: options.Out = None,
    executor: options.Executor = "local",
    as_json: options.Json = False,
) -> None:
    """Ask a dataset of one or more models; the same command again takes up where it stopped."""
    from lama_core.cli.results import print_scores
    from lama_core.cli.running import index_corpus, plan_and_make
    from lama_core.probes.probing import ProbeRequest, plan

    request = read(ProbeRequest, locals(), models=models or ())
    if request.open_book is not None:
        index_corpus(request.open_book)
    runs = plan_and_make(lambda load: plan(request, load=load), out, executor)
    print_scores(runs, by="relation", ranking=request.ranking, as_json=as_json)
