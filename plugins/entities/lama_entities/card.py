"""A card: what each model believes about one entity, one row for each relation that fits.

    entity --data, or the model--> type --relations.tsv--> sentences --one batch--> answers

A relation's sentence is a template with the entity's name (`types.templates_of`). All sentences are
answered together, with the answers that `cloze` gives; as in runs, a causal model sees the left
context. A model that generates text can also be asked for facts: it writes `relation: object;
relation: object` in one line, after such lines about two other entities of the type. Hu et al. 2025
(GPTKB) ask for lists of facts so; here each object also has the probability of its tokens.

The type is that of the entity's facts (`types.find_entity`). Without facts, each model is asked
with "X is a ___": its best word of types.tsv tells the type.

Departure: Facts that a model lists
"""

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Annotated, Any, Literal

from lama_core.candidates.columns import Candidates
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.library.installed import STARTER
from lama_core.errors import UserError, choose
from lama_core.models.generators import (
    check_generates,
    check_prompt,
    generate,
    has_chat_template,
)
from lama_core.models.protocols import Context, GeneratedText
from lama_core.queries.blank_answers import (
    Gold,
    Prediction,
    marked_answer,
    query_in_batches,
    shown_token,
)
from lama_core.queries.kind import Answer, Asked, Calls, QueryFunction, QueryKind
from lama_core.queries.question_prompts import PromptFormat, make_prompt
from lama_core.queries.wordings import check_subject
from lama_core.requests import argument, option
from lama_core.rounding import counted, fixed
from lama_core.scoring import shared_fields
from lama_core.scoring.blanks import fill
from lama_core.scoring.limits import Limits
from lama_core.scoring.model_info import AboutModel, model_fields
from lama_core.tables import Column, FirstAnswer, FirstAnswers, Table, table_of
from lama_core.texts import answer_key, contains_answer, word_key
from lama_entities.types import (
    Entity,
    entities_of,
    find_entity,
    relation_types,
    relations_of,
    similar_name,
    templates_of,
    type_words,
)

Asking = Literal["sentences", "facts"]
MAX_TOKENS, MAX_TYPE = 96, 16  # of a line of facts, of a type
N_SHOWN, N_FACTS = 2, 5  # entities before the line, and facts of each
QUESTION = (
    "What do you know about {}? Write facts in one line, as relation: object; relation: object."
)
SEPARATOR = "; "
MARK = re.compile(r"^([-*•]|\d+[.)])\s+")  # of an item in a list
QUOTES = " '\"“”‘’`*"
FACT = re.compile(r"[^:]*[^:\s][^:]*:\s[^:]*[^:\s.][^:]*")
YEAR = re.compile(r"\b\d{3,4}\b")
TYPE_TEMPLATE = "[X] is a [Y]."


@dataclass(frozen=True, kw_only=True)
class EntityRequest(shared_fields.ClozeSettings, command="entity", python="entity"):
    """The fields of `entity`: a name, and options."""

    name: Annotated[str, argument("The entity's name, such as Marie Curie.")] = field(kw_only=False)
    type: Annotated[
        str | None,
        option(
            f"Its type: {', '.join(type_words())}. Default: that of its facts in the data; without "
            "facts, each model is asked."
        ),
    ] = None
    dataset: Annotated[
        str, option("The data set of relations, types and right answers: a name or a folder.")
    ] = STARTER
    ask: Annotated[
        Asking,
        option(
            "sentences: each relation's sentence with a blank. facts: a model that generates text "
            "lists what it knows, in relations of its choice."
        ),
    ] = "sentences"
    top_k: shared_fields.TopK = 3
    context: Annotated[
        Context,
        option(
            "What a causal model sees: left, or both sides of the blank, for which it scores "
            "proposed words in the whole sentence, so that a card takes long."
        ),
    ] = "left"
    renormalise: shared_fields.Renormalise = False

    def check(self) -> None:
        """Raise UserError for an unknown type, or an invalid value of another field."""
        super().check()
        if self.type is not None:
            choose(self.type, type_words(), "type")


@dataclass(frozen=True, slots=True)
class CardRelation:
    """A relation of a card.

    Attributes:
        name: Its name, such as P19; empty if only a model named it.
        label: In words.
        template: Its template on this card.
        objects: The entity's objects in the data, in file order.
    """

    name: str
    label: str
    template: str = ""
    objects: tuple[str, ...] = ()

    def sentence(self, name: str, blank: str = "[MASK]") -> str:
        """Return the sentence about an entity with its blank; empty without a template."""
        return fill(self.template, name).text(blank) if self.template else ""

    def is_right(self, word: str, *, listed: bool = False) -> bool | None:
        """Return whether an answer is one of the objects; None if the data have none.

        listed: whether a model wrote it, so that it may have more words than the object.
        """
        if not self.objects:
            return None
        if listed:
            return any(contains_answer(word, one) for one in self.objects)
        return answer_key(word) in map(answer_key, self.objects)


@dataclass(frozen=True, slots=True)
class CardQuestion:
    """What every model gets.

    Attributes:
        name: The entity's name, as the data write it if they have it.
        types: Its types in the data, the likeliest first; empty if the data don't have it.
        relations: Type -> the relations that fit it; only of the card's type, if it is known.
        examples: Type -> lines about other entities, for `ask facts`.
        similar: A similar name that the data have, if they don't have this one; or empty.
    """

    name: str
    types: tuple[str, ...]
    relations: tuple[tuple[str, tuple[CardRelation, ...]], ...]
    examples: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    similar: str = ""


def _is_ranked(gold: Gold) -> bool:
    return gold.in_candidates and gold.proposed


@dataclass(frozen=True, slots=True)
class CardAnswer:
    """A model's answers to one relation.

    Attributes:
        relation: The relation.
        context: What the model saw of the sentence; None for a listed fact.
        predictions: The best answers, best first; rank None: not ranked, but generated.
        gold: The best ranked right answer's rank, if the data have one.
        over: The words over which probabilities sum to one, as text.
        outside: The token that isn't a candidate and beats the first answer, and why; or empty.
        likelier: This token in quotes, or in words.
    """

    relation: CardRelation
    context: Context | None
    predictions: tuple[Prediction, ...]
    gold: Gold | None = None
    over: str = "each token's whole vocabulary"
    outside: str = ""
    likelier: str = ""

    @property
    def right(self) -> bool | None:
        """Whether the first answer is right.

        None if the data have no right answer, or it would be first, but isn't ranked.
        """
        right = self.relation.is_right(self.predictions[0].token, listed=self.context is None)
        return right or (None if self.is_unranked else right)

    @property
    def is_unranked(self) -> bool:
        """Whether the right answer would be first, but isn't among the ranked words."""
        return bool(self.gold and self.gold.rank == 1 and not _is_ranked(self.gold))

    @property
    def gold_place(self) -> str:
        """The right answer's rank among the ranked words, as text; empty without one."""
        if self.gold is None:
            return ""
        ranked = _is_ranked(self.gold)
        return f"rank {self.gold.rank:,}" if ranked else "not among the ranked words"

    @property
    def rights(self) -> tuple[str, ...]:
        """The right answers in the data, the best ranked one first."""
        words = self.relation.objects
        return words if self.gold is None else tuple(dict.fromkeys((self.gold.word, *words)))


@dataclass(frozen=True, slots=True)
class ModelCard(AboutModel):
    """One model's card.

    Attributes:
        type: The entity's type.
        from_model: Whether the model was asked for the type.
        answers: Its answers, relation by relation.
        n_candidates: Number of ranked words; 0 for listed facts.
        listed: The text with the facts, if the model listed them.
        dropped: The parts of this text that aren't of the form `relation: object`.
        missing: The relations with a right answer in the data that it didn't list.
    """

    type: str
    from_model: bool
    answers: tuple[CardAnswer, ...]
    n_candidates: int = 0
    listed: GeneratedText | None = None
    dropped: tuple[str, ...] = ()
    missing: tuple[CardRelation, ...] = ()

    @property
    def in_order(self) -> list[CardAnswer]:
        """The answers as a card has them: first those of relations with a right answer."""
        return sorted(self.answers, key=lambda one: not one.relation.objects)

    @property
    def n_known(self) -> int:
        """Number of relations with a right answer in the data, except one that isn't ranked."""
        known = {
            one.relation.name
            for one in self.answers
            if one.relation.objects and not one.is_unranked
        }
        return len(known) + len(self.missing)

    @property
    def n_right(self) -> int:
        """Number of relations with a right first answer."""
        return len({one.relation.name for one in self.answers if one.right is True})

    def summary(self) -> str:
        """Return how many answers are right, and what isn't known, as text."""
        n_known = self.n_known
        n_unknown = sum(not one.relation.objects for one in self.answers)
        n_unranked = sum(one.is_unranked for one in self.answers)
        text = f"{self.n_right:,} of {n_known:,} right" if n_known else "no right answer known"
        text = text if self.answers else "no facts"
        text += f", {len(self.missing):,} not listed" * bool(self.missing)
        text += f", {counted(n_unranked, 'right answer')} not ranked" * bool(n_unranked)
        text += f", {n_unknown:,} without a right answer in the data" * bool(n_unknown and n_known)
        if self.dropped:
            text += f"; {counted(len(self.dropped), 'part')} of its line dropped: not a fact"
        return text


@dataclass(frozen=True, slots=True)
class CardRow:
    """One answer of a model about one relation."""

    type: Annotated[str, Column("The entity's type on this card.")]
    relation: Annotated[str, Column("The relation; empty if only the model named it.")]
    label: Annotated[str, Column("The relation in words.")]
    text: Annotated[str, Column("The sentence with its blank; empty for a listed fact.")]
    context: Annotated[str | None, Column("What the model saw: left, or both sides of the blank.")]
    rank: Annotated[int | None, Column("Rank among the candidates; None if it isn't ranked.")]
    word: Annotated[str, Column("The answer.")]
    begins: Annotated[str | None, Column("The longer word that it begins, if any.")]
    prob: Annotated[float | None, Column("Its probability, or its share of `prob_of`.")]
    prob_of: Annotated[str, Column("The words over which probabilities sum to one.")]
    log_prob: Annotated[float | None, Column("Its natural log-probability.")]
    right: Annotated[bool | None, Column("Whether it is right; None if that is unknown.")]
    known: Annotated[
        tuple[str, ...],
        Column("The right answers in the data.", format=lambda words: "|".join(words)),
    ]
    gold: Annotated[str | None, Column("The right answer with the best rank.")]
    gold_rank: Annotated[int | None, Column("Its rank.")]
    gold_log_prob: Annotated[float | None, Column("Its log-probability.")]
    not_ranked: Annotated[
        str, Column("A likelier token that isn't a candidate, and why; or empty.")
    ]
    answer_entity: Annotated[str, Column("The entity whose card the answer opens.")]
    answer_type: Annotated[str, Column("The type of that entity.")]


AskedCard = Asked[EntityRequest, CardQuestion]
CardsAnswer = Answer[EntityRequest, CardQuestion, ModelCard]


def entity_behind(dataset: Dataset, answer: CardAnswer, item: Prediction) -> tuple[str, str]:
    """Return the name and type of the entity that an answer names.

    An answer that the data don't have has the usual type of the relation's objects.
    """
    row = relation_types().get(answer.relation.name)
    types = row.objects if row else ()
    for word in filter(None, (item.begins, item.token)):
        if found := find_entity(dataset, word, types):
            return found.name, found.types[0]
    return item.begins or item.token, next(iter(types), "thing")


class EntityKind(QueryKind[EntityRequest, CardQuestion, ModelCard]):
    """A card of an entity.

    Args:
        load: Loads a data set by its name.
    """

    name = "entity"
    example = 'entity "Marie Curie" --model minilm-mlm --model smollm2-135m'
    row = CardRow
    items = "answers"
    answer_field = "word"

    def __init__(self, load: Callable[[str], Dataset] = load_dataset) -> None:
        self._load = load

    def prepare(self, request: EntityRequest, limits: Limits) -> CardQuestion:
        """Return the sentences; a name that the data don't have is a note.

        Raises:
            UserError: If the name is empty, too long or has a blank, the data set can't be loaded,
                or has no relation that fits the type.
        """
        dataset = self._load(request.dataset)
        name = check_subject(request.name)
        found = find_entity(dataset, name, (request.type,) if request.type else ())
        similar = "" if found else similar_name(dataset, name)
        if found is None:
            hint = f" (did you mean {similar!r}?)" * bool(similar)
            request.on_note(f"{dataset.name} has no fact about {name!r}{hint}.")
        entity = found or Entity(name, (), {})
        chosen = request.type or next(iter(entity.types), None)
        fitting = {}
        for kind in [chosen] if chosen else type_words():
            usable = relations_of(dataset, kind)
            templates = templates_of(dataset)
            fitting[kind] = tuple(
                CardRelation(
                    one.name,
                    relation_types()[one.name].label,
                    templates[one.name],
                    entity.objects.get(one.name, ()),
                )
                for one in usable
            )
        fitting = {kind: relations for kind, relations in fitting.items() if relations}
        if not fitting:
            raise UserError(_no_relations(dataset, chosen))
        limits.check_sentences(max(map(len, fitting.values())), len(request.models))
        examples: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
        if request.ask == "facts":
            examples = tuple((kind, _examples(dataset, kind, entity.name)) for kind in fitting)
        return CardQuestion(entity.name, entity.types, tuple(fitting.items()), examples, similar)

    def answer(self, model: Any, asked: AskedCard, calls: Calls) -> ModelCard:
        """Return one model's card.

        Raises:
            UserError: If the model can't fill blanks (or generate text, for facts), or it gives the
                entity a type without relations.
        """
        request, question = asked.request, asked.shared
        kinds = dict(question.relations)
        from_model = not (request.type or question.types)
        kind = _ask_type(model, question.name, kinds, calls) if from_model else next(iter(kinds))
        if request.ask == "facts":
            return _list_facts(model, asked, kind, from_model, calls)
        if not hasattr(model, "blank_log_probs"):
            raise UserError(f"{model.name} fills no blanks: ask it for facts (--ask facts).")
        relations = kinds[kind]
        found = query_in_batches(
            model,
            [fill(one.template, question.name) for one in relations],
            asked.candidates,
            top_k=request.top_k,
            gold=[one.objects for one in relations],
            context=request.context,
            renormalise=request.renormalise,
            n_rescored=request.n_rescored,
            limits=calls.limits,
        )
        answers = tuple(
            CardAnswer(
                relation,
                one.context,
                one.blanks[0].predictions,
                one.blanks[0].gold,
                one.blanks[0].shown_over(),
                one.blanks[0].describe_outside(),
                shown_token(beats.token) if (beats := one.blanks[0].likeliest_outside) else "",
            )
            for relation, one in zip(relations, found, strict=True)
        )
        n = found[0].n_candidates
        return ModelCard(
            **model_fields(model), type=kind, from_model=from_model, answers=answers, n_candidates=n
        )

    def rows(self, asked: AskedCard, one: ModelCard) -> list[CardRow]:
        """Return a row for each relation and answer."""
        dataset = self._load(asked.request.dataset)
        return [
            CardRow(
                one.type,
                answer.relation.name,
                answer.relation.label,
                answer.relation.sentence(asked.shared.name) if answer.context else "",
                answer.context,
                item.rank,
                item.token,
                item.begins,
                item.prob if math.isfinite(item.log_prob) else None,
                answer.over,
                item.log_prob if math.isfinite(item.log_prob) else None,
                answer.right
                if item is answer.predictions[0]
                else answer.relation.is_right(item.token),
                answer.relation.objects,
                answer.gold.word if answer.gold else None,
                answer.gold.rank if answer.gold else None,
                answer.gold.log_prob if answer.gold else None,
                answer.outside,
                *entity_behind(dataset, answer, item),
            )
            for answer in one.answers
            for item in answer.predictions
        ]

    def constants(self, asked: AskedCard, one: ModelCard) -> dict[str, Any]:
        """Return the name and the candidates' name."""
        return {"name": asked.shared.name, "candidates": asked.candidates.name}

    def printed(self, answer: CardsAnswer) -> Iterator[Table | str]:
        """Yield a table for each type that the models' cards have, with the models side by side."""
        asked = answer.asked
        yield asked.shared.name
        if not asked.shared.types:
            yield f"{asked.request.dataset} has no fact about it."
        groups: dict[tuple[str, tuple[CardRelation, ...]], list[ModelCard]] = {}
        for one in answer.models:
            relations = tuple(found.relation for found in one.answers)
            groups.setdefault((one.type, relations), []).append(one)
        for (kind, relations), cards in groups.items():
            heads = ["relation", "right answer"]
            heads += [head for one in cards for head in (one.name, "prob")]
            rows = [
                [relation.label, ", ".join(relation.objects) or "unknown"] for relation in relations
            ]
            for one in cards:
                for row, found in zip(rows, one.answers, strict=True):
                    first = found.predictions[0]
                    row += [
                        marked_answer(first.token, first.begins, found.right, found.outside),
                        fixed(first.prob, 3) if math.isfinite(first.prob) else "",
                    ]
            yield ""
            whose = " (the model's answer)" * any(one.from_model for one in cards)
            yield table_of(heads, rows, title=f"type: {kind}{whose}")
            for one in cards:
                yield f"{one.name}: {one.summary()}{one.computed}"
                if one.missing:
                    known = (f"{of.label} ({', '.join(of.objects[:3])})" for of in one.missing)
                    yield f"Not listed: {'; '.join(known)}"

    def title(self, request: EntityRequest) -> str:
        """Return the name, and that facts are asked for."""
        return request.name + " (listed facts)" * (request.ask == "facts")

    def head(self, answer: CardsAnswer) -> dict[str, Any]:
        """Return the name and its types in the data."""
        shared, request = answer.asked.shared, answer.asked.request
        types = [*shared.types]
        names = {"name": shared.name, "types": types, "dataset": request.dataset}
        return {**names, "ask": request.ask, "candidates": answer.asked.candidates.name}

    def details(self, asked: AskedCard, one: ModelCard) -> dict[str, Any]:
        """Return the type, how many first answers are right, what was dropped or not listed."""
        found = {"type": one.type, "type_from_model": one.from_model}
        found |= {"n_known": one.n_known, "n_right": one.n_right}
        if one.listed:
            missing = [relation.label for relation in one.missing]
            found |= {"text": one.listed.text, "dropped": [*one.dropped], "not_listed": missing}
        return found

    def first_answers(self, asked: AskedCard, one: ModelCard, n: int) -> FirstAnswers:
        """Return the first answers to the first relations of the card, each after the relation."""
        marks = {True: " ✓", False: " ✗", None: ""}
        firsts = [(found, found.predictions[0]) for found in one.in_order[:n]]
        return tuple(
            FirstAnswer(
                None,
                f"{found.relation.label}: {item.begins or item.token}{marks[found.right]}",
                item.log_prob,
            )
            for found, item in firsts
        )

    def gold(self, asked: AskedCard, one: ModelCard) -> str:
        """Return how many answers are right, and of how many relations."""
        return f"{counted(len(one.answers), 'relation')}: {one.summary()}"

    def settings(self, asked: AskedCard, one: ModelCard) -> dict[str, str]:
        """Return the type, the candidates, and what probabilities are over."""
        over = {found.over for found in one.answers}
        return {
            "type": one.type,
            "ranked": "nothing: the facts are generated" if one.listed else asked.candidates.name,
            "log-probabilities over": "; ".join(sorted(over)),
        }


def _no_relations(dataset: Dataset, kind: str | None) -> str:
    """Return the sentence about a type without relations. kind: None for any type."""
    usable = [one for one in type_words() if relations_of(dataset, one)]
    if not usable:
        return f"{dataset.name} has no relation whose types are known: choose another data set."
    return (
        f"{dataset.name} has no relation about entities of the type {kind}: choose another type, "
        f"such as {', '.join(usable[:3])}."
    )


def _ask_type(
    model: Any, name: str, kinds: Mapping[str, Sequence[CardRelation]], calls: Calls
) -> str:
    """Return the type that a model gives a name: that of its best word for "X is a ___".

    A chat server writes a word. Raises UserError if it isn't a word for a type.
    """
    words = {word: kind for kind in kinds for word in type_words()[kind]}
    if hasattr(model, "blank_log_probs"):
        candidates = Candidates("types", tuple(words)).fitting([model.vocabulary])
        query = fill(TYPE_TEMPLATE, name)
        (found,) = query_in_batches(model, [query], candidates, context="left", limits=calls.limits)
        return words[found.blanks[0].predictions[0].token]
    question = f"What is {name}? Answer with one of these words: {', '.join(kinds)}."
    (text,) = generate(model, [make_prompt(question, (), "chat", briefly=False)], MAX_TYPE)
    given = (words.get(word_key(word)) for word in re.findall(r"\w+", text.text))
    if kind := next(filter(None, given), None):
        return kind
    raise UserError(f"{model.name} gives {name} no known type ({text.text[:60]!r}): choose one.")


def _examples(dataset: Dataset, kind: str, name: str) -> tuple[tuple[str, str], ...]:
    """Return names of other entities of a type, each with a line of facts; drawn with a seed."""
    labels = {one.name: relation_types()[one.name].label for one in relations_of(dataset, kind)}
    lines = {
        one.name: [
            f"{label}: {one.objects[relation][0]}"
            for relation, label in labels.items()
            if relation in one.objects
        ][:N_FACTS]
        for one in entities_of(dataset, kind)
        if one.name != name
    }
    most = max(map(len, lines.values()), default=0)
    full = [one for one, facts in lines.items() if len(facts) == most > 0]
    drawn = random.Random(kind).sample(full, min(N_SHOWN, len(full)))
    return tuple((one, SEPARATOR.join(lines[one])) for one in drawn)


def _list_facts(
    model: Any, asked: AskedCard, kind: str, from_model: bool, calls: Calls
) -> ModelCard:
    """Return the card of the facts that a model lists. Raises UserError if it can't generate."""
    check_generates(model)
    how: PromptFormat = "chat" if has_chat_template(model) else "question and answer"
    examples = dict(asked.shared.examples)[kind]
    prompt = make_prompt(
        QUESTION.format(asked.shared.name),
        [(QUESTION.format(name), line) for name, line in examples],
        how,
        briefly=False,
    )
    calls.limits.check_tokens(check_prompt(model, prompt, MAX_TOKENS), model.name)
    (text,) = generate(model, [prompt], MAX_TOKENS, calls.limits.until())
    relations = dict(asked.shared.relations)[kind]
    answers: dict[tuple[str, str], CardAnswer] = {}
    dropped = []
    for part, log_prob in read_facts(text):
        relation, _, word = (one.strip(QUOTES) for one in part.partition(":"))
        key = answer_key(relation), answer_key(word)
        if log_prob is None or key in answers:
            dropped.append(part)
            continue
        item = Prediction(None, word, log_prob, math.exp(log_prob))
        answers[key] = CardAnswer(_named(relations, relation, word), None, (item,))
    return ModelCard(
        **model_fields(model),
        type=kind,
        from_model=from_model,
        answers=tuple(answers.values()),
        listed=text,
        dropped=tuple(dropped),
        missing=tuple(
            one
            for one in relations
            if one.objects and one.name not in {found.relation.name for found in answers.values()}
        ),
    )


def _named(relations: Sequence[CardRelation], name: str, word: str) -> CardRelation:
    """Return the relation to which a model gives a name: its label, or an alias of relations.tsv.

    Of several ("born"), it is one whose objects are years if and only if the listed object has one,
    then one that makes it right. An unknown name is a relation of its own.
    """

    def key(text: str) -> str:
        return answer_key(text).removesuffix("s")  # languages

    def fit(one: CardRelation) -> tuple[bool, bool]:
        of_year = relation_types()[one.name].objects == ("year",)
        return of_year == bool(YEAR.search(word)), one.is_right(word, listed=True) is True

    fitting = [
        one
        for one in relations
        if key(name) in map(key, (one.label, *relation_types()[one.name].aliases))
    ]
    return max(fitting, key=fit, default=CardRelation("", name))


def read_facts(text: GeneratedText) -> Iterator[tuple[str, float | None]]:
    """Yield each part of a line of facts, and the log-probability of its object's tokens.

    The log-probability is NaN if the tokens have none, and None if the part isn't of the form
    `relation: object`: without a colon, with two, or the end of a line that was cut.
    """
    whole = text.ending == "whole" and text.in_time
    ends = list(accumulate(map(len, text.tokens)))
    has_scores = "".join(text.tokens) == text.text
    at = 0
    for part in text.text.split(SEPARATOR.strip()):
        begin, end = at + part.find(":") + 1, at + len(part)
        at = end + 1
        if not part.strip():
            continue
        is_fact = FACT.fullmatch(part.strip()) and (whole or end < len(text.text))
        scores = (
            [
                float(value)
                for value, stop, token in zip(text.log_probs, ends, text.tokens, strict=True)
                if has_scores and begin < stop and stop - len(token) < end
            ]
            if is_fact
            else []
        )
        yield (
            MARK.sub("", part.strip()).rstrip("."),
            (sum(scores) if scores else math.nan) if is_fact else None,
        )


entity = QueryFunction(
    EntityRequest,
    EntityKind(),
    """Return what each model believes about an entity: its answers to each relation that fits.

    Returns:
        A DataFrame with a row for each model, relation and answer: rank, prob, log_prob, and
        whether the answer is right where the data have the right answer.

    Raises:
        UserError: If the data have no relation of the entity's type, or a model is unknown.

    >>> import lama_core as lama
    >>> found = lama.entity("Norway", top_k=1)
    >>> found[["relation", "word", "right"]].head(3)
      relation word right
    """,
)
