"""LPAQA's prompts and training pairs (Jiang et al. 2020).

Layout: `prompt/mine/P*.jsonl` and `prompt/paraphrase/P*.jsonl` (template, weight),
`prompt/manual_paraphrase/P*.txt` (one template per line), `TREx_train/P*.jsonl` (sub_label,
obj_label and their ids). A weight is the prompt's weight in the released ensemble.
"""

from collections.abc import Iterator
from pathlib import Path

from lama_core.datasets.dataset import Dataset, ReadReport, make_dataset
from lama_core.datasets.line_reader import (
    Reading,
    Rejected,
    optional_text,
    required_text,
    usable,
)
from lama_core.datasets.nested_folders import find_folder
from lama_core.errors import UserError, did_you_mean
from lama_core.types import Fact, Prompt

# Folder in `prompt` -> origin of its prompts.
ORIGIN = {
    "mine": "mined",
    "paraphrase": "paraphrased",
    "manual_paraphrase": "manual paraphrase",
}
TRAINING_FOLDER = "TREx_train"


def find_root(path: Path) -> Path | None:
    """Return the folder at or under `path` with LPAQA's prompts or pairs, or None."""
    names = [Path("prompt", name) for name in ORIGIN] + [Path(TRAINING_FOLDER)]
    return find_folder(path, lambda folder: any((folder / name).is_dir() for name in names))


def load(path: Path, *, name: str | None = None, **about: str) -> Dataset:
    """Return the training pairs as facts, and each relation with all of LPAQA's prompts for it.

    Raises UserError if `path` has neither pairs nor prompts.
    """
    missing = f"is not LPAQA: it has neither prompt/mine nor {TRAINING_FOLDER}"
    reading = Reading.at(find_root(path), path, missing)
    prompts: dict[str, tuple[Prompt, ...]] = {}
    for folder, origin in ORIGIN.items():
        parent = reading.root / "prompt" / folder
        for file in sorted([*parent.glob("*.jsonl"), *parent.glob("*.txt")]):
            found = []
            for number, prompt in _iter_prompts(reading, file, origin):
                with reading.dropping(file, number):
                    usable(prompt.template)
                    found.append(prompt)
            prompts[file.stem] = prompts.get(file.stem, ()) + tuple(found)
    for file in sorted((reading.root / TRAINING_FOLDER).glob("*.jsonl")):
        reading.facts += _iter_pairs(reading, file, file.stem)
    if not reading.facts:
        reading.notes.append(f"no {TRAINING_FOLDER}: prompts only")
    relations = reading.relations_of(prompts)
    return make_dataset(name or path.name, relations, reading.facts, reading.report, **about)


def read_prompts(folder: Path, relation: str) -> tuple[tuple[Prompt, ...], ReadReport]:
    """Return a relation's prompts in file order (none without a file), and the reading report.

    Templates are checked by `prompt_sets.make_pool`, not here.
    """
    reading = Reading(folder)
    files = (_file_of(folder, relation, suffix) for suffix in (".txt", ".jsonl"))
    found = [
        prompt for file in files if file for _, prompt in _iter_prompts(reading, file, "manual")
    ]
    return tuple(found), reading.report


def read_pairs(place: Path, relation: str) -> tuple[tuple[Fact, ...], ReadReport]:
    """Return a relation's training pairs in file order, without duplicates, and the reading report.

    place: a folder with `<relation>.jsonl`, or the file itself.
    Raises UserError, with the nearest name, if the file doesn't exist.
    """
    path = _file_of(place, relation, ".jsonl") if place.is_dir() else place
    if path is None or not path.is_file():
        names = [file.stem for file in place.glob("*.jsonl")] if place.is_dir() else []
        where = path or place / f"{relation[:60]}.jsonl"
        raise UserError(
            f"Missing training pairs of {relation[:60]}: {where} does not exist"
            f"{did_you_mean(relation, names)}."
        )
    reading = Reading(path)
    pairs = list(_iter_pairs(reading, path, relation))
    facts: dict[tuple[str, str], Fact] = {}
    for fact in pairs:
        facts.setdefault((fact.subject, fact.object), fact)
    if n_duplicates := len(pairs) - len(facts):
        reading.notes.append(f"{path.name}: {n_duplicates} duplicate pair(s) excluded")
    return tuple(facts.values()), reading.report


def _file_of(folder: Path, relation: str, suffix: str) -> Path | None:
    """Return the relation's file in a folder, or None; never uses the name as a path."""
    name = f"{relation}{suffix}"
    return next((file for file in folder.glob(f"*{suffix}") if file.name == name), None)


def _iter_prompts(reading: Reading, file: Path, origin: str) -> Iterator[tuple[int, Prompt]]:
    """Yield (line, prompt) of a file of prompts, without checking the templates."""
    if file.suffix == ".txt":
        yield from ((number, Prompt(text, origin)) for number, text in reading.lines(file))
        return
    for number, row in reading.objects(file):
        with reading.dropping(file, number):
            weight = row.get("weight")
            if weight is not None and (
                isinstance(weight, bool) or not isinstance(weight, int | float)
            ):
                raise Rejected(f"'weight' is a {type(weight).__name__}, not a number")
            weight = None if weight is None else float(weight)
            yield number, Prompt(required_text(row, "template"), origin, weight)


def _iter_pairs(reading: Reading, file: Path, relation: str) -> Iterator[Fact]:
    for number, row in reading.objects(file):
        with reading.dropping(file, number):
            yield Fact(
                f"{relation}:train:{number}",  # pairs have no id, and some occur twice
                required_text(row, "sub_label", "sub"),
                relation,
                required_text(row, "obj_label", "obj"),
                "TREx",
                subject_id=optional_text(row, "sub_uri"),
                object_id=optional_text(row, "obj_uri"),
            )
