"""Models whose training text is known, and how slices name these texts.

A model's text is known where its folder has a file about it: which pairs co-occur (`stated`), and
its sentence forms (`sentence_forms`).
"""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from lama_core.models.sources.catalog import known_models
from lama_core.models.sources.locations import locate

NOT_LOOKED_FOR = "not looked for"


def text_file(model: str, name: str) -> Path | None:
    """Return a file about a model's training text; None where its folder has none."""
    entry = {entry.name: entry for entry in known_models()}.get(model)
    located = locate(entry) if entry is not None else None
    path = located.folder / name if located is not None else None
    return path if path is not None and path.is_file() else None


def labels(known: Sequence[str]) -> tuple[str, ...]:
    """Return all labels that `label` gives for these models, those of most texts first."""
    sizes = range(len(known), -1, -1)
    ordered = [those for size in sizes for those in combinations(known, size)]
    return (*(label(those, known) for those in ordered), NOT_LOOKED_FOR)


def label(those: Sequence[str], known: Sequence[str]) -> str:
    """Say in which of the known models' training texts something is."""
    if not those:
        none = {1: f"not in {known[0]}'s text", 2: "in neither text"}
        return none.get(len(known), "in none of the texts")
    if len(those) == len(known) == 2:
        return "in both texts"
    if len(those) > 1:
        return f"in the texts of {' and '.join(those)}"
    return f"in {those[0]}'s text{' alone' * (len(known) > 1)}"


def unknown_texts(models: Sequence[str], name: str) -> str:
    """Say of which models the training text isn't known; empty where all are.

    name: the file that tells of a text.
    """
    known = [model for model in dict.fromkeys(models) if text_file(model, name)]
    others = [model for model in dict.fromkeys(models) if model not in known]
    if not others:
        return ""
    those = f"The training text of {', '.join(others)}"
    if not known:
        return (
            f"{those} isn't known, so the facts aren't divided by whether a pair or a wording was "
            "seen in training: only the embedded models' texts are known."
        )
    return (
        f"{those} isn't known: the slices by what was seen in training are those of the text of "
        f"{', '.join(known)}."
    )
