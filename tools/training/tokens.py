"""Token ids of corpus files, and the order in which training reads them.

The order depends only on the seed and the step, so a run can be resumed without storing the order.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lama_core.errors import UserError
from tools.training.corpus.build import read_lines
from tools.training.masking import CONTENT, FUNCTION, NAME, STARTS_WORD

_WORDS_OF_GRAMMAR = """
'd 'll 'm 're 's 't 've a about above after all also an and any are as at be because been before
being between both but by can could did do does for from had has have he her his how i if in
into is it its may more most must no nor not of off on one only or other our out over s same
shall she should so some such t than that the their them then there these they this those
through to too under up upon very was we were what when where which while who whom whose why
will with would you your
"""
FUNCTION_WORDS = frozenset(_WORDS_OF_GRAMMAR.split())
_LETTER_OR_DIGIT = re.compile(r"\w")
ENCODE_BATCH = 20_000


@dataclass(frozen=True)
class TokenFile:
    """The passages of one corpus file.

    Attributes:
        name: Name of the file.
        share: Share of the training tokens that are read from this file.
        ids: uint16 [token], the concatenated passages with [CLS] and [SEP].
        flags: uint8 [token], as in `masking`.
        offsets: int64 [passage + 1], first token of each passage, then the number of tokens.
    """

    name: str
    share: float
    ids: npt.NDArray[np.uint16]
    flags: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]

    @property
    def n_passages(self) -> int:
        """Number of passages."""
        return len(self.offsets) - 1

    @property
    def mean_length(self) -> float:
        """Mean number of tokens per passage."""
        return float(self.offsets[-1]) / self.n_passages


@dataclass(frozen=True)
class Batch:
    """A batch of passages.

    Attributes:
        ids: int64 [passage, position], padded with `pad_id`.
        flags: uint8 [passage, position], as in `masking`.
        lengths: int64 [passage], number of tokens.
    """

    ids: npt.NDArray[np.int64]
    flags: npt.NDArray[np.uint8]
    lengths: npt.NDArray[np.int64]


def tokenise_file(
    path: Path, *, name: str, share: float, tokenizer: Any, max_length: int, cache: Path | None
) -> TokenFile:
    """Return the tokens of a corpus file; they are cached in the folder `cache`, if given."""
    stored = None
    if cache is not None:
        cache.mkdir(parents=True, exist_ok=True)
        vocabulary = json.dumps(tokenizer.get_vocab(), sort_keys=True).encode()
        digest = hashlib.sha256(path.read_bytes() + vocabulary + str(max_length).encode())
        stored = cache / f"{name}-{digest.hexdigest()[:16]}.npz"
        if stored.exists():
            with np.load(stored, allow_pickle=False) as arrays:
                return TokenFile(name, share, arrays["ids"], arrays["flags"], arrays["offsets"])
    tokens = _tokenise(read_lines(path), name, share, tokenizer, max_length)
    if stored is not None:
        partial = stored.with_name("partial-" + stored.name)
        np.savez(partial, ids=tokens.ids, flags=tokens.flags, offsets=tokens.offsets)
        partial.replace(stored)
    return tokens


def _tokenise(
    lines: list[str], name: str, share: float, tokenizer: Any, max_length: int
) -> TokenFile:
    ids: list[npt.NDArray[np.uint16]] = []
    flags: list[npt.NDArray[np.uint8]] = []
    lengths: list[int] = []
    for start in range(0, len(lines), ENCODE_BATCH):
        chunk = lines[start : start + ENCODE_BATCH]
        encoded = tokenizer(chunk, truncation=True, max_length=max_length)
        for number, text in enumerate(chunk):
            encoding = encoded.encodings[number]
            ids.append(np.asarray(encoding.ids, dtype=np.uint16))
            flags.append(_token_flags(text, encoding.word_ids, encoding.offsets))
            lengths.append(len(encoding.ids))
    if not lengths:
        raise UserError(f"the corpus file {name} has no passage to train on")
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return TokenFile(name, share, np.concatenate(ids), np.concatenate(flags), offsets)


def _token_flags(
    text: str, word_ids: list[int | None], offsets: list[tuple[int, int]]
) -> npt.NDArray[np.uint8]:
    flags = np.full(len(word_ids), STARTS_WORD, dtype=np.uint8)
    previous, kind = None, FUNCTION
    for position, (word, span) in enumerate(zip(word_ids, offsets, strict=True)):
        if word is None:
            previous = None
            continue
        if word != previous:
            kind = _kind(text[span[0] :], text[span[0] : span[1]], is_first=span[0] == 0)
            flags[position] = STARTS_WORD | kind
        else:
            flags[position] = kind
        previous = word
    return flags


def _kind(rest: str, piece: str, *, is_first: bool) -> int:
    if not _LETTER_OR_DIGIT.match(piece):
        return FUNCTION
    word = re.match(r"\w+", rest)
    whole = word.group() if word else piece
    if whole.lower() in FUNCTION_WORDS:
        return FUNCTION
    is_name = whole[0].isdigit() or (whole[0].isupper() and not is_first)
    return NAME if is_name else CONTENT


@dataclass(frozen=True)
class BatchSampler:
    """Batches of passages, in the order of training.

    A chunk is `batches_per_chunk` batches. In a chunk, passages are sorted by length into batches,
    which therefore need little padding, and the batches are shuffled. A file has the same number of
    passages in every chunk. After all passages of a file were read, they are shuffled again.
    """

    files: tuple[TokenFile, ...]
    tokens_per_batch: int
    seed: int
    pad_id: int
    batches_per_chunk: int = 64

    def passages_per_chunk(self) -> list[int]:
        """Return each file's number of passages in a chunk, at least one."""
        budget = self.tokens_per_batch * self.batches_per_chunk
        total = sum(file.share for file in self.files)
        return [max(1, round(budget * f.share / total / f.mean_length)) for f in self.files]

    def batches(self, first_step: int) -> Iterator[Batch]:
        """Yield batches from step `first_step` on, endlessly.

        Every chunk is cut into exactly `batches_per_chunk` batches of nearly equal size in tokens.
        """
        chunk, skipped = divmod(first_step, self.batches_per_chunk)
        while True:
            yield from self.chunk(chunk)[skipped:]
            chunk, skipped = chunk + 1, 0

    def passages(self) -> Iterator[list[tuple[int, int]]]:
        """Yield the (file number, passage number) pairs of each step from 0 on, endlessly."""
        return chain.from_iterable(map(self._picked, count()))

    def chunk(self, chunk: int) -> list[Batch]:
        """Return the batches of a chunk."""
        return [self._batch(picked) for picked in self._picked(chunk)]

    def _picked(self, chunk: int) -> list[list[tuple[int, int]]]:
        """Return the (file number, passage number) pairs of each batch of a chunk."""
        picked: list[tuple[int, int]] = []
        for number, (file, n) in enumerate(zip(self.files, self.passages_per_chunk(), strict=True)):
            picked += [(number, p) for p in self._passages(number, file.n_passages, chunk * n, n)]
        rng = np.random.default_rng([self.seed, 1, chunk])
        lengths = np.array([self._length(*which) for which in picked])
        # Break ties in length at random; otherwise, a batch would only have passages of one file.
        order = np.lexsort((rng.random(len(picked)), lengths))
        ends = np.cumsum(lengths[order])
        batch_of = np.minimum(
            (ends - 1) * self.batches_per_chunk // int(ends[-1]), self.batches_per_chunk - 1
        )
        groups = [order[batch_of == b] for b in range(self.batches_per_chunk)]
        filled = [g if len(g) else order[:1] for g in groups]
        return [[picked[i] for i in filled[b]] for b in rng.permutation(self.batches_per_chunk)]

    def _passages(self, number: int, n_passages: int, start: int, n: int) -> list[int]:
        places = np.arange(start, start + n)
        return [
            int(
                _shuffled(self.seed, number, int(place) // n_passages, n_passages)[
                    int(place) % n_passages
                ]
            )
            for place in places
        ]

    def _length(self, number: int, passage: int) -> int:
        offsets = self.files[number].offsets
        return int(offsets[passage + 1] - offsets[passage])

    def _batch(self, picked: list[tuple[int, int]]) -> Batch:
        lengths = np.array([self._length(*which) for which in picked], dtype=np.int64)
        shape = (len(picked), int(lengths.max()))
        ids = np.full(shape, self.pad_id, dtype=np.int64)
        flags = np.full(shape, STARTS_WORD, dtype=np.uint8)
        for row, (number, passage) in enumerate(picked):
            file = self.files[number]
            span = slice(int(file.offsets[passage]), int(file.offsets[passage + 1]))
            ids[row, : lengths[row]] = file.ids[span]
            flags[row, : lengths[row]] = file.flags[span]
        return Batch(ids, flags, lengths)


@lru_cache(maxsize=64)
def _shuffled(seed: int, number: int, epoch: int, n_passages: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng([seed, 2, number, epoch]).permutation(n_passages)
