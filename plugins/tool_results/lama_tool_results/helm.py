"""Run folders of HELM: `display_predictions.json`, `instances.json` and `run_spec.json`.

`helm-summarize` writes the first two. A run's name without its model is the relation. The input is
the subject, the first reference tagged `correct` the object; the first of `VERDICTS` decides.
Perturbed copies and later trials are excluded, and so are other splits than `test` if it is there.
"""

import re
from pathlib import Path
from typing import Any

from lama_core.datasets.line_reader import JsonObject, Reading, Rejected, as_object, parse_json
from lama_core.datasets.nested_folders import files_under
from lama_core.errors import UserError
from lama_core.files import read_file
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
    model_of,
    read_json_object,
    verdict,
)

PREDICTIONS, INSTANCES, SPEC = "display_predictions.json", "instances.json", "run_spec.json"
NAMES = (PREDICTIONS, INSTANCES, SPEC, "scenario_state.json", "per_instance_stats.json")
VERDICTS = (
    "exact_match",
    "quasi_exact_match",
    "prefix_exact_match",
    "quasi_prefix_exact_match",
    "final_number_exact_match",
    "chain_of_thought_correctness",
)
_MODEL = re.compile(r"[:,]model=([^,]*)")


def recognizes(path: Path) -> bool:
    """Whether it is a file of a run, or a folder with one."""
    if path.is_file():
        is_table = path.name == INSTANCES and b'"references"' not in Reading(path).head(path)
        return path.name in NAMES and not is_table
    found = {one.name for one in files_under(path)}
    return PREDICTIONS in found or {SPEC, "scenario_state.json"} <= found


def read(path: Path, options: ReadOptions, on_progress: OnProgress) -> list[ImportedResults]:
    """Return the results of each model. Raises UserError without predictions."""
    folder = path.parent if path.is_file() else path
    runs = sorted(one.parent for one in files_under(folder) if one.name == PREDICTIONS)
    if path.is_file():
        runs = [one for one in runs if one == folder]
    if not runs:
        raise UserError(f"{path.name} has no {PREDICTIONS}: run helm-summarize, which writes it.")
    models: dict[str, tuple[AnswerRows, DropList, list[str]]] = {}
    for run in runs:
        spec = read_json_object(run / SPEC, MAX_LIST) if (run / SPEC).is_file() else {}
        name = first_text(spec.get("name")) or run.name
        adapter, named = spec.get("adapter_spec"), _MODEL.search(name)
        model = adapter.get("model") if isinstance(adapter, dict) else None
        model = model_of(first_text(model) or (named[1].replace("_", "/", 1) if named else ""))
        stage = f"Reading {model or path.name}"
        rows, drops, tasks = models.setdefault(
            model, (AnswerRows(on_progress, stage), DropList(), [])
        )
        task = _MODEL.sub("", name)
        if task in tasks:
            drops.add(run.name, "another run of the scenario", 0, of_answer=False)
            continue
        tasks.append(task)
        _read_run(run, task, rows, drops)
    return [
        ImportedResults(
            model, "HELM", "", ", ".join(tasks)[:200], "", rows.table(), dropped=drops.records()
        )
        for model, (rows, drops, tasks) in models.items()
    ]


def _read_run(run: Path, task: str, rows: AnswerRows, drops: DropList) -> None:
    if not (run / INSTANCES).is_file():
        raise UserError(f"{run.name} has no {INSTANCES}, which has the questions: add it.")
    found = [one for one in _items(run / INSTANCES) if not one.get("perturbation")]
    instances = {str(one.get("id")): one for one in found}
    has_test = any(one.get("split") == "test" for one in found)
    answered = set()
    for number, prediction in enumerate(_items(run / PREDICTIONS), start=1):
        with drops.dropping(f"{run.name}/{PREDICTIONS}", number):
            identity = str(prediction.get("instance_id"))
            instance = instances.get(identity)
            if prediction.get("perturbation"):
                raise FactRejected("a perturbed copy of another instance")
            if instance is None:
                raise FactRejected(f"its instance isn't in {INSTANCES}")
            if has_test and instance.get("split") != "test":
                raise FactRejected("not of the split test")
            if prediction.get("train_trial_index") or identity in answered:
                raise FactRejected("another trial of the instance")
            answered.add(identity)
            rows.add(relation=short(task), **_row(instance, prediction))
    wanted = {
        one for one, about in instances.items() if not has_test or about.get("split") == "test"
    }
    if left := wanted - answered:
        drops.add(run.name, "no prediction for the instance", len(left))


def _row(instance: JsonObject, prediction: JsonObject) -> dict[str, Any]:
    """Return the columns of a prediction. Raises Rejected for an unusable one."""
    given = instance.get("references")
    references = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    right = [one.get("output") for one in references if "'correct'" in str(one.get("tags"))]
    subject, obj = first_text(instance.get("input")), first_text(right)
    if not subject or not obj:
        raise FactRejected("no reference tagged correct" if subject else "no input")
    stats = as_object(prediction.get("stats") or {})
    name = next((one for one in VERDICTS if one in stats), "")
    if not name:
        raise Rejected(f"none of {', '.join(VERDICTS)} in its stats")
    texts = ("mapped_output", "truncated_predicted_text", "predicted_text")
    said = next(filter(None, (first_text(prediction.get(one)) for one in texts)), "")
    return {
        "subject": subject,
        "object": obj,
        "query": subject,
        "correct": verdict(stats[name], name),
        "predictions": [said] if said else None,
    }


def _items(file: Path) -> list[JsonObject]:
    """Return the objects of a JSON list. Raises UserError for anything else."""
    try:
        return [as_object(one) for one in parse_json(read_file(file, MAX_LIST))]
    except (Rejected, ValueError, TypeError) as error:
        raise UserError(f"{file.name} is not a list of JSON objects ({error}).") from error


HELM = ResultsFormat("helm", "HELM run folder", recognizes, read)
