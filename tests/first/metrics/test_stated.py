"""Facts that a training text states, on the eight facts worked by hand in test_hand_worked.

both texts       Anna Rome, Ben Paris, Land Berlin
the first alone  Dan Oslo
the second       Land Paris
none             Cleo Rome
not looked for   Land Madrid, Isle Oslo
"""

import gzip
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from test_hand_worked import ANSWERS, OTHER, make_run

from lama_core.errors import UserError
from lama_core.metrics import training_texts
from lama_core.metrics.cooccurrence import STATED_FILE, PairIndex, load_stated, save_stated
from lama_core.metrics.fact_answers import JoinedAnswers, join_answers
from lama_core.metrics.intervals import difference_intervals
from lama_core.metrics.slices import PAIR_SEEN, slice_differences, slicings
from lama_core.metrics.training_texts import NOT_LOOKED_FOR
from lama_core.runs.info import Run

BOTH = "in both texts"
FIRST = "in minilm-mlm's text alone"
SECOND = "in smollm2-135m's text alone"
NONE = "in neither text"
LOOKED = [("Anna", "Rome"), ("Ben", "Paris"), ("Land", "Berlin"), ("Dan", "Oslo"),
          ("Land", "Paris"), ("Cleo", "Rome")]  # fmt: skip
TEXTS = {"minilm-mlm": LOOKED[:4], "smollm2-135m": [*LOOKED[:3], LOOKED[4]]}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("stated")
    made = [make_run(folder, name, table) for name, table in (("a", ANSWERS), ("b", OTHER))]
    return [
        replace(run, info=replace(run.info, model=model))
        for run, model in zip(made, TEXTS, strict=True)
    ]


@pytest.fixture(autouse=True)
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for model, pairs in TEXTS.items():
        (tmp_path / model).mkdir()
        save_stated(LOOKED, frozenset(pairs), tmp_path / model / STATED_FILE)
    monkeypatch.setattr(
        training_texts, "locate", lambda entry: SimpleNamespace(folder=tmp_path / entry.name)
    )


@pytest.fixture
def joined(runs: list[Run]) -> JoinedAnswers:
    return join_answers(runs)


def test_a_pair_is_stated_where_its_words_stand_in_one_passage() -> None:
    pairs = [("Paris", "france"), ("Rome", "italy"), ("New York County", "york"),
             ("Lima", "South America"), ("Oslo", "Norway Norway"), ("", "a")]  # fmt: skip
    passages = ["PARIS, a city of France.", "Rome.", "Italy.", "New York County is a county.",
                "South America has Lima.", "Lima is south of America", "Oslo, Norway"]  # fmt: skip
    assert PairIndex(pairs).find(passages) == {pairs[0], pairs[3]}
    assert PairIndex(pairs[2:3]).find(["York: New York County"]) == {pairs[2]}


def test_facts_are_divided_by_the_texts_that_state_them(joined: JoinedAnswers) -> None:
    assert joined.stated is not None
    facts = zip(joined.facts["subject"], joined.facts["object"], joined.stated, strict=True)
    found = {(str(subject), str(gold)): where for subject, gold, where in facts}
    both = dict.fromkeys(LOOKED[:3], BOTH)
    assert found == both | {
        ("Dan", "Oslo"): FIRST, ("Land", "Paris"): SECOND, ("Cleo", "Rome"): NONE,
        ("Land", "Madrid"): NOT_LOOKED_FOR, ("Isle", "Oslo"): NOT_LOOKED_FOR,
    }  # fmt: skip
    assert tuple(slicings(joined)[PAIR_SEEN].slices) == (BOTH, FIRST, SECOND, NONE, NOT_LOOKED_FOR)


def test_differences_are_of_the_same_facts_with_their_interval(joined: JoinedAnswers) -> None:
    table = slice_differences(joined)
    table = table[table["by"] == PAIR_SEEN].set_index("slice")
    both = table.loc[BOTH]  # the first is right about Anna and Berlin, the second Ben and Berlin
    assert (both["n"], both["a"], both["b"], both["difference"]) == (3, 2 / 3, 2 / 3, 0)
    assert (both["only_a"], both["only_b"]) == (1, 1)
    ends = difference_intervals(np.array([1]), np.array([0]), np.array([1]))[0]
    alone = table.loc[FIRST]
    assert (alone["difference"], alone["low"], alone["high"]) == (1, ends.low, ends.high)
    assert slice_differences(joined, relations=("P47",)).set_index("slice").loc[BOTH, "n"] == 1


def test_nothing_is_said_of_models_and_facts_that_nobody_looked_for(
    runs: list[Run], tmp_path: Path
) -> None:
    other = [replace(runs[0], info=replace(runs[0].info, model="mine"))]
    assert join_answers(other).stated is None
    for model in TEXTS:
        save_stated([("Rome", "Italy")], frozenset(), tmp_path / model / STATED_FILE)
    assert join_answers(runs).stated is None and PAIR_SEEN not in slicings(join_answers(runs))


@pytest.mark.parametrize("text", ("Anna\tRome\n", "Anna\tRome\tyes\n", "\xff"))
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / STATED_FILE
    path.write_bytes(gzip.compress(text.encode("latin-1")))
    with pytest.raises(UserError, match="isn't a file of stated facts"):
        load_stated(path)
    path.write_bytes(b"Anna")
    with pytest.raises(UserError, match="isn't a file of stated facts"):
        load_stated(path)
