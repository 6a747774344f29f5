"""Answer multiple-choice analogy questions with models: SAT, U2, U4 (Turney; Ushio et al. 2021).

A model's choice is the pair whose sentence, the template with stem and choice, has the lowest
(pseudo-)perplexity, as `score` ranks pairs. The earlier choice wins a tie.

Baselines: random is the mean of 1 / (number of choices). Frequency chooses the pair with the
highest harmonic mean of its words' frequencies in English (see `frequency`); the earlier choice
wins a tie, also between pairs with unknown words.

Departure: Multiple-choice analogy questions
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd

from lama_core.datasets import load_questions
from lama_core.datasets.dataset import ChoiceQuestion, QuestionDataset
from lama_core.models.protocols import SentenceScorer
from lama_core.probes.analogy.frequency import pair_frequency
from lama_core.progress import Progress
from lama_core.queries.analogy_templates import (
    DEFAULT_TEMPLATE,
    TemplateChoice,
    fill_template,
    resolve_template,
)
from lama_core.queries.pairs import (
    NormaliseChoice,
    PairScore,
    rank_pairs,
    score_in_batches,
)
from lama_core.requests import Function, option
from lama_core.scoring import shared_fields
from lama_core.scoring.limits import UNLIMITED
from lama_core.scoring.model_info import AboutModel, model_fields
from lama_core.scoring.shared_fields import load_models

if TYPE_CHECKING:
    from lama_core.metrics.intervals import Interval


@dataclass(frozen=True, kw_only=True)
class QuestionsRequest(
    shared_fields.ModelSettings, command="analogy questions", python="analogy_questions"
):
    """Multiple-choice questions for models: the fields of `analogy questions`."""

    dataset: Annotated[
        str, option("Name of imported analogy questions (SAT, U2, U4), or their file or folder.")
    ] = field(kw_only=False)
    template: TemplateChoice = DEFAULT_TEMPLATE
    normalise: NormaliseChoice = "sum"
    limit: Annotated[int | None, option("Only the first N questions.", ge=1)] = None


@dataclass(frozen=True, slots=True)
class Share:
    """How many of `n` questions are answered right."""

    n_right: int
    n: int

    @property
    def share(self) -> float:
        """The share of right answers, 0 to 1."""
        return self.n_right / self.n

    @property
    def interval(self) -> "Interval":
        """The share's 95 % interval (Wilson's)."""
        from lama_core.metrics.intervals import share_intervals  # imports pandas, which is slow

        return share_intervals(np.array([self.n_right]), np.array([self.n]))[0]

    def to_json(self) -> dict[str, Any]:
        """Return numbers, share and interval as JSON values."""
        return {
            "n_questions": self.n,
            "n_right": self.n_right,
            "share": self.share,
            "low": self.interval.low,
            "high": self.interval.high,
        }


# Group -> share of right answers; None is all questions.
Shares = dict[str | None, Share]


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """One model's answer to one question; pairs: the choices in their order."""

    question: ChoiceQuestion
    pairs: tuple[PairScore, ...]

    @property
    def chosen(self) -> PairScore:
        """The choice of rank 1."""
        return min(self.pairs, key=lambda pair: pair.rank)

    @property
    def rank(self) -> int:
        """The rank of the right choice."""
        return self.pairs[self.question.answer].rank

    @property
    def is_right(self) -> bool:
        """Whether the right choice has rank 1."""
        return self.rank == 1


@dataclass(frozen=True, slots=True)
class ModelChoices(AboutModel):
    """One model's answers, in the order of the questions."""

    answers: tuple[QuestionAnswer, ...]

    @property
    def shares(self) -> Shares:
        """The shares of right answers."""
        return _shares((one.question, one.is_right) for one in self.answers)


@dataclass(frozen=True, slots=True)
class QuestionsAnswer:
    """The results of `analogy questions`; frequent: those of the frequency baseline."""

    request: QuestionsRequest
    dataset: QuestionDataset
    questions: tuple[ChoiceQuestion, ...]
    models: tuple[ModelChoices, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of the questions, in order of first appearance."""
        return tuple(dict.fromkeys(question.group for question in self.questions))

    @property
    def random(self) -> float:
        """The expected share of right answers of random choices."""
        return float(np.mean([1 / len(question.choices) for question in self.questions]))

    @property
    def frequent(self) -> Shares:
        """The shares of right answers of the frequency baseline."""
        return _shares((one, most_frequent(one) == one.answer) for one in self.questions)

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each model and question."""
        return [
            {
                "model": model.name,
                "question": number,
                "group": question.group,
                "stem": ":".join(question.stem),
                "chosen": ":".join(answer.chosen.pair),
                "right_choice": ":".join(question.choices[question.answer]),
                "rank": answer.rank,
                "n_choices": len(question.choices),
                "is_right": answer.is_right,
                "frequent_is_right": most_frequent(question) == question.answer,
            }
            for model in self.models
            for number, (question, answer) in enumerate(
                zip(self.questions, model.answers, strict=True), start=1
            )
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the results as JSON values."""
        return {
            "dataset": self.dataset.name,
            "digest": self.dataset.digest,
            "n_excluded": len(self.dataset.report.dropped),
            "template": self.request.template,
            "normalise": self.request.normalise,
            "random": self.random,
            "frequency": _shares_json(self.frequent),
            "models": [
                {
                    **model.model_json(),
                    **_shares_json(model.shares),
                    "questions": [
                        {
                            "group": question.group,
                            "stem": list(question.stem),
                            "chosen": list(answer.chosen.pair),
                            "right_choice": list(question.choices[question.answer]),
                            "rank": answer.rank,
                            "is_right": answer.is_right,
                            "choices": [
                                {
                                    "rank": pair.rank,
                                    "pair": list(pair.pair),
                                    "log_perplexity": pair.log_perplexity,
                                }
                                for pair in answer.pairs
                            ],
                        }
                        for question, answer in zip(self.questions, model.answers, strict=True)
                    ],
                }
                for model in self.models
            ],
        }


def most_frequent(question: ChoiceQuestion) -> int:
    """Return the index of the choice with the most frequent words; the first of several."""
    return int(np.argmax([pair_frequency(choice) for choice in question.choices]))


def answer_questions(
    models: Sequence[SentenceScorer], dataset: QuestionDataset, request: QuestionsRequest
) -> QuestionsAnswer:
    """Return every model's answers to a dataset's questions, or the first `request.limit`.

    Raises:
        UserError: If the template is invalid.
    """
    text = resolve_template(request.template)
    questions = dataset.questions[: request.limit]
    sentences = [
        [fill_template(text, (*question.stem, *choice)).text for choice in question.choices]
        for question in questions
    ]
    flat = [sentence for some in sentences for sentence in some]
    found = []
    for model in models:

        def report(done: int, name: str = model.name) -> None:
            request.on_progress(Progress(f"scoring with {name}", done, len(flat), "sentences"))

        scores = iter(score_in_batches(model, flat, text, UNLIMITED, report))
        answers = [
            QuestionAnswer(
                question,
                rank_pairs(
                    question.choices,
                    some,
                    [next(scores) for _ in some],
                    request.normalise,
                ),
            )
            for question, some in zip(questions, sentences, strict=True)
        ]
        found.append(ModelChoices(answers=tuple(answers), **model_fields(model)))
    return QuestionsAnswer(request, dataset, questions, tuple(found))


def _shares(answers: Iterable[tuple[ChoiceQuestion, bool]]) -> Shares:
    by_group: dict[str | None, list[bool]] = {None: []}
    for question, is_right in answers:
        by_group[None].append(is_right)
        by_group.setdefault(question.group, []).append(is_right)
    return {group: Share(sum(right), len(right)) for group, right in by_group.items()}


def _shares_json(shares: Shares) -> dict[str, Any]:
    groups = [{"group": name, **one.to_json()} for name, one in shares.items() if name is not None]
    return {**shares[None].to_json(), "groups": groups}


def _answer(request: QuestionsRequest) -> QuestionsAnswer:
    dataset = load_questions(request.dataset)
    if dataset.report.dropped:
        request.on_note(dataset.report.summary())
    return answer_questions(load_models(request), dataset, request)


analogy_questions = Function(
    QuestionsRequest,
    _answer,
    lambda answer: pd.DataFrame(answer.rows()),
    """Answer multiple-choice analogy questions (SAT, U2, U4) by the likelihood of the analogies.

    The choice is the pair that `score_analogies` ranks first. Nothing is saved.

    Returns:
        A DataFrame with a row for each model and question: the chosen pair, the right one and its
        rank, and whether the choice with the most frequent words is right.

    Raises:
        UserError: If there are no such questions, or a model is unknown.
    """,
)
