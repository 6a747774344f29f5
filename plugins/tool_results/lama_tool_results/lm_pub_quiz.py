"""Results folders of lm-pub-quiz (BEAR), as its `save` writes them.

Layout: `metadata_results.json` (relation -> templates, answers, model, version) and, for each
relation, `NAME_results.jsonl` or `NAME_results.parquet[.COMPRESSION]` with a row for each instance
and template: `sub_label`, `answer_idx`, `template_index` and `pll_scores`, the scores of all
answers. Results that were saved without reduction have the scores of the tokens, which are summed.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lama_core.datasets.line_reader import JsonObject, Reading, Rejected
from lama_core.datasets.nested_folders import files_under
from lama_core.errors import UserError
from lama_core.files import open_file
from lama_core.progress import OnProgress
from lama_core.runs.facts_table import check_rows
from lama_core.runs.importers.results import (
    MAX_BYTES,
    DropList,
    FactRejected,
    ImportedResults,
    ReadOptions,
    ResultsFormat,
    short,
)
from lama_tool_results.answer_rows import (
    MAX_OPTIONS,
    AnswerRows,
    converted,
    model_of,
    ranked,
    read_json_object,
)
from lama_tool_results.exporting import METADATA, SUFFIX, UNWRITABLE

TOOL = "lm-pub-quiz"
MAX_METADATA = 64 << 20
MAX_FOLDERS = 200
_COLUMNS = ("sub_label", "answer_idx", "template_index", "pll_scores")
_BATCH_ROWS = 256


class _About(msgspec.Struct):
    """What the metadata say of a relation."""

    templates: list[str] = []
    template_index: int | list[int] | None = None
    answer_space_labels: list[str] | None = None
    model_name_or_path: str | None = None
    dataset_name: str | None = None
    lm_pub_quiz_version: str | None = None
    time_end: str | None = None
    num_original_instances: int | None = None

    def used(self) -> list[int]:
        """Return the numbers of the templates that were used."""
        if self.template_index is None:
            return list(range(len(self.templates)))
        given = self.template_index
        return [given] if isinstance(given, int) else list(dict.fromkeys(given))


class _Row(msgspec.Struct):
    """A row of a relation's table."""

    sub_label: str | int | float
    answer_idx: int
    pll_scores: list[float | list[float]]
    template_index: int | None = None


def recognizes(path: Path) -> bool:
    """Whether a folder has such a folder at or under it, or the file is its metadata."""
    return path.name == METADATA if path.is_file() else bool(_folders(path))


def _folders(path: Path) -> list[Path]:
    return [file.parent for file in files_under(path) if file.name == METADATA]


def read(path: Path, options: ReadOptions, on_progress: OnProgress) -> list[ImportedResults]:
    """Return the results of each folder with metadata.

    Raises:
        UserError: If there is none, or its metadata are damaged.
    """
    if path.is_file():
        raise UserError(f"{path.name} has no answers: give the folder that it is in.")
    folders = _folders(path)
    if not folders:
        raise UserError(f"{path.name} has no {METADATA}.")
    if len(folders) > MAX_FOLDERS:
        raise UserError(f"{path.name} has more than {MAX_FOLDERS} results folders: give fewer.")
    return [_read_folder(one, on_progress) for one in folders]


def _read_folder(folder: Path, on_progress: OnProgress) -> ImportedResults:
    drops = DropList()
    rows = AnswerRows(on_progress, f"Reading {folder.name}")
    files = {file.name: file for file in sorted(folder.iterdir())}
    known = _relations(folder, drops)
    lists = [one.answer_space_labels or [] for one in known.values()]
    # A run ranks lists of different answers; other lists give ranks only.
    keeps_scores = all(len(set(labels)) == len(labels) for labels in lists)
    for name, about in known.items():
        # Names are looked up in the folder's list, so that none leads out of it.
        tables = [file for file in files if file.startswith(f"{name}{SUFFIX}.")]
        if not tables:
            n = max(1, min(about.num_original_instances or 1, 1 << 31))
            drops.add(
                name, "lm-pub-quiz saved no table of its answers, only metrics", n, of_answer=False
            )
            continue
        file = files[tables[0]]
        reading = Reading(folder)
        for number, row in _rows(reading, file):
            with drops.dropping(reading.shown(file), number):
                rows.add(relation=name, **_answer(about, row, keeps_scores))
        drops.add_reading(reading)
    first = next(iter(known.values()), _About())
    table = rows.table()
    read = {name: known[name] for name in table["relation"].unique().to_pylist()}
    ranked_lists = {name: tuple(one.answer_space_labels or ()) for name, one in read.items()}
    return ImportedResults(
        model_of(first.model_name_or_path or ""),
        TOOL,
        first.lm_pub_quiz_version or "",
        first.dataset_name or "",
        first.time_end or "",
        table,
        ranked_lists if keeps_scores else {},
        {name: tuple(one.templates) for name, one in read.items()},
        drops.records(),
    )


def _relations(folder: Path, drops: DropList) -> dict[str, _About]:
    """Return the usable relations of the metadata."""
    found = {}
    for name, value in read_json_object(folder / METADATA, MAX_METADATA).items():
        try:
            about: _About = converted(value, _About, "the relation")
            if not name.strip():
                raise Rejected("no name")
            labels = about.answer_space_labels
            if not labels:
                raise Rejected("no list of answers")
            if len(labels) > MAX_OPTIONS:
                raise Rejected(f"more than {MAX_OPTIONS:,} answers")
            if not all(label.strip() for label in labels):
                raise Rejected("an answer is empty")
            if not all(0 <= at < len(about.templates) for at in about.used()):
                raise Rejected("template_index is outside the list of templates")
            found[name] = about
        except Rejected as reason:
            drops.add(f"{METADATA} {name[:60]}", str(reason), of_answer=False)
    return found


def _answer(about: _About, given: JsonObject, keeps_scores: bool) -> dict[str, Any]:
    """Return the columns of a row. Raises Rejected for an unusable one."""
    if "answer_idx" not in given:
        raise FactRejected("no answer_idx: open and save the results with lm-pub-quiz 0.3 or later")
    row: _Row = converted(given, _Row, "a column")
    labels, used, number = about.answer_space_labels or [], about.used(), row.template_index
    subject = short(str(row.sub_label))
    if not subject:
        raise FactRejected("no subject")
    if not 0 <= row.answer_idx < len(labels):
        raise FactRejected("answer_idx is outside the list of answers")
    if len(row.pll_scores) != len(labels):
        raise Rejected("not as many scores as answers")
    if used and number is not None and number not in used:
        raise FactRejected("template_index is outside the list of templates")
    if number is None or not used:
        number = next(iter(used), None)
    template = "" if number is None else about.templates[number]
    scores = _summed(row.pll_scores)
    if not keeps_scores and not np.isfinite(scores).all():
        raise Rejected("a score that isn't finite")
    return {
        "subject": subject,
        "object": labels[row.answer_idx],
        "query": short(template.replace("[X]", subject).replace("[Y]", "[MASK]")),
        "template": number,
        **({"all_scores": scores} if keeps_scores else ranked(labels, scores, row.answer_idx)),
    }


def _summed(scores: Sequence[float | list[float]]) -> list[float]:
    """Return a score for each answer. Raises Rejected for NaN and plus infinity."""
    tokens = any(isinstance(one, list) for one in scores)
    # As lm-pub-quiz sums the scores of tokens.
    sums = np.array([np.sum(one) for one in scores] if tokens else scores, np.float64)
    if np.isnan(sums).any() or np.isposinf(sums).any():
        raise Rejected("a score that isn't a number")
    sums[sums <= UNWRITABLE] = -np.inf
    return sums.tolist()


def _rows(reading: Reading, file: Path) -> Iterator[tuple[int, JsonObject]]:
    """Yield (number from 1, row); a table that can't be read is dropped."""
    kind = file.name.partition(f"{SUFFIX}.")[2]
    if kind == "jsonl":
        yield from reading.objects(file)
        return
    if kind.partition(".")[0] != "parquet":
        reading.drop(file, 0, f"unknown format {kind[:20]!r}: expected jsonl or parquet")
        return
    number = 0
    try:
        with open_file(file, MAX_BYTES) as data, pq.ParquetFile(data) as table:
            check_rows(table.metadata)
            names = [name for name in _COLUMNS if name in table.schema_arrow.names]
            for batch in table.iter_batches(_BATCH_ROWS, columns=names):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and "too many" in str(error):
            reading.drop(file, 0, "too many rows")
        else:
            reading.drop(file, number, "the rest of the file is damaged")


LM_PUB_QUIZ = ResultsFormat("lm-pub-quiz", "lm-pub-quiz results folder", recognizes, read)
