"""One question put to several models, which answer in free text."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from lama_core.errors import UserError
from lama_core.models.generators import (
    check_generates,
    check_prompt,
    generate,
    has_chat_template,
)
from lama_core.models.protocols import GeneratedText, TokenScores
from lama_core.queries.answer_matching import Match, match
from lama_core.queries.question_prompts import MAX_TOKENS, PromptFormat, make_prompt
from lama_core.requests import argument, option
from lama_core.scoring import shared_fields
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.scoring.model_info import AboutModel, model_fields

DEFAULT_MODEL = "smollm2-135m"
MOST_TOKENS = 256
MAX_CHARACTERS = 4_000
ENDINGS = {
    "cut": "The answer was cut at the maximum number of tokens.",
    "in reasoning": "The text ends within the model's reasoning, so it has no answer: allow more "
    "tokens.",
}


def _default_models() -> tuple[str, ...]:
    return (DEFAULT_MODEL,)


@dataclass(frozen=True)
class AskRequest(shared_fields.ModelSettings):
    """A question in free text: the fields of `ask`."""

    command: ClassVar[tuple[str, ...]] = ("ask",)
    python: ClassVar[str] = "ask"

    question: Annotated[str, argument("The question, or with --plain a text to continue.")]
    golds: Annotated[
        Sequence[str], option("A right answer; repeat for other names of it.", name="--gold")
    ] = ()
    plain: Annotated[bool, option("Continue the text as it is, without a chat template.")] = False
    max_tokens: Annotated[int, option("Maximum tokens of an answer.", ge=1, le=MOST_TOKENS)] = (
        MAX_TOKENS
    )
    again: Annotated[
        bool, option("Ask a chat server even if its answer is stored, and store the new one.")
    ] = False
    models: shared_fields.Models = field(default_factory=_default_models, kw_only=True)

    def check(self) -> None:
        """Raise UserError if the question is empty or too long, or another field is invalid."""
        super().check()
        if not self.question.strip():
            raise UserError("The question is empty: write one.")
        if len(self.question) > MAX_CHARACTERS:
            raise UserError(
                f"The question has {len(self.question):,} characters; the maximum is "
                f"{MAX_CHARACTERS:,}."
            )


@dataclass(frozen=True, slots=True)
class ModelText(AboutModel):
    """One model's answer. match: How it matches the right answers; None if none was given."""

    how: PromptFormat
    generated: GeneratedText
    match: Match | None

    @property
    def log_prob(self) -> float:
        """Return the sum of the tokens' log-probabilities; NaN if a server returns none."""
        return float(self.generated.log_probs.sum(dtype=np.float64))

    @property
    def prob(self) -> float | None:
        """Return the probability of the whole text; None if it is empty or has no scores."""
        known = len(self.generated.tokens) and not np.isnan(self.log_prob)
        return float(np.exp(self.log_prob)) if known else None

    @property
    def token_scores(self) -> TokenScores | None:
        """Return each token's log-probability; None if a server returns no tokens."""
        text = self.generated
        return TokenScores(text.tokens, text.log_probs) if text.tokens else None

    def notes(self) -> tuple[str, ...]:
        """Return notes on a text that isn't finished, and on when a server gave it."""
        one = self.generated
        notes = []
        if not one.in_time:
            notes.append("The time limit ended the text before it was finished.")
        if one.ending != "whole":
            notes.append(ENDINGS[one.ending])
        if one.made:
            notes.append(f"{'Stored answer' if one.is_stored else 'Answer'} of {one.made} UTC.")
        return tuple(notes)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as `ask --json` prints it."""
        return {
            "name": self.name,
            "text": self.generated.text,
            "tokens": list(self.generated.tokens),
            "log_prob": None if np.isnan(self.log_prob) else self.log_prob,
            "verdict": None if self.match is None else self.match.verdict,
            "ending": self.generated.ending,
            "answered": self.generated.made or None,
            "stored": self.generated.is_stored,
        }


@dataclass(frozen=True, slots=True)
class AskAnswer:
    """All models' answers to one question."""

    request: AskRequest
    models: tuple[ModelText, ...]

    def to_json(self) -> dict[str, Any]:
        """Return what `ask --json` prints."""
        return {
            "question": self.request.question,
            "models": [one.to_json() for one in self.models],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each model."""
        return [
            {"model": one.name, "text": one.generated.text.strip(), "log_prob": one.log_prob}
            | ({"verdict": one.match.verdict} if one.match else {})
            for one in self.models
        ]


def ask_model(model: Any, request: AskRequest, limits: Limits = UNLIMITED) -> ModelText:
    """Return one model's answer to the question.

    Args:
        model: The model; the models that the request names are ignored.
        request: The question and how it is asked.
        limits: Limits on the cost; a text that the time limit ends has a note.

    Raises:
        UserError: If the model can't generate text, or the question is too long.
    """
    check_generates(model)
    how: PromptFormat = "chat" if has_chat_template(model) else "question and answer"
    how = "plain" if request.plain else how
    prompt = make_prompt(request.question, (), how, briefly=False)
    limits.check_tokens(check_prompt(model, prompt, request.max_tokens), model.name)
    (text,) = generate(model, [prompt], request.max_tokens, limits.until(), again=request.again)
    found = match(text.text, request.golds, request.question) if request.golds else None
    return ModelText(**model_fields(model), how=how, generated=text, match=found)
