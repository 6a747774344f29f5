"""Runs of causal traces: each fact's trace, as the mean effect of each token role at each layer.

One row for each fact, layer and role, and one for each excluded fact:

    fact_id, relation, subject, object   the fact
    excluded                             why the fact is excluded; null if it isn't
    prob, corrupted                      probability of the object without and with noise
    layer, role                          what was restored; see `roles`
    effect                               mean of restored - corrupted over the role's tokens

A fact counts if its object is the model's first answer among the candidates, as in the paper.
Source: Meng et al. 2022, section 2 and Figure 2.
Departure: Causal tracing
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lama_core.errors import UserError
from lama_core.models.protocols import PartReader, TracedPart
from lama_core.probes.cloze.spec import ClozeSpec, SegmentWork
from lama_core.probes.tracing.request import TraceRequest
from lama_core.probes.tracing.roles import roles_of
from lama_core.queries.lenses.lens import check_inspectable
from lama_core.runs.spec import Finished, ScoringJob
from lama_core.scoring.executors import Tick
from lama_core.scoring.preparation import Segment, prepare
from lama_core.scoring.queries import make_questions

PART = 4  # facts per part, so an interruption loses at most four
NOT_FIRST = "object is not the model's first answer"
NO_SUBJECT = "subject is not in the text that the model sees"
EFFECTS = pa.schema(
    [
        ("query", pa.int32()),
        ("excluded", pa.string()),
        ("prob", pa.float32()),
        ("corrupted", pa.float32()),
        ("layer", pa.int16()),
        ("role", pa.string()),
        ("effect", pa.float32()),
    ]
)


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """Restored parts and noise of a trace; `models.protocols.PartReader.trace` explains them."""

    part: TracedPart
    window: int | None
    draws: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class TraceSpec(ClozeSpec, kind="trace", version=1):
    """A run of causal traces."""

    request: TraceRequest

    @property
    def trace_options(self) -> TraceOptions:
        """The restored parts, and the noise."""
        asked = self.request
        return TraceOptions(asked.restore, asked.window, asked.draws, asked.seed)

    def options(self) -> dict[str, Any]:
        how = self.trace_options
        window = None if how.part == "states" else how.window
        return super().options() | {"trace": [how.part, window, how.draws, how.seed]}

    def prompt_name(self) -> str:
        return f"trace {self.trace_options.part}"

    def prepare(self, scorer: Any, on_note: Callable[[str], None]) -> ScoringJob:
        check_inspectable(scorer, PartReader)
        scorer.check_parts()
        dataset, knowledge = self._gather(scorer, on_note)
        questions = make_questions(dataset, self.relations, self.prompts, self.limit)
        prepared = prepare(questions, knowledge, self.candidates, scorer, self.context)
        subjects = tuple(
            tuple(prepared.questions[row].fact.subject for row in segment.rows.tolist())
            for segment in prepared.segments
        )
        work = TraceWork(prepared.segments, subjects, self.trace_options)

        def finish(tables: Sequence[pa.Table]) -> Finished:
            traced: dict[int, list[dict[str, Any]]] = {}
            for (segment, _), table in zip(work.part_starts, tables, strict=True):
                for row in table.to_pylist():
                    question = int(prepared.segments[segment].rows[row.pop("query")])
                    traced.setdefault(question, []).append(row)
            nothing = dict.fromkeys(EFFECTS.names[1:])
            rows = [
                {
                    "fact_id": question.fact.id,
                    "relation": question.relation.name,
                    "subject": question.fact.subject,
                    "object": question.fact.object,
                    **row,
                }
                for number, question in enumerate(prepared.questions)
                for row in traced.get(number, [nothing | {"excluded": question.excluded}])
            ]
            judged = [
                replace(question, excluded=traced[number][0]["excluded"])
                if number in traced
                else question
                for number, question in enumerate(prepared.questions)
            ]
            names = ("fact_id", "relation", "subject", "object")
            schema = pa.schema([*((name, pa.string()) for name in names), *list(EFFECTS)[1:]])
            return Finished(
                pa.Table.from_pylist(rows, schema=schema),
                self._describe(dataset, judged),
                max(len(segment.columns.words) for segment in prepared.segments),
                {
                    "options": asdict(self.trace_options),
                    "reasons": dict(Counter(one.excluded for one in judged if one.excluded)),
                },
            )

        return ScoringJob(work, finish)


@dataclass(frozen=True)
class TraceWork(SegmentWork):
    """The facts of a run, in parts. subjects: The subject of each query of each segment."""

    subjects: tuple[tuple[str, ...], ...]
    options: TraceOptions

    def first_steps(self, segment: int) -> range:
        return range(0, len(self.segments[segment].queries), PART)

    def size(self, segment: int, first: int) -> int:
        """Return the number of queries of a part."""
        return len(self.segments[segment].encoded[first : first + PART])

    def score(self, scorer: PartReader, number: int, tick: Tick) -> pa.Table:
        """Return the effects of the facts of one part, in the columns of `EFFECTS`."""
        segment_number, first = self.part_starts[number]
        segment = self.segments[segment_number]
        last = min(first + PART, len(segment.queries))
        best = scorer.blank_log_probs(list(segment.encoded[first:last]), segment.columns)
        firsts = np.argmax(best.log_probs, axis=1).tolist()
        rows = []
        for query, answer in zip(range(first, last), firsts, strict=True):
            if answer == segment.gold[query]:
                subject = self.subjects[segment_number][query]
                rows += self._trace(scorer, segment, query, subject)
            else:
                rows.append({"query": query, "excluded": NOT_FIRST})
            tick(1)
        return pa.Table.from_pylist(rows, schema=EFFECTS)

    def _trace(
        self, model: PartReader, segment: Segment, query: int, subject: str
    ) -> list[dict[str, Any]]:
        """Return the rows of one fact."""
        encoded = segment.encoded[query]
        try:
            at = model.find_tokens(segment.queries[query], encoded, subject)
        except UserError:
            return [{"query": query, "excluded": NO_SUBJECT}]
        word = segment.columns.tokens_of(int(segment.gold[query]), encoded.places[0])
        found = model.trace(encoded, at, word, **asdict(self.options))
        roles = roles_of(len(encoded.token_ids), at, model.read_at(encoded))
        return [
            {
                "query": query,
                "prob": found.prob,
                "corrupted": found.corrupted,
                "layer": layer,
                "role": role,
                "effect": float(np.mean(probs[positions])) - found.corrupted,
            }
            for layer, probs in enumerate(found.restored, start=1)
            for role, positions in roles.items()
        ]
