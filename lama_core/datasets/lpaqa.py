"""LPAQA's prompts and training pairs (Jiang et al. 2020).

Layout: `prompt/mine/P*.jsonl` and `prompt/paraphrase/P*.jsonl` (template, weight),
`prompt/manual_paraphrase/P*.txt` (one a line), `TREx_train/P*.jsonl` (sub_label, obj_label and
their ids). A weight is the prompt's share in the released ensemble. Lines that can't be read are
reported, never skipped in silence.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from lama_core.datasets.base import Dataset, Dropped, ReadReport, make_dataset
from lama_core.datasets.folders import find_folder
from lama_core.datasets.jsonl import (
    JsonObject,
    Rejected,
    iter_objects,
    iter_text_lines,
    optional_text,
    required_text,
)
from lama_core.datasets.templates import template_fault
from lama_core.errors import UserError, did_you_mean
from lama_core.types import Fact, Prompt, Relation

PromptFolder = Literal["mine", "paraphrase", "manual_paraphrase"]
ORIGIN: dict[PromptFolder, str] = {
    "mine": "mined",
    "paraphrase": "paraphrased",
    "manual_paraphrase": "manual paraphrase",
}
TRAINING_FOLDER = "TREx_train"


def find_root(path: Path) -> Path | None:
    """The folder at or under `path` that holds `prompt` or `TREx_train`, or None."""
    return find_folder(
        path,
        lambda folder: (
            any((folder / "prompt" / name).is_dir() for name in ORIGIN)
            or (folder / TRAINING_FOLDER).is_dir()
        ),
    )


def load_prompts(
    path: Path, kind: PromptFolder
) -> tuple[dict[str, tuple[Prompt, ...]], ReadReport]:
    """The prompts of one kind by relation, in the file's order, and what was left out.

    path: LPAQA's folder or one above it. Raises UserError if there are none of that kind.
    """
    root = find_root(path)
    folder = root / "prompt" / kind if root else path
    if root is None or not folder.is_dir():
        raise UserError(f"{path} has no folder prompt/{kind}")
    dropped: list[Dropped] = []
    prompts: dict[str, tuple[Prompt, ...]] = {}
    for file in sorted([*folder.glob("*.jsonl"), *folder.glob("*.txt")]):
        shown = file.relative_to(root).as_posix()
        found = []
        for number, prompt in _iter_prompts(file, shown, dropped, ORIGIN[kind]):
            fault = template_fault(prompt.template)
            if fault:
                dropped.append(Dropped(shown, number, fault))
            else:
                found.append(prompt)
        prompts[file.stem] = tuple(found)
    return prompts, ReadReport(tuple(dropped))


def read_prompts(folder: Path, relation: str) -> tuple[tuple[Prompt, ...], ReadReport]:
    """One relation's prompts in file order, with their weights; none if it has no file.

    Templates are not checked here (see `prompt_sets.make_pool`).
    """
    dropped: list[Dropped] = []
    files = (_file_of(folder, relation, suffix) for suffix in (".txt", ".jsonl"))
    prompts = tuple(
        prompt
        for file in files
        if file is not None
        for _, prompt in _iter_prompts(file, file.name, dropped, "manual")
    )
    return prompts, ReadReport(tuple(dropped))


def read_pairs(
    place: Path, relation: str, *, source: str = "TREx"
) -> tuple[tuple[Fact, ...], ReadReport]:
    """The training pairs of a relation, in file order, each once.

    place: a folder with `<relation>.jsonl`, or the file itself.
    Raises UserError if there is neither, naming the nearest file.
    """
    path = _file_of(place, relation, ".jsonl") if place.is_dir() else place
    if path is None or not path.is_file():
        names = [file.stem for file in place.glob("*.jsonl")] if place.is_dir() else []
        where = path or place / f"{relation[:60]}.jsonl"
        raise UserError(
            f"There are no training pairs of {relation[:60]}: {where} does not exist"
            f"{did_you_mean(relation, names)}."
        )
    dropped: list[Dropped] = []
    facts: dict[tuple[str, str], Fact] = {}
    n_twice = 0
    for fact in _iter_pairs(path, path.name, dropped, relation, source):
        pair = fact.subject, fact.object
        n_twice += pair in facts
        facts.setdefault(pair, fact)
    notes = (f"{path.name}: {n_twice} pair(s) occur twice and count once",) if n_twice else ()
    return tuple(facts.values()), ReadReport(tuple(dropped), notes)


def load(path: Path, *, name: str | None = None, licence: str = "", citation: str = "") -> Dataset:
    """The training pairs as facts, each relation with all of LPAQA's prompts for it.

    Raises UserError if `path` holds neither pairs nor prompts.
    """
    root = find_root(path)
    if root is None:
        raise UserError(f"{path} is not LPAQA: it has neither prompt/mine nor {TRAINING_FOLDER}")
    report = ReadReport()
    prompts: dict[str, tuple[Prompt, ...]] = {}
    for kind in ORIGIN:
        if (root / "prompt" / kind).is_dir():
            of_kind, of_report = load_prompts(root, kind)
            report += of_report
            for relation, found in of_kind.items():
                prompts[relation] = prompts.get(relation, ()) + found
    dropped: list[Dropped] = []
    facts = [
        fact
        for file in sorted((root / TRAINING_FOLDER).glob("*.jsonl"))
        for fact in _iter_pairs(file, file.relative_to(root).as_posix(), dropped, file.stem, "TREx")
    ]
    notes = () if facts else (f"no {TRAINING_FOLDER}: prompts only",)
    report += ReadReport(tuple(dropped), notes)
    names = dict.fromkeys([*prompts, *(fact.relation for fact in facts)])
    relations = [Relation(n, "TREx", prompts=prompts.get(n, ())) for n in names]
    return make_dataset(
        name or path.name, relations, facts, report, licence=licence, citation=citation
    )


def _file_of(folder: Path, relation: str, suffix: str) -> Path | None:
    """The relation's file in a folder, if it has one; a name of data is never taken as a path."""
    name = f"{relation}{suffix}"
    return next((file for file in folder.glob(f"*{suffix}") if file.name == name), None)


def _iter_prompts(
    file: Path, shown: str, dropped: list[Dropped], origin: str
) -> Iterator[tuple[int, Prompt]]:
    """(line, prompt) of a file of prompts, whatever their templates hold."""
    if file.suffix == ".txt":
        for number, template in iter_text_lines(file, shown, dropped):
            yield number, Prompt(template, origin)
        return
    for number, row in iter_objects(file, shown, dropped):
        try:
            yield number, Prompt(required_text(row, "template"), origin, _weight(row))
        except Rejected as reason:
            dropped.append(Dropped(shown, number, str(reason)))


def _iter_pairs(
    file: Path, shown: str, dropped: list[Dropped], relation: str, source: str
) -> Iterator[Fact]:
    for number, row in iter_objects(file, shown, dropped):
        try:
            yield Fact(
                f"{relation}:train:{number}",  # pairs have no id of their own, some stand twice
                required_text(row, "sub_label", "sub"),
                relation,
                required_text(row, "obj_label", "obj"),
                source,
                subject_id=optional_text(row, "sub_uri"),
                object_id=optional_text(row, "obj_uri"),
            )
        except Rejected as reason:
            dropped.append(Dropped(shown, number, str(reason)))


def _weight(row: JsonObject) -> float | None:
    value = row.get("weight")
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise Rejected(f"'weight' is a {type(value).__name__}, not a number")
