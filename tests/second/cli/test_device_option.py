"""`--device`: on every command that loads models, and said beside what they answer."""

import json
import os

import pytest
from calling import invoke, options
from probe_fakes import CITIES, HashFiller

from lama_core.cli import make_app
from lama_core.models.devices import VARIABLE
from lama_core.scoring import shared_fields
from tools.documentation.site import commands_of

# Those of `models` and `data` that only fetch, list or remove; runs and results load nothing.
LOADING = {
    "cloze", "relation", "rank", "grid", "inspect", "batch", "sentences", "probe", "extract",
    "read", "statements", "trace", "ask", "generate", "reproduce", "analogy solve",
    "analogy score", "analogy questions", "analogy probe",
    "prompts select", "prompts fit", "prompts both-ways", "prompts paraphrase", "data get",
    "crawl", "entity",
}  # fmt: skip


def test_every_command_that_loads_models_takes_a_device() -> None:
    flags = {" ".join(words): options(command) for words, command in commands_of(make_app())}
    assert {name for name, known in flags.items() if "--device" in known} == LOADING
    assert {name for name, known in flags.items() if "--precision" in known} <= LOADING


class Elsewhere(HashFiller):
    """The fake model on a graphics card."""

    device = "cuda:1"
    precision = "bf16"

    def encode(self, query: object, context: object = "both") -> object:
        assert os.environ[VARIABLE] == "cpu"
        return super().encode(query, context)  # type: ignore[arg-type]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models are fakes on a card, whatever is typed; the device is LAMA_DEVICE's, and put back."""
    monkeypatch.setenv(VARIABLE, "auto")
    monkeypatch.setattr(
        shared_fields, "load_model", lambda name, **_: Elsewhere(CITIES, name=name, pause=0.0)
    )


WORDS = ["cloze", "Rome is ___ .", "--candidates", "full", "--device"]


def test_where_it_was_computed_is_said_beside_the_answers(asked: None) -> None:
    said = invoke([*WORDS, "cpu"])
    assert "candidates (full), bf16 on cuda:1\n" in said.output
    said = invoke([*WORDS, "cpu", "--json"])
    (model,) = json.loads(said.output)["models"]
    assert (model["precision"], model["device"]) == ("bf16", "cuda:1")
