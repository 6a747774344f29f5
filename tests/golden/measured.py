"""What is frozen, measured: numbers of the bundled runs and of small commands, shapes of the JSON.

Every value is keyed by what a user would call it, never by a file or a digest, so that the goldens
outlive changes of how runs are named and stored.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lama_core import metrics
from lama_core.probes.analogy.accuracy_tables import probe_accuracies
from lama_core.probes.analogy.spec import list_probe_runs
from lama_core.probes.kinds import KINDS
from lama_core.probes.prompts.shortlist import shortlist_answers
from lama_core.probes.prompts.spec import list_studies
from lama_core.runs.find import bundled_dir, list_runs
from lama_core.runs.info import FACT_KINDS, Run

ROOT = Path(__file__).resolve().parents[2]
FROZEN = Path(__file__).with_name("frozen.json")
VERSIONS = {name: kind.spec.version for name, kind in KINDS.items()}
PAIRS = "Paris:France"
RUN_DIGEST = re.compile(r"(?<=[a-z0-9])-[0-9a-f]{10}\b")
TEXT = """Paris is the capital of France .
Rome is the capital of Italy .
Oslo , the capital of Norway , is cold .
Madrid is the largest city of Spain .
Berlin is the capital of Germany .
"""
TRAINED = (("France", "Paris"), ("Italy", "Rome"), ("Norway", "Oslo"), ("Spain", "Madrid"))

# Name -> kind of probe, and the words of the command; run in this order, in one LAMA_HOME.
COMMANDS: dict[str, tuple[str, list[str]]] = {
    "cloze": ("cloze", ["cloze", "The capital of France is [MASK].", "--gold", "Paris"]),
    "cloze, full": (
        "cloze",
        ["cloze", "The Nile is a river in ___.", "--candidates", "full", "--gold", "tunisia",
         "--renormalise"],
    ),
    "cloze, two blanks": ("cloze", ["cloze", "[MASK] is a city in [MASK] .", "--top-k", "3"]),
    "analogy solve": (
        "analogy",
        ["analogy", "solve", "Tokyo", "Japan", "Paris", "___", "--gold", "France"],
    ),
    "analogy score": (
        "analogy",
        ["analogy", "score", PAIRS, "Rome:Italy", "Italy:Rome", "Rome:Berlin"],
    ),
    "analogy score, mean": (
        "analogy",
        ["analogy", "score", PAIRS, "Rome:Italy", "Italy:Rome", "--normalise", "mean"],
    ),
    "analogy probe": (
        "analogy",
        ["analogy", "probe", "--relation", "country - capital", "--relation", "male - female",
         "--limit", "12", "--by", "relation"],
    ),
    "analogy probe, supervised": (
        "analogy",
        ["analogy", "probe", "--relation", "country - capital", "--limit", "12", "--setting",
         "supervised", "--seeds", "2", "--by", "kind"],
    ),
    "probe": (
        "cloze",
        ["probe", "--dataset", "starter", "--relation", "P36", "--relation", "P103", "--relation",
         "Squad", "--limit", "8", "--model", "minilm-mlm"],
    ),
    "probe, relation candidates": (
        "cloze",
        ["probe", "--dataset", "starter", "--relation", "P36", "--relation", "P47", "--limit",
         "8", "--model", "minilm-mlm", "--candidates", "relation", "--ranking", "raw"],
    ),
    "probe, negated": (
        "contrast",
        ["probe", "--dataset", "starter", "--relation", "P36", "--limit", "8", "--model",
         "minilm-mlm", "--prompts", "negated", "--candidates", "full"],
    ),
    "prompts list": ("study", ["prompts", "list", "--relation", "P36"]),
    "prompts select": (
        "study",
        ["prompts", "select", "--relation", "P36", "--limit", "10", "--train-limit", "10"],
    ),
    "prompts fit": (
        "study",
        ["prompts", "fit", "--relation", "P36", "--limit", "10", "--train-limit", "10", "--set",
         "man+para"],
    ),
    "prompts mine": ("study", ["prompts", "mine", "P36", "--text", "{text}", "--pairs", "{pairs}"]
    ),
    "prompts paraphrase": (
        "study",
        ["prompts", "paraphrase", "The capital of [X] is [Y] .", "--relation", "P36", "--keep",
         "3"],
    ),
    "results": ("cloze", ["results", "--by", "source"]),
    "compare": ("cloze", ["compare", "{smollm}", "{minilm}", "--k", "5"]),
    "data list": ("data", ["data", "list"]),
    "data import": ("data", ["data", "import", "{table}"]),
    "models list": ("models", ["models", "list"]),
    "models info": ("models", ["models", "info", "minilm-mlm"]),
    "reproduce": ("cloze", ["reproduce", "petroni2019", "--limit", "2"]),
}  # fmt: skip


def digest(rows: Iterable[Any]) -> str:
    """The first digits of the SHA-256 of some plain values."""
    text = json.dumps(list(rows), ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _bits(values: Any) -> str:
    """The digest of an array's numbers as they are stored, to the last bit."""
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:24]


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and value != value else value


def bundled_runs() -> dict[str, Any]:
    """The cloze runs that come with the project: figures by source, digests of the rows."""
    found = {}
    for info in list_runs([bundled_dir()], kinds=FACT_KINDS):
        run = Run(info)
        facts, top = run.facts, run.top
        figures = metrics.score_table([run], by="source").drop(columns="run")
        words = ["fact_id", "relation", "subject", "object", "query", "excluded", "first"]
        numbers = ["rank_raw", "rank_filtered", "log_prob", "first_log_prob", "n_valid"]
        found[f"{info.model}, {info.dataset}, {info.prompts}"] = {
            "n": info.n,
            "n_excluded": info.n_excluded,
            "candidates": [info.candidates, info.candidates_digest, info.n_candidates],
            "figures": [
                {str(k): _plain(v) for k, v in line.items()} for line in figures.to_dict("records")
            ],
            "rows": {name: digest(facts[name].astype(str)) for name in words}
            | {name: _bits(facts[name].to_numpy(np.float64)) for name in numbers}
            | {"top": digest(top.words.ravel().tolist()), "log_probs": _bits(top.log_probs)},
        }
    return found


def bundled_probes() -> dict[str, Any]:
    """The analogy probes that come with the project: accuracies, digests of the decisions."""
    found = {}
    for run in list_probe_runs([bundled_dir()]):
        details, frame = run.details, run.rows().to_pandas()
        lines = [*probe_accuracies([run], by="kind"), *probe_accuracies([run], by="relation")]
        names = ["fact_id", "subject", "object", "excluded", "rank_raw", "first", "negative",
                 "score", "negative_score", "label", "seed"]  # fmt: skip
        found[f"{run.info.model}, {details.setting}, {details.probe}"] = {
            "accuracy": {f"{line.name}, {line.kind}": line.accuracy for line in lines},
            "spread": digest(line.spread for line in lines),
            "tests": digest(str(line.p_value) for line in lines),
            "left_out": [one.relation for one in details.left_out],
            "missing": list(details.missing),
            "rows": {name: digest(frame[name].astype(str)) for name in names},
        }
    return found


def bundled_studies() -> dict[str, Any]:
    """The studies of prompts that come with the project: scores, weights, digests of the rows."""
    found: dict[str, Any] = {}
    for made in list_studies([bundled_dir()]):
        relations = {}
        for name in made.relations:
            study = made.relation(name)
            answers = [shortlist_answers(study.shortlist, one.weights) for one in study.ensembles]
            relations[name] = {
                "scores": {
                    f"{one.combination}, {one.method}": [one.micro, one.macro, one.n]
                    for one in study.scores()
                },
                "prompts": digest(study.pool.templates),
                "origins": digest(sorted(entry.origins) for entry in study.pool.entries),
                "facts": digest([fact.id for fact in (*study.train, *study.test)]),
                "excluded": digest((fact.id, why) for fact, why in study.excluded),
                "train_ranks": _bits(study.train_ranks.astype(np.int64)),
                "ranks": _bits(study.ranks),
                "log_probs": _bits(study.rows["log_prob"].astype(np.float32)),
                "top": digest(study.words.get(int(c), "") for c in study.rows["top"].ravel()),
                "top_log_probs": _bits(study.rows["top_log_probs"].astype(np.float32)),
                "ensemble_ranks": _bits(study.ensemble_ranks),
                "weights": digest(
                    (one.combination, one.method, one.objective, one.n_epochs, w)
                    for one in study.ensembles
                    for w in one.weights.tolist()
                ),
                "curves": digest(study.curves),
                "judged": digest(
                    (_bits(v.correct), _bits(v.certain), [study.words[c] for c in v.first.tolist()])
                    for v in answers
                ),
            }
        found[f"{made.info.model}, {made.info.dataset}"] = relations
    return found


@cache
def commands() -> dict[str, Any]:
    """What each command of `COMMANDS` prints with --json, in a LAMA_HOME of its own."""
    listing = list_runs([bundled_dir()], kinds=FACT_KINDS)
    runs = {info.model: info for info in listing if info.prompts == "manual"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places = {
            "text": folder / "text.txt",
            "pairs": folder / "pairs.jsonl",
            "table": folder / "facts.csv",
            "smollm": runs["smollm2-135m"].id,
            "minilm": runs["minilm-mlm"].id,
        }
        (folder / "text.txt").write_text(TEXT, encoding="utf-8")
        pairs = [{"sub_label": head, "obj_label": tail} for head, tail in TRAINED]
        (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs))
        (folder / "facts.csv").write_text(
            "subject,relation,object,template\nFrance,capital,Paris,[X] has the capital [Y] .\n"
        )
        asked = {
            name: [word.format(**places) if "{" in word else word for word in words]
            for name, (_, words) in COMMANDS.items()
        }
        return _call(asked, folder)


# All in one process, which hasn't looked at the environment before: torch is imported once.
CALLS = """
import json, sys
from functools import partial
from calling import invoke
from lama_core.downloads import transfer
transfer.Patience = partial(transfer.Patience, pause=0)  # fetches fail: see the proxies
printed = {}
for name, words in json.load(sys.stdin).items():
    said = invoke([*words, "--json"])
    if said.exit_code:
        raise SystemExit(f"{words} ended with {said.exit_code}: {said.output} {said.exception!r}")
    printed[name] = json.loads(said.stdout)
print(json.dumps(printed))
"""


def _call(asked: dict[str, list[str]], folder: Path) -> dict[str, Any]:
    environment = {
        **os.environ,
        "LAMA_HOME": str(folder / "home"),
        "PYTHONPATH": os.pathsep.join(
            filter(None, (str(ROOT / "tests"), os.environ.get("PYTHONPATH")))
        ),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder / "hub"),
        "OMP_NUM_THREADS": "1",  # as many threads as cores give other last digits
        # No fetch of a published source leaves this machine.
        "https_proxy": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
    }
    done = subprocess.run(
        [sys.executable, "-c", CALLS], input=json.dumps(asked), cwd=ROOT, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def kept(name: str, printed: Any) -> Any:
    """What is frozen of what a command prints: numbers and words, no names of runs, no folders."""
    if COMMANDS[name][0] in ("data", "models"):
        return None  # what there is changes with every source and model: its form is frozen alone
    if name == "compare":
        flips = digest(printed["flips"])
        return _unnamed({**printed, "flips": [len(printed["flips"]), flips]})
    if name == "results":  # runs that were made in the same second stand in any order
        return sorted(_unnamed(printed), key=lambda row: json.dumps(row, sort_keys=True))
    if name == "reproduce":
        parts = ("model", "what", "published")
        return [
            [table["id"], *(row[part] for part in parts)]
            for table in printed["tables"]
            for row in table["rows"]
        ]
    return _unnamed(printed)


def _unnamed(value: Any) -> Any:
    """The same without the digests at the end of runs' names."""
    if isinstance(value, dict):
        return {key: _unnamed(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_unnamed(one) for one in value]
    return RUN_DIGEST.sub("", value) if isinstance(value, str) else value


def shape(value: Any) -> Any:
    """The form of some JSON: the keys of its objects, the kinds of its values."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    if isinstance(value, list):
        forms: list[Any] = []
        for one in value:
            form = shape(one)
            if form not in forms:
                forms.append(form)
        return sorted(forms, key=json.dumps)
    return type(value).__name__
