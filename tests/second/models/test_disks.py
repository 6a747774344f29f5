"""Models on a disk that is gone, read-only, full or damaged: shown as what they are."""

from pathlib import Path

import pytest
from tiny_models import save_model_folder

from lama_core.errors import UserError
from lama_core.models.sources.catalog import (
    add_model,
    added_models,
    all_models,
    find_model,
    forget_model,
    known_models,
)
from lama_core.models.sources.locations import fetch, locate

pytestmark = pytest.mark.usefixtures("home")


def write_list(home: Path, content: str) -> Path:
    path = home / "data" / "models.json"
    path.parent.mkdir(parents=True)
    path.write_text(content, encoding="utf-8")
    return path


def test_a_folder_that_is_gone_stays_on_the_list_and_can_be_taken_off(tmp_path: Path) -> None:
    folder = save_model_folder("bert-cased", tmp_path / "mine")
    add_model(str(folder))
    folder.rename(tmp_path / "elsewhere")
    (gone,) = added_models()
    assert (gone.name, gone.source.how) == (str(folder), "folder")
    assert locate(gone) is None
    assert find_model(str(folder)) == gone
    assert all_models() == (*known_models(), gone)
    with pytest.raises(UserError, match=r"Model folder .* not found: .*remove it from your list"):
        fetch(gone)
    forget_model(gone.name)
    assert added_models() == ()


@pytest.mark.parametrize("content", ("{", "[1]", "[" * 100_000))
def test_a_damaged_list_is_an_entry_that_says_so(content: str, home: Path) -> None:
    path = write_list(home, content)
    (entry,) = added_models()
    assert entry.source.how == "none"
    assert str(path) in entry.source.why
    assert locate(entry) is None
    assert find_model("minilm-mlm").name == "minilm-mlm"
    with pytest.raises(UserError, match=r"models\.json is damaged"):
        add_model("lab/tiny")
    assert path.read_text(encoding="utf-8") == content
    forget_model(entry.name)
    assert added_models() == ()
    assert path.with_suffix(".damaged.json").read_text(encoding="utf-8") == content
