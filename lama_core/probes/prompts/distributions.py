"""Answer distributions of many prompts on many facts, stored on disk in half precision.

A block holds one prompt on up to 256 facts. It has two files, named by a digest of everything they
depend on (model, context, the visible part of the prompt, subjects, gold answers, candidates):

    <digest>.scores.npy   float16 [fact, candidate], log-probability minus the fact's highest
    <digest>.rows.npy     one row per fact (`top_answers.ROW`): exact ranks, log-probabilities,
                          ten best candidates

The rows file is written last and atomically, so a block is complete once its rows file exists. A
killed computation resumes at the block it was scoring. Scoring keeps one block in memory, and
readers memory-map the files: 40 prompts x 1,000 facts x 21,000 candidates take 1.7 GB on disk.

Precision: values are stored relative to the fact's highest log-probability, so a rounding error is
at most 2^-11 of the distance from the highest, and the best candidate stays the best. Values more
than 60 below the highest (e^-60) are stored as 60 below. Ranks of single prompts are computed in
single precision before rounding.

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

from lama_core.errors import UserError, reason_of
from lama_core.files import atomic_file
from lama_core.models.protocols import BlankFiller, Context
from lama_core.probes.prompts.fact_queries import PreparedFacts
from lama_core.progress import ignore
from lama_core.scoring.batches import ScoreBlock, score_cloze
from lama_core.scoring.blanks import visible_part
from lama_core.scoring.executors import Tick
from lama_core.scoring.top_answers import ROW, rank_block
from lama_core.types import Prompt

BLOCK_FACTS = 256
FLOOR = -60.0


@dataclass(frozen=True, slots=True)
class DistributionBlock:
    """One prompt on the facts from `start` to `stop`."""

    prompt: int
    start: int
    stop: int
    scores: Path
    rows: Path


class DistributionStore:
    """Answer distributions of one relation's prompts on its facts, for one model, in a folder."""

    def __init__(
        self,
        folder: Path,
        model: BlankFiller,
        asked: PreparedFacts,
        prompts: Sequence[Prompt],
        context: Context,
    ) -> None:
        self.folder, self.model, self.asked, self.context = folder, model, asked, context
        self.prompts = tuple(prompts)
        words = "\n".join(asked.columns.words)
        self._base = [model.identity, context, hashlib.sha256(words.encode()).hexdigest()]
        self._starts = range(0, len(asked.facts), BLOCK_FACTS)
        self.blocks = tuple(
            self._block(prompt, start)
            for prompt in range(len(self.prompts))
            for start in self._starts
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of prompts, facts and candidates."""
        return len(self.prompts), len(self.asked.facts), len(self.asked.columns.words)

    def _block(self, prompt: int, start: int) -> DistributionBlock:
        stop = min(start + BLOCK_FACTS, len(self.asked.facts))
        content = [
            *self._base,
            visible_part(self.prompts[prompt].template, self.context),
            [fact.subject for fact in self.asked.facts[start:stop]],
            self.asked.gold[start:stop].tolist(),
            self.asked.removed[start:stop].tolist(),
        ]
        digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:40]
        stem = str(self.folder / digest[:2] / digest)
        return DistributionBlock(
            prompt, start, stop, Path(f"{stem}.scores.npy"), Path(f"{stem}.rows.npy")
        )

    def score(self, *, tick: Tick = ignore) -> None:
        """Score the blocks that the folder does not hold yet.

        tick: called after each block with the block's number of queries; an exception that it
        raises stops the scoring, and finished blocks are kept. Raises UserError if the disk is
        full, or the model returns NaN.
        """
        for block in self.blocks:
            if not (block.rows.exists() and block.scores.exists()):
                self._score_block(block)
            tick(block.stop - block.start)

    def _score_block(self, block: DistributionBlock) -> None:
        asked = self.asked
        at = slice(block.start, block.stop)
        queries = asked.queries(self.prompts[block.prompt], self.context)[at]
        unique = list(dict.fromkeys(queries))  # subject-blind prompts give the same query each time
        numbers = {query: number for number, query in enumerate(unique)}
        source = np.array([numbers[query] for query in queries])
        segment = asked.segment(at)
        scores = np.empty((len(queries), len(asked.columns.words)), np.float16)
        rows = np.zeros(len(queries), ROW)
        for scored in score_cloze(self.model, unique, asked.columns, context=self.context):
            targets, picked = np.nonzero(source[:, None] == scored.indices)
            log_probs = scored.log_probs[picked]
            order = None if scored.order is None else scored.order[picked]
            rows[targets] = rank_block(
                self.model.name, segment, ScoreBlock(scored.number, targets, log_probs, order)
            )
            scores[targets] = np.maximum(log_probs - log_probs.max(axis=1, keepdims=True), FLOOR)
        try:
            # The rows file comes last because it marks the block as complete.
            for path, values in ((block.scores, scores), (block.rows, rows)):
                with atomic_file(path) as part, part.open("wb") as file:
                    np.save(file, values, allow_pickle=False)
        except OSError as error:
            raise UserError(
                f"Cannot write the distributions to {self.folder}: {reason_of(error)}. Finished "
                "blocks are kept. Free disk space, then run the same command again to resume."
            ) from error

    def rows(self) -> NDArray[np.void]:
        """Return the exact results of all prompts, `top_answers.ROW` [prompt, fact]."""
        n_prompts, n_facts, _ = self.shape
        table = np.zeros((n_prompts, n_facts), ROW)
        for block in self.blocks:
            table[block.prompt, block.start : block.stop] = self._load(block.rows, None)
        table["query"] = np.arange(n_facts)
        return table

    def chunks(self, n_facts: int = 32) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Yield (slice of facts, log-probabilities float32 [prompt, fact, candidate])."""
        per_prompt = len(self._starts)
        for position in range(per_prompt):
            blocks = self.blocks[position::per_prompt]
            start, size = blocks[0].start, blocks[0].stop - blocks[0].start
            scores = [self._load(block.scores, "r") for block in blocks]
            highest = [self._load(block.rows, None)["top_log_probs"][:, :1] for block in blocks]
            for first in range(0, size, n_facts):
                at = slice(first, min(first + n_facts, size))
                chunk = np.stack([values[at] for values in scores]).astype(np.float32)
                chunk += np.stack([values[at] for values in highest])
                yield slice(start + at.start, start + at.stop), chunk

    def _load(self, path: Path, mode: str | None) -> NDArray[Any]:
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise OSError("not a regular file")
            return np.load(path, mmap_mode=mode, allow_pickle=False)  # type: ignore[arg-type]
        except (OSError, ValueError, EOFError, MemoryError) as error:
            raise UserError(
                f"Cannot read {path} ({error}). Delete it, then run the same command again."
            ) from error

    def discard(self) -> None:
        """Delete the distributions; keep the rows (a few bytes per fact)."""
        for block in self.blocks:
            block.scores.unlink(missing_ok=True)
