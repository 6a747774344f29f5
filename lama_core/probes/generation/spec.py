"""Runs of generated answers: each fact's question is asked once, and the text is matched.

The rows are those of every run (`runs.facts_table`), with the text as the first answer and

    answer, answer_tokens    the text, and how many tokens it has
    popularity               of the subject; only if the data have it
    exact_match, contains, token_f1, no_answer   see `matching`

No candidates are ranked: `rank_raw` is 1 for a text that matches the fact's object,
`rank_filtered` is 1 for a text that matches any right object of the same question, and both are
`UNRANKED` for other texts.

Departure: Several right answers to one question
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from lama_core.datasets import Dataset
from lama_core.errors import ControlTokenError, TextRefusedError, UserError, WindowError
from lama_core.models.generators import check_prompt, generate, template_digest
from lama_core.models.protocols import Chat, GeneratedText
from lama_core.probes.generation.request import GenerateRequest
from lama_core.progress import Unit
from lama_core.queries.answer_matching import Match, match
from lama_core.queries.question_prompts import (
    MAX_TOKENS,
    NO_QUESTION,
    PromptFormat,
    draw_examples,
    make_prompt,
    question_of,
    shuffle_facts,
)
from lama_core.runs.facts_table import UNRANKED, make_facts_table
from lama_core.runs.info import GENERATION, RelationInfo
from lama_core.runs.rows import count_columns, fact_columns
from lama_core.runs.spec import Finished, RunSpec, ScoringJob
from lama_core.scoring.executors import Part, Tick
from lama_core.scoring.preparation import NoFactCounts, named_reasons
from lama_core.scoring.queries import (
    DUPLICATE,
    JUDGED_NO,
    NO_FIT,
    Knowledge,
    gather_knowledge,
)
from lama_core.scoring.refusals import REFUSED, score_accepted
from lama_core.types import Fact

LONGEST_MARK = 60  # characters that a note shows
PART = 64  # questions that a model answers together
HAS_CONTROL = "question or example contains a control token of the model"
ANSWERS = pa.schema(
    [
        ("text", pa.string()),
        ("log_prob", pa.float32()),
        ("n_tokens", pa.int16()),
        (REFUSED, pa.string()),
        ("ending", pa.string()),
        ("mark", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class GenerationRow:
    """A row of a run. excluded: Why it is excluded; None for a row with a prompt."""

    fact: Fact
    question: str
    prompt: str | Chat | None
    excluded: str | None


@dataclass(frozen=True)
class GenerationWork:
    """The questions of a run in parts. prompts: The prompts of the rows that aren't excluded."""

    prompts: tuple[str | Chat, ...]
    max_tokens: int
    unit: Unit = field(default="questions", init=False)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts, in order; each generates PART texts."""
        n = len(self.prompts)
        return tuple(Part(f"{first:07}", min(PART, n - first)) for first in range(0, n, PART))

    def score(self, scorer: Any, number: int, tick: Tick) -> pa.Table:
        """Return the answers of one part, in the columns of `ANSWERS`."""

        def answer(some: Sequence[str | Chat]) -> list[GeneratedText]:
            return generate(scorer, some, self.max_tokens)

        rows: list[dict[str, Any]] = []
        for asked, found in score_accepted(
            answer, self.prompts[number * PART : (number + 1) * PART]
        ):
            if isinstance(found, TextRefusedError):
                rows.append({REFUSED: found.excluded})
            else:
                rows += [
                    {
                        "text": one.text,
                        "log_prob": float(one.log_probs.sum(dtype=np.float64)),
                        "n_tokens": len(one.tokens),
                        "ending": one.ending,
                        "mark": one.mark,
                    }
                    for one in found
                ]
            tick(len(asked))
        return pa.Table.from_pylist(rows, schema=ANSWERS)


@dataclass(frozen=True, kw_only=True)
class GenerationSpec(RunSpec, kind=GENERATION, version=3):
    """A run of generated answers.

    Attributes:
        how: The prompt format, see `make_prompt`.
        questions_digest: Digest of `questions.tsv`.
        aliases_digest: Digest of the objects' other names, because not every dataset's digest
            includes them; empty if there are none.
        template_digest: Digest of the model's chat template, which its folder's digest doesn't
            include; empty if no template is used, or the server has it.
        max_tokens: Maximum tokens of an answer.
    """

    request: GenerateRequest
    how: PromptFormat = "chat"
    questions_digest: str = ""
    aliases_digest: str = ""
    template_digest: str = ""
    max_tokens: int = MAX_TOKENS

    def options(self) -> dict[str, Any]:
        """Return questions, examples, format, maximum tokens and, if any, aliases and template."""
        asked = self.request
        digests = (("aliases", self.aliases_digest), ("template", self.template_digest))
        return {name: digest for name, digest in digests if digest} | {
            "questions": self.questions_digest,
            "examples": [asked.shots, asked.seed if asked.shots else 0],
            "format": self.how,
            "tokens": self.max_tokens,
        }

    def unchanged(self, scorer: Any) -> Any:
        """Return the scorer, or raise UserError if its weights or chat template have changed."""
        if self.template_digest and template_digest(scorer) != self.template_digest:
            raise self.changed()
        return super().unchanged(scorer)

    def prompt_name(self) -> str:
        """Return a name such as `questions, 3-shot`, with the prompt format unless it is `chat`."""
        how = "" if self.how == "chat" else f", {self.how}"
        return f"questions, {self.request.shots}-shot{how}"

    def prepare(self, scorer: Any, on_note: Callable[[str], None]) -> ScoringJob:
        """Return the questions as prompts, in parts."""
        for note in scorer.notes:
            on_note(f"{scorer.name}: {note}")
        dataset: Dataset = self.load_data()
        knowledge = gather_knowledge(dataset, self.relations)
        rows = [row for name in self.relations for row in self._rows_of(dataset, name, scorer)]
        prompts = tuple(row.prompt for row in rows if row.prompt is not None)
        model_name = scorer.name
        _check_one_counts(rows, scorer.name)
        if hasattr(scorer, "n_waiting"):
            on_note(self._expected_requests(scorer, prompts))

        def finish(tables: Sequence[pa.Table]) -> Finished:
            given = iter(pa.concat_tables(tables, promote_options="default").to_pylist())
            found = [next(given) if row.excluded is None else None for row in rows]
            answered = [
                replace(row, excluded=answer[REFUSED]) if answer and answer.get(REFUSED) else row
                for row, answer in zip(rows, found, strict=True)
            ]
            _check_one_counts(answered, model_name)
            answers = [answer for answer in found if answer and not answer.get(REFUSED)]
            for note in _notes(answers, model_name, self.max_tokens):
                on_note(note)
            table = make_rows(answered, answers, dataset, knowledge)
            counts = Counter((row.fact.relation, row.excluded is None) for row in answered)
            return Finished(
                table,
                tuple(
                    RelationInfo.of(
                        dataset.relation(name), (), counts[name, True], counts[name, False]
                    )
                    for name in self.relations
                ),
            )

        return ScoringJob(GenerationWork(prompts, self.max_tokens), finish)

    def _expected_requests(self, server: Any, prompts: Sequence[str | Chat]) -> str:
        """Return a note on the requests, tokens and price of a chat server.

        Raises:
            UserError: If there are more than `max_requests` requests.
        """
        n = server.n_waiting(prompts, self.max_tokens)
        most = self.request.max_requests
        if n > most:
            raise UserError(
                f"The run needs {n:,} requests, but --max-requests is {most:,}: raise "
                "--max-requests, or ask about fewer facts with --limit."
            )
        length = sum(len(one.text) for chat in prompts for one in getattr(chat, "messages", ()))
        n_in = round(length / 4 * n / len(prompts))  # 4 characters of English text a token
        n_out = n * self.max_tokens
        said = (
            f"{server.name}: {n:,} requests ({len(prompts) - n:,} answers are stored already), "
            f"about {n_in:,} input tokens and at most {n_out:,} output tokens without reasoning"
        )
        price_in, price_out = self.request.price_in, self.request.price_out
        if price_in is not None and price_out is not None:
            cost = (n_in * price_in + n_out * price_out) / 1e6
            said += f"; at most about {cost:.2f} at the given prices"
        return f"{said}."

    def _rows_of(self, dataset: Dataset, name: str, scorer: Any) -> list[GenerationRow]:
        """Return a row for each of a relation's first `limit` facts, with prompt or exclusion."""
        relation = dataset.relation(name)
        shuffled = shuffle_facts(dataset, relation, self.request.seed)
        seen: set[tuple[str, str]] = set()
        rows = []
        for fact in dataset.facts_of(name)[: self.limit]:
            question = question_of(relation, fact)
            excluded, prompt = self._excluded(fact, question, seen), None
            seen.add((question, fact.object))
            if excluded is None:
                examples = [
                    (question_of(relation, one), one.object)
                    for one in draw_examples(shuffled, fact, self.request.shots)
                ]
                prompt = make_prompt(question, examples, self.how)
                try:
                    check_prompt(scorer, prompt, self.max_tokens)
                except ControlTokenError:
                    excluded, prompt = HAS_CONTROL, None
                except WindowError:
                    excluded, prompt = NO_FIT, None
            rows.append(GenerationRow(fact, question, prompt, excluded))
        return rows

    @staticmethod
    def _excluded(fact: Fact, question: str, seen: set[tuple[str, str]]) -> str | None:
        """Return why a fact is excluded for every model; None if it isn't."""
        if not question:
            return NO_QUESTION
        yes, no = fact.judgments or (1, 0)
        if no > yes:
            return JUDGED_NO
        return DUPLICATE if (question, fact.object) in seen else None


def make_rows(
    rows: Sequence[GenerationRow],
    answers: Sequence[dict[str, Any]],
    dataset: Dataset,
    knowledge: Knowledge,
) -> pa.Table:
    """Return one row for each question, in order.

    Args:
        rows: All questions.
        answers: For each row that isn't excluded, in order, the columns of `ANSWERS`.
        dataset: The dataset of the facts.
        knowledge: The right objects of each subject.
    """
    given = iter(answers)
    found = [next(given) if row.excluded is None else None for row in rows]
    facts = [row.fact for row in rows]
    valid = [knowledge.valid(fact) for fact in facts]
    own = [
        match(answer["text"], (fact.object, *fact.aliases), row.question) if answer else None
        for row, fact, answer in zip(rows, facts, found, strict=True)
    ]
    of_any = [
        match(answer["text"], (*right, *fact.aliases), row.question) if answer else None
        for row, fact, right, answer in zip(rows, facts, valid, found, strict=True)
    ]
    texts = [answer["text"].strip() or None if answer else None for answer in found]
    log_probs = [answer["log_prob"] if answer else None for answer in found]
    columns: dict[str, Sequence[Any] | None] = {
        **fact_columns(facts, [dataset.relation(fact.relation) for fact in facts]),
        "prompt": [0] * len(rows),
        "query": [row.question for row in rows],
        "excluded": [row.excluded for row in rows],
        "rank_raw": [_rank(one) for one in own],
        "rank_filtered": [_rank(one) for one in of_any],
        "log_prob": [
            value if one is not None and one.right else None
            for one, value in zip(own, log_probs, strict=True)
        ],
        "first": texts,
        "first_log_prob": log_probs,
        "first_filtered": texts,
        "first_filtered_log_prob": log_probs,
        "first_is_valid": [
            None if mine is None or other is None else other.right and not mine.right
            for mine, other in zip(own, of_any, strict=True)
        ],
        **count_columns(facts, knowledge),
    }
    table = make_facts_table(columns, len(rows))
    more: dict[str, pa.Array] = {
        "answer": pa.array([one["text"] if one else None for one in found], pa.string()),
        "answer_tokens": pa.array([one["n_tokens"] if one else None for one in found], pa.int16()),
        "exact_match": pa.array([one and one.exact_match for one in of_any], pa.bool_()),
        "contains": pa.array([one and one.contains for one in of_any], pa.bool_()),
        "token_f1": pa.array([one and one.token_f1 for one in of_any], pa.float32()),
        "no_answer": pa.array([one and one.verdict == "no answer" for one in of_any], pa.bool_()),
    }
    if any(fact.popularity is not None for fact in facts):
        more["popularity"] = pa.array([fact.popularity for fact in facts], pa.float64())
    for name, column in more.items():
        table = table.append_column(name, column)
    return table


def _notes(answers: Sequence[dict[str, Any]], model_name: str, max_tokens: int) -> Iterator[str]:
    """Yield notes on answers that are mostly empty or cut, or that begin with the same mark."""
    n = len(answers)
    endings = Counter(answer.get("ending") for answer in answers)
    n_cut, n_reasoning = endings["cut"], endings["in reasoning"]
    n_empty = sum(
        answer.get("ending") in (None, "whole") and not answer["text"].strip() for answer in answers
    )
    if 2 * (n_cut + n_reasoning + n_empty) > n:
        yield (
            f"{model_name}: of {n:,} answers {n_cut:,} are cut at {max_tokens} tokens, "
            f"{n_reasoning:,} end within the model's reasoning, and {n_empty:,} are empty for "
            "another reason."
        )
    marks = Counter(mark for answer in answers if (mark := answer.get("mark")))
    for mark, n_marked in marks.most_common(1):
        if n_marked > 1:
            yield (
                f"{model_name}: {n_marked:,} of {n:,} texts begin with {mark[:LONGEST_MARK]!r}, "
                "which isn't part of the answer."
            )
    for text, n_same in Counter(answer["text"].strip() for answer in answers).most_common(1):
        if text and n >= 10 and 2 * n_same > n:
            yield (
                f"{model_name}: {n_same:,} of {n:,} answers are {text[:LONGEST_MARK]!r}. If this "
                "isn't an answer, the model writes something before it."
            )


def _check_one_counts(rows: Sequence[GenerationRow], model_name: str) -> None:
    """Raise NoFactCounts if all rows are excluded."""
    if all(row.excluded for row in rows):
        reasons = named_reasons(row.excluded for row in rows)
        raise NoFactCounts(
            f"All facts are excluded for {model_name} ({reasons}): choose other relations, or "
            "another model."
        )


def _rank(found: Match | None) -> int | None:
    return None if found is None else 1 if found.right else UNRANKED
