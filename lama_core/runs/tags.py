"""Tags: short texts that a user attaches to facts of a run, such as `wrong gold` or `ambiguous`.

    tags.json           in the run's folder, for the user's runs
    tags/<id>.json      in the data folder, for a run that came with the project

Neither the stored numbers nor a run's identity depend on tags. A row is a fact and one of its
prompts, as in `facts_table`. The tags of `VERDICTS` override the verdict on a generated text, but
only in figures computed with `metrics.verdicts`.
"""

import json
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path

from lama_core.errors import UserError, reason_of
from lama_core.files import lock_for_changes, read_file, write_text_atomically
from lama_core.paths import data_dir
from lama_core.runs.info import CHECKSUM, RunInfo, checksum

TAGS_FILE = "tags.json"
FORM = 1
FIELDS = {"form", "run", "rows", CHECKSUM}
MOST_LETTERS = 64
MOST_TAGS = 20  # per row
SEPARATOR = "; "  # between the tags of a row that are shown as one text
# Tag -> whether the generated text is right, whatever it matches.
VERDICTS = {"judged right": True, "judged wrong": False}

Row = tuple[str, int]
Tags = Mapping[Row, tuple[str, ...]]


def tags_path(info: RunInfo) -> Path:
    """Return the path of a run's tags, which may not exist yet."""
    if info.bundled:
        return data_dir() / "tags" / f"{info.id}.json"
    return info.folder / TAGS_FILE


def clean_tag(text: str) -> str:
    """Return a tag with normalised spaces.

    Raises:
        UserError: If the tag is empty, too long, or contains a semicolon or invisible characters.
    """
    if any(unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") for letter in text):
        raise UserError(
            f"The tag {text[:MOST_LETTERS]!r} contains invisible characters. Remove them."
        )
    tag = " ".join(text.split())
    if not tag:
        raise UserError("The tag is empty. Enter at least one character.")
    if len(tag) > MOST_LETTERS:
        raise UserError(
            f"The tag {tag[:MOST_LETTERS]!r}... is longer than {MOST_LETTERS} characters."
        )
    if ";" in tag:
        raise UserError(f"The tag {tag!r} contains a semicolon. Enter two tags instead.")
    return tag


def read_tags(info: RunInfo) -> Tags:
    """Return the tags of a run by row, or raise UserError if the file can't be read."""
    path = tags_path(info)
    try:
        if not path.exists():
            return {}
        read = json.loads(read_file(path))
        if unknown := read.keys() - FIELDS:
            raise ValueError(f"unknown field {min(unknown)!r}")
        if read.get(CHECKSUM, checksum(read)) != checksum(read):
            raise ValueError("the checksum differs; if you changed the file, delete this field")
        return {
            (str(line["fact_id"]), int(line["prompt"])): tuple(map(str, line["tags"]))
            for line in read["rows"]
        }
    except OSError as error:
        raise UserError(f"{path}: the tags can't be read: {reason_of(error)}.") from error
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise UserError(
            f"{path}: the tags are damaged ({error}). Fix the file or move it elsewhere."
        ) from error


def change_tags(
    info: RunInfo, rows: Iterable[Row], *, add: Iterable[str] = (), remove: Iterable[str] = ()
) -> Tags:
    """Add tags to rows of a run, remove others, and return all tags of the run.

    The file is written atomically under a lock, so that simultaneous changes are all kept.

    Raises:
        UserError: If a tag is invalid or a row would have too many tags; nothing is changed.
    """
    added = list(dict.fromkeys(map(clean_tag, add)))
    removed = set(remove)
    path = tags_path(info)
    try:
        with lock_for_changes(path):
            tags = dict(read_tags(info))
            for row in rows:
                kept = [tag for tag in tags.get(row, ()) if tag not in removed]
                kept += [tag for tag in added if tag not in kept]
                if len(kept) > MOST_TAGS:
                    raise UserError(
                        f"{row[0]} would have {len(kept)} tags; at most {MOST_TAGS} are allowed."
                    )
                tags[row] = tuple(kept)
            tags = {row: kept for row, kept in tags.items() if kept}
            lines = [
                {"fact_id": name, "prompt": prompt, "tags": list(kept)}
                for (name, prompt), kept in sorted(tags.items())
            ]
            content = {"form": FORM, "run": info.id, "rows": lines}
            content[CHECKSUM] = checksum(content)
            write_text_atomically(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    except OSError as error:
        raise UserError(f"{path}: the tags can't be written: {reason_of(error)}.") from error
    return tags


def known_tags(tags: Tags) -> tuple[str, ...]:
    """Return every tag in use, in alphabetical order."""
    return tuple(sorted({tag for kept in tags.values() for tag in kept}, key=str.casefold))
