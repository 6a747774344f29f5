"""What the trained model knows: P@k on LAMA's facts, and how many of them its corpus states.

P@k is LAMA's (Petroni et al. 2019, section 4): log-softmax over the whole vocabulary, then the
gold's rank among the candidates; duplicates of subject and object count once. The candidates are
the published common vocabulary lower-cased, for the model is uncased, and other valid objects of
the subject stay among them (`raw`).
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tools.training.corpus import read_lines
from tools.training.evaluate import padded
from tools.training.modelling import hidden_logits

MAX_SUBJECT_WORDS = 6
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class FactRank:
    """One fact and the rank of its object, 1 = best; the object is lower-cased."""

    relation: str
    subject: str
    object: str
    rank: int


@dataclass(frozen=True)
class RelationScore:
    """P@k over the facts of one relation whose object is a candidate."""

    relation: str
    n_facts: int
    n_excluded: int
    p_at_1: float
    p_at_10: float
    mrr: float


@dataclass(frozen=True)
class FactScores:
    """relations: by relation, in the order of their numbers. facts: every fact that counts."""

    relations: tuple[RelationScore, ...]
    facts: tuple[FactRank, ...]


def evaluate_facts(
    model: Any, tokenizer: Any, lama_folder: Path, *, limit: int | None = None
) -> FactScores:
    """P@1, P@10 and MRR of every relation in a folder of LAMA's layout, by its template.

    limit: take only the first facts of each relation, in file order.
    """
    vocabulary = lama_folder / "common_vocab_cased.txt"
    words = dict.fromkeys(word.lower() for word in read_lines(vocabulary))
    known = tokenizer.get_vocab()
    candidates = {word: known[word] for word in words if word in known}
    columns = {word: column for column, word in enumerate(candidates)}
    token_ids = torch.tensor(list(candidates.values()))
    scores: list[RelationScore] = []
    facts: list[FactRank] = []
    for line in read_lines(lama_folder / "relations.jsonl"):
        relation = json.loads(line)
        path = lama_folder / "TREx" / f"{relation['relation']}.jsonl"
        if not path.exists():
            continue
        pairs = dict.fromkeys(
            (fact["sub_label"], fact["obj_label"].lower())
            for fact in map(json.loads, read_lines(path))
        )
        taken = list(pairs)[:limit]
        kept = [(s, o) for s, o in taken if o in columns]
        texts = [
            relation["template"].replace("[X]", s).replace("[Y]", tokenizer.mask_token)
            for s, _ in kept
        ]
        gold = np.array([columns[o] for _, o in kept])
        ranks = _gold_ranks(model, tokenizer, texts, gold, token_ids)
        scores.append(_score(relation["relation"], ranks, len(taken) - len(kept)))
        facts += [
            FactRank(relation["relation"], s, o, int(rank))
            for (s, o), rank in zip(kept, ranks, strict=True)
        ]
    return FactScores(tuple(sorted(scores, key=lambda s: int(s.relation[1:]))), tuple(facts))


def mean_score(scores: Iterable[RelationScore]) -> RelationScore:
    """The unweighted mean over relations, as LAMA reports a source."""
    rows = list(scores)
    return RelationScore(
        "mean",
        sum(s.n_facts for s in rows),
        sum(s.n_excluded for s in rows),
        float(np.mean([s.p_at_1 for s in rows])),
        float(np.mean([s.p_at_10 for s in rows])),
        float(np.mean([s.mrr for s in rows])),
    )


def facts_in_text(facts: Iterable[FactRank], passages: Iterable[str]) -> frozenset[FactRank]:
    """The facts whose subject and object stand together in a passage, in whatever words.

    A subject of more than MAX_SUBJECT_WORDS words is never found.
    """
    by_subject: dict[tuple[str, ...], list[FactRank]] = defaultdict(list)
    for fact in facts:
        by_subject[tuple(_WORD.findall(fact.subject.lower()))].append(fact)
    first_words = {subject[0] for subject in by_subject if subject}
    found: set[FactRank] = set()
    for passage in passages:
        words = _WORD.findall(passage.lower())
        present = set(words)
        for start in (i for i, word in enumerate(words) if word in first_words):
            for length in range(1, MAX_SUBJECT_WORDS + 1):
                for fact in by_subject.get(tuple(words[start : start + length]), ()):
                    if fact.object in present and _apart(fact, words, start, length):
                        found.add(fact)
    return frozenset(found)


def _apart(fact: FactRank, words: list[str], start: int, length: int) -> bool:
    """Whether the object stands outside the subject, too."""
    return fact.object in (*words[:start], *words[start + length :])


def _score(relation: str, ranks: npt.NDArray[np.int64], n_excluded: int) -> RelationScore:
    return RelationScore(
        relation,
        len(ranks),
        n_excluded,
        float((ranks == 1).mean()),
        float((ranks <= 10).mean()),
        float((1 / ranks).mean()),
    )


def _gold_ranks(
    model: Any,
    tokenizer: Any,
    texts: list[str],
    gold: npt.NDArray[np.int64],
    token_ids: torch.Tensor,
    batch_size: int = 64,
) -> npt.NDArray[np.int64]:
    """Rank of each gold among the candidates, 1 = best; ties: the earlier column wins."""
    encoded = tokenizer(texts)["input_ids"]
    order = np.argsort([len(ids) for ids in encoded], kind="stable")
    ranks = np.zeros(len(texts), dtype=np.int64)
    model.eval()
    with torch.inference_mode():
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            ids, lengths = padded([encoded[i] for i in rows], tokenizer.pad_token_id)
            inputs = torch.from_numpy(ids)
            hidden = inputs == tokenizer.mask_token_id
            mask = torch.from_numpy(np.arange(ids.shape[1])[None] < lengths[:, None]).long()
            logits = hidden_logits(model, inputs, mask, hidden).float()
            values = torch.log_softmax(logits, -1)[:, token_ids].numpy()
            own = values[np.arange(len(rows)), gold[rows]][:, None]
            earlier = np.arange(values.shape[1])[None] < gold[rows][:, None]
            ranks[rows] = 1 + (values > own).sum(1) + ((values == own) & earlier).sum(1)
    return ranks
