"""The corpus: what the sources' texts become, and what is kept from training."""

from pathlib import Path

import pytest
from tiny_encoder import write_text

from lama_core.errors import UserError
from lama_core.metrics.word_counts import (
    CorpusCounts,
    count_corpus,
    load_corpus_counts,
    save_corpus_counts,
)
from tools.training.corpus.build import build_corpus, corpus_from_files, is_held_out, read_lines
from tools.training.corpus.source_list import SOURCES, all_but
from tools.training.corpus.source_passages import CorpusSource, Passage, drawn
from tools.training.corpus.sources import wordnet

DANTE = (
    "10922239 18 n 02 Dante 0 Dante_Alighieri 0 001 @i 10444194 n 0000 | an Italian poet famous "
    "for writing the Divine Comedy (1265-1321)"
)
POET = (
    "10444194 18 n 01 poet 0 000 | a writer of poems (the term is usually reserved for writers of "
    'good poetry); "he was a poet of the sea"'
)


def read_wordnet(member: str) -> bytes:
    """A WordNet of two synsets."""
    return f"{DANTE}\n{POET}\n".encode() if member.endswith("noun") else b""


def test_what_is_drawn_depends_on_the_key_and_on_nothing_else() -> None:
    texts = [f"{letter}." for letter in "abcdefgh"]
    assert drawn(texts, "key", 3) == drawn(reversed(texts), "key", 3) == ["h.", "c.", "a."]
    assert drawn(texts, "key", 2) == drawn(texts, "key", 3)[:2]
    assert drawn(["a.", "a."], "key", 2) == ["a."]
    assert len({tuple(drawn(texts, f"{key}", 3)) for key in range(20)}) > 10


def test_a_river_gets_the_continents_of_its_countries() -> None:
    lines = (
        "00000001 17 n 02 Nile 0 Nile_River 0 003 @i 00000004 n 0000 #p 00000002 n 0000 "
        "#p 00000005 n 0000 | the world's longest river",
        "00000002 15 n 01 Egypt 0 001 #p 00000003 n 0000 | a republic in Africa",
        "00000003 15 n 01 Africa 0 002 @i 00000006 n 0000 #p 00000007 n 0000 | a large continent",
        "00000004 17 n 01 river 0 000 | a large natural stream of water",
        "00000005 15 n 01 Sudan 0 001 #p 00000003 n 0000 | a republic in Africa",
        "00000006 17 n 01 continent 0 000 | one of the large landmasses of the earth",
        "00000007 17 n 01 hemisphere 0 001 @i 00000006 n 0000 | half of the globe",
    )
    data = "".join(f"{line}\n" for line in lines)
    passages = wordnet.fact_passages(lambda name: data.encode() if name.endswith("noun") else b"")
    texts = [p.text for p in passages if p.key == "n00000001"]
    assert texts.count("The Nile is a river in Africa.") == 1  # though two ways lead there
    assert "The Nile is a river in Egypt." in texts
    assert "The Nile flows through Sudan." in texts
    assert not any("hemisphere" in text for text in texts)  # what a continent itself is part of


def test_the_lines_of_a_person_stand_in_a_fixed_order() -> None:
    # Once they stood in the order of a set, which another process has otherwise.
    texts = [p.text for p in wordnet.fact_passages(read_wordnet)]
    jobs = [text for text in texts if text.endswith(" was a poet.")]
    assert jobs == ["Dante Alighieri was a poet.", "Dante was a poet."]


def test_what_two_sources_state_counts_in_both_but_is_never_held_out_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.training.corpus.build.open_origin", lambda origin: None)
    keys = {is_held_out("wordnet", key): key for key in (f"n{number:08d}" for number in range(500))}
    shared, trained, kept = "The Nile is a river.", "It is long.", "It was held out."

    def source(name: str, texts: dict[bool, list[str]], *, held_out: bool = False) -> CorpusSource:
        passages = [Passage(keys[flag], text) for flag, group in texts.items() for text in group]
        origin = SOURCES[0].origin
        return CorpusSource(name, name, "none", 0.5, origin, lambda read: iter(passages), held_out)

    corpus = build_corpus(
        tmp_path,
        sources=(
            source("wordnet", {False: [shared, trained, shared], True: [kept]}, held_out=True),
            source("wordnet-facts", {False: [shared], True: [trained]}, held_out=True),
            source("factbook", {False: [shared, kept]}),
        ),
    )
    assert {name: read_lines(path) for name, _, path in corpus.train} == {
        "wordnet": [shared, trained],
        "wordnet-facts": [shared],
        "factbook": [shared],
    }
    assert {name: read_lines(path) for name, path in corpus.held_out} == {"wordnet": [kept]}


def test_sources_that_are_left_out_leave_their_share_to_the_others() -> None:
    kept = all_but(["factbook", "cities"])  # 2 % each
    assert {source.name for source in SOURCES} - {one.name for one in kept} == {
        "factbook",
        "cities",
    }
    assert sum(source.share for source in kept) == pytest.approx(1)
    assert next(one.share for one in kept if one.name == "wordnet") == pytest.approx(0.17 / 0.96)
    assert all_but([]) == SOURCES
    with pytest.raises(UserError, match="Unknown source 'facbook'"):
        all_but(["facbook"])
    with pytest.raises(UserError, match="every source"):
        all_but([source.name for source in SOURCES])


def test_a_corpus_of_other_sources_is_not_taken_for_the_one_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.training.corpus.build.open_origin", lambda origin: None)

    def source(name: str) -> CorpusSource:
        passages = [Passage("1", f"It is of {name}.")]
        origin = SOURCES[0].origin
        return CorpusSource(name, name, "none", 0.5, origin, lambda read: iter(passages), False)

    both = (source("one"), source("two"))
    assert build_corpus(tmp_path, sources=both) == build_corpus(tmp_path, sources=both)
    with pytest.raises(UserError, match="of other sources"):
        build_corpus(tmp_path, sources=both[:1])


def test_counts_survive_the_file(tmp_path: Path) -> None:
    counts = count_corpus([("Paris, Paris!", ("Paris",)), ("In Paris.", ("Paris", "once"))])
    for name in ("corpus_counts.tsv.gz", "again"):
        save_corpus_counts(counts, tmp_path / name)
    written = tmp_path / "corpus_counts.tsv.gz"
    assert written.read_bytes() == (tmp_path / "again").read_bytes()
    loaded = load_corpus_counts(tmp_path)
    assert loaded == CorpusCounts({"in": 1, "paris": 3}, {"paris": 2})
    assert loaded.mentions("PARIS") == 3
    assert loaded.mentions("never seen") == 0


def test_a_file_that_holds_no_counts_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Corpus counts not found"):
        load_corpus_counts(tmp_path / "missing.gz")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(UserError, match="isn't a file of corpus counts"):
        load_corpus_counts(tmp_path / "text")


def test_own_files_are_divided_into_training_and_held_out_text(tmp_path: Path) -> None:
    corpus = corpus_from_files([write_text(tmp_path / "text.txt")], tmp_path / "corpus")
    (summary,) = corpus.summary
    assert summary.n_passages + summary.n_held_out == 120
    assert len(read_lines(corpus.train[0][2])) == summary.n_passages


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(None, "no such corpus file"), (b" \n ", "is empty"), (b"\x89PNG\xff", "isn't UTF-8 text")],
)
def test_a_corpus_file_that_cannot_be_used_is_named(
    tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    file = tmp_path / "text.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=complaint) as error:
        corpus_from_files([file], tmp_path / "corpus")
    assert str(file) in str(error.value)
