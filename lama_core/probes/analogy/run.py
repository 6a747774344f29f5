"""Probes from a dataset and a model to saved runs: the one path of page and command line.

One run is one judge (a model, word vectors, RelBERT), one setting and one probe over all chosen
relations. A relation's rows are written down as soon as they are decided; the same request again
takes up what an earlier one left, and gives finished runs back without asking anything.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from lama_core.datasets.base import AnalogyDataset, AnalogyRelation
from lama_core.errors import UserError
from lama_core.files import whole_file
from lama_core.models.base import Kind
from lama_core.models.sources import OnProgress, silent
from lama_core.probes.analogy.decisions import Plan, make_result, plan_supervised, plan_unsupervised
from lama_core.probes.analogy.judges import Judge
from lama_core.probes.analogy.probes import PROBES, Probe, ProbeImpossible, distinct_pairs
from lama_core.probes.analogy.records import (
    SETTINGS,
    LeftOut,
    ProbeDetails,
    ProbeOptions,
    ProbeRun,
    ProbeSpec,
    Setting,
    find_probe_run,
    probe_runs_dir,
    save_probe_run,
)
from lama_core.probes.analogy.templates import resolve_template
from lama_core.runs.pipeline import RunStopped
from lama_core.runs.records import PART


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be probed, and how.

    relations: () is all. kind: of the model, None for a baseline. precision: of the model.
    """

    dataset: AnalogyDataset
    relations: tuple[str, ...] = ()
    probes: tuple[Probe, ...] = PROBES
    settings: tuple[Setting, ...] = SETTINGS
    options: ProbeOptions = field(default_factory=ProbeOptions)
    kind: Kind | None = None
    precision: str = "fp32"

    def chosen(self) -> tuple[AnalogyRelation, ...]:
        """The relations to probe. Raises UserError for a name that the dataset doesn't have."""
        if not self.relations:
            return self.dataset.relations
        return tuple(self.dataset.relation(name) for name in dict.fromkeys(self.relations))

    def words(self) -> tuple[str, ...]:
        """Every word of the chosen relations' pairs, each once."""
        pairs = [pair for relation in self.chosen() for pair in distinct_pairs(relation)]
        return tuple(dict.fromkeys(word for pair in pairs for word in pair))


def run_probes(
    judge: Judge,
    work: Work,
    *,
    folder: Path | None = None,
    on_progress: OnProgress = silent,
    stopped: Callable[[], bool] | None = None,
) -> tuple[ProbeRun, ...]:
    """The runs of every chosen setting and probe, made or taken up where they aren't there yet.

    folder: where probe runs are kept, by default the user's own. on_progress: (what, decisions
    done, decisions in all). stopped: asked often; when true, RunStopped is raised and what was
    decided relation by relation is kept.
    Raises UserError if no relation can be probed, or another process makes the same runs.
    """
    folder = probe_runs_dir() if folder is None else folder
    resolve_template(work.options.template)
    if work.options.limit is not None and work.options.limit < 1:
        raise UserError(f"The limit is {work.options.limit}: give at least 1, or none at all.")
    runs: list[ProbeRun] = []
    for setting in work.settings:
        specs = [_spec(judge, work, setting, probe) for probe in work.probes]
        found = {spec.probe: find_probe_run(spec, folder) for spec in specs}
        missing = [spec for spec in specs if found[spec.probe] is None]
        if missing:
            sitting = _Sitting(judge, work, missing, folder, on_progress, stopped)
            found |= {run.details.probe: run for run in sitting.make()}
        runs += [run for spec in specs if (run := found[spec.probe]) is not None]
    return tuple(runs)


def _spec(judge: Judge, work: Work, setting: Setting, probe: Probe) -> ProbeSpec:
    return ProbeSpec(
        dataset_name=work.dataset.name,
        data_digest=work.dataset.digest,
        relations=tuple(relation.name for relation in work.chosen()),
        setting=setting,
        probe=probe,
        judge=judge.name,
        identity=judge.identity,
        method=judge.method,
        kind=work.kind,
        precision=work.precision,
        options=work.options,
    )


@dataclass
class _Sitting:
    """The probes of one setting, relation by relation."""

    judge: Judge
    work: Work
    specs: Sequence[ProbeSpec]
    folder: Path
    on_progress: OnProgress
    stopped: Callable[[], bool] | None
    done: int = 0
    total: int = 0
    left_out: list[LeftOut] = field(default_factory=list)

    def make(self) -> list[ProbeRun]:
        """Decide what isn't decided yet, and save the runs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / f".{self.specs[0].run_id}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise UserError(
                f"Another process makes the run {self.specs[0].run_id}: wait for it, or stop it."
            ) from error
        try:
            return self._make()
        finally:
            lock.release()
            Path(lock.lock_file).unlink(missing_ok=True)

    def _make(self) -> list[ProbeRun]:
        began = time.perf_counter()
        plans = self._plans()
        self.total = sum(plan.n_decisions for plan in plans)
        self._report(0)
        for plan in plans:
            pending = [spec for spec in self.specs if not self._part(spec, plan).is_file()]
            if not pending:
                self._report(plan.n_decisions)
                continue
            tables = plan.decide(self.judge, [spec.probe for spec in pending], self._report)
            for spec in pending:
                self._part(spec, plan).parent.mkdir(parents=True, exist_ok=True)
                with whole_file(self._part(spec, plan)) as path:
                    pq.write_table(tables[spec.probe], path)
        seconds = (time.perf_counter() - began) / len(self.specs)
        return [self._save(spec, plans, seconds) for spec in self.specs]

    def _plans(self) -> list[Plan]:
        make = plan_supervised if self.specs[0].setting == "supervised" else plan_unsupervised
        plans: list[Plan] = []
        probes = [spec.probe for spec in self.specs]
        for number, relation in enumerate(self.work.chosen()):
            try:
                plan = make(
                    number,
                    relation,
                    probes,
                    self.work.options,
                    reads_sentences=self.judge.method == "model",
                )
                plans.append(plan)
            except ProbeImpossible as error:
                self.left_out.append(LeftOut(relation.name, str(error)))
        if not plans:
            reasons = " ".join(one.reason for one in self.left_out[:3])
            raise UserError(f"No relation can be probed. {reasons}")
        return plans

    def _part(self, spec: ProbeSpec, plan: Plan) -> Path:
        return self.folder / (spec.run_id + PART) / f"rows-{plan.number:03}.parquet"

    def _report(self, n_more: int) -> None:
        self.done += n_more
        self.on_progress(f"{self.specs[0].setting}: {self.judge.name}", self.done, self.total)
        if self.stopped is not None and self.stopped():
            raise RunStopped(
                "Stopped. The relations that were done are kept; the same request goes on from "
                "there."
            )

    def _save(self, spec: ProbeSpec, plans: Sequence[Plan], seconds: float) -> ProbeRun:
        tables = [pq.read_table(self._part(spec, plan)) for plan in plans]
        missing = getattr(getattr(self.judge, "embedder", None), "missing", None)
        details = ProbeDetails(
            setting=spec.setting,
            probe=spec.probe,
            method=spec.method,
            options=spec.options,
            relations=tuple(
                make_result(plan.relation, table) for plan, table in zip(plans, tables, strict=True)
            ),
            left_out=tuple(self.left_out),
            missing=missing(self.work.words()) if missing else (),
        )
        rows = pa.concat_tables(tables).unify_dictionaries()
        return save_probe_run(spec, details, rows, self.folder, seconds=seconds)
