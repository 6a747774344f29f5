"""Small deterministic models and datasets, for tests of runs."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from data_files import write_lama, write_lines
from numpy.typing import NDArray

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import AFTER_SPACE, Place
from lama_core.models.protocols import Context, Encoded, Kind, Scores, WordScore
from lama_core.models.vocabulary import by_lower_case
from lama_core.runs.info import Run
from lama_core.types import Query


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


class WordVocabulary(WordList):
    """Whole words as tokens, in the given order; a name has as many tokens as words."""

    def pieces(self, word: str, place: Place = AFTER_SPACE) -> tuple[int, ...]:
        return tuple(range(len(word.split())))


class Filler:
    """A model of whole words, whose texts are its tokens; the scores of a text are made up."""

    kind: Kind = "masked"
    max_tokens = 512
    precision = "fp32"
    device = "cpu"
    notes = ()

    def __init__(self, name: str, words: Sequence[str], identity: str) -> None:
        self.name = name
        self.vocabulary = WordVocabulary(words)
        self.identity = identity

    def encode(self, query: Query, context: Context = "both") -> Encoded:
        return Encoded(tuple(query.text().encode()), (0,), (AFTER_SPACE,))

    def encode_all(self, queries: Sequence[Query], context: Context) -> list[Encoded]:
        return [self.encode(query, context) for query in queries]

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        texts = [bytes(query.token_ids).decode() for query in batch]
        table = np.array([self.scores(text) for text in texts], dtype=np.float32)
        return Scores(table[:, columns.table(AFTER_SPACE).ids[:, 0]])

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        return WordScore((word,), -1.0)

    def scores(self, text: str) -> Sequence[float] | NDArray[np.float64]:
        """The log-probability of each word of the vocabulary at the text's blank."""
        raise NotImplementedError


class TableFiller(Filler):
    """A model whose answers are written down: text with [MASK] -> word -> log-probability."""

    def __init__(
        self, answers: Mapping[str, Mapping[str, float]], words: Sequence[str], name: str = "table"
    ) -> None:
        self.answers = answers
        text = json.dumps([[*words], {k: dict(v) for k, v in answers.items()}])
        super().__init__(name, words, hashlib.sha256(text.encode()).hexdigest())

    def scores(self, text: str) -> list[float]:
        return [self.answers[text].get(word, -9.0) for word in self.vocabulary.words]

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        return WordScore((word,), self.answers[query.text()][word])


def random_scores(seed: str, n_words: int) -> NDArray[np.float64]:
    """Normal numbers that follow from the seed."""
    digest = hashlib.sha256(seed.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big")).normal(size=n_words)


class HashFiller(Filler):
    """A model whose answers are made from the text's digest; slow if `pause` is given.

    pause: seconds a batch. broken: gives NaN for texts that hold this word.
    """

    def __init__(
        self, words: Sequence[str], *, name: str = "hash", pause: float = 0.0, broken: str = ""
    ) -> None:
        super().__init__(name, words, f"{name}:{len(words)}")
        self.pause = pause
        self.broken = broken

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        time.sleep(self.pause)
        return super().blank_log_probs(batch, columns)

    def scores(self, text: str) -> NDArray[np.float64]:
        scores = random_scores(text, self.vocabulary.size)
        scores -= np.log(np.exp(scores).sum())
        if self.broken and self.broken in text:
            scores[0] = np.nan
        return scores


CITIES = tuple(f"City{number}" for number in range(40))


def hash_model(reference: str = "hash", *, precision: str = "fp32") -> HashFiller:
    return HashFiller(CITIES, name=reference, pause=0.02 if reference == "slow" else 0.0)


def write_dataset(folder: Path, n_facts: int = 120) -> Path:
    """A small dataset in LAMA's layout: two template relations and two with sentences."""
    relations = [
        {"relation": "P19", "template": "[X] was born in [Y] .", "type": "N-1",
         "label": "place of birth", "negated_template": "[X] was not born in [Y] .",
         "paraphrases": ["[X] comes from [Y] .", "[X] is a native of [Y] ."]},
        {"relation": "P47", "template": "[X] borders on [Y] .", "type": "N-M",
         "label": "shares border with"},
    ]  # fmt: skip
    births = [
        {"uuid": f"b{n}", "sub_label": f"Person {n}", "obj_label": CITIES[n * 7 % 40],
         "evidences": [
             {"masked_sentence": f"Sentence {m} of person {n} says [MASK] ."} for m in range(10)
         ]}
        for n in range(n_facts)
    ]  # fmt: skip
    borders = [
        {"uuid": f"n{n}", "sub_label": f"Land {n // 3}", "obj_label": CITIES[n * 11 % 40]}
        for n in range(n_facts)
    ]
    asked = [
        {"id": f"s{n}", "sub_label": "Squad", "obj_label": CITIES[n],
         "masked_sentences": [f"Question {n} is answered by [MASK] ."]}
        for n in range(10)
    ]  # fmt: skip
    write_lines(folder / "Squad" / "test.jsonl", asked)
    return write_lama(folder, relations, {"P19": births, "P47": borders})


def with_facts(run: Run, facts: pd.DataFrame) -> Run:
    """The run with these rows instead of those of its file."""
    changed = {}
    for name, column in facts.items():
        words = isinstance(column.dtype, pd.CategoricalDtype)
        texts = words or isinstance(column.dtype, pd.StringDtype)
        values = column.astype(object) if texts else column
        made = pa.array(values, pa.string() if texts else None, from_pandas=True)
        changed[str(name)] = pa.chunked_array([made.dictionary_encode() if words else made])
    return replace(run, changed=changed)
