"""One question put to several models, which answer in free text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from lama_core.errors import UserError
from lama_core.models.generators import (
    GENERATING_KINDS,
    check_generates,
    check_prompt,
    generate,
    has_chat_template,
)
from lama_core.models.protocols import GeneratedText, TokenScores
from lama_core.models.sources.catalog import find_model
from lama_core.queries.answer_matching import Match, Verdict, match
from lama_core.queries.kind import Answer, Asked, Calls, QueryFunction, QueryKind
from lama_core.queries.question_prompts import MAX_TOKENS, PromptFormat, make_prompt
from lama_core.requests import argument, option
from lama_core.scoring import shared_fields
from lama_core.scoring.limits import Limits
from lama_core.scoring.model_info import AboutModel, model_fields
from lama_core.tables import Column, FirstAnswer, FirstAnswers, Table, decimals, make_table, plain

DEFAULT_MODEL = "smollm2-135m"
MOST_TOKENS = 256
MAX_CHARACTERS = 4_000
ENDINGS = {
    "cut": "The answer was cut at the maximum number of tokens.",
    "in reasoning": "The text ends within the model's reasoning, so it has no answer: allow more "
    "tokens.",
}


@dataclass(frozen=True)
class AskRequest(shared_fields.ModelSettings, command="ask", python="ask"):
    """A question in free text: the fields of `ask`."""

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
    models: shared_fields.Models = field(default_factory=lambda: (DEFAULT_MODEL,), kw_only=True)

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


@dataclass(frozen=True, slots=True)
class TextRow:
    """A row of the table of answers."""

    model: Annotated[str, Column("The model.", in_frame=False)]
    text: Annotated[
        str,
        Column("The text, without the spaces around it.", "answer", lambda text: text or "(empty)"),
    ]
    log_prob: Annotated[
        float,
        Column(
            "Sum of the tokens' log-probabilities; NaN if a server returns none.",
            "log-prob",
            decimals(2),
        ),
    ]
    verdict: Annotated[
        Verdict | None,
        Column("match, no match or no answer; None if no right answer was given."),
    ]


def can_generate(name: str) -> bool:
    """Return whether a model's kind can generate text; True if the kind is unknown."""
    kind = find_model(name).kind
    return kind is None or kind in GENERATING_KINDS


class QuestionKind(QueryKind[AskRequest, None, ModelText]):
    """A question, answered in free text."""

    name = "question"
    example = 'ask "What is the capital of Norway?" --model smollm2-135m --gold Oslo'
    row = TextRow
    answer_field = "text"

    def prepare(self, request: AskRequest, limits: Limits) -> None:
        """Return nothing: the prompt depends on the model."""

    def check_model(self, model: Any) -> None:
        """Raise UserError if a model can't generate text."""
        check_generates(model)

    def answer(self, model: Any, asked: Asked[AskRequest, None], calls: Calls) -> ModelText:
        """Return one model's text; a text that the time limit ends has a note.

        Raises:
            UserError: If the question is too long.
        """
        request, limits = asked.request, calls.limits
        how: PromptFormat = "chat" if has_chat_template(model) else "question and answer"
        how = "plain" if request.plain else how
        prompt = make_prompt(request.question, (), how, briefly=False)
        limits.check_tokens(check_prompt(model, prompt, request.max_tokens), model.name)
        (text,) = generate(model, [prompt], request.max_tokens, limits.until(), again=request.again)
        found = match(text.text, request.golds, request.question) if request.golds else None
        return ModelText(**model_fields(model), how=how, generated=text, match=found)

    def rows(self, asked: Asked[AskRequest, None], one: ModelText) -> Sequence[TextRow]:
        """Return one row."""
        verdict = one.match.verdict if one.match else None
        return (TextRow(one.name, one.generated.text.strip(), one.log_prob, verdict),)

    def printed(self, answer: Answer[AskRequest, None, ModelText]) -> Iterator[Table | str]:
        """Yield a table with a row for each model, and the models' notes."""
        request = answer.asked.request
        rows = [row for one in answer.models for row in self.rows(answer.asked, one)]
        shown = "model text log_prob" + " verdict" * bool(request.golds)
        yield make_table(TextRow, rows, shown, title=request.question)
        for one in answer.models:
            for note in one.notes():
                yield f"{one.name}: {note}"

    def title(self, request: AskRequest) -> str:
        """Return the question."""
        return request.question

    def head(self, answer: Answer[AskRequest, None, ModelText]) -> dict[str, Any]:
        """Return the question."""
        return {"question": answer.asked.request.question}

    def json(self, asked: Asked[AskRequest, None], one: ModelText) -> dict[str, Any]:
        """Return one model's text, its tokens, and how it ended."""
        return {
            "name": one.name,
            "text": one.generated.text,
            "tokens": list(one.generated.tokens),
            "log_prob": plain(one.log_prob),
            "verdict": one.match.verdict if one.match else None,
            "ending": one.generated.ending,
            "answered": one.generated.made or None,
            "stored": one.generated.is_stored,
        }

    def first_answers(self, asked: Asked[AskRequest, None], one: ModelText, n: int) -> FirstAnswers:
        """Return the text, without a rank."""
        text = one.generated.text.strip() or "(an empty text)"
        return (FirstAnswer(None, text, None if one.prob is None else one.log_prob),)

    def gold(self, asked: Asked[AskRequest, None], one: ModelText) -> str:
        """Return the right answers and the verdict."""
        golds = " or ".join(asked.request.golds)
        return f"Right answer {golds}: {one.match.verdict}" if one.match else ""

    def settings(self, asked: Asked[AskRequest, None], one: ModelText) -> dict[str, str]:
        """Return that nothing is ranked."""
        return {
            "ranked": "nothing: the text is generated",
            "log-probabilities over": "each token's whole vocabulary",
        }


ask = QueryFunction(
    AskRequest,
    QuestionKind(),
    """Ask a question in free text, and compare the models' answers.

    Instruct models get the question in their chat template, others as `Question: ... Answer:`. The
    answer is generated greedily and ends at the first line break.

    Returns:
        A DataFrame with a row for each model: text, log-probability (natural log, of all tokens
        together) and, with right answers, the verdict `match`, `no match` or `no answer`.

    Raises:
        UserError: If a model can't generate text, or the question doesn't fit its window.
    """,
)
