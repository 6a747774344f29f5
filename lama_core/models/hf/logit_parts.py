"""Direct logit attribution: the part of an answer's logit that each attention and MLP adds.

The hidden state at the blank is a sum, and everything up to the logit maps a sum to a sum once
these factors are fixed at the values that they have for this text:

    norm:        y = s w (x - mean(x)) + b    s: 1 over the standard deviation, or over the root
                                              mean square if the norm doesn't subtract the mean
    activation:  f(z) = (f(z) / z) z          in heads like BERT's

so that logit = embedding + sum over layers (attention + mlp) + remainder + bias. The remainder is
what the norms' and projections' biases add on the way to the logit, and rounding. The bias is that
of the table of logits. The logit is linear in the parts, so the difference of two answers is the
difference of their parts.
Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits" (direct path);
Meng et al. 2022, section 2, for attention and MLP as terms of the hidden state.
Departure: Parts of a logit
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn
from torch.nn import functional

from lama_core.errors import UserError
from lama_core.models.devices import run_or_refuse, to_cpu
from lama_core.models.hf.part_modules import ModelParts, find_parts, unsupported
from lama_core.models.hf.transformer import TOLERANCES
from lama_core.models.protocols import Encoded, LogitPart, LogitParts

if TYPE_CHECKING:
    from lama_core.models.hf.inspection import InspectableModel

# Largest accepted error of a norm as a scaling, relative to its output.
NORM_ERROR = {"fp32": 1e-3, "bf16": 0.03}


@dataclass(frozen=True, slots=True)
class Seen:
    """A module's input and output at the blank, float64 [dim] on the CPU; input None if unknown."""

    before: torch.Tensor | None
    after: torch.Tensor


class Terms:
    """The terms of a hidden state; each step maps all of them.

    vectors: float64 [term, dim]. names: layer and part of each term. constant: float64 [dim], what
    biases added.
    """

    def __init__(self, model: "InspectableModel", embedding: torch.Tensor) -> None:
        self.model = model
        self.names: list[tuple[int, str]] = [(0, "embedding")]
        self.vectors = embedding[None]
        self.constant = torch.zeros_like(embedding)

    @property
    def total(self) -> torch.Tensor:
        """The hidden state, [dim]."""
        return self.vectors.sum(0) + self.constant

    def add(self, layer: int, part: str, vector: torch.Tensor) -> None:
        """Add a term."""
        self.names.append((layer, part))
        self.vectors = torch.cat([self.vectors, vector[None]])

    def check(self, state: torch.Tensor) -> None:
        """Raise UserError if the terms don't add up to the model's hidden state, [dim]."""
        bound = TOLERANCES[self.model.precision] * max(float(state.std()), 1e-3)
        if state.shape != self.total.shape or float((self.total - state).abs().max()) > bound:
            raise self.refusal("more than attention and MLPs changes its hidden states")

    def gate(self, state: torch.Tensor) -> None:
        """Scale each dimension so that the terms add up to a state, [dim], after an activation."""
        total = self.total
        factor = torch.where(total.abs() > 1e-30, state / total, 0.0)
        self.vectors, self.constant = self.vectors * factor, self.constant * factor

    def project(self, module: nn.Module) -> None:
        """Apply a projection."""
        weight = _double(cast(torch.Tensor, module.weight))
        self.vectors, self.constant = self.vectors @ weight.T, weight @ self.constant
        self.constant = self.constant + _bias_of(module, self.constant)

    def normalise(self, module: nn.Module, after: torch.Tensor) -> None:
        """Apply a norm with its scale fixed. after: its output, [dim]."""
        given = getattr(module, "weight", None)
        weight = torch.ones_like(after) if given is None else _double(given)
        bias = _bias_of(module, after)
        target, best = after - bias, None
        for mean in (True, False):
            state = self.total - self.total.mean() if mean else self.total
            for factor in (weight, 1 + weight):  # Gemma's norms store their weight minus 1
                scaled = factor * state
                scale = (target @ scaled) / (scaled @ scaled).clamp(min=1e-300)
                error = float((scale * scaled - target).norm() / target.norm().clamp(min=1e-300))
                if best is None or error < best[0]:
                    best = error, scale * factor, mean
        assert best is not None
        if best[0] > NORM_ERROR[self.model.precision]:
            raise self.refusal("its norms aren't layer norms or RMS norms")
        _, factor, mean = best
        if mean:
            self.vectors = self.vectors - self.vectors.mean(1, keepdim=True)
            self.constant = self.constant - self.constant.mean()
        self.vectors, self.constant = self.vectors * factor, self.constant * factor + bias

    def refusal(self, why: str) -> UserError:
        """Return the error for a model whose logits can't be divided."""
        return unsupported(self.model.name, self.model.model, why)


def logit_parts(
    model: "InspectableModel",
    encoded: Encoded,
    answer: Sequence[int],
    against: Sequence[int] | None = None,
) -> LogitParts:
    """Return the parts of an answer's logit at the first blank.

    Args:
        model: The model.
        encoded: The text.
        answer: The tokens that can write the answer; the one with the largest logit is divided.
        against: The same for another answer, whose parts are subtracted.

    Raises:
        UserError: If the model's family isn't supported.
    """
    parts = find_parts(model.name, model.model)
    seen, logits = run_or_refuse(lambda: _run(model, parts, encoded))
    terms = _terms(model, parts, seen)
    table = model.model.get_output_embeddings()
    _check_logits(terms, table, logits)
    chosen = [_best(logits, answer), *([] if against is None else [_best(logits, against)])]
    rows = _double(table.weight[chosen])
    signs = torch.tensor([1.0, -1.0][: len(chosen)], dtype=torch.float64)
    direction = signs @ rows
    stored = _given_bias(table)
    bias = 0.0 if stored is None else float(signs @ _double(stored[chosen]))
    logit = float(signs @ logits[chosen])
    values = (terms.vectors @ direction).tolist()
    named = [
        LogitPart(layer, part, value)
        for (layer, part), value in zip(terms.names, values, strict=True)
    ]
    remainder = logit - bias - sum(values)  # the constant's part, and rounding
    return LogitParts(
        logit=logit,
        parts=(*named, LogitPart(None, "remainder", remainder), LogitPart(None, "bias", bias)),
        tokens=model.vocabulary.show_text(chosen[:1]) + model.vocabulary.show_text(chosen[1:]),
    )


def _run(
    model: "InspectableModel", parts: ModelParts, encoded: Encoded
) -> tuple[dict[nn.Module, Seen], torch.Tensor]:
    """Return what the modules read and returned at the blank, and the logits, [vocabulary]."""
    at = model.read_at(encoded)
    seen: dict[nn.Module, Seen] = {}
    modules = [
        module
        for layer in parts.layers
        for module in (layer.whole, layer.attention, layer.mlp, *layer.norms)
    ]

    def here(value: Any) -> torch.Tensor | None:
        state = value if isinstance(value, torch.Tensor) or value is None else value[0]
        if not isinstance(state, torch.Tensor) or state.ndim < 2:
            return None
        state = state.reshape(-1, state.shape[-1])  # one text; OPT's MLP drops the axis of texts
        return _double(state[at if len(state) > 1 else 0])

    def watch(module: nn.Module, given: Any, named: Any, output: Any) -> None:
        after = here(output)
        if after is not None:
            before = here(given[0] if given else named.get("hidden_states"))
            seen[module] = Seen(before, after)

    with model.watching(watch, (*modules, *parts.head)):
        where = (torch.tensor([0]), torch.tensor([at]))
        logits, _ = model.forward(where, **model.inputs_of(torch.tensor([encoded.token_ids])))
    model.check_numbers(logits)
    return seen, to_cpu(logits)[0].double()


def _terms(model: "InspectableModel", parts: ModelParts, seen: dict[nn.Module, Seen]) -> Terms:
    """Return the terms of the state that the table of logits is multiplied with."""
    first = seen.get(parts.layers[0].whole)
    if first is None or first.before is None:
        raise unsupported(
            model.name, model.model, "its layers don't pass on one hidden state per token"
        )
    terms = Terms(model, first.before)
    for number, layer in enumerate(parts.layers, start=1):
        for which, (part, module) in enumerate(
            (("attention", layer.attention), ("mlp", layer.mlp))
        ):
            if module not in seen or seen[module].after.shape != terms.constant.shape:
                raise terms.refusal("its attention or MLPs don't return hidden states")
            terms.add(number, part, seen[module].after)
            if layer.norms:
                terms.normalise(layer.norms[which], seen[layer.norms[which]].after)
        if layer.whole in seen:
            terms.check(seen[layer.whole].after)
    for module in parts.head:
        if module not in seen or seen[module].before is None:
            continue
        before = seen[module].before
        assert before is not None
        if before.shape != terms.constant.shape:
            raise terms.refusal("its head reads more than the last hidden state")
        terms.gate(before)
        weight = getattr(module, "weight", None)
        if weight is not None and weight.ndim == 2:
            terms.project(module)
        else:
            terms.normalise(module, seen[module].after)
    return terms


def _check_logits(terms: Terms, table: Any, logits: torch.Tensor) -> None:
    """Raise UserError if the logits aren't the table times the terms' sum."""
    product = functional.linear(terms.total.to(table.weight), table.weight, _given_bias(table))
    bound = TOLERANCES[terms.model.precision] * max(float(logits.std()), 1e-3)
    if float((to_cpu(product).double() - logits).abs().max()) > bound:
        raise terms.refusal("its logits aren't a product with the last hidden state")


def _best(logits: torch.Tensor, forms: Sequence[int]) -> int:
    """Return the token with the largest logit."""
    return max(forms, key=lambda token: float(logits[token]))


def _double(values: torch.Tensor) -> torch.Tensor:
    return to_cpu(values.detach()).double()


def _given_bias(module: nn.Module) -> torch.Tensor | None:
    bias = getattr(module, "bias", None)
    return bias if isinstance(bias, torch.Tensor) else None


def _bias_of(module: nn.Module, like: torch.Tensor) -> torch.Tensor:
    bias = _given_bias(module)
    return torch.zeros_like(like) if bias is None else _double(bias)
