"""Wordings seen in training, on the eight facts worked by hand in test_hand_worked.

minilm-mlm was trained on "{name} was born in {place}", smollm2-135m's text isn't known.
"""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from probe_fakes import with_facts
from test_hand_worked import ANSWERS, OTHER, make_run

from lama_core.lessons.charts import chart_table
from lama_core.lessons.lesson import ShowRun
from lama_core.metrics import training_texts
from lama_core.metrics.fact_answers import AnswerFilter, join_answers
from lama_core.metrics.intervals import difference_intervals
from lama_core.metrics.sentence_forms import FORMS_FILE, SentenceForms, save_forms
from lama_core.metrics.slices import PAIR_SEEN, WORDING_SEEN, slicings
from lama_core.metrics.training_texts import NOT_LOOKED_FOR
from lama_core.runs.info import Run

SEEN, UNSEEN = "in minilm-mlm's text", "not in minilm-mlm's text"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("wordings")
    models = {"minilm-mlm": ANSWERS, "smollm2-135m": OTHER}
    made = [make_run(folder, name[0], table) for name, table in models.items()]
    return [
        replace(run, info=replace(run.info, model=model))
        for run, model in zip(made, models, strict=True)
    ]


@pytest.fixture(autouse=True)
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        training_texts, "locate", lambda entry: SimpleNamespace(folder=tmp_path / entry.name)
    )
    know(tmp_path, "minilm-mlm", "* is born in *")


def know(folder: Path, model: str, *forms: str) -> None:
    (folder / model).mkdir(exist_ok=True)
    save_forms(SentenceForms({"people": frozenset(forms)}), folder / model / FORMS_FILE)


def test_facts_are_divided_by_the_form_of_their_wording(runs: list[Run], tmp_path: Path) -> None:
    joined = join_answers(runs)
    assert joined.wording.tolist() == [SEEN] * 4 + [UNSEEN] * 4, "P19, then P47"
    assert tuple(slicings(joined)[WORDING_SEEN].slices) == (SEEN, UNSEEN, NOT_LOOKED_FOR)
    assert PAIR_SEEN not in slicings(joined)
    rows = joined.select(AnswerFilter(wording=(SEEN,), counting="all"))
    assert set(joined.facts["relation"].iloc[rows]) == {"P19"}
    unnamed = runs[0].facts.assign(query="She was born in [MASK].")
    wording = join_answers([with_facts(runs[0], unnamed)]).wording
    assert wording.tolist() == [NOT_LOOKED_FOR] * 8
    know(tmp_path, "smollm2-135m", "* borders on *")
    names = {"in minilm-mlm's text alone", "in smollm2-135m's text alone"}
    assert {*join_answers(runs).wording} == names


def test_a_lesson_tells_the_difference_over_facts_and_over_relations(runs: list[Run]) -> None:
    table = chart_table(runs[::-1], ShowRun(figure="totals"))
    first = table[table["run"] == runs[0].info.id].set_index("row")
    assert first.loc["over facts", "value"] == (2 + 1) / 8
    assert first.loc["over relations", "value"] == (2 / 4 + 1 / 4) / 2
    relations, facts = dict.fromkeys(table["note"])
    ends = difference_intervals(np.array([2]), np.array([1]), np.array([8]))[0]
    assert facts == (
        "over facts: smollm2-135m minus minilm-mlm +12.5 points (95 % interval "
        f"{100 * ends.low:+.1f} to {100 * ends.high:+.1f}; 8 facts)."
    )
    assert relations.startswith("over relations: smollm2-135m minus minilm-mlm +12.5 points (95 %")
    assert relations.endswith("is better in 1 of 2 relations, worse in 0, equal in 1.")
    alone = chart_table(runs, ShowRun(figure="totals", relations=("P47",)))["note"]
    assert "+0.0 points (no interval)" in alone.iloc[0]
    assert not chart_table(runs[:1], ShowRun(figure="totals"))["note"].any()
