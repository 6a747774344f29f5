"""Tags are kept beside a run, whole, and are text of a limited length."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lama_core.errors import UserError
from lama_core.runs.info import Run, RunInfo, read_info
from lama_core.runs.tags import MOST_TAGS, change_tags, clean_tag, known_tags, read_tags, tags_path
from tools.bench.made_up import make_runs

ROW = ("P100:0", 0)


@pytest.fixture
def info(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunInfo:
    monkeypatch.setenv("LAMA_HOME", str(tmp_path))
    run: Run = make_runs(tmp_path / "data" / "runs", n_relations=1, n_facts=20)[0]
    return run.info


def test_tags_are_kept_beside_the_run_and_are_no_part_of_it(info: RunInfo) -> None:
    assert read_tags(info) == {}
    change_tags(info, [ROW, ("P100:1", 2)], add=["wrong  gold ", "odd"])
    assert read_tags(info) == {ROW: ("wrong gold", "odd"), ("P100:1", 2): ("wrong gold", "odd")}
    assert json.loads((info.folder / "tags.json").read_text())["run"] == info.id
    assert read_info(info.folder) == info
    change_tags(info, [ROW], add=["new"], remove=["odd", "wrong gold"])
    assert read_tags(info)[ROW] == ("new",)
    assert known_tags(read_tags(info)) == ("new", "odd", "wrong gold")
    change_tags(info, [ROW], remove=["new"])
    assert ROW not in read_tags(info)


def test_a_bundled_runs_tags_are_in_the_data_folder(info: RunInfo, tmp_path: Path) -> None:
    bundled = replace(info, bundled=True)
    change_tags(bundled, [ROW], add=["odd"])
    assert tags_path(bundled) == tmp_path / "data" / "tags" / f"{info.id}.json"
    assert read_tags(bundled) == {ROW: ("odd",)} and read_tags(info) == {}


@pytest.mark.parametrize("text", ["  ", "a\nb", "a\u202eb", "a; b", "x" * 65])
def test_a_tag_that_is_no_short_line_of_text_is_refused(info: RunInfo, text: str) -> None:
    with pytest.raises(UserError):
        change_tags(info, [ROW], add=["good", text])
    assert not tags_path(info).exists()
    assert clean_tag("<b>é</b>") == "<b>é</b>"


def test_a_row_has_so_many_tags_and_no_more(info: RunInfo) -> None:
    change_tags(info, [ROW], add=[str(number) for number in range(MOST_TAGS)])
    with pytest.raises(UserError, match="at most 20"):
        change_tags(info, [("P100:1", 0), ROW], add=["another"])
    assert len(read_tags(info)) == 1, "nothing is written of what can't be written whole"


def test_a_damaged_file_is_named_and_not_written_over(info: RunInfo) -> None:
    tags_path(info).write_text('{"rows": [1', encoding="utf-8")
    for act in (lambda: read_tags(info), lambda: change_tags(info, [ROW], add=["odd"])):
        with pytest.raises(UserError, match=r"tags\.json"):
            act()
    assert tags_path(info).read_text() == '{"rows": [1'
