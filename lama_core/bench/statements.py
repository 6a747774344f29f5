"""`bench statements`: answers ranked by whole statements, beside BEAR's library and minicons.

The same statements of three relations of the starter facts, each system in a process of its own,
one after the other. The limit is the passes that nobody can do without: of a left-to-right model
every token once that stands in different beginnings, without padding, in full batches; of a masked
model every different hidden text once. Scores are compared, too: of the first answers, and of the
statements' sums.
"""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lama_core.bench import BenchRow, called_in_a_fresh_process
from lama_core.bench.passes import batched, copy_passes, full_passes
from lama_core.datasets import load_dataset, relation_objects
from lama_core.models.cache import load_model
from lama_core.models.hf.both_sides import BothSides
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import fetch
from lama_core.probes.statements.scoring import Scoring, score_answers, state
from lama_core.scoring.blanks import fill
from lama_core.types import Query

RELATIONS = ("P36", "P69", "P20")
MODELS = ("smollm2-135m", "minilm-mlm")
PEERS = {"lm-pub-quiz": "lm_pub_quiz", "minicons": "minicons"}
PEER_BATCH = 32  # what lm-pub-quiz's own examples take


@dataclass(frozen=True, slots=True)
class Relation:
    """Some facts of a relation, and the answers that are ranked for each."""

    template: str
    subjects: tuple[str, ...]
    answers: tuple[str, ...]

    @property
    def queries(self) -> list[Query]:
        """Each fact with a blank for its answer."""
        return [fill(self.template, subject) for subject in self.subjects]

    @property
    def texts(self) -> list[str]:
        """Every statement, fact by fact."""
        return [state(query, answer).text for query in self.queries for answer in self.answers]


def asked(n_statements: int) -> list[Relation]:
    """About so many statements of the starter facts, as many of each relation."""
    dataset = load_dataset("starter")
    found = []
    for name in RELATIONS:
        answers = relation_objects(dataset, name)
        n_facts = max(1, n_statements // len(RELATIONS) // len(answers))
        subjects = dict.fromkeys(fact.subject for fact in dataset.facts_of(name))
        template = dataset.relation(name).prompts[0].template
        found.append(Relation(template, tuple(subjects)[:n_facts], answers))
    return found


Ask = Callable[[Relation], NDArray[np.float64]]


def ours(model: str, precision: str) -> Ask:
    """This library's scores of a relation's statements, float64 [fact, answer]."""
    opened: Any = load_model(model, precision=precision)  # type: ignore[arg-type]
    return lambda one: score_answers(opened, one.queries, one.answers, Scoring())


def lm_pub_quiz(model: str, precision: str) -> Ask:
    """BEAR's own library, fact by fact."""
    from lm_pub_quiz import Evaluator

    network, tokenizer, kind = _plain(model, precision)
    evaluator = Evaluator.from_model(
        network, model_type="MLM" if kind == "masked" else "CLM", tokenizer=tokenizer, device="cpu"
    )

    def ask(one: Relation) -> NDArray[np.float64]:
        return np.array(
            [
                evaluator.score_answers(
                    template=one.template,
                    answers=one.answers,
                    subject=subject,
                    reduction="sum",
                    batch_size=PEER_BATCH,
                )
                for subject in one.subjects
            ]
        )

    return ask


def minicons(model: str, precision: str) -> Ask:
    """minicons, in batches of statements."""
    from minicons import scorer

    network, tokenizer, kind = _plain(model, precision)
    if kind == "masked":
        opened = scorer.MaskedLMScorer(network, device="cpu", tokenizer=tokenizer)
        more: dict[str, Any] = {"PLL_metric": "within_word_l2r"}
    else:
        opened = scorer.IncrementalLMScorer(network, device="cpu", tokenizer=tokenizer)
        more = {"bos_token": True}

    def ask(one: Relation) -> NDArray[np.float64]:
        texts = one.texts
        found: list[float] = []
        for some in batched(texts, PEER_BATCH):
            found += opened.sequence_score(some, reduction=lambda x: x.sum(0).item(), **more)
        return np.array(found).reshape(len(one.subjects), len(one.answers))

    return ask


def _plain(model: str, precision: str) -> tuple[Any, Any, str]:
    """A model of the catalogue as transformers opens it, its tokenizer, and its kind."""
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

    entry = find_model(model)
    folder, kind = fetch(entry).folder, str(entry.kind)
    opened = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return opened.from_pretrained(folder, dtype=dtype).eval(), tokenizer, kind


def unavoidable(model: str, precision: str) -> Ask:
    """The passes alone that nobody can do without; the numbers are of no use."""
    opened: Any = load_model(model, precision=precision)  # type: ignore[arg-type]

    def ask(one: Relation) -> NDArray[np.float64]:
        statements = [state(query, answer) for query in one.queries for answer in one.answers]
        read = opened.vocabulary.read(statements)
        if isinstance(opened, BothSides):
            copies = {
                (copy.ids, copy.at)
                for number, each in enumerate(read)
                for copy in opened.copies(each, number, "within-word", "statement")
            }
            copy_passes(opened, copies)()
        else:
            beginnings = {each.ids[:end] for each in read for end in range(len(each.ids))}
            full_passes(opened, len(beginnings))()
        return np.zeros((len(one.subjects), len(one.answers)))

    return ask


SYSTEMS: dict[str, Callable[[str, str], Ask]] = {
    "ours": ours,
    "lm-pub-quiz": lm_pub_quiz,
    "minicons": minicons,
    "unavoidable": unavoidable,
}


Measured = dict[str, Any]


def measure(
    system: str, model: str, precision: str, n_statements: int, repetitions: int
) -> Measured:
    """Statements a second of a system, and its scores."""
    relations = asked(n_statements)
    ask = SYSTEMS[system](model, precision)
    first = relations[0]
    ask(Relation(first.template, first.subjects[:1], first.answers[:8]))  # warms up
    seconds = []
    for _ in range(repetitions):
        began = time.perf_counter()
        scores = [ask(one) for one in relations]
        seconds.append(time.perf_counter() - began)
    n = sum(one.size for one in scores)
    return {"n": n, "rate": n / median(seconds), "scores": [one.tolist() for one in scores]}


def _measured(*given: Any) -> Measured:
    """What `measure` gives in a process of its own."""
    found: Measured = called_in_a_fresh_process(measure, *given)[0]
    return found


def _peer(name: str, *given: Any) -> Measured | None:
    """The same of a peer; None if it isn't installed or fails."""
    if find_spec(PEERS[name]) is None:
        return None
    try:
        return _measured(name, *given)
    except subprocess.CalledProcessError:
        return None


def run(*, n_queries: int = 3000, repetitions: int = 3) -> list[BenchRow]:
    """Statements a second in fp32 and bf16, and how far the scores are apart.

    n_queries: statements. A peer that isn't installed has no figure, nor has one that fails.
    """
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    rows = []
    for model in MODELS:
        plain: Measured | None = None
        peers = {name: _peer(name, model, "fp32", n_queries, 1) for name in PEERS}
        for precision in ("fp32", "bf16"):
            given = (model, precision, n_queries, repetitions)
            found = _measured("ours", *given)
            limit = _measured("unavoidable", *given)["rate"]
            plain = plain or found
            what = f"{model}, {precision}, {found['n']:,} statements"
            for name, peer in peers.items():
                theirs = peer["rate"] if peer else None
                named = f"{name}, fp32" if peer else f"{name} is not installed, or fails here"
                rows.append(
                    BenchRow(
                        what,
                        "statements/s",
                        found["rate"],
                        theirs,
                        named,
                        limit,
                        "unavoidable passes",
                    )
                )
            same = _same_firsts(found["scores"], plain["scores"])
            rows.append(BenchRow(f"{what}: first answers as in fp32", "share", same))
        for name, peer in peers.items():
            if peer and plain:
                apart = _apart(plain["scores"], peer["scores"])
                rows.append(BenchRow(f"{model}: scores less {name}'s, at most", "nats", apart))
    return rows


def _same_firsts(some: Sequence[Any], others: Sequence[Any]) -> float:
    pairs = [
        np.argmax(one, axis=1) == np.argmax(other, axis=1)
        for one, other in zip(some, others, strict=True)
    ]
    return float(np.concatenate(pairs).mean())


def _apart(some: Sequence[Any], others: Sequence[Any]) -> float:
    return max(
        float(np.abs(np.array(one) - np.array(other)).max())
        for one, other in zip(some, others, strict=True)
    )
