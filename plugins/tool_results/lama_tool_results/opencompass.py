"""Output folders of OpenCompass: `results/MODEL/DATA.json` and `predictions/MODEL/DATA.json`.

The verdicts are in the `details` of the results (`--dump-eval-details`): by number with `prompt`,
`predictions`, `references` and `correct` (until 0.4), or a list with `predictions`, a list of one
`pred`, `answer` and `correct` for each replica. The question is the last paragraph of the prompt's
last turn by the user, from the predictions (`origin_prompt`, `gold`; parts named `DATA_0.json`).
Only the first replica counts.
"""

import re
from pathlib import Path
from typing import Any

from lama_core.datasets.line_reader import JsonObject
from lama_core.datasets.nested_folders import files_under
from lama_core.errors import UserError
from lama_core.progress import OnProgress
from lama_core.runs.importers.results import (
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

HELP = "evaluate with --dump-eval-details, and give the folder with predictions and results"
CORRECT = ("correct", "is_correct", "cascade_correct")


def recognizes(path: Path) -> bool:
    """Whether it is an output folder, or a file of predictions or of results with details."""
    if path.is_file():
        head = head_of(path)
        is_results = (b'"details"' in head and b'"references"' in head) or b'"example_abbr"' in head
        return head[:1] == b"{" and (b'"origin_prompt"' in head or is_results)
    return any(_kind(one) for one in files_under(path))


def _kind(file: Path) -> str:
    """Return `predictions` or `results` for a file in such a folder, "" for another."""
    kind = file.parent.parent.name
    if file.suffix != ".json" or kind not in ("predictions", "results"):
        return ""
    root = file.parent.parent.parent
    return kind if (root / "predictions").is_dir() else ""


def read(path: Path, options: ReadOptions, on_progress: OnProgress) -> list[ImportedResults]:
    """Return the results of each model. Raises UserError without details or questions."""
    files = [path] if path.is_file() else [one for one in files_under(path) if _kind(one)]
    models: dict[str, tuple[AnswerRows, DropList, list[str]]] = {}
    for file in files:
        if path.is_dir() and _kind(file) != "results":
            continue
        found = read_json_object(file, MAX_LIST)
        model = model_of(file.parent.name) if _kind(file) else ""
        rows, drops, tasks = models.setdefault(
            model, (AnswerRows(on_progress, f"Reading {file.name}"), DropList(), [])
        )
        details = found.get("details")
        if not isinstance(details, dict | list):
            raise UserError(f"{file.name} has no verdicts of single answers: {HELP}.")
        if file.stem in tasks:
            drops.add(file.name, "another evaluation of the data", 0, of_answer=False)
            continue
        tasks.append(file.stem)
        _read_details(file, details, rows, drops)
    if not models:
        raise UserError(f"{path.name} has no results of OpenCompass: {HELP}.")
    return [
        ImportedResults(
            model, "OpenCompass", "", ", ".join(tasks)[:200], "", rows.table(), dropped=d.records()
        )
        for model, (rows, d, tasks) in models.items()
    ]


def _read_details(file: Path, details: Any, rows: AnswerRows, drops: DropList) -> None:
    asked = _predictions(file)
    if isinstance(details, dict):
        items = [(int(one), details[one]) for one in details if one.isdecimal()]
    else:
        items = list(enumerate(details))
    for at, item in items:
        with drops.dropping(file.name, at + 1):
            rows.add(relation=short(file.stem), **_row(item, asked.get(at, {})))
    if left := asked.keys() - {at for at, _ in items}:
        drops.add(file.name, "no verdict for the prediction", len(left))


def _predictions(file: Path) -> dict[int, JsonObject]:
    """Return the predictions for a file of results by their number, {} without any."""
    folder = file.parent.parent.parent / "predictions" / file.parent.name
    parts = [folder / file.name] if (folder / file.name).is_file() else []
    if not parts and folder.is_dir():
        pattern = re.compile(rf"{re.escape(file.stem)}_(\d+)\.json")
        numbered = [
            (int(n[1]), one) for one in folder.iterdir() if (n := pattern.fullmatch(one.name))
        ]
        parts = [one for _, one in sorted(numbered)]
    rows: list[JsonObject] = []
    for part in parts:
        found = read_json_object(part, MAX_LIST)
        for key in sorted((one for one in found if one.isdecimal()), key=int):
            row = found[key]
            rows.append(row if isinstance(row, dict) else {})
    return dict(enumerate(rows))


def _row(item: object, prediction: JsonObject) -> dict[str, Any]:
    """Return the columns of an answer. Raises Rejected for an unusable one."""
    found = item if isinstance(item, dict) else {}
    replicas = found.get("predictions")
    if isinstance(replicas, list) and replicas and isinstance(replicas[0], dict):
        found = replicas[0]
    prompt = prediction.get("origin_prompt") or found.get("prompt")
    if isinstance(prompt, list):  # turns
        by_user = [one for one in prompt if isinstance(one, dict) and one.get("role") != "BOT"]
        prompt = by_user[-1].get("prompt") if by_user else ""
    query = first_text(prompt)
    given = (prediction.get("gold"), found.get("answer"), found.get("references"))
    obj = next(filter(None, map(first_text, given)), "")
    if not query or not obj:
        raise FactRejected("no right answer" if query else f"no prompt: {HELP}")
    value = next((found[one] for one in CORRECT if found.get(one) is not None), None)
    correct = verdict(value, "verdict")
    said = first_text(found.get("pred")) or first_text(found.get("predictions"))
    return {
        "subject": query.rpartition("\n\n")[2],
        "object": obj,
        "query": query,
        "correct": correct,
        "predictions": [said] if said else None,
    }


OPENCOMPASS = ResultsFormat("opencompass", "OpenCompass output folder", recognizes, read)
