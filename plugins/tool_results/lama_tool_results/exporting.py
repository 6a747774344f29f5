"""Files of a run for other tools.

lm-pub-quiz: a results folder, which its `DatasetResults.from_path` and `runs import` open. Only for
runs with the scores of all answers. An answer that the model can't write has the score
`UNWRITABLE`. Ids are made up, because runs don't store them.

table: `answers.jsonl`, an object a line, with the columns that `runs import` reads. The rank is the
one that the run shows by default.

Excluded rows aren't written.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lama_core import __version__
from lama_core.errors import UserError, choose
from lama_core.files import user_path, work_folder
from lama_core.progress import Progress
from lama_core.reports.table_files import json_lines, json_texts
from lama_core.requests import Function, Request, argument, option
from lama_core.runs.facts_table import (
    RANKED,
    column_names,
    encode_top,
    place_top,
    read_batches,
    read_candidates,
)
from lama_core.runs.find import load_run
from lama_core.runs.info import CANDIDATES_FILE, FACTS_FILE, Run
from lama_core.scoring.queries import BLANK
from lama_core.types import OWN_TEMPLATE

ExportFormat = Literal["lm-pub-quiz", "table"]
TABLE_FILE = "answers.jsonl"
METADATA, SUFFIX = "metadata_results.json", "_results"  # of lm-pub-quiz's files
UNWRITABLE = -1e30  # score of an answer that the model can't write
MADE_BY = f"LAMA Explorer {__version__}"
MAX_NAME_BYTES = 200
_FACT = ["relation", "subject", "object", "prompt", "excluded"]
_TABLE = [
    *_FACT,
    "query",
    "rank_raw",
    "rank_filtered",
    "log_prob",
    "top_words",
    "top_log_probs",
]


@dataclass(frozen=True)
class ExportRunRequest(Request, command="runs export", python="export_run"):
    """The files of a run for other tools: `runs export`."""

    run: Annotated[str, argument("Name of the run.")]
    out: Annotated[Path, option("New folder for the files.")]
    format: Annotated[
        ExportFormat,
        option("table: one JSON file. lm-pub-quiz: a results folder, for runs that rank answers."),
    ] = "table"


@dataclass(frozen=True)
class ExportedRun:
    """The files of a run.

    Attributes:
        run: Name of the run.
        folder: Folder of the files.
        files: Their names.
        n: Rows written.
        n_excluded: Rows of the run that aren't written, because they don't count.
    """

    run: str
    folder: Path
    files: tuple[str, ...]
    n: int
    n_excluded: int

    def to_json(self) -> dict[str, Any]:
        """Return what `runs export --json` prints."""
        return {
            "run": self.run,
            "folder": str(self.folder),
            "files": list(self.files),
            "n": self.n,
            "n_excluded": self.n_excluded,
        }


def export_files(request: ExportRunRequest) -> ExportedRun:
    """Write the files of a run, all or none.

    Raises:
        UserError: If there is no such run, the folder exists, or the format needs scores of all
            answers that the run doesn't have.
    """
    write = _WRITERS[choose(request.format, _WRITERS, "format")]
    run, out = load_run(request.run), user_path(request.out)
    if out.exists():
        raise UserError(f"{out} exists: name a new folder.")
    stored = column_names(run.info.path(FACTS_FILE))
    if missing := [name for name in _TABLE if name not in stored]:
        raise UserError(f"{run.info.id} has no answers to export ({missing[0]} is missing).")
    request.on_progress(Progress(f"Writing {run.info.label}"))
    try:
        with work_folder(out.absolute().parent) as folder:
            made = folder / out.name
            made.mkdir()
            n = write(run, made)
            files = tuple(sorted(one.name for one in made.iterdir()))
            made.rename(out)
    except OSError as error:
        raise UserError(f"{out} can't be written: {error.strerror or error}.") from error
    return ExportedRun(run.info.id, out, files, n, run.info.n_excluded)


def _batches(run: Run, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows that count, with some of their columns."""
    for batch in read_batches(run.info.path(FACTS_FILE), names):
        yield batch.filter(pc.is_null(batch["excluded"]))


def _write_table(run: Run, folder: Path) -> int:
    n, known = 0, run.known_to[run.counted] == RANKED
    with (folder / TABLE_FILE).open("wb") as file:
        for batch in _batches(run, _TABLE):
            file.write(json_lines(_table_cells(run, batch, known[n : n + len(batch)])))
            n += len(batch)
    return n


def _table_cells(
    run: Run, batch: pa.RecordBatch, ranked: NDArray[np.bool_]
) -> dict[str, pa.Array | pa.Scalar]:
    """Return the cells of rows of results as JSON. ranked: whether each row's rank is known."""
    rank = batch["rank_filtered" if run.info.ranking == "filtered" else "rank_raw"]
    log_prob = batch["log_prob"]
    codes, words = encode_top([batch["top_words"]])
    named, scores = codes >= 0, place_top(batch["top_log_probs"])
    known = named & (np.isfinite(scores) | ~named).all(axis=1, keepdims=True)
    return {
        **{name: json_texts(batch[name]) for name in ("relation", "subject", "object", "query")},
        "model": json_texts(pa.scalar(run.info.model)),
        "made_by": json_texts(pa.scalar(_made_by(run))),
        "rank": pc.if_else(pa.array(ranked), rank, None).cast(pa.string()),
        "correct": pc.fill_null(pc.equal(rank, 1), False).cast(pa.string()),
        "log_prob": pc.if_else(pc.is_finite(log_prob), log_prob, None).cast(pa.string()),
        "predictions": _lists(json_texts(words).take(pa.array(codes[named])), named),
        "scores": _lists(pa.array(scores[known]).cast(pa.string()), known),
    }


def _lists(cells: pa.Array, of: NDArray[np.bool_]) -> pa.Array:
    """Return cells as JSON lists, one for each row of `of`, bool [row, cell]: which it has."""
    ends = np.concatenate([[0], np.cumsum(of.sum(axis=1))]).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(ends, cells), ",")
    return pc.binary_join_element_wise("[", joined, "]", "")


def _made_by(run: Run) -> str:
    """Return what made the numbers; imported ones are from another tool."""
    imported = run.info.imported
    return f"{imported.source}, imported by {MADE_BY}" if imported else MADE_BY


def _write_quiz(run: Run, folder: Path) -> int:
    """Write lm-pub-quiz's tables, relation by relation, and its metadata."""
    path = run.info.path(FACTS_FILE)
    if "scores" not in column_names(path) or not run.info.has(CANDIDATES_FILE):
        raise _no_scores(run)
    known = read_candidates(run.info.path(CANDIDATES_FILE))
    lines: dict[str, list[bytes]] = {}
    texts: dict[str, dict[str, int]] = {}  # relation -> template -> its number
    rows = (
        row for batch in _batches(run, [*_FACT, "query", "scores"]) for row in batch.to_pylist()
    )
    for row in rows:
        name = row["relation"]
        words = known.get(name) or known.get("", ())
        if row["scores"] is None or row["object"] not in words:
            raise _no_scores(run)
        parts = {"/", "\\", "\0"} & set(name)
        if parts or name.startswith(".") or len(name.encode()) > MAX_NAME_BYTES:
            raise UserError(
                f"lm-pub-quiz names files by relations, and {name[:60]!r} can't be a file name: "
                "export the run as a table."
            )
        done = lines.setdefault(name, [])
        shared = run.info.relation(name).templates
        is_own = not shared or shared[0].startswith(OWN_TEMPLATE)
        first = {} if is_own else {text: at for at, text in enumerate(shared)}
        known_texts = texts.setdefault(name, first)
        if is_own:
            text = row["query"].replace(row["subject"], "[X]", 1).replace(BLANK, "[Y]", 1)
            row["prompt"] = known_texts.setdefault(text, len(known_texts))
        done.append(orjson.dumps(_quiz_row(row, words, len(done))))
    for name, some in lines.items():
        (folder / f"{name}{SUFFIX}.jsonl").write_bytes(b"\n".join([*some, b""]))
    about = {
        name: _about(run, tuple(texts[name]), known.get(name) or known.get("", ()), name, len(some))
        for name, some in lines.items()
    }
    (folder / METADATA).write_bytes(orjson.dumps(about, option=orjson.OPT_INDENT_2))
    return sum(map(len, lines.values()))


def _no_scores(run: Run) -> UserError:
    return UserError(
        f"{run.info.id} doesn't store the scores of all answers, which lm-pub-quiz needs: export "
        "it as a table."
    )


def _quiz_row(row: dict[str, Any], words: tuple[str, ...], number: int) -> dict[str, Any]:
    return {
        "sub_id": f"{row['relation']}-{number}",
        "sub_label": row["subject"],
        "sub_aliases": [],
        "answer_idx": words.index(row["object"]),
        "template_index": row["prompt"],
        "instance_index": number,
        "pll_scores": [one if math.isfinite(one) else UNWRITABLE for one in row["scores"]],
    }


def _about(
    run: Run, templates: tuple[str, ...], words: tuple[str, ...], name: str, n: int
) -> dict[str, Any]:
    """Return a relation's metadata; its accuracy is left for lm-pub-quiz to compute."""
    info = run.info
    return {
        "metric_values": {},
        "templates": templates,
        "template_index": info.relation(name).used or list(range(len(templates))) or None,
        "model_name_or_path": info.model,
        "num_original_instances": n,
        "subsampled": None,
        "time_end": info.made,
        "reduction": "sum",
        "dataset_name": info.dataset,
        "made_by": _made_by(run),
        "answer_space_labels": words,
        "answer_space_ids": [f"{name}-answer-{number}" for number in range(len(words))],
        "relation_info": {},
    }


_WRITERS: dict[ExportFormat, Callable[[Run, Path], int]] = {
    "lm-pub-quiz": _write_quiz,
    "table": _write_table,
}


export_run = Function(
    ExportRunRequest,
    export_files,
    lambda exported: exported.folder,
    """Write the answers of a run to files for other tools; lm-pub-quiz and `runs import` open them.

    Returns:
        The folder.

    Raises:
        UserError: If there is no such run, the folder exists, or the run doesn't store what the
            format needs.
    """,
)
