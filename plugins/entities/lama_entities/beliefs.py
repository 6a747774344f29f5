"""View: do a model's beliefs agree with each other?

A belief is an answer of a crawl, or the first answer to a query of a run. `relations.tsv` declares
constraints; each is counted over the beliefs that the same model's other beliefs can keep or break:

    inverse     (a, capital, b): a is among the answers to (b, capital of)
    symmetric   (a, borders, b): a is among the answers to (b, borders)
    one value   all answers to (a, capital) are the same; and of no other subject (c, capital) is
                the answer b, if the inverse has one value
    type        the data know b as something that the relation can have: as a city, a person, ...
    country     (a, capital of, b): the answers to (a, country) have b, or the country of b

The answers to a query are those of the crawl; of a run, the first one, or the ten best if the
relation can have several values. A constraint isn't counted where a needed query wasn't asked or
has no answer. Source: Kassner et al. 2021, BeliefBank; Elazar et al. 2021.
Departure: Beliefs that agree
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
import pandas as pd

from lama_core.datasets import Dataset, load_dataset
from lama_core.errors import UserError
from lama_core.grouping import grouped
from lama_core.metrics.intervals import METHOD, share_intervals
from lama_core.requests import option
from lama_core.rounding import counted, percent
from lama_core.runs.find import load_run
from lama_core.runs.info import FACT_KINDS, Run
from lama_core.tables import Column, Table, count, interval, share, table_of, table_of_frame, text
from lama_core.texts import word_key
from lama_core.views.choice import RunsRequest
from lama_core.views.figure import Axis, Figure, said, said_interval
from lama_core.views.view import Shown, View, ViewFunction
from lama_entities.crawl import CrawlSpec
from lama_entities.types import find_entity, relation_types, same_relations

BLANK = "[MASK]"
MOST_LISTED = 20  # broken constraints that the command prints; --json has all
# Constraint -> what it says, for readers.
MEANINGS = {
    "inverse": "the other way round, too (capital of)",
    "symmetric": "true in both directions (borders)",
    "one value": "only one (capital)",
    "type": "a thing of the right type",
    "country": "in the right country",
}


@dataclass(frozen=True)
class BeliefsRequest(RunsRequest, command="results beliefs", python="beliefs"):
    """The fields of `results beliefs`: runs or crawls."""

    above: Annotated[float, option("Only beliefs with at least this probability.", ge=0, le=1)] = (
        0.0
    )


@dataclass(frozen=True, slots=True)
class Belief:
    """A belief: an answer to a query. sentence: the query's text with the answer."""

    relation: str
    subject: str
    object: str
    probability: float
    sentence: str

    @property
    def asked(self) -> tuple[str, str]:
        """What the query asked: a key of its subject and relation."""
        return word_key(self.subject), self.relation


@dataclass(frozen=True, slots=True)
class Check:
    """A constraint and a belief. other: the belief, or the sentence, that keeps or breaks it."""

    constraint: str
    relation: str
    subject: str
    object: str
    probability: float
    sentence: str
    other: str
    kept: bool


@dataclass(frozen=True)
class Beliefs:
    """A model's beliefs.

    Attributes:
        each: The beliefs, each once.
        answers: What a query asked -> the keys of its answers.
        is_crawl: Whether every answer with the least probability is known.
        dataset: The data, which know types; None if they aren't on this machine.
        n_queries: What a query asked -> number of queries.
    """

    each: tuple[Belief, ...]
    answers: Mapping[tuple[str, str], frozenset[str]]
    n_queries: Mapping[tuple[str, str], int]
    is_crawl: bool
    dataset: Dataset | None

    def checks(self) -> Iterator[Check]:
        """Yield each constraint that a belief can keep or break, in the order of the beliefs."""
        by_query = grouped((one.asked, one) for one in self.each)
        by_object = grouped(((word_key(one.object), one.relation), one) for one in self.each)

        def said(of: tuple[str, str]) -> str:
            return by_query[of][0].sentence if of in by_query else ""

        def check(one: Belief, constraint: str, other: str, kept: bool) -> Check:
            about = (one.relation, one.subject, one.object, one.probability, one.sentence)
            return Check(constraint, *about, other, kept)

        for one in self.each:
            row, subject, obj = (
                relation_types()[one.relation],
                *map(word_key, (one.subject, one.object)),
            )
            inverse = row.constraint("inverse")
            for kind, back in (
                ("inverse", inverse.relation if inverse else ""),
                ("symmetric", one.relation if row.constraint("symmetric") else ""),
            ):
                if back and (found := self.answers.get((obj, back))):
                    yield check(one, kind, said((obj, back)), subject in found)
            if row.constraint("single"):
                others = [two for two in by_query[one.asked] if word_key(two.object) != obj]
                if inverse and (back_row := relation_types().get(inverse.relation)):
                    same = by_object[obj, one.relation] if back_row.constraint("single") else []
                    others += [two for two in same if word_key(two.subject) != subject]
                if self.is_crawl or others or self.n_queries[one.asked] > 1 or inverse:
                    yield check(one, "one value", others[0].sentence if others else "", not others)
            known = self.dataset and find_entity(self.dataset, one.object, row.objects)
            if known and known.types:
                is_right = not {*known.types}.isdisjoint(row.objects)
                yield check(one, "type", f"{known.name}: {', '.join(known.types)}", is_right)
            for kind, inner, outer in (("within", subject, obj), ("contains", obj, subject)):
                if lies := row.constraint(kind):
                    places = self.answers.get((inner, lies.relation), frozenset())
                    around = self.answers.get((outer, lies.relation), frozenset())
                    if places and (outer in places or around or self._is_country(outer)):
                        kept = outer in places or not around.isdisjoint(places)
                        yield check(one, "country", said((inner, lies.relation)), kept)

    def _is_country(self, name: str) -> bool:
        known = self.dataset and find_entity(self.dataset, name, ("country",))
        return bool(known and known.types[:1] == ("country",))


def beliefs_of(run: Run, above: float = 0.0, relations: Sequence[str] = ()) -> Beliefs:
    """Return the beliefs of a run or crawl, of the relations whose types are known."""
    is_crawl = run.info.kind == CrawlSpec.kind
    rows = run.facts
    answer, probability = ("object", "log_prob") if is_crawl else ("first", "first_log_prob")
    best = None if is_crawl else run.top.words
    each: dict[tuple[str, str, str], Belief] = {}
    answers: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    queries: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    columns = ("relation", "subject", answer, probability, "query", "excluded")
    for number, (relation, subject, word, log_prob, query, excluded) in enumerate(
        zip(*(rows[name].tolist() for name in columns), strict=True)
    ):
        if (
            isinstance(excluded, str)
            or not isinstance(word, str)
            or relation not in relation_types()
        ):
            continue
        chance = float(np.exp(log_prob)) if log_prob == log_prob else float("nan")
        if (relations and relation not in relations) or chance < above:
            continue
        name = same_relations(relation)[0]
        found = Belief(name, subject, word, chance, query.replace(BLANK, word))
        queries[found.asked].add(query)
        each.setdefault((*found.asked, word_key(word)), found)
        row = relation_types()[name]
        several = best is not None and not row.constraint("single")
        words = best[number] if several and best is not None else [word]
        answers[found.asked] |= {word_key(one) for one in words if one is not None}
    try:
        dataset = load_dataset(
            run.info.request.fields.get("dataset", run.info.dataset)
            if run.info.request
            else run.info.dataset
        )
    except UserError:
        dataset = None
    return Beliefs(
        tuple(each.values()),
        {key: frozenset(words) for key, words in answers.items()},
        {key: len(texts) for key, texts in queries.items()},
        is_crawl,
        dataset,
    )


@dataclass(frozen=True)
class Agreement:
    """What is shown. table: a row for each run and constraint. checks: run -> its checks."""

    table: pd.DataFrame
    checks: Mapping[str, tuple[Check, ...]]

    def broken(self, run: str) -> list[Check]:
        """Return the broken constraints of a run, those of the highest probability first."""
        found = [one for one in self.checks[run] if not one.kept]
        return sorted(found, key=lambda one: -np.nan_to_num(one.probability))


class BeliefsView(View[BeliefsRequest, Agreement]):
    """The share of beliefs that keep each constraint."""

    name = "beliefs"
    title = "Beliefs"
    question = "Do a model's beliefs agree with each other?"
    example = "results beliefs starter-minilm_mlm-manual starter-smollm2_135m-manual"
    keys = ("constraint",)
    aligned = False

    def load(self, request: BeliefsRequest) -> list[Run]:
        """Return the runs or crawls that a request names; without names, the runs of facts."""
        if not request.runs:
            return super().load(request)
        return [load_run(name, kinds=(*FACT_KINDS, CrawlSpec.kind)) for name in request.runs]

    def compute(self, runs: Sequence[Run], request: BeliefsRequest) -> Agreement:
        """Return the constraints of each run. Raises UserError if none can be counted."""
        rows, checks = [], {}
        for run in runs:
            found = checks[run.info.id] = tuple(
                beliefs_of(run, request.above, request.relations).checks()
            )
            for constraint in MEANINGS:
                of = [one.kept for one in found if one.constraint == constraint]
                if of:
                    rows.append((run.info.id, constraint, len(of), sum(of)))
        if not rows:
            raise UserError(
                "No constraint can be counted: choose runs of relations such as capital (P36), "
                "capital of (P1376) or shares border with (P47)."
            )
        table = pd.DataFrame(rows, columns=["run", "constraint", "n", "kept"])
        ends = share_intervals(table["kept"].to_numpy(), table["n"].to_numpy())
        table["share"] = table["kept"] / table["n"]
        table["low"], table["high"] = np.asarray(ends.low), np.asarray(ends.high)
        return Agreement(table, checks)

    def columns(self, shown: Shown[BeliefsRequest, Agreement]) -> tuple[Column, ...]:
        """Return the columns of the table."""
        return (
            text("model", cell=lambda line: shown.names[line["run"]]),
            text("constraint", "constraint", "What beliefs should keep."),
            text("meaning", "meaning", cell=lambda line: MEANINGS[line["constraint"]]),
            count("n", "beliefs", "Beliefs for which the constraint can be counted.", of_run=True),
            count("kept", "kept", "Beliefs that keep it.", of_run=True),
            share("share", "kept, %", "Share of these beliefs that keep it.", of_run=True),
            interval(help_text=f"Of the share: {METHOD}.", of_run=True),
        )

    def tables(self, shown: Shown[BeliefsRequest, Agreement]) -> Iterator[Table | str]:
        """Yield the table, and the first broken constraints of each run."""
        yield table_of_frame(shown.columns.values(), shown.frame, title="Beliefs that agree")
        for info in shown.infos:
            broken = shown.found.broken(info.id)
            if broken:
                title = f"{shown.names[info.id]}: {counted(len(broken), 'belief')} broken, the most"
                yield table_of(
                    ("constraint", "probability", "the model believes", "but also"),
                    [
                        (one.constraint, percent(one.probability), one.sentence, one.other)
                        for one in broken[:MOST_LISTED]
                    ],
                    title=f"{title} probable first",
                )

    def json(self, shown: Shown[BeliefsRequest, Agreement]) -> Any:
        """Return the table and every broken constraint."""
        broken = [
            {"run": info.id, **asdict(one)}
            for info in shown.infos
            for one in shown.found.broken(info.id)
        ]
        return {"constraints": shown.frame.to_dict("records"), "broken": broken}

    def conclusion(self, shown: Shown[BeliefsRequest, Agreement]) -> str:
        """Return for each run its share of all constraints, and the least kept one."""
        parts = []
        for run, table in shown.frame.groupby("run", sort=False):
            least = table.loc[table["share"].idxmin()]
            whole = percent(table["kept"].sum() / table["n"].sum())
            parts.append(
                f"{shown.names[str(run)]} keeps {whole} % of {table['n'].sum():,} constraints, of "
                f"“{least['constraint']}” {percent(least['share'])} %"
            )
        return "; ".join(parts)

    says_size = True

    def figure(self, shown: Shown[BeliefsRequest, Agreement]) -> Figure:
        """Return bars for each constraint."""
        frame = shown.frame
        lines = [
            said(
                f"{shown.names[line['run']]}, {line['constraint']}",
                f"{percent(line['share'])} % of {counted(line['n'], 'belief')} keep it",
                said_interval(line["low"], line["high"]),
            )
            for line in frame.to_dict("records")
        ]
        least, most = frame["n"].min(), frame["n"].max()
        return Figure(
            shape="bars",
            frame=frame.assign(said=lines),
            by=Axis(column="constraint", title="constraint"),
            value=Axis(column="share", title="beliefs that keep it, %", share=True),
            names=shown.names,
            low="low",
            high="high",
            title=shown.title_of("Beliefs that agree"),
            caption=f"{least:,} to {most:,} beliefs per bar; whiskers: 95 % intervals",
        )


beliefs = ViewFunction(
    BeliefsRequest,
    BeliefsView(),
    """Return how many beliefs of runs or crawls keep each constraint.

    Constraints: the inverse relation, symmetry, one value only, the type of the object, and the
    country of a city.

    Returns:
        A DataFrame with a row for each run and constraint: n (beliefs), kept, share, low, high.

    Raises:
        UserError: If a run is unknown, or no constraint can be counted.
    """,
)
