"""The models that the project knows by name: what is said of them, and what can be had."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from tiny_models import tiny_tokenizer

from lama_core.candidates.columns import Candidates
from lama_core.candidates.spelling import AFTER_SPACE
from lama_core.errors import UserError
from lama_core.models.languages import language_note
from lama_core.models.protocols import KINDS
from lama_core.models.registry import open_model
from lama_core.models.sources.catalog import Entry, find_model, known_models
from lama_core.models.sources.locations import LocatedModel, fetch, locate
from lama_core.paths import DOCS
from lama_core.scoring.blanks import parse_query

HUB = [entry for entry in known_models() if entry.source.how == "hub"]
REFUSED = [entry for entry in known_models() if entry.source.how == "none"]


def named(entry: Entry) -> str:
    return entry.name


def test_a_name_a_title_and_a_place_mean_one_model() -> None:
    for names in (
        [entry.name for entry in known_models()],
        [entry.title for entry in known_models()],
        [entry.source.place for entry in known_models() if entry.source.place],
    ):
        assert sorted(set(names)) == sorted(names)
    for entry in known_models():
        assert find_model(entry.name) is find_model(entry.title) is entry


@pytest.mark.parametrize("entry", HUB, ids=named)
def test_what_a_model_of_the_hub_is_and_was_trained_on_is_said(entry: Entry) -> None:
    assert entry.kind in KINDS
    assert entry.n_parameters and entry.corpus and entry.corpus_size and entry.licence
    assert entry.cased is not None
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", entry.source.place)
    assert re.fullmatch(r"|petroni2019|arXiv:\d{4}\.\d{5}", entry.paper)


def test_a_model_of_the_hub_has_a_commit_but_for_those_that_the_documentation_names() -> None:
    pinned = {
        entry.name for entry in HUB if re.fullmatch(r"[0-9a-f]{40}", entry.source.revision or "")
    }
    others = {entry.name: entry.source.revision for entry in HUB if entry.name not in pinned}
    assert others == {"bert-large-cased": None, "t5-v1.1-base": "refs/pr/1"}
    documented = (DOCS / "adding.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in documented for name in others)


@pytest.mark.parametrize("entry", [one for one in HUB if one.source.n_bytes], ids=named)
def test_a_download_is_of_weights_of_16_or_32_bits(entry: Entry) -> None:
    assert entry.n_parameters and entry.source.n_bytes
    # Masks, and tables that are stored twice, are in the files and no parameters.
    assert 1.95 <= entry.source.n_bytes / entry.n_parameters <= 5


@pytest.mark.parametrize("entry", REFUSED, ids=named)
def test_a_model_that_nothing_runs_is_refused_with_the_reason(entry: Entry) -> None:
    assert entry.source.why and not entry.source.why.endswith(".")
    assert locate(entry) is None
    with pytest.raises(
        UserError, match=re.escape(f"{entry.title} can't be run here: {entry.source.why}")
    ):
        fetch(entry)


def test_weights_in_memory_are_four_or_two_bytes_a_parameter() -> None:
    entry = find_model("olmo-2-1b")
    assert entry.bytes_held("fp32") == 4 * 1_485_000_000
    assert entry.bytes_held("bf16") == 2 * 1_485_000_000
    assert find_model("lab/unknown").bytes_held("fp32") is None


def test_bart_as_it_is_published_is_asked_as_a_masked_model(tmp_path: Path) -> None:
    """It is stored without its output layer, which is its table of tokens."""
    tokenizer = tiny_tokenizer("roberta")
    torch.manual_seed(0)
    config = transformers.BartConfig(
        vocab_size=len(tokenizer), d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_ffn_dim=48, decoder_ffn_dim=48, encoder_attention_heads=4,
        decoder_attention_heads=4, max_position_embeddings=80, init_std=0.35,
        pad_token_id=tokenizer.pad_token_id, bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id, decoder_start_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    body = transformers.BartModel(config).eval()
    body.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = open_model("tiny-bart", LocatedModel(tmp_path, "tiny-bart"), "masked", "fp32")
    encoded = model.encode(parse_query("The capital of France is [MASK]."), "both")
    columns = Candidates("full", None).columns(model.vocabulary)
    with torch.no_grad():
        hidden = body(input_ids=torch.tensor([encoded.token_ids])).last_hidden_state
        plain = torch.log_softmax(hidden[0, encoded.positions[0]] @ body.shared.weight.T, dim=0)
    scores = model.blank_log_probs([encoded], columns)
    ids = columns.table(AFTER_SPACE).ids[:, 0]
    np.testing.assert_allclose(scores.log_probs[0], plain.numpy()[ids], atol=1e-4)


ENGLISH = find_model("minilm-mlm")
MANY = find_model("xlm-roberta-base")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The capital of France is .", ""),
        ("La capitale de la France est .", ""),  # the script alone is looked at
        ("I love 🙂 and .", ""),
        ("法国的首都是。", "Chinese characters"),
        ("日本の首都はです", "Japanese"),
        ("Столица Франции", "Cyrillic script"),
        ("😀😀  😀", "no words"),
    ],
)
def test_a_text_in_another_script_names_the_models_that_read_english(text: str, said: str) -> None:
    note = language_note(text, [ENGLISH, MANY])
    assert (said in note) if said else note == ""
    assert not said or (ENGLISH.title in note and MANY.title not in note)
    assert language_note(text, [MANY]) == ""
