"""Models whose training text is known, and the labels of slices by training text.

A training text is known if the model's folder has a file about it: which pairs co-occur in it
(`cooccurrence`), and its sentence forms (`sentence_forms`).
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import TypeVar

from lama_core.models.sources.catalog import known_models
from lama_core.models.sources.locations import locate

Content = TypeVar("Content")
NOT_LOOKED_FOR = "not looked for"


def text_file(model: str, name: str) -> Path | None:
    """Return the path of a file about a model's training text; None if the model has none."""
    entry = {entry.name: entry for entry in known_models()}.get(model)
    located = locate(entry) if entry is not None else None
    path = located.folder / name if located is not None else None
    return path if path is not None and path.is_file() else None


def read_text_file(model: str, name: str, read: Callable[[Path], Content]) -> Content | None:
    """Return what `read` returns for a file about a model's training text; cached.

    Returns None if the model has no such file.
    """
    path = text_file(model, name)
    return None if path is None else read_cached(path, read)


def read_cached(path: Path, read: Callable[[Path], Content]) -> Content:
    """Return what `read` returns for a file; cached until the file changes."""
    return _read(path, path.stat().st_mtime_ns, read)


@lru_cache(maxsize=16)
def _read(path: Path, _changed: int, read: Callable[[Path], Content]) -> Content:
    return read(path)


def labels(known: Sequence[str]) -> tuple[str, ...]:
    """Return all labels that `label` can give for these models, labels of more texts first."""
    ordered = [found for size in range(len(known), -1, -1) for found in combinations(known, size)]
    return (*(label(found, known) for found in ordered), NOT_LOOKED_FOR)


def label(found: Sequence[str], known: Sequence[str]) -> str:
    """Return a label for something that occurs in the training texts of the models `found`.

    known: all models whose training text is known.
    """
    if not found:
        none = {1: f"not in {known[0]}'s text", 2: "in neither text"}
        return none.get(len(known), "in none of the texts")
    if len(found) > 1:
        return "in both texts" if len(known) == 2 else f"in the texts of {' and '.join(found)}"
    return f"in {found[0]}'s text{' alone' * (len(known) > 1)}"


def unknown_texts(models: Sequence[str], name: str) -> str:
    """Return a note on the models whose training text is unknown; "" if there are none.

    The training text of a model is known if the model's folder has the file `name`.
    """
    known = [model for model in dict.fromkeys(models) if text_file(model, name)]
    others = [model for model in dict.fromkeys(models) if model not in known]
    if not others:
        return ""
    titles = {entry.name: entry.title for entry in known_models()}
    known, others = ([titles.get(name, name) for name in names] for names in (known, others))
    so = (
        f". The slices by pairs or wordings seen in training use the training text of "
        f"{', '.join(known)}."
        if known
        else ", so there are no slices by pairs or wordings seen in training. Only the embedded "
        "models' training texts are known."
    )
    return f"The training text of {', '.join(others)} isn't known{so}"
