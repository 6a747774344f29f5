"""Commands that query models with one text or file: `cloze`, `relation`, `rank`, `inspect`, ..."""

import math
from collections.abc import Sequence
from typing import Any, assert_never

from lama_core.api import queries
from lama_core.api.queries import (
    KINDS,
    BatchAnswer,
    BatchModelAnswers,
    BlankAnswer,
    ClozeAnswer,
    InspectionAnswer,
    ModelAttribution,
    ModelLayers,
    ModelLogit,
    ModelTrace,
    RankAnswer,
    RelationAnswer,
    RelationModelAnswers,
    RelationQuestion,
    ScoreAnswer,
    SentencesAnswer,
    Solution,
    first_answers,
    settings_text,
    shown_tokens,
)
from lama_core.cli import commands, output
from lama_core.rounding import counted, fixed

N_HEADS = 10  # attention heads to print


def print_cloze(answer: ClozeAnswer) -> None:
    """Print a table of predictions for each blank and model."""
    first = answer.models[0].blanks[0].asked
    for number in range(len(answer.models[0].blanks)):
        for model in answer.models:
            which = f", blank {number + 1}" if len(model.blanks) > 1 else ""
            settings = f"context {model.context}, {model.n_candidates:,} candidates"
            settings += f" ({answer.candidates.name})" + _computed(model)
            blank = model.blanks[number]
            if number and blank.asked != first:
                which += f", queried as {blank.asked!r}"
            _print_answers(blank, f"{model.name}{which}: {settings}")
            print()


def _print_answers(blank: BlankAnswer, title: str) -> None:
    """Print a model's predictions for a blank, best first, and the gold answer's rank."""
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
    """Return a score with `digits` decimals; a dash for None."""
    return "-" if value is None else fixed(value, digits, signed=signed)


def _computed(model: Any) -> str:
    """Return `, bf16 on cuda:0`; empty for fp32 on a CPU."""
    text = settings_text(model.precision, model.device)
    return f", {text}" if text else ""


def print_relation(answer: RelationAnswer) -> None:
    """Print the known objects, then each model's predictions for every wording."""
    question = answer.question
    known = ", ".join(question.objects) or "none"
    gold = question.gold or "-"
    print(f"{question.relation} {question.label} of {question.subject}, gold answer: {gold}")
    print(f"objects in {question.dataset}: {known}")
    if question.n_left_out:
        n_wordings = len(question.wordings)
        print(f"queried: the first {n_wordings} of {n_wordings + question.n_left_out} wordings")
    for model in answer.models:
        print()
        _print_wordings(question, model, answer.candidates.name)


def _print_wordings(question: RelationQuestion, model: RelationModelAnswers, words: str) -> None:
    """Print a row for each wording; the title counts the wordings with the commonest answer."""
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
    same = f"the first answer is {word} in {n} of {total} wordings"
    if 1 == n < total:
        same = f"the first answers in {total} wordings all differ"
    settings = f"{model.n_candidates:,} candidates ({words})"
    settings += _computed(model)
    output.print_table(
        ("wording", "sentence", "first answer", "prob", "rank of the gold answer", "note"),
        rows,
        title=f"{model.name}: {same}, not counting the negated wording; {settings}",
    )


def print_rank(answer: RankAnswer) -> None:
    """Print each model's ranking of the answers."""
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
                    row.rank,
                    row.answer + (" ✓" if row.answer == gold else ""),
                    fixed(row.prob, 3),
                    _score(row.score, 2),
                    "  ".join(shown_tokens(row.tokens, answer=True)),
                )
                for row in model.answers
            ],
            title=f"{model.name}: {counted(len(model.answers), 'answer')}, part {request.part}"
            + _computed(model),
        )
        for note in model.notes(gold):
            print(note)
        print()


def print_sentences(answer: SentencesAnswer) -> None:
    """Print the log-probabilities of the sentences and of their tokens."""
    for model in answer.models:
        output.print_table(
            ("total log-prob.", "minus first sentence", "mean", "tokens", "sentence"),
            [
                (
                    _score(sentence.total, 3),
                    _score(sentence.difference, 3, signed=True),
                    _score(sentence.mean, 3),
                    sentence.n_scored,
                    sentence.text,
                )
                for sentence in model.sentences
            ],
            title=model.name + _computed(model),
        )
        for sentence in model.sentences:
            print("  " + "  ".join(shown_tokens(sentence.tokens)))
        for note in model.notes():
            print(note)
        print()


def print_inspected(answer: InspectionAnswer) -> None:
    """Print the lens's result for each model."""
    for model in answer.models:
        found, last = model.result, ""
        match found:
            case ModelLayers():
                _print_layers(found, answer.request.candidates)
            case ModelAttribution():
                _print_attribution(found)
                last = found.completeness()
            case ModelTrace():
                _print_trace(found)
            case ModelLogit():
                _print_logit(found)
            case _:
                assert_never(found)
        for note in filter(None, (*found.notes, last)):
            print(note)
        print()


def _print_layers(model: ModelLayers, words: str) -> None:
    """Print each layer's first answer and the ranks of the tracked words, last layer first."""
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
    settings = f"{model.n_candidates:,} candidates ({words})"
    settings += _computed(model)
    output.print_table(
        ("layer", "first answer", "log-prob", *heads), rows, title=f"{model.name}: {settings}"
    )


def _print_attribution(model: ModelAttribution) -> None:
    """Print each token's attribution in the order of the text, and the completeness check."""
    rows = [
        (token, "" if value is None else fixed(value, 3, signed=True))
        for token, value in zip(model.tokens, model.values, strict=True)
    ]
    title = f"{model.name}: {model.method}, log-prob of {model.word}: {fixed(model.log_prob, 3)}"
    output.print_table(("token", "adds to log-prob"), rows, title=title + _computed(model))


def _print_trace(model: ModelTrace) -> None:
    """Print the restored probability of each layer and token, last layer first."""
    rows = [
        (layer, *("" if value is None else fixed(value, 3) for value in values))
        for layer, values in reversed(list(enumerate(model.restored, start=1)))
    ]
    heads = [
        f"*{token}" if inside else token
        for token, inside in zip(model.tokens, model.in_subject, strict=True)
    ]
    title = (
        f"{model.name}: prob of {model.answer} {fixed(model.prob, 3)}, "
        f"{fixed(model.corrupted, 3)} with noise on {model.subject}"
    )
    output.print_table(("layer", *heads), rows, title=title + _computed(model))
    what = "the state after one layer"
    if model.restore != "states":
        named = {"attention": "attention", "mlp": "the MLP"}[model.restore]
        what = f"the output of {named} in {model.window} layers around the row's"
    print(
        f"Cells: the probability with noise and {what} restored at one token, mean over "
        f"{model.draws} draws (seed {model.seed}). *: the subject's tokens."
    )
    if best := model.best():
        value, layer, token = best
        print(f"Largest: {fixed(value, 3)}, layer {layer}, token {model.tokens[token]}.")


def _print_logit(model: ModelLogit) -> None:
    """Print what each layer's attention and MLP add to the logit, last layer first."""
    of_layers = {(part.layer, part.part): part.value for part in model.parts}
    layers = sorted({part.layer for part in model.parts if part.layer}, reverse=True)
    rows = [
        (
            layer,
            fixed(of_layers[layer, "attention"], 3, signed=True),
            fixed(of_layers[layer, "mlp"], 3, signed=True),
        )
        for layer in layers
    ]
    against = f" minus that of {model.against}" if model.against else ""
    title = f"{model.name}: logit of {model.answer}{against}: {fixed(model.logit, 3)}"
    output.print_table(
        ("layer", "attention adds", "MLP adds"), rows, title=title + _computed(model)
    )
    others = ", ".join(
        f"{part.part} {fixed(part.value, 3, signed=True)}"
        for part in model.parts
        if part.part not in ("attention", "mlp")
    )
    print(f"Also: {others}.")
    neurons = [
        (one.layer, one.neuron, fixed(one.value, 3, signed=True), ", ".join(one.promoted))
        for one in model.neurons
    ]
    output.print_table(
        ("layer", "neuron", "adds", "promotes"), neurons, title="Strongest MLP neurons"
    )
    heads = sorted(model.heads, key=lambda one: -abs(one.value))[:N_HEADS]
    shown = (f"{one.layer}.{one.head} {fixed(one.value, 3, signed=True)}" for one in heads)
    print(f"Strongest attention heads (layer.head): {', '.join(shown)}.")


def print_batch(answer: BatchAnswer) -> None:
    """Print each model's first prediction for each line, and each model's accuracy."""
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
        print(f"{model.name}: {model.summary()}{_computed(model)}")


def _first_cells(model: BatchModelAnswers, row: int) -> tuple[str, str, str]:
    """Return the first prediction for a line, its log-probability and the gold answer's rank."""
    answer = model.answers[row]
    if not answer.is_answered:
        return answer.fault, "", ""
    gold = answer.blank.gold if answer.blank else None
    begins = f" → {answer.begins}" if answer.begins else ""
    right = " ✓" if answer.is_right else ""
    return (
        f"{answer.word}{begins}{right}",
        "" if answer.log_prob is None else fixed(answer.log_prob, 2),
        f"{gold.rank:,}{'' if gold.in_candidates else ' (not a candidate)'}" if gold else "",
    )


def print_solution(solution: Solution) -> None:
    """Print the predictions of each model and of vector arithmetic for an analogy."""
    print(solution.question.query.text("___") + "\n")
    for answer in solution.cloze.models:
        settings = f"context {answer.context}, {answer.n_candidates:,} candidates"
        settings += _computed(answer)
        _print_answers(answer.blanks[0], f"{answer.name}: {settings}")
        for baseline in solution.baselines:
            if baseline.name == answer.name:
                words = ", ".join(item.token for item in baseline.predictions)
                rank = f" (gold: rank {baseline.gold_rank})" if baseline.gold_rank else ""
                print(f"{baseline.method} on its input embeddings: {words}{rank}")
        print()
    if solution.note:
        print(solution.note)


def print_scores(answer: ScoreAnswer) -> None:
    """Print each model's ranking of the pairs, and the log-probabilities of their tokens."""
    for model in answer.models:
        measure = f"{KINDS[model.kind].measure} (mean)"
        output.print_table(
            ("rank", "pair", "total log-prob.", "tokens", measure, "sentence"),
            [
                (
                    pair.rank,
                    ":".join(pair.pair),
                    fixed(pair.total, 3),
                    pair.n_scored,
                    f"{pair.mean_perplexity:.4g}",
                    pair.sentence,
                )
                for pair in model.ranked
            ],
            title=f"{model.name}, ranked by the {answer.normalise} of the log-probabilities"
            + _computed(model),
        )
        for pair in model.ranked:
            scored = zip(pair.tokens.tokens, pair.tokens.log_probs.tolist(), strict=True)
            values = (f"{token} {'·' if math.isnan(v) else fixed(v, 2)}" for token, v in scored)
            print("  " + "  ".join(values))
        print()


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
