"""The reader of BEAR, on small folders in its layout."""

import json
from collections import Counter
from pathlib import Path

import pytest
from project_files import ROOT

from lama_core.datasets import formats
from lama_core.datasets.dataset import ReadReport
from lama_core.errors import UserError
from lama_more_data import bear
from lama_papers import wiland2024

SHARED = ROOT.parent / "shared" / "data"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_the_paper_knows_the_data_by_the_source_that_the_reader_gives() -> None:
    assert wiland2024.SOURCE == bear.SOURCE


def bear_folder(folder: Path, facts: str, **described: object) -> Path:
    """BEAR's layout with one relation of three answers, unless `described` says otherwise."""
    row = {
        "templates": ["The capital of [X] is [Y].", "[Y] is [X]'s capital."],
        "answer_space_labels": ["Lima", "Rabat", "Saint John's"],
    }
    write(folder / "metadata_relations.json", json.dumps({"P36": row | described}))
    write(folder / "P36.jsonl", facts)
    return folder


def bear_fact(subject: str, obj: str | None, at: object = None) -> str:
    row = {"sub_label": subject, "obj_label": obj, "answer_idx": at}
    return json.dumps({name: value for name, value in row.items() if value is not None}) + "\n"


def test_bear_gives_templates_answers_domains_and_facts(tmp_path: Path) -> None:
    facts = bear_fact("Peru", "Lima", 0) + bear_fact("Antigua", None, 2)
    wrapped = bear_folder(tmp_path / "BEAR-725b" / "BEAR", facts, domains=["Geographic"])
    dataset = formats.load(tmp_path)
    assert formats.root_of(tmp_path) == wrapped
    (relation,) = dataset.relations
    assert [one.template for one in relation.prompts] == [
        "The capital of [X] is [Y].",
        "[Y] is [X]'s capital.",
    ]
    assert relation.answers == ("Lima", "Rabat", "Saint John's")
    assert (relation.source, relation.domains) == ("BEAR", ("Geographic",))
    assert [(one.subject, one.object) for one in dataset.facts] == [
        ("Peru", "Lima"),
        ("Antigua", "Saint John's"),
    ]
    assert dataset.report == ReadReport()


@pytest.mark.parametrize("above", [False, True])
def test_bears_domains_may_lie_in_a_file_of_their_own(tmp_path: Path, above: bool) -> None:
    folder = bear_folder(tmp_path / "BEAR", bear_fact("Peru", "Lima"))
    said = json.dumps({"P36": {"domains": ["Geographic", "Political"]}, "P1": 3})
    write((tmp_path if above else folder) / "relation_info.json", said)
    dataset = bear.load(folder)
    assert dataset.relations[0].domains == ("Geographic", "Political")
    assert [one.reason for one in dataset.report.dropped] == [
        "P1: expected a JSON object, not a int"
    ]


def test_a_template_that_bear_has_twice_keeps_its_number(tmp_path: Path) -> None:
    templates = ["[X] is [Y].", "It is [Y], [X].", "[X] is [Y]."]
    folder = bear_folder(tmp_path, bear_fact("Peru", "Lima"), templates=templates)
    assert [one.template for one in bear.load(folder).relations[0].prompts] == templates


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (bear_fact("Peru", "Quito"), "'Quito' is not among the 3 answers"),
        (bear_fact("Peru", "Lima", 1), "answer_idx 1 is 'Rabat', but obj_label is 'Lima'"),
        (bear_fact("Peru", "Lima", 3), "answer_idx is '3', but there are 3 answers"),
        (bear_fact("Peru", "Lima", True), "answer_idx is 'True', but there are 3 answers"),
    ],
)
def test_a_bad_row_of_bear_says_what_is_wrong(tmp_path: Path, row: str, reason: str) -> None:
    first = bear_fact("Chile", "Lima", 0)
    dataset = bear.load(bear_folder(tmp_path, first + row.strip() + "\n"))
    (dropped,) = dataset.report.dropped
    assert (dropped.file, dropped.line) == ("P36.jsonl", 2)
    assert reason in dropped.reason
    assert len(dataset.facts) == 1


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        ({"templates": ["[X] is it.", "[X] is [Y]."]}, "has no [Y]"),
        ({"answer_space_labels": ["Lima", "Rabat", "Lima"]}, "'Lima', is the same as answer 0"),
        ({"answer_space_labels": ["Lima", "x" * 301]}, "answer 1 is longer than 300 letters"),
    ],
)
def test_what_is_wrong_with_a_relation_of_bear_costs_that_alone(
    tmp_path: Path, described: dict[str, object], reason: str
) -> None:
    dataset = bear.load(bear_folder(tmp_path, bear_fact("Peru", "Lima", 0), **described))
    (dropped,) = dataset.report.dropped
    assert (dropped.file, dropped.line) == ("metadata_relations.json", 0)
    assert dropped.reason.startswith("P36: ") and reason in dropped.reason
    assert len(dataset.facts) == 1


def test_an_answers_index_counts_those_that_are_left_out(tmp_path: Path) -> None:
    labels = ["Lima", "", "Rabat"]
    folder = bear_folder(tmp_path, bear_fact("Morocco", None, 2), answer_space_labels=labels)
    assert bear.load(folder).facts[0].object == "Rabat"


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        ({"templates": []}, "P36: no usable template"),
        ({"answer_space_labels": "Lima"}, "'answer_space_labels' is not a list"),
        ({"answer_space_labels": ["x"] * 100_001}, "100,001 answers: give at most"),
        ({"domains": 1}, "'domains' is not a list of texts"),
    ],
)
def test_a_folder_of_bear_without_a_usable_relation_is_refused(
    tmp_path: Path, described: dict[str, object], reason: str
) -> None:
    folder = bear_folder(tmp_path, bear_fact("Peru", "Lima", 0), **described)
    with pytest.raises(UserError, match="has no usable fact") as error:
        bear.load(folder)
    assert reason in str(error.value)


@pytest.mark.skipif(not (SHARED / "bear").is_dir(), reason=f"BEAR is not at {SHARED}")
def test_the_reference_bear_is_read_whole() -> None:
    dataset = formats.load_facts(SHARED / "bear")
    assert dataset.report == ReadReport()
    assert (len(dataset.relations), len(dataset.facts)) == (30, 3_864)
    assert all(len(one.prompts) == 3 for one in dataset.relations)
    # 60 facts of 60 answers, or some 150 facts of 25 and fewer, each answer as often as the others.
    for relation in dataset.relations:
        counts = Counter(fact.object for fact in dataset.facts_of(relation.name))
        assert set(counts) == set(relation.answers)
        assert len(set(counts.values())) == 1, relation.name
