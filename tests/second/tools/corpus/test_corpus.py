"""The corpus: what the sources' texts become, and what is kept from training."""

from pathlib import Path

import pytest

from lama_core.errors import UserError
from lama_core.metrics.word_counts import (
    CorpusCounts,
    count_corpus,
    load_corpus_counts,
    save_corpus_counts,
)
from tools.training.corpus.build import build_corpus, is_held_out, read_lines
from tools.training.corpus.source_list import SOURCES
from tools.training.corpus.source_passages import CorpusSource, Passage


def test_what_two_sources_state_counts_in_both_but_is_never_held_out_of_one(tmp_path: Path) -> None:
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
