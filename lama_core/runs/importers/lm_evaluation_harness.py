"""Output folders of lm-evaluation-harness, written with `--log_samples`.

Layout: for each model and evaluation, `results_DATE.json` (model, version) and a
`samples_TASK_DATE.jsonl` for each task. A line has the document, the prompts and continuations
(`arguments`), what the model gave (`resps`, `filtered_resps`), the right answer (`target`) and the
metrics. A task is a relation. The subject is the document's question, the object its right answer.

Multiple choice: log-likelihoods rank the choices, as `acc` does. Other tasks are right or wrong by
the first of `VERDICTS`. Tasks with several filters: the first one. Of several evaluations of one
task, the newest counts.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from lama_core.datasets.line_reader import JsonObject, Reading, Rejected
from lama_core.datasets.nested_folders import files_under
from lama_core.errors import UserError
from lama_core.progress import OnProgress
from lama_core.runs.importers.answer_rows import (
    MAX_OPTIONS,
    AnswerRows,
    converted,
    first_object,
    log_probability,
    model_of,
    ranked,
    read_json_object,
    short,
)
from lama_core.runs.importers.results import DropList, ImportedResults, ReadOptions
from lama_core.texts import written_key

TOOL = "lm-evaluation-harness"
MAX_METADATA = 256 << 20
VERDICTS = ("exact_match", "acc", "em", "contains", "exact", "quasi_exact_match")
SUBJECTS = ("subject", "sub_label", "question", "query", "sentence", "goal", "ctx", "context")
_SAMPLES = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl")
_RESULTS = re.compile(r"(?:.+_)?results_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+)\.json")


@dataclass(frozen=True, slots=True)
class _Samples:
    """A file of samples, and what its results file says of it."""

    file: Path
    task: str
    date: str
    model: str
    version: str


def recognizes(path: Path) -> bool:
    """Whether it is a file of samples, or a folder with one or with a results file."""
    if path.is_file():
        return bool(_SAMPLES.fullmatch(path.name)) and "resps" in first_object(path)
    names = [file.name for file in files_under(path)]
    return any(_SAMPLES.fullmatch(name) or _RESULTS.fullmatch(name) for name in names)


def read(path: Path, options: ReadOptions, on_progress: OnProgress) -> list[ImportedResults]:
    """Return the results of each model.

    Raises:
        UserError: If there are no samples.
    """
    files = [path] if path.is_file() else list(files_under(path))
    results = {
        (one.parent, found["date"]): one for one in files if (found := _RESULTS.fullmatch(one.name))
    }
    samples = []
    about: dict[Path, tuple[str, str]] = {}
    for one in files:
        if found := _SAMPLES.fullmatch(one.name):
            described = results.get((one.parent, found["date"]))
            if described and described not in about:
                about[described] = _about(described)
            folder = "" if path in (one, one.parent) else one.parent.name
            model, version = about[described] if described else (folder, "")
            samples.append(_Samples(one, found["task"], found["date"], model or folder, version))
    if not samples:
        raise UserError(
            f"{path.name} has no samples_*.jsonl: evaluate with --log_samples, which stores the "
            "answers."
        )
    models = dict.fromkeys(one.model for one in samples)
    if options.model in models:
        models = {options.model: None}
    return [
        _read_model(path, [one for one in samples if one.model == model], on_progress)
        for model in models
    ]


def _about(file: Path) -> tuple[str, str]:
    """Return the model and the version in a results file."""
    found = read_json_object(file, MAX_METADATA)
    model, version = found.get("model_name"), found.get("lm_eval_version")
    return (
        model_of(model) if isinstance(model, str) else "",
        version if isinstance(version, str) else "",
    )


def _read_model(
    path: Path, samples: Sequence[_Samples], on_progress: OnProgress
) -> ImportedResults:
    newest: dict[str, _Samples] = {}
    for one in sorted(samples, key=lambda one: one.date):
        newest[one.task] = one
    drops = DropList()
    for one in samples:
        if newest[one.task] is not one:
            drops.add(one.file.name, "a newer evaluation of the task is there")
    rows = AnswerRows(on_progress, f"Reading {samples[0].model or path.name}")
    for task in newest.values():
        _read_task(task, rows, drops)
    last = max(newest.values(), key=lambda one: one.date)
    return ImportedResults(
        last.model,
        TOOL,
        last.version,
        ", ".join(newest) if len(newest) <= 3 else f"{len(newest)} tasks",
        _time(last.date),
        rows.table(),
        dropped=drops.records(),
    )


def _time(date: str) -> str:
    """Return `2026-11-26T11:04:24` for the date in a file's name."""
    day, _, clock = date.partition("T")
    try:
        found = datetime.fromisoformat(f"{day}T{clock.partition('.')[0].replace('-', ':')}")
    except ValueError:
        return ""
    return found.replace(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _read_task(task: _Samples, rows: AnswerRows, drops: DropList) -> None:
    reading = Reading(task.file)
    seen: set[tuple[str, str, str]] = set()
    documents: set[int] = set()
    chosen: str | None = None
    for number, line in reading.objects(task.file):
        with reading.dropping(task.file, number):
            name, document = _text(line.get("filter")), _document(line)
            chosen = name if chosen is None else chosen
            if name != chosen:
                raise Rejected(f"another filter of the same answers ({name[:40]})")
            if document in documents:
                raise Rejected("the document again")
            row = _row(line)
            key = (row["subject"], row["object"], row["query"])
            if key in seen:  # equal documents count one by one, as in the harness
                row["subject"] = f"{row['subject']} (document {document})"
            seen.add(key)
            documents.add(document)
            rows.add(relation=task.task, **row)
    drops.add_reading(reading)


def _document(line: JsonObject) -> int:
    number = line.get("doc_id")
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise Rejected("doc_id isn't a whole number")
    return number


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _row(line: JsonObject) -> dict[str, Any]:
    """Return the columns of a line. Raises Rejected for an unusable one."""
    pairs = _arguments(line)
    answers = line.get("filtered_resps")
    if not isinstance(answers, list) or not answers:
        raise Rejected("no filtered_resps")
    context = pairs[0][0]
    row: dict[str, Any] = {"subject": _subject(line, context), "query": short(context[-4000:])}
    if len(pairs) > 1 and len(answers) == len(pairs):
        return row | _choice(line, pairs, answers)
    found = {"object": short(_target(line)[0]), "correct": _verdict(line)}
    if not found["object"]:
        raise Rejected("no right answer")
    if isinstance(answers[0], list) and len(answers[0]) == 2:  # one log-likelihood
        found["log_prob"] = _log_likelihood(answers[0])
    elif isinstance(answers[0], str) and short(answers[0]):
        found["predictions"] = [short(answers[0])]
    return row | found


def _arguments(line: JsonObject) -> list[tuple[str, str]]:
    """Return the prompt and continuation of each request, in order."""
    given = line.get("arguments")
    if isinstance(given, dict):
        given = [list(one.values()) for one in given.values() if isinstance(one, dict)]
    if not isinstance(given, list) or not 0 < len(given) <= MAX_OPTIONS:
        raise Rejected("no arguments")
    pairs = []
    for one in given:
        if not isinstance(one, list) or not one or not isinstance(one[0], str):
            raise Rejected("the arguments aren't texts")
        pairs.append((one[0], _text(one[1]) if len(one) > 1 else ""))
    return pairs


def _subject(line: JsonObject, context: str) -> str:
    """Return the document's question; without one, the last paragraph of the prompt."""
    document = line.get("doc")
    if isinstance(document, dict):
        for name in SUBJECTS:
            if text := short(_text(document.get(name))):
                return text
    if text := short(context.strip().rpartition("\n\n")[2]):
        return text
    raise Rejected("no question")


def _target(line: JsonObject) -> list[str]:
    """Return the right answers as texts; the harness writes numbers and lists as texts, too."""
    value = line.get("target")
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            value = orjson.loads(value.replace("'", '"'))
        except orjson.JSONDecodeError:
            return [str(value)]
    items = value if isinstance(value, list) else [value]
    texts = [str(one) for one in items if isinstance(one, str | int | float)]
    if not texts:
        raise Rejected("no right answer")
    return texts


def _choice(line: JsonObject, pairs: list[tuple[str, str]], answers: list[Any]) -> dict[str, Any]:
    """Return the columns of a multiple-choice line."""
    scores = [_log_likelihood(one) for one in answers]
    half = len(pairs) // 2
    if "acc_mutual_info" in line and len(pairs) % 2 == 0:  # the rest is without the question
        pairs, scores = pairs[:half], scores[:half]
    words = _distinct([continuation for _, continuation in pairs])
    if not words:
        words = _distinct([context for context, _ in pairs])
    if not words:
        raise Rejected("two choices are the same")
    best = max(range(len(words)), key=lambda at: scores[at])
    golds = _golds(_target(line), words, best, line.get("acc"))
    gold = max(golds, key=lambda at: scores[at])
    return {"object": words[gold], **ranked(words, scores, gold)}


def _distinct(texts: Sequence[str]) -> list[str]:
    """Return the texts, [] if one is empty or twice there."""
    words = [short(one) for one in texts]
    return words if all(words) and len(set(words)) == len(words) else []


def _golds(target: list[str], words: list[str], best: int, verdict: object) -> list[int]:
    """Return the right choices: numbers, or texts of choices if only they fit the verdict."""
    numbers = [int(one) for one in target if one.isdecimal() and len(one) < 6]
    by_number = [at for at in numbers if at < len(words)]
    keys = [written_key(word) for word in words]
    by_text = [keys.index(key) for key in map(written_key, map(short, target)) if key in keys]
    readings = [one for one in (by_number, by_text) if one]
    if not readings:
        raise Rejected("the right answer isn't one of the choices")
    if len(readings) == 2 and isinstance(verdict, int | float):
        fitting = [one for one in readings if (best in one) == (verdict == 1)]
        return (fitting or readings)[0]
    return readings[0]


def _log_likelihood(answer: object) -> float:
    """Return the number of `["-5.97", "False"]`. Raises Rejected for anything else."""
    value = answer[0] if isinstance(answer, list) and answer else answer
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise Rejected("a log-likelihood isn't a number") from None
    return log_probability(value, "log-likelihood")


def _verdict(line: JsonObject) -> bool:
    """Return whether the harness counts the line as right."""
    for name in VERDICTS:
        value = line.get(name)
        if isinstance(value, int | float) and value in (0, 1):
            return bool(value)
    named = line.get("metrics")
    shown = ", ".join(converted(named, list[str], "metrics")) if named else "none"
    raise Rejected(f"no metric says right or wrong (metrics: {shown[:100]})")
