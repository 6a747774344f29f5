"""Encoder-decoder models: their sentinels, the folders that are theirs, and what asks them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from data_files import change_json
from tiny_models import SEQ2SEQ, save_model_folder

from lama_core.candidates.columns import Candidates
from lama_core.errors import UserError
from lama_core.models.registry import find_kind, open_model
from lama_core.models.sources.locations import LocatedModel
from lama_core.queries.blank_answers import query_model
from lama_core.scoring.blanks import fill, parse_query
from lama_core.types import Query

Models = Callable[..., Any]
TEXT = "[MASK] is the capital of [MASK], said Ann."


@pytest.mark.parametrize("family", SEQ2SEQ)
def test_a_sentinel_in_a_text_is_text(family: str, tiny_model: Models) -> None:
    model = tiny_model(family)
    query = fill("[X] is in [Y] .", "<extra_id_0> <extra_id_1>")
    ids = model.encode(query).token_ids
    assert [number for number in ids if number in model.vocabulary.sentinels] == [model.mask_id]
    assert not set(model.vocabulary.encode("a <extra_id_3> b")) & set(model.vocabulary.sentinels)
    assert not any("extra_id" in word for word in model.vocabulary.single_words())


def test_more_blanks_than_sentinels_are_refused(tiny_model: Models) -> None:
    with pytest.raises(UserError, match=r"11 blanks, but .* has only 10 sentinel tokens"):
        tiny_model("t5").encode(Query(("",) * 12))


@pytest.mark.parametrize("family", SEQ2SEQ)
def test_a_later_blank_is_asked_with_the_first_answer_in_the_earlier_one(
    family: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    words = Candidates("x", ("Paris", "France", "London", "Rome"))
    first, second = query_model(model, parse_query(TEXT), words, gold="Paris|Parisland").blanks
    assert first.asked == TEXT
    filled = f"{first.predictions[0].token} is the capital of [MASK], said Ann."
    assert second.asked == filled
    (alone,) = query_model(model, parse_query(filled), words, gold="Parisland").blanks
    assert alone == second
    # The first is not asked as if the text ended before the second.
    (cut,) = query_model(model, parse_query("[MASK] is the capital of"), words, gold="Paris").blanks
    assert cut.predictions != first.predictions


def refused(folder: Path) -> str:
    with pytest.raises(UserError) as error:
        open_model("it", LocatedModel(folder, "tiny"), find_kind(folder), "fp32")
    return str(error.value)


def test_a_model_that_no_blank_can_be_shown_to_is_refused_before_its_weights_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T5Gemma's released tokenizer is Gemma's, which has no sentinels."""
    gemma = save_model_folder("t5gemma", tmp_path / "gemma")
    tokenizer = json.loads((gemma / "tokenizer.json").read_text())
    for added in tokenizer["added_tokens"]:
        added["content"] = added["content"].replace("extra_id", "unused")
    (gemma / "tokenizer.json").write_text(json.dumps(tokenizer))
    settings = json.loads((gemma / "tokenizer_config.json").read_text())
    for name in ("additional_special_tokens", "extra_special_tokens"):
        settings.pop(name, None)
    (gemma / "tokenizer_config.json").write_text(json.dumps(settings))
    monkeypatch.setattr(
        transformers.T5GemmaForConditionalGeneration,
        "from_pretrained",
        lambda *_arguments, **_options: pytest.fail("the weights were read"),
    )
    assert "has no <extra_id_0>, the token that marks a blank" in refused(gemma)


def test_a_decoder_that_nothing_says_the_start_of_is_refused(tmp_path: Path) -> None:
    folder = save_model_folder("t5", tmp_path)
    change_json(folder / "config.json", decoder_start_token_id=None)
    (folder / "generation_config.json").unlink(missing_ok=True)
    assert refused(folder) == "it: its config.json has no decoder_start_token_id."


def test_words_in_context_are_read_off_the_encoder(tiny_model: Models, plain_model: Models) -> None:
    from lama_core.models.auxiliary.word_embeddings import hidden_states

    model, (plain, tokenizer) = tiny_model("t5"), plain_model("t5")
    text = "Paris is in France."
    found = hidden_states(model, [text], [[(0, 5)]])
    with torch.no_grad():
        states = plain.encoder(torch.tensor([tokenizer(text)["input_ids"]])).last_hidden_state
    np.testing.assert_allclose(found[0, 0], states[0, 0], atol=1e-4)
