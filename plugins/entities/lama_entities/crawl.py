"""Crawls: what a model believes about some entities, then about its answers, and so on.

A crawl is a run whose ranges are depths. At depth 1, a model is asked for each relation that fits
the type of a seed, with the sentences of a card; at each further depth, about the answers of the
depth before that have at least the probability `above`. So a depth is stored as a whole, and a
stopped crawl continues. A thing has one type: the seed's, else that of its facts in the data, else
that of the relation by which it was found first. A crawl has one row for each answer with this
probability, and one for each query without such an answer, with its first answer and the reason in
`excluded`:

    depth, relation, query              the query, with [MASK]
    subject, subject_type, subject_id   as the data write them; the id is empty if they have none
    object, object_type, object_id      the answer; null if the text wasn't scored
    rank, log_prob, probability         of the answer, over the model's vocabulary
    truth                               right, wrong, or unknown: the data have no answer
    right                               the right answers, separated by `; `

Source: Cohen et al. 2023, Crawling the Internal Knowledge-Base of Language Models.
Departure: Crawls
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lama_core.candidates.columns import Candidates, Columns
from lama_core.candidates.lists import COMMON, check_words_known, named_candidates
from lama_core.candidates.spelling import Place
from lama_core.datasets import Dataset, load_dataset
from lama_core.errors import TextRefusedError, UserError, choose
from lama_core.grouping import grouped
from lama_core.models.protocols import KINDS, BlankFiller, Encoded
from lama_core.probes.kinds import ProbeKind
from lama_core.probes.making_runs import RunFunction, unchanged
from lama_core.probes.plan import choose_context, data_fields, load_known_models, model_fields
from lama_core.progress import Unit
from lama_core.requests import argument, option
from lama_core.rounding import counted, percent
from lama_core.runs.facts_table import make_facts_table
from lama_core.runs.info import RelationInfo, text_digest
from lama_core.runs.spec import Finished, Load, RunSpec, ScoringJob, load_by_name
from lama_core.scoring import shared_fields
from lama_core.scoring.batches import encode_queries, plan_batches
from lama_core.scoring.blanks import fill
from lama_core.scoring.executors import Part, Tick
from lama_core.scoring.preparation import NoFactCounts
from lama_core.scoring.queries import BLANK, NO_FIT
from lama_core.scoring.refusals import score_accepted
from lama_core.types import Query
from lama_entities.types import (
    Entity,
    find_entity,
    name_key,
    relation_types,
    relations_of,
    same_relations,
    similar_name,
    templates_of,
    type_words,
    written_name,
)

BATCHES = 4  # in a part; a killed process loses at most one part
MOST = 100_000  # queries
NO_ANSWER = "no object of the relation is one token of the model"
WORD = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        ("depth", pa.int16()),
        ("subject", WORD),
        ("subject_type", WORD),
        ("subject_id", WORD),
        ("relation", WORD),
        ("query", pa.string()),
        ("object", WORD),
        ("object_type", WORD),
        ("object_id", WORD),
        ("rank", pa.int16()),
        ("log_prob", pa.float32()),
        ("probability", pa.float32()),
        ("truth", WORD),
        ("right", pa.string()),
        ("excluded", WORD),
    ]
)
ANSWERS = pa.schema(
    [
        ("number", pa.int32()),
        ("rank", pa.int16()),
        ("object", pa.string()),
        ("log_prob", pa.float32()),
        ("excluded", pa.string()),
    ]
)


@dataclass(frozen=True, kw_only=True)
class CrawlRequest(shared_fields.OutSettings, command="crawl", python="crawl"):
    """The fields of `crawl`: the seeds, the models, and how far to go."""

    seeds: Annotated[
        Sequence[str], argument("Names to start from, such as 'Marie Curie' Norway.")
    ] = field(kw_only=False)
    models: shared_fields.Models
    type: Annotated[
        str,
        option(
            "The type of the seeds: person, country, city, ... Default: as in the data, and of "
            "names that these don't have, an error."
        ),
    ] = ""
    depth: Annotated[
        int, option("1: only about the seeds; 2: about their answers, too; and so on.", ge=1, le=9)
    ] = 2
    most: Annotated[int, option("The most queries of each model.", ge=1, le=MOST)] = 500
    above: Annotated[
        float,
        option("The least probability of an answer that is believed and followed.", gt=0, le=1),
    ] = 0.1
    dataset: shared_fields.Dataset = "starter"
    relations: shared_fields.Relations = ()
    candidates: shared_fields.AnyCandidates = COMMON
    context: shared_fields.Context = None
    precision: shared_fields.Precision = "auto"
    revisions: shared_fields.Revisions = ()

    def check(self) -> None:
        """Raise UserError without a seed, for an unknown type, or an invalid value of a field."""
        super().check()
        if not any(name.strip() for name in self.seeds):
            raise UserError("Nothing to start from: name an entity, such as Marie Curie.")
        if self.type:
            choose(self.type, type_words(), "type")


def plan_crawl(request: CrawlRequest, *, load: Load = load_by_name) -> "tuple[CrawlSpec, ...]":
    """Return one specification for each model.

    Raises:
        UserError: If a seed is unknown and has no type, or no relation fits the seeds.
    """
    request.check()
    dataset = load_dataset(request.dataset)
    seeds = seeds_of(request, dataset)
    chosen = {one.name for one in dataset.choose(request.relations)}
    names = tuple(
        name
        for name in relation_types()
        if name in chosen
        and any(name == one.name for kind in type_words() for one in relations_of(dataset, kind))
    )
    models = load_known_models(request, load)
    vocabularies = [model.vocabulary for model in models]
    candidates = check_words_known(
        named_candidates(request.candidates, vocabularies, of_relations=True), vocabularies
    )
    return tuple(
        CrawlSpec(
            **data_fields(request, dataset, names),
            **model_fields(model, model.reference),
            context=choose_context(request.context, model.kind),
            candidates=candidates,
            seeds=seeds,
            n_ranges=request.depth,
        )
        for model in models
    )


def seeds_of(request: CrawlRequest, dataset: Dataset) -> tuple[tuple[str, str], ...]:
    """Return the seeds as the data write them, each with its type.

    Raises:
        UserError: If a seed is unknown and has no type, or no chosen relation fits the seeds.
    """
    found = []
    for name in filter(None, (" ".join(name.split()) for name in request.seeds)):
        known = find_entity(dataset, name, (request.type,) if request.type else ())
        if known is None and not request.type:
            like = similar_name(dataset, name)
            hint = f" Did you mean {like!r}?" * bool(like)
            raise UserError(
                f"{dataset.name} doesn't have {name[:80]!r}: choose its type, such as person or "
                f"city.{hint}"
            )
        kind = request.type or (known.types[0] if known else "")
        found.append((known.name if known else name, kind))
    chosen = {one.name for one in dataset.choose(request.relations)}
    kinds = {kind for _, kind in found}
    if not any(one.name in chosen for kind in kinds for one in relations_of(dataset, kind)):
        which = "None of the chosen relations" if request.relations else "No relation"
        raise UserError(
            f"{which} of {dataset.name} fits the type {' or '.join(sorted(kinds))}: choose another "
            "type" + " or other relations" * bool(request.relations) + "."
        )
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query of a crawl. entity: the subject in the data; None if they don't have it."""

    subject: str
    kind: str
    relation: str
    query: Query
    entity: Entity | None


@dataclass(frozen=True, kw_only=True)
class CrawlSpec(RunSpec, kind="crawl", version=2):
    """A crawl of a model. seeds: names and types. candidates: the words that are ranked."""

    grows = True

    request: CrawlRequest
    seeds: tuple[tuple[str, str], ...]
    candidates: Candidates

    def options(self) -> dict[str, Any]:
        """Return the seeds, the limits, the candidates and the types of the relations."""
        asked = self.request
        types = [asdict(relation_types()[name]) for name in self.relations]
        return {
            "seeds": self.seeds,
            "limits": [asked.depth, asked.most, asked.above],
            "candidates": [self.candidates.per_relation, self.candidates.digest],
            "types": text_digest(repr(types)),
        }

    def prompt_name(self) -> str:
        """Return `crawl` and the first seed, for names of runs."""
        n_more = len(self.seeds) - 1
        return f"crawl {self.seeds[0][0]}" + f" and {n_more} more" * bool(n_more)

    def prepare(self, scorer: Any, on_note: Callable[[str], None]) -> ScoringJob:
        """Return the work on the first depth."""
        return self.ranges(scorer, on_note, lambda _: Finished(SCHEMA.empty_table(), ()))(0)

    def ranges(
        self, scorer: Any, on_note: Callable[[str], None], earlier: Callable[[int], Finished]
    ) -> Callable[[int], ScoringJob]:
        """Return a function that prepares a depth from the answers of those before it."""
        dataset: Dataset = self.load_data()
        for note in scorer.notes:
            on_note(f"{scorer.name}: {note}")

        def prepare_depth(number: int) -> ScoringJob:
            before = [row for one in range(number) for row in earlier(one).rows.to_pylist()]
            things = {name_key(name): (name, kind) for name, kind in reversed(self.seeds)}
            for row in before:
                if row["object"] is not None:
                    thing = row["object"], row["object_type"]
                    things.setdefault(name_key(row["object"]), thing)
            asked = self._next(dataset, number + 1, before, things, on_note)
            work = self._work(dataset, scorer, asked)
            return ScoringJob(
                work, lambda tables: self._finish(dataset, number + 1, work, things, tables)
            )

        return prepare_depth

    def _next(
        self,
        dataset: Dataset,
        depth: int,
        before: Sequence[Mapping[str, Any]],
        things: Mapping[str, tuple[str, str]],
        on_note: Callable[[str], None],
    ) -> list[_Asked]:
        """Return the queries of a depth: about the answers of the depth before, in their order.

        things: `name_key` of each thing so far -> its name and type.
        """
        asked = {(row["subject"], row["relation"]) for row in before}
        found = [
            row["object"] for row in before if row["excluded"] is None and row["depth"] == depth - 1
        ]
        queries: dict[tuple[str, str], _Asked] = {}
        templates = templates_of(dataset)
        for name in dict.fromkeys(found if before else (name for name, _ in self.seeds)):
            kind = things[name_key(name)][1]
            entity = find_entity(dataset, name, (kind,))
            for one in relations_of(dataset, kind):
                if one.name in self.relations and (name, one.name) not in asked:
                    query = fill(templates[one.name], name)
                    queries[name, one.name] = _Asked(name, kind, one.name, query, entity)
        if before and not queries:
            on_note(f"{self.model_name}: nothing new to ask about at depth {depth}.")
        left = max(0, self.request.most - len(asked))
        if len(queries) > left:
            on_note(
                f"{self.model_name}: {counted(len(queries) - left, 'query')} at depth {depth} not "
                f"asked, because the limit is {self.request.most:,} queries: raise it for more."
            )
        return [*queries.values()][:left]

    def _work(self, dataset: Dataset, scorer: BlankFiller, asked: Sequence[_Asked]) -> "DepthWork":
        """Return the queries as the model's tokens, in batches that share candidates."""
        queries = [one.query for one in asked]
        encoded: dict[int, Encoded] = {}
        try:
            encoded = dict(enumerate(encode_queries(scorer, queries, self.context)))
        except UserError:  # a text is too long
            for number, query in enumerate(queries):
                with suppress(UserError):
                    encoded[number] = encode_queries(scorer, [query], self.context)[0]
        # Where words are proposed and scored again, the answers depend on the other candidates.
        apart = self.context == "both" and not KINDS[scorer.kind].sees_both
        groups = grouped((asked[number].relation * apart, number) for number in encoded)
        objects = {one.relation: objects_of(dataset, one.relation) for one in asked}
        segments = []
        for name, numbers in groups.items():
            words = [word for one in ([name] if name else objects) for word in objects[one]]
            listed = self.candidates
            listed = listed.of_relation(words) if listed.per_relation else listed
            places = {encoded[number].places[0].kind for number in numbers}
            try:
                columns = listed.columns(scorer.vocabulary, places)
            except UserError:  # no word is one token of the model
                continue
            batches = plan_batches([encoded[number] for number in numbers])
            segments += [(columns, [numbers[one] for one in batch]) for batch in batches]
        steps = tuple(segments)
        return DepthWork(asked, encoded, objects, steps, self.candidates, self.request.above)

    def _finish(
        self,
        dataset: Dataset,
        depth: int,
        work: "DepthWork",
        things: dict[str, tuple[str, str]],
        tables: Sequence[pa.Table],
    ) -> Finished:
        """Return the rows of a depth. things: as of `_next`; new ones are added."""
        answers = grouped((row.pop("number"), row) for one in tables for row in one.to_pylist())
        ids, rows = ids_of(dataset), []
        for number, one in enumerate(work.asked):
            right = one.entity.objects.get(one.relation, ()) if one.entity else ()
            keys, usual = {*map(name_key, right)}, relation_types()[one.relation].objects
            reason = NO_ANSWER if number in work.encoded else NO_FIT
            for answer in answers.get(number, [{"excluded": reason}]):
                row = {
                    **answer,
                    "depth": depth,
                    "subject": one.subject,
                    "subject_type": one.kind,
                    "subject_id": ids.get(one.subject, ""),
                    "relation": one.relation,
                    "query": one.query.text(BLANK),
                    "right": "; ".join(right),
                }
                if (word := answer.get("object")) is not None:
                    known = find_entity(dataset, word, usual)
                    thing = written_name(word, known), (known.types if known else usual)[0]
                    name, row["object_type"] = things.setdefault(name_key(word), thing)
                    row["object"] = name
                    row["object_id"] = ids.get(name, "")
                    row["probability"] = math.exp(answer["log_prob"])
                    is_right = "right" if name_key(name) in keys else "wrong"
                    row["truth"] = is_right if right else "unknown"
                rows.append(row)
        columns = {name: [row.get(name) for row in rows] for name in SCHEMA.names}
        counts = Counter((row["relation"], row["excluded"] is None) for row in rows)
        templates = templates_of(dataset)
        relations = tuple(
            RelationInfo.of(
                dataset.relation(name), (templates[name],), counts[name, True], counts[name, False]
            )
            for name in self.relations
        )
        finished = Finished(make_facts_table(columns, len(rows), SCHEMA), relations)
        return self.join([finished]) if self.n_ranges == 1 else finished

    def join(self, ranges: Sequence[Finished]) -> Finished:
        """Return the rows of all depths; raise NoFactCounts if the model believes nothing."""
        if not any(relation.n for one in ranges for relation in one.relations):
            least = percent(self.request.above)
            raise NoFactCounts(
                f"{self.model_name} gives no answer about {self.seeds[0][0]} a probability of at "
                f"least {least} %: choose a lower least probability, or start from another entity."
            )
        return super().join(ranges)


def objects_of(dataset: Dataset, relation: str) -> tuple[str, ...]:
    """Return the objects of a relation in the data, in file order."""
    names = same_relations(relation)
    return tuple(dict.fromkeys(fact.object for one in names for fact in dataset.facts_of(one)))


def ids_of(dataset: Dataset) -> dict[str, str]:
    """Return name -> the data's identifier, such as Q90, for the names that have one."""
    pairs = [
        pair
        for fact in dataset.facts
        for pair in ((fact.subject, fact.subject_id), (fact.object, fact.object_id))
    ]
    return {name: found for name, found in reversed(pairs) if found}


@dataclass(frozen=True)
class DepthWork:
    """The queries of a depth, in parts.

    Attributes:
        asked: The queries.
        encoded: Number of a query -> its tokens.
        objects: Relation -> its objects in the data.
        batches: The candidates and the numbers of the queries of each batch.
        candidates: The chosen candidates.
        above: The least probability of an answer.
        spelled: Relation at a place of some candidates -> column -> the object as the data write
            it, and the columns that are ranked.
    """

    asked: Sequence[_Asked]
    encoded: Mapping[int, Encoded]
    objects: Mapping[str, tuple[str, ...]]
    batches: tuple[tuple[Columns, list[int]], ...]
    candidates: Candidates
    above: float
    spelled: dict[tuple[int, str, Place], tuple[dict[int, str], NDArray[np.int64]]] = field(
        default_factory=dict, repr=False
    )
    unit: Unit = field(default="queries", init=False)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts, of a few batches each."""
        return tuple(
            Part(f"{first:07}", sum(len(numbers) for _, numbers in self._batches_of(first)))
            for first in range(0, len(self.batches), BATCHES)
        )

    def _batches_of(self, first: int) -> tuple[tuple[Columns, list[int]], ...]:
        return self.batches[first : first + BATCHES]

    def score(self, model: BlankFiller, number: int, tick: Tick) -> pa.Table:
        """Return the answers to the queries of a part, see `ANSWERS`."""
        rows: list[dict[str, Any]] = []
        for columns, numbers in self._batches_of(number * BATCHES):

            def log_probs(some: Sequence[int], columns: Columns = columns) -> NDArray[np.float32]:
                return model.blank_log_probs([self.encoded[at] for at in some], columns).log_probs

            for some, found in score_accepted(log_probs, numbers):
                for row, at in enumerate(some):
                    if isinstance(found, TextRefusedError):
                        rows.append({"number": at, "excluded": found.excluded})
                    else:
                        rows += self._answers(at, columns, found[row])
                tick(len(some))
        return pa.Table.from_pylist(rows, schema=ANSWERS)

    def _answers(
        self, number: int, columns: Columns, log_probs: NDArray[np.float32]
    ) -> list[dict[str, Any]]:
        """Return the answers to a query with the least probability, else the first answer."""
        relation, place = self.asked[number].relation, Place(self.encoded[number].places[0].left)
        key = id(columns), relation, place
        if key not in self.spelled:
            objects, spelled = self.objects[relation], dict[int, str]()
            for word, column in zip(objects, columns.find_all(objects, place), strict=True):
                if isinstance(column, int):
                    spelled.setdefault(column, word)
            chosen = [*spelled] if self.candidates.per_relation else range(len(columns.words))
            self.spelled[key] = spelled, np.array(sorted(chosen), dtype=np.int64)
        spelled, among = self.spelled[key]
        found = log_probs[among]
        best = np.flatnonzero(found >= math.log(self.above))
        few = None if len(best) else f"no answer has a probability of {percent(self.above)} %"
        best = (
            best[np.argsort(-found[best], kind="stable")]
            if len(best)
            else np.array([found.argmax()])
        )
        return [
            {
                "number": number,
                "rank": rank,
                "object": spelled.get(column, columns.words[column]),
                "log_prob": float(log_probs[column]),
                "excluded": few,
            }
            for rank, column in enumerate(among[best].tolist(), start=1)
        ]


crawl = RunFunction(
    CrawlRequest,
    plan_crawl,
    unchanged,
    unchanged,
    """Crawl what models believe, from some entities to their answers; make a run for each model.

    The same call again resumes an interrupted crawl.

    Returns:
        The runs; `.frame` has a row for each answer with the least probability, and for each query
        without one.

    Raises:
        UserError: If a seed, a relation or a model is unknown, or no answer is probable enough.
    """,
    example='crawl "Marie Curie" --model minilm-mlm --depth 2 --most 200',
)
CRAWL = ProbeKind(CrawlSpec, "crawls", (crawl,), page="crawls", unit="belief")
