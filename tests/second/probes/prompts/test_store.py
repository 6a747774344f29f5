"""Distributions on disk: exact where it counts, resumed, bounded."""

from pathlib import Path

import numpy as np
import pytest
from probe_fakes import CITIES, HashFiller

from lama_core.candidates.columns import Candidates
from lama_core.probes.prompts import distributions as store_module
from lama_core.probes.prompts.distributions import DistributionStore
from lama_core.probes.prompts.ensemble import combine_log_linear
from lama_core.probes.prompts.fact_queries import PreparedFacts, make_prepared_facts
from lama_core.probes.prompts.selection import (
    Ensemble,
    ensemble_answers,
    top_k_curves,
)
from lama_core.probes.prompts.shortlist import make_shortlist, shortlist_answers
from lama_core.types import Fact, Prompt, Query, Relation

PROMPTS = (Prompt("[X] in [Y] ."), Prompt("[X] of [Y] ."), Prompt("[Y] has [X] ."))
RELATION = Relation("P19", "TREx", prompts=PROMPTS[:1])
WORDS = Candidates("file:cities", CITIES)
N_FACTS = 70


class CountingFiller(HashFiller):
    """Counts the queries that it was asked."""

    n_asked = 0

    def encode_all(self, queries, context):  # type: ignore[no-untyped-def]
        self.n_asked += len(queries)
        return super().encode_all(queries, context)


def _asked(model: HashFiller, n_facts: int = N_FACTS) -> PreparedFacts:
    facts = [Fact(f"{n}", f"Person {n}", "P19", CITIES[n * 7 % 40], "TREx") for n in range(n_facts)]
    return make_prepared_facts(RELATION, facts, WORDS, model, "both", template=PROMPTS[0].template)


def _store(folder: Path, model: HashFiller | None = None) -> DistributionStore:
    model = model or HashFiller(CITIES)
    return DistributionStore(folder, model, _asked(model), PROMPTS, "both")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "BLOCK_FACTS", 32)


def _direct(store: DistributionStore, prompt: int, fact: int) -> np.ndarray:
    """Log-probabilities straight from the model."""
    query: Query = store.asked.queries(store.prompts[prompt])[fact]
    model = store.model
    return model.blank_log_probs(model.encode_all([query], "both"), store.asked.columns).log_probs[
        0
    ]


def test_a_stopped_scoring_goes_on_with_the_block_it_was_in(tmp_path: Path) -> None:
    model = CountingFiller(CITIES)
    store = _store(tmp_path, model)
    model.n_asked = 0

    def stop(n_queries: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.score(tick=stop)
    assert model.n_asked == 32
    store.score()
    assert model.n_asked == 3 * N_FACTS
    whole = _store(tmp_path / "other")
    whole.score()
    assert store.rows().tobytes() == whole.rows().tobytes()


def test_a_block_whose_writing_was_cut_off_is_scored_again(tmp_path: Path) -> None:
    model = CountingFiller(CITIES)
    store = _store(tmp_path, model)
    store.score()
    store.blocks[2].rows.unlink()  # the rows are written last
    model.n_asked = 0
    store.score()
    assert model.n_asked == store.blocks[2].stop - store.blocks[2].start


def test_an_ensemble_is_ranked_as_its_combined_log_probabilities(tmp_path: Path) -> None:
    store = _store(tmp_path)
    store.score()
    weights = np.array([0.5, 0.3, 0.2], np.float32)
    found = ensemble_answers(store, store.rows(), [Ensemble("mine", "optimised", weights)])[0]
    for fact in (0, 33, 69):
        direct = np.stack([_direct(store, prompt, fact) for prompt in range(3)])[:, None]
        combined = combine_log_linear(direct, weights)[0]
        gold = store.asked.gold[fact]
        assert found[fact]["rank_raw"] == 1 + (combined > combined[gold]).sum()
        assert found[fact]["log_prob"] == pytest.approx(combined[gold], abs=0.01)


def test_the_curve_of_k_begins_with_the_best_prompt_alone(tmp_path: Path) -> None:
    store = _store(tmp_path)
    store.score()
    right = (store.rows()["rank_raw"] == 1).mean(axis=1)
    curves = top_k_curves(store, [[2, 0, 1]], "raw")[0]
    assert curves["log-linear"][0] == curves["linear"][0] == pytest.approx(right[2])
    assert len(curves["linear"]) == 3


def test_the_shortlist_decides_as_the_whole_does_wherever_it_is_certain(tmp_path: Path) -> None:
    store = _store(tmp_path)
    store.score()
    shortlist = make_shortlist(store, kept=12, drawn=6)
    for weights in ([0.4, 0.4, 0.2], [1.0, 0.0, 0.0]):
        weighted = np.array(weights, np.float32)
        answers = shortlist_answers(shortlist, weighted)
        whole = ensemble_answers(store, store.rows(), [Ensemble("mine", "own", weighted)])[0]
        certain = answers.certain
        assert certain.mean() > 0.5
        assert (answers.first[certain] == whole["top"][certain, 0]).all()
        assert (answers.correct[certain] == (whole["rank_raw"][certain] == 1)).all()
