"""Runs beside each other are of the same facts; nothing else of them moves."""

from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from probe_fakes import CITIES, HashFiller, with_facts, write_dataset

from lama_core import metrics
from lama_core.candidates.columns import Candidates
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.plan import plan
from lama_core.runs import facts_table
from lama_core.runs.alignment import align, differing_candidates
from lama_core.runs.execute import execute
from lama_core.runs.info import Run, read_info, write_info
from tools.bench.made_up import make_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, ...]:
    return make_runs(tmp_path_factory.mktemp("runs"), n_relations=6, n_facts=600)


def counted(run: Run) -> set[str]:
    facts = run.facts
    return set(facts.loc[facts["excluded"].isna(), "fact_id"])


def test_runs_beside_each_other_count_the_facts_that_all_count(runs: tuple[Run, ...]) -> None:
    common = reduce(set.intersection, map(counted, runs))
    assert len(common) < min(run.info.n for run in runs), "each leaves out facts of its own"
    for run, alone in zip(align(runs), runs, strict=True):
        assert counted(run) == common
        assert run.info.n == len(common) == sum(one.n for one in run.info.relations)
        assert run.info.n + run.info.n_excluded == alone.info.n + alone.info.n_excluded
        scored = metrics.scored_rows(run, "filtered")
        assert scored.n.tolist() == [one.n for one in run.info.relations]
        facts = run.facts
        assert facts["rank_raw"].isna().equals(facts["excluded"].notna())
        assert facts["first"].isna().equals(facts["excluded"].notna())
        kept = facts["excluded"].isna()
        assert (facts.loc[kept, "rank_raw"] == alone.facts.loc[kept, "rank_raw"]).all()


def test_other_questions_and_other_data_stay_as_they_are(runs: tuple[Run, ...]) -> None:
    first, second, *_ = runs
    for change in ({"prompts": "negated"}, {"data_digest": "other"}, {"kind": "contrast"}):
        other = replace(second, info=replace(second.info, **change))
        assert [run.info for run in align([first, other])] == [first.info, other.info]
    assert align([first]) == (first,)


def test_runs_without_a_common_fact_stay_as_they_are(runs: tuple[Run, ...]) -> None:
    halves = []
    for run, part in zip(runs[:2], (0, 1), strict=True):
        facts = run.facts.copy()
        gone = np.arange(len(facts)) % 2 == part
        facts["excluded"] = facts["excluded"].cat.add_categories(["gone"])
        facts.loc[gone, "excluded"] = "gone"
        halves.append(with_facts(run, facts))
    assert [run.info.n for run in align(halves)] == [run.info.n for run in halves]


def test_other_candidates_are_noticed(runs: tuple[Run, ...]) -> None:
    infos = [run.info for run in runs]
    assert not differing_candidates(infos)
    assert differing_candidates([infos[0], replace(infos[1], candidates_digest="other")])


def on_words(folder: Path, data: Path, name: str, first: int, last: int) -> Run:
    """A run that ranks some of the words, by a model of its own for each `name`."""

    def load(reference: str, *, precision: str) -> HashFiller:
        return HashFiller(CITIES, name=reference)

    spec = plan(ProbeRequest(str(data), (name,), candidates="full"), load=load)[0]
    spec = replace(spec, candidates=Candidates("some", CITIES[first:last]))
    return execute(spec, folder=folder, load=load)


def test_runs_that_ranked_other_words_are_ranked_on_those_that_all_have(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "toy")
    one, other = on_words(tmp_path, data, "a", 0, 32), on_words(tmp_path, data, "b", 8, 40)
    shared = [on_words(tmp_path, data, name, 8, 32) for name in ("a", "b")]
    for run, alone, exactly in zip(align([one, other]), (one, other), shared, strict=True):
        assert run.info.n_candidates == 24 and alone.info.n_candidates == 32
        assert run.info.n == exactly.info.n < alone.info.n
        facts, there = run.facts, exactly.facts
        assert facts["excluded"].isna().equals(there["excluded"].isna())
        counts = facts["excluded"].isna()
        exact_to = run.info.exact_to
        assert exact_to is not None and 1 <= exact_to <= 10
        known = counts & (alone.facts["rank_raw"] <= 10)
        assert known.sum() > 20 and (facts["rank_raw"] != alone.facts["rank_raw"])[known].any()
        for column in ("rank_raw", "rank_filtered"):
            assert (facts.loc[known, column] == there.loc[known, column]).all()
            for k in range(1, exact_to + 1):
                assert ((facts[column] <= k) == (there[column] <= k))[counts].all()
            assert (facts[column] >= there[column])[counts].all()
        for column in ("first", "first_filtered"):
            found = counts & facts[column].notna()
            assert found.sum() > 20
            assert (facts[column].astype(str) == there[column].astype(str))[found].all()
            values = [frame.loc[found, f"{column}_log_prob"] for frame in (facts, there)]
            assert values[0].tolist() == pytest.approx(values[1].tolist())
        for column in ("first_is_valid", "first_is_object"):
            found = counts & facts["first"].notna()
            assert (facts[column] == there[column])[found].all()
        words, exact_words = run.top.words[counts], exactly.top.words[counts]
        assert ((words == exact_words) | (words == None)).all()  # noqa: E711


def test_no_rank_is_below_1_if_the_run_lacks_facts_with_valid_objects(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "toy")
    one, other = on_words(tmp_path, data, "a", 0, 32), on_words(tmp_path, data, "b", 8, 40)
    # As if all words above the gold answers were objects of facts outside the run.
    facts = one.facts.assign(rank_filtered=one.facts["rank_filtered"].clip(upper=1))
    aligned, _ = align([with_facts(one, facts), other])
    ranks = aligned.facts["rank_filtered"].dropna()
    assert len(ranks) and (ranks == 1).all()


def test_words_that_were_not_kept_leave_runs_on_their_own(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "toy")
    one, other = on_words(tmp_path, data, "a", 0, 32), on_words(tmp_path, data, "b", 8, 40)
    (other.info.folder / "candidates.parquet").unlink()
    write_info(other.info, other.info.folder)
    other = Run(read_info(other.info.folder))
    for run, alone in zip(align([one, other]), (one, other), strict=True):
        assert (run.info.n_candidates, run.info.exact_to) == (alone.info.n_candidates, None)
    folded = replace(one, info=replace(one.info, fold_case=True))
    assert align([one, folded])[0].info.exact_to is None


def test_single_columns_equal_those_of_all_rows(tmp_path: Path) -> None:
    make_runs(tmp_path, n_relations=4, n_facts=300, n_runs=3, own_candidates=True)
    runs = [Run(read_info(folder)) for folder in sorted(tmp_path.iterdir())]
    for single, whole in zip(align(runs), align(runs), strict=True):
        assert whole.info.exact_to is not None, "ranked among the shared candidates"
        for name, column in whole.facts.items():
            assert single.column(str(name)).equals(column)
        for name in ("relation", "subject", "object", "excluded"):
            words = [*single.words_of(name), None]
            assert [words[code] for code in single.codes(name)] == [
                None if word != word else word for word in whole.facts[name].tolist()
            ]


def test_rows_in_several_groups_are_read_as_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(folder: str) -> Run:
        return make_runs(tmp_path / folder, n_relations=4, n_facts=300, n_runs=1)[0]

    one = made("one")
    monkeypatch.setattr(facts_table, "ROW_GROUP", 90)
    several = made("several")
    assert several.facts.equals(one.facts)
    assert (several.top.words == one.top.words).all()
    assert np.array_equal(several.top.log_probs, one.top.log_probs, equal_nan=True)
