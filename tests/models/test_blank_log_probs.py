"""The log-probabilities at a blank are those of a plain forward pass, in every family."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import CAUSAL, FAMILIES, MASKED, SEQ2SEQ, sentinel_of

from lama_core.candidates.columns import Candidates, Columns
from lama_core.candidates.spelling import AFTER_SPACE, places_of
from lama_core.errors import UserError
from lama_core.scoring.blanks import parse_query
from lama_core.types import Query

Models = Callable[..., Any]
FULL = Candidates("full", None)
TEXTS = (
    "The capital of France is [MASK].",
    "[MASK] is a city in Germany, said Ann.",
    'Anna (the [MASK]) was born in "[MASK]", in 1912.',
    "Zürich's [MASK]",
    "[MASK]",
    "She's a [MASK] - who didn't live in Kraków: Oslo is the capital of [MASK]; it's not Rome!",
)


def queries() -> list[Query]:
    return [parse_query(text) for text in TEXTS]


def plain_rows(plain: tuple[Any, Any], query: Query) -> torch.Tensor:
    """float32 [blank, vocabulary]: the tokenizer's own reading of the text with a word in each
    blank, that word's tokens replaced by a mask, the whole sequence through the model, log-softmax
    over everything."""
    model, tokenizer = plain
    ids = read_with(tokenizer, query, [tokenizer.mask_token_id] * query.n_blanks)
    with torch.no_grad():
        log_probs = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    return log_probs[torch.tensor(ids) == tokenizer.mask_token_id]


def read_with(tokenizer: Any, query: Query, hidden: list[int]) -> list[int]:
    """The tokens of a text with a word in each blank, the words' tokens replaced by these."""
    ids: list[int] = []
    encoded = tokenizer(query.text("Paris"), return_offsets_mapping=True)
    starts = [len(Query(query.parts[: n + 1]).text("Paris")) for n in range(query.n_blanks)]
    last = -1
    for token, (start, end) in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True):
        inside = [n for n, word in enumerate(starts) if start < word + 5 and end > word]
        if not inside:
            ids.append(token)
        elif inside[0] != last:
            last = inside[0]
            ids.append(hidden[last])
    return ids


def plain_next(plain: tuple[Any, Any], text: str) -> torch.Tensor:
    """float32 [1, vocabulary]: the next token's log-probabilities after a text."""
    model, tokenizer = plain
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    if ids.shape[1] == 0:
        start = tokenizer.bos_token_id
        ids = torch.tensor([[tokenizer.eos_token_id if start is None else start]])
    with torch.no_grad():
        return model(input_ids=ids.long()).logits[0, -1:].log_softmax(-1)


def plain_said(plain: tuple[Any, Any], query: Query) -> torch.Tensor:
    """float32 [1, vocabulary]: what a decoder says for the sentinel in the first blank's place.

    The tokenizer's own reading of the text with a word in each blank, and that word's tokens
    replaced by the blank's sentinel; what the decoder is shown is made from labels by the model.
    """
    model, tokenizer = plain
    ids = read_with(tokenizer, query, [sentinel_of(tokenizer, n) for n in range(query.n_blanks)])
    labels = torch.tensor([[sentinel_of(tokenizer), tokenizer.get_vocab()["▁Paris"]]])
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]), labels=labels).logits
    return logits[0, 1:].log_softmax(-1)


def ids_of(columns: Columns) -> np.ndarray:
    return columns.table(AFTER_SPACE).ids[:, 0]


@pytest.mark.parametrize("family", MASKED)
def test_masked_log_probs_equal_a_plain_forward_pass(
    family: str, tiny_model: Models, plain_model: Models
) -> None:
    model, plain = tiny_model(family), plain_model(family)
    columns = FULL.columns(model.vocabulary)
    expected = torch.cat([plain_rows(plain, query) for query in queries()]).numpy()
    expected = expected[:, ids_of(columns)]
    encoded = model.encode_all(queries(), "both")
    together = model.blank_log_probs(encoded, columns).log_probs
    np.testing.assert_allclose(together, expected, atol=1e-4)
    alone = [model.blank_log_probs([query], columns).log_probs for query in encoded]
    np.testing.assert_allclose(np.concatenate(alone), expected, atol=1e-4)
    backwards = model.blank_log_probs(encoded[::-1], columns).log_probs
    np.testing.assert_allclose(backwards, np.concatenate(alone[::-1]), atol=1e-4)


@pytest.mark.parametrize("family", CAUSAL)
def test_causal_log_probs_left_of_the_blank_equal_a_plain_forward_pass(
    family: str, tiny_model: Models, plain_model: Models
) -> None:
    model, plain = tiny_model(family), plain_model(family)
    columns = FULL.columns(model.vocabulary)
    asked = [query for query in queries() if query.n_blanks == 1]
    expected = torch.cat([plain_next(plain, query.parts[0].rstrip()) for query in asked]).numpy()
    encoded = model.encode_all(asked, "left")
    for order in (slice(None), slice(None, None, -1)):
        together = model.blank_log_probs(encoded[order], columns).log_probs
        np.testing.assert_allclose(together, expected[order][:, ids_of(columns)], atol=1e-4)


@pytest.mark.parametrize("family", SEQ2SEQ)
def test_what_a_decoder_says_for_a_blank_equals_a_plain_forward_pass(
    family: str, tiny_model: Models, plain_model: Models
) -> None:
    model, plain = tiny_model(family), plain_model(family)
    columns = FULL.columns(model.vocabulary)
    asked = [parse_query(text) for text in (*TEXTS, "Ann (the [MASK]) is in Rome", "([MASK])")]
    expected = torch.cat([plain_said(plain, query) for query in asked]).numpy()
    expected = np.stack([
        np.logaddexp.reduce(np.where(ids < 0, -np.inf, row[ids]), axis=1)
        for row, query in zip(expected, asked, strict=True)
        for ids in [columns.table(places_of(query)[0]).ids]
    ])  # fmt: skip
    encoded = model.encode_all(asked, "both")
    alone = [model.blank_log_probs([one], columns).log_probs for one in encoded]
    np.testing.assert_allclose(np.concatenate(alone), expected, atol=1e-4)
    for order in (slice(None), slice(None, None, -1)):
        together = model.blank_log_probs(encoded[order], columns).log_probs
        np.testing.assert_allclose(together, expected[order], atol=1e-4)
    assert model.notes == []


@pytest.mark.parametrize("family", FAMILIES)
def test_only_the_blanks_go_through_the_vocabulary_projection(
    family: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    rows: list[int] = []
    output = model.model.get_output_embeddings()
    handle = output.register_forward_hook(
        lambda _module, arguments, _output: rows.append(
            arguments[0].numel() // arguments[0].shape[-1]
        )
    )
    single = [query for query in queries() if query.n_blanks == 1]
    asked = queries() if model.kind == "masked" else single
    try:
        columns = FULL.columns(model.vocabulary)
        model.blank_log_probs(model.encode_all(asked, "left"), columns)
    finally:
        handle.remove()
    assert rows == [sum(query.n_blanks for query in asked)]


@pytest.mark.parametrize(
    "family", ("bert-cased", "roberta", "xlm-roberta", "electra", "mpnet", "deberta", "deberta-v3")
)
def test_the_last_layer_spares_all_but_the_blanks_where_it_can(
    family: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    shapes: list[tuple[int, ...]] = []
    last = model.model.base_model.encoder.layer[-1].intermediate.dense
    handle = last.register_forward_hook(
        lambda _module, arguments, _output: shapes.append(tuple(arguments[0].shape[:2]))
    )
    try:
        columns = FULL.columns(model.vocabulary)
        model.blank_log_probs(model.encode_all(queries(), "both"), columns)
    finally:
        handle.remove()
    assert shapes == [(sum(query.n_blanks for query in queries()), 1)]


@pytest.mark.parametrize("family", FAMILIES)
def test_probabilities_sum_to_at_most_one_over_the_full_vocabulary(
    family: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    log_probs = model.blank_log_probs(
        [model.encode(queries()[0], "left")], FULL.columns(model.vocabulary)
    ).log_probs
    total = float(np.exp(log_probs.astype(np.float64)).sum())
    assert total <= 1 + 1e-5
    if model.kind != "seq2seq":  # a random decoder likes to say its sentinel again
        assert total > 0.5  # special tokens and padding rows have the rest


@pytest.mark.parametrize("family", FAMILIES)
def test_bf16_gives_finite_log_probs_near_those_of_fp32(family: str, tiny_model: Models) -> None:
    exact, rough = tiny_model(family), tiny_model(family, "bf16")
    columns = FULL.columns(exact.vocabulary)
    encoded = exact.encode_all([queries()[0]], "left")
    wide = exact.blank_log_probs(encoded, columns).log_probs
    narrow = rough.blank_log_probs(encoded, columns).log_probs
    assert narrow.dtype == np.float32
    assert np.isfinite(narrow).all()
    assert rough.identity != exact.identity
    assert np.corrcoef(wide[0], narrow[0])[0, 1] > 0.95


@pytest.mark.parametrize("family", ("bert-cased", "gpt2"))
def test_weights_that_are_not_numbers_give_one_clear_sentence(
    family: str, tiny_model: Models, tmp_path: Any
) -> None:
    from tiny_models import open_family

    model = open_family(family, tmp_path / family)
    with torch.no_grad():
        next(model.model.parameters()).fill_(float("nan"))
    columns = FULL.columns(model.vocabulary)
    with pytest.raises(UserError, match=r"aren't finite numbers.*precision fp32"):
        model.blank_log_probs([model.encode(queries()[0], "left")], columns)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_longer_than_the_window_says_how_many_tokens_fit(
    family: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    query = parse_query("France " * 200 + "[MASK] .")
    with pytest.raises(UserError, match=r"has \d+ tokens, but .* takes at most 80"):
        model.encode(query, "left")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_that_just_fills_the_window_is_scored(
    family: str, tiny_model: Models, plain_model: Models
) -> None:
    model = tiny_model(family)
    columns = FULL.columns(model.vocabulary)
    query = parse_query("[MASK]")
    for n_words in range(1, 90):
        longer = Query(("France " * n_words, ""))
        try:
            model.encode(longer, "left")
        except UserError:
            break
        query = longer
    encoded = model.encode(query, "left")
    assert len(encoded.token_ids) >= 72
    scores = model.blank_log_probs([encoded], columns).log_probs
    plain = plain_model(family)
    expected = {
        "masked": lambda: plain_rows(plain, query),
        "causal": lambda: plain_next(plain, query.parts[0].rstrip()),
        "seq2seq": lambda: plain_said(plain, query),
    }[model.kind]()
    np.testing.assert_allclose(scores, expected.numpy()[:, ids_of(columns)], atol=1e-4)
