"""A study from files to table, saved runs and back."""

import json
from pathlib import Path

import numpy as np
import pytest
from probe_fakes import hash_model, write_dataset

from lama_core.errors import UserError
from lama_core.metrics.precision import precision_at
from lama_core.papers.jiang2020 import make_table, reproduce_jiang2020
from lama_core.probes.prompts.running import StudyRequest, execute_study, plan_study, save_runs
from lama_core.probes.prompts.store import ScoringStopped
from lama_core.probes.prompts.study import RelationStudy
from lama_core.probes.prompts.study_files import list_studies, load_relation, read_study_info
from lama_core.runs.records import load_run


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with `lama` and `lpaqa` in it."""
    write_dataset(tmp_path / "data" / "lama", n_facts=60)
    prompt = tmp_path / "data" / "lpaqa" / "prompt"
    for name, templates in (
        ("mine", ["[X] native [Y] .", "[X] from [Y] .", "[Y] by [X] .", "[X] near [Y] ."]),
        ("paraphrase", ["[X] from [Y].", "[X] out of [Y]."]),
    ):
        (prompt / name).mkdir(parents=True)
        rows = [json.dumps({"template": text, "weight": 0.25}) for text in templates]
        (prompt / name / "P19.jsonl").write_text("\n".join(rows), encoding="utf-8")
    (prompt / "manual_paraphrase").mkdir()
    (prompt / "manual_paraphrase" / "P19.txt").write_text("[X] was born at [Y].\n")
    pairs = tmp_path / "data" / "lpaqa" / "TREx_train"
    pairs.mkdir()
    rows = [
        json.dumps({"sub_label": f"Trainee {n}", "obj_label": f"City{n % 40}"}) for n in range(50)
    ]
    (pairs / "P19.jsonl").write_text("\n".join(rows), encoding="utf-8")
    return tmp_path / "data"


def _request(data: Path, **options: object) -> StudyRequest:
    settings: dict[str, object] = {
        "dataset": str(data / "lama"),
        "model": "hash",
        "prompts": data / "lpaqa",
        "training": data / "lpaqa" / "TREx_train",
        "recipes": ("released", "exact"),
    }
    return StudyRequest(**(settings | options))  # type: ignore[arg-type]


def _study(data: Path, out: Path, **options: object) -> RelationStudy:
    planned = plan_study(_request(data, **options), load=hash_model, out=out)
    return execute_study(planned)[0]


def test_a_study_is_the_same_when_it_is_loaded_again(data: Path, tmp_path: Path) -> None:
    study = _study(data, tmp_path / "out")
    info = list_studies([tmp_path / "out"])[0]
    assert info.relations() == ("P19",)
    loaded = load_relation(info, "P19")
    assert loaded.rows.tobytes() == study.rows.tobytes()
    assert loaded.ensemble_rows.tobytes() == study.ensemble_rows.tobytes()
    assert loaded.scores() == study.scores()
    assert loaded.pool.entries == study.pool.entries
    assert [fact.subject for fact in loaded.test] == [fact.subject for fact in study.test]
    np.testing.assert_allclose(loaded.shortlist.log_probs, study.shortlist.log_probs, atol=4e-3)


def test_a_study_of_the_same_request_is_not_made_twice(data: Path, tmp_path: Path) -> None:
    _study(data, tmp_path / "out")
    planned = plan_study(_request(data), load=hash_model, out=tmp_path / "out")

    def refuse(*_: object) -> None:
        raise AssertionError("scored again")

    execute_study(planned, on_stage=refuse)


def test_other_limits_are_another_study(data: Path, tmp_path: Path) -> None:
    names = {
        plan_study(_request(data, limit=limit), load=hash_model, out=tmp_path).info.folder.name
        for limit in (None, 10, 20)
    }
    assert len(names) == 3


def test_the_oracle_is_never_below_any_ensemble_of_one_and_top1_is_one_prompt(
    data: Path, tmp_path: Path
) -> None:
    study = _study(data, tmp_path / "out")
    scores = {(score.combination, score.method): score.micro for score in study.scores()}
    for combination in ("mine", "mine+man", "mine+para", "man+para"):
        assert scores[combination, "oracle"] >= scores[combination, "top1"]
        found = study.ensemble(combination, "top1")
        assert found is not None
        best = found[0].only_prompt
        assert best in study.pool.members(combination)
        members = list(study.pool.members(combination))
        assert study.train_accuracies[best] == study.train_accuracies[members].max()


def test_the_exact_recipe_reaches_the_highest_objective(data: Path, tmp_path: Path) -> None:
    study = _study(data, tmp_path / "out")
    released, exact = (
        study.ensemble("mine", method) for method in ("optimised", "optimised (exact)")
    )
    assert released is not None and exact is not None
    assert released[0].objective is not None and exact[0].objective is not None
    assert exact[0].objective >= released[0].objective - 1e-3


def test_facts_that_only_one_prompt_gets_right_are_counted_for_that_prompt(
    data: Path, tmp_path: Path
) -> None:
    study = _study(data, tmp_path / "out")
    right = study.ranks == 1
    for prompt, fact in np.argwhere(study.only_right):
        assert right[prompt, fact]
        assert right[:, fact].sum() == 1


def test_a_saved_ensemble_is_a_run_with_the_studys_numbers(
    data: Path, tmp_path: Path, home: Path
) -> None:
    planned = plan_study(_request(data), load=hash_model, out=tmp_path / "out")
    studies = execute_study(planned)
    names = save_runs(planned, studies, ("optimised",))
    run = load_run(next(name for name in names if "mine_optimised" in name))
    found = studies[0].ensemble("mine", "optimised")
    assert found is not None
    counted = run.facts[run.facts["excluded"].isna()]
    assert precision_at(counted["rank_raw"].to_numpy()) == precision_at(found[1])
    assert run.info.n == len(studies[0].test)
    assert run.info.prompts == "mine optimised"
    assert "[MASK]" in counted["query"].iloc[0]


def test_the_table_averages_relations_and_stands_beside_the_papers(
    data: Path, tmp_path: Path
) -> None:
    study = _study(data, tmp_path / "out")
    rows = {(row.combination, row.method): row for row in make_table([study, study], "hash")}
    own = next(s for s in study.scores() if (s.combination, s.method) == ("mine", "top3"))
    assert rows["mine", "top3"].micro == own.micro
    assert rows["mine", "top3"].n_facts == 2 * own.n
    assert rows["mine", "optimised"].published_micro == 38.9
    assert rows["mine", "optimised"].published_macro == 25.7
    assert rows["mine", "optimised (exact)"].published_micro is None
    assert rows["manual", "top1"].published_micro == 31.1


def test_a_stopped_study_keeps_what_was_scored(data: Path, tmp_path: Path) -> None:
    planned = plan_study(_request(data), load=hash_model, out=tmp_path / "out")
    with pytest.raises(ScoringStopped):
        execute_study(planned, stopped=lambda: True)
    assert execute_study(planned)[0].scores() == _study(data, tmp_path / "other").scores()


def test_without_training_pairs_half_of_the_facts_train(data: Path, tmp_path: Path) -> None:
    study = _study(data, tmp_path / "out", training=None, prompts=None, combinations=("man+para",))
    assert not {fact.id for fact in study.train} & {fact.id for fact in study.test}
    assert len(study.pool.entries) == 3


def test_overlap_is_refused_unless_it_is_dropped(data: Path, tmp_path: Path) -> None:
    path = data / "lpaqa" / "TREx_train" / "P19.jsonl"
    more = json.dumps({"sub_label": "Person 1", "obj_label": "City7"})
    path.write_text(path.read_text() + "\n" + more, encoding="utf-8")
    with pytest.raises(UserError, match="Person 1 - City7"):
        _study(data, tmp_path / "out")
    assert len(_study(data, tmp_path / "out", drop_overlap=True).train) == 50


def test_own_prompts_need_one_relation(data: Path) -> None:
    with pytest.raises(UserError, match="belong to one relation"):
        plan_study(_request(data, own=("[X] a [Y]",)), load=hash_model)


def test_own_prompts_are_studied_beside_the_others(data: Path, tmp_path: Path) -> None:
    study = _study(
        data,
        tmp_path / "out",
        relations=("P19",),
        own=("[X] saw the light in [Y].",),
        combinations=("mine", "user"),
    )
    assert study.pool.prompts[-1].origin == "user"
    assert {score.combination for score in study.scores()} == {"mine", "user"}


def test_jiang2020_is_reproduced_from_one_folder(data: Path, tmp_path: Path) -> None:
    found = reproduce_jiang2020("hash", data=data, load=hash_model, out=tmp_path / "out")
    assert {row.method for row in found.rows if row.combination == "mine"} == {
        "top1",
        "top3",
        "top5",
        "optimised",
        "optimised (paper)",
        "oracle",
    }
    assert read_study_info(found.folder).model == "hash"
    assert found.runs


def test_a_data_folder_without_lpaqa_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lama").mkdir()
    with pytest.raises(UserError, match="no folder 'lpaqa'"):
        reproduce_jiang2020("hash", data=tmp_path, load=hash_model)


def test_a_damaged_study_is_named_and_the_others_are_listed(data: Path, tmp_path: Path) -> None:
    _study(data, tmp_path / "out")
    broken = tmp_path / "out" / "broken"
    broken.mkdir()
    (broken / "study.json").write_text("{", encoding="utf-8")
    problems: list[str] = []
    found = list_studies([tmp_path / "out"], on_problem=problems.append)
    assert len(found) == 1
    assert len(problems) == 1
    assert "broken" in problems[0]
    with pytest.raises(UserError, match="damaged"):
        list_studies([tmp_path / "out"])


def test_a_relation_whose_arrays_are_cut_off_is_refused(data: Path, tmp_path: Path) -> None:
    _study(data, tmp_path / "out")
    info = list_studies([tmp_path / "out"])[0]
    path = info.folder / "P19.npz"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match="make the study again"):
        load_relation(info, "P19")
