"""`--device`: on every command that loads models, and said beside what they answer."""

import json
import os
from pathlib import Path

import click
import pytest
import typer
from calling import invoke
from probe_fakes import CITIES, HashFiller

from lama_core.asking import settings
from lama_core.errors import UserError
from lama_core.models.devices import VARIABLE
from tools.bench import command as bench

# Those of `models` and `data` that only fetch, list or remove; runs and results load nothing.
LOADING = {
    "cloze", "probe", "read", "statements", "sentences", "reproduce", "bench",
    "analogy solve", "analogy score", "analogy probe",
    "prompts select", "prompts fit", "prompts both-ways", "prompts paraphrase", "data get",
}  # fmt: skip


def commands() -> dict[str, click.Command]:
    """Every command by the words that call it."""
    found: dict[str, click.Command] = {}
    waiting = [("", typer.main.get_command(make_app(bench.register)))]
    while waiting:
        name, command = waiting.pop()
        parts = getattr(command, "commands", {})
        waiting += [(f"{name} {part}".strip(), one) for part, one in parts.items()]
        if not parts:
            found[name] = command
    return found


def test_every_command_that_loads_models_takes_a_device() -> None:
    options = {
        name: {flag for one in command.params for flag in one.opts}
        for name, command in commands().items()
    }
    assert {name for name, flags in options.items() if "--device" in flags} == LOADING
    assert {name for name, flags in options.items() if "--precision" in flags} <= LOADING


class Elsewhere(HashFiller):
    """The fake model on a graphics card."""

    device = "cuda:1"
    precision = "bf16"

    def encode(self, query: object, context: object = "both") -> object:
        assert os.environ[VARIABLE] == "cpu"
        return super().encode(query, context)  # type: ignore[arg-type]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """Models are fakes on a card, whatever is typed; the device is LAMA_DEVICE's, and put back."""
    monkeypatch.setenv(VARIABLE, "auto")
    monkeypatch.setattr(
        settings, "load_model", lambda name, **_: Elsewhere(CITIES, name=name, pause=0.0)
    )
    return CliRunner()


WORDS = ["cloze", "Rome is ___ .", "--candidates", "full", "--device"]


def test_where_it_was_computed_is_said_beside_the_answers(asked: CliRunner) -> None:
    said = invoke([*WORDS, "cpu"])
    assert "candidates (full), bf16 on cuda:1\n" in said.output
    said = invoke([*WORDS, "cpu", "--json"])
    (model,) = json.loads(said.output)["models"]
    assert (model["precision"], model["device"]) == ("bf16", "cuda:1")


def test_fp32_on_a_processor_goes_without_saying(
    asked: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Elsewhere, "device", "cpu")
    monkeypatch.setattr(Elsewhere, "precision", "fp32")
    said = invoke([*WORDS, "cpu", "--json"])
    assert not {"precision", "device"} & set(json.loads(said.output)["models"][0])


@pytest.mark.parametrize("name", ["gpu", "cuda:99", ""])
def test_a_device_that_is_none_or_not_here_is_refused(asked: CliRunner, name: str) -> None:
    said = invoke([*WORDS, name])
    assert isinstance(said.exception, UserError)
    assert " device" in str(said.exception) and os.environ[VARIABLE] == "auto"


def test_a_wrong_device_of_the_environment_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "tpu")
    said = invoke(["cloze", "Rome is ___ ."])
    assert isinstance(said.exception, UserError)
    assert str(said.exception).startswith("'tpu' is no device: write auto, cpu, cuda")
