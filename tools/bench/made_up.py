"""Made-up runs of several models on the same facts, saved as regular runs."""

from collections.abc import Mapping
from itertools import islice, product
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
    sources: Mapping[str, int] | None = None,
    n_runs: int = len(MODELS),
    own_candidates: bool = False,
) -> tuple[Run, ...]:
    """Write made-up finished runs of different models on the same facts, and return them.

    Args:
        folder: The folder of the runs.
        n_relations: Number of relations, whose source is T-REx.
        n_facts: Number of facts.
        sources: Number of relations of each source, such as `SOURCES`; replaces `n_relations`.
        n_runs: Number of models, with one run each.
        own_candidates: Whether each run stores its ranked words and lacks one word in `N_LACKING`.
    """
    named = [name for name, n in (sources or {"TREx": n_relations}).items() for _ in range(n)]
    draw = np.random.default_rng(0)
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvzchj" for vowel in "aeiou"]
    spelt = ("".join(reversed(one)) for n in (1, 2, 3) for one in product(syllables, repeat=n))
    words = np.array(list(islice(spelt, N_WORDS)))
    relation = np.sort(draw.integers(0, len(named), n_facts))
    hardness = draw.normal(0, 0.8, len(named))[relation] + draw.normal(0, 0.8, n_facts)
    popularity = np.minimum(draw.zipf(1.4, n_facts), 200)
    gold = (relation * 211 + popularity) % N_WORDS
    subjects = [f"{words[a]} {words[b]}" for a, b in draw.integers(0, N_WORDS, (n_facts, 2))]
    count = np.unique(relation * N_WORDS + gold, return_inverse=True, return_counts=True)
    names = np.array([f"P{100 + number}" for number in range(int(relation.max()) + 1)])
    types = [get_args(RelationType)[number % 3] for number in range(len(names))]
    runs = []
    for number in range(n_runs):
        model = MODELS[number] if number < len(MODELS) else f"made-up-{number}"
        noise = draw.normal(0, 0.4, n_facts)
        exponent = np.clip(SKILL[number % len(SKILL)] + 0.8 * hardness + noise, 0, 4.3)
        rank = np.maximum(1, np.floor(10**exponent * 0.5)).astype(np.int32)
        lacking = own_candidates & (np.arange(N_WORDS) % N_LACKING == number)
        out = (draw.random(n_facts) < 0.03) | lacking[gold]
        top = (gold[:, None] + draw.integers(1, 200, (n_facts, TOP_K))) % N_WORDS
        top[:, 0] = (relation * 211 + 1 + draw.integers(0, 3, n_facts)) % N_WORDS
        top[rank == 1, 0] = gold[rank == 1]
        confidence = np.log(np.clip(draw.beta(1 + 3 * (rank == 1), 4), 1e-4, 1)).astype(np.float32)
        falling = confidence[:, None] - np.arange(TOP_K, dtype=np.float32)
        first = words[top[:, 0]]
        columns: dict[str, Any] = {
            "fact_id": [f"{names[r]}:{at}" for at, r in enumerate(relation)],
            "relation": names[relation],
            "source": np.array(named)[relation],
            "type": np.array(types)[relation],
            "subject": subjects,
            "object": words[gold],
            "origin": pa.nulls(n_facts, pa.string()),
            "prompt": np.zeros(n_facts, np.int16),
            "query": [f"{subject} is related to [MASK] ." for subject in subjects],
            "excluded": pa.array(
                np.full(n_facts, "object is not one token of the model"), mask=~out
            ),
            "rank_raw": pa.array(rank + (rank > 1), pa.int32(), mask=out),
            "rank_filtered": pa.array(rank, pa.int32(), mask=out),
            "log_prob": pa.array(confidence - np.log(rank), pa.float32(), mask=out),
            "first": pa.array(first, mask=out),
            "first_log_prob": pa.array(confidence, mask=out),
            "first_filtered": pa.array(first, mask=out),
            "first_filtered_log_prob": pa.array(confidence, mask=out),
            "first_is_valid": pa.array(np.zeros(n_facts, bool), mask=out),
            "first_is_object": pa.array(draw.random(n_facts) < 0.6, mask=out),
            "n_valid": np.ones(n_facts, np.int16),
            "object_count": count[2][count[1]].astype(np.int32),
            "subject_tokens": np.full(n_facts, 2, np.int16),
            "subject_pieces": np.full(n_facts, 4, np.int16),
            "top_words": pa.DictionaryArray.from_arrays(top.ravel(), words),
            "top_log_probs": pa.array(falling.ravel()),
        }
        arrays = []
        for name in SCHEMA.names:
            kind = SCHEMA.field(name).type
            value = columns[name]
            value = value if isinstance(value, pa.Array) else pa.array(value)
            if name.startswith("top_"):
                value = pa.FixedSizeListArray.from_arrays(value, TOP_K, mask=pa.array(out))
            value = value.dictionary_encode() if pa.types.is_dictionary(kind) else value
            arrays.append(value.cast(kind))
        relations = tuple(
            RelationInfo(
                str(name),
                named[at],
                f"made-up relation {at}",
                types[at],
                ("[X] is related to [Y] .",),
                int((~out & (relation == at)).sum()),
                int((out & (relation == at)).sum()),
            )
            for at, name in enumerate(names)
        )
        path = folder / f"made_up-{model.replace('-', '_')}-manual-0123456789"
        path.mkdir(parents=True, exist_ok=True)
        write_facts(pa.Table.from_arrays(arrays, schema=SCHEMA), path / FACTS_FILE)
        if own_candidates:
            write_candidates({"": words[~lacking].tolist()}, path / CANDIDATES_FILE)
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
        runs.append(Run(read_info(path)))
    return tuple(runs)
