"""Queries to several models about one subject and relation, in many wordings.

The wordings are the relation's manual template and its paraphrases, LPAQA's and ParaRel's wordings
of the same relation if they are installed, and the negated template. Mined prompts (LPAQA's, and
mined prompts of the starter facts) are included only on request: they were extracted from texts by
pattern, and many don't express the relation. Of wordings that differ only in spaces, the first is
kept.

The gold answer is wrong for a negated sentence, so negated wordings don't count for the agreement.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal

from lama_core.datasets import Dataset, load_dataset, pararel
from lama_core.datasets.library.installed import STARTER, installed_dir
from lama_core.datasets.prompt_sets import load_pool, normalise_template
from lama_core.errors import UserError, did_you_mean
from lama_core.models.protocols import KINDS, BlankFiller, Context, Kind
from lama_core.paths import ASSETS
from lama_core.queries.blank_answers import (
    check_gold,
    marked_answer,
    query_in_batches,
)
from lama_core.queries.kind import Answer, Asked, Calls, QueryFunction, QueryKind
from lama_core.requests import argument, option
from lama_core.scoring import shared_fields
from lama_core.scoring.blanks import BLANK, fill, shows_subject
from lama_core.scoring.limits import Limits
from lama_core.scoring.model_info import AboutModel, model_fields
from lama_core.scoring.prompt_choice import PROMPT_SETS
from lama_core.scoring.queries import gather_knowledge
from lama_core.tables import Column, Table, decimals, json_row, make_table, thousands
from lama_core.texts import word_key
from lama_core.types import Prompt, Query, Relation

MAX_WORDINGS = 60
MAX_SUBJECT = 200

BLIND = "doesn't see the subject"
PICKED_BLIND = "ranks proposed words, some of them proposed without the subject"

WordingKind = Literal["manual", "paraphrase", "mined", "paraphrase of a mined one", "negated"]
SHOWN_KINDS: dict[WordingKind, str] = {"manual": "the data's template", "negated": "negation"}
RULE = "rule"  # the source of a wording that a rule negates
MINED: tuple[WordingKind, ...] = ("mined", "paraphrase of a mined one")
# Prompt set of a pool -> kind.
ORIGINS: dict[str, WordingKind] = {
    "mined": "mined",
    "mined-paraphrased": "paraphrase of a mined one",
    "manual-paraphrased": "paraphrase",
}


@dataclass(frozen=True, kw_only=True)
class RelationRequest(shared_fields.ClozeSettings, command="relation", python="relation"):
    """The fields of `relation`: a relation and a subject, queried in every wording."""

    relation: Annotated[str, argument("The relation's name, such as P36.")] = field(kw_only=False)
    subject: Annotated[str, option("The subject of the relation, such as France.")]
    dataset: Annotated[str, option("The dataset of the relation: a name or a folder.")] = STARTER
    mined: Annotated[bool, option("Include mined prompts.")] = False
    gold: Annotated[
        str | None,
        option("The gold (right) answer. Default: the subject's first object in the dataset."),
    ] = None
    renormalise: shared_fields.Renormalise = False


@dataclass(frozen=True, slots=True)
class RelationWording:
    """One wording of a relation; source: its dataset, or `rule` for a negation made by rule."""

    kind: WordingKind
    source: str
    template: str
    weight: float | None = None

    def query(self, subject: str) -> Query:
        """Return the query about a subject."""
        return fill(self.template, subject)

    def note(self, kind: Kind, context: Context) -> str:
        """Return a note if a model of this kind doesn't see the subject; empty if it does."""
        sees = KINDS[kind].sees_both or shows_subject(self.template, "left")
        return "" if sees else BLIND if context == "left" else PICKED_BLIND


@dataclass(frozen=True, slots=True)
class RelationQuestion:
    """The queries that every model gets.

    Attributes:
        dataset: Name of the dataset.
        relation: Name of the relation.
        label: The relation in words.
        subject: The subject.
        objects: The subject's objects in the dataset, in file order.
        gold: The gold answer, if any.
        wordings: The wordings that are queried.
        n_mined: Number of mined prompts that exist, included or not.
        n_left_out: Number of wordings beyond `MAX_WORDINGS`.
    """

    dataset: str
    relation: str
    label: str
    subject: str
    objects: tuple[str, ...]
    gold: str | None
    wordings: tuple[RelationWording, ...]
    n_mined: int = 0
    n_left_out: int = 0

    @property
    def queries(self) -> tuple[Query, ...]:
        """The query of each wording."""
        return tuple(wording.query(self.subject) for wording in self.wordings)

    @property
    def n_agreeing(self) -> int:
        """Number of wordings that count for the agreement: all except negated ones."""
        return sum(wording.kind != "negated" for wording in self.wordings)

    def has(self, word: str) -> bool:
        """Return whether a word is the gold answer or another object of the subject."""
        return word_key(word) in {word_key(one) for one in (self.gold, *self.objects) if one}


@dataclass(frozen=True, slots=True)
class WordingRow:
    """A row of the table of one model's answers."""

    model: Annotated[str, Column("The model.", in_frame=False)]
    kind: Annotated[WordingKind, Column("The kind of wording.")]
    source: Annotated[str, Column("The wording's dataset, or rule.")]
    template: Annotated[str, Column("The wording, with [X] and [Y].")]
    text: Annotated[str, Column("The wording with the subject and [MASK].")]
    context: Annotated[Context, Column("The context that the model saw.")]
    note: Annotated[str, Column("A note if the model doesn't see the subject.")]
    precision: Annotated[str, Column("The model's precision.", in_frame=False)]
    device: Annotated[str, Column("The model's device.", in_frame=False)]
    word: Annotated[str, Column("The first answer.")]
    begins: Annotated[str | None, Column("The longer word that it begins, if any.")]
    prob: Annotated[float, Column("Its probability.", format=decimals(3))]
    prob_of: Annotated[str, Column("The words over which probabilities sum to 1.")]
    log_prob: Annotated[float, Column("Its natural log-probability.")]
    right: Annotated[bool | None, Column("Whether it is right; None if that isn't known.")]
    gold: Annotated[str | None, Column("The gold answer.")]
    gold_rank: Annotated[
        int | None, Column("The gold answer's rank.", "rank of the gold answer", thousands)
    ]
    gold_log_prob: Annotated[float | None, Column("The gold answer's log-probability.")]
    not_ranked: Annotated[
        str,
        Column(
            "A likelier token that isn't a candidate, and why; empty if there is none.", "likelier"
        ),
    ]
    wording: Annotated[
        str, Column("Kind, and another source than the data.", in_json=False, in_frame=False)
    ]
    sentence: Annotated[str, Column("The text with ___.", in_json=False, in_frame=False)]
    answer: Annotated[
        str,
        Column("The first answer, with marks.", "first answer", in_json=False, in_frame=False),
    ]


@dataclass(frozen=True, slots=True)
class RelationModelAnswers(AboutModel):
    """One model's answers, one for each wording."""

    n_candidates: int
    rows: tuple[WordingRow, ...]


def relation_wordings(dataset: Dataset, relation: Relation) -> tuple[RelationWording, ...]:
    """Return all installed wordings of a relation, the negated one last.

    Wordings of a source that publishes weights are in descending order of weight.
    """
    found: dict[str, RelationWording] = {}

    def add(kind: WordingKind, source: str, prompt: Prompt) -> None:
        text = " ".join(prompt.template.split())
        found.setdefault(
            normalise_template(text), RelationWording(kind, source, text, prompt.weight)
        )

    for number, prompt in enumerate(relation.prompts):
        # The first prompt in a user's table is the relation's template.
        is_manual = prompt.origin == "manual" or (prompt.origin == "user" and number == 0)
        other: WordingKind = "mined" if prompt.origin == "mined" else "paraphrase"
        add("manual" if is_manual else other, dataset.name, prompt)
    folders = {"lpaqa": installed_dir("lpaqa") / "prompt"}
    if dataset.name == STARTER:
        folders = {STARTER: ASSETS / "prompts" / STARTER} | folders
    for source, folder in folders.items():
        entries = load_pool(relation, folder=folder).entries if folder.is_dir() else ()
        for origin, kind in ORIGINS.items():
            prompts = [entry.prompt for entry in entries if origin in entry.origins]
            for prompt in sorted(prompts, key=lambda prompt: -(prompt.weight or 0.0)):
                add(kind, source, prompt)
    if installed_dir("pararel").is_dir():
        for prompt in pararel.load_patterns(installed_dir("pararel")).get(relation.name, ()):
            add("paraphrase", "pararel", prompt)
    for template in PROMPT_SETS["negated"].templates(relation):
        add("negated", dataset.name if relation.negated_template else RULE, Prompt(template))
    return tuple(found.values())


def subjects_of(dataset: Dataset, relation: str) -> tuple[str, ...]:
    """Return the distinct subjects of a relation, in file order."""
    return tuple(dict.fromkeys(fact.subject for fact in dataset.facts_of(relation)))


def relations_with_templates(dataset: Dataset) -> tuple[Relation, ...]:
    """Return the relations that have a template, or facts with templates."""
    return tuple(relation for relation in dataset.relations if relation.templates)


def check_subject(text: str) -> str:
    """Return a subject with single spaces. Raises UserError if it is empty, too long or a blank."""
    subject = " ".join(text.split())
    if not subject:
        raise UserError("The subject is empty: type a name or a word.")
    if len(subject) > MAX_SUBJECT:
        raise UserError(
            f"The subject has {len(subject):,} characters; the maximum is {MAX_SUBJECT}."
        )
    if blank := BLANK.search(subject):
        raise UserError(
            f"The subject contains a blank ({blank[0]}), which the template already has: remove it."
        )
    return subject


def make_relation_question(
    dataset: Dataset, relation: str, subject: str, gold: str | None = None, *, mined: bool = False
) -> RelationQuestion:
    """Return the queries about a subject and a relation.

    Args:
        dataset: The dataset.
        relation: Name of the relation.
        subject: The subject.
        gold: The gold answer; by default the subject's first object.
        mined: Whether to include mined prompts.

    Raises:
        UserError: If the relation has no template, or the subject or gold answer is invalid.
    """
    found = dataset.relation(relation)
    subject = check_subject(subject)
    if found.own_templates:
        facts = (fact for fact in dataset.facts_of(relation) if fact.subject == subject)
        own = dict.fromkeys(template for fact in facts for template in fact.templates)
        found = replace(found, prompts=tuple(Prompt(template, "user") for template in own))
    if not found.prompts:
        of = f"{relation} of {dataset.name}"
        raise UserError(
            f"{of} has no template for {subject!r}: choose one of its subjects."
            if found.own_templates
            else f"{of} has no template, only a sentence for each fact: choose a relation with a "
            "template."
        )
    check_gold(gold or "")
    objects = gather_knowledge(dataset, (relation,)).objects.get((relation, subject), ())
    installed = relation_wordings(dataset, found)
    wordings = [wording for wording in installed if mined or wording.kind not in MINED]
    negated = [wording for wording in wordings if wording.kind == "negated"]
    others = [wording for wording in wordings if wording.kind != "negated"]
    chosen = (*others[: MAX_WORDINGS - len(negated)], *negated)
    return RelationQuestion(
        dataset=dataset.name,
        relation=found.name,
        label=found.label,
        subject=subject,
        objects=objects,
        gold=(gold or "").strip() or next(iter(objects), None),
        wordings=chosen,
        n_mined=sum(wording.kind in MINED for wording in installed),
        n_left_out=len(wordings) - len(chosen),
    )


def first_answers(model: RelationModelAnswers) -> tuple[tuple[str, int], ...]:
    """Return (first answer, number of wordings with it) of a model, most frequent first.

    Negated wordings don't count. Equal words (`texts.word_key`) count as one answer.
    """
    words = [row.word for row in model.rows if row.kind != "negated"]
    spellings = {word_key(word): word for word in reversed(words)}
    return tuple((spellings[word], n) for word, n in Counter(map(word_key, words)).most_common())


AskedRelation = Asked[RelationRequest, RelationQuestion]
RelationAnswer = Answer[RelationRequest, RelationQuestion, RelationModelAnswers]


class RelationKind(QueryKind[RelationRequest, RelationQuestion, RelationModelAnswers]):
    """A relation of a subject, in every wording.

    Args:
        load: Loads a dataset by its name.
    """

    name = "wordings"
    example = "relation P36 --subject France"
    row = WordingRow

    def __init__(self, load: Callable[[str], Dataset] = load_dataset) -> None:
        self._load = load

    def prepare(self, request: RelationRequest, limits: Limits) -> RelationQuestion:
        """Return the wordings; a subject that the dataset doesn't have is a note.

        Raises:
            UserError: As `make_relation_question`, or if the dataset can't be loaded.
        """
        dataset = self._load(request.dataset)
        question = make_relation_question(
            dataset, request.relation, request.subject, request.gold, mined=request.mined
        )
        if not question.objects:
            known = subjects_of(dataset, request.relation)
            request.on_note(
                f"{dataset.name} has no fact of {request.relation} with the subject "
                f"{request.subject!r}{did_you_mean(request.subject, known)}."
            )
        return question

    def answer(
        self, model: BlankFiller, asked: AskedRelation, calls: Calls
    ) -> RelationModelAnswers:
        """Return one model's first answer to each wording."""
        request, question = asked.request, asked.shared
        answers = query_in_batches(
            model,
            question.queries,
            asked.candidates,
            gold=question.gold,
            context=request.context,
            renormalise=request.renormalise,
            n_rescored=request.n_rescored,
            limits=calls.limits,
        )
        about, rows = AboutModel(**model_fields(model)), []
        for wording, answer in zip(question.wordings, answers, strict=True):
            query, blank = wording.query(question.subject), answer.blanks[0]
            first, gold = blank.predictions[0], blank.gold
            right = question.has(first.token) if question.gold or question.objects else None
            # A negated wording rules the right answers out; others than these say nothing.
            marked = right if wording.kind != "negated" else False if right else None
            kind = SHOWN_KINDS.get(wording.kind, wording.kind)
            of_data = wording.source in (question.dataset, RULE)
            rows.append(
                WordingRow(
                    model=about.name,
                    kind=wording.kind,
                    source=wording.source,
                    template=wording.template,
                    text=query.text(),
                    context=answer.context,
                    note=wording.note(model.kind, answer.context),
                    precision=about.precision,
                    device=about.device,
                    word=first.token,
                    begins=first.begins,
                    prob=first.prob,
                    prob_of=blank.shown_over(),
                    log_prob=first.log_prob,
                    right=None if wording.kind == "negated" else right,
                    gold=question.gold,
                    gold_rank=gold.rank if gold else None,
                    gold_log_prob=gold.log_prob if gold else None,
                    wording=kind if of_data else f"{kind} ({wording.source})",
                    sentence=query.text("___"),
                    answer=marked_answer(first.token, first.begins, marked),
                    not_ranked=blank.describe_outside(),
                )
            )
        return RelationModelAnswers(
            n_candidates=answers[0].n_candidates, rows=tuple(rows), **model_fields(model)
        )

    def rows(self, asked: AskedRelation, one: RelationModelAnswers) -> Sequence[WordingRow]:
        """Return a row for each wording."""
        return one.rows

    def printed(self, answer: RelationAnswer) -> Iterator[Table | str]:
        """Yield the known objects, then each model's table."""
        question = answer.asked.shared
        known = ", ".join(question.objects) or "none"
        yield (
            f"{question.relation} {question.label}: {question.subject}, "
            f"gold answer: {question.gold or '-'}"
        )
        yield f"objects in {question.dataset}: {known}"
        if question.n_left_out:
            n = len(question.wordings)
            yield f"queried: the first {n} of {n + question.n_left_out} wordings"
        for one in answer.models:
            yield ""
            yield from self.tables(answer.asked, one)

    def tables(self, asked: AskedRelation, one: RelationModelAnswers) -> Iterator[Table | str]:
        """Yield the answers; the title counts the wordings with the most frequent answer."""
        word, n = first_answers(one)[0]
        total = asked.shared.n_agreeing
        same = f"the first answer is {word} in {n} of {total} wordings"
        if 1 == n < total:
            same = f"the first answers in {total} wordings all differ"
        settings = f"{asked.candidates.described(one.n_candidates)}{one.computed}"
        yield make_table(
            WordingRow,
            one.rows,
            "wording sentence answer prob gold_rank note"
            + " not_ranked" * any(row.not_ranked for row in one.rows),
            title=f"{one.name}: {same}, not counting the negated wording; {settings}",
        )

    def title(self, request: RelationRequest) -> str:
        """Return the relation and the subject."""
        return f"{request.relation} of {request.subject}"

    def head(self, answer: RelationAnswer) -> dict[str, Any]:
        """Return the question, without its wordings, and the name of the candidates."""
        question = answer.asked.shared
        return {
            **{name: value for name, value in asdict(question).items() if name != "wordings"},
            "n_wordings": len(question.wordings),
            "n_agreeing": question.n_agreeing,
            "candidates": answer.asked.candidates.name,
        }

    def json(self, asked: AskedRelation, one: RelationModelAnswers) -> dict[str, Any]:
        """Return the number of candidates, and how often each first answer was given."""
        return {
            "name": one.name,
            "kind": one.kind,
            "n_candidates": one.n_candidates,
            "first_answers": [{"word": word, "wordings": n} for word, n in first_answers(one)],
        }

    def foot(self, answer: RelationAnswer) -> dict[str, Any]:
        """Return the rows of all models, wording by wording."""
        tables = zip(*(one.rows for one in answer.models), strict=True)
        return {"answers": [json_row(row) for rows in tables for row in rows]}


relation = QueryFunction(
    RelationRequest,
    RelationKind(),
    """Query models for a relation of a subject, in every wording in the dataset.

    Returns:
        A DataFrame with a row for each model and wording: its first word, and the gold answer's
        rank.

    Raises:
        UserError: If the dataset, relation, model or candidate list is unknown.

    >>> import lama_core as lama
    >>> found = lama.relation("P30", subject="Norway")
    >>> found[["kind", "word", "gold_rank"]].head(2)
             kind    word  gold_rank
    0      manual  norway          7
    1  paraphrase  europe          1
    """,
)
