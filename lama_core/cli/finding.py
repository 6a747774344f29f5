"""`extract` and `read`: the systems that find answers in texts, as runs beside those of models."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lama_core.candidates.lists import list_names
from lama_core.cli import options
from lama_core.datasets.corpus import STARTER
from lama_core.requests import read as read_request
from lama_core.runs.info import OWN_WORDS

if TYPE_CHECKING:
    from lama_core.probes.extraction.probing import ExtractRequest, ReadRequest
    from lama_core.probes.probing import Planned

EXTRACT = """
Example: python -m lama_core extract --dataset starter --relation P36 --limit 20
"""
READ = """
Example: python -m lama_core read --dataset starter --relation P36 --reader FOLDER
"""
CANDIDATES = (
    f"The words that are ranked: {', '.join(list_names(of_relations=True))}, file:PATH; common and "
    "full are the words of --model."
)
Candidates = Annotated[str, typer.Option(help=CANDIDATES)]
Words = Annotated[
    list[str] | None,
    typer.Option("--model", help="With candidates common: whose words; repeat it for several."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog=EXTRACT)(extract)
    app.command(epilog=READ)(read)


def extract(
    dataset: options.Dataset,
    relations: options.Relations = None,
    corpus: options.Corpus = STARTER,
    linking: Annotated[
        list[str] | None,
        typer.Option(
            help="How names are linked: naive (by exact string, RE_n) or oracle (RE_o); without it "
            "both."
        ),
    ] = None,
    candidates: Candidates = OWN_WORDS,
    models: Words = None,
    ranking: options.Ranking = "filtered",
    limit: options.Limit = None,
    out: options.Out = None,
    as_json: options.Json = False,
) -> None:
    """Extract relations from the sentences that state the facts: LAMA's RE_n and RE_o.

    It is trained on sentences of a corpus that hold other pairs than the one that is asked for.
    """
    from lama_core.probes.extraction.probing import ExtractRequest, plan_extract

    request = read_request(ExtractRequest, locals(), models=tuple(models or ()))
    _run(plan_extract, request, out, as_json=as_json)


def read(
    dataset: options.Dataset,
    readers: Annotated[
        list[str] | None,
        typer.Option(
            "--reader",
            help="A question-answering model's folder or hub name; repeat it for several.",
        ),
    ] = None,
    relations: options.Relations = None,
    corpus: options.Corpus = STARTER,
    candidates: Candidates = OWN_WORDS,
    models: Words = None,
    ranking: options.Ranking = "filtered",
    device: options.Device = None,
    limit: options.Limit = None,
    out: options.Out = None,
    as_json: options.Json = False,
) -> None:
    """Let a question-answering model find the answers in a corpus, as LAMA's DrQA."""
    from lama_core.cli.running import index_corpus
    from lama_core.probes.extraction.probing import ReadRequest, plan_read

    request = read_request(
        ReadRequest, locals(), models=tuple(models or ()), readers=tuple(readers or ())
    )
    index_corpus(request.corpus)
    _run(plan_read, request, out, as_json=as_json)


def _run(
    plan: "Callable[..., Planned]",
    request: "ExtractRequest | ReadRequest",
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """Make the runs that are planned, and print their scores."""
    from lama_core.cli.results import print_scores
    from lama_core.cli.running import make_together
    from lama_core.runs.spec import load_by_name

    runs = make_together(
        lambda on_progress: plan(
            request, load=partial(load_by_name, on_progress=on_progress), on_progress=on_progress
        ),
        out,
    )
    print_scores(runs, by="relation", ranking=request.ranking, as_json=as_json)
