"""Import results that another tool made: read, match with known facts, and save as runs.

Nothing is saved before all of it was read, and each run is saved completely or not at all.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lama_core import plugins
from lama_core.datasets.nested_folders import files_under
from lama_core.datasets.user_table import TablePreview, first_names, first_rows, is_table
from lama_core.downloads import archive
from lama_core.errors import UserError
from lama_core.files import folder_bytes, format_bytes, open_file, user_path, work_folder
from lama_core.paths import data_dir
from lama_core.progress import OnProgress, Progress, Result, ignore
from lama_core.requests import Function, Request, argument, option
from lama_core.rounding import counted, percent
from lama_core.runs.execute import save
from lama_core.runs.facts_table import KNOWN_TO, UNRANKED
from lama_core.runs.importers.results import (
    MAX_BYTES,
    ImportedResults,
    ReadOptions,
)
from lama_core.runs.info import MAX_TITLE, OWN_WORDS, Imported, Run, text_digest
from lama_core.runs.manage import rename_run
from lama_core.runs.spec import Finished
from lama_core.scoring.answer_spaces import answers_of, named_space
from lama_core.tables import frame_of
from lama_tool_results.formats import TABLE, all_formats, find_format, recognize
from lama_tool_results.matching import Matched, match
from lama_tool_results.rows import (
    SILENT,
    describe_relations,
    make_rows,
    without_unusable_rows,
)
from lama_tool_results.spec import ImportedSpec
from lama_tool_results.table import HEAD, RESULTS, columns_of, guess, table_in

MAX_FILES = 5000
MAX_FOLDER = 2 << 30  # bytes of a folder or unpacked archive
MAX_NAME = 120  # letters of a model's or dataset's name
PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth")
PICKLED = b"\x80"
MODEL_KIND = "imported"


@dataclass(frozen=True)
class ImportRunRequest(Request, command="runs import", python="import_run"):
    """Results of another tool as runs: `runs import`."""

    path: Annotated[
        str,
        argument(
            "A table (CSV, JSON, Parquet, a spreadsheet, ...), or a folder or archive of another "
            "tool's results."
        ),
    ]
    format: Annotated[
        str | None,
        option("Default: recognised from the files. For an unknown name, the error lists all."),
    ] = None
    model: Annotated[
        str | None,
        option("Name of the model; of several models in the files, the only one to import."),
    ] = None
    dataset: Annotated[
        str | None,
        option(
            "The installed dataset with the facts. Default: the one that has most of them, if it "
            "has half of them."
        ),
    ] = None
    name: Annotated[str | None, option("Title of the run.")] = None
    column: Annotated[
        Sequence[str],
        option(
            "For a table: ROLE=COLUMN, such as rank=gold_position, or ROLE= for no column. Can be "
            "repeated."
        ),
    ] = ()
    sheet: Annotated[str, option("For a spreadsheet with several: the sheet's name.")] = ""
    encoding: Annotated[
        str, option("For a table: encoding of the text, such as cp1252, if it isn't Unicode.")
    ] = ""
    partial: Annotated[
        bool,
        option(
            "Import the usable rows, even if rows are unusable for a reason that may depend on the "
            "model's answer, such as a rank that isn't a number."
        ),
    ] = False
    dry_run: Annotated[bool, option("Only report what would be imported; save nothing.")] = False

    def columns(self) -> dict[str, str]:
        """Return role -> column. Raises UserError for text without `=`."""
        found = {}
        for text in self.column:
            role, equals, name = text.partition("=")
            if not (equals and role.strip()):
                raise UserError(f"--column {text!r}: expected ROLE=COLUMN, such as rank=position.")
            found[role.strip()] = name.strip()
        return found


@dataclass(frozen=True)
class OpenedResults:
    """Results that can be saved as a run.

    Attributes:
        matched: The results with their facts.
        spec: The description of the run.
        finished: Its rows.
    """

    matched: Matched
    spec: ImportedSpec
    finished: Finished

    @property
    def model(self) -> str:
        """The model's name."""
        return self.spec.model_name

    @property
    def precision(self) -> tuple[float | None, float | None]:
        """P@1 as the mean over relations, and over facts; None without rows that count."""
        rows = self.finished.rows.filter(pc.is_null(self.finished.rows["excluded"]))
        if not len(rows):
            return None, None
        right = pc.equal(rows["rank_raw"], 1).cast(pa.float64())
        table = pa.table({"relation": rows["relation"].cast(pa.string()), "right": right})
        means = table.group_by("relation").aggregate([("right", "mean")])["right_mean"]
        return pc.mean(means).as_py(), pc.mean(right).as_py()

    @property
    def unusable(self) -> str:
        """How many rows aren't in the run for a reason of the answer; "" if all are."""
        about = self.spec.imported
        return about.unusable(len(self.finished.rows)) if about else ""

    @property
    def known_to(self) -> int | None:
        """The largest k for which P@k is known for every row; None if it is for all k."""
        rows = self.finished.rows
        if KNOWN_TO not in rows.column_names:
            return None
        found: int | None = pc.min(rows.filter(pc.is_null(rows["excluded"]))[KNOWN_TO]).as_py()
        return found

    def to_json(self) -> dict[str, Any]:
        """Return what `runs import --json` prints of a run."""
        results = self.matched.results
        over_relations, over_facts = self.precision
        return {
            "run": self.spec.run_id,
            "model": self.model,
            "dataset": self.spec.dataset_name,
            "tool": results.tool,
            "version": results.version,
            "created": results.created,
            "n": sum(one.n for one in self.finished.relations),
            "n_excluded": sum(one.n_excluded for one in self.finished.relations),
            "n_relations": len(self.finished.relations),
            "n_matched": self.matched.n_matched,
            "matched_with": self.matched.dataset.name if self.matched.dataset else None,
            "has_ranks": bool(self.spec.imported and self.spec.imported.ranks),
            "p_at_1": over_relations,
            "p_at_1_over_facts": over_facts,
            "dropped": [
                {"where": one.where, "reason": one.reason, "n": one.n} for one in results.dropped
            ],
            "n_unusable": self.spec.imported.n_unusable if self.spec.imported else 0,
            "bounds": self.spec.imported.bounds if self.spec.imported else None,
        }


def takes(path: str | Path) -> Literal["yes", "likely", "perhaps", "no"]:
    """Return whether a file, folder or archive has results.

    It is likely of a table with columns of results, and possible ("perhaps") if its columns only
    look like those of results.

    Raises:
        UserError: If it is a pickle, too large, or an unsafe archive.
    """
    given = user_path(path)
    if not given.exists():
        raise UserError(f"No such file or folder: {given}.")
    with _unpacked(given, ignore) as found:
        if found.is_file() or all(map(_is_pickle, files_under(found))):
            _check_files(found)
        form = recognize(found)
        if form is not None:
            return "likely" if form is TABLE else "yes"
        if not found.is_file() or not first_names(found):
            return "no"
        header, rows = first_rows(found, HEAD)
        guessed = {**columns_of(header, {}), **guess(header, rows)}
        return "perhaps" if any(one in guessed for one in RESULTS) else "no"


def preview_results(path: str | Path, n_rows: int = 5) -> TablePreview:
    """Return the first rows of a table of results. Raises UserError if it can't be read."""
    with _unpacked(user_path(path), ignore) as found:
        header, rows = first_rows(table_in(found), HEAD)
    written = {name.strip().lower(): name for name in header}
    named = {role: written[name] for role, name in columns_of(header, {}).items()}
    return TablePreview(header, rows[:n_rows], named, guess(header, rows))


def open_results(request: ImportRunRequest) -> list[OpenedResults]:
    """Return the runs that an import would save.

    Raises:
        UserError: If the format is unknown, the files are too large or not safe, or nothing is
            usable.
    """
    given = user_path(request.path)
    if not given.exists():
        raise UserError(f"No such file or folder: {given}.")
    with _unpacked(given, request.on_progress) as path:
        try:
            return _open(path, given, request)
        except UserError as error:  # show the user the given path, not that of the copy
            raise UserError(str(error).replace(str(path), given.name)) from error
        except (pa.ArrowException, MemoryError, RecursionError, OSError) as error:
            raise UserError(f"{given.name} can't be read: the file is damaged.") from error


def _open(path: Path, given: Path, request: ImportRunRequest) -> list[OpenedResults]:
    _check_files(path)
    chosen = find_format(request.format) if request.format else recognize(path)
    if chosen is None and path.is_file() and is_table(path):
        chosen = TABLE  # its reader says what is missing
    if chosen is None:
        known = ", ".join(one.title for one in all_formats())
        raise UserError(f"{given.name} has no results in a known format; known: {known}.")
    options = ReadOptions(
        request.model or "",
        request.dataset or "",
        request.columns(),
        request.encoding,
        request.sheet,
    )
    if options.columns and chosen.name != "table":
        raise UserError(f"--column is for tables, and {given.name} is a {chosen.title}.")
    found = chosen.read(path, options, request.on_progress)
    are_results = isinstance(found, list) and all(isinstance(one, ImportedResults) for one in found)
    plugins.check_returned(chosen.read, found, are_results)
    if not found:
        raise UserError(f"{path} has no results of the format {chosen.name}.")
    if request.model and len(found) > 1:
        found = [one for one in found if one.model == request.model]
        if not found:
            raise UserError(f"{path} has no results of the model {request.model!r}.")
    found = [_named(without_unusable_rows(one), given, request) for one in found]
    if any(not len(one.rows) for one in found):
        dropped = [one for results in found for one in results.dropped]
        reason = f"{dropped[0].where}: {dropped[0].reason}" if dropped else "it is empty"
        raise UserError(f"{given.name} has no usable row: {reason}.")
    if len({one.model for one in found}) < len(found):
        raise UserError(f"{given.name} has several results of one model: import them one by one.")
    digest = files_digest(path)
    opened = []
    for one in match(found, request.dataset or "", request.on_progress):
        request.on_progress(Progress(f"Ranking the answers of {one.results.model}"))
        run = as_run(one, request, given.name, digest)
        broken = [row for row in one.results.dropped if row.of_answer and row.reason != SILENT]
        if run.unusable and broken and not request.partial:
            first = broken[0]
            raise UserError(
                f"{run.unusable}. The first: {first.reason} ({first.where}). Fix these rows, or "
                "import the others with --partial."
            )
        opened.append(run)
    return opened


def _named(results: ImportedResults, given: Path, request: ImportRunRequest) -> ImportedResults:
    """Return the results with the names of model and data, one line each."""
    model = _one_line(request.model or results.model)
    if not model:
        raise UserError(f"{given.name} doesn't say which model it is of: give it with --model.")
    data = _one_line(results.dataset) or given.name.split(".")[0] or "imported"
    return replace(results, model=model, dataset=data)


def _one_line(text: str) -> str:
    return "".join(one if one.isprintable() else " " for one in text).strip()[:MAX_NAME]


def as_run(matched: Matched, request: ImportRunRequest, file: str, digest: str) -> OpenedResults:
    """Return the run of matched results."""
    results, rows = matched.results, make_rows(matched)
    relations = describe_relations(matched, rows)
    has_scores = "scores" in rows.column_names
    has_ranks = has_scores or (pc.max(rows[KNOWN_TO].fill_null(UNRANKED)).as_py() or 0) > 1
    known = rows["first_log_prob"].null_count < len(rows)
    lost = [one.n for one in results.dropped if one.of_answer]
    n_right, n = pc.sum(pc.equal(rows["rank_raw"], 1)).as_py(), len(rows) + sum(lost)
    imported = Imported(
        _one_line(results.tool),
        _one_line(results.version),
        _one_line(results.created),
        _one_line(file),
        digest,
        "answers" if has_scores else "unknown" if has_ranks else "",
        known,
        sum(lost) if all(lost) else None,  # 0: an unknown number
        (n_right / n, (n_right + sum(lost)) / n) if all(lost) else None,
    )
    words = {one.name: results.options[one.name] for one in relations if has_scores}
    own = rows_digest(results)
    spec = ImportedSpec(
        request=request,
        dataset_name=matched.name,
        data_digest=matched.data_digest,
        relations=tuple(one.name for one in relations),
        model=results.model,
        model_name=results.model,
        model_identity=f"imported {own} {results.model}",
        model_kind=MODEL_KIND,
        imported=imported,
        answers=_answers(matched, words),
        rows=own,
    )
    n_candidates = max(map(len, words.values()), default=0)
    return OpenedResults(matched, spec, Finished(rows, relations, n_candidates, words=words))


def _answers(matched: Matched, words: dict[str, tuple[str, ...]]) -> tuple[str, str]:
    """Return name and digest of the ranked answers."""
    if not words:
        return "", ""
    space = named_space(OWN_WORDS)
    data = matched.dataset
    names = {one.name for one in data.relations} if data else set()
    if data and all(
        name in names and answers_of(space, data, name) == own for name, own in words.items()
    ):
        return OWN_WORDS, space.digest
    text = "\n".join(f"{name}\t{word}" for name, own in words.items() for word in own)
    return OWN_WORDS, text_digest(text)


def save_opened(opened: Sequence[OpenedResults], title: str = "") -> list[Run]:
    """Save the runs; title: their title, with the model's name if there are several.

    Raises:
        UserError: If the disk is full, or the title isn't one line.
    """
    if len(title) > MAX_TITLE or not title.isprintable():
        raise UserError(f"A run's name must be one line of at most {MAX_TITLE} characters.")
    runs = []
    for one in opened:
        run = save(one.spec, one.finished, "")
        if title:
            text = title if len(opened) == 1 else f"{title} {one.model}"[:MAX_TITLE]
            run = replace(run, info=rename_run(run.info.id, text))
        runs.append(run)
    return runs


@contextmanager
def _unpacked(path: Path, on_progress: OnProgress) -> Iterator[Path]:
    """Yield the path, or a temporary folder with the content of an archive."""
    if path.is_dir() or not archive.is_archive(path):
        yield path
        return
    with work_folder(data_dir() / "runs") as folder:
        target = folder / path.name.split(".")[0]
        archive.unpack(path, target, max_bytes=MAX_FOLDER, on_progress=on_progress)
        inner = [one for one in target.iterdir() if not one.name.startswith((".", "__MACOSX"))]
        yield inner[0] if len(inner) == 1 and inner[0].is_dir() else target


def _check_files(path: Path) -> None:
    """Raise UserError for pickles, special files, and more or larger files than allowed."""
    if not (path.is_file() or path.is_dir()):
        raise UserError(f"{path.name} is neither a file nor a folder.")
    files = [path] if path.is_file() else list(islice(files_under(path), MAX_FILES + 1))
    if len(files) > MAX_FILES:
        raise UserError(f"{path.name} has more than {MAX_FILES:,} files: give one results folder.")
    if not files or (path.is_file() and not path.stat().st_size):
        raise UserError(f"{path.name} is empty.")
    if folder_bytes(path) > MAX_FOLDER:
        raise UserError(f"{path.name} is larger than {format_bytes(MAX_FOLDER)}: split it.")
    others = [file for file in files if not _is_pickle(file)]
    if not others:
        raise UserError(
            f"{files[0].name} is a pickle, which can run code when it is opened: save the results "
            "as CSV or JSON."
        )
    for file in others:
        if os.path.getsize(file) > MAX_BYTES:
            raise UserError(f"{file.name} is larger than {format_bytes(MAX_BYTES)}: split it.")


def _is_pickle(path: Path) -> bool:
    if path.name.lower().endswith(PICKLES):
        return True
    with open_file(path) as file:
        head = file.read(2) or b""
    return head[:1] == PICKLED and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")


def files_digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of all files of a folder with their names."""
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted(files_under(path))
    for file in files:
        if path.is_dir():
            digest.update(f"{file.relative_to(path).as_posix()}\n".encode("utf-8", "replace"))
        with open_file(file) as content:
            while chunk := content.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()


def rows_digest(results: ImportedResults) -> str:
    """Return the SHA-256 of usable results: rows, templates, and the number of unusable rows."""
    digest = hashlib.sha256()
    lost = [one.n for one in results.dropped if one.of_answer]
    digest.update(repr((sorted(results.templates.items()), lost)).encode("utf-8", "replace"))
    for column in results.rows.columns:
        _add_column(digest, column.combine_chunks())
    return digest.hexdigest()


def _add_column(digest: Any, column: pa.Array) -> None:
    """Add the bytes of a column, whatever lies in the memory of its nulls."""
    digest.update(np.packbits(np.asarray(column.is_valid())))
    known = column.drop_null()
    if pa.types.is_list(known.type):
        digest.update(known.value_lengths().to_numpy().tobytes())
        _add_column(digest, known.flatten())
    elif pa.types.is_string(known.type) and len(known):
        _, ends, data = known.buffers()
        places = np.frombuffer(ends, np.int32)[known.offset :][: len(known) + 1]
        digest.update(np.diff(places).tobytes())
        digest.update(memoryview(data or b"")[places[0] : places[-1]])
    elif not pa.types.is_string(known.type):
        digest.update(known.to_numpy(zero_copy_only=False).tobytes())


def said_precision(about: Mapping[str, Any]) -> str:
    """Return P@1 of an imported run as text; "" if no row counts. about: as of `to_json`."""
    if about["p_at_1"] is None:
        return ""
    said = f", P@1 {percent(about['p_at_1'])} %"
    if about["n_relations"] == 1:
        return said
    return f"{said}, mean over relations (over facts: {percent(about['p_at_1_over_facts'])} %)"


def report(opened: OpenedResults) -> Iterator[str]:
    """Yield what an import found, a sentence each: facts, matched facts, dropped rows."""
    about = opened.to_json()
    tool = f" by {about['tool']} {about['version']}".rstrip() if about["tool"] else ""
    rows = opened.finished.rows.num_rows
    yield (
        f"{about['model']} on {about['dataset']}{tool}: {counted(rows, 'row')} of "
        f"{counted(about['n_relations'], 'relation')}" + said_precision(about)
    )
    if about["matched_with"]:
        data, n = about["matched_with"], about["n_matched"]
        if n == rows:
            yield f"All rows are facts of {data}"
        else:
            yield f"{n:,} of {rows:,} rows are facts of {data}; the others are kept with the run"
    else:
        yield "No installed dataset has these facts: they are kept with the run"
    if not about["has_ranks"]:
        yield "No ranks: an answer is right or wrong, so only P@1 is shown"
    elif (depth := opened.known_to) is not None:
        yield f"Not every right answer has a rank: P@k is shown up to k = {depth}"
    if opened.unusable:
        yield opened.unusable
    for one in opened.matched.results.dropped:
        rows = counted(one.n, "row") if one.n else "Rows"
        yield f"{rows} dropped: {one.reason} ({one.where})"


def _import_run(request: ImportRunRequest) -> list[dict[str, Any]]:
    opened = open_results(request)
    for line in (line for one in opened for line in report(one)):
        request.on_note(f"{line}.")
    if not request.dry_run:
        for run in save_opened(opened, request.name or ""):
            name = run.info.id
            request.on_progress(Progress(f"{name} is saved", 1, 1, result=Result("run", name)))
    return [one.to_json() | {"saved": not request.dry_run} for one in opened]


import_run = Function(
    ImportRunRequest,
    _import_run,
    frame_of,
    """Open results that another tool made as runs; what is matched and dropped is reported first.

    Returns:
        A DataFrame with a row for each run: its name, model, data, tool, counts, how many facts are
        those of an installed dataset, and the dropped rows.

    Raises:
        UserError: If the format is unknown, or nothing is usable.
    """,
)
