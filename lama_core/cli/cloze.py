"""`cloze`: one text, several models, their answers side by side."""

from typing import Annotated

import typer

from lama_core.cli import show

EXAMPLE = """
Example: python -m lama_core cloze "Dante was born in ___." --model minilm-mlm --model smollm2-135m
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=EXAMPLE)(cloze)


def cloze(
    text: Annotated[str, typer.Argument(help="A text with a blank: [MASK], <mask>, [Y], or ___.")],
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model's name, folder or hub name (owner/name); repeat it to compare."),
    ] = None,
    top_k: Annotated[int, typer.Option(help="How many answers to show.")] = 5,
    candidates: Annotated[
        str, typer.Option(help="The words that are ranked: full, common, lama or file:PATH.")
    ] = "common",
    gold: Annotated[
        str | None, typer.Option(help="The word that should be there: its rank is shown.")
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            help="What a causal model sees: left, or both sides. Without it: left when only "
            "punctuation follows the blank, else both."
        ),
    ] = None,
    rescored: Annotated[
        int, typer.Option(help="Context both: how many words of the left context are rescored.")
    ] = 200,
    renormalise: Annotated[
        bool, typer.Option(help="Probabilities over the candidates, not the whole vocabulary.")
    ] = False,
    precision: Annotated[str, typer.Option(help="fp32, bf16, or auto.")] = "fp32",
    json: Annotated[bool, typer.Option(help="Print JSON.")] = False,
) -> None:
    """Fill the blanks of a text with several models, side by side."""
    from lama_core.asking import settings
    from lama_core.asking.blanks import parse_query
    from lama_core.probes.cloze.ask import ClozeRequest, ask_all

    query = parse_query(text)
    chosen = ClozeRequest(
        text=text,
        models=tuple(model or [settings.DEFAULT_MODEL]),
        top_k=top_k,
        candidates=candidates,
        gold=gold,
        context=settings.parse_context(context),
        n_rescored=rescored,
        renormalise=renormalise,
        precision=settings.parse_precision(precision),
    )
    with show.progress() as on_progress:
        models = settings.load_models(chosen, on_progress)
    words = settings.choose_candidates(chosen, models)
    answer = ask_all(
        models,
        query,
        words,
        top_k=top_k,
        gold=gold,
        context=chosen.context,
        renormalise=renormalise,
        n_rescored=rescored,
    )
    if json:
        show.print_json(answer.to_json())
        return
    for number in range(query.n_blanks):
        for one in answer.models:
            which = f", blank {number + 1}" if query.n_blanks > 1 else ""
            seen = f"context {one.context}, {one.n_candidates:,} candidates ({words.name})"
            show.print_answers(one.blanks[number], f"{one.name}{which}: {seen}")
            print()
