"""The queries of a run, made from a dataset and a prompt set, and the excluded facts.

A fact counts if all of this is true (Petroni et al. 2019, section 4, and the released code):
- its object is one token of the model and one of the candidates;
- without a template, its text has at most 100 words, split at whitespace;
- in Google-RE: of the annotators who answered, at most half say no;
- with a template, it is the first fact in file order with this subject and object.
A fact that doesn't count still has a row, with the reason.

With ten sentences per fact (Figure 4), at most 100 facts per relation are drawn among those that
count: if a drawn fact doesn't count, its row keeps the reason and another fact is drawn.

Departure: Duplicate facts
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import attrgetter

from lama_core.datasets import Dataset
from lama_core.datasets.variants import misprime, negate_template, wrong_word
from lama_core.errors import NotFetchedError, Unavailable, UserError
from lama_core.grouping import grouped
from lama_core.scoring.blanks import fill, filler
from lama_core.scoring.prompt_choice import (
    LPAQA_SETS,
    PROMPT_SETS,
    PromptKind,
    PromptSet,
    make_prompt_set,
)
from lama_core.types import Fact, Query, Relation

MAX_WORDS = 100
BLANK = "[MASK]"
SQUAD = "Squad"

# Figure 4: maximum number of facts per relation, and sentences per fact.
SPREAD_FACTS = 100
SPREAD_SENTENCES = 10
SPREAD_SEED = 2019

TOO_LONG = f"text is longer than {MAX_WORDS} words"
JUDGED_NO = "judges say no"
DUPLICATE = "duplicate of an earlier fact"
NO_TEXT = "no template and no sentence to ask"
NO_PRIME = "no other object of the relation to mislead with"
SEVERAL_BLANKS = "text has more than one blank"
NO_FIT = "text does not fit the model's window"
NOTHING_BEFORE = "no text precedes the answer, and the model starts texts without a start token"


# A function that returns why a model can't be scored on a fact with this query; None if it can.
Judge = Callable[[Fact, Query], str | None]


@dataclass(frozen=True, slots=True)
class Question:
    """One row of a run: a fact with one of its templates or sentences.

    Attributes:
        fact: The fact.
        relation: Its relation.
        prompt: Index of the relation's (or the fact's own) template or sentence.
        query: The query; None without a text for it.
        excluded: Why the row doesn't count; None if it does.
    """

    fact: Fact
    relation: Relation
    prompt: int
    query: Query | None
    excluded: str | None


@dataclass(frozen=True)
class Knowledge:
    """The objects of all facts of some relations, including facts beyond a run's limit.

    Attributes:
        objects: (relation, subject key) -> objects in file order.
        counts: Relation -> object -> number of facts.
    """

    objects: dict[tuple[str, str], tuple[str, ...]]
    counts: dict[str, Counter[str]]

    def valid(self, fact: Fact) -> tuple[str, ...]:
        """Return all right answers for this fact's subject and relation."""
        return self.objects[fact.relation, subject_key(fact)]


def subject_key(fact: Fact) -> str:
    """Return the key under which facts of a relation share their valid objects.

    It is the subject's label, not its Wikidata id, because the query contains only the label. In
    SQuAD it is the sentence: there the subjects are article titles or missing.
    """
    if fact.source == SQUAD:
        return fact.sentences[0] if fact.sentences else fact.id
    return fact.subject


def gather_knowledge(dataset: Dataset, relations: Iterable[str]) -> Knowledge:
    """Return the valid objects of every subject, and the number of facts of each object."""
    objects: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    counts: dict[str, Counter[str]] = {}
    for name in relations:
        counts[name] = Counter()
        for fact in dataset.facts_of(name):
            objects[name, subject_key(fact)][fact.object] = None
            counts[name][fact.object] += 1
    return Knowledge({key: tuple(words) for key, words in objects.items()}, counts)


def make_questions(
    dataset: Dataset,
    relations: Sequence[str],
    prompts: PromptSet,
    limit: int | None,
    judge: Judge | None = None,
) -> list[Question]:
    """Return every row of a run in file order; rows that count for no model have a reason.

    Args:
        dataset: The dataset.
        relations: Names of the relations.
        prompts: The prompt set.
        limit: Maximum number of facts per relation, in file order; None takes all.
        judge: Returns why a model excludes a fact. Used only for ten sentences per fact, where
            facts are drawn among those that count. None excludes no fact.

    Raises:
        UserError: If a relation is unknown, or no fact has a query.
    """
    questions = [
        question
        for name in relations
        for question in _questions_of(dataset, name, prompts, limit, judge)
    ]
    if not any(question.query for question in questions):
        raise _no_query(dataset, prompts)
    return questions


def most_questions(
    dataset: Dataset, relations: Sequence[str], prompts: PromptSet, limit: int | None
) -> int:
    """Return the number of rows of a run whose prompts are templates or single sentences."""
    return sum(
        max(1, len(prompts.of(name))) * len(dataset.facts_of(name)[:limit]) for name in relations
    )


def check_questions(
    dataset: Dataset, relations: Sequence[str], prompts: PromptSet, limit: int | None
) -> None:
    """Raise UserError as `make_questions` does; stop at the first query instead of making all."""
    rows = (_questions_of(dataset, name, prompts, limit) for name in relations)
    if not any(question.query for found in rows for question in found):
        raise _no_query(dataset, prompts)


def unavailable_prompts(
    dataset: Dataset, relations: Sequence[str], limit: int | None
) -> dict[str, Unavailable]:
    """Return the named prompt sets that have no query for these relations, with the reason."""
    chosen = [dataset.relation(name) for name in relations]
    found = {}
    for name in (*PROMPT_SETS, *LPAQA_SETS):
        try:
            check_questions(dataset, relations, make_prompt_set(name, chosen), limit)
        except NotFetchedError as error:
            found[name] = Unavailable("not installed", error.source)
        except UserError:
            found[name] = Unavailable(_lacking(name))
    return found


def _questions_of(
    dataset: Dataset,
    name: str,
    prompts: PromptSet,
    limit: int | None,
    judge: Judge | None = None,
) -> list[Question]:
    return QUESTION_MAKERS[prompts.kind](
        _RelationFacts(
            dataset.relation(name), dataset.facts_of(name), limit, prompts.of(name), judge
        )
    )


def _no_query(dataset: Dataset, prompts: PromptSet) -> UserError:
    return UserError(
        f"The prompts {prompts.name!r} yield no query for the chosen relations of "
        f"{dataset.name} ({_lacking(prompts.name)}): choose other prompts or relations."
    )


def _lacking(name: str) -> str:
    """Return why a prompt set yields no query, as the end of a sentence."""
    wording = PROMPT_SETS.get(name)
    return wording.lacking if wording else "it has no prompts for these relations"


@dataclass(frozen=True, slots=True)
class _RelationFacts:
    """The facts and templates from which the rows of one relation are made.

    Attributes:
        relation: The relation.
        all_facts: All its facts.
        limit: Maximum number of facts that are queried, in file order; None takes all.
        templates: The relation's templates in the chosen prompt set.
        judge: As for `make_questions`.
    """

    relation: Relation
    all_facts: tuple[Fact, ...]
    limit: int | None
    templates: tuple[str, ...]
    judge: Judge | None

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts that are queried."""
        return self.all_facts[: self.limit]


def _by_templates(
    source: _RelationFacts, sentences: Callable[[Fact], tuple[str, ...]] = attrgetter("sentences")
) -> list[Question]:
    """Return a row for each template and fact; without templates, one per fact's first sentence.

    If the facts have their own templates, a fact has a row for each of its templates.
    """
    if not source.templates:
        return [_by_sentence(source.relation, fact, sentences(fact)) for fact in source.facts]
    rows = []
    query_of = cache(filler)
    for number, named in enumerate(source.templates):
        seen: set[tuple[str, str, str]] = set()
        for fact in source.facts:
            template = fact.template(named)
            if not template:
                if number == 0:
                    texts = sentences(fact) if named == source.relation.templates[0] else ()
                    rows.append(_by_sentence(source.relation, fact, texts))
                continue
            excluded = _excluded_by_judges(fact)
            if excluded is None:
                key = (fact.subject, fact.object, template)
                excluded = DUPLICATE if key in seen else None
                seen.add(key)
            rows.append(
                Question(fact, source.relation, number, query_of(template)(fact.subject), excluded)
            )
    return rows


def _negated_sentences(fact: Fact) -> tuple[str, ...]:
    """Return the data's negated sentences, or the fact's own template with its verb negated."""
    if fact.negated_sentences or not fact.templates:
        return fact.negated_sentences
    template = negate_template(fact.templates[0])
    return (fill(template, fact.subject).text(BLANK),) if template else ()


def _by_sentence(
    relation: Relation, fact: Fact, sentences: Sequence[str], number: int = 0
) -> Question:
    """Return the row of one of a fact's sentences."""
    if not sentences:
        return Question(fact, relation, 0, None, NO_TEXT)
    sentence = sentences[number]
    query = Query(tuple(sentence.split(BLANK)))
    excluded = _excluded_by_judges(fact)
    if query.n_blanks != 1:
        excluded = SEVERAL_BLANKS if query.n_blanks else NO_TEXT
    elif excluded is None and len(sentence.split()) > MAX_WORDS:
        excluded = TOO_LONG
    return Question(fact, relation, number, query, excluded)


def _by_ten_sentences(source: _RelationFacts) -> list[Question]:
    """Draw facts until 100 have ten sentences that aren't excluded; return these in file order.

    The relation's name seeds the draw of facts, and a fact's id seeds the draw of its sentences. So
    two models that exclude different facts get the same sentences of a fact that counts for both.
    """
    indices = [i for i, fact in enumerate(source.facts) if len(fact.sentences) >= SPREAD_SENTENCES]
    random.Random(f"{SPREAD_SEED}:{source.relation.name}").shuffle(indices)
    drawn: dict[int, list[Question]] = {}
    n_counted = 0
    for index in indices:
        if n_counted == SPREAD_FACTS:
            break
        drawn[index] = _ten_sentences(source, source.facts[index])
        n_counted += drawn[index][0].excluded is None
    return [row for index in sorted(drawn) for row in drawn[index]]


def _ten_sentences(source: _RelationFacts, fact: Fact) -> list[Question]:
    """Return rows of ten drawn sentences that count; if fewer count, one row with the reason."""
    rows = [
        _by_sentence(source.relation, fact, fact.sentences, number)
        for number in range(len(fact.sentences))
    ]
    for number, row in enumerate(rows):
        if source.judge and row.query and row.excluded is None:
            rows[number] = replace(row, excluded=source.judge(fact, row.query))
    counted = [row for row in rows if row.excluded is None]
    if len(counted) < SPREAD_SENTENCES:
        return [row for row in rows if row.excluded is not None][:1]
    draw = random.Random(f"{SPREAD_SEED}:{fact.id}")
    return [counted[pick] for pick in sorted(draw.sample(range(len(counted)), SPREAD_SENTENCES))]


def _misprimed(source: _RelationFacts) -> list[Question]:
    """Return a row for each fact: its misprimed sentence, or a wrong object and then its query."""
    objects = sorted({fact.object for fact in source.all_facts})
    right = grouped((fact.subject, fact.object) for fact in source.all_facts)
    rows = []
    for fact in source.facts:
        sentences = fact.misprimed_sentences
        if not sentences:
            word = wrong_word(objects, set(right[fact.subject]), fact.id)
            if word is None:
                rows.append(Question(fact, source.relation, 0, None, NO_PRIME))
                continue
            filled = [
                fill(template, fact.subject).text(BLANK)
                for template in filter(None, map(fact.template, source.templates))
            ]
            sentences = tuple(misprime(text, word) for text in (*filled, *fact.sentences)[:1])
        rows.append(_by_sentence(source.relation, fact, sentences))
    return rows


# Kind of prompts -> function that makes the rows of one relation.
QUESTION_MAKERS: dict[PromptKind, Callable[[_RelationFacts], list[Question]]] = {
    "template": _by_templates,
    "sentences": _by_templates,
    "negated": partial(_by_templates, sentences=_negated_sentences),
    "misprimed": _misprimed,
    "ten sentences": _by_ten_sentences,
}


def _excluded_by_judges(fact: Fact) -> str | None:
    """Return the reason to exclude a Google-RE fact: more judges said no than yes."""
    yes, no = fact.judgments or (0, 0)
    return JUDGED_NO if no > yes else None
