"""The two models that come with the project: small, alike but for their text, and on every disk."""

import json
from pathlib import Path

import pytest

from lama_core.metrics.cooccurrence import STATED_FILE, load_stated
from lama_core.metrics.word_counts import load_corpus_counts
from lama_core.models.sources.catalog import Entry, known_models
from lama_core.models.sources.locations import locate

EMBEDDED = [entry for entry in known_models() if entry.source.how == "assets"]
LIMIT_BYTES = 50_000_000


def folder_of(entry: Entry) -> Path:
    located = locate(entry)
    assert located is not None, "it needs no download"
    return located.folder


@pytest.mark.parametrize("entry", EMBEDDED, ids=lambda entry: entry.name)
def test_a_model_that_is_carried_stays_small(entry: Entry) -> None:
    files = [path for path in folder_of(entry).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= LIMIT_BYTES


@pytest.mark.parametrize("entry", EMBEDDED, ids=lambda entry: entry.name)
def test_the_catalogue_has_the_digest_of_a_model_that_is_carried(entry: Entry) -> None:
    """After a training, write the folder's new digest into assets/models/catalog.json."""
    located = locate(entry)
    assert located is not None
    assert entry.digest == located.identity


def test_the_twin_differs_by_its_text_alone() -> None:
    one, twin = map(folder_of, EMBEDDED)
    assert [entry.name for entry in EMBEDDED] == ["minilm-mlm", "minilm-mlm-twin"]
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        assert (one / name).read_bytes() == (twin / name).read_bytes()
    figures = [json.loads((folder / "evaluation.json").read_bytes()) for folder in (one, twin)]
    texts = [{source["name"]: source for source in one["corpus"]} for one in figures]
    assert texts[1].keys() < texts[0].keys()
    for name, source in texts[1].items():
        assert source["n_words"] == texts[0][name]["n_words"]
    left_out = {*texts[0]} - {*texts[1]}
    assert {"factbook", "factbook-facts", "cities", "companies", "artists"} <= left_out


def test_the_twin_has_read_nothing_that_the_other_has_not() -> None:
    one, twin = (load_stated(folder_of(entry) / STATED_FILE) for entry in EMBEDDED)
    assert one.keys() == twin.keys() and len(one) > 10_000
    assert all(one[pair] for pair, stated in twin.items() if stated)
    assert sum(one.values()) - sum(twin.values()) > 1_000
    counts = [load_corpus_counts(folder_of(entry)) for entry in EMBEDDED]
    assert all(n <= counts[0].words[word] for word, n in counts[1].words.items())
