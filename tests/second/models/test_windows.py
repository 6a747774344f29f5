"""How many tokens fit is what the folder's files say, of every way to say it."""

import pytest
from families import WINDOW, make_family, tokenizer_of
from transformers import T5Config, T5ForConditionalGeneration

from lama_core.models.hf.transformer import window
from lama_core.models.protocols import Kind

COMPOSED: tuple[tuple[Kind, str], ...] = (
    ("causal", "gemma3"), ("causal", "gemma4"), ("causal", "got_ocr2"), ("masked", "modernvbert"),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "family"), COMPOSED)
def test_the_window_of_a_model_that_also_sees_is_that_of_its_text(kind: Kind, family: str) -> None:
    model = make_family(kind, family)
    assert not hasattr(model.config, "max_position_embeddings")
    assert window(model, tokenizer_of(kind)) == WINDOW


@pytest.mark.parametrize("family", ("roberta", "roberta-prelayernorm", "luke", "ibert", "xmod"))
def test_rows_for_padding_and_before_it_are_no_positions(family: str) -> None:
    tokenizer = tokenizer_of("masked")
    model = make_family("masked", family)
    assert window(model, tokenizer) == WINDOW - (tokenizer.pad_token_id + 1)


def test_mpnet_keeps_two_rows_whatever_the_padding_is() -> None:
    assert window(make_family("masked", "mpnet"), tokenizer_of("masked")) == WINDOW - 2


def test_a_model_without_a_table_of_positions_is_bounded_by_its_tokenizer_alone() -> None:
    tokenizer = tokenizer_of("masked")
    sizes = {"d_model": 16, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    t5 = T5ForConditionalGeneration(T5Config(vocab_size=100, **sizes))
    for model in (t5, make_family("masked", "funnel"), make_family("causal", "bloom")):
        assert window(model, tokenizer) == tokenizer.model_max_length > 10**9
