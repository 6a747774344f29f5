"""`ask` and `generate`: free-form answers."""

from lama_core.api import generation as api
from lama_core.api.generation import AskAnswer
from lama_core.cli import commands, output
from lama_core.cli.results import print_runs, runs_json
from lama_core.rounding import fixed


def print_asked(answer: AskAnswer) -> None:
    """Print a row for each model."""
    judged = any(one.match for one in answer.models)
    output.print_table(
        ("model", "answer", "log-prob", *["verdict"] * judged),
        [
            (
                one.name,
                one.generated.text.strip() or "(empty)",
                fixed(one.log_prob, 2),
                *([one.match.verdict] if one.match else []),
            )
            for one in answer.models
        ],
        title=answer.request.question,
    )
    for one in answer.models:
        for note in one.notes():
            print(f"{one.name}: {note}")


ask = commands.make(
    api.ask, print_asked, 'ask "What is the capital of Norway?" --model smollm2-135m --gold Oslo'
)
generate = commands.make(
    api.generate,
    print_runs,
    "generate --dataset starter --relation P36 --model smollm2-135m --limit 20",
    runs_json,
)
