"""Made-up runs of several models on the same facts, saved as regular runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from lama_core.runs.facts_table import SCHEMA, write_candidates, write_facts
from lama_core.runs.info import (
    CANDIDATES_FILE,
    FACTS_FILE,
    RelationInfo,
    Run,
    RunInfo,
    read_info,
    text_digest,
    write_info,
)
from lama_core.scoring.top_answers import TOP_K
from lama_core.types import RelationType

MODELS = (
    "minilm-mlm",
    "smollm2-135m",
    "bert-base-cased",
    "bert-large-cased",
    "roberta-base",
    "gpt2",
)
N_RELATIONS = 41
SOURCES = {"Google_RE": 3, "TREx": 41, "ConceptNet": 14, "Squad": 1}  # 59 relations
N_FACTS = 34_000
N_WORDS = 21_018
N_LACKING = 100  # a run with its own candidates lacks every hundredth word
SKILL = (0.9, 0.8, 0.55, 0.5, 0.6, 0.75)  # log10 of each model's typical rank


def make_runs(
    folder: Path,
    *,
    n_relations: int = N_RELATIONS,
    n_facts: int = N_FACTS,
    seed: int = 0,
    sources: Mapping[str, int] | None = None,
    n_runs: int = len(MODELS),
    own_candidates: bool = False,
) -> tuple[Run, ...]:
    """Write made-up finished runs of different models on the same facts, and return them.

    Args:
        folder: The folder of the runs.
        n_relations: Number of relations, whose source is T-REx.
        n_facts: Number of facts.
        seed: Seed of the random numbers.
        sources: Number of relations of each source, such as `SOURCES`; replaces `n_relations`.
        n_runs: Number of models, with one run each.
        own_candidates: Whether each run stores its ranked words and lacks one word in `N_LACKING`.
    """
    named = [name for name, n in (sources or {"TREx": n_relations}).items() for _ in range(n)]
    n_relations = len(named)
    draw = np.random.default_rng(seed)
    words = np.array([_word(number) for number in range(N_WORDS)])
    relation = np.sort(draw.integers(0, n_relations, n_facts))
    hardness = draw.normal(0, 0.8, n_relations)[relation] + draw.normal(0, 0.8, n_facts)
    popularity = np.minimum(draw.zipf(1.4, n_facts), 200)
    gold = (relation * 211 + popularity) % N_WORDS
    subjects = [f"{words[a]} {words[b]}" for a, b in draw.integers(0, N_WORDS, (n_facts, 2))]
    count = np.unique(relation * N_WORDS + gold, return_inverse=True, return_counts=True)
    facts = _Facts(words, relation, gold, subjects, count[2][count[1]], hardness, np.array(named))
    models = [*MODELS, *(f"made-up-{number}" for number in range(len(MODELS), n_runs))][:n_runs]
    return tuple(
        _write(folder, model, SKILL[number % len(SKILL)], facts, draw, number, own_candidates)
        for number, model in enumerate(models)
    )


@dataclass(frozen=True)
class _Facts:
    """The facts that all made-up runs share."""

    words: np.ndarray
    relation: np.ndarray
    gold: np.ndarray
    subjects: list[str]
    count: np.ndarray
    hardness: np.ndarray
    sources: np.ndarray

    @property
    def n_relations(self) -> int:
        """Number of relations with facts."""
        return int(self.relation.max()) + 1

    @property
    def types(self) -> list[RelationType]:
        """The type of each relation."""
        return [get_args(RelationType)[number % 3] for number in range(self.n_relations)]


def _write(
    folder: Path,
    model: str,
    skill: float,
    facts: _Facts,
    draw: np.random.Generator,
    number: int,
    own_candidates: bool,
) -> Run:
    n = len(facts.gold)
    exponent = np.clip(skill + 0.8 * facts.hardness + draw.normal(0, 0.4, n), 0, 4.3)
    rank = np.maximum(1, np.floor(10**exponent * 0.5)).astype(np.int32)
    out = draw.random(n) < 0.03
    lacking = (
        np.arange(N_WORDS) % N_LACKING == number if own_candidates else np.zeros(N_WORDS, bool)
    )
    out |= lacking[facts.gold]
    top = (facts.gold[:, None] + draw.integers(1, 200, (n, TOP_K))) % N_WORDS
    top[:, 0] = (facts.relation * 211 + 1 + draw.integers(0, 3, n)) % N_WORDS
    top[rank == 1, 0] = facts.gold[rank == 1]
    confidence = np.log(np.clip(draw.beta(1 + 3 * (rank == 1), 4), 1e-4, 1)).astype(np.float32)
    falling = confidence[:, None] - np.arange(TOP_K, dtype=np.float32)
    names = np.array([f"P{100 + number}" for number in range(facts.n_relations)])
    objects = facts.words[facts.gold]
    first = facts.words[top[:, 0]]
    columns: dict[str, Any] = {
        "fact_id": [f"{names[r]}:{number}" for number, r in enumerate(facts.relation)],
        "relation": names[facts.relation],
        "source": facts.sources[facts.relation],
        "type": np.array(facts.types)[facts.relation],
        "subject": facts.subjects,
        "object": objects,
        "origin": pa.nulls(n, pa.string()),
        "prompt": np.zeros(n, np.int16),
        "query": [f"{subject} is related to [MASK] ." for subject in facts.subjects],
        "excluded": pa.array(np.full(n, "object is not one token of the model"), mask=~out),
        "rank_raw": pa.array(rank + (rank > 1), pa.int32(), mask=out),
        "rank_filtered": pa.array(rank, pa.int32(), mask=out),
        "log_prob": pa.array(confidence - np.log(rank), pa.float32(), mask=out),
        "first": pa.array(first, mask=out),
        "first_log_prob": pa.array(confidence, mask=out),
        "first_filtered": pa.array(first, mask=out),
        "first_filtered_log_prob": pa.array(confidence, mask=out),
        "first_is_valid": pa.array(np.zeros(n, bool), mask=out),
        "first_is_object": pa.array(draw.random(n) < 0.6, mask=out),
        "n_valid": np.ones(n, np.int16),
        "object_count": facts.count.astype(np.int32),
        "subject_tokens": np.full(n, 2, np.int16),
        "subject_pieces": np.full(n, 4, np.int16),
        "top_words": _lists(pa.DictionaryArray.from_arrays(top.ravel(), facts.words), out),
        "top_log_probs": _lists(pa.array(falling.ravel()), out),
    }
    arrays = []
    for name in SCHEMA.names:
        kind = SCHEMA.field(name).type
        value = columns[name]
        value = value if isinstance(value, pa.Array) else pa.array(value)
        value = value.dictionary_encode() if pa.types.is_dictionary(kind) else value
        arrays.append(value.cast(kind))
    relations = tuple(
        RelationInfo(
            str(name),
            str(facts.sources[number]),
            f"made-up relation {number}",
            facts.types[number],
            ("[X] is related to [Y] .",),
            int((~out & (facts.relation == number)).sum()),
            int((out & (facts.relation == number)).sum()),
        )
        for number, name in enumerate(names)
    )
    path = folder / f"made_up-{model.replace('-', '_')}-manual-0123456789"
    path.mkdir(parents=True, exist_ok=True)
    write_facts(pa.Table.from_arrays(arrays, schema=SCHEMA), path / FACTS_FILE)
    if own_candidates:
        write_candidates({"": facts.words[~lacking].tolist()}, path / CANDIDATES_FILE)
    info = RunInfo(
        id=path.name,
        folder=path,
        bundled=False,
        kind="cloze",
        version=1,
        digest="0123456789" * 6,
        dataset="made-up",
        data_digest="0" * 64,
        model=model,
        model_identity=model,
        model_kind="masked",
        prompts="manual",
        prompt_kind="template",
        candidates="common",
        candidates_digest=text_digest(model) if own_candidates else "0" * 64,
        n_candidates=N_WORDS - int(lacking.sum()),
        fold_case=False,
        context="both",
        ranking="filtered",
        precision="fp32",
        limit=None,
        n=int((~out).sum()),
        n_excluded=int(out.sum()),
        relations=relations,
        seconds=100.0,
        made="2020-01-01T00:00:00Z",
        versions=(),
    )
    write_info(info, path)
    return Run(read_info(path))


def _word(number: int) -> str:
    """Return a pronounceable made-up word, unique for each number."""
    text = ""
    while True:
        number, rest = divmod(number, 85)
        text += "bdfgklmnprstvzchj"[rest // 5] + "aeiou"[rest % 5]
        if not number:
            return text
        number -= 1


def _lists(values: pa.Array, out: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(values, TOP_K, mask=pa.array(out))
