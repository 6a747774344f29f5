"""`generate`: free-form answers to questions about facts."""

from lama_core.api import generation as api
from lama_core.cli import commands
from lama_core.cli.results import print_runs, runs_json

generate = commands.make(
    api.generate,
    print_runs,
    "generate --dataset starter --relation P36 --model smollm2-135m --limit 20",
    runs_json,
)
