"""`--device`: on every command that loads models, and said beside what they answer."""

from calling import options

from lama_core.cli import make_app
from tools.documentation.site import commands_of

# Those of `models` and `data` that only fetch, list or remove; runs and results load nothing.
LOADING = {
    "cloze", "relation", "rank", "grid", "inspect", "batch", "sentences", "probe", "extract",
    "read", "statements", "trace", "ask", "generate", "reproduce", "analogy solve",
    "analogy score", "analogy questions", "analogy probe",
    "prompts select", "prompts fit", "prompts both-ways", "prompts paraphrase",
    "crawl", "entity",
}  # fmt: skip


def test_every_command_that_loads_models_takes_a_device() -> None:
    flags = {" ".join(words): options(command) for words, command in commands_of(make_app())}
    assert {name for name, known in flags.items() if "--device" in known} == LOADING
    assert {name for name, known in flags.items() if "--precision" in known} <= LOADING
