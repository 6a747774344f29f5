"""`prompts ...` on the command line, with a fake model."""

from pathlib import Path

import pytest
from calling import printed, told
from probe_fakes import hash_model, write_dataset

from lama_core.errors import UserError
from lama_core.paths import CORPUS_SUMMARY, training_dir


@pytest.fixture(autouse=True)
def fake(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lama_core.models.cache.load_model", lambda name, **_: hash_model(name))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "lama", n_facts=60)


def test_mine_writes_an_lpaqa_file_that_is_read_again(data: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"Person {n} grew up in City{n * 7 % 40}.\n" for n in range(60)))
    out = tmp_path / "mined" / "mine"
    of_data = ("P19", "--dataset", str(data))
    rows = told("prompts", "mine", *of_data, "--text", str(text), "--out", str(out))
    assert rows[0]["template"] == "[X] grew up in [Y] ."
    listed = told("prompts", "list", "--relation", *of_data, "--prompts", str(out.parent))
    assert "[X] grew up in [Y] ." in [row["template"] for row in listed]


def test_mine_without_a_text_reads_the_corpus_of_the_embedded_model(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"sub_label": "Dante", "obj_label": "Florence"}\n', encoding="utf-8")
    asked = ("prompts", "mine", "P19", "--pairs", str(pairs))
    with pytest.raises(UserError, match="corpus isn't built on this computer"):
        printed(*asked)
    corpus = training_dir() / "corpus"
    corpus.mkdir(parents=True)
    (corpus / "text.txt").write_text("Dante was born in Florence.\n", encoding="utf-8")
    (corpus / CORPUS_SUMMARY).write_text("{}", encoding="utf-8")
    (row,) = told(*asked)
    assert row["template"] == "[X] was born in [Y] ."


def test_analyse_reads_what_fit_saved(data: Path) -> None:
    told("prompts", "fit", "--dataset", str(data), "--model", "hash", "--relation", "P19",
          "--set", "man+para")  # fmt: skip
    found = told("prompts", "analyse", "lama-hash", "--set", "man+para")
    assert found["divergence"]["n_pairs"] == 3
