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
from tiny_models import LATER_T5, SEQ2SEQ, make_model, save_model_folder, sentences

from lama_core.candidates.columns import Candidates
from lama_core.candidates.spelling import AFTER_SPACE
from lama_core.errors import UserError
from lama_core.models.cache import CACHE, load_model
from lama_core.models.registry import find_kind, open_model
from lama_core.models.sources.locations import LocatedModel
from lama_core.queries.blank_answers import query_model
from lama_core.scoring.blanks import fill, parse_query
from lama_core.types import Query

Models = Callable[..., Any]
FULL = Candidates("full", None)
TEXT = "[MASK] is the capital of [MASK], said Ann."


def tokens_of(model: Any, text: str) -> list[str]:
    ids = model.encode(parse_query(text)).token_ids
    return [token.removeprefix("▁") for token in model.tokenizer.convert_ids_to_tokens(list(ids))]


@pytest.mark.parametrize("family", SEQ2SEQ)
def test_each_blank_has_its_own_sentinel_and_what_follows_goes_on_without_a_break(
    family: str, tiny_model: Models
) -> None:
    tokens = tokens_of(tiny_model(family), "Paris, [MASK], [MASK].")
    assert [token for token in tokens if "extra_id" in token] == ["<extra_id_0>", "<extra_id_1>"]
    at = tokens.index("<extra_id_1>")
    assert tokens[at - 1 : at + 2] == [",", "<extra_id_1>", "."]
    assert tokens[tokens.index("<extra_id_0>") - 1] == ","


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


def test_umt5_with_a_head_of_its_own_is_not_scaled(tiny_model: Models) -> None:
    model, (plain, _) = tiny_model("umt5"), make_model("umt5")
    encoded = model.encode(parse_query("The capital of France is [MASK]."))
    ids, said = torch.tensor([encoded.token_ids]), torch.tensor([[0, model.mask_id]])
    with torch.no_grad():
        states = plain.decoder(
            input_ids=said, encoder_hidden_states=plain.encoder(input_ids=ids)[0]
        )[0]
        expected = (states[0, 1] @ plain.lm_head.weight.T).log_softmax(0)
    columns = FULL.columns(model.vocabulary)
    found = model.blank_log_probs([encoded], columns).log_probs[0]
    np.testing.assert_allclose(found, expected[columns.table(AFTER_SPACE).ids[:, 0]], atol=1e-4)


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


def test_a_folder_that_says_no_window_has_one(tmp_path: Path) -> None:
    folder = save_model_folder("mt5", tmp_path)
    config = json.loads((folder / "config.json").read_text())
    del config["n_positions"]
    (folder / "config.json").write_text(json.dumps(config))
    model = open_model("it", LocatedModel(folder, "tiny"), "seq2seq", "fp32")
    assert model.max_tokens == 1024


@pytest.mark.usefixtures("home")
def test_a_folder_with_the_sentencepiece_file_alone_has_its_sentinels_behind_the_pieces(
    tmp_path: Path,
) -> None:
    """As T5 1.1's folder, in which `<extra_id_0>` is 32099 and `<extra_id_99>` 32000."""
    import sentencepiece

    folder = tmp_path / "t5"
    folder.mkdir()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences()), model_prefix=str(folder / "spiece"), vocab_size=100,
        model_type="unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1, minloglevel=2,
    )  # fmt: skip
    (folder / "spiece.vocab").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"extra_ids": 100}))
    config = transformers.T5Config(**LATER_T5, vocab_size=228, architectures=["x"])
    transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    model = load_model(str(folder))
    assert model.vocabulary.sentinels == tuple(range(199, 99, -1))
    tokens = tokens_of(model, "Paris is in [MASK], said Ann.")
    assert tokens[tokens.index("<extra_id_0>") + 1] == ","
    assert tokens[-2:] == [".", "</s>"]
    CACHE.drop(str(folder), "fp32")


def test_words_in_context_are_read_off_the_encoder(tiny_model: Models, plain_model: Models) -> None:
    from lama_core.models.auxiliary.word_embeddings import hidden_states

    model, (plain, tokenizer) = tiny_model("t5"), plain_model("t5")
    text = "Paris is in France."
    found = hidden_states(model, [text], [[(0, 5)]])
    with torch.no_grad():
        states = plain.encoder(torch.tensor([tokenizer(text)["input_ids"]])).last_hidden_state
    np.testing.assert_allclose(found[0, 0], states[0, 0], atol=1e-4)
