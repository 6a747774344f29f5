"""From a dataset and a prompt set to the queries of a run, and the facts that don't count.

Which facts count (Petroni et al. 2019, section 4, and the released code):
- the object is one token of the model and one of the candidates;
- without a template, the text has at most 100 whitespace words;
- Google-RE: not more judges say no than yes;
- with a template, only the first of facts with the same subject and object, in file order.
A fact that doesn't count stays a row, with the reason.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lama_core.asking.blanks import fill
from lama_core.datasets import Dataset
from lama_core.errors import UserError, did_you_mean
from lama_core.runs.records import PromptKind, PromptSet
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
SEVERAL_BLANKS = "text has more than one blank"
NO_FIT = "text does not fit the model's window"

PROMPT_SETS: dict[str, tuple[PromptKind, str]] = {
    "manual": ("template", "each relation's own template, or the fact's sentence if it has none"),
    "paraphrases": ("template", "the own template and every paraphrase of it"),
    "sentences": ("sentences", "the first sentence that states the fact"),
    "ten-sentences": ("ten sentences", "ten sentences a fact, at most 100 facts a relation"),
    "negated": ("negated", "the negated template or sentence"),
    "misprimed": ("misprimed", "the sentence after a misleading word"),
}


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


def make_prompt_set(name: str, relations: Sequence[Relation]) -> PromptSet:
    """The prompts that a user means by `name`, for these relations.

    name: one of `PROMPT_SETS`; one of LPAQA's sets (`mine`, `mine+man`, `mine+para`, `man+para`),
    once its prompts are here; or a folder that holds such prompts, all of which are asked.
    Raises UserError for an unknown name, or prompts for none of the relations.
    """
    if name in PROMPT_SETS:
        kind = PROMPT_SETS[name][0]
        n_prompts = {"paraphrases": None, "manual": 1}.get(name, 0)
        if kind == "negated":
            chosen = [
                (relation.name, (relation.negated_template,))
                for relation in relations
                if relation.negated_template
            ]
            return PromptSet(name, kind, tuple(chosen))
        templates = [
            (relation.name, tuple(prompt.template for prompt in relation.prompts[:n_prompts]))
            for relation in relations
        ]
        return PromptSet(name, kind, tuple((key, found) for key, found in templates if found))
    return _lpaqa_prompts(name, relations)


def _lpaqa_prompts(name: str, relations: Sequence[Relation]) -> PromptSet:
    from lama_core.datasets.library.installed import installed_dir
    from lama_core.datasets.prompt_sets import COMBINATIONS, load_pool

    sets = [key for key in COMBINATIONS if key not in ("manual", "user", "all")]
    is_folder = Path(name).expanduser().is_dir()
    if not is_folder and name not in sets:
        known = (*PROMPT_SETS, *sets)
        raise UserError(
            f"Unknown prompts {name!r}{did_you_mean(name, known)}: choose {', '.join(known)}, or a "
            "folder of LPAQA's prompts."
        )
    folder = Path(name).expanduser() if is_folder else installed_dir("lpaqa")
    if not folder.is_dir():
        raise UserError(
            f"LPAQA's prompts {name!r} are not here yet: run `python -m lama_core data get lpaqa`."
        )
    chosen = []
    for relation in relations:
        pool = load_pool(relation, folder=folder)
        templates = tuple(pool.templates[at] for at in pool.members("all" if is_folder else name))
        if templates:
            chosen.append((relation.name, templates))
    if not chosen:
        raise UserError(f"{folder} has no prompts {name!r} for any of the chosen relations.")
    return PromptSet(folder.name if is_folder else name, "template", tuple(chosen))


def make_questions(
    dataset: Dataset, relations: Sequence[str], prompts: PromptSet, limit: int | None
) -> list[Question]:
    """Every row of a run, in file order; those that can't count whatever the model, with a reason.

    limit: the first so many facts of each relation. Raises UserError for an unknown relation, or
    when there is nothing to ask at all.
    """
    questions: list[Question] = []
    for name in relations:
        relation = dataset.relation(name)
        facts = dataset.facts_of(name)[:limit]
        if prompts.kind == "ten sentences":
            questions += _spread_questions(relation, facts)
            continue
        templates = prompts.of(name)
        if templates:
            for number, template in enumerate(templates):
                questions += _template_questions(relation, facts, number, template)
        else:
            questions += [_sentence_question(relation, fact, prompts.kind) for fact in facts]
    if not any(question.query for question in questions):
        raise UserError(
            f"The prompts {prompts.name!r} give nothing to ask for the chosen relations of "
            f"{dataset.name}: choose other prompts or relations."
        )
    return questions


def _template_questions(
    relation: Relation, facts: Sequence[Fact], number: int, template: str
) -> list[Question]:
    seen: set[tuple[str, str]] = set()
    rows = []
    for fact in facts:
        excluded = _judged(fact)
        if excluded is None:
            if (fact.subject, fact.object) in seen:
                excluded = DUPLICATE
            seen.add((fact.subject, fact.object))
        rows.append(Question(fact, relation, number, fill(template, fact.subject), excluded))
    return rows


def _sentence_question(relation: Relation, fact: Fact, kind: PromptKind) -> Question:
    sentences = {
        "negated": fact.negated_sentences,
        "misprimed": fact.misprimed_sentences,
    }.get(kind, fact.sentences)
    if not sentences:
        return Question(fact, relation, 0, None, NO_TEXT)
    return _asked(relation, fact, 0, sentences[0])


def _spread_questions(relation: Relation, facts: Sequence[Fact]) -> list[Question]:
    """Ten sentences of at most 100 facts that have as many, drawn by the relation's name."""
    enough = [fact for fact in facts if len(fact.sentences) >= SPREAD_SENTENCES]
    draw = random.Random(f"{SPREAD_SEED}:{relation.name}")
    if len(enough) > SPREAD_FACTS:
        picks = sorted(draw.sample(range(len(enough)), SPREAD_FACTS))
        enough = [enough[pick] for pick in picks]
    rows = []
    for fact in enough:
        picks = sorted(draw.sample(range(len(fact.sentences)), SPREAD_SENTENCES))
        rows += [_asked(relation, fact, pick, fact.sentences[pick]) for pick in picks]
    return rows


def _asked(relation: Relation, fact: Fact, number: int, sentence: str) -> Question:
    query = Query(tuple(sentence.split(BLANK)))
    excluded = _judged(fact)
    if query.n_blanks != 1:
        excluded = SEVERAL_BLANKS if query.n_blanks else NO_TEXT
    elif excluded is None and len(sentence.split()) > MAX_WORDS:
        excluded = TOO_LONG
    return Question(fact, relation, number, query, excluded)


def _judged(fact: Fact) -> str | None:
    """Google-RE: out when strictly more judges say no than yes."""
    if fact.judgments is None:
        return None
    yes, no = fact.judgments
    return JUDGED_NO if no > yes else None
