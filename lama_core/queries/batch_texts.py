"""Batches for chat servers, which answer in free text.

A chat server completes a sentence with a blank, and answers a line without a blank as a question.
For when the generated text is right see `matching`.
"""

import math
from collections.abc import Sequence
from typing import Any

from lama_core.errors import TextRefusedError
from lama_core.models.generators import generate
from lama_core.models.protocols import GeneratedText
from lama_core.progress import OnProgress, Progress, ignore
from lama_core.queries.answer_matching import is_right
from lama_core.queries.batch_lines import BATCH_SIZE, BatchLine, BatchModelAnswers, LineAnswer
from lama_core.queries.question_prompts import MAX_TOKENS, completion, make_prompt
from lama_core.scoring.model_info import model_fields
from lama_core.scoring.refusals import score_accepted


def generate_lines(
    model: Any, lines: Sequence[BatchLine], on_progress: OnProgress = ignore
) -> BatchModelAnswers:
    """Return a chat server's answer to each line; for one without an answer, the reason."""
    answers = [LineAnswer(fault=line.fault) for line in lines]
    rows = [row for row, line in enumerate(lines) if line.is_question or not line.fault]

    def generate_rows(some: Sequence[int]) -> list[GeneratedText]:
        return generate(
            model, [make_prompt(_question(lines[row]), (), "chat") for row in some], MAX_TOKENS
        )

    for first in range(0, len(rows), BATCH_SIZE):
        on_progress(Progress(model.name, first, len(lines), "sentences"))
        some = rows[first : first + BATCH_SIZE]
        for asked, texts in score_accepted(generate_rows, some):
            if isinstance(texts, TextRefusedError):
                answers[asked[0]] = LineAnswer(fault=str(texts))
                continue
            for row, text in zip(asked, texts, strict=True):
                gold = lines[row].gold
                right = None if gold is None else is_right(text.text, gold, _question(lines[row]))
                value = float(text.log_probs.sum())
                log_prob, prob = (None, None) if math.isnan(value) else (value, math.exp(value))
                answers[row] = LineAnswer(
                    text.text.strip(), None, log_prob, prob, right, generated=text
                )
    return BatchModelAnswers(n_candidates=0, answers=tuple(answers), **model_fields(model))


def _question(line: BatchLine) -> str:
    return line.text if line.is_question else completion(line.query())
