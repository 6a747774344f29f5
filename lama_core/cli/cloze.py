"""`cloze`: one text, several models, their answers side by side."""

from typing import Annotated

import typer

from lama_core.cli import options, show
from lama_core.requests import read

EXAMPLE = """
Example: python -m lama_core cloze "Dante was born in ___." --model minilm-mlm --model smollm2-135m
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=EXAMPLE)(cloze)


def cloze(
    text: Annotated[str, typer.Argument(help="A text with a blank: [MASK], <mask>, [Y], or ___.")],
    models: options.Models = None,
    top_k: options.TopK = 5,
    candidates: options.Candidates = "common",
    gold: options.Gold = None,
    context: Annotated[
        str | None,
        typer.Option(
            help="What a causal model sees: left, or both sides. Without it: left when only "
            "punctuation follows the blank, else both."
        ),
    ] = None,
    rescored: options.Rescored = 200,
    renormalise: options.Renormalise = False,
    precision: options.Precision = "fp32",
    as_json: options.Json = False,
) -> None:
    """Fill the blanks of a text with several models, side by side."""
    from lama_core.asking import settings
    from lama_core.asking.blanks import parse_query
    from lama_core.probes.cloze.ask import ClozeRequest, ask_all

    chosen = read(ClozeRequest, locals(), models=models or (settings.DEFAULT_MODEL,))
    query = parse_query(text)
    with show.progress() as on_progress:
        opened = settings.load_models(chosen, on_progress)
    words = settings.choose_candidates(chosen, opened)
    answer = ask_all(
        opened,
        query,
        words,
        top_k=top_k,
        gold=gold,
        context=chosen.context,
        renormalise=renormalise,
        n_rescored=rescored,
    )
    if as_json:
        show.print_json(answer.to_json())
        return
    for number in range(query.n_blanks):
        for one in answer.models:
            which = f", blank {number + 1}" if query.n_blanks > 1 else ""
            seen = f"context {one.context}, {one.n_candidates:,} candidates ({words.name})"
            blank = one.blanks[number]
            if number and blank.asked != query.text():
                which += f", asked as {blank.asked!r}"
            show.print_answers(blank, f"{one.name}{which}: {seen}")
            print()
