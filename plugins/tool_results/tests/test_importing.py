"""Results of other tools as runs: tables, matching with data, ranks from scores, bad files."""

import io
import json
import os
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from imported_runs import imported

import lama_core as lama
from lama_core.errors import UserError
from lama_core.metrics.comparison import compare, what_differs
from lama_core.metrics.fact_answers import margins_of
from lama_core.runs.alignment import align
from lama_core.runs.facts_table import UNRANKED, read_columns
from lama_core.runs.find import load_run, runs_dir
from lama_core.runs.importers import results
from lama_core.runs.importers.results import ImportedResults
from lama_core.runs.info import FACTS_FILE, Run
from lama_core.runs.manage import list_kept
from lama_core.views.view import show
from lama_tool_results import importing, table
from lama_tool_results.importing import ImportRunRequest, import_run
from lama_tool_results.matching import match
from lama_tool_results.rows import without_unusable_rows

OWN = "starter-minilm_mlm-manual"
STATEMENTS = "starter-minilm_mlm-statements"
PICKLE = b"\x80\x04]\x94K\x01a."
HEAD = "subject,relation,object"
GOOD = f"{HEAD},rank\nFrance,P36,Paris,1\nPeru,P36,Lima,2\n"


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("form", ("csv", "tsv", "jsonl", "parquet"))
def test_a_table_with_ranks_has_the_scores_of_the_run_that_it_came_from(
    home: Path, tmp_path: Path, form: str
) -> None:
    own = load_run(OWN)
    names = ["relation", "subject", "object"]  # SQuAD asks four questions with the same names
    facts = own.facts[own.facts["excluded"].isna()].drop_duplicates(names, keep=False)
    facts = facts.sample(3000, random_state=1)
    frame = pd.DataFrame(
        {
            "Sub": facts["subject"].astype(str),
            "Relation": facts["relation"].astype(str),
            "obj_label": facts["object"].astype(str),
            "gold_rank": facts["rank_raw"].astype(int),
            "logprob": facts["log_prob"].astype(float),
            "prediction": facts["first"].astype(str),
        }
    )
    path = tmp_path / f"all.{form}"
    if form == "parquet":
        frame.to_parquet(path)
    elif form == "jsonl":
        frame.to_json(path, orient="records", lines=True, force_ascii=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if form == "tsv" else ",")
    run = imported(path)
    assert run.info.imported and run.info.imported.ranks == "unknown"
    assert run.info.dataset == "starter" and run.info.data_digest == own.info.data_digest
    assert run.facts["rank_raw"].tolist() == facts["rank_raw"].tolist()
    assert set(run.facts["fact_id"]) <= set(own.facts["fact_id"])
    compared = compare(own, run, ranking="raw")
    assert len(compared.pairs) > 2900 and len(compared.flips()) == 0
    assert compared.agreement.same_first == 1.0
    for one in align([own, run]):
        assert one.info.n == run.info.n
    assert "aren't known" in what_differs(own.info, run.info)
    assert "imported from all" in run.info.label


def test_ranks_follow_from_the_scores_of_all_answers_as_in_an_own_run(home: Path) -> None:
    own = load_run(STATEMENTS)
    facts = own.facts
    counted = facts["excluded"].isna().to_numpy()
    scores = read_columns(own.info.path(FACTS_FILE), ["scores"])["scores"]
    names = ("relation", "subject", "object")
    rows = pa.table(
        {
            **{name: pa.array(facts[name].astype(str), pa.string()) for name in names},
            "all_scores": scores.combine_chunks().cast(pa.list_(pa.float32())),
        }
    ).filter(pa.array(counted))
    words = {one.name: run_words(own, one.name) for one in own.info.relations}
    given = ImportedResults("minilm-mlm", "lm-pub-quiz", "0.6", "x", "", rows, words)
    (matched,) = match([without_unusable_rows(given)], "", lambda _: None)
    (run,) = importing.save_opened(
        [importing.as_run(matched, ImportRunRequest("folder"), "folder", "0" * 64)]
    )
    assert run.info.ranks_statements and run.info.candidates == own.info.candidates
    assert run.info.label == "minilm-mlm on starter, imported from lm-pub-quiz 0.6"
    for name in ("rank_raw", "rank_filtered", "log_prob", "first_log_prob"):
        both = run.facts[name].to_numpy(), facts.loc[counted, name].to_numpy()
        np.testing.assert_allclose(*both, rtol=1e-5, atol=1e-5)
    for name in ("fact_id", "first", "first_filtered", "first_is_valid", "n_valid", "origin"):
        both = run.facts[name].astype(object), facts.loc[counted, name].astype(object)
        assert both[0].fillna("").tolist() == both[1].fillna("").tolist(), name
    np.testing.assert_allclose(margins_of(run), margins_of(own)[counted], atol=1e-4)
    assert (run.top.words == own.top.words[counted]).all()
    aligned = align([own, run])
    assert [one.info.exact_to for one in aligned] == [None, None]
    compared = compare(*aligned, ranking="filtered")
    assert len(compared.flips()) == 0 and compared.n_unpaired == 0
    assert run.scores_of(0) is not None


@pytest.mark.parametrize(
    ("more", "said"),
    (
        ("", ", P@1 50.0 %"),
        ("Peru,P30,America,1\n", ", P@1 75.0 %, mean over relations (over facts: 66.7 %)"),
    ),
)
def test_a_mean_over_relations_is_named_and_an_imported_run_keeps_its_identity(
    home: Path, tmp_path: Path, more: str, said: str
) -> None:
    path = write(tmp_path / "results.csv", GOOD + more)
    (one,) = import_run.answer(ImportRunRequest(str(path), model="toy"))
    assert importing.said_precision(one) == said
    if not more:  # of version 3 of imported runs and of the starter facts
        assert one["run"] == "starter-toy-imported-349a6a4396"


def run_words(run: Run, relation: str) -> tuple[str, ...]:
    from lama_core.runs.facts_table import read_candidates
    from lama_core.runs.info import CANDIDATES_FILE

    return read_candidates(run.info.path(CANDIDATES_FILE))[relation]


def test_right_or_wrong_is_enough_and_views_of_ranks_say_what_is_missing(
    home: Path, tmp_path: Path
) -> None:
    lines = f"{HEAD},correct,prediction\nA,made,B,true,B\nC,made,D,no,E\nF,made,D,0,\n"
    run = imported(write(tmp_path / "verdicts.csv", lines), name="My notebook")
    assert not run.info.has_ranks and not run.info.has_probabilities and not run.info.generates
    assert run.facts["rank_raw"].tolist() == [1, UNRANKED, UNRANKED]
    assert run.info.title == "My notebook" and run.info.dataset == "verdicts"
    frame = lama.scores(runs=[run.info.id])
    assert frame["p_at_1"].tolist() == [1 / 3] and frame["mrr"].isna().all()
    for view, what in ((lama.curves, "ranks"), (lama.calibration, "probabilities")):
        with pytest.raises(UserError, match=f"these runs have no {what}"):
            show(view.view, view.request(runs=[run.info.id]))
    more = write(tmp_path / "more.csv", lines.replace("made,D,no", "made,D,1"))
    other = imported(more, model="second")
    assert other.info.data_digest == run.info.data_digest
    compared = compare(run, other, ranking="raw")
    assert compared.flips()["fact_id"].tolist() == ["made:C|D"]


def test_a_first_prediction_that_is_the_object_is_right(home: Path, tmp_path: Path) -> None:
    lines = [
        {"subject": "A", "object": "B", "predictions": [["b", -0.1], ["c", -2]], "model": "one"},
        {"subject": "A", "object": "B", "predictions": ["c", "B"], "model": "two"},
        {"subject": "C", "object": "B", "predictions": [{"token": "x", "log_prob": -1}],
         "model": "one"},
    ]  # fmt: skip
    path = write(tmp_path / "capitals.jsonl", "\n".join(map(json.dumps, lines)))
    done = import_run.answer(ImportRunRequest(str(path)))
    one, two = (load_run(row["run"]) for row in done)
    assert one.facts["rank_raw"].tolist() == [1, UNRANKED] and two.info.n == 1
    assert one.facts["relation"].tolist() == ["capitals"] * 2
    assert one.top.words[0, :3].tolist() == ["b", "c", None]
    np.testing.assert_allclose(one.top.log_probs[0, :2], [-0.1, -2])
    only = import_run.answer(ImportRunRequest(str(path), model="two", dry_run=True))
    assert [row["model"] for row in only] == ["two"]


def test_facts_and_predictions_are_found_in_any_composition(home: Path, tmp_path: Path) -> None:
    fact = next(
        one for one in lama.load_dataset("starter").facts if "é" in one.subject + one.object
    )
    subject, gold = (unicodedata.normalize("NFD", one) for one in (fact.subject, fact.object))
    row = {"relation": fact.relation, "subject": f"{subject}\u200b", "object": gold}
    rows = [
        row | {"predictions": [fact.object.upper()]},
        row | {"subject": fact.subject, "rank": 1},
    ]
    path = write(tmp_path / "made.jsonl", "\n".join(map(json.dumps, rows)))
    asked = ImportRunRequest(str(path), model="m", dataset="starter", dry_run=True)
    (found,) = import_run.answer(asked)
    assert (found["n"], found["n_matched"], found["p_at_1"]) == (1, 1, 1.0), "one fact, twice"
    run = imported(path)
    assert run.facts["fact_id"].tolist() == [fact.id]
    assert run.facts["first_is_object"].tolist() == [True]
    assert run.facts["first_is_valid"].tolist() == [False], "it is the gold answer"


def test_what_is_matched_and_dropped_is_said_before_and_nothing_is_saved(
    home: Path, tmp_path: Path
) -> None:
    lines = GOOD + "France,P36,Paris,1\nNix,P36,Nil,7\nX,P36,Y,1.5\nX,P36,Z,abc\nX,P36,W,2e99\n"
    path = write(tmp_path / "r.csv", lines)
    said: list[str] = []
    asked = ImportRunRequest(str(path), model="m", dry_run=True, on_note=said.append)
    with pytest.raises(
        UserError, match=r"3 of 6 rows are unusable.*between 16.7 and 66.7 %.*line 7"
    ):
        import_run.answer(asked)
    asked = replace(asked, partial=True)
    (row,) = import_run.answer(asked)
    assert row["bounds"] == (1 / 6, 4 / 6) and row["n_unusable"] == 3
    assert (row["n"], row["n_matched"], row["matched_with"]) == (3, 2, "starter")
    assert "2 of 3 rows are facts of starter; the others are kept with the run." in said
    assert sorted(one["n"] for one in row["dropped"]) == [1, 1, 2]
    assert "2 rows dropped: the rank isn't a whole number from 1 (r.csv line 6, 8)." in said
    assert "1 row dropped: the same fact again (row 3)." in said
    assert not runs_dir().exists()
    run = imported(path, model="m", partial=True)
    assert run.info.label.endswith("(not all rows)")
    shown = show(lama.scores.view, lama.scores.request(runs=[run.info.id]))
    assert "between 16.7 and 66.7 %" in shown.notes[0]
    assert run.facts["fact_id"].tolist()[2] == "P36:Nix|Nil"
    assert [one.info.kind for one in list_kept() if one.info and not one.bundled] == ["imported"]
    again = imported(path, model="m", partial=True)
    assert again.info.made == run.info.made  # the same run


def test_columns_can_be_named_and_are_guessed() -> None:
    header = ("Entity", "Answer", "Position of gold", "Model output prediction")
    rows = [{"Entity": "A", "Answer": "B", "Position of gold": 3, "Model output prediction": "C"}]
    with pytest.raises(UserError, match="no column 'nix' for the rank"):
        table.columns_of(header, {"rank": "nix"})
    assert table.columns_of(header, {"rank": "Position of gold"}) == {"rank": "position of gold"}
    found = table.guess(header, rows)
    assert found["predictions"] == "Model output prediction"
    assert (found["subject"], found["object"]) == ("Entity", "Answer")


def zipped(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def linked() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        info = tarfile.TarInfo("x.csv")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    return file.getvalue()


# Name of the file, its content, what the sentence says.
BAD: tuple[tuple[str, str | bytes, str], ...] = (
    ("result.pkl", PICKLE, "is a pickle"),
    ("result.csv", PICKLE, "is a pickle"),
    ("results.zip", zipped({"a/result.pkl": PICKLE}), "is a pickle"),
    ("results.zip", zipped({"../../evil.csv": GOOD.encode()}), "'../../evil.csv'"),
    ("results.zip", zipped({"/etc/evil.csv": GOOD.encode()}), "/etc/evil.csv"),
    ("results.zip", zipped({"bomb.csv": b"a" * 300_000_000}), "unpacks to more than"),
    ("results.zip", b"PK\x03\x04 not a zip", "results.zip"),
    ("results.tar", linked(), "link"),
    ("results.zip", zipped({}), "empty"),
    ("results.zip", zipped({"a.csv": GOOD.encode(), "b.csv": GOOD.encode()}), "known format"),
    ("empty.csv", "", "is empty"),
    ("noise.csv", bytes(range(1, 256)) * 40, "isn't UTF-8"),
    ("head.csv", f"{HEAD},rank\n", "no usable row"),
    ("no-object.csv", "subject,rank\nA,1\n", "needs a column object"),
    ("no-results.csv", f"{HEAD}\nA,P,B\n", "no results: it needs a column rank"),
    ("twice.csv", f"{HEAD},rank,Rank\nA,P,B,1,2\n", "two columns of the same name"),
    ("zero.csv", f"{HEAD},rank\nA,P,B,0\n", "the rank is 0. If the ranks count from 0"),
    ("huge.csv", f"{HEAD},rank\nA,P,B,99999999999\n", "the rank isn't a whole number from 1"),
    ("prob.csv", f"{HEAD},rank,log_prob\nA,P,B,1,0.5\n", "log-probability 0.5 is above 0"),
    ("maybe.csv", f"{HEAD},correct\nA,P,B,perhaps\n", "neither right nor wrong"),
    ("order.jsonl", '{"subject":"A","object":"B","predictions":[["x",-2],["y",-1]]}', "order"),
    ("nothing.csv", f"{HEAD},correct\nA,P,B,\n", "no rank, no prediction"),
    ("deep.jsonl", '{"subject":"A","object":"B","rank":' + "[" * 5000 + "]" * 5000 + "}", "deep"),
    ("list.json", "[1, 2, 3]", "known format"),
    ("cut.parquet", b"PAR1" + b"\0" * 50, "can't be read"),
    ("cut.csv.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03abc", "damaged gzip file"),
)


@pytest.mark.parametrize(("name", "content", "said"), BAD, ids=[f"{n}-{s[:14]}" for n, _, s in BAD])
def test_a_bad_file_gives_one_clear_sentence_and_leaves_nothing(
    home: Path, tmp_path: Path, name: str, content: str | bytes, said: str
) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(UserError) as error:
        imported(path)
    text = str(error.value)
    assert said in text and "\n" not in text and str(tmp_path) not in text.replace(str(path), "")
    kept = [one.name for one in runs_dir().glob("*")] if runs_dir().exists() else []
    assert kept == []


Spoil = Callable[[Path, pytest.MonkeyPatch], dict[str, Any]]


def limited(folder: Path, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    patch.setattr(table, "MAX_ROWS", 1)
    return {}


def too_large(folder: Path, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    patch.setattr(importing, "MAX_BYTES", 10)
    return {}


def special(folder: Path, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    (folder / "r.csv").unlink()
    os.mkfifo(folder / "r.csv")
    return {}


@pytest.mark.parametrize(
    ("spoil", "said"),
    (
        (limited, "more than 1 rows"),
        (too_large, "is larger than"),
        (special, "neither a file nor a folder"),
        (lambda *_: {"model": ""}, "give it with --model"),
        (lambda *_: {"column": ["subject=object"]}, "needs a column object"),
        (lambda *_: {"name": "two\nlines"}, "one line"),
    ),
)
def test_a_wrong_choice_gives_one_clear_sentence_and_leaves_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Spoil, said: str
) -> None:
    path = write(tmp_path / "r.csv", GOOD)
    with pytest.raises(UserError, match=said):
        imported(path, **spoil(tmp_path, monkeypatch))
    assert not runs_dir().exists() or not list(runs_dir().glob("*"))


def test_rows_of_any_reader_are_checked() -> None:
    rows = pa.table(
        {
            "relation": ["r", "r", "r", "r", "r", "q"],
            "subject": ["a", "b", "c", "d", " ", "e"],
            "object": ["x", "x", "nix", "x", "x", "x"],
            "all_scores": pa.array(
                [[0.0, -1.0], [float("nan"), 0], [0, 1], [0.0], [0, 1], [0, 1]],
                pa.list_(pa.float32()),
            ),
        }
    )
    found = without_unusable_rows(ImportedResults("m", "", "", "", "", rows, {"r": ("x", "y")}))
    assert found.rows["subject"].to_pylist() == ["a"]
    assert sorted(one.reason for one in found.dropped) == [
        "a fact without relation, subject or object",
        "a score that isn't a number",
        "not as many scores as answers",
        "the object isn't one of the answers",
    ]
    assert sum(one.n for one in found.dropped) == 5
    assert results.MAX_PREDICTIONS == 10
