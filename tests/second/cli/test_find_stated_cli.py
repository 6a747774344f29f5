"""`data find-cooccurring` on texts of a few passages and a dataset of two relations."""

import json
from pathlib import Path

import pytest
from calling import printed
from data_files import write_lama

from lama_core.metrics.cooccurrence import load_stated
from lama_core.paths import CORPUS_SUMMARY, training_dir

RELATIONS = (
    {"relation": "P30", "template": "[X] lies on the continent of [Y].", "type": "N-1",
     "paraphrases": ["The continent of [X] is [Y]."]},
    {"relation": "P36", "template": "The capital of [X] is [Y].", "type": "1-1"},
)  # fmt: skip
FACTS = {"P30": (("Cairo", "Africa"), ("Oslo", "Europe")), "P36": (("Egypt", "Cairo"),)}
TEXTS = {
    "cities": ("Cairo lies on the continent of Africa.", "Europe has Oslo."),
    "wordnet": ("They say that capital of Egypt is Cairo, a city.", "Cairo is in Africa."),
}


@pytest.fixture(autouse=True)
def corpus(home: Path) -> None:
    """The embedded model's training text, as if it was built."""
    folder = training_dir() / "corpus"
    folder.mkdir(parents=True)
    for name, texts in TEXTS.items():
        (folder / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    (folder / "wordnet.held-out.txt").write_text("Oslo is in Europe.\n", "utf-8")
    (folder / CORPUS_SUMMARY).write_text("{}", "utf-8")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    relations = ({"label": one["relation"], **one} for one in RELATIONS)
    facts = {
        relation: [
            {"sub_label": subject, "sub_uri": subject, "obj_label": gold, "obj_uri": gold}
            for subject, gold in pairs
        ]
        for relation, pairs in FACTS.items()
    }
    return write_lama(tmp_path / "data", relations, facts)


def test_each_source_is_searched_for_pairs_sentences_and_forms(data: Path, tmp_path: Path) -> None:
    stated = tmp_path / "stated.tsv.gz"
    words = ("data", "find-cooccurring", "--dataset", str(data), "--out", str(stated))
    found = json.loads(printed(*words, "--json"))
    assert (found["pairs"], found["stated"], found["sentences"]) == (3, 3, 2 * 2 + 1)
    assert (found["verbatim"], found["almost"]) == (1, 2)
    cities, wordnet = found["sources"]
    assert cities == {"source": "cities", "n_passages": 2, "n_pairs": 2, "n_verbatim": 1,
                      "n_almost": 1, "n_wordings": 1}  # fmt: skip
    assert wordnet == {"source": "wordnet", "n_passages": 2, "n_pairs": 2, "n_verbatim": 0,
                       "n_almost": 1, "n_wordings": 0}  # fmt: skip
    manual, paraphrase, capital = found["wordings"]
    assert (manual["form_in"], manual["n_sentences"], manual["n_verbatim"]) == (["cities"], 2, 1)
    assert (paraphrase["form_in"], paraphrase["n_almost"]) == ([], 0)
    assert (capital["template"], capital["n_almost"]) == ("The capital of [X] is [Y].", 1)
    assert load_stated(stated)["Egypt", "Cairo"]


def test_an_own_text_is_searched(data: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"text": "Oslo is in Europe."}\n', "utf-8")
    words = ("data", "find-cooccurring", "--dataset", str(data))
    found = json.loads(printed(*words, "--corpus", str(tmp_path / "notes.jsonl"), "--json"))
    assert (found["pairs"], found["stated"]) == (3, 1)
    assert [source["source"] for source in found["sources"]] == ["notes"]
    assert not any(one["form_in"] for one in found["wordings"])  # known of starter alone
