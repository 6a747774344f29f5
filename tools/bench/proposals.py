"""`bench proposals`: which of the best words for a blank inside a sentence are proposed.

A causal model ranks only the words that are proposed for such a blank (`models/proposals`). Here
all words of its list are scored, once: `python -m tools.bench.proposals MODEL` adds sentences to
`exhaustive/MODEL.jsonl`, and continues where it was stopped. The benchmark compares these words
with the proposals. The sentences are drawn at random from the starter's facts and wordings, and
from `WORDINGS` for relations that have no wording with a blank inside.
"""

import json
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lama_core.candidates.columns import Columns
from lama_core.candidates.lists import COMMON, named_candidates
from lama_core.datasets.library.installed import load_dataset
from lama_core.models.cache import load_model
from lama_core.models.hf.causal import CausalModel
from lama_core.models.protocols import RESCORED
from lama_core.queries.proposed_words import proposed_columns
from lama_core.scoring.blanks import parse_query
from lama_core.types import Query
from tools.bench.measuring import BenchRow
from tools.bench.workload import CAUSAL

FOLDER = Path(__file__).parent / "exhaustive"
SEED, N_SENTENCES, BEST = 65, 100, 5
TODAY = 200  # words of the left context, which alone were proposed before
WORDINGS = {
    "P20": "The city of [MASK] is where {} died.",
    "P30": "The continent of [MASK] is where {} is located.",
    "P103": "The [MASK] language is the native language of {}.",
    "P159": "The city of [MASK] hosts the headquarters of {}.",
    "P176": "The company [MASK] produces {}.",
    "P279": "People know {} as a kind of [MASK], but not the other way round.",
    "P361": "The [MASK] has {} as one of its parts.",
    "P1303": "The [MASK] is the instrument that {} plays.",
    "P1376": "{} is the capital of [MASK] and its largest city.",
}


def sentences() -> list[str]:
    """Return sentences with a blank inside, in random order, the relations in turn."""
    draw = random.Random(SEED)
    by_relation: dict[str, list[str]] = {}
    for fact in load_dataset("starter").facts:
        texts = [*fact.sentences]
        if fact.relation in WORDINGS and fact.subject:
            texts.append(WORDINGS[fact.relation].format(fact.subject))
        for text in texts:
            left, _, right = text.partition("[MASK]")
            if left.strip() and right.strip(" .!?") and "[MASK]" not in right:
                by_relation.setdefault(fact.relation, []).append(text)
    for name, texts in by_relation.items():
        by_relation[name] = list(dict.fromkeys(texts))
        draw.shuffle(by_relation[name])
    chosen: list[str] = []
    while len(chosen) < N_SENTENCES:
        names = sorted(name for name, texts in by_relation.items() if texts)
        draw.shuffle(names)
        chosen += [by_relation[name].pop() for name in names]
    return chosen[:N_SENTENCES]


def best_words(
    model: CausalModel, query: Query, columns: Columns, n: int
) -> list[tuple[str, float]]:
    """Return the n best words of a whole list at a blank, with their log-probability.

    A word's score only falls with each further token of the text, so that words which are already
    below the n-th best aren't followed further; the others are scored as in a query.
    """
    encoded = model.encode(query, "both")
    suffix = model.vocabulary.encode_after(encoded.suffix)
    left = list(encoded.token_ids)
    logits = model.logits([left], [[len(left) - 1]])
    scores = model.pick(logits, [encoded.places[0]], columns).log_probs[0]
    order = np.argsort(-scores, kind="stable")
    order = order[np.isfinite(scores[order])]
    forms = dict(
        zip(order, model.best_forms(logits[0], columns, encoded.places[0], order), strict=True)
    )
    whole: dict[int, float] = {}

    def follow(words: np.ndarray) -> None:
        length = 1
        while len(words):
            found = model.suffix_log_probs(left, [[forms[word]] for word in words], suffix[:length])
            totals = scores[words] + found.sum(1)
            if length >= len(suffix):
                whole.update(zip(words.tolist(), totals.tolist(), strict=True))
                return
            words = words[totals > bar()]
            length = min(2 * length, len(suffix))

    def bar() -> float:
        return sorted(whole.values(), reverse=True)[n - 1] if len(whole) >= n else -np.inf

    proposed = model.proposed_words(encoded, scores, columns)
    follow(proposed)
    for first in range(0, len(order), 1000):
        words = np.setdiff1d(order[first : first + 1000], proposed)
        follow(words[scores[words] > bar()])
    best = sorted(whole, key=lambda word: -whole[word])[:n]
    return [(columns.words[word], whole[word]) for word in best]


def make(name: str) -> None:
    """Rank all words for each sentence, and append them to the model's file."""
    model: Any = load_model(name)
    columns = named_candidates(COMMON, [model.vocabulary]).columns(model.vocabulary)
    FOLDER.mkdir(exist_ok=True)
    file = FOLDER / f"{name}.jsonl"
    done = len(file.read_text(encoding="utf-8").splitlines()) if file.is_file() else 0
    for text in sentences()[done:]:
        words = best_words(model, parse_query(text), columns, BEST)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"text": text, "words": words}, ensure_ascii=False) + "\n")


def run(*, model: str = CAUSAL) -> Iterator[BenchRow]:
    """Measure the share of the exhaustive first words, and first five, that are proposed."""
    causal: Any = load_model(model)
    columns = named_candidates(COMMON, [causal.vocabulary]).columns(causal.vocabulary)
    lines = (FOLDER / f"{model}.jsonl").read_text(encoding="utf-8").splitlines()
    hits: dict[str, list[tuple[bool, float]]] = {"ours": [], "left": []}
    for line in map(json.loads, lines):
        query = parse_query(line["text"])
        encoded = causal.encode(query, "both")
        logits = causal.logits([encoded.token_ids], [encoded.positions])
        left = causal.pick(logits, [encoded.places[0]], columns).log_probs[0]
        others = proposed_columns(query, columns)
        proposed = {
            "ours": causal.proposed_words(replace(encoded, proposed=others), left, columns),
            "left": np.argsort(-left, kind="stable")[:TODAY],
        }
        for name, found in proposed.items():
            known = {columns.words[column] for column in found}
            words = [word in known for word, _ in line["words"]]
            hits[name].append((words[0], float(np.mean(words))))
    for number, what in enumerate(("first word", f"best {BEST} words")):
        ours, before = (float(np.mean([hit[number] for hit in hits[one]])) for one in hits)
        yield BenchRow(
            f"{model}, {len(lines)} sentences: {what} of all {len(columns.words):,} proposed",
            "share",
            ours,
            before,
            f"{TODAY} words by the left context",
            1.0,
            f"all words; ours are {RESCORED}",
        )


if __name__ == "__main__":
    make(sys.argv[1])
