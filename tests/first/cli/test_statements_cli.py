"""`statements` prints what the library says of its runs, and a mistake is one line and status 2."""

import json
from pathlib import Path

import pytest
from calling import call
from written_statements import CITIES, StatementTable, hashed, write_many

from lama_core import metrics
from lama_core.runs.find import list_runs, load_run


def load(reference: str, *, precision: str = "fp32", on_progress: object = None) -> StatementTable:
    return hashed(reference)


@pytest.fixture
def data(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("lama_core.models.cache.load_model", load)
    return write_many(tmp_path / "many", n_facts=30)


def test_one_object_a_relation_with_the_librarys_numbers(data: Path) -> None:
    command = ("statements", "--dataset", str(data), "--model", "one", "--json")
    status, out, _ = call(*command)
    assert status == 0
    lines = json.loads(out)
    assert [(line["relation"], line["n"], line["n_excluded"]) for line in lines] == [
        ("P1", 30, 0),
        ("P2", 30, 0),
    ]
    run = load_run(lines[0]["run"])
    assert run.info.kind == "statements" and run.words is not None
    table = metrics.score_table([run], ranking="filtered").set_index("relation")
    for line in lines:
        for name in ("p_at_1", "p_at_10", "mrr", "macro_p_at_1", "mean_rank"):
            assert line[name] == pytest.approx(table.loc[line["relation"], name])
        assert len(run.words[line["relation"]]) == len(CITIES)
    assert json.loads(call("results", lines[0]["run"], "--json")[1]) == lines


def test_options_choose_what_is_ranked_and_how(data: Path) -> None:
    answers = data.parent / "answers.txt"
    answers.write_text("\n".join(CITIES[:10]))
    command = (
        "statements", "--dataset", str(data), "--model", "one", "--relation", "P2", "--limit", "12",
        "--template", "1", "--answers", f"file:{answers}", "--part", "answer", "--aggregate",
        "mean", "--hiding", "original",
    )  # fmt: skip
    status, out, _ = call(*command)
    assert status == 0 and "macro P@1" in out and "mean P@1 over 1 relation" in out
    (info,) = [one for one in list_runs(kinds=["statements"]) if not one.bundled]
    assert info.relations[0].templates == ("in [Y] is [X].",)
    assert (info.n_candidates, info.n + info.n_excluded, info.limit) == (10, 12, 12)
    n_asked = sum(n * 7 % 25 < 10 for n in range(12))
    assert info.n == n_asked, "the others' objects are not among the answers"
