"""Which prompts may be chosen, what choosing gains, and the one ranking of a study."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_files import write_lines
from probe_fakes import CITIES, HashFiller, hash_model, write_dataset

from lama_core.datasets.library.download import import_dataset
from lama_core.errors import UserError
from lama_core.models.protocols import Kind
from lama_core.probes.prompts.gains import largest_gain
from lama_core.probes.prompts.plan import plan
from lama_core.probes.prompts.request import StudyRequest
from lama_core.probes.prompts.spec import Study, StudySpec
from lama_core.runs.execute import execute
from lama_core.scoring.blanks import shows_subject
from lama_core.scoring.ranking import Ranking

BLIND = ("[Y] lies by [X] .", "[Y] , [X] .")
SEEN = ("[X] , near [Y] .", "[X] and [Y] .")


class LeftFiller(HashFiller):
    kind: Kind = "causal"


def left_model(reference: str = "left", *, precision: str = "fp32") -> LeftFiller:
    return LeftFiller(CITIES, name=reference)


@pytest.fixture
def lpaqa(home: Path, tmp_path: Path) -> Path:
    """A folder in LPAQA's layout, with prompts and pairs of one relation of the data beside it."""
    write_dataset(tmp_path / "lama", n_facts=60)
    folder = tmp_path / "LPAQA"
    write_lines(folder / "prompt" / "mine" / "P47.jsonl", [{"template": t} for t in BLIND + SEEN])
    pairs = [{"sub_label": f"Isle {n}", "obj_label": CITIES[n % 40]} for n in range(30)]
    write_lines(folder / "TREx_train" / "P47.jsonl", pairs)
    return folder


def _spec(lpaqa: Path, load: Any = left_model, **options: Any) -> StudySpec:
    settings = {"prompts": lpaqa, "relations": ("P47",), "combinations": ("manual", "mine", "all")}
    request = StudyRequest(dataset=str(lpaqa.parent / "lama"), model="fake", **(settings | options))
    return plan(request, load=load)[0]


def _study(lpaqa: Path, load: Any = left_model, **options: Any) -> Study:
    return Study(execute(_spec(lpaqa, load, **options), load=load))


def test_a_left_to_right_model_sees_what_stands_before_the_blank() -> None:
    assert not any(shows_subject(template, "left") for template in BLIND)
    assert all(shows_subject(template, "left") for template in SEEN)
    assert all(shows_subject(template, "both") for template in BLIND)


def test_prompts_that_tell_nothing_are_asked_and_left_out_of_every_ensemble(lpaqa: Path) -> None:
    whole = _study(lpaqa)
    study = whole.relation("P47")
    blind = [study.pool.templates.index(template) for template in BLIND]
    members = study.pool.members("mine")
    assert set(blind) < set(members)
    assert [n for n, entry in enumerate(study.pool.entries) if entry.aside] == blind
    for one in study.ensembles:
        assert not one.weights[blind].any()
        assert one.weights.sum() == pytest.approx(1)
    seen = [number for number in members if number not in blind]
    oracle = next(s for s in study.scores() if (s.combination, s.method) == ("mine", "oracle"))
    assert oracle.micro == (study.ranks[seen] == 1).any(axis=0).mean()
    (curve,) = (c for name, kind, c in study.curves if (name, kind) == ("mine", "log-linear"))
    assert len(curve) == len(seen) == 2
    assert any(note.startswith("P47: 2 of 5 prompts are subject-blind") for note in study.notes)


def test_the_option_brings_them_back_as_another_study(lpaqa: Path) -> None:
    whole = _study(lpaqa, blind=True)
    study = whole.relation("P47")
    found = study.ensemble("mine", "optimised")
    assert found is not None and (found[0].weights[list(study.pool.members("mine"))] > 0).all()
    assert whole.info.digest != _spec(lpaqa).digest


def test_a_study_of_prompts_that_all_tell_nothing_is_refused(lpaqa: Path) -> None:
    path = lpaqa / "prompt" / "mine" / "P47.jsonl"
    path.write_text(json.dumps({"template": BLIND[0]}), encoding="utf-8")
    with pytest.raises(UserError, match="--include-subject-blind"):
        _spec(lpaqa, combinations=("mine",))


def test_an_imported_set_is_a_source_of_prompts_and_pairs_by_its_name(lpaqa: Path) -> None:
    import_dataset(lpaqa, name="mine-own")
    named = {"prompts": Path("mine-own"), "training": Path("mine-own"), "relations": ()}
    spec = _spec(lpaqa, **named)
    assert spec.relations == ("P47",)  # those that the set has prompts of
    folders = {"prompts": lpaqa, "training": lpaqa / "TREx_train"}
    assert spec.digest == _spec(lpaqa, **folders).digest
    study = Study(execute(spec, load=left_model)).relation("P47")
    assert len(study.train) == 24  # 80 % of 30
    assert {fact.subject for fact in study.train} < {f"Isle {n}" for n in range(30)}
    with pytest.raises(UserError, match="mine-own"):
        _spec(lpaqa, prompts=Path("mine-owm"))


@pytest.mark.parametrize("ranking", ("raw", "filtered"))
def test_weights_are_tried_under_the_ranking_of_the_study(lpaqa: Path, ranking: Ranking) -> None:
    study = _study(lpaqa, hash_model, ranking=ranking).relation("P47")
    assert study.removed is not None
    n_valid = [sum(other.subject == fact.subject for other in study.test) for fact in study.test]
    assert max(n_valid) > 1
    firsts = []
    for one, ranks in zip(study.ensembles, study.ensemble_ranks, strict=True):
        verdict = study.judge(one.weights)
        assert verdict.correct.tolist() == (ranks == 1).tolist()
        firsts.append(verdict.first)
    taken_out = (np.array(firsts)[:, :, None] == study.removed).any()
    assert taken_out == (ranking == "raw")


def test_words_are_shown_under_the_ranking_of_the_study(lpaqa: Path) -> None:
    study = _study(lpaqa, hash_model, ranking="filtered").relation("P47")
    assert study.removed is not None
    for rows in study.rows:
        for fact, row in enumerate(rows):
            words = [word for word, _ in study.answers(row, fact)]
            assert words[0] == study.words[int(study.first_answers(row))]
            assert (words[0] == study.objects[fact]) == (row["rank_filtered"] == 1)


def test_the_gain_is_that_of_the_best_way_of_choosing_over_the_manual_prompt(lpaqa: Path) -> None:
    whole = _study(lpaqa)
    study = whole.relation("P47")
    scores = {(s.combination, s.method): s.micro for s in study.scores() if s.method != "oracle"}
    manual = scores.pop(("manual", "top1"))
    gain = largest_gain(whole)
    assert gain is not None and gain.relation == "P47"
    assert gain.mean == pytest.approx(max(scores.values()) - manual)
    assert scores[gain.combination, gain.method] == max(scores.values())
