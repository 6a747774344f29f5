"""`prompts`: list, mine, paraphrase, select, fit and analyse them (Jiang et al. 2020)."""

import typer

from lama_core.cli.prompts.analysing import analyse, both_ways
from lama_core.cli.prompts.making import list_prompts, mine, paraphrase
from lama_core.cli.prompts.studying import fit, select


def register(app: typer.Typer) -> None:
    """Add the command and its parts."""
    prompts = typer.Typer(no_args_is_help=True)
    example = "Example: python -m lama_core prompts "
    prompts.command("list", epilog=f"{example}list --dataset starter --relation P36")(list_prompts)
    prompts.command(
        "mine", epilog=f"{example}mine P36 --pairs pairs.jsonl --text my-text.txt --out mine"
    )(mine)
    prompts.command(
        "paraphrase", epilog=f'{example}paraphrase "[X] was born in [Y] ." --relation P19'
    )(paraphrase)
    prompts.command("analyse", epilog=f"{example}analyse lama-minilm_mlm-0123456789")(analyse)
    prompts.command("select", epilog=f"{example}select --dataset starter --relation P36")(select)
    prompts.command("fit", epilog=f"{example}fit --dataset starter --relation P36")(fit)
    prompts.command("both-ways", epilog=f"{example}both-ways starter-minilm_mlm --relation P36")(
        both_ways
    )
    app.add_typer(prompts, name="prompts", help="Mine, paraphrase, select and ensemble prompts.")
