"""Getting and importing: whole or not at all, and the list of what is here."""

import errno
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from lama_core.datasets import load_analogies, load_dataset
from lama_core.datasets.library import download, installed, manage, published
from lama_core.datasets.library.published import Source
from lama_core.datasets.nested_folders import files_under
from lama_core.downloads import SourceFile, transfer
from lama_core.errors import UserError

RELATIONS = '{"relation": "P36", "template": "The capital of [X] is [Y].", "type": "1-1"}\n'
pytestmark = pytest.mark.usefixtures("home")
FACTS = '{"sub_label": "Peru", "obj_label": "Lima"}\n{"sub_label": "Lima", "obj_label": "lima"}\n'
TABLE = "subject,object,template\nFrance,Paris,[X] has [Y] .\n"


def make_lama(root: Path, facts: str = FACTS) -> Path:
    (root / "TREx").mkdir(parents=True)
    (root / "relations.jsonl").write_text(RELATIONS)
    (root / "TREx" / "P36.jsonl").write_text(facts)
    return root


def zip_folder(folder: Path, target: Path) -> Path:
    with zipfile.ZipFile(target, "w") as opened:
        for path in sorted(folder.rglob("*")):
            opened.write(path, path.relative_to(folder.parent))
    return target


def leftovers() -> list[str]:
    return [path.name for path in installed.datasets_dir().iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("wrapping", ["", "facts/", "facts/csv/"])
def test_a_table_in_an_archive_is_imported(tmp_path: Path, wrapping: str) -> None:
    path = tmp_path / "zipped.zip"
    with zipfile.ZipFile(path, "w") as archived:
        archived.writestr(f"{wrapping}OWN.CSV", TABLE)
        archived.writestr("__MACOSX/._OWN.CSV", "\0")  # what a Mac adds
    assert len(download.import_dataset(path).dataset.relations) == 1
    dataset = load_dataset("zipped")
    assert [fact.object for fact in dataset.facts] == ["Paris"]


def test_several_tables_in_an_archive_are_refused_with_their_number(tmp_path: Path) -> None:
    path = tmp_path / "two.zip"
    with zipfile.ZipFile(path, "w") as archived:
        archived.writestr("a.csv", TABLE)
        archived.writestr("more/b.csv", TABLE)
    with pytest.raises(UserError, match="It has 2 tables: give one of them"):
        download.import_dataset(path)


def test_analogies_are_imported_and_loaded_as_such(tmp_path: Path) -> None:
    folder = tmp_path / "pairs" / "1_Inflectional_morphology"
    folder.mkdir(parents=True)
    (folder / "I01 [noun - plural].txt").write_text("cat\tcats\n")
    download.import_dataset(tmp_path / "pairs")
    assert load_analogies("pairs").n_items == 1
    assert installed.analogy_names() == ("starter-analogies", "pairs")
    with pytest.raises(UserError, match="analogies, not facts"):
        load_dataset("pairs")


def test_what_was_whole_before_stays_when_the_new_one_is_bad(tmp_path: Path) -> None:
    download.import_dataset(make_lama(tmp_path / "good"), name="mine")
    with pytest.raises(UserError, match="no usable fact"):
        download.import_dataset(make_lama(tmp_path / "bad", "{"), name="mine", replace=True)
    assert len(load_dataset("mine").facts) == 2
    assert leftovers() == []


def test_links_in_an_imported_folder_are_not_followed(tmp_path: Path) -> None:
    root = make_lama(tmp_path / "mine")
    (tmp_path / "secret.jsonl").write_text(FACTS)
    (root / "TREx" / "P37.jsonl").symlink_to(tmp_path / "secret.jsonl")
    folder = download.import_dataset(root).folder
    assert not (folder / "TREx" / "P37.jsonl").exists()


def test_the_projects_own_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="another name"):
        download.import_dataset(make_lama(tmp_path / "starter"))


def test_a_full_disk_is_said_and_what_was_there_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_lama(tmp_path / "mine")
    download.import_dataset(root)

    def no_space(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(download, "copy_file", no_space)
    with pytest.raises(UserError, match="the disk is full"):
        download.import_dataset(root, replace=True)
    monkeypatch.undo()
    monkeypatch.setenv("LAMA_HOME", str(tmp_path / "home"))
    assert len(load_dataset("mine").facts) == 2
    assert leftovers() == []


def test_getting_a_published_source_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = zip_folder(make_lama(tmp_path / "data"), tmp_path / "data.zip")
    steps: list[str] = []

    monkeypatch.setattr(transfer, "fetch", lambda *_, **__: path)
    source = Source("lama", "LAMA", "facts", "-", "-", "-", (SourceFile("http://x/d", "data.zip"),))
    found = download.get_dataset(
        "lama", source=source, on_progress=lambda step: steps.append(step.stage)
    )
    assert found.folder == installed.installed_dir("lama")
    assert load_dataset("lama").licence == published.source("lama").licence
    assert steps == ["Unpacking data.zip"] * len(steps) and steps


def test_a_portals_page_in_place_of_an_archive_is_not_kept() -> None:
    source = Source("lama", "LAMA", "facts", "-", "-", "-", (SourceFile("x:/d", "data.zip"),))
    folder = download.downloads_dir("lama")
    folder.mkdir(parents=True)
    (folder / "data.zip").write_text("<html>Please log in</html>")
    with pytest.raises(UserError, match="broken or truncated"):
        download.get_dataset("lama", source=source)
    assert not (folder / "data.zip").exists()
    assert "lama" not in installed.installed_names()


def test_lama_uhn_is_computed_from_lama(tmp_path: Path) -> None:
    download.import_dataset(make_lama(tmp_path / "lama"))
    download.get_dataset("lama-uhn", compute=True)
    # "Lima" stands in its subject; "Peru" has nothing of "Lima".
    assert [fact.subject for fact in load_dataset("lama-uhn").facts] == ["Peru"]


def test_bear_is_taken_out_of_its_archive_with_the_domains_that_come_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, template in (("BEAR", "[X] has [Y]."), ("BEAR-big", "[X] is in [Y].")):
        folder = tmp_path / "BEAR-725b" / name
        folder.mkdir(parents=True)
        (folder / "metadata_relations.json").write_text(
            f'{{"P36": {{"templates": ["{template}"]}}}}'
        )
        (folder / "P36.jsonl").write_text(FACTS)
    zip_folder(tmp_path / "BEAR-725b", tmp_path / "bear.zip")
    (tmp_path / "relation_info.json").write_text('{"P36": {"domains": ["Geographic"]}}')
    monkeypatch.setattr(transfer, "fetch", lambda file, *_, **__: tmp_path / file.name)
    found = download.get_dataset("bear")
    (relation,) = load_dataset("bear").relations
    assert (relation.prompts[0].template, relation.domains) == ("[X] has [Y].", ("Geographic",))
    assert sorted(path.name for path in found.folder.iterdir()) == [
        "P36.jsonl", "metadata_relations.json", "relation_info.json", "source.json",
    ]  # fmt: skip


def test_a_source_is_fetched_by_one_command_at_a_time(home: Path) -> None:
    folder = download.downloads_dir("bats")
    folder.mkdir(parents=True)
    with (
        FileLock(folder / ".lock"),
        pytest.raises(UserError, match=r"Another process .* is downloading"),
    ):
        download.get_dataset("bats")


def test_facts_without_templates_use_those_of_lama(tmp_path: Path) -> None:
    download.import_dataset(make_lama(tmp_path / "lama"))
    bare = make_lama(tmp_path / "bare")
    (bare / "relations.jsonl").unlink()
    download.import_dataset(bare)
    assert load_dataset("bare").relations[0].prompts[0].template == "The capital of [X] is [Y]."
    assert (manage.users_of("lama"), manage.users_of("bare")) == (("bare",), ())


@pytest.mark.parametrize(
    "damage",
    [
        lambda record: record.write_text("{"),
        lambda record: record.write_bytes(b"\xff\xfe"),
        lambda record: record.write_text('["mine"]'),
        lambda record: record.write_text(record.read_text().replace('"facts"', '"wine"')),
        lambda record: record.write_text(record.read_text().replace(": 2", ': "two"')),
        lambda record: (record.unlink(), os.mkfifo(record)),
        lambda record: (record.unlink(), record.mkdir()),
        lambda record: record.unlink(),
        lambda record: os.truncate(record, 100 << 30),
    ],
)
def test_a_damaged_record_is_said_and_stops_no_other(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    download.import_dataset(make_lama(tmp_path / "mine"))
    download.import_dataset(make_lama(tmp_path / "sound"))
    damage(installed.installed_dir("mine") / installed.RECORD_FILE)
    rows = {row.name: row for row in installed.listing()}
    assert "source.json" in rows["mine"].fault and "install the dataset again" in rows["mine"].fault
    assert not rows["sound"].fault and len(load_dataset("sound").facts) == 2
    assert installed.installed_names() == ("mine", "sound")
    assert "mine" not in installed.dataset_names()
    with pytest.raises(UserError, match="install the dataset again"):
        load_dataset("mine")
    download.import_dataset(tmp_path / "mine", replace=True)
    assert len(load_dataset("mine").facts) == 2


def test_an_import_replaces_only_when_told_to(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(TABLE)
    download.import_dataset(make_lama(tmp_path / "mine"))
    with pytest.raises(UserError, match=r"mine \(1 relation, 2 facts\) is already installed"):
        download.import_dataset(tmp_path / "mine.csv")
    assert len(load_dataset("mine").facts) == 2
    download.import_dataset(tmp_path / "mine.csv", replace=True)
    assert len(load_dataset("mine").facts) == 1
    assert leftovers() == []


def test_a_renamed_source_is_the_same_under_its_new_name_only(tmp_path: Path) -> None:
    before = download.import_dataset(make_lama(tmp_path / "mine")).dataset
    assert manage.rename_dataset("mine", "my own") == "my-own"
    assert installed.dataset_names() == ("starter", "my-own")
    row = installed.read_record("my-own")
    assert (row.name, row.title) == ("my-own", "my-own")
    assert load_dataset("my-own").digest == before.digest
    for taken in ("my-own", "starter", "lama"):
        with pytest.raises(UserError, match="is taken"):
            manage.rename_dataset("my-own", taken)


def test_a_removed_source_is_gone_with_its_bytes(tmp_path: Path) -> None:
    folder = download.import_dataset(make_lama(tmp_path / "mine")).folder
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert manage.dataset_bytes("mine") == manage.delete_dataset("mine") == size
    assert list(installed.datasets_dir().iterdir()) == []
    for name in ("mine", "starter", "../../mine", str(tmp_path / "mine"), ""):
        with pytest.raises(UserError):
            manage.delete_dataset(name)
    assert (tmp_path / "mine" / "relations.jsonl").is_file()


@pytest.mark.parametrize("errno_", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_a_library_that_cannot_be_written_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errno_: int
) -> None:
    download.import_dataset(make_lama(tmp_path / "mine"))

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno_, os.strerror(errno_))

    for name in ("mkdir", "rename", "replace", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, fail)
    assert installed.installed_names() == ("mine",) and len(load_dataset("mine").facts) == 2
    assert not any(row.fault for row in installed.listing())
    with pytest.raises(UserError, match="was not installed, nothing was changed"):
        download.import_dataset(tmp_path / "mine", replace=True)
    with pytest.raises(UserError, match="can't be deleted"):
        manage.delete_dataset("mine")


def test_hidden_folders_of_a_dataset_are_not_entered(tmp_path: Path) -> None:
    source = tmp_path / "mine"
    deep = source / ".venv" / Path(*"d" * 40)
    deep.mkdir(parents=True)
    (deep / "facts.csv").write_text("subject,object\nPeru,Lima\n")
    (source / "facts.csv").write_text("subject,object,template\nPeru,Lima,[X] has [Y] .\n")
    (source / ".hidden.csv").write_text("subject,object\nPeru,Quito\n")
    assert [path.name for path in files_under(source, hidden=False)] == [".hidden.csv", "facts.csv"]
    download.import_data(str(source), name="mine")
    assert [fact.object for fact in load_dataset("mine").facts] == ["Lima"]
