"""`cloze`, `relation`, `rank`, `inspect`, `batch`, `sentences`, and `analogy solve` and `score`."""

import math
from collections.abc import Sequence

from lama_core.api import queries
from lama_core.api.queries import (
    KINDS,
    BlankAnswer,
    ClozeAnswer,
    InsideAnswer,
    ManyAnswer,
    ModelAttribution,
    ModelLayers,
    ModelOnMany,
    ModelOnRelation,
    RankAnswer,
    RelationAnswer,
    RelationQuestion,
    ScoreAnswer,
    SentencesAnswer,
    Solution,
    first_answers,
    how_computed,
    shown_tokens,
)
from lama_core.cli import commands, output
from lama_core.rounding import fixed


def print_cloze(answer: ClozeAnswer) -> None:
    """Print each model's predictions, a table a model and blank."""
    first = answer.models[0].blanks[0].asked
    for number in range(len(answer.models[0].blanks)):
        for one in answer.models:
            which = f", blank {number + 1}" if len(one.blanks) > 1 else ""
            seen = f"context {one.context}, {one.n_candidates:,} candidates"
            seen += f" ({answer.candidates.name})" + _computed(one.precision, one.device)
            blank = one.blanks[number]
            if number and blank.asked != first:
                which += f", queried as {blank.asked!r}"
            _print_answers(blank, f"{one.name}{which}: {seen}")
            print()


def _print_answers(blank: BlankAnswer, title: str) -> None:
    """A model's best words for a blank, best first, and where the gold stands."""
    rows: list[Sequence[object]] = [
        (
            item.rank,
            f"{item.token} ({item.begins})" if item.begins else item.token,
            fixed(item.prob, 3),
            fixed(item.log_prob, 2),
        )
        for item in blank.predictions
    ]
    if gold := blank.gold:
        note = "" if len(gold.pieces) == 1 else f" ({' + '.join(gold.pieces)})"
        rows.append((gold.rank, f"gold: {gold.word}{note}", "", gold.shown_log_prob()))
    heads = ("rank", "word", f"prob of {blank.shown_over()}", "log-prob")
    output.print_table(heads, rows, title=title)
    for note in blank.notes():
        print(note)


def _score(value: float | None, digits: int, *, signed: bool = False) -> str:
    """A score with so many decimals; a dash where there is none."""
    return "-" if value is None else fixed(value, digits, signed=signed)


def _computed(precision: str, device: str) -> str:
    """`, bf16 on cuda:0`; nothing of fp32 on a CPU."""
    said = how_computed(precision, device)
    return f", {said}" if said else ""


def print_relation(answer: RelationAnswer) -> None:
    """Print each model's predictions in every wording, after what the data says."""
    question = answer.question
    known = ", ".join(question.objects) or "nothing of this subject"
    gold = question.gold or "-"
    print(f"{question.relation} {question.label} of {question.subject}, gold answer: {gold}")
    print(f"{question.dataset} says: {known}")
    if question.n_left_out:
        every = len(question.wordings) + question.n_left_out
        print(f"queried: the first {len(question.wordings)} of {every} wordings")
    for model in answer.models:
        print()
        _print_wordings(question, model, answer.candidates.name)


def _print_wordings(question: RelationQuestion, model: ModelOnRelation, words: str) -> None:
    """A model's predictions, a row a wording, under how far they agree."""
    rows = [
        (
            f"{wording.kind} ({wording.source})",
            wording.query(question.subject).text("___"),
            answer.first.token
            + (f" → {answer.first.begins}" if answer.first.begins else "")
            + (" ✓" if question.is_right(wording, answer.first.token) else ""),
            fixed(answer.first.prob, 3),
            f"{answer.gold.rank:,}" if answer.gold else None,
            answer.note,
        )
        for wording, answer in zip(question.wordings, model.answers, strict=True)
    ]
    word, n = first_answers(question, model)[0]
    total = question.n_agreeing
    same = f"{n} of {total} wordings give {word} first"
    if 1 == n < total:
        same = f"no two of {total} wordings give the same word first"
    size = f"{model.n_candidates:,} candidates ({words})"
    size += _computed(model.precision, model.device)
    output.print_table(
        ("wording", "sentence", "first answer", "prob", "rank of the gold answer", "note"),
        rows,
        title=f"{model.name}: {same}, not counting the negated wording; {size}",
    )


def print_rank(answer: RankAnswer) -> None:
    """Print the answers as each model ranks them."""
    request = answer.request
    _, _, gold = request.asked()
    for model in answer.models:
        output.print_table(
            (
                "rank",
                "answer",
                "prob of the answers",
                f"{request.aggregate} of log-prob.",
                "its tokens",
            ),
            [
                (
                    one.rank,
                    one.answer + (" ✓" if one.answer == gold else ""),
                    fixed(one.prob, 3),
                    _score(one.score, 2),
                    "  ".join(shown_tokens(one.tokens, answer=True)),
                )
                for one in model.answers
            ],
            title=f"{model.name}: {len(model.answers):,} answers, part {request.part}"
            + _computed(model.precision, model.device),
        )
        for note in model.notes(gold):
            print(note)
        print()


def print_sentences(answer: SentencesAnswer) -> None:
    """Print the sentences' log-probabilities, and those of their tokens."""
    for model in answer.models:
        output.print_table(
            ("total log-prob.", "minus the first's", "mean", "tokens", "sentence"),
            [
                (
                    _score(one.total, 3),
                    _score(one.difference, 3, signed=True),
                    _score(one.mean, 3),
                    one.n_scored,
                    one.text,
                )
                for one in model.sentences
            ],
            title=model.name + _computed(model.precision, model.device),
        )
        for one in model.sentences:
            print("  " + "  ".join(shown_tokens(one.tokens)))
        for note in model.notes():
            print(note)
        print()


def print_inspected(answer: InsideAnswer) -> None:
    """Print what a lens shows of each model."""
    for one in answer.models:
        if one.layers:
            _print_layers(one.layers, answer.request.candidates)
        if one.attribution:
            _print_attribution(one.attribution)


def _print_layers(model: ModelLayers, words: str) -> None:
    """A row a layer, the last one first: its answer, and the ranks of the tracked words."""
    rows = [
        (
            layer.title,
            layer.first,
            fixed(layer.log_prob, 2),
            *(f"{word.ranks[layer.number]:,}" for word in model.words),
        )
        for layer in reversed(model.layers)
    ]
    heads = [f"rank of {word.word}" + " (gold)" * word.is_gold for word in model.words]
    size = f"{model.n_candidates:,} candidates ({words})"
    size += _computed(model.precision, model.device)
    output.print_table(
        ("layer", "first answer", "log-prob", *heads), rows, title=f"{model.name}: {size}"
    )
    for note in model.notes:
        print(note)
    print()


def _print_attribution(model: ModelAttribution) -> None:
    """A row a token, in the order of the text, and the check of the sum."""
    rows = [
        (token, "" if value is None else fixed(value, 3, signed=True))
        for token, value in zip(model.tokens, model.values, strict=True)
    ]
    how = f"{model.method}, log-prob of {model.word}: {fixed(model.log_prob, 3)}"
    how += _computed(model.precision, model.device)
    output.print_table(("token", "adds"), rows, title=f"{model.name}: {how}")
    for note in filter(None, (*model.notes, model.completeness())):
        print(note)
    print()


def print_batch(answer: ManyAnswer) -> None:
    """Print each model's first prediction for each line, and its share of right ones."""
    rows = [
        (
            line.number,
            line.text,
            line.gold,
            *(cell for model in answer.models for cell in _first_cells(model, row)),
        )
        for row, line in enumerate(answer.lines)
    ]
    heads = [
        head
        for model in answer.models
        for head in (model.name, "log-prob", "rank of the gold answer")
    ]
    output.print_table(("line", "text", "gold answer", *heads), rows)
    print()
    for model in answer.models:
        print(f"{model.name}: {model.summary()}{_computed(model.precision, model.device)}")


def _first_cells(model: ModelOnMany, row: int) -> tuple[str, str, str]:
    """A model's first prediction for a line, its log-probability, and the gold answer's rank."""
    answer = model.answers[row]
    if answer.blank is None:
        return answer.fault, "", ""
    first, gold = answer.blank.predictions[0], answer.blank.gold
    begins = f" → {first.begins}" if first.begins else ""
    right = " ✓" if answer.is_right else ""
    return (
        first.token + begins + right,
        fixed(first.log_prob, 2),
        f"{gold.rank:,}{'' if gold.in_candidates else ' (not a candidate)'}" if gold else "",
    )


def print_solution(solution: Solution) -> None:
    """Print each model's predictions for an analogy, and those of vector arithmetic."""
    print(solution.question.query.text("___") + "\n")
    for answer in solution.cloze.models:
        seen = f"context {answer.context}, {answer.n_candidates:,} candidates"
        seen += _computed(answer.precision, answer.device)
        _print_answers(answer.blanks[0], f"{answer.name}: {seen}")
        for baseline in solution.baselines:
            if baseline.name == answer.name:
                words = ", ".join(item.token for item in baseline.predictions)
                rank = f" (gold: rank {baseline.gold_rank})" if baseline.gold_rank else ""
                print(f"{baseline.method} on its input embeddings: {words}{rank}")
        print()
    if solution.note:
        print(solution.note)


def print_scores(answer: ScoreAnswer) -> None:
    """Print the pairs as each model ranks them, and the log-probabilities of their tokens."""
    for one in answer.models:
        measure = f"{KINDS[one.kind].measure} (mean)"
        output.print_table(
            ("rank", "pair", "total log-prob.", "tokens", measure, "sentence"),
            [
                (
                    found.rank,
                    f"{found.pair[0]}:{found.pair[1]}",
                    fixed(found.total, 3),
                    found.n_scored,
                    f"{found.mean_perplexity:.4g}",
                    found.sentence,
                )
                for found in one.ranked
            ],
            title=f"{one.name}, ranked by the {answer.normalise} of the log-probabilities"
            + _computed(one.precision, one.device),
        )
        for found in one.ranked:
            print("  " + _tokens(found.tokens.tokens, found.tokens.log_probs.tolist()))
        print()


def _tokens(tokens: Sequence[str], log_probs: Sequence[float]) -> str:
    return "  ".join(
        f"{token} {'·' if math.isnan(value) else fixed(value, 2)}"
        for token, value in zip(tokens, log_probs, strict=True)
    )


cloze = commands.make(
    queries.fill,
    print_cloze,
    'cloze "Dante was born in ___." --model minilm-mlm --model smollm2-135m',
)
relation = commands.make(queries.relation, print_relation, "relation P36 --subject France")
rank = commands.make(
    queries.rank,
    print_rank,
    'rank "The capital of Brazil is ___." --answer "Rio de Janeiro" --answer Brasília',
)
inspect = commands.make(
    queries.inspect,
    print_inspected,
    'inspect "The capital of Norway is ___." --lens tokens --method gradients',
)
batch = commands.make(
    queries.batch, print_batch, "batch sentences.csv --model minilm-mlm --model smollm2-135m"
)
sentences = commands.make(
    queries.sentences,
    print_sentences,
    'sentences "The keys to the cabinet are here." "The keys to the cabinet is here."',
)
solve = commands.make(
    queries.analogy, print_solution, 'analogy solve "Tokyo is to Japan as Paris is to ___"'
)
score = commands.make(
    queries.score_analogies,
    print_scores,
    "analogy score Paris:France Rome:Italy Italy:Rome --model minilm-mlm",
)
