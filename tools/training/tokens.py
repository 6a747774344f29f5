"""Token ids of corpus files, and the order in which training reads them.

The order depends only on the seed and the step, so a run can be resumed without storing the order.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

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
_WORD = re.compile(r"\w+")
ENCODE_BATCH = 20_000


@dataclass(frozen=True)
class TokenFile:
    """The passages of one corpus file.

    Attributes:
        share: Share of the training tokens that are read from this file.
        ids: uint16 [token], the concatenated passages with [CLS] and [SEP].
        flags: uint8 [token], as in `masking`.
        ends: int64 [passage], the number of tokens to the passage's end.
        lengths: int64 [passage], number of tokens.
    """

    share: float
    ids: npt.NDArray[np.uint16]
    flags: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]


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


def tokenise_file(path: Path, *, share: float, tokenizer: Any, max_length: int) -> TokenFile:
    """Return the tokens of a corpus file."""
    lines = read_lines(path)
    ids, flags = [], []
    for start in range(0, len(lines), ENCODE_BATCH):
        chunk = lines[start : start + ENCODE_BATCH]
        encodings = tokenizer(chunk, truncation=True, max_length=max_length).encodings
        ids += [np.asarray(encoding.ids, dtype=np.uint16) for encoding in encodings]
        flags += [
            _token_flags(text, encoding.word_ids, encoding.offsets)
            for text, encoding in zip(chunk, encodings, strict=True)
        ]
    lengths = np.array(list(map(len, ids)), dtype=np.int64)
    return TokenFile(share, np.concatenate(ids), np.concatenate(flags), lengths.cumsum(), lengths)


def _token_flags(
    text: str, word_ids: list[int | None], offsets: list[tuple[int, int]]
) -> npt.NDArray[np.uint8]:
    flags = np.full(len(word_ids), STARTS_WORD, dtype=np.uint8)
    previous, kind = None, FUNCTION
    for position, (word, (start, _)) in enumerate(zip(word_ids, offsets, strict=True)):
        if word is not None:
            is_start = word != previous
            if is_start:
                found = _WORD.match(text, start)
                whole = found[0] if found else ""
                if not whole or whole.lower() in FUNCTION_WORDS:
                    kind = FUNCTION
                elif whole[0].isdigit() or (whole[0].isupper() and start > 0):
                    kind = NAME
                else:
                    kind = CONTENT
            flags[position] = kind | (STARTS_WORD if is_start else 0)
        previous = word
    return flags


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

    def batches(self, first_step: int) -> Iterator[Batch]:
        """Yield batches from step `first_step` on, endlessly."""
        for picked in self.passages(first_step):
            lengths = np.array([self.files[n].lengths[p] for n, p in picked], dtype=np.int64)
            shape = (len(picked), int(lengths.max()))
            ids = np.full(shape, self.pad_id, dtype=np.int64)
            flags = np.full(shape, STARTS_WORD, dtype=np.uint8)
            for row, (number, passage) in enumerate(picked):
                file, length = self.files[number], lengths[row]
                end = file.ends[passage]
                ids[row, :length] = file.ids[end - length : end]
                flags[row, :length] = file.flags[end - length : end]
            yield Batch(ids, flags, lengths)

    def passages(self, first_step: int) -> Iterator[list[tuple[int, int]]]:
        """Yield the (file number, passage number) pairs of each step from `first_step` on.

        Every chunk is cut into exactly `batches_per_chunk` batches of nearly equal size in tokens.
        """
        budget = self.tokens_per_batch * self.batches_per_chunk
        total = sum(file.share for file in self.files)
        first_chunk, skipped = divmod(first_step, self.batches_per_chunk)
        for chunk in count(first_chunk):
            picked: list[tuple[int, int]] = []
            for number, file in enumerate(self.files):
                mean_length = float(file.ends[-1]) / len(file.ends)
                n = max(1, round(budget * file.share / total / mean_length))
                for place in range(chunk * n, chunk * n + n):
                    epoch, at = divmod(place, len(file.ends))
                    order = _shuffled(self.seed, number, epoch, len(file.ends))
                    picked.append((number, int(order[at])))
            rng = np.random.default_rng([self.seed, 1, chunk])
            lengths = np.array([self.files[number].lengths[p] for number, p in picked])
            # Break ties in length at random; otherwise, a batch would only have passages of one
            # file.
            by_length = np.lexsort((rng.random(len(picked)), lengths))
            ends = np.cumsum(lengths[by_length])
            batch_of = np.minimum(
                (ends - 1) * self.batches_per_chunk // int(ends[-1]), self.batches_per_chunk - 1
            )
            for batch in rng.permutation(self.batches_per_chunk)[skipped:]:
                group = by_length[batch_of == batch]
                yield [picked[i] for i in (group if len(group) else by_length[:1])]
            skipped = 0


@lru_cache(maxsize=64)
def _shuffled(seed: int, number: int, epoch: int, n_passages: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng([seed, 2, number, epoch]).permutation(n_passages)
