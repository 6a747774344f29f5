"""Runs are resumable to the bit, locked, honest about what they leave out, and saved whole."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from every_kind import plan_runs
from killing import kill_often
from probe_fakes import CITIES, HashFiller, hash_model, write_dataset

from lama_core import metrics
from lama_core.candidates.columns import Columns
from lama_core.errors import UserError
from lama_core.models.devices import PassSettings
from lama_core.models.protocols import Encoded, Scores
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.cloze.spec import ClozeSpec
from lama_core.probes.kinds import request_of, saved_request
from lama_core.probes.plan import plan
from lama_core.progress import Progress
from lama_core.runs.execute import RunStopped, execute
from lama_core.runs.find import runs_dir
from lama_core.runs.info import Run, read_info
from lama_core.runs.manage import list_kept
from lama_core.runs.parts import Parts, place_of


def one_spec(folder: Path, **choices: object) -> ClozeSpec:
    request = ProbeRequest(str(folder), ("hash",), candidates="full")
    (spec,) = plan_runs(replace(request, **choices), hash_model)  # type: ignore[arg-type]
    assert isinstance(spec, ClozeSpec)
    return replace(spec, batch_rows=8)


def run(spec: ClozeSpec, folder: Path, **options: object) -> Run:
    return execute(spec, folder=folder, load=hash_model, **options)  # type: ignore[arg-type]


class OnACard(HashFiller):
    """The fake model on a graphics card; n_rows: of each batch."""

    device = "cuda:1"
    precision = "bf16"
    n_rows: list[int]

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        self.n_rows.append(len(batch))
        return super().blank_log_probs(batch, columns)


def on_a_card(reference: str = "hash", *, precision: str = "auto") -> OnACard:
    made = OnACard(CITIES, name=reference)
    made.n_rows = []
    return made


def rows_of(made: Run) -> bytes:
    return (made.info.folder / "facts.parquet").read_bytes()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "toy")


def test_a_run_keeps_where_it_was_computed_and_is_the_same_run_everywhere(
    data: Path, tmp_path: Path
) -> None:
    spec = one_spec(data)
    here = run(spec, tmp_path / "here")
    card = on_a_card()
    there = execute(spec, folder=tmp_path / "there", load=lambda *_, **__: card)
    assert (here.info.device, there.info.device) == ("cpu", "cuda:1")
    assert here.info.id == there.info.id and rows_of(here) == rows_of(there)
    assert sorted(card.n_rows) == [250 - 7 * 32, *[4 * 8] * 7], "a part at once"


def test_the_specification_holds_the_precision_that_auto_came_to(data: Path) -> None:
    request = ProbeRequest(str(data), ("hash",), candidates="full")
    assert request.precision == "auto"
    precisions = [plan(request, load=load)[0].precision for load in (hash_model, on_a_card)]
    assert precisions == ["fp32", "bf16"]


def test_a_run_keeps_the_request_that_began_it(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMA_HOME", str(tmp_path))
    request = ProbeRequest(str(data), ("hash",), candidates="full", limit=100)
    spec = replace(plan(request, load=hash_model)[0], batch_rows=8)
    asked = iter(range(100))
    with pytest.raises(RunStopped):
        run(spec, runs_dir(), stopped=lambda: next(asked) > 5)
    name = f"{spec.run_id}.part"
    assert saved_request(name) == (request, Path.cwd())
    (unfinished,) = [one for one in list_kept() if one.state == "unfinished"]
    row = unfinished.record()
    assert (row["model"], row["dataset"], row["prompts"]) == ("hash", data.name, "manual")
    assert 0 < row["share_done"] < 1
    assert unfinished.share == unfinished.n_parts / unfinished.started.n_parts
    kept = runs_dir() / name / "parts" / "request.json"
    kept.write_text("{}")
    with pytest.raises(UserError, match=r"request\.json is damaged"):
        saved_request(name)
    kept.unlink()
    with pytest.raises(UserError, match="An earlier version started this run"):
        saved_request(name)
    made = run(spec, runs_dir())
    assert not list(made.info.folder.rglob("request.json"))
    assert made.info.request and made.info.request.folder == str(Path.cwd())
    assert request_of(read_info(made.info.folder)) == request


def test_parts_at_an_address_make_the_same_run_and_are_resumed(data: Path, tmp_path: Path) -> None:
    spec, there = one_spec(data), "memory://execute/runs"
    whole = run(spec, tmp_path / "whole")
    asked = iter(range(100))
    with pytest.raises(RunStopped):
        run(spec, tmp_path / "away", address=there, stopped=lambda: next(asked) > 5)
    seen: list[Progress] = []
    made = run(spec, tmp_path / "away", address=there, on_progress=seen.append)
    assert seen[0].resumed > 0 and [path.name for path in (tmp_path / "away").iterdir()] == [
        spec.run_id
    ]
    assert made.info.files == whole.info.files
    assert place_of(spec.run_id, tmp_path, there).read("request.json") is None  # deleted


def test_ranks_agree_with_the_ten_best(data: Path, tmp_path: Path) -> None:
    made = run(one_spec(data), tmp_path)
    facts, top = made.facts, made.top
    for number in range(len(facts)):
        rank = int(facts["rank_raw"].iloc[number])
        if rank <= 10:
            assert top.words[number, rank - 1] == facts["object"].iloc[number]
            assert top.log_probs[number, rank - 1] == np.float32(facts["log_prob"].iloc[number])
    assert (facts["first"].astype(str) == top.words[:, 0]).all()


def test_squad_questions_do_not_filter_one_another(data: Path, tmp_path: Path) -> None:
    facts = run(one_spec(data), tmp_path).facts
    squad = facts[facts["relation"] == "Squad"]
    assert (squad["rank_raw"] == squad["rank_filtered"]).all() and (squad["n_valid"] == 1).all()


def test_the_ranges_of_a_large_run_give_its_rows(data: Path, tmp_path: Path) -> None:
    whole = run(one_spec(data), tmp_path)
    spec = replace(one_spec(data), range_rows=60, n_ranges=5)
    seen: list[Progress] = []
    polls = iter(range(100))
    with pytest.raises(RunStopped):
        run(spec, tmp_path, stopped=lambda: next(polls) > 12)
    divided = run(spec, tmp_path, on_progress=seen.append)
    pd.testing.assert_frame_equal(divided.facts, whole.facts)
    assert divided.info.digest != whole.info.digest, "batches end where a range ends"
    same = ("n", "n_excluded", "relations", "n_candidates", "device")
    assert [getattr(divided.info, one) for one in same] == [
        getattr(whole.info, one) for one in same
    ]
    assert divided.words == whole.words
    assert (seen[-1].done, seen[-1].total) == (250, 250) and seen[-1].resumed > 0


def test_a_run_killed_ten_times_equals_the_unbroken_run(data: Path, tmp_path: Path) -> None:
    spec = replace(one_spec(data, models=("slow",)), batch_rows=4)
    whole = run(spec, tmp_path / "whole")
    out = tmp_path / "killed"
    killed = kill_often(lambda: run(spec, out), out / f"{spec.run_id}.part" / "parts")
    assert killed == sorted(killed)
    assert rows_of(run(spec, out)) == rows_of(whole)


def test_nan_from_a_model_names_the_text_and_keeps_what_was_scored(
    data: Path, tmp_path: Path
) -> None:
    def load(reference: str, *, precision: str) -> HashFiller:
        return HashFiller(CITIES, name=reference, broken="Land 3 ")

    spec = one_spec(data)
    with pytest.raises(UserError, match=r"returned NaN for 'Land 3 .*are kept"):
        execute(spec, folder=tmp_path, load=load)
    assert list(tmp_path.glob("*.part/parts/*.parquet"))


def test_a_changed_dataset_is_said_and_the_part_kept(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "toy")
    spec = one_spec(data)
    stops = iter([*[False] * 5, True])
    with pytest.raises(RunStopped):
        run(spec, tmp_path / "runs", stopped=lambda: next(stops))
    write_dataset(data, n_facts=60)
    with pytest.raises(UserError, match="dataset 'toy' has changed"):
        run(spec, tmp_path / "runs")
    notes: list[str] = []
    made = run(one_spec(data), tmp_path / "runs", on_note=notes.append)
    assert made.info.n == 130
    assert "unfinished run with different data" in notes[0]
    assert (tmp_path / "runs" / f"{spec.run_id}.part").is_dir()


def test_excluded_facts_are_rows_with_their_reason(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "toy", n_facts=3)
    extra = [
        {"uuid": "x1", "sub_label": "Person 0", "obj_label": "City0", "predicate_id": "P19"},
        {"uuid": "x2", "sub_label": "Ann", "obj_label": "New York", "predicate_id": "P19"},
        {"uuid": "x3", "sub_label": "Bob", "obj_label": "City39", "predicate_id": "P19"},
    ]
    with (data / "TREx" / "P19.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in extra)
    long = "word " * 100 + "[MASK] ."
    (data / "Squad" / "test.jsonl").write_text(
        json.dumps({"id": "l", "sub_label": "S", "obj_label": "City1", "masked_sentences": [long]})
        + "\n",
        encoding="utf-8",
    )
    births = [
        {
            "uuid": str(number),
            "sub_label": f"Judged {number}",
            "obj_label": "City2",
            "judgments": [{"rater": str(n), "judgment": vote} for n, vote in enumerate(votes)],
        }
        for number, votes in enumerate((["yes", "no"], ["no", "no", "yes"]))
    ]
    (data / "Google_RE").mkdir()
    (data / "Google_RE" / "place_of_birth_test.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in births), encoding="utf-8"
    )
    words = tmp_path / "words.txt"
    words.write_text("\n".join(CITIES[:39]), encoding="utf-8")
    made = run(one_spec(data, candidates=f"file:{words}"), tmp_path / "runs")
    reasons = made.facts.set_index("fact_id")["excluded"].dropna().astype(str).to_dict()
    assert reasons == {
        "P19:x1": "duplicate of an earlier fact",
        "P19:x2": "object is not one token of the model",
        "P19:x3": "object is not among the candidates",
        "Squad:l": "text is longer than 100 words",
        "place_of_birth:1": "judges say no",
    }
    excluded = made.facts["excluded"].notna()
    assert made.facts.loc[excluded, ["rank_raw", "rank_filtered", "log_prob"]].isna().all(axis=None)
    assert (made.top.words[excluded.to_numpy()] == None).all()  # noqa: E711 - elementwise
    assert made.info.n_excluded == 5


def test_figure_4_averages_a_facts_ranks_over_ten_sentences(data: Path, tmp_path: Path) -> None:
    made = run(one_spec(data, prompts="ten-sentences", relations=("P19",)), tmp_path)
    table = metrics.average_ranks(made)
    assert len(table) == 100 and set(table["n"]) == {10}
    first = made.facts[made.facts["fact_id"] == table["fact_id"].iloc[0]]
    assert table["mean_rank"].iloc[0] == first["rank_filtered"].sum() / 10
    again = run(one_spec(data, prompts="ten-sentences", relations=("P19",)), tmp_path / "again")
    assert rows_of(again) == rows_of(made), "the facts and sentences are drawn alike each time"


def test_the_identity_follows_what_changes_numbers_and_nothing_else(data: Path) -> None:
    spec = one_spec(data)
    request = spec.request
    other = replace(request, ranking="raw", dataset="elsewhere", models=("a", "b"))
    assert replace(spec, request=other).digest == spec.digest
    assert replace(spec, request=replace(request, limit=3)).digest != spec.digest
    for change in (
        {"data_digest": "x"},
        {"model_identity": "x"},
        {"context": "left"},
        {"relations": ("P19",)},
        {"batch_rows": 9},
    ):
        assert replace(spec, **change).digest != spec.digest
    names = spec.relations
    assert one_spec(data, relations=names[::-1]).digest == one_spec(data, relations=names).digest


def test_negated_queries_are_scored_beside_their_plain_ones(data: Path, tmp_path: Path) -> None:
    spec = one_spec(data, prompts="negated", relations=("P19",), limit=40)
    made = run(spec, tmp_path)
    assert made.info.kind == "contrast"
    facts = made.facts
    row = facts[facts["fact_id"] == "P19:b7"].iloc[0]
    assert row["query"] == "Person 7 was not born in [MASK] ."
    assert row["plain"] == "Person 7 was born in [MASK] ."
    plain = run(one_spec(data, relations=("P19",), limit=40), tmp_path).facts
    assert facts["plain_rank_raw"].tolist() == plain["rank_raw"].tolist()
    assert facts["plain_rank_filtered"].tolist() == plain["rank_filtered"].tolist()
    assert facts["plain_first"].tolist() == plain["first"].tolist()
    line = metrics.contrast(made).iloc[-1]
    assert (line["n"], line["relation"]) == (40, "P19")
    # The fake model answers every text at random: no overlap to speak of, no correlation.
    same = facts["first"].astype(str) == facts["plain_first"].astype(str)
    assert line["overlap"] == same.mean()
    assert line["spearman"] == pytest.approx(facts["spearman"].mean())
    assert abs(line["spearman"]) < 0.1


def test_lpaqa_prompts_come_from_their_folder(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    (folder / "mine").mkdir(parents=True)
    lines = ["[X] , born in [Y]", "[Y] native [X]"]
    (folder / "mine" / "P19.jsonl").write_text(
        "".join(json.dumps({"template": line, "weight": 0.5}) + "\n" for line in lines),
        encoding="utf-8",
    )
    facts = run(one_spec(data, prompts=str(folder), relations=("P19",), limit=1), tmp_path).facts
    assert "Person 0 , born in [MASK]" in set(facts["query"])
    assert "[MASK] native Person 0" in set(facts["query"])
    with pytest.raises(UserError, match="data get lpaqa"):
        one_spec(data, prompts="mine")


def test_a_resumed_run_keeps_the_settings_of_its_finished_parts(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch  # its number of threads is stored with each part

    assert torch.get_num_threads() > 0
    spec, asked = one_spec(data), iter(range(100))
    monkeypatch.setenv("LAMA_BATCH_TOKENS", "1000")
    with pytest.raises(RunStopped):
        run(spec, tmp_path, stopped=lambda: next(asked) > 5)
    used: list[PassSettings | None] = []
    monkeypatch.setattr(
        Parts, "write", lambda *given, write=Parts.write: (used.append(given[-1]), write(*given))[1]
    )
    monkeypatch.setenv("LAMA_BATCH_TOKENS", "500")
    notes: list[str] = []
    run(spec, tmp_path, on_note=notes.append)
    assert {settings.batch_tokens for settings in used if settings} == {1000}
    assert any("1,000 tokens per pass, as in the finished parts" in note for note in notes)
