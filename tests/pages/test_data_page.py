"""The Data page shows what a source says of its relations."""

import shutil
from pathlib import Path

import pytest
from opening import open_page
from written_statements import write_bear

from lama_core.bench.made_up import make_runs
from lama_core.datasets.library import download
from pages.ui.shared.text import counted

pytestmark = pytest.mark.usefixtures("home")
FACTS = [("Peru", "Lima"), ("USA", "New York")]


def test_an_answer_space_and_domains_are_shown_as_the_data_have_them(tmp_path: Path) -> None:
    folder = write_bear(tmp_path / "cities", FACTS, ["Lima", "New York", "*Oslo*"])
    (folder / "relation_info.json").write_text('{"P1": {"domains": ["Geographic", "*Arts*"]}}')
    download.import_dataset(folder)
    app = open_page("data", source="cities")
    tables = [one.value for one in app.dataframe]
    (relations,) = [table for table in tables if "answers" in table]
    assert relations.iloc[0][["relation", "answers", "domains"]].tolist() == [
        "P1", 3, "Geographic, *Arts*",
    ]  # fmt: skip
    (answers,) = [table for table in tables if list(table) == ["answer"]]
    assert answers["answer"].tolist() == ["Lima", "New York", "*Oslo*"]
    assert any(one.value == r"Domains: Geographic, \*Arts\*" for one in app.caption)


def test_one_run_and_one_note_are_said_in_the_singular(home: Path, tmp_path: Path) -> None:
    (run,) = make_runs(tmp_path / "made", n_relations=1, n_facts=20)[:1]
    shutil.copytree(run.info.folder, home / "data" / "runs" / run.info.id)
    said = open_page("data", tab="Runs").caption
    assert any("1 is your own: " in one.value for one in said)
    assert (counted(1, "note"), counted(2000, "note")) == ("1 note", "2,000 notes")
    assert counted(2, "query") == "2 queries"


def test_relations_without_an_answer_space_say_nothing_of_one() -> None:
    tables = [one.value for one in open_page("data", source="starter").dataframe]
    assert not any({"answers", "domains", "answer"} & set(table) for table in tables)
