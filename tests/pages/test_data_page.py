"""The Data page shows what a source says of its relations."""

from pathlib import Path

import pytest
from opening import open_page
from written_statements import write_bear

from lama_core.datasets.library import download

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


def test_relations_without_an_answer_space_say_nothing_of_one() -> None:
    tables = [one.value for one in open_page("data", source="starter").dataframe]
    assert not any({"answers", "domains", "answer"} & set(table) for table in tables)
