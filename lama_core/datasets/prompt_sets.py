"""The prompts of a relation by where they come from, and their combinations as in the paper.

    manual              LAMA's template
    mined               found in sentences that hold a subject and its object
    mined-paraphrased   paraphrases of the best mined prompt
    manual-paraphrased  paraphrases of the manual one
    user                typed

Two prompts are the same when they differ only in spaces: `[X] of [Y] .` and `[X] of [Y].` give
every model the same tokens. Case and the full stop itself do count. The released files hold such
twins (20 of 527 paraphrases of mined prompts, 19 of 510 of manual ones): of a file the first is
kept and the others are named; of prompts that a user gives they are refused.
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

# Jiang et al. 2020, section 5.1. The released files of paraphrases begin with their seed.
COMBINATIONS: dict[str, tuple[Origin, ...]] = {
    "manual": ("manual",),
    "mine": ("mined",),
    "mine+man": ("mined", "manual"),
    "mine+para": ("mined-paraphrased",),
    "man+para": ("manual", "manual-paraphrased"),
    "user": ("user",),
    "all": ORIGINS,
}
TITLES = {name: name.title() for name in COMBINATIONS} | {"user": "Own"}
MEANINGS = {
    "manual": "the data set's template",
    "mine": "mined from sentences that hold a subject and its object",
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
    """The template without the spaces that no model sees: the form in which twins are found."""
    joined = " ".join(template.split())
    return SPACE_BEFORE_SIGN.sub(lambda match: match.group(1) or "", joined)


@dataclass(frozen=True, slots=True)
class Entry:
    """A prompt and the sets it belongs to, such as `mined` and `mined-paraphrased`.

    aside: it is asked, and neither chosen nor weighted.
    """

    prompt: Prompt
    origins: frozenset[Origin]
    aside: bool = False


@dataclass(frozen=True)
class PromptPool:
    """All prompts of one relation, each once, in the order of their sets.

    notes: sentences about what was left out.
    """

    relation: str
    entries: tuple[Entry, ...]
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
        """Positions of the prompts of a combination; empty if the relation has none of them.

        Raises UserError for an unknown combination.
        """
        wanted = set(parse_combination(combination))
        return tuple(at for at, entry in enumerate(self.entries) if entry.origins & wanted)

    def eligible(self, combination: str) -> tuple[int, ...]:
        """Positions of its prompts from which ensembles are made: those that aren't set aside."""
        return tuple(at for at in self.members(combination) if not self.entries[at].aside)

    @property
    def manual(self) -> int | None:
        """The position of the manual prompt; None without one."""
        return next((at for at, one in enumerate(self.entries) if "manual" in one.origins), None)

    def find(self, template: str) -> int | None:
        """The position of a prompt or its twin; None if it isn't here."""
        known = [normalise_template(one) for one in self.templates]
        wanted = normalise_template(template)
        return known.index(wanted) if wanted in known else None

    def only(self, combinations: Iterable[str]) -> "PromptPool":
        """The pool with the prompts of these combinations alone."""
        kept = {number for name in combinations for number in self.members(name)}
        return replace(self, entries=tuple(self.entries[number] for number in sorted(kept)))

    def combinations(self) -> tuple[str, ...]:
        """The combinations of which every part is here, in the paper's order."""
        here = {origin for entry in self.entries for origin in entry.origins}
        wanted = COMBINATIONS | {"all": tuple(here)} if here else COMBINATIONS
        return tuple(name for name, parts in wanted.items() if here.issuperset(parts))

    def with_user(self, templates: Sequence[str]) -> "PromptPool":
        """The pool with a user's own prompts at the end.

        Raises UserError for one without [X] or [Y], or the same as another after normalising.
        """
        check_templates(templates, others=self.templates)
        own = tuple(Entry(Prompt(text, "user"), frozenset({"user"})) for text in templates)
        return replace(self, entries=self.entries + own)


def parse_combination(name: str) -> tuple[Origin, ...]:
    """The sets that make a combination. Raises UserError, with the nearest name, if unknown."""
    return COMBINATIONS[choose(name, COMBINATIONS, "prompts")]


def check_templates(templates: Sequence[str], *, others: Iterable[str] = ()) -> None:
    """Raise UserError, naming it, for a prompt without [X] or [Y], or one that is there already."""
    seen = {normalise_template(other): other for other in others}
    for template in templates:
        fault = template_fault(template)
        if fault:
            raise UserError(f"{fault[0].upper()}{fault[1:]}.")
        twin = seen.get(normalise_template(template))
        if twin is not None:
            raise UserError(
                f"The prompts {twin!r} and {template!r} are the same but for spaces: keep one."
            )
        seen[normalise_template(template)] = template


def make_pool(relation: str, sets: dict[Origin, Sequence[Prompt]]) -> PromptPool:
    """The prompts of a relation from its sets; twins become one prompt of several sets.

    A prompt without [X] or [Y] is left out and named in `notes`, and so are twins in one set.
    """
    entries: dict[str, Entry] = {}
    notes: list[str] = []
    for origin in ORIGINS:
        for prompt in sets.get(origin, ()):
            fault = template_fault(prompt.template)
            if fault:
                notes.append(f"{relation}, {origin}: {fault}; it is left out")
                continue
            key = normalise_template(prompt.template)
            known = entries.get(key)
            if known is None:
                entries[key] = Entry(replace(prompt, origin=origin), frozenset({origin}))
                continue
            if origin in known.origins:
                notes.append(
                    f"{relation}, {origin}: {prompt.template!r} is {known.prompt.template!r} but "
                    "for spaces; it is left out"
                )
            weight = known.prompt.weight if known.prompt.weight is not None else prompt.weight
            entries[key] = Entry(replace(known.prompt, weight=weight), known.origins | {origin})
    return PromptPool(relation, tuple(entries.values()), tuple(notes))


def folders_in(folder: Path) -> dict[Origin, Path]:
    """LPAQA's folders that are in `folder`, or in its `prompt` folder, by what they hold.

    Raises UserError if there are none.
    """
    root = folder / "prompt" if (folder / "prompt").is_dir() else folder
    found = {origin: root / name for origin, name in FOLDERS.items() if (root / name).is_dir()}
    if not found:
        raise UserError(
            f"{folder} has none of LPAQA's folders ({', '.join(FOLDERS.values())}): give the "
            "folder that holds them."
        )
    return found


def relations_in(folder: Path) -> frozenset[str]:
    """The relations that a folder has prompts of. Raises UserError as `folders_in`."""
    files = (file for path in folders_in(folder).values() for file in path.iterdir())
    return frozenset(file.stem for file in files if file.suffix in (".jsonl", ".txt"))


def load_pool(
    relation: Relation, *, folder: Path | None = None, user: Sequence[str] = ()
) -> PromptPool:
    """The prompts of a relation: its own template and paraphrases, LPAQA's files, and the user's.

    folder: with `mine`, `paraphrase` and `manual_paraphrase` in it, or in its `prompt` folder;
    None takes the relation's own paraphrases only.
    Raises UserError if the folder holds none of these, or for a faulty prompt of the user's.
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
    return replace(pool, notes=notes + pool.notes).with_user(user)
