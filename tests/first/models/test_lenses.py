"""Causal tracing and the parts of a logit, against plain computations with transformers' models.

Tracing: one pass for each draw, layer and token, with hooks, as in the paper's code. Logit parts:
gradients of the logit times each module's output, with the scales of norms and activations fixed.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from families import open_small
from torch import nn
from torch.nn import functional

from lama_core.errors import UserError
from lama_core.models.protocols import Encoded, LogitParts, PartReader
from lama_core.scoring.blanks import parse_query
from lama_core.types import Query

Models = Callable[..., Any]
QUERY = parse_query("The capital of France, said Ann, is [MASK].")
SUBJECT = "France"
# Of transformers' models: the layers, and in a layer the modules of attention and MLP.
PARTS = {
    "gpt2": ("transformer.h", "attn", "mlp"),
    "llama": ("model.layers", "self_attn", "mlp"),
    "smollm2": ("model.layers", "self_attn", "mlp"),
    "qwen2": ("model.layers", "self_attn", "mlp"),
    "pythia": ("gpt_neox.layers", "attention", "mlp"),
    "opt": ("model.decoder.layers", "self_attn", "fc2"),
    "bert-cased": ("bert.encoder.layer", "attention.output.dense", "output.dense"),
    "bert-uncased": ("bert.encoder.layer", "attention.output.dense", "output.dense"),
    "roberta": ("roberta.encoder.layer", "attention.output.dense", "output.dense"),
    "xlm-roberta": ("roberta.encoder.layer", "attention.output.dense", "output.dense"),
    "electra": ("electra.encoder.layer", "attention.output.dense", "output.dense"),
    "mpnet": ("mpnet.encoder.layer", "attention.attn", "output.dense"),
    "distilbert": ("distilbert.transformer.layer", "attention", "ffn"),
    "modernbert": ("model.layers", "attn", "mlp"),
    "deberta": ("deberta.encoder.layer", "attention.output.dense", "output.dense"),
    "deberta-v3": ("deberta.encoder.layer", "attention.output.dense", "output.dense"),
}
# In a layer, the last projections of attention and MLP; "" is for families like BERT.
PROJECTIONS = {
    "": ("attention.output.dense", "output.dense"),
    "gpt2": ("attn.c_proj", "mlp.c_proj"),
    "llama": ("self_attn.o_proj", "mlp.down_proj"),
    "smollm2": ("self_attn.o_proj", "mlp.down_proj"),
    "qwen2": ("self_attn.o_proj", "mlp.down_proj"),
    "pythia": ("attention.dense", "mlp.dense_4h_to_h"),
    "opt": ("self_attn.out_proj", "fc2"),
    "mpnet": ("attention.attn.o", "output.dense"),
    "distilbert": ("attention.out_lin", "ffn.lin2"),
    "modernbert": ("attn.Wo", "mlp.Wo"),
}
UNSUPPORTED = {
    "albert": "all of its layers are the same modules",
    "t5": "it has an encoder and a decoder",
}


def encode(model: Any) -> Encoded:
    """What the model is shown of the query."""
    return model.encode(shown(model), "left")


def shown(model: Any) -> Query:
    return Query(QUERY.parts[:2]) if model.kind == "causal" else QUERY


def first(output: Any) -> torch.Tensor:
    """A module's hidden states, [row, token, dim] or [token, dim]."""
    return output if isinstance(output, torch.Tensor) else output[0]


def replaced(output: Any, state: torch.Tensor) -> Any:
    return state if isinstance(output, torch.Tensor) else (state, *output[1:])


def plain_trace(
    plain: Any,
    encoded: Encoded,
    subject: tuple[int, ...],
    word: list[int],
    names: tuple[str, str, str],
    part: str,
    window: int,
    draws: int,
    seed: int,
) -> tuple[float, float, np.ndarray]:
    """Probability without and with noise, and with each restoration: [layer, token]."""
    layers = list(plain.get_submodule(names[0]))
    restored = {
        "states": layers,
        "attention": [layer.get_submodule(names[1]) for layer in layers],
        "mlp": [layer.get_submodule(names[2]) for layer in layers],
    }[part]
    ids, n_tokens = torch.tensor([encoded.token_ids]), len(encoded.token_ids)
    table = plain.get_input_embeddings()
    noise = 3 * table.weight.std().item()
    drawn = np.random.RandomState(seed).randn(draws, len(subject), table.weight.shape[1])

    def run(
        draw: int | None, layers: range, token: int, clean: list[torch.Tensor]
    ) -> tuple[float, list[torch.Tensor]]:
        kept: dict[int, torch.Tensor] = {}

        def corrupt(_module: Any, _given: Any, output: torch.Tensor) -> torch.Tensor | None:
            if draw is None:
                return None
            output = output.clone()
            output[0, list(subject)] += torch.tensor(noise * drawn[draw], dtype=torch.float32)
            return output

        def restore(number: int) -> Callable[..., Any]:
            def hook(_module: Any, _given: Any, output: Any) -> Any:
                state = first(output)
                kept[number] = state.clone()
                if number not in layers:
                    return None
                state = state.clone()
                shape = state.shape
                state = state.reshape(n_tokens, -1)
                state[token] = clean[number].reshape(n_tokens, -1)[token]
                return replaced(output, state.reshape(shape))

            return hook

        hooks = [table.register_forward_hook(corrupt)]
        hooks += [m.register_forward_hook(restore(n)) for n, m in enumerate(restored)]
        with torch.no_grad():
            logits = plain(input_ids=ids).logits[0, encoded.positions[0]]
        for hook in hooks:
            hook.remove()
        return float(logits.softmax(0)[word].sum()), [kept[n] for n in range(len(restored))]

    nothing = range(0)
    prob, clean = run(None, nothing, 0, [])
    corrupted = [run(draw, nothing, 0, clean)[0] for draw in range(draws)]
    found = np.zeros((len(layers), n_tokens))
    for layer in range(len(layers)):
        around = range(max(0, layer - window // 2), min(len(layers), layer - (-window // 2)))
        for token in range(n_tokens):
            values = [run(draw, around, token, clean)[0] for draw in range(draws)]
            found[layer, token] = np.mean(values)
    return prob, float(np.mean(corrupted)), found


@pytest.mark.parametrize("family", PARTS)
@pytest.mark.parametrize(("part", "window"), (("states", 1), ("attention", 1), ("mlp", 2)))
def test_a_trace_equals_one_pass_for_each_draw_layer_and_token(
    family: str, part: Any, window: int, tiny_model: Models, plain_model: Models
) -> None:
    model, (plain, _) = tiny_model(family), plain_model(family)
    encoded = encode(model)
    subject = model.find_tokens(shown(model), encoded, SUBJECT)
    word = [7, 11]  # two tokens that write one word
    prob, corrupted, expected = plain_trace(
        plain, encoded, subject, word, PARTS[family], part, window, 2, 3
    )
    found = model.trace(
        encoded,
        subject,
        word,
        part=part,
        window=None if part == "states" else window,
        draws=2,
        seed=3,
    )
    assert found.window == window
    assert found.prob == pytest.approx(prob, abs=1e-4, rel=1e-3)
    assert found.corrupted == pytest.approx(corrupted, abs=1e-4, rel=1e-3)
    np.testing.assert_allclose(found.restored, expected, atol=1e-4, rtol=1e-3)
    assert np.ptp(found.restored) > 0


def test_when_the_time_is_over_the_finished_draws_count(
    tiny_model: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model("gpt2")
    encoded = encode(model)
    whole = model.trace(encoded, (2,), [7], draws=1)
    n_cells = whole.restored.size
    monkeypatch.setattr(type(model), "tokens_per_pass", (n_cells + 1) * len(encoded.token_ids))
    monkeypatch.setattr("lama_core.models.hf.tracing.CPU_TOKENS", 1 << 20)
    monkeypatch.setattr("lama_core.models.hf.tracing.DRAWS_AT_ONCE", 1)
    found = model.trace(encoded, (2,), [7], draws=3, until=time.monotonic())
    assert found.draws == 1
    np.testing.assert_allclose(found.restored, whole.restored, rtol=1e-3)
    assert found.corrupted == pytest.approx(whole.corrupted, rel=1e-3)


def test_the_subject_is_found_on_either_side_of_the_blank(tiny_model: Models) -> None:
    query = parse_query("[MASK] is the capital of France.")
    for family in ("bert-cased", "roberta"):
        model = tiny_model(family)
        encoded = model.encode(query, "both")
        at = model.find_tokens(query, encoded, "France")
        pieces = model.vocabulary.pieces("France")
        assert tuple(encoded.token_ids[position] for position in at) == pieces
        assert at == model.find_tokens(query, encoded, "france")
        with pytest.raises(UserError, match="doesn't contain the subject 'Peru'"):
            model.find_tokens(query, encoded, "Peru")
    model = tiny_model("gpt2")
    with pytest.raises(UserError, match="only the text to the left of the blank"):
        model.find_tokens(query, model.encode(query, "left"), "France")


class FixedNorm(nn.Module):
    """A layer or RMS norm whose scale has no gradient."""

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        norm = self.norm
        if type(norm).__name__.endswith("LayerNorm"):  # DeBERTa has its own class
            states = states - states.mean(-1, keepdim=True)
        epsilon = norm.eps if hasattr(norm, "eps") else norm.variance_epsilon
        scaled = states / (states.pow(2).mean(-1, keepdim=True) + epsilon).sqrt().detach()
        bias = getattr(norm, "bias", None)
        return norm.weight * scaled + (0.0 if bias is None else bias)


class FixedGelu(nn.Module):
    """GELU as a product with a factor that has no gradient."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return states * (functional.gelu(states) / states).detach()


def with_fixed_scales(family: str) -> Any:
    """transformers' own random model, with the scales of norms and the last activation fixed."""
    plain, _ = tiny_models.make_model(family)
    for name, module in list(plain.named_modules()):
        if type(module).__name__.endswith(("LayerNorm", "RMSNorm")):
            owner, _, label = name.rpartition(".")
            setattr(plain.get_submodule(owner), label, FixedNorm(module))
    if family in ("bert-cased", "deberta", "deberta-v3"):
        plain.cls.predictions.transform.transform_act_fn = FixedGelu()
    return plain


def plain_parts(family: str, plain: Any, encoded: Encoded, token: int) -> tuple[float, list[float]]:
    """The logit, and embedding, attention and MLP of each layer by gradients."""
    names = PARTS[family]
    layers = list(plain.get_submodule(names[0]))
    at = encoded.positions[0]
    leaves: list[tuple[torch.Tensor, int]] = []

    def leaf(state: torch.Tensor) -> torch.Tensor:
        state = state.detach().requires_grad_()
        leaves.append((state, at if state.ndim == 2 else -1))
        return state

    def before(_module: Any, given: Any, named: Any) -> Any:
        if given:
            return (leaf(given[0]), *given[1:]), named
        return given, {**named, "hidden_states": leaf(named["hidden_states"])}

    hooks = [layers[0].register_forward_pre_hook(before, with_kwargs=True)]
    for layer in layers:
        for name in names[1:]:
            hooks.append(
                layer.get_submodule(name).register_forward_hook(
                    lambda _module, _given, output: replaced(output, leaf(first(output)))
                )
            )
    with torch.enable_grad():
        logit = plain(input_ids=torch.tensor([encoded.token_ids])).logits[0, at, token]
        gradients = torch.autograd.grad(logit, [state for state, _ in leaves])
    for hook in hooks:
        hook.remove()
    found = [
        float(((gradient * state)[at] if state.ndim == 2 else (gradient * state)[0, at]).sum())
        for gradient, (state, _) in zip(gradients, leaves, strict=True)
    ]
    return float(logit), found


def values_of(found: LogitParts) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for part in found.parts:
        values.setdefault(part.part, []).append(part.value)
    return values


@pytest.mark.parametrize("family", PARTS)
def test_parts_add_up_to_the_models_own_logit(
    family: str, tiny_model: Models, plain_model: Models
) -> None:
    model, (plain, _) = tiny_model(family), plain_model(family)
    encoded = encode(model)
    with torch.no_grad():
        logits = plain(input_ids=torch.tensor([encoded.token_ids])).logits[0, encoded.positions[0]]
    found = model.logit_parts(encoded, [7])
    assert found.logit == pytest.approx(float(logits[7]), abs=1e-3)
    assert sum(part.value for part in found.parts) == pytest.approx(found.logit, abs=1e-6)
    shape = [(part.layer, part.part) for part in found.parts]
    layers = [(n, part) for n in (1, 2) for part in ("attention", "mlp")]
    assert shape == [(0, "embedding"), *layers, (None, "remainder"), (None, "bias")]
    bias = getattr(plain.get_output_embeddings(), "bias", None)
    own_bias = 0.0 if bias is None else bias[7].item()
    assert values_of(found)["bias"] == pytest.approx([own_bias], abs=1e-6)
    difference = model.logit_parts(encoded, [7], [9])
    other = model.logit_parts(encoded, [9])
    assert difference.logit == pytest.approx(float(logits[7] - logits[9]), abs=1e-3)
    for part, one, two in zip(difference.parts, found.parts, other.parts, strict=True):
        assert part.value == pytest.approx(one.value - two.value, abs=1e-4)
    chosen = model.logit_parts(encoded, [7, 9])  # two spellings
    assert chosen.logit == pytest.approx(max(found.logit, other.logit), abs=1e-6)


@pytest.mark.parametrize(
    "family", ("gpt2", "llama", "pythia", "opt", "bert-cased", "roberta", "deberta", "deberta-v3")
)
def test_parts_are_gradients_with_fixed_scales(
    family: str, tiny_model: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = with_fixed_scales(family)
    monkeypatch.setattr("transformers.models.roberta.modeling_roberta.gelu", FixedGelu())
    model = tiny_model(family)
    encoded = encode(model)
    logit, expected = plain_parts(family, plain, encoded, 7)
    found = model.logit_parts(encoded, [7])
    assert found.logit == pytest.approx(logit, abs=1e-3)
    # The gradients' order is that in which the modules ran.
    assert [part.value for part in found.parts[: len(expected)]] == pytest.approx(
        expected, abs=1e-3
    )


@pytest.mark.parametrize("family", PARTS)
def test_heads_and_neurons_are_summands_of_the_parts(
    family: str, tiny_model: Models, plain_model: Models
) -> None:
    """Against the inputs of the projections, recorded with hooks; and by zeroing a neuron."""
    model, (plain, _) = tiny_model(family), plain_model(family)
    encoded = encode(model)
    found = model.logit_parts(encoded, [7])
    config = plain.config
    assert [(one.layer, one.head) for one in found.heads] == [
        (layer, head)
        for layer in range(1, config.num_hidden_layers + 1)
        for head in range(1, config.num_attention_heads + 1)
    ]
    outs = PROJECTIONS.get(family, PROJECTIONS[""])
    last = plain.get_submodule(PARTS[family][0])[-1]
    inputs: list[torch.Tensor] = []
    projections = [last.get_submodule(name) for name in outs]
    hooks = [
        module.register_forward_pre_hook(lambda _module, given: inputs.append(given[0]))
        for module in projections
    ]
    with torch.no_grad():
        plain(input_ids=torch.tensor([encoded.token_ids]))
    for hook in hooks:
        hook.remove()
    at = encoded.positions[0]
    states = [value.reshape(-1, value.shape[-1])[at if value.numel() > value.shape[-1] else 0]
              for value in inputs]  # fmt: skip
    n_layers = config.num_hidden_layers
    of_last = [one.value for one in found.heads if one.layer == n_layers]
    attention = values_of(found)["attention"][-1]
    bias = getattr(projections[0], "bias", None)
    if bias is None or not bias.any():
        assert sum(of_last) == pytest.approx(attention, abs=1e-4)
    for one in found.neurons:
        assert 1 <= len(one.promoted) <= 5
        if one.layer == n_layers:
            assert one.activation == pytest.approx(float(states[1][one.neuron - 1]), abs=1e-4)
    values = [abs(one.value) for one in found.neurons]
    assert values == sorted(values, reverse=True) and len(values) == 10


@pytest.mark.parametrize("family", ("gpt2", "llama", "bert-cased"))
def test_a_head_and_a_neuron_add_what_their_directions_give(
    family: str, tiny_model: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last layer's summands: the change of the logit with fixed scales when one is removed."""
    model = tiny_model(family)
    encoded = encode(model)
    found = model.logit_parts(encoded, [7])
    plain = with_fixed_scales(family)
    at, names = encoded.positions[0], PROJECTIONS.get(family, PROJECTIONS[""])
    last = plain.get_submodule(PARTS[family][0])[-1]
    out = last.get_submodule(names[1])
    weight = out.weight.T if type(out).__name__ == "Conv1D" else out.weight
    kept: list[torch.Tensor] = []

    def leaf(_module: Any, _given: Any, output: torch.Tensor) -> torch.Tensor:
        kept.append(output.detach().requires_grad_())
        return kept[0]

    hook = out.register_forward_hook(leaf)
    with torch.enable_grad():
        logits = plain(input_ids=torch.tensor([encoded.token_ids])).logits[0, at]
        gradients = torch.stack(
            [torch.autograd.grad(one, kept, retain_graph=True)[0][0, at] for one in logits]
        )
        for one in (one for one in found.neurons if one.layer == plain.config.num_hidden_layers):
            added = one.activation * weight[:, one.neuron - 1].detach()
            raised = (gradients @ added).tolist()
            assert one.value == pytest.approx(raised[7], abs=1e-4)
            order = sorted(range(len(raised)), key=lambda word: -raised[word])
            shown = [word.strip() for word in model.vocabulary.show_text(order[:10])]
            assert one.promoted[0] == next(filter(None, shown))
    hook.remove()


@pytest.mark.parametrize("family", UNSUPPORTED)
def test_a_family_that_isnt_supported_gets_one_sentence(family: str, tiny_model: Models) -> None:
    model = tiny_model(family)
    assert isinstance(model, PartReader)
    encoded = encode(model)
    for look in (lambda: model.logit_parts(encoded, [7]), lambda: model.trace(encoded, (1,), [7])):
        with pytest.raises(UserError, match="Can't read the attention and MLPs of") as error:
            look()
        said = str(error.value)
        assert said.endswith(".") and ". " not in said and "supported families are GPT-2" in said
        assert UNSUPPORTED[family] in said


def test_logits_that_are_changed_after_the_table_are_refused(tmp_path: Path) -> None:
    model, _ = open_small("causal", "gemma2", tmp_path)
    with pytest.raises(UserError, match=r"gemma2.*logits aren't a product"):
        model.logit_parts(encode(model), [7])


def test_a_state_that_more_is_added_to_is_refused(tmp_path: Path) -> None:
    model, _ = open_small("causal", "granite", tmp_path, residual_multiplier=0.5)
    with pytest.raises(UserError, match=r"granite.*more than attention and MLPs changes"):
        model.logit_parts(encode(model), [7])
