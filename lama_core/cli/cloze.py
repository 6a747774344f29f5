"""`cloze`: one text, or a subject and a relation in every wording, put to several models; or the
user's own answers to a text, ranked by each; or a file of texts; or a look at how each comes to its
answer.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lama_core.candidates.lists import COMMON
from lama_core.cli import options, show
from lama_core.cli.running import open_asked, open_models
from lama_core.errors import UserError
from lama_core.files import given_path
from lama_core.files import read_file as read_bytes
from lama_core.models.base import RESCORED
from lama_core.requests import read
from lama_core.rounding import fixed

if TYPE_CHECKING:
    from lama_core.asking.retrieval import Found
    from lama_core.probes.cloze.ask import ClozeRequest
    from lama_core.probes.cloze.by_relation import (
        ModelOnRelation,
        RelationQuestion,
        RelationRequest,
    )
    from lama_core.probes.cloze.inside import InsideRequest, ModelAttribution, ModelLayers
    from lama_core.probes.cloze.many import ManyRequest, ModelOnMany
    from lama_core.probes.statements.rank import RankRequest
    from lama_core.types import Query

EXAMPLE = """
Examples: python -m lama_core cloze "Dante was born in ___." --model minilm-mlm --model smollm2-135m

python -m lama_core cloze --relation P36 --subject France

python -m lama_core cloze "The capital of Brazil is ___." --answer "Rio de Janeiro"
--answer Brasília --gold Brasília

python -m lama_core cloze --file sentences.csv --model minilm-mlm --model smollm2-135m

python -m lama_core cloze "The capital of Norway is ___." --layers --attribution gradients
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=EXAMPLE)(cloze)


def cloze(
    text: Annotated[
        str | None, typer.Argument(help="A text with a blank: [MASK], <mask>, [Y], or ___.")
    ] = None,
    relation: Annotated[
        str | None,
        typer.Option(
            help="Instead of a text: a relation, in its template, paraphrases and negation."
        ),
    ] = None,
    subject: Annotated[str | None, typer.Option(help="The subject of that relation.")] = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="The relation's data: a name (by default starter), or a folder."),
    ] = None,
    mined: Annotated[
        bool, typer.Option("--mined", help="Ask the relation's mined prompts, too.")
    ] = False,
    file: Annotated[
        str | None,
        typer.Option(
            help="Instead of a text: a file of them. CSV or TSV with the columns text and gold, "
            "JSONL with these fields, else a text a line, its gold behind a tab or |; - reads "
            "lines from standard input."
        ),
    ] = None,
    answers: Annotated[
        list[str] | None,
        typer.Option(
            "--answer",
            help="Rank this word or phrase, of any length, by the likelihood of the text with it; "
            "repeat it for several.",
        ),
    ] = None,
    layers: Annotated[
        bool,
        typer.Option(
            "--layers", help="The answer after each layer, and where the last ones stand."
        ),
    ] = False,
    attribution: Annotated[
        str | None,
        typer.Option(
            help="What each token of the text adds to the answer's log-probability: erasure (the "
            "token hidden or left out), or gradients (integrated; their sum is checked)."
        ),
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option(help="The answer that is attributed; by default each model's first."),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(help="The most points of the integral of gradients; by default 400."),
    ] = None,
    part: options.Part = None,
    aggregate: options.Aggregate = None,
    hiding: options.Hiding = None,
    models: options.Models = None,
    top_k: Annotated[
        int | None, typer.Option(help="How many answers to a text to show; by default 5.")
    ] = None,
    candidates: options.Candidates = COMMON,
    gold: Annotated[
        str | None,
        typer.Option(
            help="The right answer: its rank is shown. Of several blanks: one each, | between. "
            "Of a relation by default the data's first object of the subject."
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            help="What a causal model sees: left, or both sides. Without it: left when only "
            "punctuation follows the blank, else both."
        ),
    ] = None,
    rescored: options.Rescored = RESCORED,
    renormalise: options.Renormalise = False,
    open_book: options.OpenBook = None,
    precision: options.Precision = "auto",
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Fill the blanks of a text, or of a relation's wordings, with several models side by side.

    With --answer, rank these answers. With --file, each model's first answer to every text of it.
    With --layers or --attribution, look at how they come about.
    """
    from lama_core.asking import settings
    from lama_core.probes.cloze.ask import ClozeRequest
    from lama_core.probes.cloze.by_relation import RelationRequest
    from lama_core.probes.cloze.inside import InsideRequest
    from lama_core.probes.cloze.many import ManyRequest
    from lama_core.probes.statements.rank import RankRequest

    chosen = {**locals(), "models": models or (settings.DEFAULT_MODEL,)}
    of_relation = any((relation, subject, dataset, mined))
    of_words = any(
        (top_k is not None, candidates != COMMON, context, rescored != RESCORED, renormalise)
    )
    not_inside = any((context, rescored != RESCORED, renormalise))
    of_answers = any((part, aggregate, hiding))
    of_inside = layers or attribution is not None
    if (explain is not None or steps is not None) and attribution is None:
        raise UserError("--explain and --steps go with --attribution erasure or gradients.")
    if open_book is not None and (text is None or answers or of_inside):
        raise UserError(
            "--open-book goes with a text: leave it out, or give a text with a blank and no "
            "--answer, --layers or --attribution."
        )
    if of_inside and (text is None or of_relation or answers or of_answers or not_inside):
        raise UserError(
            "--layers and --attribution go with a text; leave out --relation, --answer, --context, "
            "--rescored and --renormalise there."
        )
    if of_inside:
        _look(read(InsideRequest, chosen), as_json)
    elif file is not None:
        if text is not None or of_relation or answers or of_answers or gold or top_k is not None:
            raise UserError(
                "--file has the texts and their golds, and shows first answers: leave out the "
                "text, --gold, --top-k, --answer, --relation and what goes with them."
            )
        _ask_file(read(ManyRequest, chosen), as_json)
    elif answers and text is not None and not of_relation and not of_words:
        _rank(read(RankRequest, chosen), as_json)
    elif answers or of_answers:
        raise UserError(
            "--answer goes with a text, and --part, --aggregate and --hiding with --answer; leave "
            "out --relation, --top-k, --candidates, --context, --rescored and --renormalise there."
        )
    elif text is not None and not of_relation:
        _ask_text(read(ClozeRequest, chosen), as_json)
    elif text is None and relation is not None and subject is not None and top_k is None:
        _ask_relation(read(RelationRequest, chosen), as_json)
    else:
        raise UserError(
            "Give either a text with a blank (and --top-k), or --relation and --subject (and "
            "--dataset, --mined), or --file."
        )


def _rank(chosen: "RankRequest", as_json: bool) -> None:
    from lama_core.probes.statements.rank import RankAnswer, rank_answers
    from lama_core.probes.statements.scoring import shown_tokens

    _, _, gold = chosen.asked()
    opened = open_models(chosen)
    answer = RankAnswer(chosen, tuple(rank_answers(model, chosen) for model in opened))
    if as_json:
        show.print_json(answer.to_json())
        return
    for model in answer.models:
        rows = [
            (
                one.rank,
                one.answer + (" ✓" if one.answer == gold else ""),
                fixed(one.prob, 3),
                show.score(one.score, 2),
                "  ".join(shown_tokens(one.tokens, answer=True)),
            )
            for one in model.answers
        ]
        measure = f"{chosen.aggregate} of log-prob."
        title = f"{model.name}: {len(rows):,} answers, part {chosen.part}"
        show.print_table(
            ("rank", "answer", "prob of the answers", measure, "its tokens"),
            rows,
            title=title + show.computed(model.precision, model.device),
        )
        for note in model.notes(gold):
            print(note)
        print()


def _ask_text(chosen: "ClozeRequest", as_json: bool) -> None:
    from lama_core.asking.blanks import parse_query
    from lama_core.cli.running import index_corpus
    from lama_core.probes.cloze.ask import ask_all

    query = parse_query(chosen.text)
    if chosen.open_book is not None:
        index_corpus(chosen.open_book)
    opened, words = open_asked(chosen)
    passage = None if chosen.open_book is None else _look_up(query, chosen.open_book)
    answer = ask_all(
        opened,
        query,
        words,
        passage=passage,
        top_k=chosen.top_k,
        gold=chosen.gold,
        context=chosen.context,
        renormalise=chosen.renormalise,
        n_rescored=chosen.n_rescored,
    )
    if as_json:
        show.print_json(answer.to_json())
        return
    for number in range(query.n_blanks):
        for one in answer.models:
            which = f", blank {number + 1}" if query.n_blanks > 1 else ""
            seen = f"context {one.context}, {one.n_candidates:,} candidates ({words.name})"
            seen += show.computed(one.precision, one.device)
            blank = one.blanks[number]
            if number and blank.asked != query.text():
                which += f", asked as {blank.asked!r}"
            show.print_answers(blank, f"{one.name}{which}: {seen}")
            print()


def _look(chosen: "InsideRequest", as_json: bool) -> None:
    from lama_core.asking.blanks import parse_query
    from lama_core.probes.cloze.inside import InsideAnswer, look_inside

    query = parse_query(chosen.text)
    opened, words = open_asked(chosen)
    found = [look_inside(model, query, words.columns(model.vocabulary), chosen) for model in opened]
    if as_json:
        show.print_json(InsideAnswer(chosen, query.text(), tuple(found)).to_json())
        return
    for one in found:
        if one.layers:
            _print_layers(one.layers, words.name)
        if one.attribution:
            _print_attribution(one.attribution)


def _print_layers(model: "ModelLayers", words: str) -> None:
    """A row a layer, the last one first: its answer, and where the followed words stand."""
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
    size += show.computed(model.precision, model.device)
    show.print_table(
        ("layer", "first answer", "log-prob", *heads), rows, title=f"{model.name}: {size}"
    )
    for note in model.notes:
        print(note)
    print()


def _print_attribution(model: "ModelAttribution") -> None:
    """A row a token, in the order of the text, and the check of the sum."""
    rows = [
        (token, "" if value is None else fixed(value, 3, signed=True))
        for token, value in zip(model.tokens, model.values, strict=True)
    ]
    how = f"{model.method}, log-prob of {model.word}: {fixed(model.log_prob, 3)}"
    how += show.computed(model.precision, model.device)
    show.print_table(("token", "adds"), rows, title=f"{model.name}: {how}")
    for note in filter(None, (*model.notes, model.completeness())):
        print(note)
    print()


def _look_up(query: "Query", corpus: str) -> "Found | None":
    """The passage of a corpus that stands before a text; said, and why there is none."""
    from lama_core.asking.retrieval import OpenBook
    from lama_core.datasets.corpus import load_corpus

    found = OpenBook(load_corpus(corpus)).look_up(query)
    if found is None:
        show.say(f"No passage of {corpus} shares a word with the text: it is asked alone.")
    else:
        show.say(f"Behind a passage of {corpus}, score {fixed(found.score, 2)}: {found.passage}")
    return found


def _ask_file(chosen: "ManyRequest", as_json: bool) -> None:
    from lama_core.probes.cloze.many import MAX_BYTES, ManyAnswer, ask_lines, read_file

    if chosen.file == "-":
        lines = read_file(sys.stdin.buffer.read(MAX_BYTES + 1), "Standard input")
    else:
        path = given_path(chosen.file)
        lines = read_file(read_bytes(path, MAX_BYTES), path.name)
    opened, words = open_asked(chosen)
    with show.progress() as on_progress:
        answer = ManyAnswer(
            lines,
            words,
            tuple(
                ask_lines(
                    model,
                    lines,
                    words,
                    context=chosen.context,
                    renormalise=chosen.renormalise,
                    n_rescored=chosen.n_rescored,
                    on_progress=on_progress,
                )
                for model in opened
            ),
        )
    if as_json:
        show.print_json(answer.to_json())
        return
    rows = [
        (
            line.number,
            line.text,
            line.gold,
            *(cell for model in answer.models for cell in _first_cells(model, row)),
        )
        for row, line in enumerate(lines)
    ]
    heads = [head for model in answer.models for head in (model.name, "log-prob", "gold's rank")]
    show.print_table(("line", "text", "gold", *heads), rows)
    print()
    for model in answer.models:
        print(f"{model.name}: {model.summary()}{show.computed(model.precision, model.device)}")


def _first_cells(model: "ModelOnMany", row: int) -> tuple[str, str, str]:
    """A model's first answer to a line, its log-probability, and the gold's rank."""
    answer = model.answers[row]
    if answer.blank is None:
        return answer.fault, "", ""
    first, gold = answer.blank.predictions[0], answer.blank.gold
    begins = f" → {first.begins}" if first.begins else ""
    right = " ✓" if answer.is_right else ""
    return (
        first.token + begins + right,
        fixed(first.log_prob, 2),
        f"{gold.rank:,}{'' if gold.in_candidates else ' (no candidate)'}" if gold else "",
    )


def _ask_relation(chosen: "RelationRequest", as_json: bool) -> None:
    from lama_core.datasets import load_dataset
    from lama_core.probes.cloze.by_relation import ask_relation_of_all, make_question

    question = make_question(
        load_dataset(chosen.dataset),
        chosen.relation,
        chosen.subject,
        chosen.gold,
        mined=chosen.mined,
    )
    opened, words = open_asked(chosen)
    answer = ask_relation_of_all(
        opened,
        question,
        words,
        context=chosen.context,
        renormalise=chosen.renormalise,
        n_rescored=chosen.n_rescored,
    )
    if as_json:
        show.print_json(answer.to_json())
        return
    for line in _about(question):
        print(line)
    for model in answer.models:
        print()
        _print_wordings(question, model, words.name)


def _about(question: "RelationQuestion") -> Sequence[str]:
    """What is asked, what the data says of it, and what was left out."""
    known = ", ".join(question.objects) or "nothing of this subject"
    lines = [
        f"{question.relation} {question.label} of {question.subject}, gold: {question.gold or '-'}",
        f"{question.dataset} says: {known}",
    ]
    if question.n_left_out:
        every = len(question.wordings) + question.n_left_out
        lines.append(f"asked: the first {len(question.wordings)} of {every} wordings")
    return lines


def _print_wordings(question: "RelationQuestion", model: "ModelOnRelation", words: str) -> None:
    """A model's answers, a row a wording, under how far they agree."""
    from lama_core.probes.cloze.by_relation import first_answers

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
    size += show.computed(model.precision, model.device)
    title = f"{model.name}: {same}, the negated aside; {size}"
    show.print_table(
        ("wording", "sentence", "first answer", "prob", "gold's rank", "note"), rows, title=title
    )
