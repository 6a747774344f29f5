"""A model's answer after each layer (logit lens), and the contribution of each token to an answer.

    layers:    log P_l(w) = log softmax(head(h_l))_w, h_l the hidden state after layer l
    erasure:   log P(w | S) - log P(w | S without token i)
    gradients: (e_i - b_i) . integral over a in [0, 1] of d log P(w | b + a (e - b)) / d e_i

The head is everything after the last layer, such as a final norm, a transform, a projection and a
scaling. h_l replaces the last layer's output in a forward pass, so that this code works for any
model family. For the last layer, the result is checked to equal the model's answer.

e: the tokens' embeddings; b: those of the baseline, where the mask (or else the unknown or padding
token) replaces each token. With N steps the integral is a Gauss-Legendre sum of N points (captum's
default rule). With an automatic number of steps, each interval of the path from b to e gets 8
points. The error of an interval is the larger of two estimates: the difference between the sum of
the tokens' values and the change of the log-probability from one end of the interval to the other;
and a share of the largest change of a token's value when this interval was made by halving another.
The interval with the largest error is halved until the errors sum to at most 1 % of the difference
between log P at e and at b (`MAX_ERROR_SHARE`), or `MAX_POINTS` points are used.
Source: nostalgebraist 2020, "interpreting GPT: the logit lens"; Li, Monroe and Jurafsky 2016,
equation 1; Sundararajan, Taly and Yan 2017, equation 1.
Departure: Attribution to tokens
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lama_core.candidates.columns import Columns
from lama_core.errors import UserError
from lama_core.models.devices import (
    is_out_of_memory,
    run_in_parts,
    run_in_passes,
    run_or_refuse,
    to_cpu,
)
from lama_core.models.hf import tracing
from lama_core.models.hf.hooks import HookedModel
from lama_core.models.hf.logit_parts import logit_parts as divide_logit
from lama_core.models.hf.part_modules import find_parts
from lama_core.models.hf.transformer import TOLERANCES, text_config, with_states
from lama_core.models.protocols import (
    BLANK,
    MAX_ERROR_SHARE,
    MAX_POINTS,
    MIN_ERROR,
    Attribution,
    Encoded,
    LayerScores,
)
from lama_core.progress import Progress, report_step

# A pass with gradients keeps the activations of every layer, so fewer tokens fit, by this factor.
MEMORY_FACTOR = 8
# Share of an interval's error that is assumed to remain when it is halved; in fact far less remains
# on a smooth path.
HALVING_FACTOR = 1 / 4
POINTS_PER_INTERVAL = 8


# A layer that ran: the index of the module list that contains it, and its input and output at the
# position that is read, float [dim]; None unless they are hidden states [1, position, dim].
RanLayer = tuple[int, torch.Tensor | None, torch.Tensor | None]


@dataclass(frozen=True, slots=True)
class PathInterval:
    """A part of the path from the baseline to the text; `first` and `end` are in [0, 1].

    before, after: log-probability of the word at `first` and at `end`. contributions: float64
    [token], integrated gradients. change: estimate of the largest change of a token's value if the
    interval were halved; infinite if the interval wasn't made by halving.
    """

    first: float
    end: float
    before: float
    after: float
    contributions: torch.Tensor
    change: float = math.inf

    @property
    def error(self) -> float:
        """The larger of `change` and |sum of `contributions` - (`after` - `before`)|."""
        missed = float(self.contributions.sum()) - (self.after - self.before)
        return max(abs(missed), self.change)


class InspectableModel(HookedModel):
    """A model whose layers can be read, and whose answers can be attributed to tokens."""

    def text_range(self, encoded: Encoded) -> range:
        """Return the positions of the text, with its blanks but without special tokens."""
        before, after = self.vocabulary.frame
        return range(len(before), len(encoded.token_ids) - len(after))

    def without(self, encoded: Encoded, at: int) -> Encoded:
        """Return the text without one token."""
        ids = encoded.token_ids
        positions = tuple(position - (position >= at) for position in encoded.positions)
        return replace(encoded, token_ids=ids[:at] + ids[at + 1 :], positions=positions)

    @property
    def hidden_id(self) -> int:
        """Id of the token that replaces a hidden token: the unknown token, else padding."""
        unknown = self.tokenizer.unk_token_id
        return self.padding_id if unknown is None else int(unknown)

    def layer_log_probs(
        self, encoded: Encoded, columns: Columns, words: Sequence[Sequence[int]]
    ) -> LayerScores:
        logits = run_or_refuse(lambda: self._layer_logits(encoded))
        picked = self.pick(logits, [encoded.places[0]] * len(logits), columns).log_probs
        return LayerScores(picked, to_cpu(word_log_probs(logits, words)).numpy())

    def _layer_logits(self, encoded: Encoded) -> torch.Tensor:
        """Logits at the first blank after each layer, float32 [layer, vocabulary]."""
        layers, own = self._ran_layers(encoded)
        stack = layers[-1][0] if layers else -1
        through = [layer for layer in layers if layer[0] == stack]
        states = [*(before for _, before, _ in through[:1]), *(after for _, _, after in through)]
        known = [state for state in states if state is not None]
        if not through or len(known) < len(states) or len(through) != self._n_layers(len(through)):
            raise UserError(
                f"Can't read the layers of {self.name}: {self.model.config.model_type} models "
                "don't pass one hidden state per token from layer to layer."
            )
        together = torch.stack([state.to(known[0].device) for state in known])
        found = self._head_logits(together, stack, len(through), encoded)
        bound = TOLERANCES[self.precision] * max(float(to_cpu(own.std())), 1e-3)
        if not bool((found[-1] - own[0]).abs().max() <= bound):
            raise UserError(
                f"Can't read the layers of {self.name}: the logits of "
                f"{self.model.config.model_type} models depend on more than the last hidden state."
            )
        return found

    def _n_layers(self, otherwise: int) -> int:
        """Return the configured number of layers, or `otherwise` if none is configured."""
        config = self.model.config
        named = getattr(text_config(config), "num_hidden_layers", otherwise)
        of_decoder = getattr(config, "num_decoder_layers", None) or named
        return int(of_decoder if getattr(config, "is_encoder_decoder", False) else named)

    def _ran_layers(self, encoded: Encoded) -> tuple[list[RanLayer], torch.Tensor]:
        """Return the layers in the order in which they ran, and the logits, [1, vocabulary]."""
        at = self.read_at(encoded)
        layers: list[RanLayer] = []

        def state(value: Any) -> torch.Tensor | None:
            value = value if isinstance(value, torch.Tensor) or value is None else value[0]
            if not isinstance(value, torch.Tensor) or value.ndim != 3 or len(value) != 1:
                return None
            return value[0, at if value.shape[1] > 1 else 0].clone()  # may be cut to one position

        def watch(module: nn.Module, given: Any, named: Any, output: Any) -> None:
            first = given[0] if given else named.get("hidden_states")
            layers.append((self._stacks[module], state(first), state(output)))

        with self.watching(watch):
            own = self.logits_of_ids(torch.tensor([encoded.token_ids]), at)
        return layers, own

    def _head_logits(
        self, states: torch.Tensor, stack: int, n_layers: int, encoded: Encoded
    ) -> torch.Tensor:
        """Logits of each state in place of the last layer's output, float32 [state, vocabulary].

        The states share a pass over texts of one token, one text per state.

        Args:
            states: [state, dim].
            stack: Index of the module list that contains the layers.
            n_layers: How many of these layers run in a pass.
            encoded: The text, of which only the first token is used.
        """
        n_run = 0

        def replace_output(module: nn.Module, _given: Any, _named: Any, output: Any) -> Any:
            nonlocal n_run
            n_run += self._stacks[module] == stack
            if n_run < n_layers or self._stacks[module] != stack:
                return None
            hidden = output if isinstance(output, torch.Tensor) else output[0]
            return with_states(output, states[:, None].expand(-1, hidden.shape[1], -1).to(hidden))

        first = replace(encoded, token_ids=encoded.token_ids[:1], positions=(0,))
        with self.watching(replace_output):
            return self.logits_of_ids(
                torch.tensor([first.token_ids] * len(states)), self.read_at(first)
            )

    def erased(
        self, encoded: Encoded, word: Sequence[int], *, until: float = math.inf
    ) -> Attribution:
        places = self._places(encoded)
        whole = float(run_or_refuse(lambda: self._log_probs([encoded], word))[0])
        found = np.full(len(places), np.nan, np.float32)
        size = max(1, self.tokens_per_pass // len(encoded.token_ids))
        for first in range(0, len(places), size):
            if first and time.monotonic() > until:
                break
            report_step(Progress("Hiding tokens", first, len(places), "tokens"))
            texts = [self.without(encoded, at) for at in places[first : first + size]]
            parts = run_in_parts(lambda some: self._log_probs(some, word), texts)
            found[first : first + size] = whole - np.concatenate(parts)
        return self._make_attribution(encoded, places, found, whole)

    def integrated_gradients(
        self,
        encoded: Encoded,
        word: Sequence[int],
        *,
        steps: int | None = None,
        until: float = math.inf,
    ) -> Attribution:
        places = self._places(encoded)
        ids = torch.tensor([encoded.token_ids])
        hidden = ids.clone()
        hidden[0, places] = self.hidden_id
        with self.passing():
            base, whole = (self.text_embeddings(row.to(self.device)) for row in (hidden, ids))
        if not isinstance(whole, torch.Tensor):
            raise self._no_gradients("its embeddings are not a single tensor")
        base, way = base.clone(), whole - base  # tensors made in inference mode have no gradients

        def log_prob(share: float) -> float:
            with self.embedding(base + share * way):
                return float(run_or_refuse(lambda: self._log_probs([encoded], word))[0])

        def integrate(first: float, end: float, n_points: int) -> torch.Tensor:
            """Integrate over a part of the path, float64 [token]."""
            roots, weights = gauss_legendre(n_points)
            total = torch.zeros(base.shape[1:], dtype=torch.float64)
            for at in range(0, n_points, POINTS_PER_INTERVAL):
                if at and n_points > POINTS_PER_INTERVAL and time.monotonic() > until:
                    raise UserError(
                        f"The time limit was reached after {at:,} of {n_points:,} steps. Choose "
                        "fewer steps."
                    )
                some = slice(at, at + POINTS_PER_INTERVAL)
                shares = torch.tensor(first + (end - first) * roots[some])
                points = base + shares.to(base.dtype).to(base.device)[:, None, None] * way
                gradients = self._gradients(encoded, word, points)
                total += (gradients * torch.tensor(weights[some])[:, None, None]).sum(0)
            return (end - first) * (total * to_cpu(way)[0].double()).sum(1)

        baseline, log_probs = log_prob(0.0), float(self._log_probs([encoded], word)[0])
        if steps is None:
            found, n = _integrate_adaptively(log_prob, integrate, baseline, log_probs, until)
        else:
            found, n = integrate(0.0, 1.0, steps), steps
        return self._make_attribution(
            encoded, places, found[places].float().numpy(), log_probs, baseline, n
        )

    def _gradients(
        self, encoded: Encoded, word: Sequence[int], points: torch.Tensor
    ) -> torch.Tensor:
        """Gradients of the word's log-probability, float64 [point, token, dim], on the CPU.

        points: the text's embeddings, float [point, token, dim].
        """

        def run(some: Sequence[int]) -> torch.Tensor:
            embeddings = points[some[0] : some[-1] + 1].detach().requires_grad_()
            ids = torch.tensor([encoded.token_ids] * len(embeddings))
            try:
                with self.passing(slopes=True), self.embedding(embeddings):
                    logits = self.logits_of_ids(ids, self.read_at(encoded), slopes=True)
                    if self._here.embeddings is not None:
                        raise self._no_gradients("it doesn't embed its text with a single table")
                    total = word_log_probs(logits, [word]).sum()
                    return to_cpu(torch.autograd.grad(total, embeddings)[0]).double()
            except RuntimeError as error:
                if is_out_of_memory(error):
                    raise
                raise self._no_gradients(str(error).partition(":")[0]) from error

        size = self.tokens_per_pass // MEMORY_FACTOR // points.shape[1]
        return torch.cat(run_in_passes(run, range(len(points)), size))

    def _no_gradients(self, why: str) -> UserError:
        return UserError(f"{self.name} has no token gradients ({why}). Use erasure instead.")

    def _log_probs(self, texts: Sequence[Encoded], word: Sequence[int]) -> NDArray[np.float32]:
        """Log-probability of the word at the first blank of texts of one length, [text]."""
        where = (torch.arange(len(texts)), torch.tensor([self.read_at(text) for text in texts]))
        ids = torch.tensor([text.token_ids for text in texts])
        logits, _ = self.forward(where, **self.inputs_of(ids))
        found = word_log_probs(logits, [word])[:, 0]
        self.check_numbers(found)
        return to_cpu(found).numpy()

    def check_parts(self) -> None:
        find_parts(self.name, self.model)

    logit_parts = divide_logit
    find_tokens = tracing.find_tokens
    trace = tracing.trace

    def _places(self, encoded: Encoded) -> list[int]:
        """Return the positions of the text's tokens, except blanks; raise UserError if none."""
        ids = (*encoded.token_ids, None)  # a causal model's blank comes after the tokens
        blanks = {*self.vocabulary.sentinels, self.tokenizer.mask_token_id, None}
        places = [at for at in self.text_range(encoded) if ids[at] not in blanks]
        if not places:
            raise UserError(
                f"The prompt of {self.name} has no context tokens to attribute to: add words next "
                "to the blank."
            )
        return places

    def _make_attribution(
        self,
        encoded: Encoded,
        places: Sequence[int],
        values: NDArray[np.float32],
        log_prob: float,
        baseline: float | None = None,
        n_points: int | None = None,
    ) -> Attribution:
        """Return the attribution: all tokens and blanks of the text, with their values.

        Args:
            encoded: The text.
            places: Positions of the tokens with a value.
            values: float32 [place].
            log_prob: Log-probability of the word.
            baseline: As for `Attribution`.
            n_points: As for `Attribution`.
        """
        texts = self.vocabulary.show_text([encoded.token_ids[at] for at in places])
        shown = dict(zip(places, texts, strict=True))
        of_tokens = dict(zip(places, values.tolist(), strict=True))
        every = self.text_range(encoded)
        return Attribution(
            tuple(shown.get(at, BLANK) for at in every),
            np.array([of_tokens.get(at, np.nan) for at in every], np.float32),
            log_prob,
            baseline,
            n_points,
        )


@cache
def gauss_legendre(n_points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the points of the Gauss-Legendre rule in [0, 1] and weights with sum 1, [point]."""
    from scipy.special import roots_legendre

    roots, weights = roots_legendre(n_points)
    return (roots + 1) / 2, weights / 2


def _integrate_adaptively(
    log_prob: Callable[[float], float],
    integrate: Callable[[float, float, int], torch.Tensor],
    baseline: float,
    whole: float,
    until: float,
) -> tuple[torch.Tensor, int]:
    """Integrate over intervals of the path; return the values, float64 [token], and n of points.

    Halve the interval with the largest error until the errors sum to at most `MIN_ERROR` or
    `MAX_ERROR_SHARE` of the difference between `whole` and `baseline`, `MAX_POINTS` points are
    used, or the time `until` is over.

    Args:
        log_prob: Returns the log-probability at a point of the path in [0, 1].
        integrate: Returns the integral, float64 [token], from one point of the path to another,
            with a number of points.
        baseline: Log-probability at 0.
        whole: Log-probability at 1.
        until: Time limit (`time.monotonic`).
    """

    def integrate_between(first: float, end: float, before: float, after: float) -> PathInterval:
        return PathInterval(first, end, before, after, integrate(first, end, POINTS_PER_INTERVAL))

    parts, n_points = [integrate_between(0.0, 1.0, baseline, whole)], POINTS_PER_INTERVAL
    bound = max(MAX_ERROR_SHARE * abs(whole - baseline), MIN_ERROR)
    while sum(part.error for part in parts) > bound:
        if n_points + 2 * POINTS_PER_INTERVAL > MAX_POINTS or time.monotonic() > until:
            break
        worst = max(parts, key=lambda part: part.error)
        parts.remove(worst)
        middle = (worst.first + worst.end) / 2
        between = log_prob(middle)
        halves = (
            integrate_between(worst.first, middle, worst.before, between),
            integrate_between(middle, worst.end, between, worst.after),
        )
        n_points += 2 * POINTS_PER_INTERVAL
        total = halves[0].contributions + halves[1].contributions
        change = float((total - worst.contributions).abs().max())
        parts += [replace(half, change=change * HALVING_FACTOR / 2) for half in halves]
    return torch.stack([part.contributions for part in parts]).sum(0), n_points


def word_log_probs(logits: torch.Tensor, words: Sequence[Sequence[int]]) -> torch.Tensor:
    """Log-probability of each word, summed over the tokens that can write it: [row, word]."""
    sums = [torch.logsumexp(logits[:, list(forms)], dim=1) for forms in words]
    total = torch.logsumexp(logits, dim=1, keepdim=True)
    return torch.stack(sums, dim=1) - total if sums else logits[:, :0]
