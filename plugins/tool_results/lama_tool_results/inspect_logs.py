"""Logs of Inspect: `.eval`, or JSON with `eval` and `samples`.

A `.eval` is a zip with `header.json` (`_journal/start.json` while it runs) and a JSON file for each
sample, compressed with Zstandard since 2026. A task is a relation; the input is the subject, the
(first) target the object; a letter stands for its choice. The first scorer's value decides, as
Inspect counts it (N, no answer, is wrong), in the first epoch. An errored sample has no verdict:
whether Inspect counts its score depends on the version. Of several logs of a task and model, the
newest counts.
"""

import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from lama_core.datasets.line_reader import (
    MAX_FILE_BYTES,
    MAX_LINE_BYTES,
    JsonObject,
    Rejected,
    as_object,
    parse_json,
)
from lama_core.datasets.nested_folders import files_under
from lama_core.errors import UserError
from lama_core.files import open_file
from lama_core.progress import OnProgress
from lama_core.runs.importers.results import (
    MAX_ROWS,
    DropList,
    FactRejected,
    ImportedResults,
    ReadOptions,
    ResultsFormat,
    short,
)
from lama_tool_results.answer_rows import (
    MAX_LIST,
    AnswerRows,
    first_text,
    head_of,
    model_of,
    read_json_object,
    verdict,
)

ZSTANDARD = 93  # as a zip's method of compression
HEADERS = ("header.json", "_journal/start.json")


def recognizes(path: Path) -> bool:
    """Whether it is a log, or a folder with one, also one that is an unpacked `.eval`."""
    return any(map(_is_log, [path] if path.is_file() else list(files_under(path))[:200]))


def _is_log(file: Path) -> bool:
    if file.suffix == ".eval":
        return True
    head = head_of(file) if file.suffix == ".json" else b""
    return head[:1] == b"{" and b'"eval"' in head and b'"eval_id"' in head


def read(path: Path, options: ReadOptions, on_progress: OnProgress) -> list[ImportedResults]:
    """Return the results of each model. Raises UserError for a damaged log."""
    files = [one for one in ([path] if path.is_file() else files_under(path)) if _is_log(one)]
    if any(one.name in ("header.json", "start.json") for one in files):
        raise UserError(f"{path.name} is the content of an Inspect log: give the .eval file.")
    newest: dict[tuple[str, str], tuple[str, Path, JsonObject]] = {}
    drops: dict[str, DropList] = {}
    for file in files:
        header = next(_parts(file))[1]
        about = _object(header.get("eval"))
        model, task = model_of(first_text(about.get("model"))), first_text(about.get("task"))
        found = (first_text(about.get("created")), file, header)
        kept = newest.setdefault((model, task), found)
        if kept is not found:
            older, newest[model, task] = sorted([kept, found], key=lambda one: one[0])
            drops.setdefault(model, DropList()).add(
                older[1].name, "a newer log of the task is there", 0, of_answer=False
            )
    results = []
    for model in dict.fromkeys(model for model, _ in newest):
        rows = AnswerRows(on_progress, f"Reading {model or path.name}")
        dropped = drops.get(model, DropList())
        logs = {task: log for (of, task), log in newest.items() if of == model}
        for task, (_, file, header) in logs.items():
            _read_log(file, header, task, rows, dropped)
        created, _, header = max(logs.values(), key=lambda one: one[0])
        version = first_text(_object(_object(header.get("eval")).get("packages")).get("inspect_ai"))
        data, table = ", ".join(logs)[:200], rows.table()
        results.append(
            ImportedResults(
                model, "Inspect", version, data, created[:19], table, dropped=dropped.records()
            )
        )
    return results


def _read_log(file: Path, header: JsonObject, task: str, rows: AnswerRows, drops: DropList) -> None:
    parts, seen, scorer = _parts(file), set(), ""
    next(parts)
    for number, (name, sample) in enumerate(parts, start=1):
        with drops.dropping(f"{file.name} {name}".strip(), number):
            if sample.get("epoch", 1) != 1:
                raise FactRejected("another epoch of the sample")
            seen.add(str(sample.get("id")))
            scores = _object(sample.get("scores"))
            scorer = scorer or next(iter(scores), "")
            for other in scores.keys() - {scorer}:
                reason = f"another scorer of the same answers ({other[:40]})"
                drops.add(file.name, reason, of_answer=False)
            rows.add(relation=short(task) or file.stem, **_row(sample, scores.get(scorer)))
    expected = _object(_object(header.get("eval")).get("dataset")).get("sample_ids")
    missing = {str(one) for one in expected} - seen if isinstance(expected, list) else set()
    if missing:
        status = first_text(header.get("status")) or "unknown"
        drops.add(file.name, f"not in the log, whose status is {status}", len(missing))


def _row(sample: JsonObject, score: object) -> dict[str, Any]:
    """Return the columns of a sample. Raises Rejected for an unusable one."""
    asked, target = sample.get("input"), first_text(sample.get("target"))
    if isinstance(asked, list):  # messages
        by_user = [one.get("content") for one in map(_object, asked) if one.get("role") == "user"]
        texts = by_user[-1] if by_user else ""
        parts = texts if isinstance(texts, list) else [texts]
        asked = "\n".join(filter(None, map(first_text, parts)))
    subject, choices = first_text(asked), sample.get("choices")
    words = [first_text(one) for one in choices] if isinstance(choices, list) else []
    by_letter = {chr(ord("A") + at): word for at, word in enumerate(words[:26])}
    if not subject or not target:
        raise FactRejected("no input" if target else "no target")
    if sample.get("error") or sample.get("invalidation"):
        raise Rejected("the sample ended with an error or is invalidated")
    if score is None:
        raise Rejected("no score: run `inspect score` on the log")
    value = _object(score).get("value")
    correct = value != "N" and verdict(value)
    said = first_text(_object(score).get("answer"))
    said = said or first_text(_object(sample.get("output")).get("completion"))
    return {
        "subject": subject,
        "object": by_letter.get(target, target),
        "query": subject,
        "correct": correct,
        "predictions": [by_letter.get(said, said)] if said else None,
    }


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _parts(file: Path) -> Iterator[tuple[str, JsonObject]]:
    """Yield ("", header), then (name, sample). Raises UserError for a damaged log."""
    if file.suffix != ".eval":
        header = read_json_object(file, MAX_LIST)
        samples = header.pop("samples", None)
        yield "", header
        yield from (("", _object(one)) for one in (samples if isinstance(samples, list) else []))
        return
    try:
        with open_file(file) as raw, zipfile.ZipFile(raw) as packed:
            members = {one.filename: one for one in packed.infolist()}
            heads = [name for name in HEADERS if name in members]
            names = [name for name in members if name.startswith("samples/")]
            n_bytes = sum(members[name].file_size for name in names)
            if not heads or len(names) > MAX_ROWS or n_bytes > MAX_FILE_BYTES:
                raise UserError(f"{file.name} isn't an Inspect log, or is too large.")
            for name in heads[:1] + names:
                yield name.removeprefix(HEADERS[0]), _member(raw, packed, members[name])
    except (zipfile.BadZipFile, OSError, RuntimeError, ValueError, Rejected, struct.error) as error:
        raise UserError(
            f"{file.name} is a damaged Inspect log ({error}): convert it with `inspect log "
            "convert --to json`."
        ) from error


def _member(raw: BinaryIO, packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> JsonObject:
    if member.file_size > MAX_LINE_BYTES:
        raise Rejected(f"{member.filename} has more than {MAX_LINE_BYTES:,} bytes")
    if member.compress_type != ZSTANDARD:
        return as_object(parse_json(packed.read(member)))
    raw.seek(member.header_offset + 26)
    raw.seek(sum(struct.unpack("<2H", raw.read(4))), 1)  # the name and the extra field
    with pa.CompressedInputStream(pa.BufferReader(raw.read(member.compress_size)), "zstd") as text:
        return as_object(parse_json(text.read(member.file_size)))


INSPECT = ResultsFormat("inspect", "Inspect log", recognizes, read)
