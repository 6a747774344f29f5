"""Runs whose rows know a verdict, a few predictions or a rank: undefined numbers are absent."""

import math
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from data_files import write_lines

from lama_core.cli import output
from lama_core.errors import UserError
from lama_core.metrics.comparison import compare
from lama_core.metrics.fact_answers import join_answers
from lama_core.metrics.known_ranks import defined_rows, hits
from lama_core.metrics.score_tables import score_table
from lama_core.metrics.slices import slice_table
from lama_core.runs.facts_table import RANKED
from lama_core.runs.find import load_run
from lama_core.runs.info import Run
from lama_core.views.choice import RunsRequest
from lama_core.views.compare import compare as compare_view
from lama_core.views.table import VIEWS
from lama_core.views.view import narrowed, show_runs
from lama_tool_results.importing import ImportRunRequest, import_run

FACTS = [(f"r{at % 2}", f"s{at}", f"o{at}") for at in range(8)]
WORDS = [[f"o{at}", "y", "z"] if at < 3 else ["x", f"o{at}" if at < 5 else "y", "z"]
         for at in range(8)]  # fmt: skip
# What a row knows -> its cells. Three facts are right, two more are second.
KINDS: dict[str, Any] = {
    "rank": lambda at: {"rank": 1 if at < 3 else 2 if at < 5 else 50 + at},
    "verdict": lambda at: {"correct": at < 3},
    "three": lambda at: {"predictions": WORDS[at]},
    "mixed": lambda at: {"rank": 1} if at < 3 else {"correct": False},
    "scored": lambda at: {"predictions": WORDS[at], "scores": [-1.0, -2.0, -3.0]},
}
LARGEST = {"rank": math.inf, "verdict": 1, "three": 3, "mixed": 1, "scored": 3}


def imported(path: Path, **fields: str) -> Run:
    request = ImportRunRequest(str(path), **{"model": path.stem} | fields)
    (one,) = import_run.answer(request)
    return load_run(one["run"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Run]]:
    folder = tmp_path_factory.mktemp("unknown")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMA_HOME", str(folder))
        found = {}
        for kind, cells in KINDS.items():
            lines = [
                dict(zip(("relation", "subject", "object"), fact, strict=True)) | cells(at)
                for at, fact in enumerate(FACTS)
            ]
            found[kind] = imported(write_lines(folder / f"{kind}.jsonl", lines))
        yield found


@pytest.mark.parametrize("k", (1, 3, 10))
@pytest.mark.parametrize("function", VIEWS, ids=lambda one: one.view.name)
def test_no_view_has_a_number_that_is_not_defined(
    function: Any, k: int, runs: dict[str, Run], capsys: pytest.CaptureFixture[str]
) -> None:
    most = function.view.most_runs or len(runs)
    for names in combinations(runs, most):
        chosen = tuple(runs[name] for name in names)
        fields = {"k": k} if "k" in function.request.__dataclass_fields__ else {}
        if issubclass(function.request, RunsRequest):
            request = narrowed(function.request, RunsRequest(), **fields)
        elif function.view.name == "compare":
            request = function.request(*(run.info.id for run in chosen), **fields)
        else:
            return  # of runs of other kinds
        shown_runs = [run for run in chosen if not function.view.lacks(run.info)]
        try:
            shown = show_runs(function.view, shown_runs, request)
        except UserError as error:
            assert str(error).endswith(".") and "\n" not in str(error)
            continue
        output.print_parts(shown.view.tables(shown))
        output.print_json(shown.to_json())
        texts = [capsys.readouterr().out, shown.conclusion, *shown.view.notes(shown)]
        if shown.view.has_figure:
            texts += shown.figure.frame["said"].astype(str).tolist()
        for text in texts:
            assert not re.search(r"\bnan\b|2,?147,?483,?64\d", text), text
        if {"run", "p_at_k"} <= set(shown.frame):
            values = shown.frame.assign(k=shown.frame.get("k", k))
            for name in names:
                of_run = values[values["run"] == runs[name].info.id]
                unknown = of_run["k"] > LARGEST[name]
                assert of_run["p_at_k"][unknown].isna().all(), name
                assert of_run["p_at_k"][~unknown & (of_run["n"] > 0)].notna().all(), name


def test_p_at_k_counts_what_each_row_knows(runs: dict[str, Run]) -> None:
    def of(kind: str, k: int, column: str = "p_at_k") -> float:
        return float(score_table([runs[kind]], by="source", k=k)[column].iloc[0])

    for kind in KINDS:
        assert of(kind, 1) == pytest.approx(3 / 8)
    assert of("three", 3) == of("rank", 3) == pytest.approx(5 / 8)
    ranks = [1, 1, 1, 2, 2, 55, 56, 57]
    assert of("rank", 1, "mean_rank") == pytest.approx(sum(ranks) / 8)
    for kind in ("verdict", "three", "mixed"):
        assert math.isnan(of(kind, 1, "mean_rank")) and math.isnan(of(kind, 1, "mrr"))
        assert math.isnan(of(kind, 1, "p_at_10"))
    # Ranks beyond the depth count as 0, so a list of three is enough.
    at_3 = score_table([runs["three"]], by="source", mrr_depth=3)["mrr"].iloc[0]
    assert at_3 == pytest.approx((3 + 2 / 2) / 8)
    joined = join_answers([runs["three"]])
    table = slice_table(joined, k=10)
    assert table["p_at_k"].isna().all()


def test_runs_are_compared_only_where_both_are_defined(runs: dict[str, Run]) -> None:
    assert compare(runs["three"], runs["rank"], k=3).over_facts.difference == 0
    with pytest.raises(UserError, match=r"P@10 isn't defined for three .*up to P@3"):
        compare(runs["three"], runs["rank"], k=10)
    assert defined_rows(pd.array(["a", "a", "b"]), [hits(*row) for row in HITS]).tolist() == [
        False, False, True,
    ]  # fmt: skip


HITS = [
    (pd.array([1, 2, 9]).to_numpy(float), pd.array([RANKED, 1, RANKED]).to_numpy(int), 3),
    (pd.array([1, 2, 3]).to_numpy(float), pd.array([RANKED] * 3).to_numpy(int), 3),
]


def test_a_mean_of_relations_of_which_one_is_undefined_is_undefined(tmp_path: Path) -> None:
    """Without the undefined relation, it would be the mean of other relations than it says."""
    lines = [
        dict(zip(("relation", "subject", "object"), fact, strict=True))
        | KINDS["rank" if fact[0] == "r0" else "three"](at)
        for at, fact in enumerate(FACTS)
    ]
    half, other = (imported(write_lines(tmp_path / f"{name}.jsonl", lines)) for name in "ab")
    by_relation = score_table([half], k=10).set_index("relation")["p_at_k"]
    assert by_relation["r0"] == 3 / 4 and math.isnan(by_relation["r1"])
    assert math.isnan(score_table([half], by="source", k=10)["p_at_k"].iloc[0])
    found = compare(half, other, k=10)
    assert [one.relation for one in found.relations] == ["r0"] and found.undefined == ("r1",)


def test_unknown_first_answers_are_not_different_answers(runs: dict[str, Run]) -> None:
    same = compare(runs["rank"], runs["verdict"]).agreement
    assert math.isnan(same.same_first) and same.n_unknown == 5
    with_words = compare(runs["three"], runs["scored"]).agreement
    assert with_words.same_first == 1 and with_words.n_unknown == 0


def test_kappa_of_runs_that_are_always_right_is_undefined_and_nobody_leads(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        lines = [{"relation": r, "subject": s, "object": o, "rank": 1} for r, s, o in FACTS]
        found.append(imported(write_lines(tmp_path / f"{name}.jsonl", lines)))
    agreed = compare(*found).agreement
    assert math.isnan(agreed.kappa) and agreed.same_first == 1
    request = compare_view.request(*(run.info.id for run in found))
    shown = show_runs(compare_view.view, found, request)
    assert "level" in shown.conclusion and "ahead" not in shown.conclusion
