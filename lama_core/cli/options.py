"""Options that several commands share, with what their help says."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it; without it, only say what would go.")]
Out = Annotated[Path | None, typer.Option(help="Folder of the runs; by default the user's own.")]

# Who is asked, and how.
Model = Annotated[str, typer.Option(help="A model's name, folder or hub name.")]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model", help="A model's name, folder or hub name (owner/name); repeat it for several."
    ),
]
Precision = Annotated[
    str,
    typer.Option(
        help="fp32, bf16, or auto: fp32 on a processor, and on a graphics card bf16 where the "
        "weights are stored in it."
    ),
]


def _use_device(name: str | None) -> str | None:
    """The device that was typed, which this process computes on from now on."""
    if name is not None:
        from lama_core.models.devices import use_device

        use_device(name)
    return name


Device = Annotated[
    str | None,
    typer.Option(
        callback=_use_device,
        help="Where models compute: auto (a graphics card where there is one), cpu, cuda, cuda:N, "
        "mps, or spread (over all cards, and memory). Without it LAMA_DEVICE says, else auto.",
    ),
]
Context = Annotated[
    str | None,
    typer.Option(help="What a causal model sees: left (in runs the default), or both sides."),
]
Rescored = Annotated[
    int,
    typer.Option(
        help="Context both: how many words of the left context are rescored, beside the gold."
    ),
]

# What is asked.
Dataset = Annotated[str, typer.Option(help="A dataset's name, or a folder in LAMA's layout.")]
Relations = Annotated[
    list[str] | None,
    typer.Option("--relation", help="Only this relation; repeat it for several."),
]
Limit = Annotated[
    int | None, typer.Option(help="At most so many facts of each relation: the first of its file.")
]
Prompts = Annotated[
    Path | None,
    typer.Option(
        help="An imported set of prompts by its name, or a folder in LPAQA's layout; else the "
        "dataset's own prompts."
    ),
]
AnalogyTemplate = Annotated[
    str,
    typer.Option(
        help="to-what, to-as, rel-same, what-to, she-as, as-what, or your own with [A] [B] [C] [D]."
    ),
]

CORPUS = "starter (MiniLM-MLM's training text), a folder of texts, or a JSONL file"
OpenBook = Annotated[
    str | None,
    typer.Option(help=f"Put the nearest passage of this corpus before each query: {CORPUS}."),
]
Corpus = Annotated[str, typer.Option(help=f"The text to read: {CORPUS}.")]

# What is ranked, and how it is shown.
Candidates = Annotated[
    str, typer.Option(help="The words that are ranked: full, common, lama or file:PATH.")
]
Ranking = Annotated[
    str,
    typer.Option(
        help="filtered (without the other valid objects) or raw; runs keep both, this one is shown."
    ),
]
TopK = Annotated[int, typer.Option(help="How many answers to show.")]
Renormalise = Annotated[
    bool, typer.Option(help="Probabilities over the candidates, not the whole vocabulary.")
]

# How a statement, a sentence with an answer in it, is scored.
Aggregate = Annotated[
    str | None,
    typer.Option(help="sum of the tokens' log-probabilities, or their mean; by default sum."),
]
Part = Annotated[
    str | None,
    typer.Option(
        help="Which tokens count: of the whole statement (the default); of the answer; or, "
        "conditional, of the answer given what stands before it alone."
    ),
]
Hiding = Annotated[
    str | None,
    typer.Option(
        help="Of models that see both sides: within-word (the default) hides the later pieces of a "
        "token's word with it (Kauf and Ivanova 2023), original the token alone (Salazar et al. "
        "2020)."
    ),
]

# Of a study of prompts.
Own = Annotated[
    list[str] | None,
    typer.Option("--template", help="Your own prompt with [X] and [Y]; repeat it for several."),
]
Training = Annotated[
    Path | None,
    typer.Option(
        help="An imported set that has training pairs, or a folder of them (one P*.jsonl a "
        "relation); else half of the facts train."
    ),
]
PublishedCandidates = Annotated[
    str | None,
    typer.Option(
        help="full, common, lama or file:PATH; else the dataset's published list, or common."
    ),
]
TrainLimit = Annotated[
    int | None, typer.Option(help="At most so many training facts of each relation.")
]
Seed = Annotated[
    int | None,
    typer.Option(help="Draw the facts of a limit at random by this seed; else the first."),
]
Blind = Annotated[
    bool,
    typer.Option(
        help="Ensembles take in prompts that show a left-to-right model nothing of the subject: "
        "those with the blank before it."
    ),
]
Drop = Annotated[
    bool, typer.Option(help="Leave out training pairs that are test facts, instead of refusing.")
]
Executor = Annotated[str, typer.Option(help="local, or ray for a Ray cluster.")]
