"""Probe runs on disk: like any other run, with the probe's own description beside.

    run.json        as in `lama_core.runs.records`; `prompts` holds the probe and the setting
    facts.parquet   as in `lama_core.runs.table`, one row a decision, with further columns
    probe.json      the probe's settings and its accuracies by relation

They lie in the folder `analogy` inside the folder of runs, so that lists of cloze runs stay lists
of cloze runs; `runs.load_run` reads one by its path. In the rows `subject` is the query pair,
`object` the pair that is judged (unsupervised: the positive), `source` the kind of relation, and
`rank_raw` 1 for a right decision and 2 for a wrong one, so P@1 is the accuracy. Further columns:

    negative                the wrong pair (unsupervised)
    score, negative_score   what was compared, higher is better (unsupervised)
    label, seed             whether the pair is a true analogy, the classifier's seed (supervised)
"""

import datetime
import hashlib
import importlib.metadata
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa

from lama_core.datasets.base import AnalogyKind
from lama_core.errors import UserError
from lama_core.files import write_text_whole
from lama_core.models.base import Context, Kind
from lama_core.probes.analogy.frequency import FrequencyTest
from lama_core.probes.analogy.judges import Method
from lama_core.probes.analogy.probes import Probe
from lama_core.probes.analogy.score import Normalise
from lama_core.probes.analogy.supervised import HIDDEN, N_SEEDS
from lama_core.probes.analogy.templates import DEFAULT_TEMPLATE
from lama_core.runs.records import (
    FACTS_FILE,
    PART,
    RUN_FILE,
    RelationInfo,
    RunInfo,
    bundled_dir,
    read_info,
    runs_dir,
    write_info,
)
from lama_core.runs.table import SCHEMA, write_facts

# Raised by one whenever the same spec would give other numbers.
PROBE_VERSION = 1
PROBE_FILE = "probe.json"
FOLDER = "analogy"
PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scikit-learn", "pyarrow")

Setting = Literal["unsupervised", "supervised"]
SETTINGS: tuple[Setting, ...] = ("unsupervised", "supervised")
Pooling = Literal["mean", "first", "last"]

ROWS = pa.schema(
    [
        *SCHEMA,
        ("negative", pa.string()),
        ("score", pa.float32()),
        ("negative_score", pa.float32()),
        ("label", pa.bool_()),
        ("seed", pa.int16()),
    ]
)


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """How a probe is made and decided. The paper leaves open what supervised probes depend on.

    seed: of the negatives, the limit and the split. limit: instances a relation (supervised: a
    half), drawn at random; None is all. strict: no negative that happens to be true.
    layer, pooling, hidden, n_seeds: of the supervised probe.
    """

    template: str = DEFAULT_TEMPLATE
    normalise: Normalise = "sum"
    seed: int = 0
    limit: int | None = None
    strict: bool = False
    layer: int = -1
    pooling: Pooling = "mean"
    hidden: int = HIDDEN
    n_seeds: int = N_SEEDS


@dataclass(frozen=True)
class ProbeSpec:
    """Everything that a probe run's numbers depend on."""

    dataset_name: str
    data_digest: str
    relations: tuple[str, ...]
    setting: Setting
    probe: Probe
    judge: str
    identity: str
    method: Method
    kind: Kind | None
    precision: str
    options: ProbeOptions

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the numbers depend on, less what doesn't touch this setting."""
        used = asdict(self.options)
        supervised = ("layer", "pooling", "hidden", "n_seeds")
        of_models = ("template", "normalise", "layer", "pooling")
        for name in supervised if self.setting == "unsupervised" else ("normalise",):
            used.pop(name)
        for name in of_models if self.method != "model" else ():
            used.pop(name, None)
        content = {
            "version": PROBE_VERSION,
            "data": self.data_digest,
            "relations": self.relations,
            "what": [self.setting, self.probe, self.identity, self.method, self.precision],
            "options": used,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def run_id(self) -> str:
        """The run's name."""
        names = (self.dataset_name, Path(self.judge).name, self.setting, self.probe)
        slugs = ["".join(c if c.isalnum() else "_" for c in name.lower()) for name in names]
        return "-".join([*slugs, self.digest[:10]])


@dataclass(frozen=True, slots=True)
class RelationResult:
    """One relation's accuracy.

    one_to_many, bidirectional: the paper's marks * (random probe) and † (reverse probe).
    n: decisions that count, over all seeds. seeds: accuracy by seed; one value unsupervised.
    """

    name: str
    kind: AnalogyKind
    one_to_many: bool
    bidirectional: bool
    n_pairs: int
    n: int
    n_excluded: int
    accuracy: float | None
    seeds: tuple[float, ...]
    frequency: FrequencyTest


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A relation that could not be probed, and why."""

    relation: str
    reason: str


@dataclass(frozen=True, slots=True)
class ProbeDetails:
    """What `probe.json` says. missing: words that the vectors don't have."""

    setting: Setting
    probe: Probe
    method: Method
    options: ProbeOptions
    relations: tuple[RelationResult, ...]
    left_out: tuple[LeftOut, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProbeRun:
    """A finished probe run: the common description, and the probe's own."""

    info: RunInfo
    details: ProbeDetails

    def rows(self) -> pa.Table:
        """One row a decision, all columns."""
        import pyarrow.parquet as pq

        return pq.read_table(self.info.folder / FACTS_FILE)


@dataclass(frozen=True, slots=True)
class ProbeListing:
    """Finished probe runs, bundled ones first, then by date; and what could not be read."""

    runs: tuple[ProbeRun, ...]
    problems: tuple[str, ...] = ()


def probe_runs_dir() -> Path:
    """Folder of the user's own probe runs; not created here."""
    return runs_dir() / FOLDER


def find_probe_run(spec: ProbeSpec, folder: Path) -> ProbeRun | None:
    """The finished run of this spec, in `folder` or among the bundled ones, else None."""
    for place in (folder, bundled_dir() / FOLDER):
        if (place / spec.run_id / RUN_FILE).is_file():
            return read_probe_run(place / spec.run_id)
    return None


def list_probe_runs(folders: Sequence[Path] | None = None) -> ProbeListing:
    """All finished probe runs under `folders`; by default the bundled ones and the user's own."""
    runs: list[ProbeRun] = []
    problems: list[str] = []
    chosen = (bundled_dir() / FOLDER, probe_runs_dir()) if folders is None else folders
    for folder in chosen:
        for path in sorted(folder.glob(f"*/{RUN_FILE}")):
            if path.parent.name.endswith(PART):
                continue
            try:
                runs.append(read_probe_run(path.parent))
            except UserError as error:
                problems.append(str(error))
    runs.sort(key=lambda run: (not run.info.bundled, run.info.made, run.info.id))
    return ProbeListing(tuple(runs), tuple(problems))


def read_probe_run(folder: Path) -> ProbeRun:
    """The probe run in a folder. Raises UserError if it is broken or missing."""
    info = read_info(folder)
    path = folder / PROBE_FILE
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        relations = tuple(_relation(record) for record in raw.pop("relations"))
        options = ProbeOptions(**raw.pop("options"))
        left_out = tuple(LeftOut(**record) for record in raw.pop("left_out"))
        missing = tuple(raw.pop("missing"))
        details = ProbeDetails(
            options=options, relations=relations, left_out=left_out, missing=missing, **raw
        )
    except OSError as error:
        raise UserError(f"{path}: the probe run can't be read: {error.strerror}.") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"{path}: the probe run is damaged ({error}): make it again.") from error
    return ProbeRun(info, details)


def _relation(record: dict[str, Any]) -> RelationResult:
    frequency = FrequencyTest(**record.pop("frequency"))
    seeds = tuple(record.pop("seeds"))
    return RelationResult(frequency=frequency, seeds=seeds, **record)


def save_probe_run(
    spec: ProbeSpec, details: ProbeDetails, rows: pa.Table, folder: Path, *, seconds: float
) -> ProbeRun:
    """Write a finished run into `folder`/<run id>, whole or not at all. Returns it as saved."""
    part = folder / (spec.run_id + PART)
    part.mkdir(parents=True, exist_ok=True)
    info = _info(spec, details, part, seconds)
    try:
        write_facts(rows, part / FACTS_FILE)
        text = json.dumps(asdict(details), ensure_ascii=False, allow_nan=False)
        write_text_whole(part / PROBE_FILE, text + "\n")
        write_info(info, part / RUN_FILE)
        for leftover in part.glob("rows-*"):
            leftover.unlink()
        part.replace(folder / spec.run_id)
    except OSError as error:
        raise UserError(f"{part}: the probe run can't be saved: {error.strerror}.") from error
    return ProbeRun(replace(info, folder=folder / spec.run_id), details)


def _info(spec: ProbeSpec, details: ProbeDetails, folder: Path, seconds: float) -> RunInfo:
    template = details.options.template if spec.method == "model" else ""
    relations = tuple(
        RelationInfo(one.name, one.kind, "", None, (template,), one.n, one.n_excluded)
        for one in details.relations
    )
    context: Context = "left" if spec.kind == "causal" else "both"
    return RunInfo(
        id=spec.run_id,
        folder=folder,
        bundled=False,
        digest=spec.digest,
        dataset=spec.dataset_name,
        data_digest=spec.data_digest,
        model=spec.judge,
        model_identity=spec.identity,
        # A baseline is neither; readers of probe runs look at the method first.
        model_kind=spec.kind or cast(Kind, spec.method),
        prompts=f"{spec.probe}, {spec.setting}",
        prompt_kind="template",
        candidates="two pairs" if spec.setting == "unsupervised" else "true or false",
        candidates_digest="",
        n_candidates=2,
        fold_case=False,
        context=context,
        ranking="raw",
        precision=spec.precision,
        limit=spec.options.limit,
        n=sum(relation.n for relation in relations),
        n_excluded=sum(relation.n_excluded for relation in relations),
        relations=relations,
        seconds=round(seconds, 3),
        made=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        versions=tuple((name, importlib.metadata.version(name)) for name in PACKAGES),
    )


def make_table(columns: dict[str, Sequence[Any]]) -> pa.Table:
    """Rows of a probe run from the columns that it has; the others are null."""
    n_rows = len(next(iter(columns.values())))
    arrays = []
    for field in ROWS:
        values = columns.get(field.name)
        if values is None:
            arrays.append(pa.nulls(n_rows, field.type))
        elif pa.types.is_dictionary(field.type):
            arrays.append(pa.array(values, pa.string()).dictionary_encode().cast(field.type))
        else:
            arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=ROWS)
