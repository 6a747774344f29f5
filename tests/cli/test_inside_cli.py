"""`cloze --layers` and `--attribution` on the command line: their JSON, tables and mistakes."""

import json

import pytest
from calling import printed
from tiny_models import save_model_folder

from lama_core.errors import UserError
from lama_core.probes.cloze.inside import InsideRequest
from lama_core.requests import arguments

pytestmark = pytest.mark.usefixtures("home")
TEXT = "The capital of Norway is ___."


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Names of a masked and a causal model."""
    folder = tmp_path_factory.mktemp("models")
    return [str(save_model_folder(name, folder / name)) for name in ("bert-cased", "smollm2")]


def test_layers_and_tokens_are_told_of_each_model(models: list[str]) -> None:
    request = InsideRequest(
        models=tuple(models), text=TEXT, gold="Oslo", layers=True, attribution="gradients",
        explain="Rome", steps=16,
    )  # fmt: skip
    told = json.loads(printed(*arguments(request, "--json")))
    plain = json.loads(printed("cloze", TEXT, "--gold", "Oslo", *arguments(request)[1:5], "--json"))
    assert told["text"] == plain["text"] and len(told["models"]) == 2
    for model, asked in zip(told["models"], plain["models"], strict=True):
        assert model["kind"] == asked["kind"]
        blank = asked["blanks"][0]
        assert [one["layer"] for one in model["layers"]] == [0, 1, 2]
        assert model["layers"][-1]["first"] == blank["predictions"][0]["token"]
        gold = next(one for one in model["words"] if one["gold"])
        assert gold["ranks"][-1] == blank["gold"]["rank"]
        found = model["attribution"]
        assert found["word"] == "Rome" and found["method"] == "gradients"
        values = [one["value"] for one in found["tokens"] if one["value"] is not None]
        assert found["sum"] == pytest.approx(sum(values))
        assert found["gap"] == pytest.approx(found["sum"] - (found["log_prob"] - found["baseline"]))


def test_tables_have_a_row_a_layer_and_a_row_a_token(models: list[str]) -> None:
    shown = printed("cloze", TEXT, "--model", models[0], "--layers", "--attribution", "erasure")
    lines = [line.split() for line in shown.splitlines()]
    assert [line[0] for line in lines if line and line[0] in ("2", "1", "embeddings")] == [
        "2", "1", "embeddings",
    ]  # fmt: skip
    assert ["___"] in lines and any(line[:1] == ["capital"] for line in lines)
    assert "The tokens' values sum" not in shown, "erasure has no sum to check"
    shown = printed(
        "cloze", TEXT, "--model", models[0], "--attribution", "gradients", "--steps", "8"
    )
    assert "with every token hidden: a difference of" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("words", "fault"),
    (
        (("cloze", TEXT, "--explain", "Rome"), "--explain and --steps go with --attribution"),
        (("cloze", TEXT, "--steps", "9", "--layers"), "go with --attribution"),
        (("cloze", TEXT, "--layers", "--answer", "Rome"), "--layers and --attribution go with"),
        (("cloze", TEXT, "--layers", "--context", "both"), "leave out --relation"),
        (("cloze", "--relation", "P36", "--layers"), "go with a text"),
        (("cloze", TEXT, "--attribution", "erasur"), "did you mean 'erasure'"),
        (("cloze", TEXT, "--attribution", "gradients", "--steps", "7"), "7 steps"),
    ),
)
def test_mistakes_are_one_sentence(words: tuple[str, ...], fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        printed(*words)
