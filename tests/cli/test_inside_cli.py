"""`inspect` on the command line: its JSON, tables and mistakes."""

import pytest
from calling import printed, told

from lama_core.errors import UserError
from lama_core.queries.cloze import ClozeRequest
from lama_core.queries.lenses.table import InspectRequest
from lama_core.requests import arguments

pytestmark = pytest.mark.usefixtures("home")
TEXT = "The capital of Norway is ___."


def test_layers_are_told_of_each_model(models: tuple[str, ...]) -> None:
    request = InspectRequest(models=models[1::2], text=TEXT, gold="Oslo")
    asked = ClozeRequest(models=models[1::2], text=TEXT, gold="Oslo")
    found, plain = (told(*arguments(one)) for one in (request, asked))
    assert found["text"] == plain["text"] and len(found["models"]) == 2
    for model, same in zip(found["models"], plain["models"], strict=True):
        assert model["kind"] == same["kind"]
        blank = same["blanks"][0]
        assert [one["layer"] for one in model["layers"]] == [0, 1, 2]
        assert model["layers"][-1]["first"] == blank["predictions"][0]["token"]
        gold = next(one for one in model["words"] if one["gold"])
        assert gold["ranks"][-1] == blank["gold"]["rank"]


def test_tokens_are_told_of_each_model(models: tuple[str, ...]) -> None:
    request = InspectRequest(
        models=models[1::2], text=TEXT, lens="tokens", method="gradients", answer="Rome", steps=16
    )
    for model in told(*arguments(request))["models"]:
        found = model["attribution"]
        assert found["word"] == "Rome" and found["method"] == "gradients"
        values = [one["value"] for one in found["tokens"] if one["value"] is not None]
        assert found["sum"] == pytest.approx(sum(values))
        assert found["steps"] == 16
        difference = abs(found["log_prob"] - found["baseline"])
        assert found["completeness_error"] == pytest.approx(abs(found["gap"]) / difference)
        assert found["gap"] == pytest.approx(found["sum"] - (found["log_prob"] - found["baseline"]))


def test_tables_have_a_row_a_layer_and_a_row_a_token(models: tuple[str, ...]) -> None:
    words = ("inspect", TEXT, *models[:2])
    layers = [line.split()[0] for line in printed(*words).splitlines() if line.strip()]
    assert [one for one in layers if one in ("2", "1", "embeddings")] == ["2", "1", "embeddings"]
    shown = printed(*words, "--lens", "tokens")
    lines = [line.split() for line in shown.splitlines()]
    assert ["___"] in lines and any(line[:1] == ["capital"] for line in lines)
    assert "The tokens' values sum" not in shown, "erasure has no sum to check"
    shown = printed(*words, "--lens", "tokens", "--method", "gradients", "--steps", "8")
    assert "steps, the tokens' values sum to" in " ".join(shown.split())
    assert "with 8 steps" in " ".join(shown.split())


def test_a_trace_is_told_of_each_model(models: tuple[str, ...]) -> None:
    request = InspectRequest(
        models=models[1::2], text=TEXT, lens="trace", subject="Norway", answer="Rome", draws=2,
        restore="mlp", window=2,
    )  # fmt: skip
    for model in told(*arguments(request))["models"]:
        assert (model["answer"], model["subject"], model["restore"]) == ("Rome", "Norway", "mlp")
        assert (model["draws"], model["seed"], model["window"]) == (2, 1, 2)
        assert 0 <= model["corrupted"] <= 1 and 0 <= model["prob"] <= 1 and model["noise"] > 0
        assert [one["layer"] for one in model["layers"]] == [1, 2]
        assert {len(one["probs"]) for one in model["layers"]} == {len(model["tokens"])}
        assert any(one["subject"] for one in model["tokens"])
        assert not all(one["subject"] for one in model["tokens"])


def test_parts_of_a_logit_are_told_of_each_model(models: tuple[str, ...]) -> None:
    for against in (None, "Oslo"):
        request = InspectRequest(
            models=models[1::2], text=TEXT, lens="logit", answer="Rome", against=against
        )
        for model in told(*arguments(request))["models"]:
            assert model["answer"] == "Rome" and model.get("against") == against
            total = sum(one["value"] for one in model["parts"])
            assert total == pytest.approx(model["logit"], abs=1e-3)
            kinds = [one["part"] for one in model["parts"]]
            assert kinds == ["embedding", *["attention", "mlp"] * 2, "remainder", "bias"]
            assert [one["layer"] for one in model["parts"]] == [0, 1, 1, 2, 2, None, None]


def test_a_trace_and_parts_have_tables(models: tuple[str, ...]) -> None:
    words = ("inspect", TEXT, *models[:2], "--answer", "Rome")
    shown = printed(*words, "--lens", "trace", "--subject", "Norway", "--draws", "2")
    assert "prob of Rome" in shown and "with noise on Norway" in shown and "*norway" in shown
    assert "the state after one layer restored" in " ".join(shown.split())
    shown = printed(*words, "--lens", "logit", "--against", "Oslo")
    assert "logit of Rome minus that of Oslo" in shown
    assert all(part in shown for part in ("attention adds", "embedding", "remainder", "bias"))


@pytest.mark.parametrize(
    ("words", "fault"),
    (
        (("--method", "gradients"), "--method needs --lens tokens"),
        (("--lens", "trace"), "--lens trace needs --subject"),
        (("--subject", "Norway"), "--subject needs --lens trace"),
        (("--lens", "trace", "--subject", "Peru"), "doesn't contain the subject 'Peru'"),
        (("--lens", "trace", "--subject", "Norway", "--window", "3"), "--window needs --restore"),
        (("--lens", "tokens", "--against", "Oslo"), "--against needs --lens logit"),
        (("--context", "both"), "Unknown option: --context"),
        (("--method", "erasur"), 'Did you mean "erasure"'),
        (("--lens", "tokens", "--method", "gradients", "--steps", "7"), "steps can't be 7"),
    ),
)
def test_mistakes_are_one_sentence(words: tuple[str, ...], fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        printed("inspect", TEXT, *words)
