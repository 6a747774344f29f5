"""LPAQA done again with a small fake model, on facts of its own and on the starter's."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from data_files import write_lines
from probe_fakes import CITIES, HashFiller, write_dataset

from lama_core.errors import UserError
from lama_papers.framework import ReproduceOptions
from lama_papers.jiang2020 import LPAQA_PAPER
from lama_papers.tables import ReproducedTable, Reproduction

MINED = ("[X] native [Y] .", "[X] from [Y] .", "home of [X] is [Y] .", "[X] near [Y] .")
WORDS = (*CITIES, "from", "near", "home", "native", "out", "born", "was", "is", "of", "in", "at")


@contextmanager
def fake_models(home: Path) -> Iterator[list[str]]:
    """An empty home, and a fake for every model; the names of the models that are loaded."""
    loaded: list[str] = []

    def load(name: str, **_: object) -> HashFiller:
        if name == "broken":
            raise UserError("There is no model 'broken'.")
        loaded.append(name)
        return HashFiller(WORDS, name=name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMA_HOME", str(home))
        patch.setattr("lama_core.models.cache.load_model", load)
        yield loaded


@pytest.fixture(autouse=True)
def home(tmp_path: Path) -> Iterator[list[str]]:
    with fake_models(tmp_path / "home") as loaded:
        yield loaded


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `lama` and `lpaqa` in it; one relation has prompts."""
    folder = tmp_path_factory.mktemp("data")
    lama = write_dataset(folder / "lama", n_facts=40)
    google = [{"sub_label": f"Writer {n}", "obj_label": CITIES[n], "masked_sentences": ["[MASK] ."]}
              for n in range(8)]  # fmt: skip
    write_lines(lama / "Google_RE" / "place_of_birth_test.jsonl", google)
    births = lama / "TREx" / "P19.jsonl"
    told = {"uuid": "t", "sub_label": "City3 Joe", "obj_label": "City3", "predicate_id": "P19"}
    births.write_text(births.read_text() + json.dumps(told) + "\n", encoding="utf-8")
    lpaqa = folder / "lpaqa"
    write_lines(lpaqa / "prompt" / "mine" / "P19.jsonl", [{"template": text} for text in MINED])
    pairs = [{"sub_label": f"Trainee {n}", "obj_label": CITIES[n % 40]} for n in range(50)]
    write_lines(lpaqa / "TREx_train" / "P19.jsonl", pairs)
    return folder


@pytest.fixture(scope="module")
def every(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """All tables, of a model that the paper doesn't have."""
    with fake_models(tmp_path_factory.mktemp("every")):
        return _reproduced(data, "hash")


def _reproduced(data: Path, *models: str, tables: tuple[str, ...] = ()) -> Reproduction:
    return LPAQA_PAPER.reproduce(ReproduceOptions("", str(data), models, None, tables))


def _table(found: Reproduction, name: str) -> ReproducedTable:
    return next(table for table in found.tables if table.id == name)


def test_every_table_is_made_or_says_why_it_is_not(every: Reproduction) -> None:
    assert [table.id for table in every.tables] == list(LPAQA_PAPER.sources)
    for table in every.tables:
        assert table.made.rows or table.made.absent, table.id
        faults = {row.reason for row in table.made.rows if row.ours is None}
        if table.id == "table15":  # the fake can't mask a whole subject, and says so
            assert all("can't mask a whole subject" in one for one in faults)
            continue
        assert faults <= {"all values are equal", "no prompt has this pattern"}, table.id


def test_no_published_value_stands_beside_a_model_that_the_paper_has_not(
    every: Reproduction,
) -> None:
    for table in (_table(every, f"table{n}") for n in (2, 3, 4, 7, 8, 10)):
        beside = {row.model for row in table.made.rows if row.published is not None}
        assert beside <= {"Majority"}, table.id
        assert {"BERT-base", "BERT-large"} <= {one.what for one in table.made.absent}


def test_a_model_of_the_paper_is_compared_and_what_differs_is_said(data: Path) -> None:
    table = _table(_reproduced(data, "bert-base-cased", tables=("table2",)), "table2")
    row = next(row for row in table.made.rows if row.what == "Mine Opti.")
    assert row.published == 38.9
    assert row.differs == "1 of 41 relations; 41 of 34,039 facts"
    assert row.difference is None
    assert [one.what for one in table.made.absent][:1] == ["BERT-large"]


def test_figure_1_has_five_answers_a_prompt_and_the_rank_of_the_right_one(data: Path) -> None:
    found = _reproduced(data, "hash", "bert-base-cased", tables=("figure1",))
    rows = _table(found, "figure1").made.rows
    ours = {row.what: row for row in rows if row.model == "hash"}
    assert len(ours) == 2 * 3 and all(row.published is None for row in ours.values())
    answers = ours["mined: ___ released the DirectX ."].ours
    assert isinstance(answers, str) and answers.count("[-") == 5
    printed = {row.what: row for row in rows if row.model == "bert-base-cased"}
    manual = printed["manual: DirectX is developed by ___ ."]
    assert manual.published == (
        "Intel [-1.06], Microsoft [-2.21], IBM [-2.76], Google [-3.40], Nokia [-3.58]"
    )
    ranks = [printed[f"{kind}: rank of Microsoft"] for kind in ("manual", "mined", "paraphrased")]
    assert [row.published for row in ranks] == [2, 1, 1]
    assert all(row.differs == "the paper doesn't name the model" for row in ranks)


def test_facts_whose_object_stands_in_the_subject_are_not_in_table_9(every: Reproduction) -> None:
    numbers = [_table(every, name).made.rows[0].n for name in ("table8", "table9")]
    assert numbers == [41, 40]


def test_google_re_is_asked_with_the_prompts_of_t_rex(every: Reproduction) -> None:
    rows = _table(every, "table10").made.rows
    assert [(row.what, row.n) for row in rows] == [("Man", 8), ("Mine", 8), ("Mine+Man", 8)]
    assert rows[0].differs == "1 of 3 relations; 8 of 5,527 facts"


def test_middle_words_are_told_by_where_they_stand(every: Reproduction) -> None:
    table = _table(every, "table7")
    assert [row.what for row in table.made.rows][::5] == ["Mid Top1", "Mid+Dep Top1"]
    assert "the 3 of 4 mined prompts" in table.made.notes[0]


def test_two_berts_have_table_12s_values_beside_them(data: Path) -> None:
    berts = ("bert-base-cased", "bert-large-cased")
    rows = _table(_reproduced(data, *berts, tables=("table12",)), "table12").made.rows
    found = {(row.model, row.what): row.published for row in rows}
    assert found["bert-base-cased", "Mine+Man, weights of bert-large-cased"] == 40.1
    assert found["bert-large-cased", "Mine, weights of bert-large-cased"] == 43.7
