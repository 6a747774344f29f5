"""Series of checkpoints: each checkpoint is one run."""

import shutil
from pathlib import Path

import pytest
from calling import invoke, printed, told
from data_files import write_lama
from tiny_models import save_model_folder

from lama_core.errors import UserError
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.checkpoints import Checkpoint, checkpoint_of, name_models, step_of
from lama_core.runs.find import list_runs

STEPS = (0, 1, 2, 4, 8)


@pytest.mark.parametrize(
    ("name", "step"),
    (
        ("checkpoint-500", 500),
        ("global_step77", 77),
        ("stage1-step300k-tokens4B", 300_000),
        ("step_2M", 2_000_000),
        ("footstep5", None),
        ("0123456789abcdef0123456789abcdef01234567", None),
    ),
)
def test_the_step_is_read_from_the_name(name: str, step: int | None) -> None:
    assert step_of(name) == step


def test_a_checkpoint_is_a_revision_or_a_folder() -> None:
    named = name_models(["lab/tiny"], ["step1,step2", "step8"])
    assert [one.reference for one in named] == [f"lab/tiny@step{step}" for step in (1, 2, 8)]
    assert {one.series for one in named} == {"lab/tiny"}
    assert checkpoint_of("lab/tiny@step8") == Checkpoint("lab/tiny", 8)
    assert checkpoint_of("/models/tiny/step8") == Checkpoint("/models/tiny", 8)
    assert checkpoint_of("minilm-mlm") is None
    assert checkpoint_of("server:http://host/step1#step1") is None


def test_a_revision_of_a_catalogue_name_is_that_of_its_hub_model() -> None:
    entry = find_model("electra-small-generator@step1")
    assert entry.name == "google/electra-small-generator@step1"
    assert entry.source.revision == "step1"


def test_a_model_without_revisions_and_a_path_as_revision_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="minilm-mlm has no revisions"):
        name_models(["minilm-mlm"], ["step1"])
    with pytest.raises(UserError, match="isn't the name of a folder"):
        name_models([str(tmp_path)], ["../step1"])
    with pytest.raises(UserError, match="No revision is named"):
        name_models(["lab/tiny"], [","])


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("series")
    for step in STEPS:
        save_model_folder("bert-cased", place / f"step{step}", seed=step)
    return place


@pytest.fixture
def series(folders: Path, tmp_path: Path, home: Path) -> Path:
    return Path(shutil.copytree(folders, tmp_path / "tiny"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    facts = (("France", "Paris"), ("England", "London"), ("Italy", "Rome"), ("Spain", "Madrid"))
    relation = {"relation": "P36", "template": "The capital of [X] is [Y] .", "label": "capital",
                "type": "1-1"}  # fmt: skip
    return write_lama(tmp_path / "toy", [relation], {"P36": facts})


def steps_here() -> list[int]:
    runs = [run for run in list_runs(kinds=("cloze",)) if not run.bundled]
    return sorted(run.checkpoint.step for run in runs if run.checkpoint)


def test_a_folder_of_checkpoints_is_one_run_each_and_results_show_the_series(
    series: Path, data: Path
) -> None:
    words = ("probe", "--dataset", str(data), "--model", str(series))
    lines = told(*words)
    assert len({line["run"] for line in lines}) == len(STEPS)
    assert steps_here() == [*STEPS]
    made = {run.id: run.made for run in list_runs()}
    assert told(*words) == lines
    assert {run.id: run.made for run in list_runs()} == made, "finished runs are used again"
    (found,) = told("results", "training", *sorted({line["run"] for line in lines}))
    assert found["series"] == str(series)
    assert [line["step"] for line in found["steps"]] == [*STEPS]
    by_run = {line["run"]: line["p_at_1"] for line in lines}
    assert [by_run[line["run"]] for line in found["steps"]] == [
        line["p_at_k"] for line in found["steps"]
    ]
    text = printed("results", "training")
    assert "4 facts that count at all 5 steps" in text and "P36 capital" in text


def test_a_missing_a_damaged_and_another_vocabulary_cost_one_sentence_each(
    series: Path, data: Path
) -> None:
    (series / "step1" / "model.safetensors").write_bytes(b"damaged")
    shutil.rmtree(series / "step2")
    save_model_folder("bert-uncased", series / "step2")
    words = ("probe", "--dataset", str(data), "--model", str(series))
    result = invoke([*words, "--revisions", "step0,step1,step2,step3,step4,step8"])
    assert result.exit_code == 0, result.exception
    said = [line for line in result.stderr.splitlines() if " is excluded: " in line]
    assert len(said) == 3
    for step, reason in ((1, "step1"), (3, "there is no such folder"), (2, "vocabulary differs")):
        assert any(f"step{step} is excluded" in line and reason in line for line in said), said
    assert steps_here() == [0, 4, 8]
