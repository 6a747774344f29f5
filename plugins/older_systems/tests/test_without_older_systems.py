"""Without this plug-in: what needs it says so, and finished runs are shown as before."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from calling import invoke
from old_releases import make_transformer_xl

from lama_core.errors import UserError
from lama_core.models.cache import check_and_add_model, load_model
from lama_core.models.conversion.convert import convert
from lama_core.models.registry import open_model
from lama_core.models.sources.catalog import find_model, known_models
from lama_core.models.sources.locations import LocatedModel, fetch

pytestmark = pytest.mark.usefixtures("home")
FACTS = """subject,object,relation,template
France,Paris,capital,The capital of [X] is [Y] .
Italy,Rome,capital,The capital of [X] is [Y] .
"""
NEEDS = r"needs the plug-in older_systems, which is part of lama-explorer but not installed here"


def test_a_converted_folder_names_the_plugin_and_its_runs_are_shown(
    tmp_path: Path, take_away: Callable[[], None]
) -> None:
    make_transformer_xl(tmp_path / "release")
    convert(tmp_path / "release", tmp_path / "xl")
    (tmp_path / "facts.csv").write_text(FACTS)
    model = f"{tmp_path / 'xl'}+memory=none"
    words = ["probe", "--dataset", str(tmp_path / "facts.csv"), "--model", model, "--json"]
    shown = ["results", json.loads(invoke(words).stdout)[0]["run"], "--json"]
    before = invoke(shown)
    assert [one["model"] for one in json.loads(before.stdout)] == [model]
    assert json.loads(before.stdout)[0]["mean_rank"] >= 1
    take_away()
    after = invoke(shown)
    assert (after.exit_code, after.stdout) == (0, before.stdout)
    shutil.copytree(tmp_path / "xl", tmp_path / "other")  # no model of this name is loaded
    with pytest.raises(UserError, match=f"transformer-xl {NEEDS}"):
        load_model(str(tmp_path / "other"))
    with pytest.raises(UserError, match=f"transformer-xl {NEEDS}"):
        check_and_add_model(str(tmp_path / "other"))
    with pytest.raises(UserError, match=f"transformer-xl {NEEDS}"):  # the catalogue has the kind
        open_model("it", LocatedModel(tmp_path / "other", "digest"), "causal", "fp32")


@pytest.mark.parametrize(
    "name", [entry.name for entry in known_models() if entry.source.how == "release"]
)
def test_nothing_is_downloaded_for_a_release_that_nothing_converts(
    name: str, take_away: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    take_away()
    monkeypatch.setattr("lama_core.downloads.transfer.fetched", None)
    with pytest.raises(UserError, match=NEEDS):
        fetch(find_model(name))


def test_elmos_release_isnt_downloaded_without_h5py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    monkeypatch.setattr("lama_core.downloads.transfer.fetched", None)
    with pytest.raises(UserError, match=r"h5py is not installed\. Run `pip install h5py`"):
        fetch(find_model("elmo"))
