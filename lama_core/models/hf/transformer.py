"""What the backends of Hugging Face models share: a model, its tokenizer, and forward passes that
send only the chosen positions through the vocabulary projection.

The base model's output is cut to those positions before the head sees it, so any architecture's
head (transform, projection, scaling) applies unchanged to [position, 1, hidden]. Where that gives
other numbers (`proofs.py`), nothing is cut. Inputs go to the model's device with each pass, and
numbers leave it by `devices.host`.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import Place
from lama_core.errors import UserError
from lama_core.models.devices import Placed, host, in_parts, in_passes, tokens_per_pass
from lama_core.models.protocols import Context, Encoded, Scored, Scores, StatementScores, WordScore
from lama_core.models.vocabulary import TextTokens, TokenVocabulary
from lama_core.models.whole_words import WordVocabulary
from lama_core.queue import PASSES
from lama_core.types import Query

# Of the cores, as many as torch takes where nobody says otherwise.
N_THREADS = torch.get_num_threads()
# Logits that are added up together.
CACHED = {"cpu": 1 << 20}
ON_CARDS = 1 << 27
V = TypeVar("V")
Positions = tuple[torch.Tensor, torch.Tensor]  # row and column of each position, int64 [position]
# How far two logits of one token may lie apart, in standard deviations over the vocabulary.
TOLERANCES = {"fp32": 1e-3, "bf16": 0.3}


class Transformer(Placed):
    """A loaded model. Pages share it between sessions, whose forward passes take turns (`queue`).

    model: in evaluation mode. tokenizer: a fast tokenizer, or a vocabulary of words. identity: what
    makes two loads the same model. max_tokens: the window, special tokens included. precision:
    `fp32` or `bf16`, by its weights. device: where its weights are and its inputs go. pads: whether
    rows of several lengths go through it together; else only those of one length do. notes: what a
    user should know of how it runs, a sentence each.
    """

    def __init__(self, name: str, model: Any, tokenizer: Any, *, identity: str) -> None:
        self.name = name
        self.identity = identity
        self.model = model.eval().requires_grad_(False)
        self.tokenizer = tokenizer
        self.max_tokens = window(model, tokenizer)
        self.precision = "bf16" if next(model.parameters()).dtype == torch.bfloat16 else "fp32"
        self.notes: list[str] = []
        if getattr(model.config, "quantization_config", None) is not None:
            self.notes.append("Its weights are kept in 8 bits, as its folder has them.")
        self.pads = True
        self._here = threading.local()  # of each thread: the positions that are to be kept
        self._alone = contextlib.nullcontext() if is_pure(model) else threading.RLock()
        self._hooks: list[Any] = []
        self.cut_at(cutting_places(model))
        output = model.get_output_embeddings()
        width = getattr(output, "weight", None)
        rows = model.config.vocab_size if width is None else width.shape[0]
        self.vocabulary: TokenVocabulary | WordVocabulary = (
            tokenizer
            if isinstance(tokenizer, WordVocabulary)
            else TokenVocabulary(tokenizer, int(rows))
        )

    def encode(self, query: Query, context: Context) -> Encoded:
        """The query as tokens. Raises UserError if it doesn't fit the model's window."""
        raise NotImplementedError

    @property
    def tokens_per_pass(self) -> int:
        """How many tokens go through the model together, padding included."""
        return tokens_per_pass(self.device)

    def cut_at(self, places: Sequence[Any]) -> None:
        """From now on cut the output of the first of these modules that runs; () cuts nothing."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = [module.register_forward_hook(self._cut) for module in places]

    @property
    def n_parameters(self) -> int:
        """How many weights the model has, tied ones counted once."""
        return sum(tensor.numel() for tensor in self.model.parameters())

    def input_vectors(self, ids: Sequence[int]) -> torch.Tensor:
        """Input embeddings of some tokens, [token, dim]."""
        return self.model.get_input_embeddings().weight.detach()[list(ids)]

    def word_vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Input embeddings, float32 [word, dim]; the mean over a word's pieces."""
        pieces = [self.vocabulary.pieces(word) for word in words]
        rows = [self.input_vectors(one).float().mean(0) for one in pieces]
        return host(torch.stack(rows) if rows else self.input_vectors([]).float()).numpy()

    def word_matrix(self, columns: Columns) -> NDArray[np.float32]:
        """Input embeddings of the candidates, float32 [candidate, dim], by their first form."""
        first = columns.token_ids["after space"][:, 0].tolist()
        return host(self.input_vectors(first).float()).numpy()

    def _cut(self, _module: Any, _arguments: Any, output: Any) -> Any:
        keep: Positions | None = getattr(self._here, "keep", None)
        if keep is None:
            return output
        rows, columns = keep
        self._here.keep = None  # what stands around this module gets cut output already
        states = output if isinstance(output, torch.Tensor) else output[0]
        kept = states[rows.to(states.device), columns.to(states.device)].unsqueeze(1)
        return with_states(output, kept)

    @contextmanager
    def _passing(
        self, positions: Positions | None = None, *, slopes: bool = False
    ) -> Iterator[None]:
        """This thread's turn for a pass, with its part of the cores; which positions are kept.

        slopes: whether gradients are to be had of it.
        """
        with PASSES.slot(), self._alone, torch.enable_grad() if slopes else torch.inference_mode():
            n_threads = max(1, N_THREADS // PASSES.n_running)
            if torch.get_num_threads() != n_threads:
                torch.set_num_threads(n_threads)
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
        """The same in the model's own precision."""
        with self._passing(positions, slopes=slopes):
            output = self.model(**self._there(inputs))
            logits = output.logits
            if self._here.keep is not None:  # no body's output passed by
                rows, columns = positions
                logits = logits[rows.to(logits.device), columns.to(logits.device)]
            return logits.reshape(len(positions[0]), -1), output

    def plain_logits(self, row: Sequence[int]) -> torch.Tensor:
        """Logits of one row, uncut, float32 [position, vocabulary]."""
        with self._passing():
            ids = torch.tensor([list(row)], device=self.device)
            return self.model(input_ids=ids).logits[0].float()

    def all_states(self, **inputs: Any) -> Any:
        """The output of the model without its head, with the hidden states of every layer.

        Of a model with an encoder and a decoder, the encoder's, which reads the text.
        """
        with self._passing():
            body = self.model.base_model
            if getattr(self.model.config, "is_encoder_decoder", False):
                body = self.model.get_encoder()
            return body(**self._there(inputs), output_hidden_states=True)

    def _there(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The inputs of a pass, on the model's device."""
        device = self.device
        return {
            name: value.to(device) if isinstance(value, torch.Tensor) else value
            for name, value in inputs.items()
        }

    def logits(
        self, rows: Sequence[Sequence[int]], positions: Sequence[Sequence[int]]
    ) -> torch.Tensor:
        """Logits where asked, float32 [position, vocabulary], row by row.

        rows: token ids, padded here. positions: the positions wanted in each row.
        Raises UserError if the device has no room for even one of them.
        """

        def ask(some: Sequence[int]) -> torch.Tensor:
            return self._logits([rows[n] for n in some], [positions[n] for n in some])

        def ask_one_length(some: Sequence[int]) -> dict[int, torch.Tensor]:
            parts = ask(some).split([len(positions[n]) for n in some])
            return dict(zip(some, parts, strict=True))

        lengths = [len(row) for row in rows]
        if not self.pads and len({*lengths}) > 1:
            return torch.cat(self.longest_first(ask_one_length, lengths))
        size = self.tokens_per_pass // max(lengths)
        parts = in_passes(ask, range(len(rows)), size)
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def longest_first(
        self, run: Callable[[Sequence[int]], dict[int, V]], lengths: Sequence[int]
    ) -> list[V]:
        """The values that `run` gives of the numbers of rows, as many at a time as have room.

        Padding is included; where it changes an answer, rows of one length go together.
        """
        found: dict[int, V] = {}
        order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
        while order:
            longest = lengths[order[0]]
            size = max(1, self.tokens_per_pass // longest)
            chunk = [n for n in order[:size] if self.pads or lengths[n] == longest]
            order = order[len(chunk) :]
            for part in in_parts(run, chunk):
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

    def padded(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Token ids, padded on the right, and the attention mask, both int64 [row, token]."""
        width = max(len(row) for row in rows)
        padding = self.tokenizer.pad_token_id or 0
        ids = torch.full((len(rows), width), padding, dtype=torch.int64)
        mask = torch.zeros((len(rows), width), dtype=torch.int64)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = torch.tensor(row, dtype=torch.int64)
            mask[number, : len(row)] = 1
        return ids, mask

    def pick(self, logits: torch.Tensor, places: Sequence[Place], columns: Columns) -> Scores:
        """Scores of the candidates, a row a position, and the first of all tokens.

        The log-softmax is over the whole vocabulary; a word with several forms has their sum.
        Raises UserError if the model gave a value that is not a number.
        """
        normaliser = torch.logsumexp(logits, dim=1, keepdim=True)
        self.check_numbers(normaliser)
        picked = np.empty((len(logits), len(columns.words)), dtype=np.float32)
        for place in set(places):
            at = [number for number, here in enumerate(places) if here == place]
            ids = torch.from_numpy(columns.token_ids[place]).to(logits.device)
            chosen = logits if len(at) == len(places) else logits[at]
            if ids.shape[1] == 1:
                values = chosen[:, ids[:, 0]]
            else:
                forms = chosen[:, ids.clamp(min=0)].masked_fill(ids < 0, -torch.inf)
                values = torch.logsumexp(forms, dim=2)
            picked[at] = host(values - normaliser[at]).numpy()
        best, first = logits.max(dim=1)
        firsts = host(best - normaliser[:, 0]).numpy()
        return Scores(picked, first=host(first).numpy(), first_log_probs=firsts)

    def check_numbers(self, values: torch.Tensor) -> None:
        """Raise UserError if the model gave a value that is not a number."""
        if not torch.isfinite(host(values)).all():
            raise UserError(
                f"{self.name} gave values that are not numbers: its weights are damaged, or the "
                "precision is too low for them; try --precision fp32."
            )

    def encode_all(self, queries: Sequence[Query], *context: Context) -> list[Encoded]:
        """Many queries, in their order."""
        return [self.encode(query, *context) for query in queries]

    def word_score(self, pieces: Sequence[int], log_prob: float) -> WordScore:
        """The score of a word of some pieces; -inf if the model can't write it."""
        known = bool(pieces) and self.tokenizer.unk_token_id not in pieces
        return WordScore(self.vocabulary.show_text(pieces), log_prob if known else -np.inf)

    def text_ids(self, text: str) -> list[int]:
        """Token ids of a plain text, without special tokens; control tokens in it are text."""
        return self.vocabulary.encode(text)

    def scored_statement(
        self, read: TextTokens, log_probs: NDArray[np.float32], scored: Scored
    ) -> StatementScores:
        """A statement's scores; log_probs: float32 [token]."""
        if scored == "answer":
            log_probs = np.where(read.marked, log_probs, np.float32(np.nan))
        unknown = self.tokenizer.unk_token_id
        of_answer = [read.ids[at] for at in np.flatnonzero(read.marked)]
        lost = not of_answer or unknown in of_answer
        return StatementScores(self.vocabulary.show_text(read.ids), log_probs, read.marked, lost)

    def check_window(self, n_tokens: int) -> None:
        """Raise UserError if a text of so many tokens doesn't fit."""
        if n_tokens > self.max_tokens:
            raise UserError(
                f"The text has {n_tokens:,} tokens for {self.name} and {self.max_tokens:,} fit: "
                "shorten it."
            )


def cutting_places(model: Any) -> list[Any]:
    """The modules whose output may be cut to the wanted positions; the first that runs is cut.

    The head reads the base model's output, or that of its decoder: OPT's head goes past the base
    model around it. In layers as BERT has them, what follows the last layer's attention treats
    each position by itself, so all of it can be spared too: two thirds of a layer.
    """
    body = model.base_model
    if body is model:  # T5's family has no body around its decoder
        return [model.get_decoder()] if model.config.is_encoder_decoder else []
    layers = getattr(getattr(body, "encoder", None), "layer", None)
    parts = ("attention", "intermediate", "output")
    places = [getattr(body, "decoder", None), body]
    if layers and all(hasattr(layers[-1], part) for part in parts):
        places.insert(0, layers[-1].attention)
    return [place for place in places if place is not None]


def with_states(output: Any, states: torch.Tensor) -> Any:
    """A module's output with other hidden states in it."""
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
    """Logarithm of the sum of each row's exponentials, float32 [row]; logits: in any precision.

    A few rows at a time, as many as a processor's caches hold.
    """
    n_rows = max(1, CACHED.get(logits.device.type, ON_CARDS) // max(1, logits.shape[1]))
    parts = [torch.logsumexp(some.float(), dim=1) for some in logits.split(n_rows)]
    return torch.cat(parts)


def window(model: Any, tokenizer: Any) -> int:
    """How many tokens fit, special ones included: the least of what the folder's files say.

    A model of several kinds of input says it beside its text's part. Where the table of positions
    has a row for padding (RoBERTa and what follows it), a text's positions begin behind that row:
    514 are 512.
    """
    config = model.config
    if hasattr(config, "get_text_config"):
        config = config.get_text_config(decoder=True)
    behind = first_place(model)
    limits = [int(tokenizer.model_max_length)]
    for name in ("max_position_embeddings", "n_positions", "max_seq_len", "max_target_positions"):
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            limits.append(value - behind)
    # Beyond what they were first trained on, these models turn every position of a text otherwise:
    # an answer would depend on the texts beside it.
    rope = getattr(config, "rope_parameters", None) or {}
    for part in (rope, *(one for one in rope.values() if isinstance(one, dict))):
        if part.get("rope_type") == "longrope":
            first = part.get("original_max_position_embeddings")
            first = first or getattr(config, "original_max_position_embeddings", None)
            limits += [int(first)] if first else []
    return min(limits)


def first_place(model: Any) -> int:
    """The number of a text's first place: 0, or behind the table's row for padding."""
    behind = [
        module.padding_idx + 1
        for name, module in model.named_modules()
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None
    ]
    return max(behind, default=0)


def pack(encoded: Sequence[Encoded]) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Token ids and blank positions of a batch, as two lists."""
    return [query.token_ids for query in encoded], [query.positions for query in encoded]


def is_pure(model: Any) -> bool:
    """Whether passes through a model may run side by side: they change nothing in it.

    Known of our own BERT and of Llama's family with the usual rotary embedding, which is what the
    embedded model and SmolLM2 are. Any other is passed through by one thread at a time.
    """
    if type(model).__module__.startswith("lama_core."):
        return True
    rope = getattr(model.config, "rope_parameters", None) or {}
    return model.config.model_type == "llama" and rope.get("rope_type", "default") == "default"
