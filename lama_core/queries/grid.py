"""Compare the words at the blank of several similar sentences.

Sentences are given one by one, or as a template with alternatives in braces:

    The {nurse|engineer} said that ___ was tired.

Each sentence's first words are collected; the grid has a row for each of these words and sentence.
Words can be grouped by meaning: Ward's clustering of the model's input embeddings, normalised to
length 1 (scikit-learn's AgglomerativeClustering).
Source: Coscia and Endert 2023 (KnowledgeVIS), who compare fill-in-the-blank sentences so.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, product
from typing import Annotated, Any

from lama_core.errors import TimeOverError, UserError
from lama_core.grouping import grouped
from lama_core.models.protocols import BlankFiller, WordRescorer
from lama_core.progress import Progress
from lama_core.queries.analogy import WordEmbedder
from lama_core.queries.blank_answers import (
    ModelAnswer,
    candidates_json,
    extended_words,
    query_in_batches,
)
from lama_core.queries.kind import Answer, Asked, Calls, QueryFunction, QueryKind
from lama_core.requests import argument, option
from lama_core.rounding import counted
from lama_core.scoring import shared_fields
from lama_core.scoring.batches import choose_context
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.limits import Limits
from lama_core.scoring.model_info import AboutModel, model_fields
from lama_core.tables import Column, Table, decimals, make_table, table_of
from lama_core.types import Query

MAX_SENTENCES = 64
N_KNOWN = 100  # words of a sentence whose ranks are known
MAX_GROUPS = 20
N_SHOWN = 12  # words with the best ranks, which the app shows first and whose ends are looked up
BATCH_SIZE = 8  # sentences between two progress reports
BRACES = re.compile(r"\{([^{}]*)\}")
GRID_EXAMPLE = "{Paris|Rome|Oslo|Lima} is the capital of ___."


def has_alternatives(text: str) -> bool:
    """Whether a sentence has alternatives in braces."""
    return any("|" in options for options in BRACES.findall(text))


@dataclass(frozen=True, kw_only=True)
class GridRequest(shared_fields.ClozeSettings, command="grid", python="grid"):
    """The fields of `grid`: sentences to compare, and options."""

    texts: Annotated[
        Sequence[str],
        argument("Sentences with a blank; alternatives in braces: {nurse|engineer}."),
    ] = field(kw_only=False)
    top_k: Annotated[
        int, option("Number of each sentence's first words in the grid.", ge=1, le=N_KNOWN)
    ] = 10
    n_groups: Annotated[
        int | None,
        option(
            "Group the words by meaning into so many groups.",
            name="--groups",
            ge=2,
            le=MAX_GROUPS,
        ),
    ] = None
    renormalise: shared_fields.Renormalise = False


@dataclass(frozen=True, slots=True)
class GridCell:
    """One word in one sentence."""

    sentence: Annotated[int, Column("Number of the sentence, from 1.")]
    text: Annotated[str, Column("The sentence.")]
    word: Annotated[str, Column("The word.")]
    rank: Annotated[
        int | None, Column(f"Its rank in the sentence; None if it isn't among {N_KNOWN} words.")
    ]
    prob: Annotated[
        float | None, Column("Its probability; None like the rank.", format=decimals(3, none="-"))
    ]
    log_prob: Annotated[float | None, Column("Its natural log-probability; None like the rank.")]
    n_sentences: Annotated[
        int, Column("Number of sentences with the word among their first words.", "sentences")
    ]
    group: Annotated[int | None, Column("Its group by meaning, from 1; None if not grouped.")]
    begins: Annotated[
        str | None,
        Column(f"The longer word that it begins where it ranks best; only of {N_SHOWN} words."),
    ] = None


@dataclass(frozen=True, slots=True)
class ModelGrid(AboutModel):
    """One model's grid.

    Attributes:
        answers: The model's first words in each sentence; fewer than the sentences if the time
            limit was reached.
        cells: Word -> its cell in each answered sentence. First the words of most sentences, then
            those with the best rank; grouped words by group.
        note: Which sentences weren't scored, and why the words aren't grouped; else empty.
    """

    answers: tuple[ModelAnswer, ...]
    cells: dict[str, tuple[GridCell, ...]]
    note: str

    @property
    def shared(self) -> list[str]:
        """The words that all sentences share among their first words."""
        n = len(self.answers)
        return [word for word, row in self.cells.items() if row[0].n_sentences == n]

    def only_in(self, sentence: int, top_k: int) -> list[str]:
        """The words that only this sentence has among its first `top_k` words."""
        return [
            word
            for word, row in self.cells.items()
            if row[0].n_sentences == 1 and (row[sentence].rank or N_KNOWN + 1) <= top_k
        ]


def expand(text: str) -> list[str]:
    """Return the sentences of a template: every combination of its alternatives.

    Raises:
        UserError: If braces aren't balanced or an alternative is missing, or for too many
            sentences.
    """
    parts = BRACES.split(text)
    if any(brace in part for part in parts[::2] for brace in "{}"):
        raise UserError(
            f"The braces in {text[:60]!r} aren't balanced: write alternatives as "
            "{nurse|engineer}."
        )
    choices = [part.split("|") for part in parts[1::2]]
    if any(len(words) < 2 for words in choices):
        raise UserError(
            f"Braces in {text[:60]!r} hold only one alternative: separate alternatives by |."
        )
    if (n := math.prod(map(len, choices))) > MAX_SENTENCES:
        raise UserError(f"The alternatives make {n:,} sentences; the maximum is {MAX_SENTENCES}.")
    sentences = []
    for chosen in product(*choices):
        parts[1::2] = [word.strip() for word in chosen]
        sentences.append(" ".join("".join(parts).split()))
    return sentences


GridAsked = Asked[GridRequest, tuple[Query, ...]]
GridAnswer = Answer[GridRequest, tuple[Query, ...], ModelGrid]


class GridKind(QueryKind[GridRequest, tuple[Query, ...], ModelGrid]):
    """Similar sentences with a blank, compared by their first words."""

    name = "grid"
    example = 'grid "The {nurse|engineer|teacher} said that ___ was tired." --groups 3'
    row = GridCell
    items = "cells"

    def prepare(self, request: GridRequest, limits: Limits) -> tuple[Query, ...]:
        """Return the sentences.

        Raises:
            UserError: For no sentence or more than `MAX_SENTENCES`, the same sentence twice, or one
                without exactly one blank.
        """
        texts = [text for template in request.texts for text in expand(template)]
        if not 1 <= len(texts) <= MAX_SENTENCES:
            raise UserError(f"There are {len(texts)} sentences: give 1 to {MAX_SENTENCES}.")
        if repeated := [text for text, n in Counter(texts).items() if n > 1]:
            raise UserError(f"The sentence {repeated[0][:60]!r} occurs twice: remove one.")
        queries = tuple(map(parse_query, texts))
        for query, text in zip(queries, texts, strict=True):
            if query.n_blanks > 1:
                raise UserError(
                    f"The sentence {text[:60]!r} has {query.n_blanks} blanks, but a grid has one: "
                    "replace the others with words."
                )
        limits.check_sentences(len(queries), len(request.models))
        return queries

    def answer(self, model: BlankFiller, asked: GridAsked, calls: Calls) -> ModelGrid:
        """Return one model's grid."""
        request, queries = asked.request, asked.shared
        until = calls.limits.until()
        answers: list[ModelAnswer] = []
        while len(answers) < len(queries) and (not answers or time.monotonic() < until):
            calls.on_progress(Progress(model.name, len(answers), len(queries), "sentences"))
            some = queries[len(answers) : len(answers) + BATCH_SIZE]
            context = choose_context(model, some[0], request.context)
            if isinstance(model, WordRescorer) and context == "both":
                some = some[:1]
            try:
                answers += query_in_batches(
                    model,
                    some,
                    asked.candidates,
                    top_k=N_KNOWN,
                    context=request.context,
                    renormalise=request.renormalise,
                    n_rescored=request.n_rescored,
                    limits=calls.limits,
                )
            except TimeOverError:
                if not answers:
                    raise
                break
        notes = []
        if n_left := len(queries) - len(answers):
            notes.append(f"Time limit reached: the last {n_left} sentences were not scored.")
        notes += [
            f"Likeliest in sentence {number}: {outside}."
            for number, answer in enumerate(answers, start=1)
            if (outside := answer.blanks[0].describe_outside())
        ]
        words = _first_words(answers, request.top_k)
        groups: dict[str, int] = {}
        if request.n_groups is not None and isinstance(model, WordEmbedder):
            groups = group_words(model, words, request.n_groups)
            words = dict(sorted(words.items(), key=lambda one: groups[one[0]]))
        elif request.n_groups is not None:
            notes.append(
                "Words aren't grouped, because this model has no input embeddings of words."
            )
        known = [{item.token: item for item in answer.blanks[0].predictions} for answer in answers]
        # The longer word that a word begins in the sentence where it ranks best: of the first
        # words by this rank, where the model sees the left side only.
        best = {
            word: min(
                (items[word].rank or 0, row) for row, items in enumerate(known) if word in items
            )
            for word in words
        }
        shown = sorted(best, key=lambda word: best[word][0])[:N_SHOWN]
        left = [word for word in shown if answers[best[word][1]].context == "left"]
        places = [queries[best[word][1]] for word in left]
        found = extended_words(model, places, left, folded=asked.candidates.fold_case)
        longer = dict(zip(left, found, strict=True))
        cells = {
            word: tuple(
                GridCell(
                    sentence=number,
                    text=query.text(),
                    word=word,
                    rank=item.rank if item else None,
                    prob=item.prob if item else None,
                    log_prob=item.log_prob if item else None,
                    begins=longer.get(word),
                    n_sentences=n,
                    group=groups.get(word),
                )
                for number, query, item in zip(
                    count(1), queries, (items.get(word) for items in known), strict=False
                )
            )
            for word, n in words.items()
        }
        return ModelGrid(
            answers=tuple(answers), cells=cells, note=" ".join(notes), **model_fields(model)
        )

    def rows(self, asked: GridAsked, one: ModelGrid) -> Sequence[GridCell]:
        """Return a row for each word and sentence."""
        return [cell for row in one.cells.values() for cell in row]

    def head(self, answer: GridAnswer) -> dict[str, Any]:
        """Return the sentences and the candidates."""
        sizes = {model.name: model.answers[0].n_candidates for model in answer.models}
        return {
            "sentences": [query.text() for query in answer.asked.shared],
            "candidates": candidates_json(answer.asked.candidates, sizes),
        }

    def details(self, asked: GridAsked, one: ModelGrid) -> dict[str, Any]:
        """Return the words that all sentences share, those that only one has, and the note."""
        top_k = asked.request.top_k
        only = [one.only_in(number, top_k) for number in range(len(one.answers))]
        return {"shared": one.shared, "only": only, "note": one.note}

    def constants(self, asked: GridAsked, one: ModelGrid) -> dict[str, Any]:
        """Return the candidates' name, and what the probabilities are over."""
        over = one.answers[0].blanks[0].shown_over()
        return {"prob_of": over, "candidates": asked.candidates.name}

    def printed(self, answer: GridAnswer) -> Iterator[Table | str]:
        """Yield the numbered sentences, then each model's grid."""
        for number, query in enumerate(answer.asked.shared, start=1):
            yield f"{number}: {query.text('___')}"
        yield ""
        yield from super().printed(answer)

    def tables(self, asked: GridAsked, one: ModelGrid) -> Iterator[Table | str]:
        """Yield the probability of each word in each sentence, and the shared and single words."""
        has_groups = any(row[0].group for row in one.cells.values())
        made = make_table(
            GridCell, [row[0] for row in one.cells.values()], "group word" if has_groups else "word"
        )
        written = decimals(3, none="-")
        numbers = [str(number) for number in range(1, len(one.answers) + 1)]
        rows = [
            [*cells, *(written(cell.prob) for cell in row)]
            for cells, row in zip(made.cells(), one.cells.values(), strict=True)
        ]
        heads = [*(column.head for column in made.columns), *numbers]
        over = one.answers[0].blanks[0].shown_over()
        candidates = asked.candidates.described(one.answers[0].n_candidates)
        yield table_of(
            heads, rows, title=f"{one.name}: probability of {over}, {candidates}{one.computed}"
        )
        first = f"Among the first {asked.request.top_k}"
        sentences = counted(len(numbers), "sentence")
        yield f"{first} of all {sentences}: {', '.join(one.shared) or 'no word'}"
        for number in numbers:
            if only := one.only_in(int(number) - 1, asked.request.top_k):
                yield f"Only a{first[1:]} of {number}: {', '.join(only)}"
        if one.note:
            yield one.note

    def title(self, request: GridRequest) -> str:
        """Return the sentences as typed."""
        return " / ".join(request.texts)


def _first_words(answers: Sequence[ModelAnswer], top_k: int) -> dict[str, int]:
    """Return word -> number of sentences with the word among their first words.

    First the words of most sentences, then those with the best rank.
    """
    ranks = grouped(
        (item.token, rank)
        for answer in answers
        for rank, item in enumerate(answer.blanks[0].predictions[:top_k], start=1)
    )
    order = sorted(ranks, key=lambda word: (-len(ranks[word]), min(ranks[word])))
    return {word: len(ranks[word]) for word in order}


def group_words(model: WordEmbedder, words: Iterable[str], n: int) -> dict[str, int]:
    """Return word -> its group, from 1 in the order of the groups' first words.

    n: Number of groups; with fewer words, each is a group.
    """
    import numpy as np
    from sklearn.cluster import AgglomerativeClustering  # slow to import

    listed = list(words)
    if len(listed) <= n:
        return {word: number for number, word in enumerate(listed, start=1)}
    vectors = np.asarray(model.word_vectors(listed), np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(float).tiny)
    labels = AgglomerativeClustering(n_clusters=n).fit_predict(vectors).tolist()  # Ward's method
    numbers = {label: at for at, label in enumerate(dict.fromkeys(labels), start=1)}
    return {word: numbers[label] for word, label in zip(listed, labels, strict=True)}


grid = QueryFunction(
    GridRequest,
    GridKind(),
    """Compare the words at the blank of similar sentences.

    Alternatives in braces make several sentences: `The {nurse|engineer} said that ___ was tired.`

    Returns:
        A DataFrame with a row for each model, word and sentence: the word's rank and probability
        there, and the number of sentences that have it among their first words.

    Raises:
        UserError: If a sentence doesn't have exactly one blank, braces aren't balanced, or a model
            is unknown.

    >>> import lama_core as lama
    >>> found = lama.grid("{Paris|Rome} is the capital of ___.", top_k=1)
    >>> found[["sentence", "word", "rank"]]
       sentence    word  rank
    0         1  france     1
    1         2  france     5
    2         1   italy    14
    3         2   italy     1
    """,
)
