"""Aliases from a table next to a dataset, and those of the starter facts."""

import csv
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from lama_core.datasets import load_dataset
from lama_core.datasets.aliases import ALIASES_FILE, with_aliases
from lama_core.datasets.dataset import ReadReport, facts_digest, make_dataset
from lama_core.datasets.library import installed
from lama_core.types import Fact, Relation

TABLE = (
    "relation\tobject\talias\torigin\n"
    "P17\tFrance\tFrench\tx\nP17\tFrance\tFrench Republic\tx\nP30\tFrance\tGaul\tx\n"
)
FACTS = (
    Fact("a", "Lyon", "P17", "France", "TREx"),
    Fact("b", "the French Alps", "P17", "France", "TREx"),
    Fact("c", "Lima", "P17", "Peru", "TREx"),
)


def test_aliases_are_those_of_the_relation_and_never_part_of_the_subject(tmp_path: Path) -> None:
    dataset = make_dataset("small", [Relation("P17", "TREx")], FACTS, ReadReport())
    file = tmp_path / ALIASES_FILE
    assert with_aliases(dataset, file) is dataset
    file.write_text(TABLE, "utf-8")
    named = with_aliases(dataset, file)
    assert [fact.aliases for fact in named.facts] == [
        ("French", "French Republic"),
        ("French Republic",),
        (),
    ]
    assert named.digest == dataset.digest


def test_the_starter_facts_have_aliases_outside_their_digest() -> None:
    starter = load_dataset("starter")
    assert sum(bool(fact.aliases) for fact in starter.facts) > 3_000
    sulfur = next(fact for fact in starter.facts_of("P527") if fact.object == "sulfur")
    assert sulfur.aliases == ("sulphur",)
    assert load_dataset(installed.starter_dir()).digest == starter.digest


def test_no_alias_of_the_starter_facts_is_in_a_wrong_answer() -> None:
    starter = load_dataset("starter")
    seen: defaultdict[str, dict[str, str]] = defaultdict(dict)
    with (installed.starter_dir() / ALIASES_FILE).open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream, dialect="excel-tab"):
            relation, name = row["relation"], row["alias"].lower()
            objects = {fact.object.lower() for fact in starter.facts_of(relation)}
            assert row["object"].lower() in objects and name not in objects
            assert sum(map(str.isalpha, name)) >= 5 and "capital" not in name
            assert name not in seen[relation], "an alias of one object only"
            seen[relation][name] = row["object"]


def test_the_digest_has_aliases_question_and_popularity_only_where_they_are() -> None:
    plain = Fact("P36:1", "Peru", "P36", "Lima", "TREx")
    # The digest from before facts had these fields: runs of that time have the same data.
    assert facts_digest([], [plain]) == (
        "9148ed2f7fdce17290ef010216e0041f0d8a41939b6394cc55478c871252ff0b"
    )
    digests = {
        facts_digest([], [replace(plain, **more)])
        for more in ({}, {"aliases": ("Ciudad",)}, {"question": "Which?"}, {"popularity": 0.0})
    }
    assert len(digests) == 4
