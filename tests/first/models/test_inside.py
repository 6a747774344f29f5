"""The answer at each layer, and what each token adds to it, against plain computations.

Of the layers: transformers' own hidden states through what stands behind the last one, by hand for
each family. Of the tokens: captum's integrated gradients, and plain passes without them.
"""

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from captum.attr import LayerIntegratedGradients
from families import open_small
from tiny_models import FAMILIES

from lama_core.candidates.columns import Candidates
from lama_core.candidates.spelling import AFTER_SPACE
from lama_core.errors import UserError
from lama_core.models.protocols import BLANK, MAX_ERROR_SHARE, Attribution, Encoded
from lama_core.scoring.blanks import parse_query
from lama_core.types import Query

Models = Callable[..., Any]
FULL = Candidates("full", None)
QUERY = parse_query("The capital of France, said Ann, is [MASK].")
# What stands behind the last layer of transformers' own models, by hand.
HEADS: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    "bert-cased": lambda m, h: m.cls(h),
    "bert-uncased": lambda m, h: m.cls(h),
    "distilbert": lambda m, h: m.vocab_projector(
        m.vocab_layer_norm(m.activation(m.vocab_transform(h)))
    ),
    "roberta": lambda m, h: m.lm_head(h),
    "xlm-roberta": lambda m, h: m.lm_head(h),
    "albert": lambda m, h: m.predictions(h),
    "electra": lambda m, h: m.generator_lm_head(m.generator_predictions(h)),
    "mpnet": lambda m, h: m.lm_head(h),
    "deberta": lambda m, h: m.cls(h),
    "modernbert": lambda m, h: m.decoder(m.head(m.model.final_norm(h))),
    "gpt2": lambda m, h: m.lm_head(m.transformer.ln_f(h)),
    "pythia": lambda m, h: m.lm_head(m.gpt_neox.final_layer_norm(h)),
    "opt": lambda m, h: m.lm_head(
        m.model.decoder.project_out(m.model.decoder.final_layer_norm(h))
    ),
    "llama": lambda m, h: m.lm_head(m.model.norm(h)),
    "smollm2": lambda m, h: m.lm_head(m.model.norm(h)),
    "qwen2": lambda m, h: m.lm_head(m.model.norm(h)),
    "t5": lambda m, h: m.lm_head(m.decoder.final_layer_norm(h) * m.config.d_model**-0.5),
    "t5-v1.1": lambda m, h: m.lm_head(m.decoder.final_layer_norm(h)),
    "mt5": lambda m, h: m.lm_head(m.decoder.final_layer_norm(h)),
    "gemma2": lambda m, h: 30 * torch.tanh(m.lm_head(m.model.norm(h)) / 30),
}  # fmt: skip


def encode(model: Any) -> Encoded:
    """What the model is shown of the query."""
    return model.encode(Query(QUERY.parts[:2]) if model.kind == "causal" else QUERY, "left")


def plain_states(model: Any, plain: Any, ids: Sequence[int]) -> list[torch.Tensor]:
    """transformers' hidden states at the blank, [1, dim] each, and behind them its logits there."""
    inputs = {name: one for name, one in model.inputs_of(torch.tensor([ids])).items()}
    with torch.no_grad():
        output = plain(**inputs, output_hidden_states=True)
    if model.kind == "seq2seq":
        at, states = -1, output.decoder_hidden_states
    else:
        mask = model.tokenizer.mask_token_id
        at = ids.index(mask) if model.kind == "masked" else -1
        states = output.hidden_states
    return [*(one[0, [at]] for one in states), output.logits[0, [at]]]


def check_layers(model: Any, plain: Any, head: Callable[[Any, torch.Tensor], torch.Tensor]) -> None:
    """The rows are the head on the hidden states; the last is the model's own answer."""
    encoded = encode(model)
    columns = FULL.columns(model.vocabulary)
    ids = columns.table(AFTER_SPACE).ids[:, 0]
    *states, own = plain_states(model, plain, list(encoded.token_ids))
    with torch.no_grad():
        # The last of transformers' states is normalised already in most families.
        rows = [*(head(plain, one) for one in states[:-1]), own]
    expected = torch.cat(rows).log_softmax(-1).numpy()
    found = model.layer_log_probs(encoded, columns, [[7], [8, 9]])
    np.testing.assert_allclose(found.log_probs, expected[:, ids], atol=1e-4)
    np.testing.assert_allclose(found.words[:, 0], expected[:, 7], atol=1e-4)
    both = np.logaddexp(expected[:, 8], expected[:, 9])
    np.testing.assert_allclose(found.words[:, 1], both, atol=1e-4)
    asked = model.blank_log_probs([encoded], columns).log_probs
    np.testing.assert_allclose(found.log_probs[-1], asked[0], atol=1e-4)


@pytest.mark.parametrize("family", [one for one in HEADS if one in FAMILIES])
def test_each_layers_answer_is_the_head_on_its_hidden_state(
    family: str, tiny_model: Models, plain_model: Models
) -> None:
    check_layers(tiny_model(family), plain_model(family)[0], HEADS[family])


def test_a_cap_on_the_logits_is_part_of_the_head(tmp_path: Path) -> None:
    model, plain = open_small("causal", "gemma2", tmp_path)
    check_layers(model, plain, HEADS["gemma2"])


def log_prob(model: Any, encoded: Encoded, token: int) -> float:
    columns = FULL.columns(model.vocabulary)
    at = columns.table(AFTER_SPACE).ids[:, 0].tolist().index(token)
    return float(model.blank_log_probs([encoded], columns).log_probs[0, at])


@pytest.mark.parametrize("family", ("bert-cased", "roberta", "gpt2", "llama", "t5"))
def test_erasure_is_the_difference_to_the_text_without_the_token(
    family: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    encoded = encode(model)
    token = model.vocabulary.pieces("Rome")[0]
    found = model.erased(encoded, [token])
    whole = log_prob(model, encoded, token)
    assert found.log_prob == pytest.approx(whole, abs=1e-4)
    before, after = model.vocabulary.frame
    ids = list(encoded.token_ids)
    end = len(ids) if model.kind == "causal" else len(ids) - len(after)
    expected = []
    for at in range(len(before), end):
        if model.kind != "causal" and at == encoded.positions[0]:
            expected.append(math.nan)
            continue
        if model.kind == "masked":
            less = replace(encoded, token_ids=(*ids[:at], model.mask_id, *ids[at + 1 :]))
        else:
            less = replace(encoded, token_ids=(*ids[:at], *ids[at + 1 :]))
            less = replace(less, positions=(len(ids) - 2,))
        expected.append(whole - log_prob(model, less, token))
    if model.kind == "causal":
        expected.append(math.nan)
    np.testing.assert_allclose(found.values, expected, atol=1e-4)
    assert len(found.tokens) == len(expected)
    assert [token == BLANK for token in found.tokens] == np.isnan(expected).tolist()


@pytest.mark.parametrize("family", ("bert-cased", "distilbert", "gpt2", "deberta"))
def test_gradients_are_captums_with_the_same_steps_and_rule(
    family: str, tiny_model: Models, plain_model: Models
) -> None:
    """Also with few steps, where the sum is off: captum's default rule is Gauss-Legendre, too."""
    model, (plain, _) = tiny_model(family), plain_model(family)
    encoded = encode(model)
    token = model.vocabulary.pieces("Rome")[0]
    ids = torch.tensor([encoded.token_ids])
    at = encoded.positions[0]
    before, after = model.vocabulary.frame
    hidden = ids.clone()
    hidden[0, len(before) : ids.shape[1] - len(after)] = model.hidden_id

    def answer(given: torch.Tensor) -> torch.Tensor:
        return plain(input_ids=given).logits[:, at].log_softmax(-1)[:, token]

    gradients = LayerIntegratedGradients(answer, plain.get_input_embeddings())
    for steps in (11, 50, 500):
        found = model.integrated_gradients(encoded, [token], steps=steps)
        theirs = gradients.attribute(ids, hidden, n_steps=steps, internal_batch_size=50)
        theirs = theirs.detach().sum(-1)[0, len(before) : ids.shape[1] - len(after)].numpy()
        assert found.n_points == steps
        np.testing.assert_allclose(np.nan_to_num(found.values[: len(theirs)]), theirs, atol=2e-4)
    with torch.no_grad():
        assert found.baseline == pytest.approx(float(answer(hidden)), abs=1e-4)
    assert completeness_error(found) < 1e-3
    by_itself = model.integrated_gradients(encoded, [token])
    difference = found.log_prob - found.baseline
    assert completeness_error(by_itself) <= MAX_ERROR_SHARE and by_itself.n_points % 8 == 0
    np.testing.assert_allclose(
        by_itself.values, found.values, atol=MAX_ERROR_SHARE * abs(difference)
    )


def completeness_error(found: Attribution) -> float:
    """By how much the tokens' sum misses the difference, as a share of it."""
    assert found.baseline is not None
    difference = found.log_prob - found.baseline
    return abs(float(np.nansum(found.values)) - difference) / abs(difference)


def test_when_the_time_is_over_no_more_points_are_taken(tiny_model: Models) -> None:
    model = tiny_model("qwen2")
    encoded, over = encode(model), time.monotonic()
    assert model.integrated_gradients(encoded, [7], until=over).n_points == 8
    with pytest.raises(UserError, match=r"reached after 8 of 4,000 steps\. Choose fewer"):
        model.integrated_gradients(encoded, [7], steps=4000, until=over)


def test_a_text_that_begins_with_its_blank_has_nothing_to_hide(tiny_model: Models) -> None:
    for family in ("gpt2", "llama", "opt"):
        model = tiny_model(family)
        encoded = model.encode(parse_query("___ is a city."), "left")
        with pytest.raises(UserError, match="no context tokens to attribute to"):
            model.erased(encoded, [7])


def test_a_family_without_gradients_says_so(tmp_path: Path) -> None:
    for family in ("bart", "ibert"):
        model, _ = open_small("masked", family, tmp_path / family)
        with pytest.raises(UserError, match=f"{family} has no token gradients.*Use erasure"):
            model.integrated_gradients(encode(model), [7], steps=8)
        assert np.isfinite(model.erased(encode(model), [7]).log_prob)


def test_other_threads_answers_are_not_touched(tiny_model: Models) -> None:
    model = tiny_model("bert-cased")
    encoded, columns = encode(model), FULL.columns(model.vocabulary)
    own = model.blank_log_probs([encoded], columns).log_probs
    wrong: list[float] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            found = model.blank_log_probs([encoded], columns).log_probs
            wrong.append(float(np.abs(found - own).max()))

    other = threading.Thread(target=ask)
    other.start()
    for _ in range(5):
        model.layer_log_probs(encoded, columns, [])
        model.integrated_gradients(encoded, [7], steps=100)
    done.set()
    other.join()
    assert wrong and max(wrong) < 1e-4
