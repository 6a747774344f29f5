"""Runs of negated or misprimed queries, each scored beside the fact's plain query.

The rows are those of a cloze run of the altered queries, with columns of the plain one besides:

    plain                               the text, with [MASK]; null where the fact has none that
                                        can be asked
    plain_rank_raw, plain_rank_filtered of the gold in it
    plain_first                         its best prediction of all candidates
    spearman                            rank correlation of the two distributions over the
                                        candidates

Source: Kassner and Schütze 2020, section 4 and Table 2 (negated), section 5 (misprimed).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from lama_core.datasets import Dataset
from lama_core.metrics.consistency import spearman_rows
from lama_core.models.protocols import BlankFiller
from lama_core.probes.cloze.spec import ClozeSpec, ClozeWork, SegmentWork, score_segment
from lama_core.scoring.batches import ScoreBlock
from lama_core.scoring.preparation import NothingCounts, Prepared, Segment, prepare
from lama_core.scoring.prompt_choice import make_prompt_set
from lama_core.scoring.queries import BLANK, Knowledge, make_questions
from lama_core.scoring.top_answers import from_table, rank_block

# Raised by one whenever the same specification would give other numbers; never for anything else.
VERSION = 1
PLAIN = "manual"


@dataclass(frozen=True, kw_only=True)
class ContrastSpec(ClozeSpec):
    """A run of altered queries beside plain ones."""

    kind: ClassVar[str] = "contrast"
    version: ClassVar[int] = VERSION

    def make_work(
        self, dataset: Dataset, knowledge: Knowledge, scorer: Any
    ) -> tuple[Prepared, SegmentWork]:
        """The altered questions, each with its plain one."""
        chosen = [dataset.relation(name) for name in self.relations]
        plain_set = make_prompt_set(PLAIN, chosen)
        made: list[Prepared] = []
        for prompts in (self.prompts, plain_set):
            questions = make_questions(dataset, self.relations, prompts, self.limit)
            try:
                one = prepare(questions, knowledge, self.candidates, scorer, self.context)
            except NothingCounts:
                if not made:
                    raise
                one = Prepared((), ())
            made.append(one)
        altered, plain = made
        rows = (self.batch_rows, self.batch_tokens)
        places = {
            plain.questions[row].fact.id: (number, at)
            for number, segment in enumerate(plain.segments)
            for at, row in enumerate(segment.rows.tolist())
        }
        beside = tuple(
            tuple(places.get(altered.questions[row].fact.id) for row in segment.rows.tolist())
            for segment in altered.segments
        )
        return altered, ContrastWork(altered.segments, *rows, plain.segments, beside)

    def more_columns(
        self, work: Any, prepared: Prepared, tables: Sequence[pa.Table]
    ) -> dict[str, pa.Array]:
        """The columns of the plain queries."""
        n_rows = len(prepared.questions)
        texts: list[str | None] = [None] * n_rows
        firsts: list[str | None] = [None] * n_rows
        ranks = np.zeros((2, n_rows), np.int32)
        spearman = np.full(n_rows, np.nan, np.float32)
        for (segment, _), table in zip(work.places, tables, strict=True):
            queries = from_table(table)["query"]
            at = prepared.segments[segment].rows[queries]
            spearman[at] = table["spearman"].to_numpy()
            ranks[:, at] = table["plain_raw"].to_numpy(), table["plain_filtered"].to_numpy()
            columns = table["plain_first"].to_pylist()
            for row, query, column in zip(at.tolist(), queries.tolist(), columns, strict=True):
                if (place := work.beside[segment][query]) is not None:
                    beside = work.plain[place[0]]
                    texts[row] = beside.queries[place[1]].text(BLANK)
                    firsts[row] = beside.columns.words[column] if column >= 0 else None
        none = np.array([text is None for text in texts])
        return {
            "plain": pa.array(texts, pa.string()),
            "plain_rank_raw": pa.array(ranks[0], mask=none),
            "plain_rank_filtered": pa.array(ranks[1], mask=none),
            "plain_first": pa.array(firsts, pa.string()).dictionary_encode(),
            "spearman": pa.array(spearman, mask=none | np.isnan(spearman)),
        }


@dataclass(frozen=True)
class ContrastWork(ClozeWork):
    """Altered queries as in `ClozeWork`. beside: of each, where its plain one stands in `plain`."""

    plain: tuple[Segment, ...] = ()
    beside: tuple[tuple[tuple[int, int] | None, ...], ...] = ()

    def answer(self, model: BlankFiller, segment: int, block: ScoreBlock) -> pa.Table:
        """The answers of one batch of altered queries, and what their plain ones say."""
        n = len(block.indices)
        columns = np.full(n, -1, np.int32)
        ranks = np.zeros((2, n), np.int32)
        spearman = np.full(n, np.nan, np.float32)
        places: dict[int, list[tuple[int, int]]] = {}
        for at, query in enumerate(block.indices.tolist()):
            if (place := self.beside[segment][query]) is not None:
                places.setdefault(place[0], []).append((at, place[1]))
        for number in sorted(places):
            here, queries = map(list, zip(*places[number], strict=True))
            scores = score_segment(model, self.plain[number], queries)
            found = rank_block(model.name, self.plain[number], scores)
            columns[here] = found["top"][:, 0]
            ranks[:, here] = found["rank_raw"], found["rank_filtered"]
            spearman[here] = spearman_rows(block.log_probs[here], scores.log_probs)
        table = super().answer(model, segment, block)
        for name, values in (("first", columns), ("raw", ranks[0]), ("filtered", ranks[1])):
            table = table.append_column(f"plain_{name}", pa.array(values))
        return table.append_column("spearman", pa.array(spearman))
