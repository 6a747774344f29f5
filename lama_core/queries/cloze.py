"""Fill the blanks of a text with each model's most probable words.

The computation is in `blank_answers`.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from lama_core.datasets.passages import load_corpus
from lama_core.models.protocols import BlankFiller
from lama_core.queries.blank_answers import (
    Golds,
    ModelAnswer,
    TextWithBlank,
    answer_json,
    candidates_json,
    describe_gold,
    describe_ranked,
    gold_answers,
    gold_columns,
    query_model,
    tables_of_blank,
)
from lama_core.queries.kind import Answer, Asked, Calls, QueryFunction, QueryKind
from lama_core.rounding import fixed
from lama_core.scoring import shared_fields
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.limits import Limits
from lama_core.scoring.retrieval import FoundPassage, OpenBook, open_index, with_passage
from lama_core.scoring.shared_fields import check_segments
from lama_core.tables import Column, Table
from lama_core.types import Query


@dataclass(frozen=True, kw_only=True)
class ClozeRequest(shared_fields.ClozeSettings, command="cloze", python="fill"):
    """The fields of `cloze`: a text with blanks, and options."""

    text: TextWithBlank = field(kw_only=False)
    top_k: shared_fields.TopK = 5
    gold: Golds = None
    renormalise: shared_fields.Renormalise = False
    open_book: shared_fields.OpenBook = None
    segments: shared_fields.Segments = False


@dataclass(frozen=True, slots=True)
class ClozeText:
    """A parsed text, and its open-book passage, if any."""

    query: Query
    passage: FoundPassage | None


@dataclass(frozen=True, slots=True)
class ClozeRow:
    """One answer of a model at one blank."""

    context: Annotated[str, Column("What the model sees: left, or both sides of the blank.")]
    blank: Annotated[int, Column("Number of the blank, from 1.")]
    rank: Annotated[int | None, Column("Rank among the candidates; None if it isn't one.")]
    word: Annotated[str, Column("The word.")]
    begins: Annotated[str | None, Column("The longer word that it starts, if any.")]
    prob: Annotated[float, Column("Its probability, or its share of `prob_of`.")]
    prob_of: Annotated[str, Column("The words over which probabilities sum to one.")]
    log_prob: Annotated[float, Column("Its natural log-probability.")]
    gold: Annotated[str | None, Column("The gold answer.")]
    gold_rank: Annotated[int | None, Column("Rank of the gold answer.")]
    gold_log_prob: Annotated[float | None, Column("Log-probability of the gold answer.")]
    gold_proposed: Annotated[
        bool | None,
        Column("Whether the gold answer is ranked; else gold_rank is the rank that it would have."),
    ]
    not_ranked: Annotated[str, Column("Why the first answer isn't a candidate; else empty.")]


ClozeAsked = Asked[ClozeRequest, ClozeText]


class ClozeKind(QueryKind[ClozeRequest, ClozeText, ModelAnswer]):
    """A text with blanks, which each model fills."""

    name = "cloze"
    example = 'cloze "Dante was born in ___." --model minilm-mlm --model smollm2-135m'
    row = ClozeRow
    answer_field = "word"

    def prepare(self, request: ClozeRequest, limits: Limits) -> ClozeText:
        """Return the parsed text and its open-book passage, which is reported.

        Raises:
            UserError: If the text has no blank, too many right answers or too many words for the
                retrieval.
        """
        query = parse_query(request.text)
        gold_answers(request.gold, query.n_blanks)
        if request.open_book is None:
            return ClozeText(query, None)
        limits.check_tokens(sum(len(part.split()) for part in query.parts), "retrieval")
        corpus = load_corpus(request.open_book)
        open_index(corpus, request.on_progress)
        found = OpenBook(corpus).look_up(query)
        request.on_note(
            f"Open-book passage of {request.open_book}, score {fixed(found.score, 2)}: "
            f"{found.passage}"
            if found
            else f"The query has no open-book passage: no passage of {request.open_book} shares a "
            "word with it."
        )
        return ClozeText(query, found)

    def answer(self, model: BlankFiller, asked: ClozeAsked, calls: Calls) -> ModelAnswer:
        """Return one model's answers at each blank; preliminary ones for `calls.on_first`."""
        request = asked.request
        check_segments(request.segments, request.open_book, {model.name: model.kind})
        return query_model(
            model,
            with_passage(asked.shared.query, asked.shared.passage, segments=request.segments),
            asked.candidates,
            top_k=request.top_k,
            gold=request.gold,
            context=request.context,
            renormalise=request.renormalise,
            n_rescored=request.n_rescored,
            limits=calls.limits,
            on_first=calls.on_first,
        )

    def rows(self, asked: ClozeAsked, one: ModelAnswer) -> list[ClozeRow]:
        """Return a row for each blank and answer."""
        return [
            ClozeRow(
                one.context,
                number,
                item.rank,
                item.token,
                item.begins,
                item.prob,
                blank.prob_of(item),
                item.log_prob,
                **gold_columns(blank.gold),
                not_ranked="" if item.rank else blank.why_not_ranked(),
            )
            for number, blank in enumerate(one.blanks, start=1)
            for item in blank.rows
        ]

    def constants(self, asked: ClozeAsked, one: ModelAnswer) -> dict[str, Any]:
        """Return the text, the candidates' name and the open-book passage."""
        passage = asked.shared.passage
        return {
            "text": asked.shared.query.text(),
            "candidates": asked.candidates.name,
            **({"passage": passage.passage} if passage else {}),
        }

    def head(self, answer: Answer[ClozeRequest, ClozeText, ModelAnswer]) -> dict[str, Any]:
        """Return the text, the open-book passage and the candidates."""
        shared = answer.asked.shared
        sizes = {model.name: model.n_candidates for model in answer.models}
        return {
            "text": shared.query.text(),
            **({"passage": asdict(shared.passage)} if shared.passage else {}),
            "candidates": candidates_json(answer.asked.candidates, sizes),
        }

    def json(self, asked: ClozeAsked, one: ModelAnswer) -> dict[str, Any]:
        """Return one model's answers at each blank."""
        return answer_json(one)

    def printed(
        self, answer: Answer[ClozeRequest, ClozeText, ModelAnswer]
    ) -> Iterator[Table | str]:
        """Yield the tables of each blank, model by model."""
        for number in range(len(answer.models[0].blanks)):
            for model in answer.models:
                blank = model.blanks[number]
                which = f", blank {number + 1}" if len(model.blanks) > 1 else ""
                candidates = answer.asked.candidates
                settings = f"context {model.context}, {candidates.described(model.n_candidates)}"
                settings += model.computed
                if number and blank.asked != answer.models[0].blanks[0].asked:
                    which += f", queried as {blank.asked!r}"
                yield from tables_of_blank(blank, f"{model.name}{which}: {settings}")
                yield ""

    def title(self, request: ClozeRequest) -> str:
        """Return the text."""
        return request.text

    def settings(self, asked: ClozeAsked, one: ModelAnswer) -> dict[str, str]:
        """Return the candidates, what their probabilities are over, the context and the book."""
        return describe_ranked(one, asked.candidates) | {"open book": asked.request.open_book or ""}

    def gold(self, asked: ClozeAsked, one: ModelAnswer) -> str:
        """Return the right answer at the first blank and its rank."""
        return describe_gold(one)


fill = QueryFunction(
    ClozeRequest,
    ClozeKind(),
    """Fill the blanks of a text with each model's most probable words.

    Returns:
        A DataFrame with a row for each model, blank and word: rank, prob, log_prob, and the gold
        answer's rank if `gold` is given.

    Raises:
        UserError: If the text has no blank, or a model or candidate list is unknown.

    >>> import lama_core as lama
    >>> found = lama.fill("The capital of Norway is ___.", top_k=3, gold="Oslo")
    >>> found[["rank", "word", "prob", "gold_rank"]].round(2)
       rank       word  prob  gold_rank
    0     1       oslo  0.97          1
    1     2  trondheim  0.01          1
    2     3     bergen  0.01          1
    """,
)
