"""Options that several commands of `prompts` share."""

from pathlib import Path
from typing import Annotated

import typer

Dataset = Annotated[str, typer.Option(help="A dataset's name, or a folder in LAMA's layout.")]
Relation = Annotated[
    list[str] | None, typer.Option(help="Only this relation; repeat it for several.")
]
Prompts = Annotated[
    Path | None,
    typer.Option(help="A folder in LPAQA's layout; else the dataset's own prompts."),
]
Own = Annotated[
    list[str] | None,
    typer.Option("--template", help="Your own prompt with [X] and [Y]; repeat it for several."),
]
Training = Annotated[
    Path | None,
    typer.Option(
        help="A folder of training pairs (one P*.jsonl a relation); else half of the facts train."
    ),
]
Model = Annotated[str, typer.Option(help="A model's name, folder or hub name.")]
Words = Annotated[
    str | None,
    typer.Option(
        help="full, common, lama or file:PATH; else the dataset's published list, or common."
    ),
]
Seen = Annotated[
    str | None, typer.Option(help="What a causal model sees: left (the default) or both.")
]
Counting = Annotated[
    str, typer.Option(help="raw (as in the paper) or filtered: without the other valid objects.")
]
Limit = Annotated[int | None, typer.Option(help="At most so many test facts of each relation.")]
TrainLimit = Annotated[
    int | None, typer.Option(help="At most so many training facts of each relation.")
]
Seed = Annotated[
    int | None,
    typer.Option(help="Draw the facts of a limit at random by this seed; else the first."),
]
Drop = Annotated[
    bool, typer.Option(help="Leave out training pairs that are test facts, instead of refusing.")
]
Out = Annotated[Path | None, typer.Option(help="Folder of the runs; by default the user's own.")]
Keep = Annotated[
    bool, typer.Option(help="Keep the distributions on disk, for other weights later.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
