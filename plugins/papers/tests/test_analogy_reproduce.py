"""The paper's Table 1 done again: what can be run has both numbers, the rest its reason."""

from pathlib import Path

import pytest
from analogy_fakes import CAPITALS, Work, knowing, relation, run_probes
from tiny_models import save_model_folder

from lama_core.datasets.dataset import AnalogyRelation, ReadReport, make_analogies
from lama_core.probes.analogy.accuracy_tables import UNMARKED
from lama_core.probes.analogy.instances import ProbeOptions
from lama_core.probes.analogy.request import AnalogyRequest
from lama_core.probes.analogy.spec import ProbeRun
from lama_papers import rezaee2022 as module
from lama_papers.framework import ReproduceOptions
from lama_papers.registry import find_paper
from lama_papers.rezaee2022 import (
    differs_from_paper,
)
from lama_papers.tables import TableContents


def many_relations(n: int) -> list[AnalogyRelation]:
    return [relation(f"capital {number}") for number in range(n)]


def write_bats(root: Path) -> Path:
    place = root / "3_Encyclopedic_semantics"
    place.mkdir(parents=True)
    lines = "".join(f"{head}\t{tail}\n" for head, tail in CAPITALS)
    (place / "E01 [country - capital].txt").write_text(lines, encoding="utf-8")
    return root


@pytest.fixture
def tiny(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tiny model in the place of two of the paper's; it is no RelBERT model."""
    name = str(save_model_folder("bert-cased", home / "tiny"))
    judges = {
        "RoBERTa-base": module.AnalogyJudge(AnalogyRequest("", models=(name,))),
        "RoBERTa-large": module.AnalogyJudge(AnalogyRequest("", models=(name,))),
        "fastText": module.JUDGES["fastText"],
        "RelBERT": module.AnalogyJudge(AnalogyRequest("", relbert=(name,)), "models get relbert"),
    }
    monkeypatch.setattr(module, "JUDGES", judges)
    return name


def tables(options: ReproduceOptions) -> dict[str, TableContents]:
    found = find_paper("rezaee2022").reproduce(options)
    return {table.id: table.made for table in found.tables}


@pytest.mark.usefixtures("tiny")
def test_our_numbers_stand_beside_the_papers_with_what_differs(tmp_path: Path) -> None:
    data = str(write_bats(tmp_path / "mine"))
    found = tables(ReproduceOptions("", data, limit=4))
    rows = {(row.model, row.what): row for row in found["table1"].rows}
    base = rows["RoBERTa-base", "encyclopedic, unsupervised random"]
    assert (base.published, base.n) == (70.33, 2 * 4)
    assert base.ours is not None and base.difference is None
    assert base.differs == "mine, not BATS 3.0; at most 4 a relation"
    nothing = rows["RoBERTa-base", "lexicographic, unsupervised random"]
    assert (nothing.ours, nothing.reason) == (None, "not in this dataset")
    fast = rows["fastText", "all, unsupervised type"]
    assert (fast.ours, fast.published) == (None, 77.47)
    absent = {one.what: one for one in found["table1"].absent}
    assert "analogy probe" in absent["fastText"].command
    assert "Not a RelBERT model" in absent["RelBERT"].reason
    assert absent["RelBERT"].command == "models get relbert"

    by_relation = {row.what: row for row in found["table2"].rows}
    assert {row.model for row in found["table2"].rows} == {"RoBERTa-large"}
    capital = by_relation["country - capital, supervised random"]
    # Seeds x (positives and negatives) x instances of the test half x both halves of random.
    assert (capital.published, capital.n) == (77.85, 5 * 2 * 4 * 2)
    average = by_relation[f"{UNMARKED}, supervised random"]
    assert (average.published, average.ours) == (68.5, capital.ours)  # the one unmarked relation
    assert len(found["table2"].rows) == 40 * 3 + 3
    tested = {row.what: row for row in found["section4"].rows}
    assert tested["p above 0.05, random"].published == "over two thirds"
    assert set(tested) == {
        f"p{what}, {probe}"
        for what in (" above 0.05", " not above 0.05, lowest first")
        for probe in ("random", "random-head", "random-tail")
    }
    charts = found["table1"].charts
    assert len(charts) == 2 * 3
    paper = charts[0].frame[charts[0].frame["paper"]]
    assert paper["series"].iloc[0] == "RoBERTa-base"


def test_only_the_same_options_and_data_compare_with_the_paper(tmp_path: Path) -> None:
    def run(name: str, **options: object) -> ProbeRun:
        work = Work(
            make_analogies(name, many_relations(40), ReadReport()),
            probes=("reverse",),
            settings=("unsupervised",),
            options=ProbeOptions(**options),  # type: ignore[arg-type]
        )
        return run_probes(knowing()[1], work, folder=tmp_path)[0]

    assert differs_from_paper(run("bats")) == ()
    assert differs_from_paper(run("bats", limit=5)) == ("at most 5 a relation",)
    other = run("bats", strict=True, normalise="mean")
    assert differs_from_paper(other) == (
        "no true negatives",
        "mean of log-probabilities",
    )
    assert differs_from_paper(run("mine")) == ("mine, not BATS 3.0",)
