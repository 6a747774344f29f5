"""Answers of several runs to the same facts, joined row by row for error analysis.

    right             the gold answer's rank is at most k
    right type        the answer is wrong, but is an object of the relation in the data
    another valid     the answer is another object that the data gives for the same subject
    gold in subject   the lower-cased object is part of the lower-cased subject (UHN's first rule,
                      Poerner et al. 2020)

A row is a fact, or a fact and a prompt if the runs have several prompts. The answer is the first
prediction of the chosen ranking; the filtered ranking removes the other valid objects.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lama_core.metrics.cooccurrence import stated_in_texts
from lama_core.metrics.known_ranks import hits
from lama_core.metrics.sentence_forms import wordings_in_texts
from lama_core.metrics.verdicts import overridden
from lama_core.runs.alignment import Bools, number_rows
from lama_core.runs.chosen_facts import OUTSIDE
from lama_core.runs.facts_table import UNRANKED
from lama_core.runs.info import Run
from lama_core.runs.tags import SEPARATOR, read_tags
from lama_core.scoring.queries import SQUAD
from lama_core.scoring.ranking import Ints, Ranking
from lama_core.texts import word_key

WrongKind = Literal["right type", "another valid", "neither"]
WRONG_KINDS: tuple[WrongKind, ...] = ("right type", "another valid", "neither")
Counting = Literal["counted", "excluded", "all"]
COUNTINGS: tuple[Counting, ...] = get_args(Counting)


_Condition = Bools | pd.Series | bool
_UNKNOWN = np.float32(np.nan)
LEAST_NAMES = 3  # that begin with a word which isn't whole; see `as_written`
_BLOCK = 1 << 20  # rows whose texts are Python objects at the same time
_WORDS = ("relation", "source", "type", "object", "origin")
_BASE = (
    "fact_id", *_WORDS, "subject", "prompt", "query", "n_valid", "object_count", "subject_tokens"
)  # fmt: skip


@dataclass(frozen=True)
class RunAnswers:
    """One run's answers, in the rows of `JoinedAnswers`; every array is [row], read when used.

    Attributes:
        run: The run.
        at: Row of `Run.facts`, or -1 if the run doesn't have this row.
        same: Whether `at` counts from 0 on to the run's last row.
        ranking: What the rank and the answer are of.
    """

    run: Run
    at: Ints
    same: bool
    ranking: Ranking

    @cached_property
    def rank(self) -> NDArray[np.float32]:
        """Rank of the gold answer; NaN where excluded. `shown_rank` is for readers."""
        return self._numbers(f"rank_{self.ranking}")

    @cached_property
    def known(self) -> Ints:
        """What the row knows of the rank; see `Run.known_to`."""
        return self._there(self.run.known_to, 0)

    @cached_property
    def log_prob(self) -> NDArray[np.float32]:
        """Log-probability of the gold answer; NaN where excluded."""
        return self._numbers("log_prob")

    @cached_property
    def confidence(self) -> NDArray[np.float32]:
        """Probability of the answer; NaN where excluded."""
        return np.exp(self._numbers(f"{self._first}_log_prob"))

    @cached_property
    def answer(self) -> pd.Categorical:
        """The first prediction; null where excluded."""
        return self._words(self._first)

    @cached_property
    def is_object(self) -> Bools:
        """Whether the answer is an object of the relation in the data."""
        run, found = self.run, self.run.column("first_is_object").to_numpy(copy=True)
        moved = self.ranking == "filtered" and self._moved & run.column(self._first).notna()
        if np.any(moved):  # the stored flags don't describe these answers
            rows = np.flatnonzero(moved)
            relations = run.column("relation").astype("str").to_numpy()
            objects = set(zip(relations, _keys(run.column("object")), strict=True))
            answers = zip(relations[rows], _keys(run.column(self._first))[rows], strict=True)
            found[rows] = [pair in objects for pair in answers]
        return self._there(found, False)

    @cached_property
    def is_valid(self) -> Bools:
        """Whether the answer is another valid object of the subject."""
        found = self.run.column("first_is_valid").to_numpy()
        return self._there(found & ~self._moved if self.ranking == "filtered" else found, False)

    @cached_property
    def excluded(self) -> pd.Categorical:
        """Reason of the exclusion."""
        return self._words("excluded")

    @cached_property
    def pieces(self) -> NDArray[np.float32]:
        """Subword tokens of the subject, by the model's tokenizer; NaN if not in the run."""
        return self._numbers("subject_pieces")

    @cached_property
    def margin(self) -> NDArray[np.float32]:
        """Score of the gold answer minus the score of the best wrong answer.

        NaN where excluded and in runs that don't rank statements.
        """
        return self._there(margins_of(self.run))

    @cached_property
    def n_answers(self) -> NDArray[np.float32]:
        """Number of words ranked for the relation; NaN if unknown."""
        sizes = [self.run.n_words.get(name, np.nan) for name in self.run.words_of("relation")]
        return self._there(np.array([*sizes, np.nan], np.float32)[self.run.codes("relation")])

    @cached_property
    def shown_rank(self) -> NDArray[np.float32]:
        """The rank where it is known; NaN where excluded or only known to be large."""
        return np.where(self.rank < UNRANKED, self.rank, _UNKNOWN)

    @cached_property
    def unknown(self) -> Bools:
        """Whether the row counts, but its first answer isn't known."""
        missing = self.answer.codes < 0
        return np.where(self.run.info.generates, False, missing & ~np.isnan(self.rank))

    def hits(self, k: int = 1) -> NDArray[np.float64]:
        """Whether the gold answer is among the k best: 1, 0, or NaN if unknown or excluded."""
        return hits(self.rank, self.known, k)

    @property
    def _first(self) -> str:
        """Column of the first prediction."""
        return "first" if self.ranking == "raw" else "first_filtered"

    @cached_property
    def _moved(self) -> Bools:
        """Where filtering removed the raw first answer, which the stored flags describe."""
        return ~same_words(self.run.column("first"), self.run.column("first_filtered"))

    def _there(self, values: NDArray[Any], missing: Any = _UNKNOWN) -> NDArray[Any]:
        return values if self.same else np.where(self.at >= 0, values[self.at], missing)

    def _numbers(self, column: str) -> NDArray[np.float32]:
        return self._there(self.run.column(column).to_numpy(dtype=np.float32))

    def _words(self, column: str) -> pd.Categorical:
        values = self.run.column(column).array
        return values if self.same else values.take(self.at, allow_fill=True)


@dataclass(frozen=True, slots=True)
class AnswerFilter:
    """A filter of rows; a field with its default value lets all rows pass.

    Attributes:
        of: Index of the run to which `counting`, `rank_*`, `confidence_*`, `margin_*`, `answer`,
            `wrong_kind`, `pieces_*`, `answers_*` and `tags` apply.
        right: Indices of the runs that must be right, in the order of joining.
        wrong: Indices of the runs that must be wrong.
        types: Types of relation; "" is a relation without a type.
        origins: Origins of facts; "" is a fact without an origin.
        domains: Topics, at least one of which the relation must have; "" is a relation without
            topics.
        stated: Accepted labels of `JoinedAnswers.stated`.
        wording: Accepted labels of `JoinedAnswers.wording`.
        confidence_min: Exclusive lower end, as in the reliability diagram; 0 is inclusive.
        margin_min: Exclusive lower end.
        contained: Whether the subject contains the gold answer.
        count_min: Facts of the relation with the same gold answer.
        words_min: Words of the subject.
        pieces_min: Subword tokens of the subject.
        answers_min: Number of words ranked for the relation.
        gold: The gold answer, ignoring case.
        answer: The run's answer, ignoring case.
        tags: Tags, at least one of which the row must have.
        text: Part of the subject, gold answer, query or an answer, ignoring case.
        popularity_min: Popularity of the subject; if an end is set, facts without popularity don't
            pass.
    """

    of: int = 0
    k: int = 1
    counting: Counting = "counted"
    relations: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()
    wording: tuple[str, ...] = ()
    right: tuple[int, ...] = ()
    wrong: tuple[int, ...] = ()
    rank_min: int | None = None
    rank_max: int | None = None
    confidence_min: float = 0.0
    confidence_max: float = 1.0
    margin_min: float | None = None
    margin_max: float | None = None
    contained: bool | None = None
    count_min: int | None = None
    count_max: int | None = None
    words_min: int | None = None
    words_max: int | None = None
    pieces_min: int | None = None
    pieces_max: int | None = None
    answers_min: int | None = None
    answers_max: int | None = None
    popularity_min: int | None = None
    popularity_max: int | None = None
    wrong_kind: WrongKind | None = None
    gold: str = ""
    answer: str = ""
    tags: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class JoinedAnswers:
    """Facts with the answers of several runs.

    facts: DataFrame [row], the columns from the data. runs: the answers, in the order of joining.
    readers: the models whose training texts are used for `stated` and `wording`.
    """

    facts: pd.DataFrame
    runs: tuple[RunAnswers, ...]
    readers: tuple[str, ...] = ()

    @cached_property
    def domains(self) -> dict[str, tuple[str, ...]]:
        """Relation -> its topics in the data."""
        return {one.name: one.domains for run in self.runs for one in run.run.info.relations}

    @cached_property
    def popularity(self) -> NDArray[np.float64]:
        """Popularity of the subject, float64 [row]; NaN if no run has it."""
        runs = [one.run for one in self.runs if one.run.has_column("popularity")]
        if not runs:
            return np.full(len(self.facts), np.nan)
        known = {
            fact: value
            for run in runs
            for fact, value in zip(run.column("fact_id"), run.column("popularity"), strict=True)
        }
        values = (known.get(fact, np.nan) for fact in self.facts["fact_id"])
        return np.fromiter(values, np.float64, len(self.facts))

    @cached_property
    def contained(self) -> Bools:
        """Whether the subject contains the gold answer, bool [row]."""
        golds, subjects = _keys(self.facts["object"]), self.facts["subject"]
        found = np.zeros(len(golds), bool)
        for start in range(0, len(golds), _BLOCK):
            rows = slice(start, start + _BLOCK)
            pairs = zip(map(word_key, subjects.iloc[rows].tolist()), golds[rows], strict=True)
            found[rows] = [gold in subject for subject, gold in pairs]
        return found

    @cached_property
    def stated(self) -> pd.Categorical | None:
        """Label of the training texts in which each pair co-occurs, [row]; None if unknown."""
        return stated_in_texts(self.facts, self.readers)

    @cached_property
    def wording(self) -> pd.Categorical | None:
        """Label of the training texts in which each wording occurs, [row]; None if unknown."""
        return wordings_in_texts(self.facts, self.readers)

    @cached_property
    def queries(self) -> Ints:
        """The number of each row's query, int64 [row]; the same for several right answers to it."""
        facts = self.facts
        query = facts["query"].where(facts["query"].fillna("") != "", facts["fact_id"])
        return pd.factorize(facts["relation"].astype(str) + "\n" + query)[0]

    def select(self, chosen: AnswerFilter) -> Ints:
        """Return the rows that pass a filter, int64, in the order of the data."""
        keep = np.ones(len(self.facts), dtype=bool)
        with np.errstate(invalid="ignore"):
            for passes in self._conditions(chosen):
                keep &= passes
        return np.flatnonzero(keep)

    def _conditions(self, chosen: AnswerFilter) -> Iterator[_Condition]:
        """Yield which rows pass each part of a filter, bool [row].

        False: no row passes, because the training texts are unknown.
        """
        for name, wanted in (
            ("relation", chosen.relations),
            ("type", chosen.types),
            ("source", chosen.sources),
            ("origin", chosen.origins),
        ):
            if wanted:
                yield _is_one_of(self.facts[name], wanted)
        if chosen.domains:
            relations = [
                name
                for name, domains in self.domains.items()
                if not set(chosen.domains).isdisjoint(domains or ("",))
            ]
            yield _is_one_of(self.facts["relation"], relations)
        if chosen.stated:
            yield self.stated is not None and _is_one_of(self.stated, chosen.stated)
        if chosen.wording:
            yield self.wording is not None and _is_one_of(self.wording, chosen.wording)
        if not self.runs:
            return
        focus = self.runs[chosen.of]
        if chosen.counting != "all":
            yield np.isnan(focus.rank) == (chosen.counting == "excluded")
        for number in chosen.right:
            yield self.runs[number].hits(chosen.k) == 1
        for number in chosen.wrong:
            yield self.runs[number].hits(chosen.k) == 0
        if chosen.contained is not None:
            yield self.contained == chosen.contained
        if chosen.wrong_kind is not None:
            yield wrong_kinds(focus)[chosen.wrong_kind]
        if chosen.gold:
            yield _is_word(self.facts["object"], chosen.gold)
        if chosen.answer:
            yield _is_word(focus.answer, chosen.answer)
        if chosen.tags:
            tags = self.tags(chosen.of)
            yield np.fromiter((not set(chosen.tags).isdisjoint(t) for t in tags), bool, len(tags))
        if chosen.text:
            holds = np.zeros(len(self.facts), bool)
            for texts in (self.facts["subject"], self.facts["query"]):
                found = pc.match_substring(
                    pa.array(texts, pa.string()), chosen.text, ignore_case=True
                )
                holds |= found.fill_null(False).to_numpy(zero_copy_only=False)
            for words in (self.facts["object"].array, *[run.answer for run in self.runs]):
                holds = holds | by_word(
                    words, lambda word: chosen.text.lower() in word.lower(), False
                )
            yield holds
        # 0 and 1 are the ends of the page's slider, and let all rows pass.
        above_confidence = chosen.confidence_min or None
        to_confidence = chosen.confidence_max if chosen.confidence_max < 1 else None
        # Values, inclusive lower end, exclusive lower end, inclusive upper end.
        for values, least, above, most in (
            (focus.shown_rank, chosen.rank_min, None, chosen.rank_max),
            (self.facts["object_count"], chosen.count_min, None, chosen.count_max),
            (self.facts["subject_tokens"], chosen.words_min, None, chosen.words_max),
            (focus.pieces, chosen.pieces_min, None, chosen.pieces_max),
            (focus.n_answers, chosen.answers_min, None, chosen.answers_max),
            (focus.confidence, None, above_confidence, to_confidence),
            (focus.margin.astype(np.float64), None, chosen.margin_min, chosen.margin_max),
            (self.popularity, chosen.popularity_min, None, chosen.popularity_max),
        ):
            if least is not None:
                yield values >= least
            if above is not None:
                yield values > above
            if most is not None:
                yield values <= most

    def table(self, rows: Ints, names: Sequence[str]) -> pd.DataFrame:
        """Return these rows as a table for export: the fact, and the columns of each run by name.

        Values aren't formatted; `left out` is the reason of the exclusion.
        """
        facts = self.facts.iloc[rows].reset_index(drop=True)
        given = ("fact_id", "relation", "source", "type", "subject", "object", "query")
        columns: dict[str, Any] = {name: facts[name] for name in (*given, "object_count")}
        for number, (name, run) in enumerate(zip(names, self.runs, strict=True)):
            tags = self.tags(number)
            columns[f"{name} tags"] = pd.Categorical(
                [SEPARATOR.join(tags[row]) for row in rows] if any(tags) else [""] * len(rows)
            )
            columns[f"{name} answer"] = run.answer[rows]
            columns[f"{name} prob"] = run.confidence[rows].astype(float)
            if run.run.info.has_ranks:
                columns[f"{name} rank"] = pd.array(run.shown_rank[rows]).astype("Int64")
            else:
                columns[f"{name} right"] = self.right(number)[rows]
            columns[f"{name} log_prob"] = run.log_prob[rows].astype(float)
            if run.run.info.ranks_statements:
                columns[f"{name} margin"] = run.margin[rows].astype(float)
            columns[f"{name} left out"] = run.excluded[rows]
        return pd.DataFrame(columns)

    def tags(self, number: int) -> list[tuple[str, ...]]:
        """Return the tags of each row in the run with this index, read from the run's file."""
        known = read_tags(self.runs[number].run.info)
        if not known:
            return [()] * len(self.facts)
        rows = zip(self.facts["fact_id"], self.facts["prompt"].tolist(), strict=True)
        return [known.get(row, ()) for row in rows]

    def verdicts(self, number: int) -> dict[int, bool]:
        """Return row -> whether the user judged the text of the run with this index right."""
        own = overridden(self.runs[number].run)
        if not own:
            return {}
        at = enumerate(self.runs[number].at.tolist())
        return {row: own[place] for row, place in at if place in own}

    def right(self, number: int, k: int = 1) -> Bools:
        """Whether the gold answer is known to be among a run's k best, bool [row]."""
        return self.runs[number].hits(k) == 1


def wrong_kinds(run: RunAnswers) -> dict[WrongKind, Bools]:
    """Classify the wrong first answers that are known: for each kind, bool [row]."""
    with np.errstate(invalid="ignore"):
        wrong = (run.rank > 1) & ~run.unknown
    return {
        "right type": wrong & run.is_object & ~run.is_valid,
        "another valid": wrong & run.is_valid,
        "neither": wrong & ~run.is_object & ~run.is_valid,
    }


def join_answers(
    runs: Sequence[Run], *, ranking: Ranking = "filtered", readers: Sequence[str] = ()
) -> JoinedAnswers:
    """Join the answers of runs by fact and prompt; rows that the first run lacks come last.

    readers: models whose training texts are used; by default the runs' models.
    """
    if not runs:
        return JoinedAnswers(pd.DataFrame(columns=list(_BASE)), ())
    keys = number_rows(runs)
    here = (runs[0].column("excluded") != OUTSIDE).to_numpy()
    pieces, known = [_base(runs[0])], keys[0]
    if not here.all():
        pieces, known = [pieces[0][here]], known[here]
    for run, key in zip(runs[1:], keys[1:], strict=True):
        if np.array_equal(key, keys[0]):
            continue
        new = ~np.isin(key, known) & (run.column("excluded") != OUTSIDE).to_numpy()
        if new.any():
            pieces.append(_base(run)[new])
            known = np.concatenate([known, key[new]])
    facts = pieces[0]
    if len(pieces) > 1:
        texts = dict.fromkeys(("relation", "source", "object"), "str")
        facts = pd.concat([piece.astype(texts) for piece in pieces])
        facts = facts.astype(dict.fromkeys(_WORDS, "category"))
    answers = []
    for run, key in zip(runs, keys, strict=True):
        same = np.array_equal(key, known)
        at = np.arange(len(known)) if same else pd.Index(key).get_indexer(pd.Index(known))
        answers.append(RunAnswers(run, at, same, ranking))
    readers = tuple(dict.fromkeys(readers or [run.info.model for run in runs]))
    return JoinedAnswers(facts.reset_index(drop=True), tuple(answers), readers)


def fallbacks(joined: JoinedAnswers, rows: Ints, *, n: int = 20) -> pd.DataFrame:
    """Return the most frequent wrong answers of each run on these rows, at most n per run.

    Columns: number (index of the run), answer, n, share (of the run's wrong answers), n_relations,
    right_type (share that are objects of the relation), written (see `as_written`).
    """
    names = ["number", "answer", "n", "share", "n_relations", "right_type", "written"]
    tables = [pd.DataFrame(columns=names)]
    relations = joined.facts["relation"].cat.codes.to_numpy() if len(joined.facts) else np.array([])
    for number, run in enumerate(joined.runs):
        with np.errstate(invalid="ignore"):
            wrong = rows[run.rank[rows] > 1]
        codes = run.answer.codes[wrong]
        wrong, codes = wrong[codes >= 0], codes[codes >= 0]
        counts = np.bincount(codes, minlength=len(run.answer.categories))
        typed = np.bincount(codes, run.is_object[wrong], minlength=len(counts))
        best = np.argsort(-counts, kind="stable")[:n]
        best = best[counts[best] > 0]
        columns = (
            [number] * len(best),
            run.answer.categories[best].astype(str),
            counts[best],
            counts[best] / max(1, len(wrong)),
            pd.Series(relations[wrong]).groupby(codes).nunique().reindex(best).to_numpy(),
            typed[best] / counts[best],
            as_written(run.run, run.answer.categories[best]),
        )
        tables.append(pd.DataFrame(dict(zip(names, columns, strict=True))))
    return pd.concat([one for one in tables if len(one)] or tables[:1], ignore_index=True)


def as_written(run: Run, words: Iterable[str]) -> list[str]:
    """Return each answer of a run for readers: with ` …` if it may go on, such as `new …`.

    A causal model's answer can be the beginning of a longer name: an answer that isn't an object
    in the data, and with which at least `LEAST_NAMES` names of the data begin.
    """
    words = list(words)
    if not (run.info.ranks_words and run.info.model_kind == "causal"):
        return words
    objects = {word.lower() for word in run.words_of("object")}
    names = objects.union(word.lower() for word in run.words_of("subject"))
    begun = Counter(name.partition(" ")[0] for name in names if " " in name)
    return [
        f"{word} …" if word.lower() not in objects and begun[word.lower()] >= LEAST_NAMES else word
        for word in words
    ]


def _base(run: Run) -> pd.DataFrame:
    """Return the columns from the data of a run's rows."""
    return pd.DataFrame({name: run.column(name) for name in _BASE})


def margins_of(run: Run) -> NDArray[np.float32]:
    """Return the gold answer's score minus the best wrong answer's, float32 [row of `Run.facts`].

    NaN where excluded, and in runs that don't rank statements.
    """
    has = run.has_column("margin")
    margins = run.column("margin").to_numpy(dtype=np.float32) if has else _UNKNOWN
    return np.where(run.counted, margins, _UNKNOWN)


def right_answers(run: Run, row: int) -> frozenset[str]:
    """Return the objects that the run's facts give for the subject and relation of one row.

    These can be fewer than the row's `n_valid`, which counts objects in the whole data, if the run
    is limited to the first facts of each relation.
    """
    facts = run.facts
    of = "query" if facts["source"].iloc[row] == SQUAD else "subject"
    same = (facts["relation"] == facts["relation"].iloc[row]) & (facts[of] == facts[of].iloc[row])
    return frozenset(facts.loc[same, "object"].astype(str))


def by_word(column: "pd.Categorical | pd.Series", of: Callable[[str], Any], none: Any) -> Any:
    """Apply `of` once per category, and return the values [row]; `none` for missing words."""
    words: pd.Categorical = column.array if isinstance(column, pd.Series) else column
    values = [*map(of, words.categories.astype(str).tolist()), none]
    return np.array(values, dtype=object if isinstance(none, str) else None)[words.codes]


def same_words(a: pd.Series, b: pd.Series, key: Callable[[str], str] = str) -> Bools:
    """Whether two columns have words with the same key, bool [row]; False where missing."""
    codes: dict[str, int] = {}

    def code(word: str) -> int:
        return codes.setdefault(key(word), len(codes))

    first, second = by_word(a, code, -1), by_word(b, code, -1)
    return (first == second) & (first >= 0)


def _keys(column: pd.Series) -> NDArray[np.object_]:
    """Return a categorical column's words as `texts.word_key`, object [row]."""
    return by_word(column, word_key, "")


def _is_word(column: "pd.Categorical | pd.Series", wanted: str) -> Bools:
    """Whether a categorical is this word, bool [row]; a missing one is no word."""
    key = word_key(wanted)
    return by_word(column, lambda word: word_key(word) == key, False)


def _is_one_of(column: "pd.Categorical | pd.Series", wanted: Sequence[str]) -> Bools:
    """Whether a word is one of the wanted, bool [row]; "" matches missing words."""
    return by_word(column, lambda word: str(word) in wanted, "" in wanted)
