"""The relation extractor on sentences small enough to read: features, triples, ranks."""

from collections.abc import Sequence
from math import log
from pathlib import Path

import numpy as np
from data_files import write_lama

from lama_core.candidates.columns import Candidates
from lama_core.candidates.spelling import AFTER_SPACE, OpenVocabulary
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.passages import Corpus, load_corpus
from lama_core.models.protocols import Encoded
from lama_core.probes.prompts.mining import PairMatch, split_words
from lama_core.probes.prompts.training_pairs import halve
from lama_core.scoring.preparation import Segment
from lama_core.types import Fact, Query
from lama_extraction.extractor import (
    NONE,
    Classifier,
    Extraction,
    FactSentence,
    NameFinder,
    Triple,
    describe,
    extract,
    link,
    read_corpus,
)
from lama_extraction.spec import rank_found


def fact(subject: str, obj: str, relation: str = "P19", *sentences: str) -> Fact:
    name = f"{relation}-{subject}-{obj}"
    return Fact(name, subject, relation, obj, "TREx", sentences=sentences)


def test_mentions_are_the_longest_names_letter_for_letter() -> None:
    finder = NameFinder(["Paris", "University of Paris", "the Po", "Po"])
    words = split_words("The Po and paris, University of Paris, the Po")
    found = [(one.name, one.span) for one in finder.mentions(words)]
    # "The Po" begins the sentence; "paris" is no name; the third holds Paris, which isn't named.
    assert found == [("the Po", (0, 2)), ("University of Paris", (5, 8)), ("the Po", (9, 11))]


def test_features_are_the_words_between_and_around_and_never_the_names() -> None:
    words = ("In", "Rome", "Dante", "was", "born", ".")
    # Rome is the object and stands first: "<". Nothing stands between the two.
    assert describe(PairMatch(words, subject=(2, 3), object=(1, 2))) == [
        "<", "<pair=· ·", "<middle=", "<left1=in", "<right1=was", "<left2=·", "<right2=born",
    ]  # fmt: skip
    found = describe(PairMatch(("Dante", "was", "in", "Rome"), subject=(0, 1), object=(3, 4)))
    assert found == [
        ">", ">between=was", ">between=in", ">pair=· was", ">pair=was in", ">pair=in ·",
        ">middle=was in", ">left1=·", ">right1=·", ">left2=·", ">right2=·",
    ]  # fmt: skip


def corpus_of(path: Path, *lines: str) -> Corpus:
    path.write_text("\n".join(lines), encoding="utf-8")
    return load_corpus(str(path))


def test_a_sentence_with_a_pair_is_an_example_and_its_other_names_are_of_none(
    tmp_path: Path,
) -> None:
    pairs = [fact("Dante", "Florence"), fact("Bach", "Leipzig", "P20")]
    corpus = corpus_of(
        tmp_path / "a.txt",
        "Dante was born in Florence. Nobody knows Dante.",
        "Dante was born in Florence.",  # said twice, it is one example
        "Bach died in Leipzig.",
        "Bach, Dante.",
    )
    (first, second), _ = read_corpus(
        corpus.sentences(),
        pairs,
        {pairs[0].id: 0, pairs[1].id: 1},
        NameFinder(["Dante", "Florence", "Bach", "Leipzig"]),
    )
    middles = [
        (name, relation) for features, relation in first for name in features if "middle" in name
    ]
    # Both halves have the same examples of no relation: two names that are no pair, in any order.
    nothing = {(f"<middle={middle}", NONE) for middle in ("was born in", "died in", ",")}
    nothing |= {(">middle=,", NONE)}
    assert middles[0] == (">middle=was born in", "P19") and set(middles[1:]) == nothing
    assert [relation for _, relation in second] == ["P20", *(NONE,) * 4]


def examples() -> list[tuple[list[str], str]]:
    """Two sentences of each of two relations, and two of none."""
    said = {"P19": "was born in", "P20": "died in", NONE: "hated"}
    found = []
    for name, middle in said.items():
        between = middle.split()
        at = len(between) + 1
        for end in (".", "!"):
            match = PairMatch(("A", *between, "B", end), (0, 1), (at, at + 1))
            found.append((describe(match), name))
    return found


def test_a_triple_is_extracted_where_a_relation_is_likeliest() -> None:
    names = NameFinder(["Bach", "Eisenach", "Leipzig"])
    sentences = [split_words(text) for text in (
        "Bach was born in Eisenach.", "Bach died in Leipzig.", "Bach hated Leipzig.", "Bach sang.",
    )]  # fmt: skip
    found = extract(sentences, names, Classifier(examples()))
    forward = [
        [(one.subject, one.relation, one.object) for one in own if one.subject == "Bach"]
        for own in found
    ]
    assert forward == [[("Bach", "P19", "Eisenach")], [("Bach", "P20", "Leipzig")], [], []]
    assert all(1 / 3 < one.confidence <= 1 for own in found for one in own)


def test_the_oracle_links_any_triple_of_the_relation_to_the_facts_names() -> None:
    own = fact("Johann Sebastian Bach", "Eisenach")
    stated = [FactSentence(own, ("He", "was", "born")), FactSentence(own, ("He", "died"))]
    triples = [
        [Triple("He", "P19", "Thuringia", 0.6), Triple("He", "P20", "Eisenach", 0.9)],
        [Triple("He", "P19", "Leipzig", 0.7), Triple("He", "P19", "Thuringia", 0.5)],
    ]
    as_it_says = {
        ("P19", "He"): {"Thuringia": 0.6, "Leipzig": 0.7},  # the best of a triple's sentences
        ("P20", "He"): {"Eisenach": 0.9},
    }
    assert link(stated, triples, "naive") == as_it_says
    assert link(stated, triples, "oracle") == {
        **as_it_says, ("P19", "Johann Sebastian Bach"): {"Eisenach": 0.7},
    }  # fmt: skip


WORDS = ("Berlin", "Bonn", "Oslo", "Paris", "Rome")


def segment(golds: Sequence[int], removed: Sequence[Sequence[int]]) -> Segment:
    columns = Candidates("few", WORDS).columns(OpenVocabulary())
    n = len(golds)
    return Segment(
        columns,
        (Query(("", "")),) * n,
        (Encoded((), (), (AFTER_SPACE,)),) * n,
        np.arange(n),
        np.array(golds),
        np.array(removed, dtype=np.int64).reshape(n, -1),
    )


def test_what_is_found_is_ranked_by_confidence_and_a_zero_answer_is_wrong() -> None:
    asked = segment([3, 3, 0, 3], [[-1], [4], [-1], [1]])
    found = [
        {4: log(0.9), 3: log(0.5)},  # Rome before the gold Paris
        {4: log(0.9), 3: log(0.5)},  # Rome is right too: filtered, Paris is first
        {},  # nothing was found, and the gold is the first candidate of all
        {4: log(0.9)},  # the gold was not found
    ]
    rows = rank_found("RE", asked, 0, found)
    assert rows["rank_raw"].tolist() == [2, 2, 5, 5]
    assert rows["rank_filtered"].tolist() == [2, 1, 5, 4]  # of the last, Bonn is removed
    assert rows["top"][:, :3].tolist() == [[4, 3, -1], [4, 3, -1], [-1, -1, -1], [4, -1, -1]]
    assert rows["first_filtered"].tolist() == [4, 3, -1, 4]
    assert rows["log_prob"][0] == np.float32(log(0.5)) and np.isnan(rows["log_prob"][2])


def small(folder: Path, facts: Sequence[tuple[str, str]]) -> Dataset:
    relation = {"relation": "P19", "template": "[X] was born in [Y] .", "type": "N-1",
                "label": "place of birth", "description": ""}  # fmt: skip
    rows = [
        {"sub_label": subject, "obj_label": obj,
         "evidences": [{"sub_surface": subject, "obj_surface": obj,
                        "masked_sentence": f"{subject} was born in [MASK] ."}]}
        for subject, obj in facts
    ]  # fmt: skip
    return load_dataset(str(write_lama(folder, [relation], {"P19": rows})))


def test_a_fact_is_answered_by_the_half_that_was_not_trained_on_it(tmp_path: Path) -> None:
    cities = ("Rome", "Oslo", "Bonn", "Bern", "Nice", "Lima", "Cork", "York")
    people = [(f"Person{number}", city) for number, city in enumerate(cities)]
    dataset = small(tmp_path / "data", people)
    first, second = halve(dataset.facts_of("P19"))
    assert first and second
    # The corpus states the pairs of the first half alone.
    lines = [f"{one.subject} was born in {one.object}." for one in first]
    corpus = corpus_of(tmp_path / "a.txt", *lines)
    extraction = Extraction(dataset, corpus, ("P19",))
    for one in first:
        assert extraction.graph("naive", one) == {}, "what it was trained on must not answer it"
    for one in second:
        graph = extraction.graph("naive", one)
        assert list(graph["P19", one.subject]) == [one.object]
    assert extraction.untrained == ()
    other = Extraction(dataset, corpus_of(tmp_path / "b.txt", "Nothing of them."), ("P19",))
    assert other.untrained == ("P19",)
    assert other.graph("oracle", first[0]) == {}


def test_facts_without_sentences_are_read_in_the_corpus(tmp_path: Path) -> None:
    bare = fact("Dante", "Florence")
    stated = fact("Bach", "Leipzig")
    corpus = corpus_of(tmp_path / "a.txt", "Dante knew Florence. Dante sang.", "Bach in Leipzig.")
    _, found = read_corpus(
        corpus.sentences(),
        [bare, stated],
        {bare.id: 0, stated.id: 0},
        NameFinder(["Dante", "Florence", "Bach", "Leipzig"]),
        wanted={bare.id},
    )
    assert found == {bare.id: ["Dante knew Florence."]}
