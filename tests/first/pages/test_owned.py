"""What only the owner does on the pages: replacing, renaming, deleting; and unloading models."""

import os
from pathlib import Path

import opening
import pytest
from streamlit.testing.v1 import AppTest

from lama_core.datasets.library import download, installed
from lama_core.models import devices
from lama_core.models.cache import ModelCache
from lama_core.models.devices import VARIABLE
from lama_core.runs.find import runs_dir
from lama_core.runs.manage import list_kept
from pages.ui.shared import jobs, visitors
from tools.bench.made_up import make_runs

pytestmark = pytest.mark.usefixtures("home")
TABLE = "subject,object,template\nFrance,Paris,[X] has [Y] .\n"


def open_page(name: str, **params: str) -> AppTest:
    app = opening.open_page(name, **params)
    assert not app.error
    return app


def import_table(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text(TABLE)
    download.import_dataset(path)
    return path


def visited(monkeypatch: pytest.MonkeyPatch, *, by_owner: bool) -> None:
    """Where the visitor comes from, which a page without a browser can't know."""
    monkeypatch.setattr("pages.ui.shared.visitors.is_local_connection", lambda *_: by_owner)


def labels(app: AppTest) -> set[str]:
    return {button.label for button in app.button}


def test_an_import_that_replaces_waits_for_a_yes_and_a_stranger_imports_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, asked = import_table(tmp_path), []
    monkeypatch.setattr(jobs, "start", lambda name, request, **_: asked.append(request))
    app = open_page("data", tab="Import")
    app.text_input(key="import path 0").set_value(str(path)).run()
    next(button for button in app.button if button.label == "Import").click()
    app.run()
    assert asked == []
    assert "1 relation, 1 fact" in app.warning[0].value.replace("\\", "")
    app.button(key="replace").click().run()
    assert asked == [download.ImportRequest(str(path), None, replace=True)]
    visited(monkeypatch, by_owner=False)
    app = open_page("data", tab="Import")
    assert not {"Import", "Replace it"} & labels(app)
    assert not [field for field in app.text_input if "import" in (field.key or "")]
    assert any("Imports require" in caption.value for caption in app.caption)


def test_the_owner_renames_and_deletes_a_source(tmp_path: Path) -> None:
    import_table(tmp_path)
    app = open_page("data", source="mine")
    app.text_input(key="new name of mine").set_value("other").run()
    app.button(key="rename mine").click().run()
    assert installed.installed_names() == ("other",)
    assert app.session_state["source"] == "other"
    app.button(key="delete other").click().run()
    assert installed.installed_names() == ()
    assert not app.exception and app.session_state["source"] == "starter"


def test_the_owner_names_and_deletes_runs_and_a_stranger_only_sees_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = make_runs(runs_dir(), n_relations=2, n_facts=20)
    name = made[0].info.id
    app = open_page("data", tab="Runs", run=name)
    shown = app.dataframe[0].value
    assert len(shown) == len(list_kept())
    app.text_input(key=f"title of {name}").set_value("First").run()
    app.button(key=f"rename {name}").click().run()
    assert "→ First" in set(app.dataframe[0].value["run"])
    with monkeypatch.context() as patched:
        visited(patched, by_owner=False)
        assert not {"Save the name", "Delete permanently"} & labels(
            open_page("data", tab="Runs", run=name)
        )
    app.button(key=f"delete {name}").click().run()
    assert name not in {one.name for one in list_kept()}
    assert not app.exception and not app.error
    bundled = next(one.name for one in list_kept() if one.bundled)
    assert "Delete permanently" not in labels(open_page("data", tab="Runs", run=bundled))


class Weights:
    """Stands for a model: all that the cache asks of one."""

    n_bytes = 10


def test_the_owner_alone_chooses_where_models_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "cpu")
    monkeypatch.setattr(devices, "available_devices", lambda: ("cuda:0", "cpu", "spread"))
    monkeypatch.setattr(devices, "device_title", lambda name: f"the {name}")
    monkeypatch.setattr(devices, "free_bytes", lambda _: 5e9)
    cache = ModelCache(max_bytes=30)
    cache.get("minilm-mlm", "fp32", Weights)
    monkeypatch.setattr("lama_core.service.queries.CACHE", cache)
    app = open_page("models")
    field = app.selectbox(key="device")
    assert field.options == [
        "the best available: the cuda:0",
        *(f"the {name} · 5.0 GB free" for name in ("cuda:0", "cpu", "spread")),
    ]
    assert field.value == "cpu" and [one.device for one in cache.held()] == ["cpu"]
    field.select("cuda:0").run()
    assert os.environ[VARIABLE] == "cuda:0" and cache.held() == ()
    assert open_page("models").selectbox(key="device").value == "cuda:0"
    monkeypatch.setattr(visitors, "may", lambda what: what != "manage")
    monkeypatch.setattr(devices, "available_devices", lambda: pytest.fail("nobody asked"))
    assert "device" not in {one.key for one in open_page("models").selectbox}
