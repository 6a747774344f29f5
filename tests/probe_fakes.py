"""Small deterministic models and datasets, for tests of runs."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from data_files import write_lines

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import AFTER_SPACE, Place
from lama_core.models.protocols import Context, Encoded, Kind, Scores, WordScore
from lama_core.runs.info import Run
from lama_core.types import Query
from tools.bench.prompts import WordList


class WordVocabulary(WordList):
    """Whole words as tokens, in the given order; a name has as many tokens as words."""

    def pieces(self, word: str, place: Place = AFTER_SPACE) -> tuple[int, ...]:
        return tuple(range(len(word.split())))


class TableFiller:
    """A model whose answers are written down: text with [MASK] -> word -> log-probability."""

    kind: Kind = "masked"
    max_tokens = 512
    precision = "fp32"
    device = "cpu"
    notes = ()

    def __init__(
        self, answers: Mapping[str, Mapping[str, float]], words: Sequence[str], name: str = "table"
    ) -> None:
        self.name = name
        self.answers = answers
        self.vocabulary = WordVocabulary(words)
        text = json.dumps([self.vocabulary.words, {k: dict(v) for k, v in answers.items()}])
        self.identity = hashlib.sha256(text.encode()).hexdigest()
        self._texts: list[str] = []

    def encode(self, query: Query, context: Context = "both") -> Encoded:
        self._texts.append(query.text())
        return Encoded((len(self._texts) - 1,), (0,), (AFTER_SPACE,))

    def encode_all(self, queries: Sequence[Query], context: Context) -> list[Encoded]:
        return [self.encode(query, context) for query in queries]

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        rows = [
            [self.answers[self._texts[query.token_ids[0]]].get(word, -9.0) for word in self.words]
            for query in batch
        ]
        table = np.array(rows, dtype=np.float32)
        return Scores(table[:, columns.table(AFTER_SPACE).ids[:, 0]])

    @property
    def words(self) -> tuple[str, ...]:
        return self.vocabulary.words

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        return WordScore((word,), self.answers[query.text()][word])


class HashFiller:
    """A model whose answers are made from the text's digest; slow if `pause` is given.

    pause: seconds a batch. broken: gives NaN for texts that hold this word.
    """

    kind: Kind = "masked"
    max_tokens = 512
    precision = "fp32"
    device = "cpu"
    notes = ()

    def __init__(
        self, words: Sequence[str], *, name: str = "hash", pause: float = 0.0, broken: str = ""
    ) -> None:
        self.name = name
        self.vocabulary = WordVocabulary(words)
        self.identity = f"{name}:{len(words)}"
        self.pause = pause
        self.broken = broken

    def encode(self, query: Query, context: Context = "both") -> Encoded:
        text = query.text().encode()
        return Encoded(tuple(text), (0,), (AFTER_SPACE,))

    def encode_all(self, queries: Sequence[Query], context: Context) -> list[Encoded]:
        return [self.encode(query, context) for query in queries]

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        time.sleep(self.pause)
        rows = []
        for query in batch:
            text = bytes(query.token_ids)
            seed = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
            scores = np.random.default_rng(seed).normal(size=self.vocabulary.size)
            scores -= np.log(np.exp(scores).sum())
            if self.broken and self.broken.encode() in text:
                scores[0] = np.nan
            rows.append(scores)
        table = np.array(rows, dtype=np.float32)
        return Scores(table[:, columns.table(AFTER_SPACE).ids[:, 0]])

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        return WordScore((word,), -1.0)


CITIES = tuple(f"City{number}" for number in range(40))


def hash_model(reference: str = "hash", *, precision: str = "fp32") -> HashFiller:
    """Loads the fake model; a name of `slow` pauses a little at each batch."""
    return HashFiller(CITIES, name=reference, pause=0.02 if reference == "slow" else 0.0)


def write_dataset(folder: Path, n_facts: int = 120) -> Path:
    """A small dataset in LAMA's layout: two template relations and two with sentences."""
    relations: list[dict[str, object]] = [
        {
            "relation": "P19",
            "template": "[X] was born in [Y] .",
            "label": "place of birth",
            "type": "N-1",
            "paraphrases": ["[X] comes from [Y] .", "[X] is a native of [Y] ."],
            "negated_template": "[X] was not born in [Y] .",
        },
        {
            "relation": "P47",
            "template": "[X] borders on [Y] .",
            "label": "shares border with",
            "type": "N-M",
        },
    ]
    write_lines(folder / "relations.jsonl", relations)
    births = [
        {
            "uuid": f"b{n}",
            "sub_label": f"Person {n}",
            "obj_label": CITIES[n * 7 % 40],
            "predicate_id": "P19",
            "evidences": [
                {"masked_sentence": f"Sentence {m} of person {n} says [MASK] ."} for m in range(10)
            ],
        }
        for n in range(n_facts)
    ]
    borders = [
        {
            "uuid": f"n{n}",
            "sub_label": f"Land {n // 3}",
            "obj_label": CITIES[n * 11 % 40],
            "predicate_id": "P47",
        }
        for n in range(n_facts)
    ]
    write_lines(folder / "TREx" / "P19.jsonl", births)
    write_lines(folder / "TREx" / "P47.jsonl", borders)
    write_lines(
        folder / "Squad" / "test.jsonl",
        [
            {
                "id": f"s{n}",
                "sub_label": "Squad",
                "obj_label": CITIES[n],
                "masked_sentences": [f"Question {n} is answered by [MASK] ."],
            }
            for n in range(10)
        ],
    )
    return folder


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
