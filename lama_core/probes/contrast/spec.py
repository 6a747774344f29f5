"""Specification of runs that compare negated or misprimed queries with each fact's plain query.

The rows are those of a cloze run of the altered queries, with further columns:

    plain                               the plain query's text, with [MASK]; null if the fact has
                                        no plain query that can be scored
    plain_rank_raw, plain_rank_filtered the gold answer's ranks in the plain query
    plain_first                         the best candidate in the plain query
    spearman                            rank correlation of the candidates' probabilities in the
                                        altered and the plain query

Source: Kassner and Schütze 2020, section 4 and Table 2 (negated), section 5 (misprimed).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lama_core.datasets import Dataset
from lama_core.grouping import grouped
from lama_core.metrics.consistency import spearman_rows
from lama_core.models.protocols import BlankFiller
from lama_core.probes.cloze.spec import ClozeSpec, ClozeWork, SegmentWork, score_segment
from lama_core.scoring.batches import ScoreBlock
from lama_core.scoring.preparation import NoFactCounts, Prepared, Segment, prepare
from lama_core.scoring.prompt_choice import PromptSet, make_prompt_set
from lama_core.scoring.queries import BLANK, Knowledge, make_questions
from lama_core.scoring.top_answers import from_table, rank_block

PLAIN = "manual"


@dataclass(frozen=True, kw_only=True)
class ContrastSpec(ClozeSpec, kind="contrast", version=1):
    """A run of altered queries, compared with plain ones."""

    def make_work(
        self, dataset: Dataset, knowledge: Knowledge, scorer: Any
    ) -> tuple[Prepared, SegmentWork]:
        """Return the altered questions, and the work of scoring altered and plain questions."""

        def prepared(prompts: PromptSet) -> Prepared:
            questions = make_questions(dataset, self.relations, prompts, self.limit)
            return prepare(questions, knowledge, self.candidates, scorer, self.context)

        chosen = [dataset.relation(name) for name in self.relations]
        altered = prepared(self.prompts)
        try:
            plain = prepared(make_prompt_set(PLAIN, chosen))
        except NoFactCounts:
            plain = Prepared((), ())
        plain_query_of = {
            plain.questions[row].fact.id: (number, query)
            for number, segment in enumerate(plain.segments)
            for query, row in enumerate(segment.rows.tolist())
        }
        plain_queries = tuple(
            tuple(
                plain_query_of.get(altered.questions[row].fact.id) for row in segment.rows.tolist()
            )
            for segment in altered.segments
        )
        return altered, ContrastWork(
            altered.segments, self.batch_rows, self.batch_tokens, plain.segments, plain_queries
        )

    def more_columns(
        self, work: Any, prepared: Prepared, tables: Sequence[pa.Table]
    ) -> dict[str, pa.Array]:
        n_rows = len(prepared.questions)
        texts: list[str | None] = [None] * n_rows
        firsts: list[str | None] = [None] * n_rows
        ranks = np.zeros((2, n_rows), np.int32)
        spearman = np.full(n_rows, np.nan, np.float32)
        for (segment, _), table in zip(work.part_starts, tables, strict=True):
            if not len(table):
                continue
            queries = from_table(table)["query"]
            rows = prepared.segments[segment].rows[queries]
            spearman[rows] = table["spearman"].to_numpy()
            ranks[:, rows] = table["plain_raw"].to_numpy(), table["plain_filtered"].to_numpy()
            for row, query, column in zip(
                rows.tolist(), queries.tolist(), table["plain_first"].to_pylist(), strict=True
            ):
                if (plain_query := work.plain_queries[segment][query]) is not None:
                    plain = work.plain[plain_query[0]]
                    texts[row] = plain.queries[plain_query[1]].text(BLANK)
                    firsts[row] = plain.columns.words[column] if column >= 0 else None
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
    """The altered queries of a run, as in `ClozeWork`, and the plain queries.

    Attributes:
        plain: The segments of the plain queries.
        plain_queries: For each altered query of each segment, the segment and index of its plain
            query; None if it has none.
    """

    plain: tuple[Segment, ...] = ()
    plain_queries: tuple[tuple[tuple[int, int] | None, ...], ...] = ()

    def answer(self, model: BlankFiller, segment: int, block: ScoreBlock) -> pa.Table:
        """Return the answers of one batch of altered queries, compared with the plain queries."""
        n = len(block.indices)
        columns = np.full(n, -1, np.int32)
        ranks = np.zeros((2, n), np.int32)
        spearman = np.full(n, np.nan, np.float32)
        plain_queries = [self.plain_queries[segment][query] for query in block.indices.tolist()]
        by_segment = grouped(
            (plain[0], (row, plain[1]))
            for row, plain in enumerate(plain_queries)
            if plain is not None
        )
        for number in sorted(by_segment):
            rows, queries = map(list, zip(*by_segment[number], strict=True))
            scores = score_segment(model, self.plain[number], queries)
            ranked = rank_block(model.name, self.plain[number], scores)
            columns[rows] = ranked["top"][:, 0]
            ranks[:, rows] = ranked["rank_raw"], ranked["rank_filtered"]
            spearman[rows] = spearman_rows(block.log_probs[rows], scores.log_probs)
        table = super().answer(model, segment, block)
        for name, values in (("first", columns), ("raw", ranks[0]), ("filtered", ranks[1])):
            table = table.append_column(f"plain_{name}", pa.array(values))
        return table.append_column("spearman", pa.array(spearman))
