"""Base class of Hugging Face backends: forward passes with logits at chosen positions only.

The base model's output is cut to those positions before the head sees it, so any architecture's
head (transform, projection, scaling) applies unchanged to [position, 1, hidden]. If cutting changes
the logits (`self_checks`), nothing is cut. Each pass moves its inputs to the model's device; only
`devices.to_cpu` copies numbers from it.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import AFTER_SPACE, Place, Vocabulary
from lama_core.errors import UserError, WindowError
from lama_core.models.devices import (
    HasDevice,
    n_threads,
    run_in_parts,
    run_in_passes,
    to_cpu,
    tokens_per_pass,
)
from lama_core.models.hf.products import packed_bytes, use_faster_products
from lama_core.models.protocols import (
    Context,
    Encoded,
    ScoredPart,
    Scores,
    StatementScores,
    WordScore,
)
from lama_core.models.vocabulary import TextTokens, TokenVocabulary
from lama_core.queue import PASSES
from lama_core.types import Query

n_threads()  # stores torch's default number of threads before it is changed
UNLIMITED = int(1e30)  # tokens: transformers' value if a tokenizer has no maximum
V = TypeVar("V")
Positions = tuple[torch.Tensor, torch.Tensor]  # row and column of each position, int64 [position]
# Largest accepted difference between two computations of a logit, in standard deviations over the
# vocabulary.
TOLERANCES = {"fp32": 1e-3, "bf16": 0.3, "bf16-weights": 1e-3}


class Transformer(HasDevice):
    """A loaded model. Sessions share it; their forward passes take turns (`queue`).

    model: the network. tokenizer: a fast tokenizer, or a vocabulary of words. identity: equal each
    time the same model is loaded. max_tokens: the window, special tokens included.
    precision: `fp32` or `bf16`, by its weights (`bf16-weights`: see `registry.round_weights`).
    device: the device of its weights and inputs. pads: whether rows of different lengths may share
    a pass. notes: remarks for users, one sentence each.
    """

    def __init__(self, name: str, model: Any, tokenizer: Any, *, identity: str) -> None:
        self.name = name
        self.identity = identity
        self.model = model.eval().requires_grad_(False)
        use_faster_products(model)
        self.tokenizer = tokenizer
        self.max_tokens = window(model, tokenizer)
        self.precision = "bf16" if next(model.parameters()).dtype == torch.bfloat16 else "fp32"
        self.notes: list[str] = []
        if getattr(model.config, "quantization_config", None) is not None:
            self.notes.append("Its weights are quantised to 8 bits, as stored in its folder.")
        self.pads = True
        self._here = threading.local()  # per thread: the positions to keep
        self._alone = contextlib.nullcontext() if is_pure(model) else threading.RLock()
        self._hooks: list[Any] = []
        self.cut_at(cutting_places(model))
        width = getattr(model.get_output_embeddings(), "weight", None)
        rows = model.config.vocab_size if width is None else width.shape[0]
        # A model of whole words has no tokenizer, but a vocabulary.
        own = isinstance(tokenizer, Vocabulary)
        self.vocabulary: TokenVocabulary = (
            tokenizer if own else TokenVocabulary(tokenizer, int(rows))
        )
        if isinstance(self.vocabulary, TokenVocabulary) and self.vocabulary.lacking:
            self.notes.append(
                f"The model lacks its tokenizer's token {self.vocabulary.lacking[0]!r}, which no "
                "text needs."
            )

    def encode(self, query: Query, context: Context) -> Encoded:
        """Encode a query; raise UserError if it doesn't fit the model's window."""
        raise NotImplementedError

    @property
    def n_bytes(self) -> int:
        """Size of the weights in memory, with the copies for faster products."""
        return super().n_bytes + packed_bytes(self.model)

    @property
    def tokens_per_pass(self) -> int:
        """Maximum number of tokens per pass, padding included."""
        return tokens_per_pass(self.device)

    def cut_at(self, places: Sequence[Any]) -> None:
        """Cut the output of the first of these modules that runs; () cuts nothing."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = [module.register_forward_hook(self._cut) for module in places]

    def input_vectors(self, ids: Sequence[int]) -> torch.Tensor:
        """Input embeddings of tokens, [token, dim]."""
        return self.model.get_input_embeddings().weight.detach()[list(ids)]

    def word_vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Input embeddings, float32 [word, dim]; the mean over a word's tokens."""
        rows = [self.input_vectors(self.vocabulary.pieces(word)).float().mean(0) for word in words]
        return to_cpu(torch.stack(rows) if rows else self.input_vectors([]).float()).numpy()

    def word_matrix(self, columns: Columns) -> NDArray[np.float32]:
        """Input embeddings, float32 [candidate, dim], of each candidate's token after a space."""
        first = columns.table(AFTER_SPACE).ids[:, 0]
        found = to_cpu(self.input_vectors(first.clip(min=0).tolist()).float()).numpy()
        others = np.flatnonzero(first < 0).tolist()  # one token only at another place
        if others:
            found[others] = self.word_vectors([columns.words[column] for column in others])
        return found

    def _cut(self, _module: Any, _arguments: Any, output: Any) -> Any:
        keep: Positions | None = getattr(self._here, "keep", None)
        if keep is None:
            return output
        rows, columns = keep
        self._here.keep = None  # modules around this one get cut output already
        states = output if isinstance(output, torch.Tensor) else output[0]
        kept = states[rows.to(states.device), columns.to(states.device)].unsqueeze(1)
        return with_states(output, kept)

    @contextmanager
    def passing(
        self, positions: Positions | None = None, *, slopes: bool = False
    ) -> Iterator[None]:
        """Take this thread's turn for a pass, with its share of the CPU cores.

        positions: the positions to cut the output to; None cuts nothing. slopes: whether the pass
        needs gradients.
        """
        with PASSES.slot(), self._alone, torch.enable_grad() if slopes else torch.inference_mode():
            n = max(1, n_threads() // PASSES.n_running)
            if torch.get_num_threads() != n:
                torch.set_num_threads(n)
            self._here.keep = positions
            try:
                yield
            finally:
                self._here.keep = None

    def forward(
        self, positions: Positions, *, slopes: bool = False, **inputs: Any
    ) -> tuple[torch.Tensor, Any]:
        """Logits at the given positions, float32 [position, vocabulary], and the model's output."""
        logits, output = self.raw_forward(positions, slopes=slopes, **inputs)
        return logits.float(), output

    def raw_forward(
        self, positions: Positions, *, slopes: bool = False, **inputs: Any
    ) -> tuple[torch.Tensor, Any]:
        """`forward` with logits in the model's precision."""
        with self.passing(positions, slopes=slopes):
            output = self.model(**self._on_device(inputs))
            logits = output.logits
            if self._here.keep is not None:  # no module was cut
                rows, columns = positions
                logits = logits[rows.to(logits.device), columns.to(logits.device)]
            return logits.reshape(len(positions[0]), -1), output

    def plain_logits(self, row: Sequence[int]) -> torch.Tensor:
        """Logits of one row, uncut, float32 [position, vocabulary]."""
        with self.passing():
            ids = torch.tensor([list(row)], device=self.device)
            return self.model(input_ids=ids).logits[0].float()

    def all_states(self, **inputs: Any) -> Any:
        """Output of the model without its head, with the hidden states of every layer.

        For encoder-decoder models, the output of the encoder, which reads the text.
        """
        with self.passing():
            body = self.model.base_model
            if getattr(self.model.config, "is_encoder_decoder", False):
                body = self.model.get_encoder()
            return body(**self._on_device(inputs), output_hidden_states=True)

    def _on_device(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Move the inputs of a pass to the model's device."""
        device = self.device
        return {
            name: value.to(device) if isinstance(value, torch.Tensor) else value
            for name, value in inputs.items()
        }

    def logits(
        self, rows: Sequence[Sequence[int]], positions: Sequence[Sequence[int]]
    ) -> torch.Tensor:
        """Logits at the given positions, float32 [position, vocabulary], row by row.

        rows: token ids, padded here. positions: the positions in each row.
        Raises UserError if a single row doesn't fit into the device's memory.
        """

        def run(some: Sequence[int]) -> torch.Tensor:
            return self._logits([rows[n] for n in some], [positions[n] for n in some])

        def run_one_length(some: Sequence[int]) -> dict[int, torch.Tensor]:
            return dict(zip(some, run(some).split([len(positions[n]) for n in some]), strict=True))

        lengths = [len(row) for row in rows]
        if not self.pads and len({*lengths}) > 1:
            return torch.cat(self.longest_first(run_one_length, lengths))
        parts = run_in_passes(run, range(len(rows)), self.tokens_per_pass // max(lengths))
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def longest_first(
        self, run: Callable[[Sequence[int]], dict[int, V]], lengths: Sequence[int]
    ) -> list[V]:
        """Call `run` with rows that fit in a pass, longest first; return the values in row order.

        If padding changes answers, only rows of equal length share a pass.

        Args:
            run: Maps row numbers to their values.
            lengths: Number of tokens of each row.
        """
        found: dict[int, V] = {}
        order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
        while order:
            longest = lengths[order[0]]
            size = max(1, self.tokens_per_pass // longest)
            chunk = [n for n in order[:size] if self.pads or lengths[n] == longest]
            order = order[len(chunk) :]
            for part in run_in_parts(run, chunk):
                found |= part
        return [found[number] for number in range(len(lengths))]

    def _logits(
        self, rows: Sequence[Sequence[int]], positions: Sequence[Sequence[int]]
    ) -> torch.Tensor:
        ids, mask = self.padded(rows)
        where = (
            torch.tensor([number for number, row in enumerate(positions) for _ in row]),
            torch.tensor([column for row in positions for column in row]),
        )
        return self.forward(where, input_ids=ids, attention_mask=mask)[0]

    @property
    def padding_id(self) -> int:
        """Id of the padding token; of any token if there is none, because it isn't seen."""
        padding = self.tokenizer.pad_token_id or 0
        return padding if padding < self.vocabulary.size else 0

    def padded(
        self, rows: Sequence[Sequence[int]], side: str = "right"
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Token ids, padded on one side, and the attention mask, both int64 [row, token]."""
        given = [torch.tensor(row, dtype=torch.int64) for row in rows]
        ids = pad_sequence(given, True, self.padding_id, side)
        return ids, pad_sequence([torch.ones_like(row) for row in given], True, 0, side)

    def pick(self, logits: torch.Tensor, places: Sequence[Place], columns: Columns) -> Scores:
        """Scores of the candidates, one row per position, and the best token of the vocabulary.

        The log-softmax is over the whole vocabulary. The probabilities of all tokens that can write
        a word are summed.
        Raises UserError if the model returned values that aren't numbers.
        """
        normaliser = torch.logsumexp(logits, dim=1, keepdim=True)
        self.check_numbers(normaliser)
        picked = np.empty((len(logits), len(columns.words)), dtype=np.float32)
        tables = [columns.table(place) for place in places]
        for table in {id(table): table for table in tables}.values():
            at = [number for number, here in enumerate(tables) if here is table]
            ids = torch.from_numpy(table.ids).to(logits.device)
            chosen = logits if len(at) == len(places) else logits[at]
            forms = chosen[:, ids.clamp(min=0)].masked_fill_(ids < 0, -torch.inf)
            values = forms[:, :, 0] if forms.shape[2] == 1 else torch.logsumexp(forms, dim=2)
            picked[at] = to_cpu(values - normaliser[at]).numpy()
        best, first = logits.max(dim=1)
        return Scores(
            picked,
            first=to_cpu(first).numpy(),
            first_log_probs=to_cpu(best - normaliser[:, 0]).numpy(),
        )

    def check_numbers(self, values: torch.Tensor) -> None:
        """Raise UserError if a value isn't a finite number."""
        if not torch.isfinite(to_cpu(values)).all():
            raise UserError(
                f"{self.name} returned values that aren't finite numbers: its weights are damaged, "
                "or the precision is too low. Try --precision fp32."
            )

    def encode_all(self, queries: Sequence[Query], *context: Context) -> list[Encoded]:
        """Encode queries; the results have the same order."""
        return [self.encode(query, *context) for query in queries]

    def word_score(self, pieces: Sequence[int], log_prob: float) -> WordScore:
        """Return a word's score, with log-probability -inf if the model can't write the word."""
        known = bool(pieces) and self.tokenizer.unk_token_id not in pieces
        return WordScore(self.vocabulary.show_text(pieces), log_prob if known else -np.inf)

    def scored_statement(
        self, read: TextTokens, log_probs: NDArray[np.float32], scored: ScoredPart
    ) -> StatementScores:
        """Return a statement's scores. log_probs: float32 [token]."""
        if scored == "answer":
            log_probs = np.where(read.marked, log_probs, np.float32(np.nan))
        answer = [read.ids[at] for at in np.flatnonzero(read.marked)]
        lost = not answer or self.tokenizer.unk_token_id in answer
        return StatementScores(self.vocabulary.show_text(read.ids), log_probs, read.marked, lost)

    def check_window(self, n_tokens: int) -> None:
        """Raise WindowError if a text has more tokens than the window."""
        if n_tokens > self.max_tokens:
            raise WindowError(
                f"The text has {n_tokens:,} tokens, but {self.name} takes at most "
                f"{self.max_tokens:,}. Shorten the text."
            )


def cutting_places(model: Any) -> list[Any]:
    """Return the modules whose output may be cut to the positions to score, in order of preference.

    The head reads the base model's output or, in OPT, the decoder's. In layers like BERT's,
    everything after the attention works on each position separately, so the output of the last
    layer's attention can be cut, which saves two thirds of that layer.
    """
    body = model.base_model
    if body is model:  # the T5 family has no base model around its decoder
        return [model.get_decoder()] if model.config.is_encoder_decoder else []
    layers = getattr(getattr(body, "encoder", None), "layer", None)
    places = [getattr(body, "decoder", None), body]
    if layers and all(hasattr(layers[-1], one) for one in ("attention", "intermediate", "output")):
        places.insert(0, layers[-1].attention)
    return [place for place in places if place is not None]


def with_states(output: Any, states: torch.Tensor) -> Any:
    """Return a module's output with its hidden states replaced."""
    if isinstance(output, torch.Tensor):
        return states
    if isinstance(output, tuple | list):
        return (states, *output[1:])
    output["last_hidden_state"] = states
    return output


def chosen_log_probs(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Log-probability of each target, float32 [...]; logits: [..., vocabulary]."""
    chosen = logits.gather(-1, targets.to(logits.device)[..., None])[..., 0]
    return chosen - torch.logsumexp(logits, dim=-1)


def log_normalisers(logits: torch.Tensor) -> torch.Tensor:
    """Return the log-sum-exp of each row, float32 [row]; logits: in any precision.

    Works on a few rows at a time, so that they fit into a CPU's caches.
    """
    at_once = 1 << 20 if logits.device.type == "cpu" else 1 << 27
    n_rows = max(1, at_once // max(1, logits.shape[1]))
    return torch.cat([torch.logsumexp(some.float(), dim=1) for some in logits.split(n_rows)])


def window(model: Any, tokenizer: Any) -> int:
    """Return the window in tokens, special tokens included: the smallest limit in the files.

    Multimodal models have it in their text configuration. If the position table has a row for
    padding (RoBERTa and its successors), positions start after that row: 514 rows are 512 tokens.
    """
    config = text_config(model.config)
    offset = first_place(model)
    names = ("max_position_embeddings", "n_positions", "max_seq_len", "max_target_positions")
    values = [getattr(config, name, None) for name in names]
    limits = [value - offset for value in values if isinstance(value, int) and value > 0]
    # If a text in a batch is longer than the original window, longrope models rotate all positions
    # differently, so an answer would depend on the other texts in its batch.
    rope = rope_of(config)
    for part in (rope, *(value for value in rope.values() if isinstance(value, dict))):
        if part.get("rope_type") == "longrope":
            name = "original_max_position_embeddings"
            first = part.get(name) or getattr(config, name, None)
            limits += [first] if isinstance(first, int) and first > 0 else []
    return min([*limits, longest_text(tokenizer)])


def text_config(config: Any) -> Any:
    """Return the configuration of the part that predicts words, such as a multimodal model's."""
    return config.get_text_config(decoder=True) if hasattr(config, "get_text_config") else config


def longest_text(tokenizer: Any) -> int:
    """Return the maximum number of tokens that a tokenizer's configuration gives.

    Raises UserError if it isn't a positive number.
    """
    value = tokenizer.model_max_length
    if type(value) not in (int, float) or not value >= 1:
        raise UserError(
            f"tokenizer_config.json: model_max_length is {str(value)[:40]!r}. Write the maximum "
            "number of tokens, or remove it."
        )
    return int(min(value, UNLIMITED))


def rope_of(config: Any) -> dict[str, Any]:
    """Return the settings of the rotary embedding; {} if there are none."""
    rope = getattr(config, "rope_parameters", None)
    return rope if isinstance(rope, dict) else {}


def first_place(model: Any) -> int:
    """Return a text's first row in the position table: 0, or the row after the padding row."""
    behind = [
        module.padding_idx + 1
        for name, module in model.named_modules()
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None
    ]
    return max(behind, default=0)


def pack(encoded: Sequence[Encoded]) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return a batch's token ids and blank positions."""
    return [query.token_ids for query in encoded], [query.positions for query in encoded]


def is_pure(model: Any) -> bool:
    """Whether passes through a model may run concurrently, because they don't modify it.

    True for this project's networks, for transformers' BERT, and for its Llama with the usual
    rotary embedding. Other models run one pass at a time.
    """
    if type(model).__module__.startswith("lama_core.") or model.config.model_type == "bert":
        return True
    rope = rope_of(model.config).get("rope_type", "default")
    return model.config.model_type == "llama" and rope == "default"
