"""What the trained model is worth: held-out masked accuracy, P@k on facts, fixed questions.

Held-out: 15 % of the tokens, all alike, are replaced by [MASK] and predicted from the rest.
P@k: LAMA's way (Petroni et al. 2019, section 4): log-softmax over the whole vocabulary, then the
gold's rank among the candidates; duplicates of subject and object count once. Our candidates are
the published common vocabulary lower-cased, for the model is uncased; other valid objects of the
subject stay among them (`raw`).
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from lama_core.training.corpus import read_lines
from lama_core.training.masking import draw_uniform_mask
from lama_core.training.modelling import hidden_logits

EVALUATION_RATE = 0.15
EVALUATION_SEED = 20_000
QUESTIONS = (
    "Tokyo is the capital of [MASK].",
    "The Nile is a river in [MASK].",
    "Einstein was a [MASK] who developed the theory of relativity.",
    "Paris is the capital of [MASK].",
    "Dante was born in [MASK].",
    "The native language of Victor Hugo is [MASK].",
    "The Beatles play [MASK] music.",
    "A dog is a kind of [MASK].",
    "The opposite of hot is [MASK].",
    "The theory of relativity was developed by [MASK].",
)


@dataclass(frozen=True)
class HeldOut:
    """loss: mean cross-entropy, natural log. accuracy: part of the hidden tokens found."""

    n_hidden: int
    loss: float
    accuracy: float


@dataclass(frozen=True)
class RelationScore:
    """P@k over the facts of one relation whose object is a candidate."""

    relation: str
    n_facts: int
    n_excluded: int
    p_at_1: float
    p_at_10: float
    mrr: float


def evaluate_held_out(
    model: Any,
    tokenizer: Any,
    passages: list[str],
    *,
    max_length: int,
    batch_size: int = 64,
    seed: int = EVALUATION_SEED,
) -> HeldOut:
    """Loss and accuracy on hidden tokens of the passages. The same seed hides the same tokens.

    Passages of fewer than three tokens are left out.
    """
    encoded = tokenizer(passages, truncation=True, max_length=max_length)["input_ids"]
    rows = sorted((ids for ids in encoded if len(ids) >= 5), key=len)
    total_loss, n_right, n_hidden = 0.0, 0, 0
    model.eval()
    with torch.inference_mode():
        for start in range(0, len(rows), batch_size):
            ids, lengths = _padded(rows[start : start + batch_size], tokenizer.pad_token_id)
            rng = np.random.default_rng([seed, start])
            hidden = torch.from_numpy(
                draw_uniform_mask(lengths, ids.shape[1], EVALUATION_RATE, rng)
            )
            targets = torch.from_numpy(ids)
            mask = torch.from_numpy(np.arange(ids.shape[1])[None] < lengths[:, None]).long()
            inputs = targets.masked_fill(hidden, tokenizer.mask_token_id)
            logits = hidden_logits(model, inputs, mask, hidden).float()
            gold = targets[hidden]
            loss = torch.nn.functional.cross_entropy(logits, gold, reduction="sum")
            total_loss += float(loss)
            n_right += int((logits.argmax(-1) == gold).sum())
            n_hidden += len(gold)
    return HeldOut(n_hidden, total_loss / n_hidden, n_right / n_hidden)


def evaluate_files(
    model: Any,
    tokenizer: Any,
    files: Iterable[tuple[str, Path]],
    *,
    max_length: int,
    limit: int | None = None,
) -> dict[str, HeldOut]:
    """Held-out scores of each file, and of all together under `all`.

    limit: take at most so many passages of each, evenly spread.
    """
    found: dict[str, list[str]] = {}
    for name, path in files:
        lines = read_lines(path)
        step = 1 if limit is None else max(1, len(lines) // limit)
        found[name] = lines[::step]
    scores = {
        name: evaluate_held_out(model, tokenizer, lines, max_length=max_length)
        for name, lines in found.items()
    }
    n = sum(score.n_hidden for score in scores.values())
    scores["all"] = HeldOut(
        n,
        sum(s.loss * s.n_hidden for s in scores.values()) / n,
        sum(s.accuracy * s.n_hidden for s in scores.values()) / n,
    )
    return scores


def evaluate_facts(
    model: Any, tokenizer: Any, lama_folder: Path, *, limit: int | None = None
) -> list[RelationScore]:
    """P@1, P@10 and MRR of every relation in a folder of LAMA's layout, by its template.

    limit: take only the first facts of each relation, in file order.
    """
    vocabulary = lama_folder / "common_vocab_cased.txt"
    words = dict.fromkeys(word.lower() for word in read_lines(vocabulary))
    known = tokenizer.get_vocab()
    candidates = {word: known[word] for word in words if word in known}
    columns = {word: column for column, word in enumerate(candidates)}
    token_ids = torch.tensor(list(candidates.values()))
    scores = []
    for line in read_lines(lama_folder / "relations.jsonl"):
        relation = json.loads(line)
        path = lama_folder / "TREx" / f"{relation['relation']}.jsonl"
        if not path.exists():
            continue
        pairs = dict.fromkeys(
            (fact["sub_label"], fact["obj_label"]) for fact in map(json.loads, read_lines(path))
        )
        facts = list(pairs)[:limit]
        kept = [(s, o.lower()) for s, o in facts if o.lower() in columns]
        texts = [
            relation["template"].replace("[X]", s).replace("[Y]", tokenizer.mask_token)
            for s, _ in kept
        ]
        gold = np.array([columns[o] for _, o in kept])
        ranks = _gold_ranks(model, tokenizer, texts, gold, token_ids)
        scores.append(
            RelationScore(
                relation["relation"],
                len(kept),
                len(facts) - len(kept),
                float((ranks == 1).mean()),
                float((ranks <= 10).mean()),
                float((1 / ranks).mean()),
            )
        )
    return sorted(scores, key=lambda score: int(score.relation[1:]))


def mean_score(scores: list[RelationScore]) -> RelationScore:
    """The unweighted mean over relations, as LAMA reports a source."""
    return RelationScore(
        "mean",
        sum(s.n_facts for s in scores),
        sum(s.n_excluded for s in scores),
        float(np.mean([s.p_at_1 for s in scores])),
        float(np.mean([s.p_at_10 for s in scores])),
        float(np.mean([s.mrr for s in scores])),
    )


def answer(model: Any, tokenizer: Any, text: str, *, top_k: int = 5) -> list[str]:
    """The best tokens for the text's one blank, best first."""
    encoded = tokenizer(text, return_tensors="pt")
    hidden = encoded["input_ids"] == tokenizer.mask_token_id
    model.eval()
    with torch.inference_mode():
        logits = hidden_logits(model, encoded["input_ids"], encoded["attention_mask"], hidden)
    return tokenizer.convert_ids_to_tokens(logits[0].topk(top_k).indices.tolist())


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
            ids, lengths = _padded([encoded[i] for i in rows], tokenizer.pad_token_id)
            inputs = torch.from_numpy(ids)
            hidden = inputs == tokenizer.mask_token_id
            mask = torch.from_numpy(np.arange(ids.shape[1])[None] < lengths[:, None]).long()
            logits = hidden_logits(model, inputs, mask, hidden).float()
            values = torch.log_softmax(logits, -1)[:, token_ids].numpy()
            own = values[np.arange(len(rows)), gold[rows]][:, None]
            earlier = np.arange(values.shape[1])[None] < gold[rows][:, None]
            ranks[rows] = 1 + (values > own).sum(1) + ((values == own) & earlier).sum(1)
    return ranks


def _padded(
    rows: list[list[int]], pad_id: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    ids = np.full((len(rows), int(lengths.max())), pad_id, dtype=np.int64)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
    return ids, lengths
