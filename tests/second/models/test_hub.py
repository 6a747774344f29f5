"""Models from the hub, by a server on this machine that answers as it does."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_server import COMMIT, Hub, Repository, fresh_cache, point_to, serve
from tiny_models import save_model_folder

from lama_core.errors import UserError
from lama_core.models.cache import CACHE, check_and_add_model, load_model
from lama_core.models.model_folder import folder_digest
from lama_core.models.sources.catalog import added_models, find_model
from lama_core.models.sources.locations import fetch, locate
from lama_core.progress import Progress
from lama_core.scoring.blanks import parse_query


@pytest.fixture(scope="module")
def tiny_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = save_model_folder("bert-cased", tmp_path_factory.mktemp("hub") / "bert")
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from huggingface_hub.utils import _http

    monkeypatch.setenv("LAMA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(_http.time, "sleep", lambda _seconds: None)  # between its retries
    fresh_cache(tmp_path / "hub", monkeypatch)
    return tmp_path


@pytest.fixture
def hub(home: Path, monkeypatch: pytest.MonkeyPatch, tiny_files: dict[str, bytes]) -> Iterator[Hub]:
    with serve({"lab/tiny": Repository(dict(tiny_files))}) as server:
        point_to(server.address, monkeypatch)
        yield server


def test_a_hub_name_is_fetched_once_and_then_found_without_the_hub(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = find_model("lab/tiny")
    assert locate(entry) is None
    reports: list[Progress] = []
    located = fetch(entry, reports.append)
    assert located.identity == f"lab/tiny@{COMMIT}"
    stage, done, total = reports[-1].stage, reports[-1].done, reports[-1].total
    assert done == total and "lab/tiny" in stage
    point_to("http://127.0.0.1:9", monkeypatch)
    assert fetch(entry) == located
    model = load_model("lab/tiny")
    try:
        assert model.kind == "masked"
        assert model.encode(parse_query("Paris is in [MASK]."), "both").positions == (4,)
    finally:
        CACHE.drop("lab/tiny", "fp32")


def test_a_known_model_is_fetched_at_the_commit_that_the_catalogue_names(hub: Hub) -> None:
    entry = find_model("electra-small-generator")
    commit = entry.source.revision
    assert commit is not None and commit != COMMIT
    files = hub.repositories["lab/tiny"].files
    hub.repositories[entry.source.place] = Repository(files, commit=commit, references=())
    assert fetch(entry).identity == f"{entry.source.place}@{commit}"
    assert locate(entry) is not None
    hub.repositories[entry.source.place].commit = COMMIT
    assert fetch(entry).identity == f"{entry.source.place}@{commit}"


def test_a_revision_is_part_of_the_name(hub: Hub) -> None:
    hub.repositories["lab/tiny"].references = ("main", "refs/pr/3")
    assert fetch(find_model("lab/tiny@refs/pr/3")).identity == f"lab/tiny@{COMMIT}"
    assert locate(find_model("lab/tiny@refs/pr/3")) is not None
    with pytest.raises(UserError, match="has no revision 'v9'"):
        fetch(find_model("lab/tiny@v9"))


def test_a_gated_model_asks_for_the_agreement(hub: Hub) -> None:
    hub.repositories["lab/tiny"].refuse["model.safetensors"] = (403, "GatedRepo")
    with pytest.raises(UserError, match="requires an agreement"):
        fetch(find_model("lab/tiny"))
    assert locate(find_model("lab/tiny")) is None


OTHER = "89abcdef" * 5


def test_what_a_name_stood_for_first_is_kept_until_it_is_accepted_anew(
    hub: Hub, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = find_model("lab/tiny")
    fetch(entry)
    shutil.rmtree(home / "hub")  # the cache is lost, and the hub has moved on
    hub.repositories["lab/tiny"].commit = OTHER
    with pytest.raises(UserError) as caught:
        fetch(entry)
    said = str(caught.value)
    assert COMMIT in said and OTHER in said and "`models get lab/tiny --repin`" in said
    assert locate(entry) is None
    assert fetch(entry, repin=True).identity == f"lab/tiny@{OTHER}"
    assert fetch(entry).identity == f"lab/tiny@{OTHER}"


def test_the_pinned_commit_is_read_wherever_another_program_moves_the_name(
    hub: Hub, home: Path
) -> None:
    entry = find_model("lab/tiny")
    located = fetch(entry)
    repository = home / "hub" / "models--lab--tiny"
    shutil.copytree(located.folder, repository / "snapshots" / OTHER)
    (repository / "refs" / "main").write_text(OTHER, encoding="ascii")
    assert locate(entry) == located == fetch(entry)


def test_files_of_a_commit_that_changed_are_shown_with_both_digests(hub: Hub) -> None:
    entry = find_model("lab/tiny")
    located = fetch(entry)
    before = folder_digest(located.folder)
    (located.folder / "tokenizer_config.json").unlink()
    (located.folder / "tokenizer_config.json").write_text("{}", encoding="utf-8")
    after = folder_digest(located.folder)
    with pytest.raises(UserError) as caught:
        load_model("lab/tiny")
    assert before in str(caught.value) and after in str(caught.value)
    assert "--repin" in str(caught.value)


def test_a_damaged_note_of_the_pins_is_named_and_lists_go_on(hub: Hub, home: Path) -> None:
    entry = find_model("lab/tiny")
    fetch(entry)
    (home / "home" / "data" / "models-pinned.json").write_text("[]", encoding="utf-8")
    assert locate(entry) is None
    with pytest.raises(UserError, match=r"models-pinned\.json"):
        fetch(entry)


def test_pickled_weights_on_the_hub_are_refused_before_any_download(
    hub: Hub, tiny_files: dict[str, bytes]
) -> None:
    files = {**tiny_files, "pytorch_model.bin": b"\x80\x04pickle"}
    del files["model.safetensors"]
    hub.repositories["lab/tiny"].files = files
    with pytest.raises(UserError, match="only pickled weights"):
        fetch(find_model("lab/tiny"))
    assert not [path for path in hub.asked if "/resolve/" in path]


def test_pickled_weights_beside_safetensors_are_left_where_they_are(hub: Hub) -> None:
    hub.repositories["lab/tiny"].files["pytorch_model.bin"] = b"\x80\x04pickle"
    hub.repositories["lab/tiny"].files["modeling_evil.py"] = b"raise SystemExit"
    located = fetch(find_model("lab/tiny"))
    names = {file.name for file in located.folder.iterdir()}
    assert "model.safetensors" in names
    assert not names & {"pytorch_model.bin", "modeling_evil.py"}


def test_a_hub_name_is_added_only_if_the_hub_has_it(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check_and_add_model("lab/tiny").added
    with pytest.raises(UserError, match=r"The hub has no model 'foo/bar-nonexistent'"):
        check_and_add_model("foo/bar-nonexistent")
    point_to("http://127.0.0.1:9", monkeypatch)
    said = r"Can't check foo/bar-nonexistent: it is not on this machine and the hub can't be"
    with pytest.raises(UserError, match=said):
        check_and_add_model("foo/bar-nonexistent")
    assert [entry.name for entry in added_models()] == ["lab/tiny"]
