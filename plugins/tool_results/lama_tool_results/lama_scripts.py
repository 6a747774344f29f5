"""Answers that the scripts of LAMA and OptiPrompt wrote as JSON.

OptiPrompt's `--output_predictions`: `RELATION_predictions.jsonl`, a line for each fact with
`relation`, `sub_label`, `obj_label`, `masked_sentences` and `topk` (`token`, `log_prob`).

LAMA: the elements of `list_of_results`, one a line or as a JSON list, with `sample` (`sub_label`,
`obj_label`, `masked_sentences`), `masked_topk` (`topk`: `token_word_form`, `log_prob`; `MRR`;
`PERPLEXITY`, which is the object's log-probability). LAMA itself writes them only as `result.pkl`,
a pickle, which is never read.

A rank is the file's, else the object's place among the predictions. An object that isn't among them
is a wrong answer without a rank.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from lama_core.datasets.columns import WORD_STARTS
from lama_core.datasets.line_reader import (
    JsonObject,
    Reading,
    Rejected,
    as_object,
    optional_text,
    required_text,
    text_list,
)
from lama_core.datasets.nested_folders import files_under
from lama_core.errors import UserError
from lama_core.progress import OnProgress
from lama_core.runs.facts_table import UNRANKED
from lama_core.runs.importers.results import (
    MAX_PREDICTIONS,
    DropList,
    ImportedResults,
    ReadOptions,
    ResultsFormat,
    of_fact,
    short,
)
from lama_tool_results.answer_rows import (
    MAX_OPTIONS,
    AnswerRows,
    answers_in,
    first_object,
    head_of,
    is_list,
    log_probability,
)

LAMA, OPTIPROMPT = "LAMA", "OptiPrompt"
PICKLE = "result.pkl"
ACCURACIES = "last_results.csv"  # LAMA's precision by relation
NO_ANSWERS = {
    PICKLE: "is a pickle, which can run code when it is opened: save its list_of_results as JSON, "
    "one result a line.",
    ACCURACIES: "has only the precision of each relation: import the answers, one JSON object a "
    "line.",
}
_PREDICTIONS = "_predictions"
_ENDINGS = (".jsonl", ".json", ".jsonl.gz", ".json.gz")


def recognizes(path: Path) -> bool:
    """Whether a file, or a file in a folder, has such answers or is named like LAMA's output."""
    if path.is_file():
        return path.name in (PICKLE, ACCURACIES) or _is_answer(_first(path))
    files = list(files_under(path))
    known = any(one.name in (PICKLE, ACCURACIES) for one in files)
    return known or any(_is_answer(_first(one)) for one in _logs(files)[:20])


def _first(path: Path) -> JsonObject:
    """Return the first answer, if it can be told from the beginning of a file."""
    head = head_of(path)
    if is_list(head):
        return {"masked_topk": 0, "sample": 0} if b'"masked_topk"' in head else {}
    return first_object(path)


def _is_answer(found: JsonObject) -> bool:
    is_ours = {"sub_label", "obj_label"} <= found.keys() and (
        "topk" in found or "masked_topk" in found
    )
    return is_ours or {"sample", "masked_topk"} <= found.keys()


def _logs(files: Sequence[Path]) -> list[Path]:
    return [one for one in files if one.name.endswith(_ENDINGS) and one.name != "args.json"]


def read(path: Path, options: ReadOptions, on_progress: OnProgress) -> list[ImportedResults]:
    """Return the results, of one model.

    Raises:
        UserError: If there are only pickles or accuracies.
    """
    files = [path] if path.is_file() else list(files_under(path))
    logs = [one for one in _logs(files) if path.is_file() or _is_answer(_first(one))]
    if not logs:
        for name in (PICKLE, ACCURACIES):
            if any(one.name == name for one in files):
                raise UserError(f"{name} {NO_ANSWERS[name]}")
        raise UserError(f"{path.name} has no answers of LAMA or OptiPrompt.")
    drops = DropList()
    rows = AnswerRows(on_progress, f"Reading {path.name}")
    is_lama = False
    for file in logs:
        reading = Reading(file)
        for number, line in answers_in(reading, file):
            with drops.dropping(reading.shown(file), number):
                rows.add(**_row(line, file))
                is_lama = is_lama or "masked_topk" in line
        drops.add_reading(reading)
    tool = LAMA if is_lama else OPTIPROMPT
    return [ImportedResults("", tool, "", "", "", rows.table(), dropped=drops.records())]


def _row(line: JsonObject, file: Path) -> dict[str, Any]:
    """Return the columns of an answer. Raises Rejected for an unusable one."""
    sample, result = line, line
    if "masked_topk" in line:
        result = as_object(line["masked_topk"])
        sample = as_object(line.get("sample", line))
    words, scores = _predictions(result)
    with of_fact():
        subject = short(required_text(sample, "sub_label"))
        obj = short(required_text(sample, "obj_label"))
    rank = _rank(line, result)
    if rank is None and obj in words:
        rank = words.index(obj) + 1
    if rank is None and not words and "MRR" not in result:
        raise Rejected("no predictions")
    row: dict[str, Any] = {
        "relation": short(optional_text(sample, "predicate_id", "relation") or _relation(file)),
        "subject": subject,
        "object": obj,
        "query": short(" ".join(text_list(sample, "masked_sentences"))),
        "rank": rank,
        "predictions": words[:MAX_PREDICTIONS] or None,
        "scores": scores[:MAX_PREDICTIONS] if scores else None,
    }
    if rank is None:
        row["correct"] = False
    if obj in words:
        row["log_prob"] = scores[words.index(obj)]
    elif (stored := result.get("PERPLEXITY")) is not None:
        row["log_prob"] = log_probability(stored, "PERPLEXITY")
    return row


def _relation(file: Path) -> str:
    """Return the relation of a file: LAMA writes a folder, OptiPrompt a file for each."""
    stem = file.name.partition(".")[0]
    if stem.endswith(_PREDICTIONS):
        return stem.removesuffix(_PREDICTIONS)
    return file.parent.name if stem.lower().startswith(("result", "list_of")) else stem


def _predictions(result: JsonObject) -> tuple[list[str], list[float]]:
    """Return the predicted words and their log-probabilities, best first."""
    given = result.get("topk")
    if given is None:
        return [], []
    if not isinstance(given, list) or len(given) > MAX_OPTIONS:
        raise Rejected(f"topk isn't a list of at most {MAX_OPTIONS:,} predictions")
    pairs = []
    for item in map(as_object, given):
        token = required_text(item, "token", "token_word_form")
        word = short(token[1:] if token.startswith(WORD_STARTS) else token) or short(token)
        pairs.append((word, log_probability(item.get("log_prob"), "log_prob")))
    if any(later[1] > former[1] for former, later in pairwise(pairs)):
        raise Rejected("the predictions aren't in the order of their log_prob")
    return [word for word, _ in pairs], [score for _, score in pairs]


def _rank(line: JsonObject, result: JsonObject) -> int | None:
    """Return the stored rank, or that of a stored reciprocal rank; None without either."""
    if (rank := line.get("rank")) is not None:
        if isinstance(rank, bool) or not isinstance(rank, int) or not 1 <= rank < UNRANKED:
            raise Rejected("the rank isn't a whole number from 1")
        return rank
    reciprocal = result.get("MRR")
    if reciprocal is None:
        return None
    if isinstance(reciprocal, bool) or not isinstance(reciprocal, int | float):
        raise Rejected("MRR isn't a number")
    if not (reciprocal == 0 or 1e-8 < reciprocal <= 1):
        raise Rejected("MRR isn't between 0 and 1")
    return round(1 / reciprocal) if reciprocal else None


LAMA_SCRIPTS = ResultsFormat("lama", "file of LAMA's or OptiPrompt's predictions", recognizes, read)
