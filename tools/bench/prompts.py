"""`bench prompts`: storing the prompts' distributions on disk, and fitting ensembles on them.

A made-up model answers immediately, so that only the store and the fit are measured. The size is
that of one relation in the paper: 40 prompts x 1,000 training facts x 21,000 candidates. Memory is
the peak of a separate process that scores and fits.
"""

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.columns import Candidates, Columns
from lama_core.candidates.spelling import AFTER_SPACE, Place
from lama_core.models.protocols import Context, Encoded, Kind, Scores, WordScore
from lama_core.models.vocabulary import by_lower_case
from lama_core.probes.prompts.distributions import DistributionStore
from lama_core.probes.prompts.ensemble import RELEASED, Fit, combine_log_linear, fit_weights
from lama_core.probes.prompts.fact_queries import make_prepared_facts
from lama_core.probes.prompts.shortlist import make_shortlist
from lama_core.types import Fact, Prompt, Query, Relation
from tools.bench.measuring import TARGET, BenchRow, called_in_a_fresh_process

PROMPTS, FACTS, CANDIDATES = 40, 1000, 21_000
GIGABYTES = 2.0  # this project's target: maximum memory
FITTED_WHOLE = 100  # facts fitted on all candidates; more would need more memory than GIGABYTES


T = TypeVar("T")


def run(
    *, n_prompts: int = PROMPTS, n_facts: int = FACTS, n_candidates: int = CANDIDATES
) -> Iterator[BenchRow]:
    """Measure memory and fitting.

    Memory is compared with the size of all distributions, and fitting on a shortlist with fitting
    on all candidates.

    Args:
        n_prompts: Number of prompts.
        n_facts: Number of training facts.
        n_candidates: Number of candidates.
    """
    with tempfile.TemporaryDirectory() as folder:
        scored, peak = called_in_a_fresh_process(
            score_and_fit, folder, n_prompts, n_facts, n_candidates
        )
    in_memory = 4 * n_prompts * n_facts * n_candidates / 1e9
    size = f"{n_prompts} x {n_facts:,} x {n_candidates:,}"
    peer = "all distributions in memory"
    what = f"peak memory, store and fit of {size}"
    yield BenchRow(what, "GB", peak / 1e9, in_memory, peer, GIGABYTES, TARGET)
    yield BenchRow(f"writing the store of {size}", "s", scored)
    yield from _fits(n_prompts, min(n_facts, FITTED_WHOLE), n_candidates)


def score_and_fit(folder: str, n_prompts: int, n_facts: int, n_candidates: int) -> float:
    """Fill a store and fit an ensemble on its shortlist; return the seconds that filling took."""
    store = made_up_store(folder, n_prompts, n_facts, n_candidates)
    scored, _ = _timed(store.score)
    _fit_shortlist(store)
    return scored


def _fit_shortlist(store: DistributionStore) -> Fit:
    short = make_shortlist(store)
    return fit_weights(short.log_probs, short.gold, offsets=short.offsets, recipe=RELEASED)


def _timed(way: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    value = way()
    return time.perf_counter() - start, value


def _fits(n_prompts: int, n_facts: int, n_candidates: int) -> list[BenchRow]:
    """Measure the seconds and the objective of a fit on the shortlist and on all candidates."""
    with tempfile.TemporaryDirectory() as folder:
        store = made_up_store(folder, n_prompts, n_facts, n_candidates)
        store.score()
        ours, on_short = _timed(partial(_fit_shortlist, store))
        whole = np.concatenate([chunk for _, chunk in store.chunks()], axis=1)
    gold = store.asked.gold
    peer, on_all = _timed(partial(fit_weights, whole, gold, recipe=RELEASED))
    reached = combine_log_linear(whole, on_short.weights)[np.arange(n_facts), gold].mean()
    size = f"{n_prompts} prompts, {n_facts} facts"
    return [
        BenchRow(f"fitting {size}", "s", ours, peer, "on all candidates"),
        BenchRow(
            f"mean log P(gold) after fitting {size}",
            "nats below 0",
            -float(reached),
            -on_all.objective,
            "fitted on all candidates",
        ),
    ]


def made_up_store(
    folder: str, n_prompts: int, n_facts: int, n_candidates: int
) -> DistributionStore:
    """Return an empty store of a made-up model whose prompts differ in accuracy."""
    words = tuple(f"word{number}" for number in range(n_candidates))
    model = MadeUpModel(words, n_facts)
    prompts = tuple(Prompt(f"[X] number {number} [Y] .") for number in range(n_prompts))
    relation = Relation("P0", "TREx", prompts=prompts[:1])
    facts = [Fact(f"{n}", f"S{n}", "P0", words[n % 97], "TREx") for n in range(n_facts)]
    asked = make_prepared_facts(
        relation,
        facts,
        Candidates("file:made-up", words),
        model,
        "both",
        template=prompts[0].template,
    )
    return DistributionStore(Path(folder), model, asked, prompts, "both")


class WordList:
    """A vocabulary whose tokens are whole words."""

    def __init__(self, words: Sequence[str], *, cased: bool = True) -> None:
        self.cased = cased
        self.columns: dict[Any, Any] = {}
        self.words = tuple(words)
        self.size = len(words)
        self._forms: dict[str, tuple[int, ...]] = {w: (n,) for n, w in enumerate(words)}
        self._variants = by_lower_case(self.words)

    def single_words(self) -> tuple[str, ...]:
        return self.words

    def case_variants(self, word: str, place: Place) -> tuple[str, ...]:
        return self._variants.get(word, ())

    def own_tokens(self, words: Sequence[str], place: Place) -> list[tuple[int, ...]]:
        return [self._forms.get(word if self.cased else word.lower(), ()) for word in words]

    def can_predict(self, token_id: int) -> bool:
        return True

    def tokens(self) -> dict[int, str]:
        return dict(enumerate(self.words))

    def pieces(self, word: str, place: Place = AFTER_SPACE) -> tuple[int, ...]:
        return self._forms.get(word, (0,))

    def can_write(self, word: str) -> bool:
        return word in self._forms

    def show_text(self, token_ids: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.words[token] for token in token_ids)


class MadeUpModel:
    """A model whose scores are noise that depends on prompt and fact.

    It gives gold answers higher scores with earlier prompts.
    """

    name = "made-up"
    kind: Kind = "masked"
    max_tokens = 512
    precision = "fp32"
    notes = ()
    device = "cpu"
    n_bytes = 0

    def __init__(self, words: Sequence[str], n_facts: int) -> None:
        self.vocabulary = WordList(words)
        self.identity = f"made-up:{len(words)}:{n_facts}"
        noise = np.random.default_rng(0).normal(0, 2, 2 * len(words)).astype(np.float32)
        self._noise: NDArray[np.float32] = noise

    def encode(self, query: Query, context: Context = "both") -> Encoded:
        """Return a query whose two tokens are the numbers of its fact and its prompt."""
        fact, prompt = (int(number) for number in re.findall(r"\d+", query.text(""))[:2])
        return Encoded((fact, prompt), (0,), (AFTER_SPACE,))

    def encode_all(self, queries: Sequence[Query], context: Context) -> list[Encoded]:
        """Return each query encoded, in order."""
        return [self.encode(query) for query in queries]

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        """Return log-probabilities made of noise; the gold answer gets a bonus."""
        size = self.vocabulary.size
        rows = np.empty((len(batch), size), np.float32)
        for row, query in enumerate(batch):
            fact, prompt = query.token_ids
            start = (fact * 7919 + prompt * 104729) % size
            rows[row] = self._noise[start : start + size]
            rows[row, fact % 97] += 12 / (1 + prompt)
        rows -= np.log(np.exp(rows).sum(axis=1, keepdims=True))
        return Scores(rows)

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        """Return a constant; the benchmark doesn't use it."""
        return WordScore((word,), 0.0)
