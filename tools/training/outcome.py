"""The complete recipe: prepare, train, export, evaluate, and write the model card."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lama_core.errors import UserError
from lama_core.metrics.cooccurrence import PairIndex
from lama_core.metrics.word_counts import COUNTS_FILE
from lama_core.runs.info import Run
from tools.training.card import make_card
from tools.training.corpus.build import TrainingCorpus, read_lines
from tools.training.evaluate import QUESTIONS, HeldOut, answer, evaluate_files
from tools.training.export import export_model, round_to_stored
from tools.training.facts import (
    FactRank,
    RelationScore,
    fact_ranks,
    probe_facts,
    relation_scores,
)
from tools.training.recipe import prepare
from tools.training.train import Settings, TrainingProgress, train

OUTCOME_FILE = "evaluation.json"
CARD_FILE = "README.md"


@dataclass(frozen=True)
class SharedFacts:
    """P@1 on the facts whose pair co-occurs in a training passage (`stated`), or on other facts."""

    stated: bool
    n_facts: int
    p_at_1: float


@dataclass(frozen=True)
class Outcome:
    """The results of a finished training run.

    Attributes:
        folder: The model's folder.
        settings: Settings of the run.
        held_out: Scores by corpus file, and over all files (`all`); empty without held-out texts.
        relations: P@k by relation, the mean last; empty without facts.
        by_corpus: P@1 on facts whose subject and object co-occur in a training passage, and on the
            others; empty without facts.
        answers: Best tokens for each of the fixed queries.
    """

    folder: Path
    settings: Settings
    held_out: dict[str, HeldOut]
    relations: tuple[RelationScore, ...]
    by_corpus: tuple[SharedFacts, ...]
    answers: dict[str, list[str]]

    def to_json(self) -> dict[str, Any]:
        """Return the results as plain values; P@k is between 0 and 1."""
        return asdict(self) | {"folder": str(self.folder)}


def run_recipe(
    settings: Settings,
    *,
    encoder: Path | None,
    corpus_files: list[Path],
    without: Sequence[str] = (),
    run_folder: Path,
    out: Path,
    facts: Path | None,
    history: Path | None = None,
    checkpoint_seconds: float = 240.0,
    report: Callable[[str], None] = lambda line: None,
    on_progress: Callable[[TrainingProgress], None] = lambda progress: None,
) -> Outcome:
    """Train (or resume the run in `run_folder`), export to `out`, evaluate and write the card.

    With `history`, also exports the models at step 0, the powers of two and the last step to
    folders `step<n>` in `history`.

    Raises:
        UserError: For unusable input, before the training begins.
    """
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: give a folder for the model")
    if facts is not None and not (facts / "relations.jsonl").exists():
        raise UserError(f"{facts} has no relations.jsonl: give a folder in LAMA's layout")
    ready = prepare(
        settings,
        encoder=encoder,
        corpus_files=corpus_files,
        without=without,
        folder=run_folder,
        report=report,
    )

    def keep(step: int) -> None:
        if history is not None:
            export_model(ready.model, ready.tokenizer, history / f"step{step}", counts=None)

    train(
        ready.model,
        ready.sampler,
        settings,
        mask_id=ready.tokenizer.mask_token_id,
        folder=run_folder,
        corpus_digest=ready.corpus.digest,
        checkpoint_seconds=checkpoint_seconds,
        on_progress=on_progress,
        on_milestone=keep,
    )
    round_to_stored(ready.model)
    report("exporting")
    export_model(ready.model, ready.tokenizer, out, counts=run_folder / "corpus" / COUNTS_FILE)
    report("evaluating")
    run = probe_facts(out, facts, run_folder / "runs") if facts else None
    outcome = measure(ready.model, ready.tokenizer, ready.corpus, settings, out=out, run=run)
    write_outcome(outcome, ready.corpus, encoder)
    return outcome


def measure(
    model: Any,
    tokenizer: Any,
    corpus: TrainingCorpus,
    settings: Settings,
    *,
    out: Path,
    run: Run | None,
) -> Outcome:
    """Return the held-out scores, P@k of the exported model's run, and answers to fixed queries."""
    held_out = {}
    if corpus.held_out:
        held_out = evaluate_files(model, tokenizer, corpus.held_out, max_length=settings.max_length)
    return Outcome(
        folder=out,
        settings=settings,
        held_out=held_out,
        relations=relation_scores(run) if run else (),
        by_corpus=_by_corpus(tuple(fact_ranks(run)), corpus) if run else (),
        answers={
            text: answer(model, tokenizer, text.replace("[MASK]", tokenizer.mask_token))
            for text in QUESTIONS
        },
    )


def _by_corpus(facts: tuple[FactRank, ...], corpus: TrainingCorpus) -> tuple[SharedFacts, ...]:
    texts = (line for _, _, path in corpus.train for line in read_lines(path))
    stated = PairIndex((fact.subject, fact.object) for fact in facts).find(texts)
    groups = [
        (flag, [fact for fact in facts if ((fact.subject, fact.object) in stated) is flag])
        for flag in (True, False)
    ]
    return tuple(
        SharedFacts(flag, len(group), sum(f.rank == 1 for f in group) / len(group))
        for flag, group in groups
        if group
    )


def write_outcome(outcome: Outcome, corpus: TrainingCorpus, encoder: Path | None) -> None:
    """Write the results and the model card to the model's folder."""
    figures = outcome.to_json() | {"corpus": [asdict(source) for source in corpus.summary]}
    figures.pop("folder")
    text = json.dumps(figures, ensure_ascii=False, indent=1)
    (outcome.folder / OUTCOME_FILE).write_text(text + "\n", encoding="utf-8")
    card = make_card(
        name=outcome.folder.name,
        base=str(encoder) if encoder else "all-MiniLM-L6-v2 (Apache-2.0)",
        settings=outcome.settings,
        corpus=corpus,
        held_out=outcome.held_out,
        relations=outcome.relations,
        by_corpus=[(s.stated, s.n_facts, s.p_at_1) for s in outcome.by_corpus],
        answers=outcome.answers,
    )
    (outcome.folder / CARD_FILE).write_text(card, encoding="utf-8")
