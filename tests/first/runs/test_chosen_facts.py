"""Chosen facts: any set of facts is a short text, and every number is of these facts alone."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lama_core as lama
from lama_core import metrics
from lama_core.errors import UserError
from lama_core.metrics.fact_answers import AnswerFilter, join_answers
from lama_core.runs.alignment import align
from lama_core.runs.chosen_facts import facts_of, only_facts, text_of
from lama_core.runs.info import Run
from lama_core.views.table import VIEWS
from lama_core.views.view import ViewFunction, show_runs
from tools.bench.made_up import make_runs


@pytest.fixture(scope="module", params=[False, True], ids=["same words", "words of each"])
def runs(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[Run, ...]:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMA_HOME", str(home))
        return make_runs(
            home / "data" / "runs", n_relations=6, n_facts=600, own_candidates=request.param
        )


@pytest.fixture(autouse=True)
def home(runs: tuple[Run, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMA_HOME", str(runs[0].info.folder.parents[2]))


def chosen(run: Run, n: int, seed: int = 0) -> frozenset[str]:
    facts = run.facts["fact_id"]
    return frozenset(np.random.default_rng(seed).choice(facts, n, replace=False).tolist())


@pytest.mark.parametrize("n", [1, 5, 100, 300, 599, 600])
def test_a_text_holds_any_set_of_facts_in_few_characters(runs: tuple[Run, ...], n: int) -> None:
    facts = chosen(runs[0], n, seed=n)
    text = text_of(runs, facts)
    assert facts_of(text) == facts
    assert len(text) < 8 + 600 / 6 + 30
    assert re.fullmatch(r"[\w.-]+", text, re.ASCII)
    assert text[0].isalnum() and text[-1].isalnum()  # else options and links are cut


def test_ranks_and_answers_are_those_of_the_whole_runs(runs: tuple[Run, ...]) -> None:
    facts = chosen(runs[0], 90)
    text = text_of(runs, facts)
    whole, part = (join_answers(align(some)) for some in (runs, only_facts(runs, text)))
    inside = np.flatnonzero(whole.facts["fact_id"].isin(facts))
    assert set(part.facts["fact_id"]) == facts
    names = ["fact_id", "subject", "object", "query", "object_count"]
    kept = whole.facts.iloc[inside].reset_index(drop=True)
    pd.testing.assert_frame_equal(part.facts[names], kept[names], check_categorical=False)
    for one, other in zip(part.runs, whole.runs, strict=True):
        for name in ("rank", "log_prob", "confidence", "is_object", "is_valid"):
            assert np.array_equal(getattr(one, name), getattr(other, name)[inside], equal_nan=True)
        assert one.answer.astype(str).tolist() == other.answer[inside].astype(str).tolist()
    for counting in ("counted", "excluded", "all"):
        counts = AnswerFilter(counting=counting)
        assert len(part.select(counts)) == np.isin(whole.select(counts), inside).sum()


def test_counts_are_of_the_chosen_facts_and_say_so(runs: tuple[Run, ...]) -> None:
    facts = chosen(runs[0], 7)
    text = text_of(runs, facts)
    for run, alone in zip(only_facts(runs, text), runs, strict=True):
        rows = alone.facts[alone.facts["fact_id"].isin(facts)]
        assert (run.info.n, run.info.n_excluded) == (
            rows["excluded"].isna().sum(), rows["excluded"].notna().sum()
        )  # fmt: skip
        assert {one.name for one in run.info.relations} == set(rows["relation"])
        assert run.info.counts == "chosen facts"
        right = rows["rank_filtered"][rows["excluded"].isna()] == 1
        assert metrics.scored_rows(run, "filtered").ranks.tolist().count(1) == right.sum()


OF_OTHER_RUNS = {"margins", "wording", "ways", "training", "compare", "analogies"}


@pytest.mark.parametrize(
    "function",
    [one for one in VIEWS if one.view.name not in OF_OTHER_RUNS],
    ids=lambda one: one.view.name,
)
def test_every_view_of_chosen_facts_says_that_they_are(
    runs: tuple[Run, ...], function: ViewFunction[..., Any, Any]
) -> None:
    some = align(only_facts(runs, text_of(runs, chosen(runs[0], 200))))
    shown = show_runs(function.view, some[: function.view.most_runs], function.request())
    assert "chosen facts" in shown.caption


def test_a_file_of_ids_gives_the_same_numbers_as_a_link(
    runs: tuple[Run, ...], tmp_path: Path
) -> None:
    facts = chosen(runs[0], 50)
    file = tmp_path / "chosen.txt"
    file.write_text("\ufeff" + "\n".join(facts) + "\n\n", encoding="utf-8")
    names = [run.info.id for run in runs]
    by_file, by_link = (lama.results(names, facts=one) for one in (str(file), text_of(runs, facts)))
    pd.testing.assert_frame_equal(by_file, by_link)
    assert by_file.groupby("run")["n"].sum().nunique() == 1  # aligned
    compared = lama.compare(names[0], names[1], facts=str(file))
    n = int(compared["n"].sum()) if "n" in compared else 0
    assert 0 < n <= 50


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[:9] + text[14:], "incomplete or damaged"),
        (lambda text: text[:-8] + "AAAA" + text[-8:], "incomplete or damaged"),
        (lambda text: text[:-8] + "00000000", "isn't on this machine"),
        (lambda text: "chosen.txt", "There is no file 'chosen.txt'"),
    ],
)
def test_a_damaged_text_is_one_clear_sentence(
    runs: tuple[Run, ...], change: Callable[[str], str], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        only_facts(runs, change(text_of(runs, chosen(runs[0], 40))))
