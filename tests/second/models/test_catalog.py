"""The models that the project knows by name: what is said of them, and what can be had."""

import re

import pytest

from lama_core.errors import UserError
from lama_core.models.languages import language_note
from lama_core.models.protocols import KINDS
from lama_core.models.sources.catalog import Entry, find_model, known_models
from lama_core.models.sources.locations import fetch, locate
from lama_core.paths import DOCS

HUB = [entry for entry in known_models() if entry.source.how == "hub"]
REFUSED = [entry for entry in known_models() if entry.source.how == "none"]


def named(entry: Entry) -> str:
    return entry.name


def test_a_name_a_title_and_a_place_mean_one_model() -> None:
    for names in (
        [entry.name for entry in known_models()],
        [entry.title for entry in known_models()],
        [entry.source.place for entry in known_models() if entry.source.place],
    ):
        assert sorted(set(names)) == sorted(names)
    for entry in known_models():
        assert find_model(entry.name) is find_model(entry.title) is entry


@pytest.mark.parametrize("entry", HUB, ids=named)
def test_what_a_model_of_the_hub_is_and_was_trained_on_is_said(entry: Entry) -> None:
    assert entry.kind in KINDS
    assert entry.n_parameters and entry.corpus and entry.corpus_size and entry.licence
    assert entry.cased is not None
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", entry.source.place)
    assert re.fullmatch(r"|petroni2019|arXiv:\d{4}\.\d{5}", entry.paper)


def test_a_model_of_the_hub_has_a_commit_but_for_those_that_the_documentation_names() -> None:
    pinned = {
        entry.name for entry in HUB if re.fullmatch(r"[0-9a-f]{40}", entry.source.revision or "")
    }
    others = {entry.name: entry.source.revision for entry in HUB if entry.name not in pinned}
    assert others == {"bert-large-cased": None, "t5-v1.1-base": "refs/pr/1"}
    documented = (DOCS / "adding.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in documented for name in others)


@pytest.mark.parametrize("entry", [one for one in HUB if one.source.n_bytes], ids=named)
def test_a_download_is_of_weights_of_16_or_32_bits(entry: Entry) -> None:
    assert entry.n_parameters and entry.source.n_bytes
    # Masks, and tables that are stored twice, are in the files and no parameters.
    assert 1.95 <= entry.source.n_bytes / entry.n_parameters <= 5


@pytest.mark.parametrize("entry", REFUSED, ids=named)
def test_a_model_that_nothing_runs_is_refused_with_the_reason(entry: Entry) -> None:
    assert entry.source.why and not entry.source.why.endswith(".")
    assert locate(entry) is None
    with pytest.raises(
        UserError, match=re.escape(f"{entry.title} can't be run here: {entry.source.why}")
    ):
        fetch(entry)


ENGLISH = find_model("minilm-mlm")
MANY = find_model("xlm-roberta-base")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The capital of France is .", ""),
        ("La capitale de la France est .", ""),  # the script alone is looked at
        ("I love 🙂 and .", ""),
        ("法国的首都是。", "Chinese characters"),
        ("日本の首都はです", "Japanese"),
        ("Столица Франции", "Cyrillic script"),
        ("😀😀  😀", "no words"),
    ],
)
def test_a_text_in_another_script_names_the_models_that_read_english(text: str, said: str) -> None:
    note = language_note(text, [ENGLISH, MANY])
    assert (said in note) if said else note == ""
    assert not said or (ENGLISH.title in note and MANY.title not in note)
    assert language_note(text, [MANY]) == ""
