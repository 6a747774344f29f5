"""The readers of PopQA, EntityQuestions, CounterFact and zsRE, on tiny files in their layouts."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from data_files import write_lines

from lama_core.datasets.dataset import Dataset
from lama_core.queries.question_prompts import question_of
from lama_more_data import counterfact, entity_questions, popqa, zsre
from lama_more_data.entity_questions import subjects_of

POPQA_COLUMNS = (
    "id", "subj", "prop", "obj", "subj_id", "prop_id", "obj_id", "s_aliases", "o_aliases", "s_uri",
    "o_uri", "s_wiki_title", "o_wiki_title", "s_pop", "o_pop", "question", "possible_answers",
)  # fmt: skip


def popqa_row(number: int, **changed: Any) -> dict[str, Any]:
    row = {
        "id": number,
        "subj": "George Rankin",
        "prop": "occupation",
        "obj": "politician",
        "o_aliases": json.dumps(["political leader", "polit."]),
        "s_uri": "http://www.wikidata.org/entity/Q5543720",
        "o_uri": "http://www.wikidata.org/entity/Q82955",
        "s_pop": 142,
        "question": "What is George Rankin's occupation?",
        "possible_answers": json.dumps(["politician", "political leader", 'the "pol"']),
    }
    return row | changed


def write_popqa(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write rows as pandas does: a cell with quotation marks is quoted, and they are doubled."""
    text = io.StringIO()
    writer = csv.DictWriter(text, POPQA_COLUMNS, dialect="excel-tab", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.getvalue(), "utf-8")
    return path


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")
    return path


def case(number: int, **changed: Any) -> dict[str, Any]:
    rewrite = {
        "prompt": "The mother tongue of {} is",
        "relation_id": "P103",
        "target_new": {"str": "English", "id": "Q1860"},
        "target_true": {"str": "French", "id": "Q150"},
        "subject": "Danielle Darrieux",
    }
    return {
        "case_id": number,
        "pararel_idx": 2796,
        "requested_rewrite": rewrite | changed,
        "paraphrase_prompts": ["It rained.  Danielle Darrieux, a native", "Danielle, a native"],
        "neighborhood_prompts": ["The mother tongue of Léon Blum is", "Jean Gabin speaks"],
    }


def questions(place: str) -> list[dict[str, Any]]:
    return [
        {"question": f"What is the {place} of Marin County?", "answers": ["San Rafael"]},
        {"question": f"What is the {place} of Samos?", "answers": ["Vathy", "Samos Town", "Vathy"]},
    ]


def reasons(dataset: Dataset) -> list[str]:
    return [str(dropped) for dropped in dataset.report.dropped]


def test_popqa_has_its_own_questions_answers_and_popularity(tmp_path: Path) -> None:
    fact = popqa.load(write_popqa(tmp_path / "popQA.tsv", [popqa_row(7)])).facts[0]
    assert (fact.id, fact.relation, fact.subject, fact.object) == (
        ("occupation:7", "occupation", "George Rankin", "politician")
    )
    assert fact.question == "What is George Rankin's occupation?"
    assert fact.aliases == ("political leader", 'the "pol"')  # PopQA's rule has no other aliases
    assert (fact.popularity, fact.subject_id, fact.object_id) == (142.0, "Q5543720", "Q82955")


def test_popqa_without_possible_answers_uses_the_objects_aliases(tmp_path: Path) -> None:
    rows = [popqa_row(1, possible_answers="[]"), popqa_row(2, possible_answers="[]", s_pop="")]
    first, second = popqa.load(write_popqa(tmp_path / "popQA.tsv", rows)).facts
    assert first.aliases == second.aliases == ("political leader", "polit.")
    assert second.popularity is None


def test_entity_questions_are_read_from_the_test_set(tmp_path: Path) -> None:
    folder = tmp_path / "download" / "dataset"
    write_json(folder / "test" / "P36.test.json", questions("capital"))
    write_json(folder / "test" / "P5.test.json", questions("centre"))
    write_json(folder / "dev" / "P36.dev.json", questions("capital")[:1])
    write_json(folder / "one-off" / "similar" / "P36" / "P36_similar.test.json", [])
    dataset = entity_questions.load(tmp_path)
    assert [one.name for one in dataset.relations] == ["P5", "P36"]
    first, second = dataset.facts_of("P36")
    assert (first.subject, first.object, first.aliases) == ("Marin County", "San Rafael", ())
    assert (second.subject, second.object, second.aliases) == ("Samos", "Vathy", ("Samos Town",))
    assert second.question == "What is the capital of Samos?"
    assert dataset.report.notes == ("only test is read, not dev",)
    assert len(entity_questions.load(folder / "dev").facts) == 1
    assert len(entity_questions.load(folder / "test" / "P36.test.json").facts) == 2


@pytest.mark.parametrize(
    ("asked", "subjects"),
    [
        (["Who is Leo's child?", "Who is Ana's child?"], ["Leo", "Ana"]),
        # Letters that the subjects happen to share are theirs.
        (["Where was Anna born?", "Where was Andrea born?"], ["Anna", "Andrea"]),
        (["Where was Leon born?", "Where was Ian born?"], ["Leon", "Ian"]),
        (["Who owns Oslo?"], ["Who owns Oslo?"]),
    ],
)
def test_the_subject_is_what_the_questions_do_not_share(
    asked: list[str], subjects: list[str]
) -> None:
    assert subjects_of(asked) == subjects


def test_a_bad_item_of_entity_questions_costs_no_other(tmp_path: Path) -> None:
    items = [*questions("capital"), "text", {"question": "x"}, questions("capital")[0]]
    write_json(tmp_path / "P36.test.json", items)
    (tmp_path / "P19.test.json").write_text("[{]", "utf-8")
    write_json(tmp_path / "P20.test.json", {"question": "not a list"})
    dataset = entity_questions.load(tmp_path)
    assert len(dataset.facts) == 2
    said = reasons(dataset)
    assert said[0].startswith("P19.test.json: not valid JSON (")
    assert said[1:] == [
        "P20.test.json: a list was expected, not a dict",
        "P36.test.json: item 3: expected a JSON object, not a str",
        "P36.test.json: item 4: no field 'answers' with a text",
        "P36.test.json: item 5: duplicate question: 'What is the capital of Marin County?' with "
        "'San Rafael'",
    ]


def test_counterfact_gives_true_facts_with_paraphrases_and_neighbors(tmp_path: Path) -> None:
    again = case(1, subject="Edwin Ray", prompt="{}, a native", target_true={"str": "English"})
    again["neighborhood_prompts"] = ["The mother tongue of Léon Blum is", "Sean Bean, a native"]
    dataset = counterfact.load(write_json(tmp_path / "counterfact.json", [case(0), again]))
    first, second, blum, blum_again, bean = dataset.facts
    assert (first.id, first.subject, first.object) == ("P103:0", "Danielle Darrieux", "French")
    assert first.sentences == (
        "The mother tongue of Danielle Darrieux is [MASK].",
        "It rained. Danielle Darrieux, a native [MASK].",
        "Danielle, a native [MASK].",
    )
    assert (first.object_id, first.origin, second.subject) == ("Q150", "case", "Edwin Ray")
    assert (blum.subject, blum.object, blum.origin) == ("Léon Blum", "French", "neighborhood")
    assert blum.sentences == ("The mother tongue of Léon Blum is [MASK].",)
    assert (blum_again.subject, blum_again.object) == ("Léon Blum", "English")
    assert (bean.subject, bean.object) == ("Sean Bean", "English")
    assert dataset.report.notes == (
        "1 neighborhood prompts are excluded: none has the form of a prompt of its relation",
    )


KILT = {
    "id": "a64",
    "input": "USA-88 [SEP] time of spacecraft launch",
    "output": [{"answer": "3 February 1993", "provenance": [{"title": "USA-88"}]}],
    "meta": {"template_questions": ["When was USA-88 launched?", "What day was USA-88 launched?"]},
}
EDITOR = {
    "input": "What university did Watts Humphrey attend?",
    "output": [
        {"answer": "Illinois Institute of Technology", "provenance": [{"title": "Watts Humphrey"}]},
        {"answer": "IIT"},
    ],
    "prediction": "Trinity College",
    "alternatives": ["University of Michigan"],
    "filtered_rephrases": ["What university did Watts Humphrey go to?"],
}


def test_zsre_is_read_in_both_forms(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "zsre.jsonl", [KILT, EDITOR, {**EDITOR, "input": "Who is he?"}])
    launch, university, he = zsre.load(path).facts
    assert (launch.id, launch.subject, launch.object, launch.question) == (
        "time of spacecraft launch:a64",
        "USA-88",
        "3 February 1993",
        "When was USA-88 launched?",
    )
    assert (university.relation, university.subject) == ("questions", "Watts Humphrey")
    assert (university.object, university.aliases) == (
        ("Illinois Institute of Technology", ("IIT",))
    )
    assert he.subject == he.question == "Who is he?"


def test_a_facts_own_question_comes_before_that_of_its_relation(tmp_path: Path) -> None:
    write_json(tmp_path / "P36.test.json", questions("seat"))
    dataset = entity_questions.load(tmp_path)
    relation, fact = dataset.relation("P36"), dataset.facts[1]
    assert question_of(relation, fact) == "What is the seat of Samos?"
    assert question_of(relation, replace(fact, question="")) == "What is the capital of Samos?"
