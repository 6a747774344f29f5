"""Causal tracing: which hidden states bring back an answer when the subject is corrupted.

    p        probability of the answer
    p*       its mean over the draws, with noise on the embeddings of the subject's tokens
    p*(l,t)  p* with the state of layer l at token t set to its value in the pass without noise

The indirect effect of a state is p*(l,t) - p*. For attention and MLP, their outputs at token t in a
window of layers around l are set instead. The noise is Gaussian; its standard deviation is three
times that of the embedding table. Every (layer, token) gets the same draws, from the random
generator that the paper's code uses.

Rows of different (layer, draw, token) share a pass. All rows of a draw are equal before the first
restored layer, so a single row is computed up to there, and then copied.
Source: Meng et al. 2022, section 2; code: kmeng01/rome, `experiments/causal_trace.py`.
Departure: Causal tracing
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from lama_core.errors import UserError
from lama_core.models.devices import is_out_of_memory, run_in_passes, run_or_refuse, to_cpu
from lama_core.models.hf.hooks import HookedModel
from lama_core.models.hf.part_modules import find_parts, unsupported
from lama_core.models.hf.transformer import with_states
from lama_core.models.model_folder import LIBRARY_ERRORS
from lama_core.models.protocols import Encoded, Statement, Trace, TracedPart
from lama_core.types import Query

NOISE = 3.0  # standard deviations of the embedding table
# The paper's window: 10 of GPT-2 XL's 48 layers.
WINDOW_SHARE = 10 / 48
# Tokens per pass on a CPU: enough to be efficient, but few, so that a pass restores few layers and
# its rows share the layers before them.
CPU_TOKENS = 768
DRAWS_AT_ONCE = 2  # with a time limit, this many draws are finished before the next ones start


@dataclass(frozen=True, slots=True)
class Restoration:
    """A corrupted text in which layers `first` to `end` - 1 are restored at a token.

    row: the result's row, a layer. draw: index of the draw of noise. token: position of the token.
    """

    row: int
    first: int
    end: int
    draw: int
    token: int


@dataclass(frozen=True, slots=True)
class Pass:
    """Inputs that all passes of a trace share.

    ids: int64 [1, token]. read_at: position that the blank is predicted from. word: the tokens that
    can write the word. restored: the modules whose outputs are restored, one per layer. corrupted:
    the embeddings with noise, [draw, token, dim]. clean: what the restored modules returned in the
    pass without noise, [token, dim] each, or [1, dim] if cut to the blank.
    """

    model: HookedModel
    ids: torch.Tensor
    read_at: int
    word: Sequence[int]
    layers: tuple[nn.Module, ...]
    restored: tuple[nn.Module, ...]
    corrupted: torch.Tensor
    clean: tuple[torch.Tensor, ...]


def find_tokens(model: HookedModel, query: Query, encoded: Encoded, words: str) -> tuple[int, ...]:
    """Return the positions of the tokens of some words, where they first occur in a text.

    Raises UserError if the text doesn't contain the words, or the encoded text not their tokens.
    """
    exact = any(words in part for part in query.parts)
    ids, start = list(encoded.token_ids), len(model.vocabulary.frame[0])
    blank = ids[encoded.positions[0]]
    for number, part in enumerate(query.parts):
        at = part.find(words) if exact else part.lower().find(words.lower())
        if number and model.kind == "causal":
            break  # not in the text that the model sees
        if at >= 0:
            (read,) = model.vocabulary.read([Statement(part, at, at + len(words))])
            wanted = [token for token, marked in zip(read.ids, read.marked, strict=True) if marked]
            for first in range(start, len(ids) - len(wanted) + 1):
                if wanted and ids[first : first + len(wanted)] == wanted:
                    return tuple(range(first, first + len(wanted)))
        start = next((n + 1 for n in range(start, len(ids)) if ids[n] == blank), start)
    if model.kind == "causal" and words.lower() in query.parts[1].lower():
        raise UserError(
            f"{model.name} sees only the text to the left of the blank, which doesn't contain "
            f"the subject {words[:60]!r}: put the blank after it."
        )
    raise UserError(
        f"The text doesn't contain the subject {words[:60]!r}: choose words of the text."
    )


def trace(
    model: HookedModel,
    encoded: Encoded,
    subject: Sequence[int],
    word: Sequence[int],
    *,
    part: TracedPart = "states",
    window: int | None = None,
    draws: int = 10,
    seed: int = 1,
    until: float = math.inf,
    tick: Callable[[int, int], None] = lambda _done, _total: None,
) -> Trace:
    """Return the probability of a word at the first blank after each restoration.

    The parameters are those of `PartReader.trace`. If no draw is finished in time, the first draw
    has NaN for the values that weren't computed.
    """
    parts = find_parts(model.name, model.model)
    layers = tuple(layer.whole for layer in parts.layers)
    n_layers, n_tokens = len(layers), len(encoded.token_ids)
    restored = {
        "states": layers,
        "attention": tuple(layer.attention for layer in parts.layers),
        "mlp": tuple(layer.mlp for layer in parts.layers),
    }[part]
    width = 1 if part == "states" else window or max(1, round(n_layers * WINDOW_SHARE))
    ids = torch.tensor([encoded.token_ids])
    corrupted, noise = _corrupt(model, ids, subject, draws, seed)
    clean, prob = run_or_refuse(lambda: _clean_pass(model, ids, encoded, word, restored))
    shared = Pass(model, ids, model.read_at(encoded), word, layers, restored, corrupted, clean)
    is_cpu = torch.device(model.device).type == "cpu"
    most = min(model.tokens_per_pass, CPU_TOKENS) if is_cpu else model.tokens_per_pass
    size = max(1, most // n_tokens)
    nothing = [Restoration(0, 0, 0, draw, 0) for draw in range(draws)]
    wrong = torch.cat(run_in_passes(lambda some: _probs(shared, some), nothing, size))
    restorations = [
        Restoration(
            layer, max(0, layer - width // 2), min(n_layers, layer - (-width // 2)), draw, token
        )
        for layer in range(n_layers)
        for draw in range(draws)
        for token in range(n_tokens)
    ]
    if until != math.inf:  # finish some draws rather than some layers
        restorations.sort(key=lambda one: one.draw // DRAWS_AT_ONCE)
    values = np.full((n_layers, draws, n_tokens), np.nan)
    for first in range(0, len(restorations), size):
        if first and time.monotonic() > until:  # the first ones are always finished
            break
        some = restorations[first : first + size]
        found = torch.cat(run_in_passes(lambda part: _probs(shared, part), some, size))
        for one, prob_here in zip(some, found.tolist(), strict=True):
            values[one.row, one.draw, one.token] = prob_here
        tick(first + len(some), len(restorations))
    finished = np.flatnonzero(np.isfinite(values).all((0, 2)))
    used = finished if len(finished) else np.array([0])
    return Trace(
        prob=prob,
        corrupted=float(wrong.numpy()[used].mean()),
        restored=values[:, used].mean(1).astype(np.float32),
        noise=noise,
        window=width,
        draws=len(used),
    )


def _corrupt(
    model: HookedModel, ids: torch.Tensor, subject: Sequence[int], draws: int, seed: int
) -> tuple[torch.Tensor, float]:
    """Return the embeddings with noise on the subject, [draw, token, dim], and the noise's SD."""
    with model.passing():
        plain = model.text_embeddings(ids.to(model.device)).clone()
        weight = model.text_embeddings.weight
        scale = plain.norm() / weight[ids[0].to(weight.device)].norm()  # Gemma's isn't 1
    noise = NOISE * float(scale * weight.float().std())
    drawn = np.random.RandomState(seed).randn(draws, len(subject), plain.shape[2])
    corrupted = plain.repeat(draws, 1, 1)
    corrupted[:, list(subject)] += torch.from_numpy(noise * drawn).to(plain)
    return corrupted, noise


def _clean_pass(
    model: HookedModel,
    ids: torch.Tensor,
    encoded: Encoded,
    word: Sequence[int],
    restored: Sequence[nn.Module],
) -> tuple[tuple[torch.Tensor, ...], float]:
    """Return the modules' outputs in the pass without noise, and the word's probability."""
    found: dict[nn.Module, torch.Tensor] = {}

    def keep(module: nn.Module, _given: Any, _named: Any, output: Any) -> None:
        state = output if isinstance(output, torch.Tensor) else output[0]
        if state.ndim > 3:
            raise unsupported(
                model.name, model.model, "its layers don't pass one hidden state per token"
            )
        found[module] = state.reshape(-1, state.shape[-1]).clone()

    with model.watching(keep, restored):
        logits = model.logits_of_ids(ids, model.read_at(encoded))
    if len(found) < len(restored):
        raise unsupported(model.name, model.model, "not all of its layers run")
    model.check_numbers(logits)
    return tuple(found[module] for module in restored), float(_word_probs(logits, word)[0])


def _probs(shared: Pass, restorations: Sequence[Restoration]) -> torch.Tensor:
    """Return the word's probability in each corrupted and restored text, float64 [restoration]."""
    model, n_tokens = shared.model, shared.ids.shape[1]
    first = min(one.first for one in restorations)
    # after: the layer whose output is copied for the restorations. A state is restored at the
    # output of its layer, attention and MLPs within the layer.
    after = first if shared.restored == shared.layers else first - 1
    # Copying after the last layer saves no time, and its output may be cut to the blank: then the
    # embeddings are copied.
    may_copy = model.copies_rows and 0 <= after < len(shared.layers) - 1
    copied = shared.layers[after] if may_copy else None
    draws = sorted({one.draw for one in restorations})
    rows = torch.tensor([draws.index(one.draw) for one in restorations])
    corrupted = shared.corrupted[draws]
    if copied is None:
        corrupted = corrupted[rows.to(corrupted.device)]
    number_of = {module: number for number, module in enumerate(shared.restored)}

    def change(module: nn.Module, _given: Any, _named: Any, output: Any) -> Any:
        state = output if isinstance(output, torch.Tensor) else output[0]
        changed = state
        if module is copied:
            changed = state[rows.to(state.device)]
        if module in number_of:
            changed = restore(number_of[module], changed)
        return None if changed is state else with_states(output, changed)

    def restore(number: int, state: torch.Tensor) -> torch.Tensor:
        clean = shared.clean[number].to(state)
        is_cut = len(clean) == 1 and n_tokens > 1
        here = [
            (row, one.token)
            for row, one in enumerate(restorations)
            if one.first <= number < one.end and (not is_cut or one.token == shared.read_at)
        ]
        if not here:
            return state
        changed = state.reshape(-1, len(clean), state.shape[-1]).clone()  # OPT's MLP has two axes
        at, tokens = torch.tensor(here, device=state.device).T
        positions = torch.zeros_like(tokens) if is_cut else tokens
        changed[at, positions] = clean[positions]
        return changed.reshape(state.shape)

    watched = {*shared.restored, *([] if copied is None else [copied])}
    inputs = model.inputs_of(shared.ids.repeat(len(corrupted), 1))
    where = (torch.arange(len(restorations)), torch.full((len(restorations),), shared.read_at))
    try:
        with model.watching(change, watched), model.embedding(corrupted):
            logits, _ = model.forward(where, **inputs)
    except LIBRARY_ERRORS as error:
        if copied is None or is_out_of_memory(error):
            raise
        model.copies_rows = False  # something besides the states has a row per text
    else:
        return _word_probs(logits, shared.word)
    return _probs(shared, restorations)  # after the block, so that the failed pass is freed


def _word_probs(logits: torch.Tensor, word: Sequence[int]) -> torch.Tensor:
    """Return the probability of a word, summed over its forms, float64 [row] on the CPU."""
    total = torch.logsumexp(logits, dim=1)
    return to_cpu(torch.logsumexp(logits[:, list(word)], dim=1) - total).double().exp()
