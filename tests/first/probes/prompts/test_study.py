"""A study from files to table, saved runs and back."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_files import write_lines
from probe_fakes import hash_model, write_dataset

from lama_core.errors import UserError
from lama_core.probes.kinds import read_request
from lama_core.probes.prompts import spec
from lama_core.probes.prompts.plan import plan
from lama_core.probes.prompts.published_scores import make_table
from lama_core.probes.prompts.request import StudyRequest
from lama_core.probes.prompts.spec import Study, StudySpec, list_studies, save_ensembles
from lama_core.probes.prompts.study import RelationStudy, study_relation
from lama_core.runs.execute import execute
from lama_core.runs.find import load_run

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with `lama` and `lpaqa` in it."""
    write_dataset(tmp_path / "data" / "lama", n_facts=60)
    prompt = tmp_path / "data" / "lpaqa" / "prompt"
    for name, templates in (
        ("mine", ["[X] native [Y] .", "[X] from [Y] .", "[Y] by [X] .", "[X] near [Y] ."]),
        ("paraphrase", ["[X] from [Y].", "[X] out of [Y]."]),
    ):
        write_lines(
            prompt / name / "P19.jsonl", [{"template": text, "weight": 0.25} for text in templates]
        )
    (prompt / "manual_paraphrase").mkdir()
    (prompt / "manual_paraphrase" / "P19.txt").write_text("[X] was born at [Y].\n")
    pairs = [{"sub_label": f"Trainee {n}", "obj_label": f"City{n % 40}"} for n in range(50)]
    write_lines(tmp_path / "data" / "lpaqa" / "TREx_train" / "P19.jsonl", pairs)
    return tmp_path / "data"


def _request(data: Path, **options: object) -> StudyRequest:
    settings: dict[str, object] = {
        "dataset": str(data / "lama"),
        "model": "hash",
        "prompts": data / "lpaqa",
        "training": data / "lpaqa" / "TREx_train",
        "recipes": ("released", "paper"),
    }
    return StudyRequest(**(settings | options))  # type: ignore[arg-type]


def _whole(data: Path, out: Path, **options: object) -> Study:
    (planned,) = plan(_request(data, **options), load=hash_model)
    return Study(execute(planned, folder=out, load=hash_model))


def _study(data: Path, out: Path, **options: object) -> RelationStudy:
    whole = _whole(data, out, **options)
    return whole.relation(whole.relations[0])


def test_what_is_read_back_is_what_was_computed(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[RelationStudy] = []

    def noting(*arguments: Any, **options: Any) -> RelationStudy:
        made.append(study_relation(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(spec, "study_relation", noting)
    loaded = _study(data, tmp_path / "out")
    (study,) = made
    assert [one.relations for one in list_studies([tmp_path / "out"])] == [("P19",)]
    for ours, theirs in ((loaded.rows, study.rows), (loaded.ensemble_rows, study.ensemble_rows)):
        for name in ("rank_raw", "rank_filtered", "log_prob", "top_log_probs"):
            assert ours[name].tobytes() == theirs[name].tobytes()
        for name in ("top", "first_filtered"):
            here = [loaded.words[column] for column in ours[name].ravel()]
            assert here == [study.words[column] for column in theirs[name].ravel()]
    assert loaded.scores() == study.scores()
    assert loaded.pool.entries == study.pool.entries
    assert [fact.subject for fact in loaded.test] == [fact.subject for fact in study.test]
    assert loaded.train_ranks.tolist() == study.train_ranks.tolist()
    assert loaded.excluded == study.excluded and loaded.curves == study.curves
    ours, theirs = loaded.shortlist, study.shortlist
    np.testing.assert_allclose(ours.log_probs, theirs.log_probs, atol=4e-3)
    np.testing.assert_allclose(ours.ceilings, theirs.ceilings, atol=4e-3)
    assert ours.gold.tolist() == theirs.gold.tolist()
    for one, other in zip(loaded.ensembles, study.ensembles, strict=True):
        assert one.weights.tobytes() == other.weights.tobytes()
        assert replace(one, weights=other.weights) == other


def test_the_identity_follows_the_training_pairs_and_not_their_folder(
    data: Path, tmp_path: Path
) -> None:
    def identity(training: Path) -> str:
        return plan(_request(data, training=training), load=hash_model)[0].digest

    first = identity(data / "lpaqa" / "TREx_train")
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(data / "lpaqa" / "TREx_train", elsewhere)
    assert identity(elsewhere) == first
    path = elsewhere / "P19.jsonl"
    path.write_text(path.read_text().replace("Trainee 3", "Trainee Three"), encoding="utf-8")
    assert identity(elsewhere) != first


def test_pairs_that_change_after_planning_are_noticed(data: Path, tmp_path: Path) -> None:
    (planned,) = plan(_request(data), load=hash_model)
    path = data / "lpaqa" / "TREx_train" / "P19.jsonl"
    path.write_text(path.read_text().replace("Trainee 3", "Trainee Three"), encoding="utf-8")
    with pytest.raises(UserError, match=r"training pairs of .* have changed"):
        execute(planned, folder=tmp_path / "out", load=hash_model)


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
    study = _whole(data, tmp_path / "out")
    names = [run.info.id for run in save_ensembles(study, _request(data), ("optimised",))]
    run = load_run(next(name for name in names if "mine_optimised" in name))
    relation = study.relation("P19")
    found = relation.ensemble("mine", "optimised")
    assert found is not None
    counted = run.facts[run.facts["excluded"].isna()]
    assert counted["rank_raw"].astype(int).tolist() == found[1].tolist()
    assert counted["subject"].tolist() == [fact.subject for fact in relation.test]
    assert (run.info.n, run.info.kind) == (len(relation.test), "ensemble")
    assert run.info.prompts == "mine optimised" and set(run.facts["prompt"]) == {0}
    assert "[MASK]" in counted["query"].iloc[0]
    assert run.info.relations[0].templates[0] == relation.pool.templates[found[0].weights.argmax()]
    assert [run.info.id for run in save_ensembles(study, _request(data), ("optimised",))] == names


def test_the_table_averages_relations_and_stands_beside_the_papers(
    data: Path, tmp_path: Path
) -> None:
    study = _study(data, tmp_path / "out")
    rows = {
        (row.combination, row.method): row for row in make_table([study, study], "bert-base-cased")
    }
    own = next(s for s in study.scores() if (s.combination, s.method) == ("mine", "top3"))
    assert rows["mine", "top3"].micro == own.micro
    assert rows["mine", "top3"].n_facts == 2 * own.n
    assert rows["mine", "optimised"].published_micro == 38.9
    assert rows["mine", "optimised"].published_macro == 25.7
    assert rows["mine", "optimised (paper)"].published_micro is None
    assert rows["manual", "top1"].published_micro == 31.1
    others = make_table([study], "hash")
    assert all(row.published_model == "" and row.published_micro is None for row in others)


def test_without_training_pairs_half_of_the_facts_train(data: Path, tmp_path: Path) -> None:
    study = _study(data, tmp_path / "out", training=None, prompts=None, combinations=("man+para",))
    assert not {fact.id for fact in study.train} & {fact.id for fact in study.test}
    assert len(study.pool.entries) == 3


def test_overlap_is_refused_unless_it_is_dropped(data: Path, tmp_path: Path) -> None:
    path = data / "lpaqa" / "TREx_train" / "P19.jsonl"
    more = json.dumps({"sub_label": "Person 1", "obj_label": "City7"})
    path.write_text(path.read_text() + more, encoding="utf-8")
    with pytest.raises(UserError, match="Person 1 - City7"):
        _study(data, tmp_path / "out", training_share=1.0)
    kept = _study(data, tmp_path / "out", drop_overlap=True, training_share=1.0)
    assert len(kept.train) == 50


@pytest.mark.parametrize(
    ("given", "n"), (({}, 40), ({"training_share": 1.0}, 50), ({"training_share": 0.5}, 25))
)
def test_a_study_selects_and_fits_on_a_share_of_the_given_pairs(
    data: Path, tmp_path: Path, given: dict[str, float], n: int
) -> None:
    whole = _whole(data, tmp_path / "out", **given)
    assert len(whole.relation("P19").train) == n
    assert whole.info.request
    request = read_request(whole.info.request)
    assert plan(request, load=hash_model)[0].digest == whole.info.digest


def test_half_of_the_facts_train_as_a_whole_unless_a_share_is_named(data: Path) -> None:
    def spec(**options: object) -> StudySpec:
        return plan(_request(data, training=None, **options), load=hash_model)[0]

    assert spec().request.used_share == 1.0
    assert spec().digest == spec(training_share=1.0).digest != spec(training_share=0.8).digest


def test_the_candidates_that_are_shown_are_the_likeliest_alone(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lama_core.probes.prompts.study.SHOWN_CANDIDATES", 3)
    found = _study(data, tmp_path / "out", combinations=("manual",))
    assert found.shortlist.columns.shape[1] == 3
