"""ELMo, from a converted release: two LSTM language models, one for each reading direction.

A blank is predicted from two states of the last layer: the forward state at the word left of it,
and the backward state at the word right of it. LAMA ranks by the mean of the log-softmaxes of
the two states. Both directions share the softmax's weights W and b, so the renormalised mean is the
log-softmax of the mean state:

    log P(w) = log softmax(W (h_forward + h_backward) / 2 + b)_w

Source: Peters et al. 2018, section 3; AllenNLP's bilm-tf (gates i, j, f, o; a forget bias of 1;
clipped cells and projections; `<S>` and `</S>` around a text); LAMA's elmo_connector.
Departure: States of ELMo
"""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import places_of
from lama_core.models.devices import map_distinct, to_cpu
from lama_core.models.hf.layers import EmbeddingTable, Linear
from lama_core.models.hf.transformer import Transformer
from lama_core.models.protocols import (
    Context,
    Encoded,
    Hiding,
    Kind,
    ScoredPart,
    Scores,
    StartToken,
    Statement,
    StatementScores,
    TokenScores,
    WordScore,
)
from lama_core.types import Query
from lama_older_systems.converted import LOGITS, N_CHARACTERS, open_release
from lama_older_systems.convolution import Convolution
from lama_older_systems.whole_words import WordVocabulary

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
# Characters are the bytes of UTF-8, and these control characters.
BEGIN_TEXT, END_TEXT, BEGIN_WORD, END_WORD, PADDING = range(256, 261)
FORGET_BIAS = 1.0
PASSES = 1
MAX_PARTS = 100  # highway layers, or groups of filters
WORDS_PER_PASS = 512

States = list[list[tuple[torch.Tensor, torch.Tensor]]]


class Elmo(nn.Module):
    """The network. It has a `softmax` unless `n_words` is 0."""

    def __init__(self, config: SimpleNamespace, *, n_words: int) -> None:
        super().__init__()
        if max(config.n_highway, len(config.filters)) >= MAX_PARTS:
            raise ValueError("too many highway layers or filters")
        self.config = config
        self.characters = _Characters(config)
        self.directions = nn.ModuleList(
            nn.ModuleList(_Lstm(config) for _ in range(config.n_layers)) for _ in range(2)
        )
        if n_words:
            self.softmax = Linear(config.projection_dim, n_words)

    @property
    def base_model(self) -> nn.Module:
        """The whole network: the softmax is applied separately, to selected states."""
        return self

    def get_output_embeddings(self) -> nn.Module:
        return self.softmax

    def spell(self, words: Sequence[str]) -> torch.Tensor:
        """Input embeddings of words by their characters, [word, projection_dim]."""
        ids = torch.tensor([self._letters(word.encode(errors="replace")) for word in words])
        return self.characters(ids.to(self.characters.embedding.weight.device))

    @property
    def edges(self) -> torch.Tensor:
        """Input embeddings of a text's begin and end signs, [2, projection_dim]."""
        ids = torch.tensor([self._letters([sign]) for sign in (BEGIN_TEXT, END_TEXT)])
        return self.characters(ids.to(self.characters.embedding.weight.device))

    def _letters(self, letters: Sequence[int]) -> list[int]:
        n = self.config.max_characters
        spelled = [BEGIN_WORD, *letters[: n - 2], END_WORD]
        return spelled + [PADDING] * (n - len(spelled))

    def start(self, n_rows: int) -> States:
        """Zero states: cell and output of each layer of each direction."""
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
        """Read texts in both directions.

        Args:
            inputs: Input embeddings, [row, position, projection_dim], padded on the right.
            lengths: Number of words of each text, int64 [row].
            states: The states to start from.

        Returns:
            The forward states and the backward states, [row, position, projection_dim] each, and
            the states after the last word read. The backward state at a position has read the word
            at that position and all words right of it.
        """
        position = torch.arange(inputs.shape[1], device=inputs.device)
        is_word = position < lengths[:, None]
        mirrored = torch.where(is_word, lengths[:, None] - 1 - position, position)[..., None]
        found, last = [], []
        for number, direction in enumerate(self.directions):
            seen = inputs.gather(1, mirrored.expand_as(inputs)) if number else inputs
            ends = []
            for depth, layer in enumerate(cast(nn.ModuleList, direction)):
                output, end = layer(seen, is_word, states[number][depth])
                seen = output + seen if depth and self.config.skips else output
                ends.append(end)
            found.append(seen.gather(1, mirrored.expand_as(seen)) if number else seen)
            last.append(ends)
        return found[0], found[1], last


class _Characters(nn.Module):
    """A word's characters as one vector: convolutions, highway layers, a projection."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.embedding = EmbeddingTable(N_CHARACTERS, config.char_dim)
        self.convolutions = nn.ModuleList(
            Convolution(config.char_dim, n, kernel) for kernel, n in config.filters
        )
        width = sum(n for _, n in config.filters)
        self.highways = nn.ModuleList(_Highway(width) for _ in range(config.n_highway))
        self.projection = Linear(width, config.projection_dim)

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        embedded = self.embedding(letters).transpose(1, 2)
        parts = [functional.relu(filters(embedded).amax(2)) for filters in self.convolutions]
        states = torch.cat(parts, dim=1)
        for highway in self.highways:
            states = highway(states)
        return self.projection(states)


class _Highway(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.carry, self.transform = Linear(width, width), Linear(width, width)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(self.carry(states))
        return gate * functional.relu(self.transform(states)) + (1 - gate) * states


class _Lstm(nn.Module):
    """An LSTM with projected outputs; cells and outputs are clipped."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.gates = Linear(2 * config.projection_dim, 4 * config.dim)
        self.projection = Linear(config.dim, config.projection_dim, bias=False)
        self.cell_clip, self.proj_clip = float(config.cell_clip), float(config.proj_clip)

    def forward(
        self,
        inputs: torch.Tensor,
        is_word: torch.Tensor,
        state: tuple[torch.Tensor, torch.Tensor],
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """Return outputs [row, position, projection_dim], and each row's state after its end."""
        cell, output = state
        width = inputs.shape[2]
        from_input = functional.linear(inputs, self.gates.weight[:, :width], self.gates.bias)
        outputs = []
        for step in range(inputs.shape[1]):
            gates = from_input[:, step] + functional.linear(output, self.gates.weight[:, width:])
            in_gate, candidate, forget_gate, out_gate = gates.chunk(4, dim=1)
            kept = torch.sigmoid(forget_gate + FORGET_BIAS) * cell
            new_cell = kept + torch.sigmoid(in_gate) * torch.tanh(candidate)
            new_cell = new_cell.clamp(-self.cell_clip, self.cell_clip)
            new_output = self.projection(torch.sigmoid(out_gate) * torch.tanh(new_cell))
            new_output = new_output.clamp(-self.proj_clip, self.proj_clip)
            real = is_word[:, step, None]
            cell = torch.where(real, new_cell, cell)
            output = torch.where(real, new_output, output)
            outputs.append(new_output)
        return torch.stack(outputs, dim=1), (cell, output)


class ElmoModel(Transformer):
    """Fills all blanks of a text at once from both contexts.

    A blank is encoded as the release's unknown word. passes: how often a text is read; the first
    pass starts from zero states, each later pass from the last states of the pass before.
    """

    kind: Kind = "bidirectional"
    takes_start_token = False

    def __init__(
        self, name: str, model: Elmo, vocabulary: WordVocabulary, *, identity: str, passes: int
    ) -> None:
        super().__init__(name, model, vocabulary, identity=identity)
        self.lexicon = vocabulary  # `vocabulary` with the methods of whole words
        self.passes = passes
        often = "once" if passes == 1 else f"{passes} times"
        self.notes.append(
            f"It reads each text {often}, starting from zero states. LAMA read each batch ten "
            "times and carried the states over from the batch before."
        )

    def scores_first(self, _start_token: StartToken = "needed") -> bool:
        return True

    def encode(self, query: Query, context: Context = "both") -> Encoded:
        """Encode a query with the unknown word in each blank; the context is always both sides.

        A word outside the output vocabulary can still be read, by its characters: its id is a
        negative number that encodes them.
        """
        begin, end = self.lexicon.frame
        ids, positions = [*begin], []
        for number, part in enumerate(query.parts):
            if number:
                positions.append(len(ids))
                ids.append(self.lexicon.unk_token_id)
            ids += [self._number(word.text) for word in self.lexicon.split(part)]
        self.check_window(len(ids) + 1)
        return Encoded((*ids, *end), tuple(positions), places_of(query))

    def _number(self, word: str) -> int:
        if self.lexicon.knows(word):
            return self.lexicon.index[word]
        return -int.from_bytes(b"\1" + word.encode(errors="replace"), "big")

    def _word(self, number: int) -> str:
        if number >= 0:
            return self.lexicon.words[number]
        letters = (-number).to_bytes((number.bit_length() + 7) // 8, "big")
        return letters[1:].decode()

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        words = [self._words(query) for query in batch]
        states = self._mean_states(words, [[at - 1 for at in query.positions] for query in batch])
        places = [place for query in batch for place in query.places]
        parts = [
            self.pick(self._softmax(states[rows]), places[rows], columns)
            for rows in self._rows(len(states))
        ]

        names = ("log_probs", "first", "first_log_probs")
        return Scores(**{n: np.concatenate([getattr(part, n) for part in parts]) for n in names})

    def _words(self, query: Encoded) -> list[str]:
        """Return the words of an encoded query, without begin and end signs."""
        return [self._word(number) for number in query.token_ids[1:-1]]

    def _rows(self, n: int) -> list[slice]:
        """Return slices of `n` rows; the rows of a slice go through the softmax together."""
        size = max(1, LOGITS // self.lexicon.size)
        return [slice(first, first + size) for first in range(0, n, size)]

    def _softmax(self, states: torch.Tensor) -> torch.Tensor:
        """Return the logits of mean states [row, projection_dim], float32 [row, word]."""
        with self.passing():
            return self.model.softmax(states).float()

    def _mean_states(
        self, texts: Sequence[Sequence[str]], places: Sequence[Sequence[int]]
    ) -> torch.Tensor:
        """Mean of the forward state before and the backward state after each word position.

        places: Word positions in each text; 0 is the first word.

        Returns:
            The mean state at each of the places, [place, projection_dim], text by text.
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
        """Return text number -> its mean states; the texts `numbers` are read as one batch."""
        rows = [texts[number] for number in numbers]
        with self.passing():
            different = list(dict.fromkeys(word for row in rows for word in row))
            index = {word: number for number, word in enumerate(different, start=2)}
            table = torch.cat([self.model.edges, *self._spelled(different)])
            lengths = [len(row) + 2 for row in rows]
            ids = torch.zeros(len(rows), max(lengths), dtype=torch.int64)
            for number, row in enumerate(rows):
                ids[number, : len(row) + 2] = torch.tensor([0, *(index[w] for w in row), 1])
            inputs = table[ids.to(table.device)]
            states = self.model.start(len(rows))
            n_words = torch.tensor(lengths, device=table.device)
            for _ in range(self.passes):
                forward, backward, states = self.model.read(inputs, n_words, states)
            found = {}
            for at_row, number in enumerate(numbers):
                at = torch.tensor(list(places[number]), dtype=torch.int64, device=table.device)
                # Position 0 is the begin sign, so word n is at position n + 1.
                found[number] = (forward[at_row, at] + backward[at_row, at + 2]) / 2
            return found

    def _spelled(self, words: Sequence[str]) -> list[torch.Tensor]:
        """Input embeddings of words, computed for a few hundred words at a time."""
        return [
            self.model.spell(words[first : first + WORDS_PER_PASS])
            for first in range(0, len(words), WORDS_PER_PASS)
        ]

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        """Log-probability of any word at one blank.

        Each word of a multi-word name is scored after the words before it are filled in.
        """
        pieces = self.lexicon.pieces(word)
        before, after = query.parts[:blank], query.parts[blank + 1 :]
        total = 0.0
        for number, piece in enumerate(pieces):
            left = " ".join((query.parts[blank], *self.lexicon.show_text(pieces[:number])))
            more = [""] * (len(pieces) - 1 - number)
            encoded = self.encode(Query((*before, left, *more, *after)))
            total += float(self._log_probs([encoded], [blank], [piece])[0])
        return self.word_score(pieces, total)

    def masked_word_log_probs(self, asked: Sequence[tuple[Query, str]]) -> list[WordScore]:
        """Log-probability of each word at its query's first blank.

        A multi-word name gets a blank for each word, and no word is filled in.
        """
        found = []
        for query, word in asked:
            pieces = self.lexicon.pieces(word)
            more = [""] * (len(pieces) - 1)
            encoded = self.encode(Query((query.parts[0], *more, *query.parts[1:])))
            at = range(len(pieces))
            values = self._log_probs([encoded] * len(pieces), list(at), pieces)
            found.append(self.word_score(pieces, float(values.sum())))
        return found

    def _log_probs(
        self, batch: Sequence[Encoded], blanks: Sequence[int], targets: Sequence[int]
    ) -> NDArray[np.float32]:
        """Log-probability of a target word at one blank of each query, float32 [query]."""
        places = [[query.positions[blank] - 1] for query, blank in zip(batch, blanks, strict=True)]
        states = self._mean_states([self._words(query) for query in batch], places)
        return self._chosen(states, targets)

    def _chosen(self, states: torch.Tensor, targets: Sequence[int]) -> NDArray[np.float32]:
        """Log-probability of a target word for each mean state, float32 [state]."""
        values = np.empty(len(states), np.float32)
        for rows in self._rows(len(states)):
            logits = self._softmax(states[rows])
            wanted = torch.tensor(list(targets[rows]), device=logits.device)[:, None]
            chosen = logits.gather(1, wanted)[:, 0] - torch.logsumexp(logits, dim=1)
            self.check_numbers(chosen)
            values[rows] = to_cpu(chosen).numpy()
        return values

    def token_log_probs(self, texts: Sequence[str], *, begins: bool = False) -> list[TokenScores]:
        values = map_distinct(self._all_words, texts)
        return [
            TokenScores(self.lexicon.show_text(self.lexicon.encode(text)), found)
            for text, found in zip(texts, values, strict=True)
        ]

    def _all_words(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Log-probability of each word of each text, float32 [word].

        The states that predict a word haven't read it, so one pass scores all words of a text.
        """
        words = [[word.text for word in self.lexicon.split(text)] for text in texts]
        for row in words:
            self.check_window(len(row) + 2)
        states = self._mean_states(words, [range(len(row)) for row in words])
        targets = [self.lexicon.number(word) for row in words for word in row]
        values = self._chosen(states, targets)
        ends = np.cumsum([len(row) for row in words])
        return np.split(values, ends[:-1])

    def statement_log_probs(
        self,
        statements: Sequence[Statement],
        *,
        hiding: Hiding = "within-word",
        scored: ScoredPart = "statement",
        start_token: StartToken = "needed",
    ) -> list[StatementScores]:
        values = map_distinct(self._all_words, [statement.text for statement in statements])
        return [
            self.scored_statement(read, found, scored)
            for read, found in zip(self.lexicon.read(statements), values, strict=True)
        ]

    def word_vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        with self.passing():
            rows = [
                self.model.spell([part.text for part in self.lexicon.split(word)]).float().mean(0)
                for word in words
            ]
            return to_cpu(torch.stack(rows)).numpy() if rows else np.zeros((0, 0), np.float32)

    def input_vectors(self, ids: Sequence[int]) -> torch.Tensor:
        with self.passing():
            return torch.cat(self._spelled([self.lexicon.words[number] for number in ids]))


def open_elmo(
    name: str, folder: Path, precision: str, identity: str, *, passes: str = ""
) -> ElmoModel:
    """Load a converted release. passes: how often a text is read; empty for the default."""

    def make(config: SimpleNamespace) -> Elmo:
        return Elmo(config, n_words=config.vocab_size)

    model, vocabulary = open_release(folder, SIZES, make, precision)
    n_passes = int(passes) if passes else PASSES
    return ElmoModel(name, model, vocabulary, identity=identity, passes=n_passes)
