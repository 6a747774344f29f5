"""The prompts of a relation by origin, and the paper's combinations of them.

    manual              LAMA's template
    mined               found in sentences with a subject and its object
    mined-paraphrased   paraphrases of the best mined prompt
    manual-paraphrased  paraphrases of the manual prompt
    user                written by the user

Prompts that differ only in spaces are duplicates: `[X] of [Y] .` and `[X] of [Y].` give the same
tokens with every model. Prompts that differ in case or the full stop are not duplicates. The
released files have duplicates (20 of 527 paraphrases of mined prompts, 19 of 510 of manual ones):
the first in a file is kept, and the others are listed in the notes. Duplicates in a user's prompts
are refused.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from lama_core.datasets.lpaqa import read_prompts
from lama_core.datasets.template_syntax import template_fault
from lama_core.errors import UserError, choose
from lama_core.types import Prompt, Relation

Origin = Literal["manual", "mined", "mined-paraphrased", "manual-paraphrased", "user"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)

# Jiang et al. 2020, section 5.1. A released file of paraphrases begins with the original prompt.
COMBINATIONS: dict[str, tuple[Origin, ...]] = {
    "manual": ("manual",),
    "mine": ("mined",),
    "mine+man": ("mined", "manual"),
    "mine+para": ("mined-paraphrased",),
    "man+para": ("manual", "manual-paraphrased"),
    "user": ("user",),
    "all": ORIGINS,
}
TITLES = {
    "manual": "Manual",
    "mine": "Mined",
    "mine+man": "Mined + manual",
    "mine+para": "Mined + paraphrased",
    "man+para": "Manual + paraphrased",
    "user": "Own",
    "all": "All",
}
MEANINGS = {
    "manual": "the dataset's template",
    "mine": "mined from sentences with a subject and its object",
    "mine+man": "the mined prompts and the manual one",
    "mine+para": "paraphrases of the best mined prompt",
    "man+para": "the manual prompt and its paraphrases",
    "user": "your own prompts",
    "all": "every prompt of the relation",
}
FOLDERS: dict[Origin, str] = {
    "mined": "mine",
    "mined-paraphrased": "paraphrase",
    "manual-paraphrased": "manual_paraphrase",
}

SPACE_BEFORE_SIGN = re.compile(r"\s+([.,;:!?)\]}])(?!\w)|(?<=[(\[{])\s+")


def normalise_template(template: str) -> str:
    """Return the template without spaces that change no tokens, to find duplicates."""
    return SPACE_BEFORE_SIGN.sub(lambda match: match.group(1) or "", " ".join(template.split()))


@dataclass(frozen=True, slots=True)
class PooledPrompt:
    """A prompt and the sets it belongs to, such as `mined` and `mined-paraphrased`.

    aside: whether the prompt is scored but never part of an ensemble.
    """

    prompt: Prompt
    origins: frozenset[Origin]
    aside: bool = False


@dataclass(frozen=True)
class PromptPool:
    """All prompts of one relation without duplicates, in the order of their sets.

    notes: sentences about excluded prompts.
    """

    relation: str
    entries: tuple[PooledPrompt, ...]
    notes: tuple[str, ...] = ()

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompts in order."""
        return tuple(entry.prompt for entry in self.entries)

    @property
    def templates(self) -> tuple[str, ...]:
        """The prompts' texts in order."""
        return tuple(entry.prompt.template for entry in self.entries)

    def members(self, combination: str) -> tuple[int, ...]:
        """Return the positions of a combination's prompts; empty if the relation has none.

        Raises UserError for an unknown combination.
        """
        wanted = set(parse_combination(combination))
        return tuple(at for at, entry in enumerate(self.entries) if entry.origins & wanted)

    def eligible(self, combination: str) -> tuple[int, ...]:
        """Return the positions of a combination's prompts that ensembles may use."""
        return tuple(at for at in self.members(combination) if not self.entries[at].aside)

    @property
    def manual(self) -> int | None:
        """Position of the manual prompt; None without one."""
        return next(
            (at for at, entry in enumerate(self.entries) if "manual" in entry.origins), None
        )

    def find(self, template: str) -> int | None:
        """Return the position of a prompt or its duplicate, or None."""
        known = [normalise_template(text) for text in self.templates]
        wanted = normalise_template(template)
        return known.index(wanted) if wanted in known else None

    def only(self, combinations: Iterable[str]) -> "PromptPool":
        """Return the pool with only the prompts of these combinations."""
        kept = {number for name in combinations for number in self.members(name)}
        return replace(self, entries=tuple(self.entries[number] for number in sorted(kept)))

    def combinations(self) -> tuple[str, ...]:
        """Return the combinations whose sets all have prompts here, and `all`, in paper order.

        Empty if the pool has no prompt.
        """
        here = {origin for entry in self.entries for origin in entry.origins}
        wanted = COMBINATIONS | {"all": tuple(here)} if here else COMBINATIONS
        return tuple(name for name, parts in wanted.items() if here.issuperset(parts))


def parse_combination(name: str) -> tuple[Origin, ...]:
    """Return the sets of a combination. Raises UserError, with the nearest name, if unknown."""
    return COMBINATIONS[choose(name, COMBINATIONS, "prompts")]


def check_templates(templates: Sequence[str], *, others: Iterable[str] = ()) -> None:
    """Raise UserError for a prompt without [X] or [Y], and for a duplicate."""
    seen = {normalise_template(other): other for other in others}
    for template in templates:
        fault = template_fault(template)
        if fault:
            raise UserError(f"The prompt{fault.removeprefix('the template')}.")
        twin = seen.get(normalise_template(template))
        if twin is not None:
            raise UserError(
                f"The prompts {twin!r} and {template!r} differ only in spaces: remove one."
            )
        seen[normalise_template(template)] = template


def make_pool(relation: str, sets: dict[Origin, Sequence[Prompt]]) -> PromptPool:
    """Return the prompts of a relation; duplicates in different sets become one entry.

    Prompts without [X] or [Y] and duplicates within a set are excluded and listed in `notes`.
    """
    entries: dict[str, PooledPrompt] = {}
    notes: list[str] = []
    for origin in ORIGINS:
        for prompt in sets.get(origin, ()):
            fault = template_fault(prompt.template)
            if fault:
                notes.append(f"{relation}, {origin}: {fault}; excluded")
                continue
            key = normalise_template(prompt.template)
            known = entries.get(key)
            if known is None:
                entries[key] = PooledPrompt(replace(prompt, origin=origin), frozenset({origin}))
                continue
            if origin in known.origins:
                notes.append(
                    f"{relation}, {origin}: {prompt.template!r} differs from "
                    f"{known.prompt.template!r} only in spaces; excluded"
                )
            weight = known.prompt.weight if known.prompt.weight is not None else prompt.weight
            entries[key] = PooledPrompt(
                replace(known.prompt, weight=weight), known.origins | {origin}
            )
    return PromptPool(relation, tuple(entries.values()), tuple(notes))


def folders_in(folder: Path) -> dict[Origin, Path]:
    """Return LPAQA's folders in `folder`, or in its `prompt` folder, by origin of their prompts.

    Raises UserError if there are none.
    """
    root = folder / "prompt" if (folder / "prompt").is_dir() else folder
    found = {origin: root / name for origin, name in FOLDERS.items() if (root / name).is_dir()}
    if not found:
        raise UserError(
            f"{folder} has none of LPAQA's folders ({', '.join(FOLDERS.values())}): give their "
            "parent folder."
        )
    return found


def relations_in(folder: Path) -> frozenset[str]:
    """Return the relations that have prompts in a folder. Raises UserError as `folders_in`."""
    files = (file for path in folders_in(folder).values() for file in path.iterdir())
    return frozenset(file.stem for file in files if file.suffix in (".jsonl", ".txt"))


def load_pool(
    relation: Relation, *, folder: Path | None = None, user: Sequence[str] = ()
) -> PromptPool:
    """Return the prompts of a relation: those of its dataset, LPAQA's, and the user's.

    Args:
        relation: Has the manual template and its paraphrases.
        folder: Folder that contains LPAQA's `mine`, `paraphrase` and `manual_paraphrase`, directly
            or in a folder `prompt`; None for no prompts of LPAQA.
        user: The user's templates.

    Raises:
        UserError: If the folder has none of LPAQA's folders, or a user's prompt is unusable.
    """
    sets: dict[Origin, Sequence[Prompt]] = {
        "manual": relation.prompts[:1],
        "manual-paraphrased": relation.prompts[1:],
    }
    notes: tuple[str, ...] = ()
    if folder is not None:
        for origin, path in folders_in(folder).items():
            prompts, report = read_prompts(path, relation.name)
            sets[origin] = (*sets.get(origin, ()), *prompts)
            notes += tuple(str(dropped) for dropped in report.dropped)
    pool = make_pool(relation.name, sets)
    check_templates(user, others=pool.templates)
    own = tuple(PooledPrompt(Prompt(text, "user"), frozenset({"user"})) for text in user)
    return replace(pool, entries=pool.entries + own, notes=notes + pool.notes)
