"""ELMo, from a converted release: two LSTM language models that read a text in either direction.

The forward states are read one place left of the blank, the backward states one place right of it,
both of the last layer; LAMA ranks by the mean of the two log-softmaxes. Both directions share the
softmax's weights W and b, so that the mean, renormalised, is one softmax of the mean state:

    log P(w) = log softmax(W (h_forward + h_backward) / 2 + b)_w

Source: Peters et al. 2018, section 3; AllenNLP's bilm-tf (gates i, j, f, o; a forget bias of 1;
cells and projections clipped; `<S>` and `</S>` around a text); LAMA's elmo_connector.
Departure: States of ELMo
"""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import place_of
from lama_core.models.classic.converted import LOGITS, N_CHARACTERS, are_sizes, open_release
from lama_core.models.devices import host, once_each
from lama_core.models.hf.layers import Linear, Table
from lama_core.models.hf.transformer import Transformer
from lama_core.models.protocols import (
    Context,
    Encoded,
    Hiding,
    Kind,
    Scored,
    Scores,
    Statement,
    StatementScores,
    TokenScores,
    WordScore,
)
from lama_core.models.whole_words import WordVocabulary
from lama_core.types import Query

SIZES = (
    "filters",
    "char_dim",
    "max_characters",
    "n_highway",
    "dim",
    "projection_dim",
    "n_layers",
    "cell_clip",
    "proj_clip",
    "skips",
)
# Characters are the bytes of UTF-8, and these.
BEGIN_TEXT, END_TEXT, BEGIN_WORD, END_WORD, PADDING = range(256, 261)
FORGET_BIAS = 1.0
PASSES, MOST_PASSES = 1, 20
WORDS_PER_PASS = 512

States = list[list[tuple[torch.Tensor, torch.Tensor]]]


class Elmo(nn.Module):
    """The network without its softmax, which is `softmax` where `n_words` isn't 0."""

    def __init__(self, config: SimpleNamespace, *, n_words: int) -> None:
        super().__init__()
        self.config = config
        self.characters = _Characters(config)
        self.directions = nn.ModuleList(
            nn.ModuleList(_Lstm(config) for _ in range(config.n_layers)) for _ in range(2)
        )
        if n_words:
            self.softmax = Linear(config.projection_dim, n_words)

    @property
    def base_model(self) -> nn.Module:
        """The whole: what is cut, is cut before the softmax by hand."""
        return self

    def get_output_embeddings(self) -> nn.Module:
        return self.softmax

    def spell(self, words: Sequence[str]) -> torch.Tensor:
        """Input embeddings of words by their letters, [word, projection_dim]."""
        ids = torch.tensor([self._letters(word.encode(errors="replace")) for word in words])
        return self.characters(ids.to(self.characters.embedding.weight.device))

    @property
    def edges(self) -> torch.Tensor:
        """Input embeddings of the beginning and the end of a text, [2, projection_dim]."""
        ids = torch.tensor([self._letters([sign]) for sign in (BEGIN_TEXT, END_TEXT)])
        return self.characters(ids.to(self.characters.embedding.weight.device))

    def _letters(self, letters: Sequence[int]) -> list[int]:
        n = self.config.max_characters
        spelled = [BEGIN_WORD, *letters[: n - 2], END_WORD]
        return spelled + [PADDING] * (n - len(spelled))

    def start(self, n_rows: int) -> States:
        """States of nothing read yet: cell and output of each layer of each direction, zero."""
        like = self.characters.embedding.weight
        return [
            [
                (
                    like.new_zeros(n_rows, self.config.dim),
                    like.new_zeros(n_rows, self.config.projection_dim),
                )
                for _ in range(self.config.n_layers)
            ]
            for _ in self.directions
        ]

    def read(
        self, inputs: torch.Tensor, lengths: torch.Tensor, states: States
    ) -> tuple[torch.Tensor, torch.Tensor, States]:
        """What each direction makes of texts, [row, position, projection_dim], and its last states.

        inputs: [row, position, projection_dim], padded on the right. lengths: int64 [row].
        The backward one stands where its word stands; it has read what is right of it, too.
        """
        position = torch.arange(inputs.shape[1], device=inputs.device)
        there = position < lengths[:, None]
        mirrored = torch.where(there, lengths[:, None] - 1 - position, position)[..., None]
        found, last = [], []
        for number, direction in enumerate(self.directions):
            seen = inputs.gather(1, mirrored.expand_as(inputs)) if number else inputs
            ends = []
            for depth, layer in enumerate(cast(nn.ModuleList, direction)):
                output, end = layer(seen, there, states[number][depth])
                seen = output + seen if depth and self.config.skips else output
                ends.append(end)
            found.append(seen.gather(1, mirrored.expand_as(seen)) if number else seen)
            last.append(ends)
        return found[0], found[1], last


class _Characters(nn.Module):
    """A word's letters as one vector: convolutions, highway layers, a projection."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.embedding = Table(N_CHARACTERS, config.char_dim)
        self.convolutions = nn.ModuleList(
            _Filters(config.char_dim, n, kernel) for kernel, n in config.filters
        )
        width = sum(n for _, n in config.filters)
        self.highways = nn.ModuleList(_Highway(width) for _ in range(config.n_highway))
        self.projection = Linear(width, config.projection_dim)

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        embedded = self.embedding(letters).transpose(1, 2)
        states = torch.cat([filters(embedded) for filters in self.convolutions], dim=1)
        for highway in self.highways:
            states = highway(states)
        return self.projection(states)


class _Filters(nn.Module):
    def __init__(self, char_dim: int, n: int, kernel: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n, char_dim, kernel))
        self.bias = nn.Parameter(torch.empty(n))

    def forward(self, embedded: torch.Tensor) -> torch.Tensor:
        return functional.relu(functional.conv1d(embedded, self.weight, self.bias).amax(2))


class _Highway(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.carry, self.transform = Linear(width, width), Linear(width, width)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(self.carry(states))
        return gate * functional.relu(self.transform(states)) + (1 - gate) * states


class _Lstm(nn.Module):
    """An LSTM whose output is projected; cells and outputs are clipped."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.gates = Linear(2 * config.projection_dim, 4 * config.dim)
        self.projection = Linear(config.dim, config.projection_dim, bias=False)
        self.cell_clip, self.proj_clip = config.cell_clip, config.proj_clip

    def forward(
        self,
        inputs: torch.Tensor,
        there: torch.Tensor,
        state: tuple[torch.Tensor, torch.Tensor],
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """Outputs [row, position, projection_dim], and the state behind each row's last word."""
        cell, output = state
        width = inputs.shape[2]
        from_input = functional.linear(inputs, self.gates.weight[:, :width], self.gates.bias)
        outputs = []
        for step in range(inputs.shape[1]):
            gates = from_input[:, step] + functional.linear(output, self.gates.weight[:, width:])
            put, new, keep, give = gates.chunk(4, dim=1)
            moved = torch.sigmoid(keep + FORGET_BIAS) * cell + torch.sigmoid(put) * torch.tanh(new)
            moved = moved.clamp(-self.cell_clip, self.cell_clip)
            said = self.projection(torch.sigmoid(give) * torch.tanh(moved))
            said = said.clamp(-self.proj_clip, self.proj_clip)
            real = there[:, step, None]
            cell, output = torch.where(real, moved, cell), torch.where(real, said, output)
            outputs.append(said)
        return torch.stack(outputs, dim=1), (cell, output)


class ElmoModel(Transformer):
    """Fills blanks with what stands on both sides of them; all blanks of a text at once.

    A blank is the release's unknown word. passes: how often a text is read, from states of zero.
    """

    kind: Kind = "bidirectional"
    scores_first = True
    vocabulary: WordVocabulary

    def __init__(
        self, name: str, model: Elmo, vocabulary: WordVocabulary, *, identity: str, passes: int
    ) -> None:
        super().__init__(name, model, vocabulary, identity=identity)
        self.passes = passes
        often = "once" if passes == 1 else f"{passes} times"
        self.notes.append(
            f"It reads each text {often}, from states of zero; LAMA read each batch ten times and "
            "let the states carry over from the batch before."
        )

    def encode(self, query: Query, context: Context = "both") -> Encoded:
        """The query with the unknown word in each blank. `context` is always both sides.

        A word that isn't one of the output's is read by its letters all the same: it is numbered
        below zero, by them.
        """
        begin, end = self.vocabulary.frame
        ids, positions = [*begin], []
        for number, part in enumerate(query.parts):
            if number:
                positions.append(len(ids))
                ids.append(self.vocabulary.unk_token_id)
            ids += [self._number(word.text) for word in self.vocabulary.split(part)]
        self.check_window(len(ids) + 1)
        lefts = (" ".join(query.parts[: number + 1]) for number in range(query.n_blanks))
        return Encoded((*ids, *end), tuple(positions), tuple(place_of(left) for left in lefts))

    def _number(self, word: str) -> int:
        if self.vocabulary.knows(word):
            return self.vocabulary.index[word]
        return -int.from_bytes(b"\1" + word.encode(errors="replace"), "big")

    def _word(self, number: int) -> str:
        if number >= 0:
            return self.vocabulary.words[number]
        letters = (-number).to_bytes((number.bit_length() + 7) // 8, "big")
        return letters[1:].decode()

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        words = [self._words(query) for query in batch]
        states = self._beside(words, [[at - 1 for at in query.positions] for query in batch])
        places = [place for query in batch for place in query.places]
        found = [
            self.pick(self._softmax(states[rows]), places[rows], columns)
            for rows in self._rows(len(states))
        ]

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(one, name) for one in found])

        first, first_log_probs = joined("first"), joined("first_log_probs")
        return Scores(joined("log_probs"), first=first, first_log_probs=first_log_probs)

    def _words(self, query: Encoded) -> list[str]:
        """The words of an encoded query, without the signs around it."""
        return [self._word(number) for number in query.token_ids[1:-1]]

    def _rows(self, n: int) -> list[slice]:
        """Rows that go through the softmax together."""
        size = max(1, LOGITS // self.vocabulary.size)
        return [slice(first, first + size) for first in range(0, n, size)]

    def _softmax(self, states: torch.Tensor) -> torch.Tensor:
        """Logits of the mean states [row, projection_dim], float32 [row, word]."""
        with self._passing():
            return self.model.softmax(states).float()

    def _beside(
        self, texts: Sequence[Sequence[str]], places: Sequence[Sequence[int]]
    ) -> torch.Tensor:
        """The mean of what is read on both sides of places, [place of each text, projection_dim].

        places: of words; 0 is a text's first.
        """
        found = self.longest_first(
            lambda some: self._read(texts, places, some), [len(text) + 2 for text in texts]
        )
        return torch.cat(found)

    def _read(
        self,
        texts: Sequence[Sequence[str]],
        places: Sequence[Sequence[int]],
        numbers: Sequence[int],
    ) -> dict[int, torch.Tensor]:
        """`_beside` of some of the texts, in one pass (or several, of the same texts)."""
        rows = [texts[number] for number in numbers]
        with self._passing():
            different = list(dict.fromkeys(word for row in rows for word in row))
            index = {word: number for number, word in enumerate(different, start=2)}
            table = torch.cat([self.model.edges, *self._spelled(different)])
            lengths = [len(row) + 2 for row in rows]
            ids = torch.zeros(len(rows), max(lengths), dtype=torch.int64)
            for number, row in enumerate(rows):
                ids[number, : len(row) + 2] = torch.tensor([0, *(index[w] for w in row), 1])
            inputs = table[ids.to(table.device)]
            states = self.model.start(len(rows))
            there = torch.tensor(lengths, device=table.device)
            for _ in range(self.passes):
                forward, backward, states = self.model.read(inputs, there, states)
            found = {}
            for number, one in enumerate(numbers):
                at = torch.tensor(list(places[one]), dtype=torch.int64, device=table.device)
                # A text's first word stands at 1, behind its sign.
                found[one] = (forward[number, at] + backward[number, at + 2]) / 2
            return found

    def _spelled(self, words: Sequence[str]) -> list[torch.Tensor]:
        """Input embeddings of words, a few hundred at a time."""
        return [
            self.model.spell(words[first : first + WORDS_PER_PASS])
            for first in range(0, len(words), WORDS_PER_PASS)
        ]

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        """Log-probability of any word at one blank: of several, with what stands left of each."""
        pieces = self.vocabulary.pieces(word)
        before, behind = query.parts[:blank], query.parts[blank + 1 :]
        total = 0.0
        for number, piece in enumerate(pieces):
            left = " ".join((query.parts[blank], *self.vocabulary.show_text(pieces[:number])))
            more = [""] * (len(pieces) - 1 - number)
            encoded = self.encode(Query((*before, left, *more, *behind)))
            total += float(self._log_probs([encoded], [blank], [piece])[0])
        return self.word_score(pieces, total)

    def masked_word_log_probs(self, asked: Sequence[tuple[Query, str]]) -> list[WordScore]:
        """Log-probability of each word at its query's first blank, a name's words all left out."""
        found = []
        for query, word in asked:
            pieces = self.vocabulary.pieces(word)
            more = [""] * (len(pieces) - 1)
            encoded = self.encode(Query((query.parts[0], *more, *query.parts[1:])))
            at = range(len(pieces))
            values = self._log_probs([encoded] * len(pieces), list(at), pieces)
            found.append(self.word_score(pieces, float(values.sum())))
        return found

    def _log_probs(
        self, batch: Sequence[Encoded], blanks: Sequence[int], targets: Sequence[int]
    ) -> NDArray[np.float32]:
        """Log-probability of a word at one blank of each query, float32 [query]."""
        places = [[one.positions[blank] - 1] for one, blank in zip(batch, blanks, strict=True)]
        states = self._beside([self._words(one) for one in batch], places)
        return self._chosen(states, targets)

    def _chosen(self, states: torch.Tensor, targets: Sequence[int]) -> NDArray[np.float32]:
        """Log-probability of a word for each mean state, float32 [state]."""
        values = np.empty(len(states), np.float32)
        for rows in self._rows(len(states)):
            logits = self._softmax(states[rows])
            wanted = torch.tensor(list(targets[rows]), device=logits.device)[:, None]
            chosen = logits.gather(1, wanted)[:, 0] - torch.logsumexp(logits, dim=1)
            self.check_numbers(chosen)
            values[rows] = host(chosen).numpy()
        return values

    def token_log_probs(self, texts: Sequence[str]) -> list[TokenScores]:
        values = once_each(self._all_words, texts)
        return [
            TokenScores(self.vocabulary.show_text(self.vocabulary.encode(text)), found)
            for text, found in zip(texts, values, strict=True)
        ]

    def _all_words(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Log-probability of each word of each text, float32 [word].

        Neither direction has read the word itself: a text is read once for all its words.
        """
        words = [[one.text for one in self.vocabulary.split(text)] for text in texts]
        for one in words:
            self.check_window(len(one) + 2)
        states = self._beside(words, [range(len(one)) for one in words])
        targets = [self.vocabulary.number(word) for one in words for word in one]
        values = self._chosen(states, targets)
        ends = np.cumsum([len(one) for one in words])
        return np.split(values, ends[:-1])

    def statement_log_probs(
        self,
        statements: Sequence[Statement],
        *,
        hiding: Hiding = "within-word",
        scored: Scored = "statement",
    ) -> list[StatementScores]:
        values = once_each(self._all_words, [one.text for one in statements])
        return [
            self.scored_statement(read, found, scored)
            for read, found in zip(self.vocabulary.read(statements), values, strict=True)
        ]

    def word_vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        with self._passing():
            rows = [
                self.model.spell([one.text for one in self.vocabulary.split(word)]).float().mean(0)
                for word in words
            ]
            return host(torch.stack(rows)).numpy() if rows else np.zeros((0, 0), np.float32)

    def input_vectors(self, ids: Sequence[int]) -> torch.Tensor:
        with self._passing():
            return torch.cat(self._spelled([self.vocabulary.words[number] for number in ids]))


def _fits(config: SimpleNamespace) -> bool:
    """Whether a release can have such sizes."""
    names = ("char_dim", "max_characters", "dim", "projection_dim", "n_layers")
    kernels = [kernel for kernel, _ in config.filters]
    widths = [width for _, width in config.filters]
    return (
        are_sizes([*(getattr(config, name) for name in names), *kernels, *widths])
        and are_sizes([config.n_highway], least=0)
        and all(isinstance(one, int | float) for one in (config.cell_clip, config.proj_clip))
        and max(config.n_highway, len(kernels)) < 100
        and max(kernels) <= config.max_characters
    )


def open_elmo(
    name: str, folder: Path, dtype: torch.dtype, device: str, identity: str, *, passes: str = ""
) -> ElmoModel:
    """The model of a converted release. passes: how often a text is read."""

    def make(config: SimpleNamespace) -> Elmo:
        return Elmo(config, n_words=config.vocab_size)

    model, vocabulary = open_release(folder, SIZES, _fits, make, dtype)
    n_passes = int(passes) if passes else PASSES
    return ElmoModel(name, model.to(device), vocabulary, identity=identity, passes=n_passes)
