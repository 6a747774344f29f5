"""A kind of query: how much a word at the blank surprises each model, in bits."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from lama_core.models.protocols import KINDS
from lama_core.queries.kind import Asked, Calls, QueryFunction, QueryKind
from lama_core.requests import argument, option
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.limits import Limits
from lama_core.scoring.model_info import AboutModel, model_fields
from lama_core.scoring.shared_fields import ModelSettings
from lama_core.tables import Column, Table, decimals, make_table
from lama_core.types import Query


@dataclass(frozen=True, kw_only=True)
class SurpriseRequest(ModelSettings, command="example-surprise", python="example_surprise"):
    """The fields of `example-surprise`."""

    text: Annotated[str, argument("A sentence with one blank.")] = field(kw_only=False)
    words: Annotated[Sequence[str], option("A word; repeat for several.", name="--word")] = (
        "Oslo",
    )


@dataclass(frozen=True, slots=True)
class Surprise:
    """A row: a word and its surprise. None if the model can't write the word.

    With the columns `rank` and `log_prob`, and `answer_field`, answers can be pinned.
    """

    rank: Annotated[int, Column("Its place among the words, 1 is the least surprising.")]
    word: Annotated[str, Column("The word.")]
    log_prob: Annotated[float | None, Column("Natural logarithm of its probability.")]
    bits: Annotated[
        float | None, Column("Negative binary logarithm of its probability.", format=decimals(2))
    ]


@dataclass(frozen=True, slots=True)
class ModelSurprise(AboutModel):
    """One model's answer."""

    words: tuple[Surprise, ...]


class SurpriseKind(QueryKind[SurpriseRequest, Query, ModelSurprise]):
    """The surprise of words at a blank."""

    name = "surprise"
    example = 'example-surprise "The capital of Norway is ___." --word Oslo --word Bergen'
    row = Surprise
    items = "words"
    answer_field = "word"

    def prepare(self, request: SurpriseRequest, limits: Limits) -> Query:
        """Return the query. Raises UserError if the text has no blank."""
        return parse_query(request.text)

    def answer(
        self, model: Any, asked: Asked[SurpriseRequest, Query], calls: Calls
    ) -> ModelSurprise:
        """Return one model's answer, from the model's first context, such as `left`."""
        context = KINDS[model.kind].contexts[0]
        found = [
            (model.word_log_prob(asked.shared, 0, word, context).log_prob, word)
            for word in asked.request.words
        ]
        rows = []
        for rank, (value, word) in enumerate(sorted(found, key=lambda one: -one[0]), start=1):
            log_prob = value if math.isfinite(value) else None  # -inf: the model can't write it
            bits = None if log_prob is None else -log_prob / math.log(2)
            rows.append(Surprise(rank, word, log_prob, bits))
        return ModelSurprise(words=tuple(rows), **model_fields(model))

    def rows(self, asked: Asked[SurpriseRequest, Query], one: ModelSurprise) -> Sequence[Surprise]:
        """Return the words, the least surprising first."""
        return one.words

    def tables(
        self, asked: Asked[SurpriseRequest, Query], one: ModelSurprise
    ) -> Iterator[Table | str]:
        """Yield the table of one model."""
        yield make_table(Surprise, one.words, "word bits", title=one.name + one.computed)

    def title(self, request: SurpriseRequest) -> str:
        """Return the sentence."""
        return request.text


example_surprise = QueryFunction(
    SurpriseRequest,
    SurpriseKind(),
    """Return how much words at a blank surprise each model, in bits.

    Returns:
        A DataFrame with a row for each model and word.

    Raises:
        UserError: If the text has no blank, or a model is unknown.
    """,
)
