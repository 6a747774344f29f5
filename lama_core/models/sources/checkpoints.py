"""Training checkpoints: the series and step in a model's name, and the checkpoints of a series.

A checkpoint is a revision of a hub model (`owner/name@step1000`) or a folder in a folder of
checkpoints (`run/step1000`). The revision or folder name contains the training step: `step1000`,
`checkpoint-500`, `step_20k`, `stage1-step1000-tokens4B`.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lama_core.errors import UserError
from lama_core.models.model_folder import CONFIG, is_gguf
from lama_core.models.sources.catalog import find_model, is_served, split_reading

STEP = re.compile(
    r"(?:^|[-_.])(?:global_?)?(?:steps?|checkpoint|ckpt|iter|iteration)[-_]?(\d{1,12})([kKmM]?)"
    r"(?![0-9A-Za-z])"
)
UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint of a training run. series: hub name or folder of all the run's checkpoints."""

    series: str
    step: int


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model of a request. series: the series in the request that includes it, or empty."""

    reference: str
    series: str = ""


def step_of(name: str) -> int | None:
    """Return the training step that a revision or folder name contains; None if it has none."""
    found = STEP.search(name)
    return int(found[1]) * UNITS[found[2].lower()] if found else None


def checkpoint_of(name: str) -> Checkpoint | None:
    """Return the series and step of a model's full name; None if it isn't a checkpoint.

    Args:
        name: A run's model: a catalogue or hub name, or the absolute path of a folder.
    """
    if is_served(name):
        return None
    base, reading = split_reading(name)
    is_path = os.path.isabs(base)
    series, _, last = base.rstrip("/").rpartition("/") if is_path else base.partition("@")
    step = step_of(last) if series else None
    return None if step is None else Checkpoint(f"{series}+{reading}" if reading else series, step)


def checkpoint_folders(folder: Path) -> tuple[Path, ...]:
    """Return the subfolders whose names contain a step, sorted by step; () if there are none.

    The checkpoints may be incomplete. Returns () for a folder that is itself a model.
    """
    if not folder.is_dir() or (folder / CONFIG).exists() or any(map(is_gguf, folder.iterdir())):
        return ()
    steps = [(step_of(one.name), one) for one in folder.iterdir() if one.is_dir()]
    return tuple(one for _, one in sorted((step, one) for step, one in steps if step is not None))


def name_models(references: Sequence[str], revisions: Sequence[str] = ()) -> list[NamedModel]:
    """Return the models of a request: one for each single model and each checkpoint of a series.

    Args:
        references: Names of models, or folders of checkpoints.
        revisions: Revisions of hub models, or names of checkpoint folders; a text can list several,
            separated by commas. () means the models themselves, and all checkpoints of a folder.

    Raises:
        UserError: If a model has no revisions.
    """
    chosen = [one.strip() for text in revisions for one in text.split(",") if one.strip()]
    if revisions and not chosen:
        raise UserError("No revision is named: name at least one, such as step1000.")
    models = []
    for reference in dict.fromkeys(references):
        models += _checkpoints(reference, chosen) or [NamedModel(reference)]
    return list({one.reference: one for one in models}.values())


def check_is_there(model: NamedModel) -> None:
    """Raise UserError if a checkpoint folder that a request names doesn't exist."""
    if model.series and os.path.isabs(model.reference) and not os.path.isdir(model.reference):
        raise UserError("there is no such folder.")


def _checkpoints(reference: str, revisions: Sequence[str]) -> list[NamedModel]:
    path = Path(os.path.realpath(os.path.expanduser(reference)))
    if path.is_dir():
        for revision in revisions:
            if revision in (".", "..") or "/" in revision or "\\" in revision:
                raise UserError(f"{revision!r} isn't the name of a folder in {path}.")
        found = [path / one for one in revisions] or checkpoint_folders(path)
        return [NamedModel(str(one), reference) for one in found]
    if not revisions:
        return []
    source = find_model(reference).source
    if source.how != "hub" or "@" in reference:
        raise UserError(
            f"{reference} has no revisions: name a hub model without @, or a folder of checkpoints."
        )
    return [NamedModel(f"{source.place}@{one}", reference) for one in revisions]
