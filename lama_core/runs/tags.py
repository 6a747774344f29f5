"""Tags: short texts that a user puts on facts of a run, such as `wrong gold` or `ambiguous`.

    tags.json           in the folder of a run of the user's own
    tags/<id>.json      in the data folder, for a run that came with the project

No number depends on them, and a run's identity doesn't either. A row is a fact and one of its
prompts, as in `table`.
"""

import json
import threading
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path

from lama_core.errors import UserError
from lama_core.files import read_file, write_text_atomically
from lama_core.paths import data_dir
from lama_core.runs.info import RunInfo

TAGS_FILE = "tags.json"
FORM = 1
MOST_LETTERS = 64
MOST_TAGS = 20  # a row
SEPARATOR = "; "  # between the tags of a row, where they are one text

Row = tuple[str, int]
Tags = Mapping[Row, tuple[str, ...]]

_writing = threading.Lock()


def tags_path(info: RunInfo) -> Path:
    """Where the tags of a run are kept; there may be none yet."""
    if info.bundled:
        return data_dir() / "tags" / f"{info.id}.json"
    return info.folder / TAGS_FILE


def clean_tag(text: str) -> str:
    """A tag as it is kept: without spaces around it, one between its words.

    Raises UserError for an empty one, a long one, and one with characters that can't be seen or
    that part the tags of a row.
    """
    if any(unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") for letter in text):
        raise UserError(f"The tag {text[:MOST_LETTERS]!r} has characters that can't be seen.")
    tag = " ".join(text.split())
    if not tag:
        raise UserError("A tag has at least one letter.")
    if len(tag) > MOST_LETTERS:
        raise UserError(f"The tag {tag[:MOST_LETTERS]!r}... is longer than {MOST_LETTERS} letters.")
    if ";" in tag:
        raise UserError(f"The tag {tag!r} has a semicolon: give two tags instead.")
    return tag


def read_tags(info: RunInfo) -> Tags:
    """The rows of a run that have tags, and these. Raises UserError if the file is damaged."""
    path = tags_path(info)
    try:
        if not path.exists():
            return {}
        read = json.loads(read_file(path))
        return {
            (str(line["fact_id"]), int(line["prompt"])): tuple(map(str, line["tags"]))
            for line in read["rows"]
        }
    except OSError as error:
        raise UserError(f"{path}: the tags can't be read: {error.strerror}.") from error
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise UserError(
            f"{path}: the tags are damaged ({error}): mend the file or move it away."
        ) from error


def change_tags(
    info: RunInfo, rows: Iterable[Row], *, add: Iterable[str] = (), remove: Iterable[str] = ()
) -> Tags:
    """Put tags on rows of a run and take others off; all tags of the run afterwards.

    The file is written whole; of two who write at once none loses what the other did. Raises
    UserError, and writes nothing, if a tag can't be kept or a row would have too many.
    """
    added = list(dict.fromkeys(map(clean_tag, add)))
    removed = set(remove)
    path = tags_path(info)
    with _writing:
        tags = dict(read_tags(info))
        for row in rows:
            kept = [tag for tag in tags.get(row, ()) if tag not in removed]
            kept += [tag for tag in added if tag not in kept]
            if len(kept) > MOST_TAGS:
                raise UserError(f"{row[0]} would have {len(kept)} tags: at most {MOST_TAGS} do.")
            tags[row] = tuple(kept)
        tags = {row: kept for row, kept in tags.items() if kept}
        lines = [
            {"fact_id": name, "prompt": prompt, "tags": list(kept)}
            for (name, prompt), kept in sorted(tags.items())
        ]
        content = {"form": FORM, "run": info.id, "rows": lines}
        try:
            write_text_atomically(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
        except OSError as error:
            raise UserError(f"{path}: the tags can't be written: {error.strerror}.") from error
    return tags


def known_tags(tags: Tags) -> tuple[str, ...]:
    """Every tag that is on a row, in order of the alphabet."""
    return tuple(sorted({tag for kept in tags.values() for tag in kept}, key=str.casefold))
