"""Distributions of many prompts over many facts, on disk by block in half precision.

A block is one prompt on up to 256 facts, two files named by a digest of everything they depend on
(model, context, what the model sees of the prompt, subjects, golds, candidates):

    <digest>.scores.npy   float16 [fact, candidate], log-probability less the fact's highest
    <digest>.rows.npy     one row a fact (`answers.ROW`): exact ranks, log-probabilities, ten best

The rows are written last and whole, so a block counts when its rows are there: a computation that
is killed goes on with the block it was in. Nothing but one block is ever in memory while scoring,
and readers map the files: 40 prompts x 1,000 facts x 21,000 candidates are 1.7 GB on disk.

Because the highest is taken off first, the leaders are kept to 2^-11 of their distance from it, and
the first stays the first; what lies more than 60 below (e^-60) is kept as 60 below. Ranks of
single prompts are taken from single precision before any of this.

Departure: What an ensemble is fitted on
"""

import hashlib
import json
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.files import whole_file
from lama_core.models.protocols import BlankFiller, Context
from lama_core.probes.prompts.fact_queries import AskedFacts
from lama_core.progress import silent
from lama_core.scoring.batches import ScoreBlock, score_cloze
from lama_core.scoring.blanks import what_is_seen
from lama_core.scoring.executors import Tick
from lama_core.scoring.top_answers import ROW, rank_block
from lama_core.types import Prompt

BLOCK_FACTS = 256
FLOOR = -60.0


@dataclass(frozen=True, slots=True)
class Block:
    """One prompt on the facts from `start` to `stop`."""

    prompt: int
    start: int
    stop: int
    scores: Path
    rows: Path


class DistributionStore:
    """The distributions of one relation's prompts over its facts, for one model, in a folder."""

    def __init__(
        self,
        folder: Path,
        model: BlankFiller,
        asked: AskedFacts,
        prompts: Sequence[Prompt],
        context: Context,
    ) -> None:
        self.folder, self.model, self.asked, self.context = folder, model, asked, context
        self.prompts = tuple(prompts)
        words = "\n".join(asked.columns.words)
        self._base = [model.identity, context, hashlib.sha256(words.encode()).hexdigest()]
        self._starts = range(0, len(asked.facts), BLOCK_FACTS)
        numbers = range(len(self.prompts))
        self.blocks = tuple(self._block(at, start) for at in numbers for start in self._starts)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Prompts, facts, candidates."""
        return len(self.prompts), len(self.asked.facts), len(self.asked.columns.words)

    def _block(self, number: int, start: int) -> Block:
        stop = min(start + BLOCK_FACTS, len(self.asked.facts))
        content = [
            *self._base,
            what_is_seen(self.prompts[number].template, self.context),
            [fact.subject for fact in self.asked.facts[start:stop]],
            self.asked.gold[start:stop].tolist(),
            self.asked.removed[start:stop].tolist(),
        ]
        digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:40]
        stem = str(self.folder / digest[:2] / digest)
        return Block(number, start, stop, Path(f"{stem}.scores.npy"), Path(f"{stem}.rows.npy"))

    def score(self, *, tick: Tick = silent) -> None:
        """Score the blocks that are not there yet.

        tick: told how many queries each block had; what it raises ends the scoring between two.
        Raises UserError if the disk is full, or the model gives values that are not numbers.
        """
        for block in self.blocks:
            if not (block.rows.exists() and block.scores.exists()):
                self._score_block(block)
            tick(block.stop - block.start)

    def _score_block(self, block: Block) -> None:
        asked = self.asked
        at = slice(block.start, block.stop)
        queries = asked.queries(self.prompts[block.prompt], self.context)[at]
        unique = list(dict.fromkeys(queries))  # a causal model may see the same in every fact
        which = {query: number for number, query in enumerate(unique)}
        source = np.array([which[query] for query in queries])
        segment = asked.segment(at)
        scores = np.empty((len(queries), len(asked.columns.words)), np.float16)
        rows = np.zeros(len(queries), ROW)
        for scored in score_cloze(self.model, unique, asked.columns, context=self.context):
            targets, picked = np.nonzero(source[:, None] == scored.indices)
            log_probs = scored.log_probs[picked]
            order = None if scored.order is None else scored.order[picked]
            block_scores = ScoreBlock(scored.number, targets, log_probs, order)
            rows[targets] = rank_block(self.model.name, segment, block_scores)
            relative = log_probs - log_probs.max(axis=1, keepdims=True)
            scores[targets] = np.maximum(relative, FLOOR)
        try:
            # The rows last: they say that the block is whole.
            for path, values in ((block.scores, scores), (block.rows, rows)):
                with whole_file(path) as part, part.open("wb") as file:
                    np.save(file, values, allow_pickle=False)
        except OSError as error:
            raise UserError(
                f"{self.folder}: the distributions can't be written: {error.strerror}. What was "
                "scored is kept; make room and give the same command again."
            ) from error

    def rows(self) -> NDArray[np.void]:
        """Exact results of every prompt on every fact: `answers.ROW` [prompt, fact]."""
        n_prompts, n_facts, _ = self.shape
        table = np.zeros((n_prompts, n_facts), ROW)
        for block in self.blocks:
            table[block.prompt, block.start : block.stop] = self._load(block.rows, None)
        table["query"] = np.arange(n_facts)
        return table

    def chunks(self, n_facts: int = 32) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """(which facts, log-probabilities float32 [prompt, fact, candidate]), chunk by chunk."""
        per_prompt = len(self._starts)
        for position in range(per_prompt):
            blocks = self.blocks[position::per_prompt]
            start, size = blocks[0].start, blocks[0].stop - blocks[0].start
            scores = [self._load(block.scores, "r") for block in blocks]
            highest = [self._load(block.rows, None)["top_log_probs"][:, :1] for block in blocks]
            for first in range(0, size, n_facts):
                at = slice(first, min(first + n_facts, size))
                chunk = np.stack([one[at] for one in scores]).astype(np.float32)
                chunk += np.stack([one[at] for one in highest])
                yield slice(start + at.start, start + at.stop), chunk

    def _load(self, path: Path, mode: str | None) -> NDArray[Any]:
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise OSError("no plain file")
            return np.load(path, mmap_mode=mode, allow_pickle=False)  # type: ignore[arg-type]
        except (OSError, ValueError, EOFError, MemoryError) as error:
            raise UserError(
                f"{path} can't be read ({error}): delete it and give the same command again."
            ) from error

    def discard(self) -> None:
        """Delete the distributions; the rows stay, a few bytes a fact."""
        for block in self.blocks:
            block.scores.unlink(missing_ok=True)
