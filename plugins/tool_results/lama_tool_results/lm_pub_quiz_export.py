"""A run as a results folder of lm-pub-quiz, which its `DatasetResults.from_path` opens.

Only for runs with the scores of all answers. An answer that the model can't write has the score
`UNWRITABLE`. Ids are made up, because runs don't store them.
"""

import math
from pathlib import Path
from typing import Any

import orjson

from lama_core.errors import UserError
from lama_core.runs.exporting import FACT, counted_batches, made_by
from lama_core.runs.facts_table import column_names, read_candidates
from lama_core.runs.info import CANDIDATES_FILE, FACTS_FILE, Run
from lama_core.scoring.queries import BLANK
from lama_core.types import OWN_TEMPLATE

METADATA, SUFFIX = "metadata_results.json", "_results"  # of the files
UNWRITABLE = -1e30  # score of an answer that the model can't write
MAX_NAME_BYTES = 200


def write_quiz(run: Run, folder: Path) -> int:
    """Write lm-pub-quiz's tables, relation by relation, and its metadata; return the rows written.

    Raises:
        UserError: If the run doesn't store the scores of all answers.
    """
    path = run.info.path(FACTS_FILE)
    if "scores" not in column_names(path) or not run.info.has(CANDIDATES_FILE):
        raise _no_scores(run)
    known = read_candidates(run.info.path(CANDIDATES_FILE))
    lines: dict[str, list[bytes]] = {}
    texts: dict[str, dict[str, int]] = {}  # relation -> template -> its number
    rows = (
        row
        for batch in counted_batches(run, [*FACT, "query", "scores"])
        for row in batch.to_pylist()
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
        done.append(
            orjson.dumps(
                {
                    "sub_id": f"{name}-{len(done)}",
                    "sub_label": row["subject"],
                    "sub_aliases": [],
                    "answer_idx": words.index(row["object"]),
                    "template_index": row["prompt"],
                    "instance_index": len(done),
                    "pll_scores": [
                        one if math.isfinite(one) else UNWRITABLE for one in row["scores"]
                    ],
                }
            )
        )
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
        "made_by": made_by(run),
        "answer_space_labels": words,
        "answer_space_ids": [f"{name}-answer-{number}" for number in range(len(words))],
        "relation_info": {},
    }
