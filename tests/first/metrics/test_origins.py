"""Where facts are from, on the eight facts worked by hand in test_hand_worked.

The first model is right about Anna, Cleo and Land's Berlin; four facts have an origin:

    Anna  CIA World Factbook and GeoNames, which agree   right
    Ben   WordNet 3.0                                    wrong
    Cleo  written by hand                                right
    Dan   WordNet 3.0                                    wrong, rank 4
"""

from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from probe_fakes import with_facts
from test_hand_worked import ANSWERS, OTHER, make_run

from lama_core.metrics.fact_answers import AnswerFilter, join_answers
from lama_core.metrics.origins import (
    FactGroup,
    gain_from_training,
    n_from_training,
    sentence,
    trained_on,
)
from lama_core.metrics.slices import ORIGIN, slice_table, slicings
from lama_core.models.sources.catalog import known_models
from lama_core.paths import ASSETS
from lama_core.runs.info import Run

FACTBOOK = "CIA World Factbook and GeoNames, which agree"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    made = make_run(tmp_path_factory.mktemp("origins"), "a", ANSWERS)
    return replace(made, info=replace(made.info, model="minilm-mlm"))


def test_a_fact_of_several_sources_counts_for_each(run: Run) -> None:
    found = trained_on(run)
    assert found is not None
    assert found.inside == FactGroup(n=3, n_right=1)  # Anna, Ben, Dan
    assert found.outside == FactGroup(n=5, n_right=2)  # Cleo and Land's Berlin are right
    assert found.share == 3 / 8
    assert dict(found.sources) == {
        "WordNet": FactGroup(2, 0),
        "CIA World Factbook": FactGroup(1, 1),
        "GeoNames": FactGroup(1, 1),
    }
    assert found.inside.p_at_k == 1 / 3


def test_wordings_in_the_training_text_are_counted_apart(run: Run) -> None:
    found = trained_on(run)
    assert found is not None
    assert found.seen == FactGroup(n=4, n_right=2)  # "was born in": Anna and Cleo are right
    assert found.unseen == FactGroup(n=4, n_right=1)  # "borders on": Land's Berlin is right
    born = trained_on(run, relations=("P19",))
    assert born is not None and (born.seen, born.unseen) == (FactGroup(4, 2), FactGroup(0, 0))
    twin = trained_on(replace(run, info=replace(run.info, model="minilm-mlm-twin")))
    assert twin is not None and (twin.seen, twin.unseen) == (FactGroup(0, 0), FactGroup(8, 3))


def test_a_larger_k_and_some_relations_count_as_everywhere(run: Run) -> None:
    twice = trained_on(run, k=2)
    assert twice is not None and twice.inside == FactGroup(3, 2)  # Ben's gold is second
    born = trained_on(run, relations=("P19",))
    assert born is not None and born.outside == FactGroup(1, 1)


def test_a_gain_is_divided_by_the_training_sources(run: Run, tmp_path: Path) -> None:
    made = make_run(tmp_path, "b", OTHER)  # right about Ben and Dan, wrong about Anna
    other = replace(made, info=replace(made.info, model="minilm-mlm"))
    assert gain_from_training(other, run) == (2 - 1, 2 - 1)
    assert gain_from_training(run, other) == (-1, -1)
    assert gain_from_training(other, run, k=2) == (1, 1), "Dan: Anna is second"
    assert gain_from_training(made, run) == (1, 0), "a model whose sources aren't known"
    assert gain_from_training(other, run, relations=("P47",)) == (0, 0)


def test_what_people_are_told_has_every_number_with_what_it_counts(run: Run) -> None:
    found = trained_on(run)
    assert found is not None
    assert sentence(found, "minilm-mlm", k=1) == (
        "3 of the 8 facts that count (37.5 %) come from sources that minilm-mlm was trained on. "
        "P@1 over facts is 33.3 % on them (WordNet: 0.0 % of 2; CIA World Factbook: 100.0 % of 1; "
        "GeoNames: 100.0 % of 1), and 40.0 % on the other 5. The wordings of 4 facts have the form "
        "of sentences in minilm-mlm's training text: P@1 is 50.0 % on them, and 25.0 % on the 4 "
        "whose wording hasn't."
    )
    near = trained_on(run, relations=("P47",))
    assert near is not None
    assert sentence(near, "minilm-mlm", k=1) == (
        "None of these 4 facts comes from a source that minilm-mlm was trained on; they can still "
        "occur in its training text."
    )


def test_facts_without_a_run_are_counted_by_the_same_rule(run: Run) -> None:
    origins = [FACTBOOK, "WordNet 3.0", "written by hand", "WordNet 3.0", ""]
    assert n_from_training("minilm-mlm", origins) == 3
    assert n_from_training("bert-base-cased", origins) == 0


def test_nothing_is_said_where_the_sources_or_the_origins_are_not_known(run: Run) -> None:
    assert trained_on(replace(run, info=replace(run.info, model="bert-base-cased"))) is None
    silent = run.facts.assign(origin=run.facts["origin"].cat.set_categories([]))
    assert trained_on(with_facts(run, silent)) is None


def test_slices_by_origin_follow_from_the_data(run: Run) -> None:
    joined = join_answers([run])
    table = slice_table(joined)
    table = table[table["by"] == ORIGIN].set_index("slice")
    assert table["n"].to_dict() == {
        "WordNet 3.0": 2, FACTBOOK: 1, "written by hand": 1, "none": 4
    }  # fmt: skip
    assert list(table.index[:1]) == ["WordNet 3.0"]  # most facts first
    assert table["p_at_k"].to_dict() == {
        "WordNet 3.0": 0, FACTBOOK: 1, "written by hand": 1, "none": 1 / 4
    }  # fmt: skip
    for name, fields in slicings(joined)[ORIGIN].slices.items():
        assert len(joined.select(AnswerFilter(**fields))) == table.loc[name, "n"]


@pytest.mark.parametrize("model", ("minilm-mlm", "minilm-mlm-twin"))
def test_an_embedded_model_names_every_source_of_its_text(model: str) -> None:
    (embedded,) = (entry for entry in known_models() if entry.name == model)
    evaluation = orjson.loads((ASSETS / "models" / model / "evaluation.json").read_bytes())
    titles = [source["title"] for source in evaluation["corpus"]]
    silent = [title for title in titles if not any(name in title for name in embedded.trained_on)]
    assert not silent
    idle = [name for name in embedded.trained_on if not any(name in title for title in titles)]
    assert not idle
