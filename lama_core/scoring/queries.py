"""From a dataset and a prompt set to the queries of a run, and the facts that don't count.

Which facts count (Petroni et al. 2019, section 4, and the released code):
- the object is one token of the model and one of the candidates;
- without a template, the text has at most 100 whitespace words;
- Google-RE: not more judges say no than yes;
- with a template, only the first of facts with the same subject and object, in file order.
A fact that doesn't count stays a row, with the reason.

Of ten sentences a fact (Figure 4) at most 100 facts a relation are asked, drawn among those that
count: a fact that is drawn and doesn't count is a row with the reason, and another is drawn.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from lama_core.datasets import Dataset
from lama_core.datasets.variants import misprime, wrong_word
from lama_core.errors import Impossible, NotFetched, UserError
from lama_core.scoring.blanks import fill
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

# Figure 4: at most so many facts a relation, so many sentences a fact.
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
NOTHING_BEFORE = "nothing stands before the answer, and the model begins a text with no token"


# Why a model can't be asked a fact in a query, None if it can.
Judge = Callable[[Fact, Query], str | None]


@dataclass(frozen=True, slots=True)
class Question:
    """One row of a run: a fact asked in one way.

    prompt: which template or sentence, from 0. excluded: why the row doesn't count, None if it
    does. query: what is asked; None where there is nothing to ask.
    """

    fact: Fact
    relation: Relation
    prompt: int
    query: Query | None
    excluded: str | None


@dataclass(frozen=True)
class Knowledge:
    """What the data says of a relation's objects, over all its facts, whatever the limit.

    objects: (relation, subject key) -> objects in file order. counts: relation -> object -> facts.
    """

    objects: dict[tuple[str, str], tuple[str, ...]]
    counts: dict[str, Counter[str]]

    def valid(self, fact: Fact) -> tuple[str, ...]:
        """All objects that are right for this fact's subject and relation."""
        return self.objects[fact.relation, subject_key(fact)]


def subject_key(fact: Fact) -> str:
    """What makes two facts of a relation ask the same: the subject; in SQuAD the sentence.

    SQuAD's subjects are titles or missing, so its questions have nothing in common. The label and
    not the Wikidata id: the query holds nothing else.
    """
    if fact.source == SQUAD:
        return fact.sentences[0] if fact.sentences else fact.id
    return fact.subject


def gather_knowledge(dataset: Dataset, relations: Iterable[str]) -> Knowledge:
    """The valid objects of every subject, and how often each object occurs."""
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
    """Every row of a run, in file order; those that can't count whatever the model, with a reason.

    limit: the first so many facts of each relation. judge: of the model, where facts are drawn
    among those that it counts; None lets all pass. Raises UserError for an unknown relation, or
    when there is nothing to ask at all.
    """
    questions: list[Question] = []
    for name in relations:
        questions += _questions_of(dataset, name, prompts, limit, judge)
    if not any(question.query for question in questions):
        raise _nothing(dataset, prompts)
    return questions


def check_questions(
    dataset: Dataset, relations: Sequence[str], prompts: PromptSet, limit: int | None
) -> None:
    """Raise UserError where `make_questions` would; without making all of them."""
    rows = (_questions_of(dataset, name, prompts, limit) for name in relations)
    if not any(question.query for found in rows for question in found):
        raise _nothing(dataset, prompts)


def impossible_prompts(
    dataset: Dataset, relations: Sequence[str], limit: int | None
) -> dict[str, Impossible]:
    """Of all prompt sets with a name, those that give these relations nothing to ask, and why."""
    chosen = [dataset.relation(name) for name in relations]
    found = {}
    for name in (*PROMPT_SETS, *LPAQA_SETS):
        try:
            check_questions(dataset, relations, make_prompt_set(name, chosen), limit)
        except NotFetched as error:
            found[name] = Impossible("not here yet", error.source)
        except UserError:
            found[name] = Impossible(_lacking(name))
    return found


def _questions_of(
    dataset: Dataset,
    name: str,
    prompts: PromptSet,
    limit: int | None,
    judge: Judge | None = None,
) -> list[Question]:
    asked = Asked(dataset.relation(name), dataset.facts_of(name), limit, prompts.of(name), judge)
    return ASKING[prompts.kind](asked)


def _nothing(dataset: Dataset, prompts: PromptSet) -> UserError:
    return UserError(
        f"The prompts {prompts.name!r} give nothing to ask for the chosen relations of "
        f"{dataset.name} ({_lacking(prompts.name)}): choose other prompts or relations."
    )


def _lacking(name: str) -> str:
    """Why a set of prompts asks nothing, as the rest of a sentence."""
    known = PROMPT_SETS.get(name)
    return known.lacking if known else "it has no prompts for these relations"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of one relation. known: all its facts, of which `facts` are the first."""

    relation: Relation
    known: tuple[Fact, ...]
    limit: int | None
    templates: tuple[str, ...]
    judge: Judge | None

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts to ask."""
        return self.known[: self.limit]


def _by_templates(
    asked: Asked, own: Callable[[Fact], tuple[str, ...]] = attrgetter("sentences")
) -> list[Question]:
    """A row a template and fact; without a template the first of the fact's `own` sentences."""
    if not asked.templates:
        return [_by_sentence(asked.relation, fact, own(fact)) for fact in asked.facts]
    rows = []
    for number, template in enumerate(asked.templates):
        seen: set[tuple[str, str]] = set()
        for fact in asked.facts:
            excluded = _judged(fact)
            if excluded is None:
                excluded = DUPLICATE if (fact.subject, fact.object) in seen else None
                seen.add((fact.subject, fact.object))
            query = fill(template, fact.subject)
            rows.append(Question(fact, asked.relation, number, query, excluded))
    return rows


def _by_sentence(
    relation: Relation, fact: Fact, sentences: Sequence[str], number: int = 0
) -> Question:
    """A row of one of a fact's sentences."""
    if not sentences:
        return Question(fact, relation, 0, None, NO_TEXT)
    sentence = sentences[number]
    query = Query(tuple(sentence.split(BLANK)))
    excluded = _judged(fact)
    if query.n_blanks != 1:
        excluded = SEVERAL_BLANKS if query.n_blanks else NO_TEXT
    elif excluded is None and len(sentence.split()) > MAX_WORDS:
        excluded = TOO_LONG
    return Question(fact, relation, number, query, excluded)


def _spread(asked: Asked) -> list[Question]:
    """Ten sentences of at most 100 facts that count and have as many, in file order.

    The facts are drawn by the relation's name, one after the other, and a fact's sentences by its
    id: models that count other facts are asked the same ones wherever both count them.
    """
    enough = [at for at, fact in enumerate(asked.facts) if len(fact.sentences) >= SPREAD_SENTENCES]
    random.Random(f"{SPREAD_SEED}:{asked.relation.name}").shuffle(enough)
    drawn: dict[int, list[Question]] = {}
    n_counted = 0
    for at in enough:
        if n_counted == SPREAD_FACTS:
            break
        drawn[at] = _ten(asked, asked.facts[at])
        n_counted += drawn[at][0].excluded is None
    return [row for at in sorted(drawn) for row in drawn[at]]


def _ten(asked: Asked, fact: Fact) -> list[Question]:
    """Ten of a fact's sentences that count; the first that doesn't where fewer do."""
    rows = []
    for number in range(len(fact.sentences)):
        row = _by_sentence(asked.relation, fact, fact.sentences, number)
        if asked.judge and row.query and row.excluded is None:
            row = replace(row, excluded=asked.judge(fact, row.query))
        rows.append(row)
    counted = [row for row in rows if row.excluded is None]
    if len(counted) < SPREAD_SENTENCES:
        return [row for row in rows if row.excluded is not None][:1]
    draw = random.Random(f"{SPREAD_SEED}:{fact.id}")
    return [counted[pick] for pick in sorted(draw.sample(range(len(counted)), SPREAD_SENTENCES))]


def _misprimed(asked: Asked) -> list[Question]:
    """Each fact's misprimed sentence, or its query behind a wrong object of the relation."""
    objects = sorted({fact.object for fact in asked.known})
    right: defaultdict[str, set[str]] = defaultdict(set)
    for fact in asked.known:
        right[fact.subject].add(fact.object)
    rows = []
    for fact in asked.facts:
        sentences = fact.misprimed_sentences
        if not sentences:
            word = wrong_word(objects, right[fact.subject], fact.id)
            if word is None:
                rows.append(Question(fact, asked.relation, 0, None, NO_PRIME))
                continue
            templates = [fill(one, fact.subject).text(BLANK) for one in asked.templates]
            sentences = tuple(misprime(text, word) for text in (*templates, *fact.sentences)[:1])
        rows.append(_by_sentence(asked.relation, fact, sentences))
    return rows


# Kind of prompts -> the rows of one relation.
ASKING: dict[PromptKind, Callable[[Asked], list[Question]]] = {
    "template": _by_templates,
    "sentences": _by_templates,
    "negated": partial(_by_templates, own=attrgetter("negated_sentences")),
    "misprimed": _misprimed,
    "ten sentences": _spread,
}


def _judged(fact: Fact) -> str | None:
    """Google-RE: out when strictly more judges say no than yes."""
    if fact.judgments is None:
        return None
    yes, no = fact.judgments
    return JUDGED_NO if no > yes else None
