"""Small datasets in LAMA's layout, files of JSON lines, and changed JSON files."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]


def write_lines(path: Path, rows: Iterable[Row]) -> Path:
    """Write one JSON object per line; the folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def change_json(path: Path, **values: object) -> None:
    """Change fields of a file's JSON object, or write one."""
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(stored | values), encoding="utf-8")


def write_lama(
    folder: Path, relations: Iterable[Row], facts: Mapping[str, Iterable[tuple[str, str] | Row]]
) -> Path:
    """Write relations, and the T-REx facts of each by its name.

    A fact is a pair of subject and object, or the row of the file, to which the relation is added.
    """
    write_lines(folder / "relations.jsonl", relations)
    for relation, given in facts.items():
        rows = [
            {"uuid": f"{relation}:{n}", "predicate_id": relation}
            | ({"sub_label": one[0], "obj_label": one[1]} if isinstance(one, tuple) else one)
            for n, one in enumerate(given)
        ]
        write_lines(folder / "TREx" / f"{relation}.jsonl", rows)
    return folder
