"""View: do a model's beliefs agree with each other?

A belief is the first answer to a query; of a crawl, each answer if the relation can have several
values. `relations.tsv` declares constraints; each is counted over the beliefs that the same model's
other beliefs can keep or break:

    inverse     (a, capital, b): a is among the answers to (b, capital of)
    symmetric   (a, borders, b): a is among the answers to (b, borders)
                Both only if a can be an answer: a is an answer or a scored object somewhere in the
                run. "Costa Rica" isn't, where the ranked words are single tokens.
    another thing  (a, borders, b): b isn't a
    one value   all sentences about (a, capital) have the same answer; and of no other subject of
                its type (c, capital) is the answer b, if the inverse has one value
    type        the data know b as something that the relation can have: as a city, a person, ...
    country     (a, capital of, b): the answers to (a, country) have b, or the country of b

The answers to a query are the first one, or if the relation can have several values, all of the
crawl and the ten best of a run. A constraint isn't counted where a needed query wasn't asked or
has no answer. If b is a, only "another thing" and "one value" are counted. Names are compared
without case and articles. Everything is a "thing": "type" isn't counted for relations to things,
and a thing breaks it only where the objects have proper names (music may be a field, not a city).

"X is located in Y" is the sentence of several relations: it is a belief of the first of them
(country), of which the type isn't counted, since a region may be true, too. Source: Kassner et al.
2021, BeliefBank; Elazar et al. 2021.
Departure: Beliefs that agree
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
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
from lama_core.views.choice import RunsRequest
from lama_core.views.figure import Axis, Figure, said, said_interval
from lama_core.views.view import Shown, View, ViewFunction
from lama_entities.crawl import CrawlSpec
from lama_entities.types import (
    Entity,
    find_entity,
    name_key,
    relation_types,
    same_relations,
    written_name,
)

BLANK = "[MASK]"
MOST_ANSWERS = 3  # that a note lists
MOST_LISTED = 20  # broken constraints that the command prints; --json has all
PROPER = {"person", "city", "country", "region", "organisation", "language", "continent", "year"}
# Constraint -> when a belief keeps it, for readers.
RULES = {
    "inverse": "the inverse query about the answer has the subject among its answers (capital, "
    "capital of)",
    "symmetric": "the same query about the answer has the subject among its answers (such as "
    "shares border with)",
    "another thing": "the answer isn't the subject itself (such as shares border with)",
    "one value": "no other sentence about the same subject and relation has another first answer; "
    "for capital and capital of, no other subject of the same type (country, region) has this "
    "answer",
    "type": "the data know the answer as something of a type that the relation can have (a country "
    "as a country)",
    "country": "both places are in the same country, by the model's own answers (such as capital "
    "of: if Nice is the capital of Provence, Nice is located in the country of Provence)",
}
BASIS = (
    "A belief is the first answer to a query, right or wrong; where a relation has several values "
    "(shares border with), each answer of a crawl that is probable enough to be followed. Its "
    "answers are then all of these, or the ten best of a run. A belief is counted where the other "
    "query was asked, too, and for inverse and symmetric if the subject is a word that the model "
    "can give; for the type if the data know the answer: models differ in their numbers of "
    "beliefs. An answer that is the subject itself counts only for another thing and "
    "one value."
)


@dataclass(frozen=True)
class BeliefsRequest(RunsRequest, command="results beliefs", python="beliefs"):
    """The fields of `results beliefs`: runs or crawls."""

    above: Annotated[float, option("Only beliefs with at least this probability.", ge=0, le=1)] = (
        0.0
    )


@dataclass(frozen=True, slots=True)
class Belief:
    """A belief: an answer to a query.

    probability: NaN if unknown. query: its text. shared: Whether other relations have it, too.
    """

    relation: str
    subject: str
    object: str
    probability: float
    query: str
    shared: bool = False

    @property
    def sentence(self) -> str:
        """The query with the answer."""
        return self.query.replace(BLANK, self.object)

    @property
    def asked(self) -> tuple[str, str]:
        """What the query asked: a key of its subject, and the relation."""
        return name_key(self.subject), self.relation

    @property
    def answer(self) -> tuple[str, str]:
        """A key of the object, and the relation."""
        return name_key(self.object), self.relation

    @property
    def label(self) -> str:
        """The relation's name for readers."""
        return relation_types()[self.relation].label


@dataclass(frozen=True, slots=True)
class Check:
    """A constraint, and the belief that keeps or breaks it.

    other: the belief that it is compared with. note: why it is broken, if the two sentences alone
    don't say it.
    """

    constraint: str
    kept: bool
    belief: Belief
    other: Belief | None = None
    note: str = ""

    @property
    def against(self) -> str:
        """The sentence or note that the belief is compared with."""
        return self.note or (self.other.sentence if self.other else "")

    @property
    def lacks_subject(self) -> bool:
        """Whether the answers to the other query lack the subject."""
        return bool(self.note) and self.constraint in ("inverse", "symmetric")

    def row(self) -> dict[str, Any]:
        """Return the constraint, the belief and what it is compared with, for tables."""
        other = asdict(self.other) if self.other else {}
        compared = {f"other_{name}": other.get(name) for name in ("query", "object", "probability")}
        sentences = {"sentence": self.belief.sentence, "against": self.against}
        return {"constraint": self.constraint, **asdict(self.belief), **sentences, **compared}


@dataclass(frozen=True)
class Beliefs:
    """A model's beliefs.

    Attributes:
        by_query: What a query asked -> its beliefs, the likeliest first.
        answers: What a query asked -> the keys of its answers, and the answers, the best first.
        n_queries: What a query asked -> number of queries.
        words: Keys of the words that can be answers, as far as the run shows them.
        kind_of: Subject and relation -> the subject's type in the data; or empty.
        dataset: The data, which know types; None if they aren't on this machine.
    """

    by_query: Mapping[tuple[str, str], Sequence[Belief]]
    answers: Mapping[tuple[str, str], Mapping[str, str]]
    n_queries: Mapping[tuple[str, str], int]
    words: frozenset[str]
    kind_of: Callable[[str, str], str]
    dataset: Dataset | None

    def checks(self) -> Iterator[Check]:
        """Yield each constraint that a belief can keep or break, in the order of the beliefs."""
        every = [one for found in self.by_query.values() for one in found]
        by_answer = grouped((one.answer, one) for one in every)
        for one in every:
            row = relation_types()[one.relation]
            subject, obj = one.asked[0], one.answer[0]
            is_self = subject == obj
            if row.constraint("irreflexive"):
                note = "The answer is the subject itself."
                yield Check("another thing", not is_self, one, note=note)
            inverse = row.constraint("inverse")
            back = {"inverse": inverse.relation} if inverse else {}
            back |= {"symmetric": one.relation} if row.constraint("symmetric") else {}
            for constraint, relation in back.items():
                found = self.answers.get((obj, relation))
                if found and not is_self and subject in self.words:
                    other, note = self.by_query[obj, relation][0], ""
                    if not relation_types()[relation].constraint("single"):  # else they exclude it
                        asked, few = other.query.replace(BLANK, "___"), [*found.values()]
                        listed = ", ".join(few[:MOST_ANSWERS]) + ", …" * (len(few) > MOST_ANSWERS)
                        note = f"{one.subject} isn't among the answers to “{asked}”: {listed}"
                        note += "." * (not note.endswith("…"))
                    yield Check(constraint, subject in found, one, other, note)
            if row.constraint("single"):
                others = [two for two in self.by_query[one.asked] if two.answer != one.answer]
                if inverse and relation_types()[inverse.relation].constraint("single"):
                    kind = self.kind_of(one.subject, one.relation)
                    others += [
                        two
                        for two in by_answer[one.answer]
                        if two.asked != one.asked
                        and self.kind_of(two.subject, two.relation) == kind
                    ]
                if inverse or self.n_queries[one.asked] > 1:
                    yield Check("one value", not others, one, others[0] if others else None)
            if is_self:
                continue
            known = find_entity(self.dataset, one.object, row.objects) if self.dataset else None
            is_right = known is not None and not {*known.types}.isdisjoint(row.objects)
            tells = is_right or PROPER.issuperset(row.objects)
            if (
                known
                and not one.shared
                and "thing" not in row.objects
                and (tells or known.types[0] != "thing")
            ):
                expected = f"{known.name} is of the type {known.types[0]}, not "
                yield Check("type", is_right, one, note=expected + " or ".join(row.objects) + ".")
            for kind, inner, outer in (("within", subject, obj), ("contains", obj, subject)):
                if lies := row.constraint(kind):
                    places = self.answers.get((inner, lies.relation), {})
                    around = self.answers.get((outer, lies.relation), {})
                    if places and (outer in places or around or self._is_country(outer)):
                        kept = outer in places or not around.keys().isdisjoint(places)
                        firsts = [
                            self.by_query[at, lies.relation][0]
                            for at in (inner, outer)
                            if (at, lies.relation) in self.by_query
                        ]
                        said = " ".join(first.sentence for first in firsts)
                        yield Check("country", kept, one, firsts[0], said)

    def _is_country(self, name: str) -> bool:
        known = find_entity(self.dataset, name, ("country",)) if self.dataset else None
        return bool(known and known.types[:1] == ("country",))


def beliefs_of(run: Run, above: float = 0.0) -> Beliefs:
    """Return the beliefs of a run or crawl, of the relations whose types are known."""
    is_crawl = run.info.kind == CrawlSpec.kind
    fields = run.info.request.fields if run.info.request else {}
    try:
        dataset = load_dataset(fields.get("dataset", run.info.dataset))
    except UserError:
        dataset = None
    shared = {} if is_crawl else _shared_templates(dataset)  # a crawl asks distinct sentences
    columns = ["object", "log_prob"] if is_crawl else ["first", "first_log_prob"]
    rows = run.facts[["relation", "subject", "query", "excluded", *columns]]
    best = None if is_crawl else run.top.words
    by_query: defaultdict[tuple[str, str], dict[str, Belief]] = defaultdict(dict)
    answers: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    queries: defaultdict[tuple[str, str], set[str]] = defaultdict(set)

    @cache
    def known(word: str, kinds: tuple[str, ...]) -> Entity | None:
        return find_entity(dataset, word, kinds) if dataset else None

    def kind_of(subject: str, relation: str) -> str:
        found = known(subject, relation_types()[relation].subjects)
        return found.types[0] if found else ""

    counted_rows = rows["excluded"].isna() & rows[columns[0]].notna()
    for number, relation, subject, query, _, word, log_prob in rows[counted_rows].itertuples():
        probability = math.exp(log_prob)
        if relation not in relation_types() or probability < above:
            continue
        name = same_relations(relation)[0]
        template = str(query).replace(str(subject), "[X]").replace(BLANK, "[Y]")
        if shared.get(template, name) != name:
            continue
        words = [word]
        if best is not None and not relation_types()[name].constraint("single"):
            words = [one for one in best[number] if one is not None]
        kinds = relation_types()[name].objects
        words = [written_name(str(one), known(str(one), kinds)) for one in words]
        found = Belief(name, str(subject), words[0], probability, str(query), template in shared)
        if is_crawl and relation_types()[name].constraint("single") and found.asked in by_query:
            continue  # its first answer is the belief
        by_query[found.asked].setdefault(found.answer[0], found)
        queries[found.asked].add(found.query)
        answers[found.asked] |= {name_key(one): one for one in words}
    return Beliefs(
        {asked: [*found.values()] for asked, found in by_query.items()},
        answers,
        {asked: len(texts) for asked, texts in queries.items()},
        frozenset(map(name_key, {str(one) for one in words_of(run, is_crawl=is_crawl)})),
        kind_of,
        dataset,
    )


def words_of(run: Run, *, is_crawl: bool) -> Iterator[str]:
    """Yield the words that a run shows to be ranked: its answers and scored right answers."""
    rows = run.facts
    is_ranked = rows["object"].notna() & (is_crawl | rows["excluded"].isna())
    yield from rows["object"][is_ranked].unique()
    if not is_crawl:
        yield from (word for word in run.top.known if word is not None)


def _shared_templates(dataset: Dataset | None) -> dict[str, str]:
    """Return each template of several relations -> the first of them in relations.tsv."""
    names: defaultdict[str, dict[str, None]] = defaultdict(dict)
    known = {one.name: one.templates for one in dataset.relations} if dataset else {}
    for name in relation_types():
        for template in known.get(name, ()):
            names[template][same_relations(name)[0]] = None
    return {template: next(iter(of)) for template, of in names.items() if len(of) > 1}


@dataclass(frozen=True)
class CheckedBeliefs:
    """What is shown. table: a row for each run and constraint. checks: run -> its checks."""

    table: pd.DataFrame
    checks: Mapping[str, tuple[Check, ...]]

    def broken(self, run: str) -> list[Check]:
        """Return the broken constraints of a run, those of the highest probability first."""
        found = [one for one in self.checks[run] if not one.kept]
        return sorted(found, key=lambda one: -np.nan_to_num(one.belief.probability))


class BeliefsView(View[BeliefsRequest, CheckedBeliefs]):
    """The share of beliefs that keep each constraint."""

    name = "beliefs"
    title = "Beliefs"
    question = "Do a model's beliefs agree with each other?"
    example = "results beliefs starter-minilm_mlm-manual starter-smollm2_135m-manual"
    keys = ("constraint",)
    aligned = False
    says_size = True
    counted = "beliefs"

    def load(self, request: BeliefsRequest) -> list[Run]:
        """Return the runs or crawls that a request names; without names, the runs of facts."""
        if not request.runs:
            return super().load(request)
        return [load_run(name, kinds=(*FACT_KINDS, CrawlSpec.kind)) for name in request.runs]

    def compute(self, runs: Sequence[Run], request: BeliefsRequest) -> CheckedBeliefs:
        """Return the constraints of each run. Raises UserError if none can be counted."""
        chosen = {same_relations(name)[0] for name in request.relations if name in relation_types()}
        rows, checks = [], {}
        for run in runs:
            found = checks[run.info.id] = tuple(
                one
                for one in beliefs_of(run, request.above).checks()
                if not chosen or one.belief.relation in chosen
            )
            for constraint in RULES:
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
        return CheckedBeliefs(table, checks)

    def columns(self, shown: Shown[BeliefsRequest, CheckedBeliefs]) -> tuple[Column, ...]:
        """Return the columns of the table."""
        return (
            text("model", cell=lambda line: shown.names[line["run"]]),
            text("constraint", "constraint", "What beliefs should keep."),
            count("n", "beliefs", "Beliefs for which the constraint can be counted.", of_run=True),
            count("kept", "kept", "Beliefs that keep it.", of_run=True),
            share("share", "kept, %", "Share of these beliefs that keep it.", of_run=True),
            interval(help_text=f"Of the share: {METHOD}.", of_run=True),
        )

    def tables(self, shown: Shown[BeliefsRequest, CheckedBeliefs]) -> Iterator[Table | str]:
        """Yield the table, the rules, and the first broken constraints of each run."""
        yield table_of_frame(shown.columns.values(), shown.frame, title="Beliefs that agree")
        yield from (f"{name}: {RULES[name]}." for name in shown.frame["constraint"].unique())
        yield BASIS
        for info in shown.infos:
            broken = shown.found.broken(info.id)
            if broken:
                title = (
                    f"{shown.names[info.id]}: {counted(len(broken), 'constraint')} broken, the most"
                )
                yield table_of(
                    ("constraint", "relation", "probability, %", "the model believes", "but"),
                    [
                        (
                            one.constraint,
                            one.belief.label,
                            percent(one.belief.probability),
                            one.belief.sentence,
                            one.against,
                        )
                        for one in broken[:MOST_LISTED]
                    ],
                    title=f"{title} probable first",
                )

    def json(self, shown: Shown[BeliefsRequest, CheckedBeliefs]) -> Any:
        """Return the table and every broken constraint."""
        broken = [
            {"run": info.id, **one.row()}
            for info in shown.infos
            for one in shown.found.broken(info.id)
        ]
        return {"constraints": shown.frame.to_dict("records"), "broken": broken}

    def conclusion(self, shown: Shown[BeliefsRequest, CheckedBeliefs]) -> str:
        """Return each run's mean over the constraints that all runs have."""
        shares = shown.frame.pivot(index="constraint", columns="run", values="share").dropna()
        if shares.empty:
            return ""
        means = {name: percent(shares[run].mean()) for run, name in shown.names.items()}
        kept = ", ".join(f"{name} {mean} %" for name, mean in means.items())
        over = counted(len(shares), "constraint")
        said = f"Mean share of beliefs that agree, over {over}: {kept}"
        if len(means) == 1:
            return said
        n = shown.frame.loc[shown.frame["constraint"].isin(shares.index), "n"]
        return (
            f"Not a ranking, as each model's own beliefs are counted ({n.min():,} to {n.max():,} "
            f"for a constraint). {said}"
        )

    def figure(self, shown: Shown[BeliefsRequest, CheckedBeliefs]) -> Figure:
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
        return Figure(
            shape="bars",
            frame=frame.assign(
                said=lines, text=[f"{kept:,} of {n:,}" for kept, n in frame[["kept", "n"]].values]
            ),
            by=Axis(column="constraint", title="constraint"),
            value=Axis(column="share", title="beliefs that keep it, %", share=True),
            names=shown.names,
            low="low",
            high="high",
            text="text",
            title=shown.title_of("Beliefs that agree"),
            caption="after each bar: beliefs that keep it, of those counted; whiskers: 95 % "
            "intervals",
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
