"""Cards: what models believe about one entity."""

import math
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lama_core.datasets import load_dataset
from lama_core.errors import UserError
from lama_core.models.cache import load_model
from lama_core.models.protocols import Chat, Ending, GeneratedText
from lama_core.queries.blank_answers import Gold, Prediction
from lama_core.queries.cloze import ClozeKind, ClozeRequest
from lama_core.queries.kind import Asked, ask_models
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.testing import check_query
from lama_entities.card import (
    CardAnswer,
    CardRelation,
    EntityKind,
    EntityRequest,
    ModelCard,
    entity,
    read_facts,
)
from lama_entities.types import entities_of, type_words

MINILM = "minilm-mlm"


def card_of(name: str, **fields: Any) -> ModelCard:
    return entity.answer(EntityRequest(name=name, **fields)).models[0]


def test_function_command_and_json_give_the_same_card() -> None:
    answer = check_query(entity, name="norway", top_k=2)
    assert answer.asked.shared.name == "Norway"
    card = answer.models[0]
    rows = {(row.relation, row.rank): row for row in entity.kind.rows(answer.asked, card)}
    oslo = rows["P36", 1]
    assert (oslo.type, oslo.word, oslo.right, oslo.known) == ("country", "oslo", True, ("Oslo",))
    assert (oslo.answer_entity, oslo.answer_type, oslo.gold_rank) == ("Oslo", "city", 1)
    assert len(rows) == 2 * len(card.answers)
    assert rows["P37", 1].right is None and rows["P37", 1].known == ()  # the data don't have it


def test_50_cards_have_the_answers_of_cloze() -> None:
    starter = load_dataset("starter")
    names = [one.name for kind in type_words() for one in entities_of(starter, kind) if one.objects]
    model, kind, cloze = load_model(MINILM), EntityKind(), ClozeKind()
    drawn = random.Random(72)
    for name in drawn.sample(names, 50):
        request = EntityRequest(name=name, candidates="own")
        answer = ask_models(kind, request, kind.prepare(request, UNLIMITED), [model])
        rows = kind.rows(answer.asked, answer.models[0])
        firsts = rows[:: request.top_k]
        for row in drawn.sample(firsts, min(2, len(firsts))):  # each relation takes 0.1 s
            gold = row.gold
            alone = ClozeRequest(text=row.text, top_k=3, gold=gold, candidates="own")
            asked = ask_models(cloze, alone, cloze.prepare(alone, UNLIMITED), [model])
            blank = asked.models[0].blanks[0]
            mine = [one for one in rows if one.relation == row.relation]
            assert [one.word for one in mine] == [one.token for one in blank.predictions]
            for one, other in zip(mine, blank.predictions, strict=True):
                assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
            assert row.gold_rank == (blank.gold.rank if blank.gold else None)
            rights = [one.rank for one in mine if one.right]
            assert not rights or min(rights) == row.gold_rank  # the best of all right answers


def test_a_name_without_facts_gets_the_type_that_the_model_gives_it() -> None:
    said: list[str] = []
    answer = entity.answer(EntityRequest(name="Zorblax Quux", on_note=said.append))
    card = answer.models[0]
    assert said == ["starter has no fact about 'Zorblax Quux'."]
    assert card.from_model and card.type in type_words()
    entity.answer(EntityRequest(name="Norwy", type="country", on_note=said.append))
    assert said[1:] == ["starter has no fact about 'Norwy' (did you mean 'Norway'?)."]
    chosen = card_of("Zorblax Quux", type="person")
    assert (chosen.type, chosen.from_model, len(chosen.answers)) == ("person", False, 19)


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"name": " "}, "The subject is empty"),
        ({"name": "The ___ of Oslo"}, "contains a blank"),
        ({"name": "x" * 300}, "the maximum is 200"),
        ({"name": "Norway", "type": "cuntry"}, r"did you mean 'country'\?"),
        ({"name": "1867"}, "no relation about entities of the type year: choose another type"),
        ({"name": "Norway", "dataset": "strater"}, "did you mean 'starter'"),
        ({"name": "Norway", "ask": "facts"}, "can't generate text"),
    ],
)
def test_a_card_that_cant_be_made_is_one_sentence(fields: dict[str, Any], fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        entity.answer(EntityRequest(**fields))


def test_a_card_counts_as_many_sentences_as_it_asks() -> None:
    request = EntityRequest(name="Marie Curie", models=(MINILM, "minilm-mlm-twin"))
    assert EntityKind().prepare(request, Limits(sentences=38)).relations[0][1]
    with pytest.raises(UserError, match="19 sentences for 2 models are 38 queries"):
        EntityKind().prepare(request, Limits(sentences=37))


def made(text: str, tokens: tuple[str, ...] = (), ending: Ending = "whole") -> GeneratedText:
    return GeneratedText(text, tokens, np.log(np.full(len(tokens), 0.5, np.float32)), ending=ending)


@pytest.mark.parametrize(
    ("text", "facts", "dropped"),
    [
        ("capital: Oslo; language: Norwegian.", ["capital: Oslo", "language: Norwegian"], []),
        ("capital: Oslo;", ["capital: Oslo"], []),
        ("1. capital: Oslo; - language: Norwegian", ["capital: Oslo", "language: Norwegian"], []),
        (
            '{ "subject": "oslo", "object": "norway" }',
            [],
            ['{ "subject": "oslo", "object": "norway" }'],
        ),
        ("Sure! capital is Oslo", [], ["Sure! capital is Oslo"]),
        ("a: b: c; : Oslo; capital: ; x:y", [], ["a: b: c", ": Oslo", "capital:", "x:y"]),
    ],
)
def test_a_list_of_facts_is_read_strictly(text: str, facts: list[str], dropped: list[str]) -> None:
    found = list(read_facts(made(text)))
    assert [part for part, value in found if value is not None] == facts
    assert [part for part, value in found if value is None] == dropped


def test_the_end_of_a_cut_list_is_no_fact_and_an_object_has_the_probability_of_its_tokens() -> None:
    tokens = ("capital", ":", " Os", "lo", ";", " language", ":", " Nor")
    (oslo, value), (_, cut) = read_facts(made("".join(tokens), tokens, "cut"))
    assert (oslo, cut) == ("capital: Oslo", None)
    assert value == pytest.approx(2 * math.log(0.5))


def test_a_chat_server_is_asked_for_facts_after_examples_and_for_the_type() -> None:
    prompts: list[Chat] = []

    def generate(some: list[Chat], *_: object, **__: object) -> list[GeneratedText]:
        prompts.extend(some)
        is_type = "one of these words" in some[0].messages[-1].text
        line = (
            'place of birth: "Warsaw"; occupation: physicist; Occupation: Physicist; rumour: none'
        )
        return [made("A person." if is_type else line)]

    server = SimpleNamespace(name="chat", kind="causal", precision="", device="", generate=generate)
    kind, cards, asked_of = EntityKind(), [], []
    for name in ("Marie Curie", "Zorblax Quux"):
        request = EntityRequest(name=name, ask="facts")
        asked = Asked(request, kind.prepare(request, UNLIMITED))
        asked_of.append(asked.shared.relations)
        cards.append(kind.answer(server, asked, calls=SimpleNamespace(limits=UNLIMITED)))  # type: ignore[arg-type]
    curie, unknown = cards
    verdicts = {one.relation.label: one.right for one in curie.answers}
    assert verdicts == {"place of birth": True, "occupation": None, "rumour": None}
    assert curie.dropped == ("Occupation: Physicist",)  # a repetition
    n_others = sum(bool(one.objects) for _, some in asked_of[0] for one in some) - 1
    assert curie.summary().startswith(
        f"1 of {1 + n_others} right, {n_others} not listed, 2 without a right answer in the data"
    )
    assert curie.answers[0].predictions[0].token == "Warsaw"
    assert (curie.answers[0].relation.name, curie.answers[2].relation.name) == ("P19", "")
    assert (unknown.type, unknown.from_model) == ("person", True)
    shown = " ".join(one.text for one in prompts[0].messages[:-1])
    assert "place of birth: " in shown and "Marie Curie" not in shown


@pytest.mark.parametrize(
    ("listed", "relation", "right"),
    [
        ("birth date: 1867", "date_of_birth", True),
        ("Born: 7 November 1867", "date_of_birth", True),
        ("born: Warsaw, Poland", "P19", True),
        ("born in: Paris", "P19", False),
        ("birthplace: Warsaw", "P19", True),
        ("languages: Polish", "P1412", None),
        ("year of birth: 1934", "date_of_birth", False),
        ("rumour: 1867", "", None),
    ],
)
def test_a_listed_fact_is_judged_by_the_relation_that_its_name_means(
    listed: str, relation: str, right: bool | None
) -> None:
    server: Any = SimpleNamespace(
        name="chat",
        kind="causal",
        precision="",
        device="",
        generate=lambda *_, **__: [made(listed)],
    )
    kind, request = EntityKind(), EntityRequest(name="Marie Curie", ask="facts")
    asked = Asked(request, kind.prepare(request, UNLIMITED))
    calls: Any = SimpleNamespace(limits=UNLIMITED)
    card = kind.answer(server, asked, calls=calls)
    (fact,) = card.answers
    assert fact.relation.name == relation
    known = next(iter(dict(asked.shared.relations).values()))
    objects = {one.name: one.objects for one in known}.get(relation, ())
    assert fact.right is (right if objects else None)
    assert {one.name for one in card.missing} == {one.name for one in known if one.objects} - {
        relation
    }


@pytest.mark.parametrize(("rank", "right"), [(1, None), (4, False)])
def test_a_right_answer_that_isnt_ranked_has_no_rank(rank: int, right: bool | None) -> None:
    gold = Gold("1867", rank, -1.0, ("1867",), in_candidates=False)
    relation = CardRelation("P569", "year of birth", "", ("1867",))
    july = CardAnswer(relation, "left", (Prediction(1, "July", -7.0, 0.001),), gold)
    assert (july.right, july.gold_place) == (right, "not among the ranked words")
    card = replace(card_of("Norway"), answers=(july,))
    none_ranked = "no right answer known, 1 right answer not ranked"
    assert card.summary() == ("0 of 1 right" if rank > 1 else none_ranked)
    ranked = replace(july, gold=replace(gold, in_candidates=True))
    assert (ranked.gold_place, ranked.right) == (f"rank {rank}", False)
