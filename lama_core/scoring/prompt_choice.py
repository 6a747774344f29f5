"""The prompt sets that a run can use, by name.

To add one, add a row to `_WORDINGS`; if its texts are made in a new way, also one to
`queries.QUESTION_MAKERS`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lama_core.datasets.library.installed import installed_dir
from lama_core.datasets.prompt_sets import COMBINATIONS, load_pool
from lama_core.datasets.variants import negate_template
from lama_core.errors import NotFetchedError, UserError, did_you_mean
from lama_core.types import Relation

PromptKind = Literal["template", "sentences", "negated", "misprimed", "ten sentences"]


@dataclass(frozen=True, slots=True)
class PromptSet:
    """The prompts of a run.

    Attributes:
        name: The name that the user chose.
        kind: How the text of a query is made, such as from the relation's templates or from the
            fact's sentences.
        templates: Relation -> templates (as `Relation.templates`), for the relations that have any.
    """

    name: str
    kind: PromptKind = "template"
    templates: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def of(self, relation: str) -> tuple[str, ...]:
        """Return the templates of one relation; empty if it has none."""
        return dict(self.templates).get(relation, ())


@dataclass(frozen=True, slots=True)
class PromptSetKind:
    """A named prompt set that a user can choose.

    Attributes:
        name: Its name in requests.
        kind: As for `PromptSet`.
        meaning: Its explanation for users.
        lacking: Why it can yield no query for a dataset, as the end of a sentence.
        templates: Returns the templates of a relation.
    """

    name: str
    kind: PromptKind
    meaning: str
    lacking: str
    templates: Callable[[Relation], tuple[str, ...]] = lambda _: ()


def _negated(relation: Relation) -> tuple[str, ...]:
    """Return the dataset's negated template, else the manual one with its verb negated."""
    template = relation.negated_template
    if template is None and relation.prompts:
        template = negate_template(relation.prompts[0].template)
    return (template,) if template else ()


_NO_TEXT = "no relation has a template and no fact a sentence"
PROMPT_SETS = {
    wording.name: wording
    for wording in (
        PromptSetKind(
            "manual",
            "template",
            "the manual template of the relation or fact, or the fact's sentence if it has none",
            _NO_TEXT,
            lambda relation: relation.templates[:1],
        ),
        PromptSetKind(
            "paraphrases",
            "template",
            "the manual template and all its paraphrases",
            _NO_TEXT,
            lambda relation: relation.templates,
        ),
        PromptSetKind(
            "sentences",
            "sentences",
            "the first sentence that states the fact",
            "no fact has a sentence",
        ),
        PromptSetKind(
            "ten-sentences",
            "ten sentences",
            "ten sentences per fact, at most 100 facts per relation",
            "no fact has ten sentences",
        ),
        PromptSetKind(
            "negated",
            "negated",
            "the negated template or sentence",
            "no template can be negated and no fact has a negated sentence",
            _negated,
        ),
        PromptSetKind(
            "misprimed",
            "misprimed",
            "the query with a misleading word in front, as in “Paris? ...”",
            "no relation has a wrong object that could mislead",
            lambda relation: relation.templates[:1],
        ),
    )
}
# LPAQA's sets, named as in the paper.
LPAQA_SETS = tuple(name for name in COMBINATIONS if name not in ("manual", "user", "all"))


def make_prompt_set(name: str, relations: Sequence[Relation]) -> PromptSet:
    """Return the prompts of some relations.

    name: One of `PROMPT_SETS`; one of `LPAQA_SETS`, if its prompts are installed; or a folder with
    prompts in LPAQA's layout, all of which are used.

    Raises:
        UserError: If the name is unknown, or an LPAQA set has no prompts for these relations.
        NotFetchedError: If LPAQA's prompts aren't installed.
    """
    if wording := PROMPT_SETS.get(name):
        pairs = [(relation.name, wording.templates(relation)) for relation in relations]
        return PromptSet(name, wording.kind, tuple(pair for pair in pairs if pair[1]))
    is_folder = Path(name).expanduser().is_dir()
    if not is_folder and name not in LPAQA_SETS:
        known = (*PROMPT_SETS, *LPAQA_SETS)
        raise UserError(
            f"Unknown prompts {name!r}{did_you_mean(name, known)}: choose {', '.join(known)}, or a "
            "folder with prompts in LPAQA's layout."
        )
    folder = Path(name).expanduser() if is_folder else installed_dir("lpaqa")
    if not folder.is_dir():
        raise NotFetchedError(f"LPAQA's prompts {name!r} are", "lpaqa")
    chosen = []
    for relation in relations:
        pool = load_pool(relation, folder=folder)
        templates = tuple(pool.templates[at] for at in pool.members("all" if is_folder else name))
        if templates:
            chosen.append((relation.name, templates))
    if not chosen:
        raise UserError(f"{folder} has no prompts {name!r} for any of the chosen relations.")
    return PromptSet(folder.name if is_folder else name, "template", tuple(chosen))
