"""A guess of the columns of a user's table, from their names and first rows."""

from collections.abc import Mapping, Sequence

from lama_core.datasets.line_reader import JsonObject
from lama_core.datasets.template_syntax import template_fault

# Role -> parts of column names that suggest it, but aren't clear enough to be used unseen.
HINTS = {
    "template": ("template", "prompt", "pattern"),
    "relation": ("relation", "predicate", "property"),
    "object": ("object", "answer", "target", "tail", "gold"),
    "subject": ("subject", "entity", "head", "source"),
}


def guess_columns(
    header: Sequence[str], rows: Sequence[JsonObject], known: Mapping[str, str]
) -> dict[str, str]:
    """Return role -> guessed column, for the roles without a recognised name.

    A column whose cells have [X] and [Y] holds templates. Names decide about the other columns.
    What is left is in the order subject, object; with three columns of words left, the one that
    repeats a value is the relation.

    Args:
        header: The names of the columns.
        rows: The first rows.
        known: Role -> the column recognised by its name, or "".
    """
    left = [
        name
        for name in header
        if name not in known.values()
        and any(letter.isalpha() for cell in _cells(rows, name) for letter in cell)
    ]
    missing = [role for role in HINTS if not known[role]]
    found: dict[str, str] = {}

    def take(role: str, name: str | None) -> None:
        if name is not None and role in missing and role not in found:
            found[role] = name
            left.remove(name)

    all_templates = (name for name in left if not any(map(template_fault, _cells(rows, name))))
    take("template", next(all_templates, None))
    for role, hints in HINTS.items():
        take(role, next((name for name in left if any(h in name.lower() for h in hints)), None))
    if len(left) > 2:
        cells = {name: _cells(rows, name) for name in left}
        repeating = (name for name in left if len({*cells[name]}) < len(cells[name]))
        take("relation", next(repeating, None))
    for role in ("subject", "object"):
        take(role, next(iter(left), None))
    return found


def _cells(rows: Sequence[JsonObject], name: str) -> list[str]:
    return [str(row[name]) for row in rows if row.get(name)]
