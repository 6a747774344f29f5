"""Output folders of lm-evaluation-harness, written with `--log_samples`.

Layout: for each model and evaluation, `results_DATE.json` (model, version) and a
`samples_TASK_DATE.jsonl` for each task. A line has the document, the prompts and continuations
(`arguments`), what the model gave (`resps`, `filtered_resps`), the right answer (`target`) and the
metrics. A task is a relation. The subject is the document's question, the object its right answer.

Multiple choice: log-likelihoods rank the choices, as `acc` does. Other tasks are right or wrong by
the first of `VERDICTS`. Tasks with several filters: the first one. Of several evaluations of one
task, the newest counts.
"""

import ast
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lama_core.datasets.line_reader import JsonObject, Reading, Rejected
from lama_core.datasets.nested_folders import files_under
from lama_core.errors import UserError
from lama_core.progress import OnProgress
from lama_core.runs.importers.results import (
    DropList,
    FactRejected,
    ImportedResults,
    ReadOptions,
    ResultsFormat,
    of_fact,
    short,
)
from lama_core.texts import written_key
from lama_tool_results.answer_rows import (
    MAX_OPTIONS,
    AnswerRows,
    answers_in,
    converted,
    head_of,
    log_probability,
    model_of,
    ranked,
    read_json_object,
)

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
        return _is_samples(path)
    files = list(files_under(path))
    named = any(_SAMPLES.fullmatch(one.name) or _RESULTS.fullmatch(one.name) for one in files)
    return named or any(map(_is_samples, files[:20]))


def _is_samples(file: Path) -> bool:
    """Whether a file has samples, whatever its name; before 0.4.3 they were one JSON list."""
    head = head_of(file)
    return head[:1] in (b"{", b"[") and all(
        name in head for name in (b'"doc_id"', b'"doc"', b'"target"', b'"arguments"')
    )


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
        found = _SAMPLES.fullmatch(one.name)
        if found is None and _is_samples(one):
            samples.append(_undated(one))
        elif found:
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


def _undated(file: Path) -> _Samples:
    """Return a file of another name, such as `pretrained__toy_TASK.jsonl` of 0.4.0.

    Results files beside it name its task; the model and version are theirs if all have the same.
    """
    stem = file.name.partition(".json")[0].removeprefix("samples_")
    tasks, about = [], set()
    for one in file.parent.glob("*.json"):
        with suppress(UserError):
            results = read_json_object(one, MAX_METADATA).get("results")
            named = (
                [task for task in results if stem.endswith(task)]
                if isinstance(results, dict)
                else []
            )
            tasks += named
            about |= {_about(one)} if named else set()
    model, version = about.pop() if len(about) == 1 else ("", "")
    return _Samples(file, max(tasks, key=len, default=stem), "", model, version)


def _about(file: Path) -> tuple[str, str]:
    """Return the model and the version in a results file."""
    found = read_json_object(file, MAX_METADATA)
    model, version = found.get("model_name"), found.get("lm_eval_version")
    config = found.get("config")
    arguments = config.get("model_args") if isinstance(config, dict) else None
    if model is None and isinstance(arguments, str):  # before 0.4.3
        model = next(iter(re.findall(r"pretrained=([^,]+)", arguments)), None)
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
            drops.add(one.file.name, "a newer evaluation of the task is there", of_answer=False)
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
    for number, line in answers_in(reading, task.file):
        with drops.dropping(task.file.name, number):
            name, document = _text(line.get("filter")), _document(line)
            chosen = name if chosen is None else chosen
            if name != chosen:
                raise FactRejected(f"another filter of the same answers ({name[:40]})")
            if document in documents:
                raise FactRejected("the document again")
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
        raise FactRejected("doc_id isn't a whole number")
    return number


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _row(line: JsonObject) -> dict[str, Any]:
    """Return the columns of a line. Raises Rejected for an unusable one."""
    with of_fact():
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
        raise FactRejected("no right answer")
    if isinstance(answers[0], list) and len(answers[0]) == 2:  # one log-likelihood
        score = _log_likelihood(answers[0])
        found["log_prob"] = score if math.isfinite(score) else None
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
    raise FactRejected("no question")


def _target(line: JsonObject) -> list[str]:
    """Return the right answers as texts; the harness writes numbers and lists as texts, too."""
    value = line.get("target")
    if isinstance(value, str) and value.strip().startswith("["):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            value = ast.literal_eval(value.strip())
    items = value if isinstance(value, list) else [value]
    texts = [str(one) for one in items if isinstance(one, str | int | float)]
    if not texts:
        raise FactRejected("no right answer")
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
        raise FactRejected("two choices are the same")
    if not any(map(math.isfinite, scores)):
        raise Rejected("no choice has a finite log-likelihood")
    best = max(range(len(words)), key=lambda at: scores[at])
    golds = _labelled(line, words) or _golds(_target(line), words, best, line.get("acc"))
    gold = max(golds, key=lambda at: scores[at])
    verdict = line.get("acc")
    if len(golds) == 1 and isinstance(verdict, float) and 0 < verdict < 1:
        raise Rejected(
            f"acc is {verdict:g}, so that several choices are right, but only one is named"
        )
    return {"object": words[gold], **ranked(words, scores, gold)}


def _labelled(line: JsonObject, words: Sequence[str]) -> list[int]:
    """Return the right choices that the document labels with 1, as those of mc2; [] without."""
    document = line.get("doc")
    for labelled in document.values() if isinstance(document, dict) else ():
        if isinstance(labelled, dict) and isinstance(labels := labelled.get("labels"), list):
            given = labelled.get("choices")
            if isinstance(given, list) and [short(str(one)) for one in given] == list(words):
                return [at for at, label in enumerate(labels[: len(words)]) if label == 1]
    return []


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
        raise FactRejected("the right answer isn't one of the choices")
    if len(readings) == 2 and isinstance(verdict, int | float):
        fitting = [one for one in readings if (best in one) == (verdict == 1)]
        return (fitting or readings)[0]
    return readings[0]


def _log_likelihood(answer: object) -> float:
    """Return the number of `["-5.97", "False"]`; -inf if the model can't write the choice.

    Raises Rejected for anything else.
    """
    value = answer[0] if isinstance(answer, list) and answer else answer
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise Rejected("a log-likelihood isn't a number") from None
    return -math.inf if value == -math.inf else log_probability(value, "log-likelihood")


def _verdict(line: JsonObject) -> bool:
    """Return whether the harness counts the line as right."""
    for name in VERDICTS:
        value = line.get(name)
        if isinstance(value, int | float) and value in (0, 1):
            return bool(value)
    named = line.get("metrics")
    shown = ", ".join(converted(named, list[str], "metrics")) if named else "none"
    raise Rejected(f"no metric says right or wrong (metrics: {shown[:100]})")


HARNESS = ResultsFormat(
    "lm-evaluation-harness", "lm-evaluation-harness output folder with samples", recognizes, read
)
