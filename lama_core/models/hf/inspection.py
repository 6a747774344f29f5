"""What goes on inside a model before it answers: its answer at each layer, and what each token of
the text adds to a word.

    layers:    log P_l(w) = log softmax(head(h_l))_w, h_l the hidden state behind layer l
    erasure:   log P(w | S) - log P(w | S without token i)
    gradients: (e_i - b_i) . integral over a in [0, 1] of d log P(w | b + a (e - b)) / d e_i

The head is all that a model does behind its last layer, such as a final norm, a transform, a
projection and a scaling: h_l is put in the place of what the last layer gives, so that it needs no
knowledge of the family. At the last layer that is the model's own answer, which is checked.
e: the tokens' embeddings; b: those of a hidden token. With N steps the integral is a Gauss-Legendre
sum of N points (captum's default rule). Without a number, it is one of 8 points over each stretch
of the way from b to e. A stretch is in doubt by two things: by how much the sum over its tokens
misses the difference of the log-probabilities at its ends, and how much the tokens' values moved
when it came of a longer one by halving. The most doubtful is halved, until the doubts together are
at most 1 % of the whole difference (`MISSED`), or `MOST_POINTS` are used.

Hooks that stand on the modules for good ask what their own thread wants: models are shared, and
what is put into one pass must not be in another's.
Source: nostalgebraist 2020, "interpreting GPT: the logit lens"; Li, Monroe and Jurafsky 2016,
equation 1; Sundararajan, Taly and Yan 2017, equation 1.
Departure: Attribution to tokens
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lama_core.candidates.columns import Columns
from lama_core.errors import UserError
from lama_core.models.devices import fitting, host, in_parts, in_passes, is_full
from lama_core.models.hf.transformer import TOLERANCES, Transformer, with_states
from lama_core.models.protocols import (
    BLANK,
    LEAST_MISSED,
    MISSED,
    MOST_POINTS,
    Attribution,
    Encoded,
    Kind,
    LayerScores,
)

# A pass whose gradients are wanted keeps what it computed in every layer.
KEPT_FOR_SLOPES = 8
# What is left of an error, at most, when a stretch is halved: of a smooth way, far less.
LEFT_BY_HALVING = 1 / 4
POINTS_OF_STRETCH = 8
Watch = Callable[[nn.Module, Any, Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Step:
    """A layer that ran. stack: the list of modules that it is of. before, after: hidden states at
    the position that is read, float [dim]; None where they aren't [1, position, dim].
    """

    stack: int
    before: torch.Tensor | None
    after: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the way from the baseline to the text, as shares of it.

    before, after: log-probability at its ends. adds: float64 [token], of each token's gradients.
    moved: by how much a token's value may still move when it is halved, as far as is known.
    """

    first: float
    end: float
    before: float
    after: float
    adds: torch.Tensor
    moved: float = math.inf

    @property
    def doubt(self) -> float:
        """By how much the tokens' sum misses the difference, or a token may move: the greater."""
        return max(abs(float(self.adds.sum()) - (self.after - self.before)), self.moved)


@dataclass(frozen=True, slots=True)
class Integral:
    """Integrated gradients, summed over the embeddings' dimensions. adds: float64 [token]."""

    adds: torch.Tensor
    n_points: int


class Inspected(Transformer):
    """A model whose layers can be read, and whose answers can be followed to its tokens."""

    kind: Kind

    def __init__(self, name: str, model: Any, tokenizer: Any, *, identity: str) -> None:
        super().__init__(name, model, tokenizer, identity=identity)
        self._stacks: dict[nn.Module, int] = {}
        for number, stack in enumerate(_stacks(self.model)):
            for module in stack:
                self._stacks[module] = number
                module.register_forward_hook(self._watched, with_kwargs=True)
        self.text_embeddings.register_forward_hook(self._embedded)

    def inputs_of(self, ids: torch.Tensor) -> dict[str, Any]:
        """What a pass over texts of one length is given. ids: int64 [row, token]."""
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def read_at(self, encoded: Encoded) -> int:
        """Where the first blank's distribution is read, in the row that the layers see."""
        return encoded.positions[0]

    def text_range(self, encoded: Encoded) -> range:
        """Where the text stands, without special tokens, with its blanks."""
        before, after = self.vocabulary.frame
        return range(len(before), len(encoded.token_ids) - len(after))

    def without(self, encoded: Encoded, at: int) -> Encoded:
        """The text without one token."""
        ids = encoded.token_ids
        positions = tuple(one - (one >= at) for one in encoded.positions)
        return replace(encoded, token_ids=ids[:at] + ids[at + 1 :], positions=positions)

    @property
    def hidden_id(self) -> int:
        """The token whose embedding stands for a hidden one: what is unknown, else what pads."""
        known = (self.tokenizer.unk_token_id, self.tokenizer.pad_token_id)
        return next((int(one) for one in known if one is not None), 0)

    @property
    def text_embeddings(self) -> Any:
        """The module that gives the text's tokens their embeddings."""
        return self.model.get_input_embeddings()

    def layer_log_probs(
        self, encoded: Encoded, columns: Columns, words: Sequence[Sequence[int]]
    ) -> LayerScores:
        logits = fitting(lambda: self._layer_logits(encoded))
        picked = self.pick(logits, [encoded.places[0]] * len(logits), columns).log_probs
        return LayerScores(picked, host(word_log_probs(logits, words)).numpy())

    def _layer_logits(self, encoded: Encoded) -> torch.Tensor:
        """Logits at the first blank after each layer, float32 [layer, vocabulary]."""
        steps, own = self._steps(encoded)
        stack = steps[-1].stack if steps else -1
        through = [step for step in steps if step.stack == stack]
        states = [one for step in through[:1] for one in [step.before]]
        states += [step.after for step in through]
        known = [one for one in states if one is not None]
        if not through or len(known) < len(states) or len(through) != self._n_layers(len(through)):
            raise UserError(
                f"The layers of {self.name} can't be read: a {self.model.config.model_type} model "
                "doesn't pass one hidden state a token from layer to layer."
            )
        together = torch.stack([one.to(known[0].device) for one in known])
        found = self._answers_of(together, stack, len(through), encoded)
        bound = TOLERANCES[self.precision] * max(float(host(own.std())), 1e-3)
        if not bool((found[-1] - own[0]).abs().max() <= bound):
            raise UserError(
                f"The layers of {self.name} can't be read: a {self.model.config.model_type} model "
                "takes more for its answer than what its last layer gives."
            )
        return found

    def _n_layers(self, otherwise: int) -> int:
        """How many layers the configuration says that an answer comes through."""
        config = self.model.config
        if getattr(config, "is_encoder_decoder", False):
            named = getattr(config, "num_decoder_layers", None)
            if named is not None:
                return int(named)
        if hasattr(config, "get_text_config"):
            config = config.get_text_config(decoder=True)
        return int(getattr(config, "num_hidden_layers", otherwise))

    def _steps(self, encoded: Encoded) -> tuple[list[Step], torch.Tensor]:
        """The layers that ran, in their order, and the logits that came out, [1, vocabulary]."""
        at = self.read_at(encoded)
        steps: list[Step] = []

        def state(value: Any) -> torch.Tensor | None:
            value = value if isinstance(value, torch.Tensor) or value is None else value[0]
            if not isinstance(value, torch.Tensor) or value.ndim != 3 or len(value) != 1:
                return None
            return value[0, at if value.shape[1] > 1 else 0].clone()  # it may be cut already

        def watch(module: nn.Module, given: Any, named: Any, output: Any) -> None:
            first = given[0] if given else named.get("hidden_states")
            steps.append(Step(self._stacks[module], state(first), state(output)))

        with self._watching(watch):
            where = (torch.tensor([0]), torch.tensor([at]))
            ids = torch.tensor([encoded.token_ids])
            own, _ = self.forward(where, **self.inputs_of(ids))
        return steps, own

    def _answers_of(
        self, states: torch.Tensor, stack: int, n_layers: int, encoded: Encoded
    ) -> torch.Tensor:
        """Logits of hidden states that stand behind the last layer, float32 [state, vocabulary].

        states: [state, dim]. The pass that they are put into is over texts of one token.
        """
        n_run = 0

        def put(module: nn.Module, _given: Any, _named: Any, output: Any) -> Any:
            nonlocal n_run
            n_run += self._stacks[module] == stack
            if n_run < n_layers or self._stacks[module] != stack:
                return None
            there = output if isinstance(output, torch.Tensor) else output[0]
            return with_states(output, states[:, None].expand(-1, there.shape[1], -1).to(there))

        first = replace(encoded, token_ids=encoded.token_ids[:1], positions=(0,))
        n = len(states)
        with self._watching(put):
            where = (torch.arange(n), torch.full((n,), self.read_at(first)))
            ids = torch.tensor([first.token_ids] * n)
            return self.forward(where, **self.inputs_of(ids))[0]

    def erased(
        self, encoded: Encoded, word: Sequence[int], *, until: float = math.inf
    ) -> Attribution:
        places = self._places(encoded)
        whole = float(fitting(lambda: self._log_probs([encoded], word))[0])
        found = np.full(len(places), np.nan, np.float32)
        size = max(1, self.tokens_per_pass // len(encoded.token_ids))
        for first in range(0, len(places), size):
            if first and time.monotonic() > until:
                break
            texts = [self.without(encoded, at) for at in places[first : first + size]]
            parts = in_parts(lambda some: self._log_probs(some, word), texts)
            found[first : first + size] = whole - np.concatenate(parts)
        return self._shown(encoded, places, found, whole)

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
        with self._passing():
            base, whole = (self.text_embeddings(one.to(self.device)) for one in (hidden, ids))
        if not isinstance(whole, torch.Tensor):
            raise self._no_gradients("its embeddings are not numbers alone")
        base, way = base.clone(), whole - base  # what a pass without gradients made has none

        def log_prob(share: float) -> float:
            with self._embedding(base + share * way):
                return float(fitting(lambda: self._log_probs([encoded], word))[0])

        def adds(first: float, end: float, n_points: int) -> torch.Tensor:
            """The integral over a part of the way, float64 [token]."""
            roots, weights = gauss_legendre(n_points)
            total = torch.zeros(base.shape[1:], dtype=torch.float64)
            for at in range(0, n_points, POINTS_OF_STRETCH):
                if at and n_points > POINTS_OF_STRETCH and time.monotonic() > until:
                    raise UserError(
                        f"The time for a question was over after {at:,} of {n_points:,} steps: "
                        "choose fewer."
                    )
                some = slice(at, at + POINTS_OF_STRETCH)
                shares = torch.tensor(first + (end - first) * roots[some])
                points = base + shares.to(base.dtype).to(base.device)[:, None, None] * way
                slopes = self._slopes(encoded, word, points)
                total += (slopes * torch.tensor(weights[some])[:, None, None]).sum(0)
            return (end - first) * (total * host(way)[0].double()).sum(1)

        baseline, log_probs = log_prob(0.0), float(self._log_probs([encoded], word)[0])
        if steps is None:
            found = _halved(log_prob, adds, baseline, log_probs, until)
        else:
            found = Integral(adds(0.0, 1.0, steps), steps)
        values = found.adds[places].float().numpy()
        return self._shown(encoded, places, values, log_probs, baseline, found.n_points)

    def _slopes(self, encoded: Encoded, word: Sequence[int], points: torch.Tensor) -> torch.Tensor:
        """Gradients of the word's log-probability, float64 [point, token, dim], on the processor.

        points: the text's embeddings, float [point, token, dim].
        """

        def ask(some: Sequence[int]) -> torch.Tensor:
            return host(self._slopes_at(encoded, word, points[some[0] : some[-1] + 1])).double()

        size = self.tokens_per_pass // KEPT_FOR_SLOPES // points.shape[1]
        return torch.cat(in_passes(ask, range(len(points)), size))

    def _slopes_at(
        self, encoded: Encoded, word: Sequence[int], embeddings: torch.Tensor
    ) -> torch.Tensor:
        """The same of points that go through the model together, where it computes."""
        embeddings = embeddings.detach().requires_grad_()
        n = len(embeddings)
        where = (torch.arange(n), torch.full((n,), self.read_at(encoded)))
        inputs = self.inputs_of(torch.tensor([encoded.token_ids] * n))
        try:
            with self._passing(slopes=True), self._embedding(embeddings):
                logits, _ = self.forward(where, slopes=True, **inputs)
                if self._here.embeddings is not None:
                    raise self._no_gradients("it doesn't look its text up in one table")
                total = word_log_probs(logits, [word]).sum()
                return torch.autograd.grad(total, embeddings)[0]
        except RuntimeError as error:
            if is_full(error):
                raise
            raise self._no_gradients(str(error).partition(":")[0]) from error

    def _no_gradients(self, why: str) -> UserError:
        return UserError(f"{self.name} gives no gradients of its tokens ({why}): take erasure.")

    def _log_probs(self, texts: Sequence[Encoded], word: Sequence[int]) -> NDArray[np.float32]:
        """Log-probability of the word at the first blank of texts of one length, [text]."""
        where = (torch.arange(len(texts)), torch.tensor([self.read_at(one) for one in texts]))
        ids = torch.tensor([one.token_ids for one in texts])
        logits, _ = self.forward(where, **self.inputs_of(ids))
        found = word_log_probs(logits, [word])[:, 0]
        self.check_numbers(found)
        return host(found).numpy()

    def _places(self, encoded: Encoded) -> list[int]:
        """The positions of the text's tokens, without blanks. Raises UserError if there is none."""
        ids = (*encoded.token_ids, None)  # a left-to-right model's blank stands behind them
        blanks = {*self.vocabulary.sentinels, self.tokenizer.mask_token_id, None}
        places = [at for at in self.text_range(encoded) if ids[at] not in blanks]
        if not places:
            raise UserError(
                f"{self.name} is shown no word beside the blank: there is none that its answer "
                "could come from."
            )
        return places

    def _shown(
        self,
        encoded: Encoded,
        places: Sequence[int],
        values: NDArray[np.float32],
        log_prob: float,
        baseline: float | None = None,
        n_points: int | None = None,
    ) -> Attribution:
        """The text as tokens, with its blanks, and the value of each."""
        ids = encoded.token_ids
        shown = dict(
            zip(places, self.vocabulary.show_text([ids[at] for at in places]), strict=True)
        )
        of_tokens = dict(zip(places, values.tolist(), strict=True))
        every = self.text_range(encoded)
        return Attribution(
            tuple(shown.get(at, BLANK) for at in every),
            np.array([of_tokens.get(at, np.nan) for at in every], np.float32),
            log_prob,
            baseline,
            n_points,
        )

    @contextmanager
    def _watching(self, watch: Watch) -> Iterator[None]:
        """In the block, this thread's layers are seen by `watch`: module, input, options, output.

        What it returns, if anything, is the layer's output instead.
        """
        self._here.watch = watch
        try:
            yield
        finally:
            self._here.watch = None

    def _watched(self, module: nn.Module, given: Any, named: Any, output: Any) -> Any:
        watch: Watch | None = getattr(self._here, "watch", None)
        return None if watch is None else watch(module, given, named, output)

    @contextmanager
    def _embedding(self, embeddings: torch.Tensor) -> Iterator[None]:
        """In the block, this thread's next pass has these embeddings for its text."""
        self._here.embeddings = embeddings
        try:
            yield
        finally:
            self._here.embeddings = None

    def _embedded(self, _module: nn.Module, _given: Any, output: Any) -> Any:
        embeddings: torch.Tensor | None = getattr(self._here, "embeddings", None)
        if embeddings is None or embeddings.shape != output.shape:
            return None
        self._here.embeddings = None  # the text is looked up once, what a decoder says after it
        return embeddings.clone()  # a family may write into it


@cache
def gauss_legendre(n_points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points of the Gauss-Legendre rule in [0, 1] and their weights, which sum to 1; [point]."""
    from scipy.special import roots_legendre

    roots, weights = roots_legendre(n_points)
    return (roots + 1) / 2, weights / 2


def _halved(
    log_prob: Callable[[float], float],
    adds: Callable[[float, float, int], torch.Tensor],
    baseline: float,
    whole: float,
    until: float,
) -> Integral:
    """The integral over stretches of the way, each of `POINTS_OF_STRETCH` points.

    log_prob: at a share of the way. adds: of a part of the way, with so many points. baseline,
    whole: log-probability at its ends. Ends when the stretches are in doubt by at most `MISSED` of
    the difference together, when `MOST_POINTS` are used, or after the time `until`.
    """

    def stretch(first: float, end: float, before: float, after: float) -> Stretch:
        return Stretch(first, end, before, after, adds(first, end, POINTS_OF_STRETCH))

    parts, n_points = [stretch(0.0, 1.0, baseline, whole)], POINTS_OF_STRETCH
    bound = max(MISSED * abs(whole - baseline), LEAST_MISSED)
    while sum(part.doubt for part in parts) > bound:
        if n_points + 2 * POINTS_OF_STRETCH > MOST_POINTS or time.monotonic() > until:
            break
        worst = max(parts, key=lambda part: part.doubt)
        parts.remove(worst)
        middle = (worst.first + worst.end) / 2
        between = log_prob(middle)
        halves = (
            stretch(worst.first, middle, worst.before, between),
            stretch(middle, worst.end, between, worst.after),
        )
        n_points += 2 * POINTS_OF_STRETCH
        moved = float((halves[0].adds + halves[1].adds - worst.adds).abs().max())
        parts += [replace(half, moved=moved * LEFT_BY_HALVING / 2) for half in halves]
    return Integral(torch.stack([part.adds for part in parts]).sum(0), n_points)


def word_log_probs(logits: torch.Tensor, words: Sequence[Sequence[int]]) -> torch.Tensor:
    """Log-probability of each word, any of whose tokens writes it: float32 [row, word]."""
    sums = [torch.logsumexp(logits[:, list(forms)], dim=1) for forms in words]
    total = torch.logsumexp(logits, dim=1, keepdim=True)
    return torch.stack(sums, dim=1) - total if sums else logits[:, :0]


def _stacks(model: nn.Module) -> list[nn.ModuleList]:
    """The lists of modules that are in no other list: the layers are one of them."""
    found: dict[str, nn.ModuleList] = {}
    for name, module in model.named_modules():
        inside = any(name.startswith(f"{outer}.") for outer in found)
        if isinstance(module, nn.ModuleList) and not inside:
            found[name] = module
    return list(found.values())
