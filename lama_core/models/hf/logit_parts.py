"""Direct logit attribution: what each attention, head, MLP and neuron adds to an answer's logit.

The outputs of the parts are added to the hidden state at the blank. All other steps to the logit
are linear, except for biases, if these factors are fixed at their values for this text:

    norm:        y = s w (x - mean(x)) + b    s: 1 over the standard deviation, or over the root
                                              mean square if the norm doesn't subtract the mean
    activation:  f(z) = (f(z) / z) z          in heads like BERT's

so that logit = embedding + sum over layers (attention + mlp) + remainder + bias. The remainder is
rounding, and what the biases of the norms and projections in these steps add to the logit. The bias
is the answer's bias in the output embeddings. The logit is linear in the parts, so the difference
of two answers' logits is the sum of the differences of their parts.

An attention's output is W z + c, where each attention head has different columns of W; an MLP's
output is sum over neurons (a_n v_n) + c, with a_n the neuron's activation and v_n a column. The
values of an attention's heads, or of an MLP's neurons, add up to the part's value without what c
adds to the logit. A neuron promotes the words whose logits a_n v_n raises most.
Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits" (direct path);
Meng et al. 2022, section 2 (attention and MLP as terms of the hidden state); Geva et al. 2022,
"Transformer Feed-Forward Layers Build Predictions by Promoting Concepts" (neurons).
Departure: Parts of a logit
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from lama_core.errors import UserError
from lama_core.models.devices import run_or_refuse, to_cpu
from lama_core.models.hf.hooks import HookedModel
from lama_core.models.hf.part_modules import ModelParts, find_parts, unsupported
from lama_core.models.hf.transformer import TOLERANCES
from lama_core.models.protocols import Encoded, HeadPart, LogitPart, LogitParts, NeuronPart

# Largest accepted difference between a norm's output and its scaled input, relative to the output.
NORM_ERROR = {"fp32": 1e-3, "bf16": 0.03, "bf16-weights": 1e-3}
N_NEURONS, N_PROMOTED = 10, 5


@dataclass(frozen=True, slots=True)
class Seen:
    """A module's input and output at the blank, float64 [dim] on the CPU; input None if unknown."""

    before: torch.Tensor | None
    after: torch.Tensor


@dataclass(frozen=True, slots=True)
class Scaling:
    """A norm or an activation as it acts on one text: a factor for each dimension, [dim].

    mean: whether the mean is subtracted first.
    """

    factor: torch.Tensor
    mean: bool = False

    def apply(self, states: torch.Tensor) -> torch.Tensor:
        """Return the scaled states, [..., dim]."""
        if self.mean:
            states = states - states.mean(-1, keepdim=True)
        return states * self.factor

    def back(self, direction: torch.Tensor) -> torch.Tensor:
        """Return the vector v, [dim], with v · x = direction · apply(x) for all states x."""
        direction = direction * self.factor
        return direction - direction.mean() if self.mean else direction


@dataclass(frozen=True, slots=True)
class Projection:
    """A product with a matrix, [out, in]."""

    weight: torch.Tensor

    def apply(self, states: torch.Tensor) -> torch.Tensor:
        """Return the projected states, [..., out]."""
        return states @ self.weight.T

    def back(self, direction: torch.Tensor) -> torch.Tensor:
        """Return the vector v, [in], with v · x = direction · apply(x) for all states x."""
        return direction @ self.weight


PathStep = Scaling | Projection


@dataclass(frozen=True, slots=True)
class Term:
    """The contribution of a part to the hidden state.

    vector: [dim]. at: index of the path's step before which it is added.
    """

    layer: int
    part: str
    vector: torch.Tensor
    at: int


class Path:
    """How the hidden state at the blank becomes the logits: terms are added, steps change the sum.

    state: the sum after the last term or step, float64 [dim].
    """

    def __init__(self, model: HookedModel, embedding: torch.Tensor) -> None:
        self.model = model
        self.state = torch.zeros_like(embedding)
        self.steps: list[PathStep] = []
        self.terms: list[Term] = []
        self.add(0, "embedding", embedding)

    def add(self, layer: int, part: str, vector: torch.Tensor) -> None:
        """Add a part's output to the state."""
        self.terms.append(Term(layer, part, vector, len(self.steps)))
        self.state = self.state + vector

    def check(self, state: torch.Tensor) -> None:
        """Raise UserError unless the sum so far equals the model's hidden state, [dim]."""
        bound = TOLERANCES[self.model.precision] * max(float(state.std()), 1e-3)
        if state.shape != self.state.shape or float((self.state - state).abs().max()) > bound:
            raise self.refusal("more than attention and MLPs changes its hidden states")

    def normalise(self, module: nn.Module, after: torch.Tensor) -> None:
        """Apply a norm with its scale for this text. after: the norm's output, [dim]."""
        self.apply(self.scaling_of(module, self.state, after), _bias_of(module))

    def scaling_of(self, module: nn.Module, state: torch.Tensor, after: torch.Tensor) -> Scaling:
        """Return a norm without its bias as a scaling. state, after: the input and output."""
        given = getattr(module, "weight", None)
        weight = torch.ones_like(after) if given is None else _double(given)
        bias = _bias_of(module)
        target = after if bias is None else after - bias
        found = []
        for mean in (True, False):
            for factor in (weight, 1 + weight):  # Gemma's norms store their weight minus 1
                scaled = Scaling(factor, mean).apply(state)
                scale = (target @ scaled) / (scaled @ scaled).clamp(min=1e-300)
                error = float((scale * scaled - target).norm() / target.norm().clamp(min=1e-300))
                found.append((error, Scaling(scale * factor, mean)))
        error, best = min(found, key=lambda one: one[0])
        if error > NORM_ERROR[self.model.precision]:
            raise self.refusal("its norms aren't layer norms or RMS norms")
        return best

    def directions(self, direction: torch.Tensor) -> list[torch.Tensor]:
        """Return a direction for the states before each step, and one for those after the last.

        The product of a vector and the direction is what the vector, added there, adds to the
        logit. direction: the answer's output embedding, [dim].
        """
        found = [direction]
        for step in reversed(self.steps):
            found.append(step.back(found[-1]))
        return found[::-1]

    def refusal(self, why: str) -> UserError:
        """Return the error for a model whose logits can't be divided into parts."""
        return unsupported(self.model.name, self.model.model, why)

    def apply(self, step: PathStep, bias: torch.Tensor | None = None) -> None:
        """Apply a step to the state, then add a bias, [dim]."""
        self.steps.append(step)
        self.state = step.apply(self.state)
        if bias is not None:
            self.state = self.state + bias


@dataclass(frozen=True, slots=True)
class Summands:
    """A part's output as a sum over the inputs of its last projection, without the bias.

    term: the part's output. inputs: [in]. columns: [in, dim], what an input of 1 adds to the state.
    """

    term: Term
    inputs: torch.Tensor
    columns: torch.Tensor

    def values(self, directions: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return what each input adds to the logit, [in]. directions: see `Path.directions`."""
        return self.inputs * (self.columns @ directions[self.term.at])


def logit_parts(
    model: HookedModel,
    encoded: Encoded,
    answer: Sequence[int],
    against: Sequence[int] | None = None,
) -> LogitParts:
    """Return the parts of an answer's logit at the first blank: see `PartReader.logit_parts`."""
    parts = find_parts(model.name, model.model)
    seen, logits = run_or_refuse(lambda: _run(model, parts, encoded))
    path = _path(model, parts, seen)
    table = model.model.get_output_embeddings()
    stored = _bias_of(table)
    given = None if stored is None else stored.to(table.weight)
    product = functional.linear(path.state.to(table.weight), table.weight, given)
    bound = TOLERANCES[model.precision] * max(float(logits.std()), 1e-3)
    if float((to_cpu(product).double() - logits).abs().max()) > bound:
        raise path.refusal("its logits aren't a product with the last hidden state")
    chosen = [
        max(forms, key=lambda token: float(logits[token]))
        for forms in (answer, against)
        if forms is not None
    ]
    signs = torch.tensor([1.0, -1.0][: len(chosen)], dtype=torch.float64)
    directions = path.directions(signs @ _double(table.weight[chosen]))
    bias = 0.0 if stored is None else float(signs @ stored[chosen])
    logit = float(signs @ logits[chosen])
    named = [
        LogitPart(term.layer, term.part, float(directions[term.at] @ term.vector))
        for term in path.terms
    ]
    remainder = logit - bias - sum(part.value for part in named)  # biases' part, and rounding
    summands = _summands(path, parts, seen)
    n_heads = int(model.model.config.num_attention_heads)
    of_heads = [
        (one.term.layer, one.values(directions).reshape(n_heads, -1).sum(1).tolist())
        for one in summands
        if one.term.part == "attention"
    ]
    return LogitParts(
        logit=logit,
        parts=(*named, LogitPart(None, "remainder", remainder), LogitPart(None, "bias", bias)),
        heads=tuple(
            HeadPart(layer, head, value)
            for layer, values in of_heads
            for head, value in enumerate(values, start=1)
        ),
        neurons=_neurons(path, summands, directions, table),
        tokens=model.vocabulary.show_text(chosen[:1]) + model.vocabulary.show_text(chosen[1:]),
    )


def _run(
    model: HookedModel, parts: ModelParts, encoded: Encoded
) -> tuple[dict[nn.Module, Seen], torch.Tensor]:
    """Return the input and output of each module at the blank, and the logits, [vocabulary]."""
    at = model.read_at(encoded)
    seen: dict[nn.Module, Seen] = {}
    modules = [module for layer in parts.layers for module in layer.modules]

    def here(value: Any) -> torch.Tensor | None:
        state = value if isinstance(value, torch.Tensor) or value is None else value[0]
        if not isinstance(state, torch.Tensor) or state.ndim < 2:
            return None
        state = state.reshape(-1, state.shape[-1])  # one text; OPT's MLP drops the axis of texts
        return _double(state[at if len(state) > 1 else 0])

    def watch(module: nn.Module, given: Any, named: Any, output: Any) -> None:
        after = here(output)
        if after is not None:
            seen[module] = Seen(here(given[0] if given else named.get("hidden_states")), after)

    with model.watching(watch, (*modules, *parts.head)):
        logits = model.logits_of_ids(torch.tensor([encoded.token_ids]), at)
    model.check_numbers(logits)
    return seen, to_cpu(logits)[0].double()


def _path(model: HookedModel, parts: ModelParts, seen: dict[nn.Module, Seen]) -> Path:
    """Return the path from the embedding to the state that the output embeddings multiply."""
    first = seen.get(parts.layers[0].whole)
    if first is None or first.before is None:
        raise unsupported(
            model.name, model.model, "its layers don't pass on one hidden state per token"
        )
    path = Path(model, first.before)
    for number, layer in enumerate(parts.layers, start=1):
        for which, (part, module) in enumerate(
            (("attention", layer.attention), ("mlp", layer.mlp))
        ):
            if module not in seen or seen[module].after.shape != path.state.shape:
                raise path.refusal("its attention or MLPs don't return hidden states")
            path.add(number, part, seen[module].after)
            if layer.norms:
                path.normalise(layer.norms[which], seen[layer.norms[which]].after)
        if layer.whole in seen:
            path.check(seen[layer.whole].after)
    for module in parts.head:
        if module not in seen or (before := seen[module].before) is None:
            continue
        if before.shape != path.state.shape:
            raise path.refusal("its head reads more than the last hidden state")
        path.apply(Scaling(torch.where(path.state.abs() > 1e-30, before / path.state, 0.0)))
        weight = getattr(module, "weight", None)
        if weight is not None and weight.ndim == 2:
            path.apply(Projection(weight_of(module)), _bias_of(module))
        else:
            path.normalise(module, seen[module].after)
    return path


def _summands(path: Path, parts: ModelParts, seen: dict[nn.Module, Seen]) -> list[Summands]:
    """Return each attention's and MLP's output as a sum, in the order of the layers."""
    terms = {(term.layer, term.part): term for term in path.terms}
    found = []
    for number, layer in enumerate(parts.layers, start=1):
        for part, module, out in (
            ("attention", layer.attention, layer.attention_out),
            ("mlp", layer.mlp, layer.mlp_out),
        ):
            term = terms[number, part]
            if out not in seen or (inputs := seen[out].before) is None:
                raise path.refusal("the projections of its attention or MLPs can't be read")
            weight, after = weight_of(out), seen[out].after
            columns = weight.T
            if weight.shape != (len(term.vector), len(inputs)):
                raise path.refusal("the projections of its attention or MLPs can't be read")
            if module is not out and isinstance(getattr(module, "weight", None), torch.Tensor):
                # OLMo 2 and Gemma 3 normalise the projection's output before they add it.
                columns = path.scaling_of(module, after, term.vector).apply(columns)
            found.append(Summands(term, inputs, columns))
    return found


def _neurons(
    path: Path, summands: Sequence[Summands], directions: Sequence[torch.Tensor], table: Any
) -> tuple[NeuronPart, ...]:
    """Return the neurons that add or subtract most, with the words that they promote."""
    mlps = [one for one in summands if one.term.part == "mlp"]
    values = torch.cat([one.values(directions) for one in mlps])
    ends = torch.tensor([len(one.inputs) for one in mlps]).cumsum(0)
    found = []
    for at in values.abs().topk(min(N_NEURONS, len(values))).indices.tolist():
        number = int(torch.searchsorted(ends, at, right=True))
        one, neuron = mlps[number], at - int(ends[number]) + len(mlps[number].inputs)
        state = one.inputs[neuron] * one.columns[neuron]  # what the neuron adds
        for step in path.steps[one.term.at :]:
            state = step.apply(state)
        raised = to_cpu(table.weight @ state.to(table.weight))
        best = raised.float().topk(min(4 * N_PROMOTED, len(raised))).indices.tolist()
        shown = (word.strip() for word in path.model.vocabulary.show_text(best))
        words = dict.fromkeys(word for word in shown if word)  # as displayed, without spaces
        found.append(
            NeuronPart(
                layer=one.term.layer,
                neuron=neuron + 1,
                activation=float(one.inputs[neuron]),
                value=float(values[at]),
                promoted=tuple(words)[:N_PROMOTED],
            )
        )
    return tuple(found)


def weight_of(module: nn.Module) -> torch.Tensor:
    """Return the matrix of a projection, float64 [out, in] on the CPU."""
    weight = _double(module.weight)  # type: ignore[arg-type]
    return weight.T if type(module).__name__ == "Conv1D" else weight  # GPT-2 stores [in, out]


def _double(values: torch.Tensor) -> torch.Tensor:
    return to_cpu(values.detach()).double()


def _bias_of(module: nn.Module) -> torch.Tensor | None:
    bias = getattr(module, "bias", None)
    return _double(bias) if isinstance(bias, torch.Tensor) else None
