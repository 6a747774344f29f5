"""A relation and a subject put to several models in many wordings at once.

The wordings: the relation's own template and its paraphrases; LPAQA's and ParaRel's of the same
relation, once they are here; and the negated template. Mined prompts (LPAQA's, and those that come
with the starter facts) only if they are asked for: they were found in texts by their words, and
many mean something else. Two wordings that differ only in spaces are one, at the earlier place.

What is right in a negated sentence is not the gold, so its answers take no part in the agreement.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from lama_core.candidates.columns import Candidates
from lama_core.datasets import Dataset, pararel
from lama_core.datasets.library.installed import STARTER, installed_dir
from lama_core.datasets.prompt_sets import load_pool, normalise_template
from lama_core.errors import UserError
from lama_core.models.protocols import KINDS, BlankFiller, Context, Kind
from lama_core.paths import ASSETS
from lama_core.probes.cloze.query import Gold, Prediction, ask_queries, check_gold, gold_columns
from lama_core.probes.model_info import OfModel, model_fields
from lama_core.requests import argument, option
from lama_core.scoring import shared_fields
from lama_core.scoring.blanks import BLANK, fill, shows_subject
from lama_core.scoring.prompt_choice import PROMPT_SETS
from lama_core.scoring.queries import gather_knowledge
from lama_core.types import Prompt, Query, Relation

MAX_WORDINGS = 60
MAX_SUBJECT = 200

BLIND = "sees nothing of the subject"
PICKED_BLIND = "picks the words to rescore without the subject"

WordingKind = Literal["manual", "paraphrase", "mined", "paraphrase of a mined one", "negated"]
MINED: tuple[WordingKind, ...] = ("mined", "paraphrase of a mined one")
# By the sets of a pool.
ORIGINS: dict[str, WordingKind] = {
    "mined": "mined",
    "mined-paraphrased": "paraphrase of a mined one",
    "manual-paraphrased": "paraphrase",
}


@dataclass(frozen=True, kw_only=True)
class RelationRequest(shared_fields.ClozeSettings):
    """A relation and a subject, queried in every wording: the fields of `relation`."""

    command: ClassVar[tuple[str, ...]] = ("relation",)
    python: ClassVar[str] = "relation"

    relation: Annotated[str, argument("The relation's name, such as P36.")] = field(kw_only=False)
    subject: Annotated[str, option("The subject of the relation, such as France.")]
    dataset: Annotated[str, option("The relation's data: a name or a folder.")] = STARTER
    mined: Annotated[bool, option("Query the mined prompts, too.")] = False
    gold: Annotated[
        str | None,
        option("The gold (right) answer. Default: the data's first object of the subject."),
    ] = None
    renormalise: shared_fields.Renormalise = False


@dataclass(frozen=True, slots=True)
class RelationWording:
    """One way to word a relation. source: its data; `rule` for a negation made by a rule."""

    kind: WordingKind
    source: str
    template: str
    weight: float | None = None

    def query(self, subject: str) -> Query:
        """The sentence that is asked."""
        return fill(self.template, subject)

    def note(self, kind: Kind, context: Context) -> str:
        """What a model of this kind doesn't see of the subject, in words; empty if it sees all."""
        if KINDS[kind].sees_both or shows_subject(self.template, "left"):
            return ""
        return BLIND if context == "left" else PICKED_BLIND


@dataclass(frozen=True, slots=True)
class RelationQuestion:
    """What is asked of every model.

    objects: what the data says of the subject, in file order. n_mined: mined prompts that are here,
    asked or not. n_left_out: wordings beyond `MAX_WORDINGS`.
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
        """The sentences, in the wordings' order."""
        return tuple(wording.query(self.subject) for wording in self.wordings)

    @property
    def n_agreeing(self) -> int:
        """How many wordings count for the agreement: all but the negated."""
        return sum(wording.kind != "negated" for wording in self.wordings)

    def is_right(self, wording: RelationWording, word: str) -> bool | None:
        """Whether an answer is the gold or another object; None if none can be right."""
        right = {one.lower() for one in (self.gold, *self.objects) if one}
        return word.lower() in right if right and wording.kind != "negated" else None


@dataclass(frozen=True, slots=True)
class WordingAnswer:
    """A model's first answer to one wording. note, over: in words, as of `BlankAnswer`."""

    context: Context
    note: str
    first: Prediction
    gold: Gold | None
    over: str


@dataclass(frozen=True, slots=True)
class ModelOnRelation(OfModel):
    """One model's answers, in the wordings' order."""

    n_candidates: int
    answers: tuple[WordingAnswer, ...]


@dataclass(frozen=True, slots=True)
class RelationAnswer:
    """All models' answers to all wordings."""

    question: RelationQuestion
    candidates: Candidates
    models: tuple[ModelOnRelation, ...]

    def rows(self) -> list[dict[str, Any]]:
        """A row for each wording and model, of plain values, wording by wording."""
        question = self.question
        return [
            {
                "model": model.name,
                "kind": wording.kind,
                "source": wording.source,
                "template": wording.template,
                "text": wording.query(question.subject).text(),
                "context": answer.context,
                "note": answer.note,
                "precision": model.precision,
                "device": model.device,
                "word": answer.first.token,
                "begins": answer.first.begins,
                "prob": answer.first.prob,
                "prob_of": answer.over,
                "log_prob": answer.first.log_prob,
                "right": question.is_right(wording, answer.first.token),
                **gold_columns(answer.gold),
                "gold": question.gold,
            }
            for number, wording in enumerate(question.wordings)
            for model in self.models
            for answer in (model.answers[number],)
        ]

    def to_json(self) -> dict[str, Any]:
        """The object that `relation --json` prints."""
        asked = self.question
        plain = asdict(asked)
        n_wordings = len(plain.pop("wordings"))
        return {
            **plain,
            "n_wordings": n_wordings,
            "n_agreeing": asked.n_agreeing,
            "candidates": self.candidates.name,
            "models": [
                {
                    "name": model.name,
                    "kind": model.kind,
                    "n_candidates": model.n_candidates,
                    "first_answers": [
                        {"word": word, "wordings": n} for word, n in first_answers(asked, model)
                    ],
                }
                for model in self.models
            ],
            "answers": self.rows(),
        }


def relation_wordings(dataset: Dataset, relation: Relation) -> tuple[RelationWording, ...]:
    """Return every wording of a relation that is here, the negated one last.

    Of a source that publishes weights the weightiest come first.
    """
    found: dict[str, RelationWording] = {}
    for kind, source, prompt in _all_prompts(dataset, relation):
        text = " ".join(prompt.template.split())
        wording = RelationWording(kind, source, text, prompt.weight)
        found.setdefault(normalise_template(text), wording)
    return tuple(found.values())


def _all_prompts(dataset: Dataset, relation: Relation) -> Iterator[tuple[WordingKind, str, Prompt]]:
    """Kind, source and prompt of every wording."""
    for number, prompt in enumerate(relation.prompts):
        # The first that a user's table gives is its template.
        own = prompt.origin == "manual" or (prompt.origin == "user" and number == 0)
        other: WordingKind = "mined" if prompt.origin == "mined" else "paraphrase"
        yield "manual" if own else other, dataset.name, prompt
    folders = {"lpaqa": installed_dir("lpaqa") / "prompt"}
    if dataset.name == STARTER:
        folders = {STARTER: ASSETS / "prompts" / STARTER} | folders
    for source, folder in folders.items():
        entries = load_pool(relation, folder=folder).entries if folder.is_dir() else ()
        for origin, kind in ORIGINS.items():
            prompts = [one.prompt for one in entries if origin in one.origins]
            for prompt in sorted(prompts, key=lambda one: -(one.weight or 0.0)):
                yield kind, source, prompt
    if installed_dir("pararel").is_dir():
        patterns = pararel.load_patterns(installed_dir("pararel"))
        for prompt in patterns.get(relation.name, ()):
            yield "paraphrase", "pararel", prompt
    for template in PROMPT_SETS["negated"].templates(relation):
        source = dataset.name if relation.negated_template else "rule"
        yield "negated", source, Prompt(template)


def subjects_of(dataset: Dataset, relation: str) -> tuple[str, ...]:
    """The relation's different subjects, in file order."""
    return tuple(dict.fromkeys(fact.subject for fact in dataset.facts_of(relation)))


def worded_relations(dataset: Dataset) -> tuple[Relation, ...]:
    """The relations that have a template; the others' facts bring their own sentences."""
    return tuple(relation for relation in dataset.relations if relation.prompts)


def make_question(
    dataset: Dataset, relation: str, subject: str, gold: str | None = None, *, mined: bool = False
) -> RelationQuestion:
    """Return what is asked of a subject and a relation.

    mined: ask the mined prompts, too. gold: by default the first object of the subject.
    Raises UserError for a relation without a template, and a subject or gold that can't be one.
    """
    found = dataset.relation(relation)
    if not found.prompts:
        raise UserError(
            f"{relation} of {dataset.name} has no template: its facts bring their own sentences. "
            "Choose a relation with a template, or ask a sentence."
        )
    subject = " ".join(subject.split())
    if not subject:
        raise UserError("The subject is empty: type a name or a word.")
    if len(subject) > MAX_SUBJECT:
        raise UserError(
            f"The subject has {len(subject):,} characters; at most {MAX_SUBJECT} are taken."
        )
    check_gold(gold or "")
    if blank := BLANK.search(subject):
        raise UserError(
            f"The subject holds a blank ({blank[0]}): the relation's template brings its own."
        )
    objects = gather_knowledge(dataset, (relation,)).objects.get((relation, subject), ())
    known = relation_wordings(dataset, found)
    wordings = [one for one in known if mined or one.kind not in MINED]
    negated = [one for one in wordings if one.kind == "negated"]
    plain = [one for one in wordings if one.kind != "negated"]
    chosen = (*plain[: MAX_WORDINGS - len(negated)], *negated)
    gold = (gold or "").strip() or next(iter(objects), None)
    n_mined = sum(one.kind in MINED for one in known)
    asked = (dataset.name, found.name, found.label, subject, objects, gold, chosen)
    return RelationQuestion(*asked, n_mined, len(wordings) - len(chosen))


def ask_relation(
    model: BlankFiller, question: RelationQuestion, candidates: Candidates, **options: Any
) -> ModelOnRelation:
    """One model's first answer to each wording, by the options of `ask.ask_queries`."""
    answers = ask_queries(model, question.queries, candidates, gold=question.gold, **options)
    found = []
    for wording, answer in zip(question.wordings, answers, strict=True):
        blank, note = answer.blanks[0], wording.note(model.kind, answer.context)
        first, over = blank.predictions[0], blank.shown_over()
        found.append(WordingAnswer(answer.context, note, first, blank.gold, over))
    n = answers[0].n_candidates
    return ModelOnRelation(n_candidates=n, answers=tuple(found), **model_fields(model))


def ask_relation_of_all(
    models: Iterable[BlankFiller],
    question: RelationQuestion,
    candidates: Candidates,
    **options: Any,
) -> RelationAnswer:
    """Every model's answers, in the models' order. options: of `ask_relation`."""
    answers = tuple(ask_relation(model, question, candidates, **options) for model in models)
    return RelationAnswer(question, candidates, answers)


def first_answers(
    question: RelationQuestion, model: ModelOnRelation
) -> tuple[tuple[str, int], ...]:
    """Each first answer of a model, most frequent first, and its plain wordings."""
    words = [
        answer.first.token
        for wording, answer in zip(question.wordings, model.answers, strict=True)
        if wording.kind != "negated"
    ]
    written = {word.lower(): word for word in reversed(words)}
    counts = Counter(word.lower() for word in words)
    return tuple((written[word], n) for word, n in counts.most_common())
