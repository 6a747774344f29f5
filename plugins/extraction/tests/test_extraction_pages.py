"""Runs of systems that find answers in texts, on Results and Facts beside those of models."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from opening import open_page
from streamlit.testing.v1 import AppTest

from lama_core.datasets import load_dataset
from lama_core.runs.execute import execute
from lama_core.runs.info import Run
from lama_extraction.plan import plan_extract
from lama_extraction.request import ExtractRequest

BUNDLED = "starter-minilm_mlm-manual-07551b33bf"


def made(text: Path, *said: str) -> Run:
    """RE_n on eight capitals, trained on what a text says."""
    text.write_text("\n".join(said), encoding="utf-8")
    request = ExtractRequest(
        dataset="starter", relations=("P36",), corpus=str(text), linking=("naive",), limit=8
    )
    return execute(plan_extract(request)[0])


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        patch.setenv("LAMA_HOME", str(folder))
        yield folder


@pytest.fixture(scope="module")
def run(home: Path) -> Run:
    """What was learnt from many capitals."""
    facts = load_dataset("starter").facts_of("P36")
    said = [f"The capital of {one.subject} is {one.object}." for one in facts[1:60]]
    return made(home / "text.txt", *said, "Egypt sees Norway.", "Oslo sees Cairo.")


def opened(page: str, *runs: str, **params: str) -> AppTest:
    return open_page(page, data="starter", runs=list(runs), **params)


def without_faults(app: AppTest) -> AppTest:
    assert [one.value for one in app.error] == []
    return app


@pytest.mark.parametrize("tab", ["P@k", "Compare"])
def test_results_are_drawn(run: Run, tab: str) -> None:
    without_faults(opened("results", run.info.id, BUNDLED, tab=tab))


def test_a_fact_says_what_was_found(run: Run) -> None:
    facts = run.facts
    right = facts[facts["rank_filtered"] == 1].iloc[0]
    app = without_faults(opened("facts", run.info.id, fact=f"{right['fact_id']}#0"))
    boxes = "".join(one.proto.body for one in app.get("html"))
    assert "the words found" in boxes and str(right["object"]) in boxes


def test_a_zero_answer_says_that_nothing_was_found(tmp_path: Path) -> None:
    run = made(tmp_path / "text.txt", "Nothing of them.")
    assert run.facts["first"].isna().all() and run.facts["rank_raw"].eq(153).all()
    fact = run.facts.iloc[0]["fact_id"]
    app = without_faults(opened("facts", run.info.id, fact=f"{fact}#0"))
    assert any("ranks after all other words" in one.value for one in app.caption)
    for view in ("Confusion", "Wrong answers"):
        without_faults(opened("facts", run.info.id, view=view))
