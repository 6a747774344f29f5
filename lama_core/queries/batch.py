"""Fill the blank of each sentence of a file with each model's most probable word.

The lines and their answers are in `batch_lines`, a chat server's answers in `batch_texts`.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from lama_core.errors import UserError
from lama_core.files import read_file as read_bytes
from lama_core.files import user_path
from lama_core.models.protocols import Context
from lama_core.queries.batch_lines import (
    MAX_BYTES,
    BatchForm,
    BatchLine,
    BatchModelAnswers,
    fill_lines,
    read_file,
)
from lama_core.queries.batch_texts import generate_lines
from lama_core.queries.blank_answers import candidates_json, marked_answer
from lama_core.queries.kind import Answer, Asked, Calls, QueryFunction, QueryKind
from lama_core.requests import argument, option
from lama_core.scoring import shared_fields
from lama_core.scoring.limits import Limits
from lama_core.tables import Column, Table, decimals


@dataclass(frozen=True, kw_only=True)
class ManyRequest(shared_fields.ClozeSettings, command="batch", python="batch"):
    """The fields of `batch`: a file of sentences with a blank, and options."""

    file: Annotated[
        str,
        argument(
            "A table (CSV, JSON, Parquet, a spreadsheet, ...) with columns text and gold, or one "
            "text per line with the gold (right) answer after a tab or |. - reads standard input. "
            "Chat servers also answer questions, which have no blank.",
            takes_dash=True,
        ),
    ] = field(kw_only=False)
    format: Annotated[
        BatchForm, option("Form of the file. auto: recognised by its content, not by its name.")
    ] = "auto"
    encoding: Annotated[
        str, option("Encoding of the file, such as cp1252, if it isn't UTF-8 or UTF-16.")
    ] = ""
    renormalise: shared_fields.Renormalise = False

    def check(self) -> None:
        """Raise UserError if the file is a list of sentences, or another field is invalid."""
        if isinstance(self.file, list | tuple):
            raise UserError(
                "lama.batch takes a file or a table, not a list. For a list of sentences with a "
                "blank, call lama.batch(pandas.Series(sentences)); for whole sentences, "
                "lama.sentences(sentences)."
            )
        super().check()


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One model's first answer to a line; None where unknown."""

    line: Annotated[int, Column("Number of the line in the file, from 1.")]
    text: Annotated[str, Column("The sentence.")]
    word: Annotated[str | None, Column("The first answer, or a chat server's text.")]
    begins: Annotated[str | None, Column("The longer word that it begins, if any.")]
    log_prob: Annotated[float | None, Column("Its natural log-probability.", format=decimals(2))]
    prob: Annotated[float | None, Column("Its probability, or its share of `prob_of`.")]
    gold: Annotated[str | None, Column("The gold answer.")]
    gold_rank: Annotated[
        int | None,
        Column("The gold answer's rank; None if it isn't a candidate, or wasn't proposed."),
    ]
    right: Annotated[bool | None, Column("Whether the gold answer is first, or in the text.")]
    fault: Annotated[str, Column("Why there is no answer; empty if there is one.")]
    prob_of: Annotated[
        str | None, Column("The words over which probabilities sum to 1.", in_frame=False)
    ]
    gold_is_candidate: Annotated[
        bool | None, Column("Whether the gold answer is a candidate.", in_frame=False)
    ]
    context: Annotated[Context | None, Column("The context that the model saw.", in_frame=False)]
    not_ranked: Annotated[
        str, Column("A likelier token that isn't a candidate, and why; empty if there is none.")
    ]

    @property
    def shown(self) -> str:
        """The answer with its marks, or why there is none."""
        if self.word is None:
            return self.fault
        return marked_answer(self.word, self.begins, self.right, self.not_ranked)

    @property
    def shown_rank(self) -> str:
        """The gold answer's rank, or that it isn't a candidate."""
        if self.gold_is_candidate is False:
            return "not a candidate"
        return "" if self.gold_rank is None else f"{self.gold_rank:,}"


AskedLines = Asked[ManyRequest, tuple[BatchLine, ...]]
BatchAnswer = Answer[ManyRequest, tuple[BatchLine, ...], BatchModelAnswers]
# The columns of each model in the printed table.
OF_MODEL = (
    Column("The first answer."),
    Column("Its natural log-probability.", "log-prob", decimals(2)),
    Column("The gold answer's rank.", "rank of the gold answer"),
)


class ManyKind(QueryKind[ManyRequest, tuple[BatchLine, ...], BatchModelAnswers]):
    """A file of sentences with one blank each."""

    name = "batch"
    example = "batch sentences.csv --model minilm-mlm --model smollm2-135m"
    row = BatchRow

    def prepare(self, request: ManyRequest, limits: Limits) -> tuple[BatchLine, ...]:
        """Return the lines of the file. Raises UserError as `read_file`."""
        if request.file == "-":
            data, name = sys.stdin.buffer.read(MAX_BYTES + 1), "Standard input"
        else:
            path = user_path(request.file)
            data, name = read_bytes(path, MAX_BYTES), path.name
        form, encoding = request.format, request.encoding
        return read_file(data, name, form=form, encoding=encoding, models=request.models)

    def answer(self, model: Any, asked: AskedLines, calls: Calls) -> BatchModelAnswers:
        """Return one model's answers; lines after the time limit have none."""
        request = asked.request
        if hasattr(model, "generate"):
            return generate_lines(model, asked.shared, calls.on_progress)
        return fill_lines(
            model,
            asked.shared,
            asked.candidates,
            context=request.context,
            renormalise=request.renormalise,
            n_rescored=request.n_rescored,
            limits=calls.limits,
            on_progress=calls.on_progress,
        )

    def rows(self, asked: AskedLines, one: BatchModelAnswers) -> Sequence[BatchRow]:
        """Return a row for each line."""
        rows = []
        for line, answer in zip(asked.shared, one.answers, strict=True):
            blank = answer.blank
            gold = blank.gold if blank else None
            rows.append(
                BatchRow(
                    line=line.number,
                    text=line.text,
                    word=answer.word,
                    begins=answer.begins,
                    log_prob=answer.log_prob,
                    prob=answer.prob,
                    gold=line.gold,
                    gold_rank=gold.rank if gold and gold.proposed and gold.in_candidates else None,
                    right=answer.is_right,
                    fault=answer.fault,
                    prob_of=blank.shown_over() if blank else None,
                    gold_is_candidate=gold.in_candidates if gold else None,
                    context=answer.context,
                    not_ranked=answer.outside,
                )
            )
        return rows

    def printed(self, answer: BatchAnswer) -> Iterator[Table | str]:
        """Yield a table with the answers of all models to each line, and each model's P@1."""
        columns = [
            Column("The line's number.", "line"),
            Column("The sentence.", "text"),
            Column("The gold answer.", "gold answer"),
        ]
        cells: list[list[Any]] = [
            [line.number, line.text, line.gold] for line in answer.asked.shared
        ]
        for one in answer.models:
            first, *others = OF_MODEL
            columns += [replace(first, label=one.name), *others]
            for shown, row in zip(cells, self.rows(answer.asked, one), strict=True):
                shown += [row.shown, row.log_prob, row.shown_rank]
        yield Table(tuple(columns), tuple(map(tuple, cells)))
        yield ""
        for one in answer.models:
            yield f"{one.name}: {one.summary()}{one.computed}"

    def title(self, request: ManyRequest) -> str:
        """Return the file."""
        return request.file

    def head(self, answer: BatchAnswer) -> dict[str, Any]:
        """Return the candidates."""
        # A chat server ranks no words.
        sizes = {one.name: one.n_candidates for one in answer.models if one.n_candidates}
        return {"candidates": candidates_json(answer.asked.candidates, sizes)}

    def json(self, asked: AskedLines, one: BatchModelAnswers) -> dict[str, Any]:
        """Return one model's P@1 and answers."""
        return {
            **one.model_json(),
            "n": one.n_counted,
            "n_gold_outside": one.n_outside,
            "p_at_1": one.precision_at_1,
            "answers": [
                {"line": line.number, "text": line.text, **answer.to_json()}
                for line, answer in zip(asked.shared, one.answers, strict=True)
            ],
        }


batch = QueryFunction(
    ManyRequest,
    ManyKind(),
    """Fill the blank of each sentence of a file; chat servers also answer questions.

    Returns:
        A DataFrame with a row for each model and line: its first prediction, and the rank of the
        gold answer; for a chat server its text, and whether it contains the gold answer.

    Raises:
        UserError: If the file can't be read or has no sentences, or a model is unknown.
    """,
)
