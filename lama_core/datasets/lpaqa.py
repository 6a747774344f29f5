"""LPAQA's prompts and training pairs (Jiang et al. 2020).

Layout: `prompt/mine/P*.jsonl` and `prompt/paraphrase/P*.jsonl` (template, weight),
`prompt/manual_paraphrase/P*.txt` (one a line), `TREx_train/P*.jsonl` (sub_label, obj_label and
their ids). A weight is the prompt's share in the released ensemble.
"""

from pathlib import Path
from typing import Literal

from lama_core.datasets.base import Dataset, Dropped, ReadReport, make_dataset
from lama_core.datasets.folders import find_folder
from lama_core.datasets.jsonl import (
    Rejected,
    iter_objects,
    iter_text_lines,
    optional_text,
    required_text,
)
from lama_core.datasets.templates import template_fault
from lama_core.errors import UserError
from lama_core.types import Fact, Prompt, Relation

PromptKind = Literal["mine", "paraphrase", "manual_paraphrase"]
KINDS: tuple[PromptKind, ...] = ("mine", "paraphrase", "manual_paraphrase")
ORIGIN: dict[PromptKind, str] = {
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
            any((folder / "prompt" / kind).is_dir() for kind in KINDS)
            or (folder / TRAINING_FOLDER).is_dir()
        ),
    )


def load_prompts(path: Path, kind: PromptKind) -> tuple[dict[str, tuple[Prompt, ...]], ReadReport]:
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
        found = (
            _weighted(file, shown, kind, dropped)
            if file.suffix == ".jsonl"
            else _plain(file, shown, kind, dropped)
        )
        prompts[file.stem] = tuple(found)
    return prompts, ReadReport(tuple(dropped))


def load(path: Path, *, name: str | None = None, licence: str = "", citation: str = "") -> Dataset:
    """The training pairs as facts, each relation with all of LPAQA's prompts for it.

    Raises UserError if `path` holds neither pairs nor prompts.
    """
    root = find_root(path)
    if root is None:
        raise UserError(f"{path} is not LPAQA: it has neither prompt/mine nor {TRAINING_FOLDER}")
    report = ReadReport()
    prompts: dict[str, tuple[Prompt, ...]] = {}
    for kind in KINDS:
        if (root / "prompt" / kind).is_dir():
            of_kind, of_report = load_prompts(root, kind)
            report += of_report
            for relation, found in of_kind.items():
                prompts[relation] = prompts.get(relation, ()) + found
    facts, pairs_report = _training_pairs(root)
    names = dict.fromkeys([*prompts, *(fact.relation for fact in facts)])
    relations = [Relation(n, "TREx", prompts=prompts.get(n, ())) for n in names]
    return make_dataset(
        name or path.name,
        relations,
        facts,
        report + pairs_report,
        licence=licence,
        citation=citation,
    )


def _training_pairs(root: Path) -> tuple[list[Fact], ReadReport]:
    dropped: list[Dropped] = []
    facts: list[Fact] = []
    for file in sorted((root / TRAINING_FOLDER).glob("*.jsonl")):
        shown = file.relative_to(root).as_posix()
        for number, row in iter_objects(file, shown, dropped):
            try:
                subject = required_text(row, "sub_label", "sub")
                obj = required_text(row, "obj_label", "obj")
                subject_id, object_id = optional_text(row, "sub_uri"), optional_text(row, "obj_uri")
            except Rejected as reason:
                dropped.append(Dropped(shown, number, str(reason)))
                continue
            facts.append(
                Fact(
                    # Pairs have no id of their own, and some stand twice.
                    f"{file.stem}:train:{number}",
                    subject,
                    file.stem,
                    obj,
                    "TREx",
                    subject_id=subject_id,
                    object_id=object_id,
                )
            )
    notes = () if facts else (f"no {TRAINING_FOLDER}: prompts only",)
    return facts, ReadReport(tuple(dropped), notes)


def _weighted(file: Path, shown: str, kind: PromptKind, dropped: list[Dropped]) -> list[Prompt]:
    found = []
    for number, row in iter_objects(file, shown, dropped):
        try:
            template = required_text(row, "template")
            weight = row.get("weight")
            if weight is not None and (
                isinstance(weight, bool) or not isinstance(weight, int | float)
            ):
                raise Rejected(f"the weight {weight!r} is not a number")
            fault = template_fault(template)
            if fault:
                raise Rejected(fault)
        except Rejected as reason:
            dropped.append(Dropped(shown, number, str(reason)))
            continue
        found.append(Prompt(template, ORIGIN[kind], None if weight is None else float(weight)))
    return found


def _plain(file: Path, shown: str, kind: PromptKind, dropped: list[Dropped]) -> list[Prompt]:
    found = []
    for number, template in iter_text_lines(file, shown, dropped):
        fault = template_fault(template)
        if fault:
            dropped.append(Dropped(shown, number, fault))
        else:
            found.append(Prompt(template, ORIGIN[kind]))
    return found
