"""Which wording a run asks its facts in: the prompt sets that there are, by name.

A new one is a row in `PROMPT_SETS`, and, where its texts come about in a way of their own, a row in
`questions.ASKING`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lama_core.datasets.library.installed import installed_dir
from lama_core.datasets.prompt_sets import COMBINATIONS, load_pool
from lama_core.datasets.variants import negate_template
from lama_core.errors import NotFetched, UserError, did_you_mean
from lama_core.types import Relation

PromptKind = Literal["template", "sentences", "negated", "misprimed", "ten sentences"]


@dataclass(frozen=True, slots=True)
class PromptSet:
    """The prompts of a run.

    name: as the user chose it. kind: where a query's text comes from: the relation's templates, or
    the fact's own sentences. templates: relation -> templates, for the relations that have any.
    """

    name: str
    kind: PromptKind = "template"
    templates: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def of(self, relation: str) -> tuple[str, ...]:
        """The templates of one relation; empty where it has none."""
        return dict(self.templates).get(relation, ())


@dataclass(frozen=True, slots=True)
class Wording:
    """A prompt set as a user chooses it.

    meaning: for people. lacking: what data lack that it gives nothing to ask of. templates: of a
    relation.
    """

    name: str
    kind: PromptKind
    meaning: str
    lacking: str
    templates: Callable[[Relation], tuple[str, ...]] = lambda _: ()


def _templates(relation: Relation) -> tuple[str, ...]:
    return tuple(prompt.template for prompt in relation.prompts)


def _negated(relation: Relation) -> tuple[str, ...]:
    """The negated template of the data, else the manual one with its verb negated."""
    found = relation.negated_template
    if found is None and relation.prompts:
        found = negate_template(relation.prompts[0].template)
    return (found,) if found else ()


_NO_TEXT = "no relation has a template and no fact a sentence"
_WORDINGS = (
    Wording(
        "manual",
        "template",
        "each relation's own template, or the fact's sentence if it has none",
        _NO_TEXT,
        lambda relation: _templates(relation)[:1],
    ),
    Wording(
        "paraphrases",
        "template",
        "the own template and every paraphrase of it",
        _NO_TEXT,
        _templates,
    ),
    Wording(
        "sentences",
        "sentences",
        "the first sentence that states the fact",
        "no fact has a sentence",
    ),
    Wording(
        "ten-sentences",
        "ten sentences",
        "ten sentences a fact, at most 100 facts a relation",
        "no fact has ten sentences",
    ),
    Wording(
        "negated",
        "negated",
        "the negated template or sentence",
        "no template can be negated and no fact has a negated sentence",
        _negated,
    ),
    Wording(
        "misprimed",
        "misprimed",
        "the query after a misleading word, as in “Paris? ...”",
        "no relation has an object to mislead with",
        lambda relation: _templates(relation)[:1],
    ),
)
PROMPT_SETS = {one.name: one for one in _WORDINGS}
# LPAQA's sets, by the names of its paper.
LPAQA_SETS = tuple(name for name in COMBINATIONS if name not in ("manual", "user", "all"))


def make_prompt_set(name: str, relations: Sequence[Relation]) -> PromptSet:
    """The prompts that a user means by `name`, for these relations.

    name: one of `PROMPT_SETS`; one of `LPAQA_SETS`, once its prompts are here; or a folder that
    holds such prompts, all of which are asked.
    Raises UserError for an unknown name, or prompts for none of the relations.
    """
    wording = PROMPT_SETS.get(name)
    if wording is None:
        return _lpaqa_prompts(name, relations)
    templates = [(relation.name, wording.templates(relation)) for relation in relations]
    return PromptSet(name, wording.kind, tuple((key, found) for key, found in templates if found))


def _lpaqa_prompts(name: str, relations: Sequence[Relation]) -> PromptSet:
    is_folder = Path(name).expanduser().is_dir()
    if not is_folder and name not in LPAQA_SETS:
        known = (*PROMPT_SETS, *LPAQA_SETS)
        raise UserError(
            f"Unknown prompts {name!r}{did_you_mean(name, known)}: choose {', '.join(known)}, or a "
            "folder of LPAQA's prompts."
        )
    folder = Path(name).expanduser() if is_folder else installed_dir("lpaqa")
    if not folder.is_dir():
        raise NotFetched(f"LPAQA's prompts {name!r} are", "lpaqa")
    chosen = []
    for relation in relations:
        pool = load_pool(relation, folder=folder)
        templates = tuple(pool.templates[at] for at in pool.members("all" if is_folder else name))
        if templates:
            chosen.append((relation.name, templates))
    if not chosen:
        raise UserError(f"{folder} has no prompts {name!r} for any of the chosen relations.")
    return PromptSet(folder.name if is_folder else name, "template", tuple(chosen))
