"""Runs: made, continued, listed, renamed and deleted.

A run is finished part by part: the same call again resumes it where it stopped.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lama_core.api.queries import frames
from lama_core.datasets.passages import load_corpus
from lama_core.probes import kinds
from lama_core.probes.analogy import accuracy_tables
from lama_core.probes.analogy import plan as analogy_probing
from lama_core.probes.analogy.accuracy_tables import (
    RANDOM,
    SIGNIFICANT,
    Accuracy,
    frequency_summary,
    probes_in,
)
from lama_core.probes.analogy.plan import AnalogyRequest
from lama_core.probes.analogy.spec import ProbeRun
from lama_core.probes.extraction.plan import (
    ExtractRequest,
    FindRequest,
    ReadRequest,
    plan_extract,
    plan_read,
)
from lama_core.probes.plan import Planned, ProbeRequest, plan
from lama_core.probes.statements import plan as statements_probing
from lama_core.probes.statements.plan import StatementsRequest
from lama_core.progress import Progress, Result
from lama_core.requests import Function, Request
from lama_core.runs import find
from lama_core.runs.execute import execute_all
from lama_core.runs.info import Run, RunInfo
from lama_core.runs.manage import (
    KeptRun,
    RunsRequest,
    delete_run,
    list_kept,
    own_folder,
    rename_run,
)
from lama_core.runs.spec import RunSpec, load_by_name
from lama_core.runs.unfinished import begun_text
from lama_core.scoring.executors import make_executor
from lama_core.scoring.retrieval import open_index
from lama_core.scoring.shared_fields import DEFAULT_MODEL, RunSettings

if TYPE_CHECKING:
    import pandas as pd

    from lama_core.scoring.executors import Executor


@dataclass(frozen=True, eq=False)
class Runs(Sequence[Run]):
    """The finished runs of a request, one for each model.

    Attributes:
        request: What made them.
    """

    request: Request
    runs: tuple[Run, ...]

    def __getitem__(self, number: Any) -> Any:
        """Return a run by its number, from 0."""
        return self.runs[number]

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        """Iterate over the runs, in the order of the models."""
        return iter(self.runs)

    @property
    def frame(self) -> "pd.DataFrame":
        """All rows, as of `load_run`, after the columns `run` and `model`."""
        tables = []
        for run in self.runs:
            table = run.facts.copy()
            table.insert(0, "model", run.info.model)
            table.insert(0, "run", run.info.id)
            tables.append(table)
        return frames(tables)


def _itself(runs: Runs) -> Runs:
    return runs


def make_runs(
    request: Request,
    specs: Sequence[RunSpec],
    *,
    out: Path | None = None,
    executor: "Executor | None" = None,
) -> tuple[Run, ...]:
    """Return the runs of these specifications, scored where they aren't finished."""
    runs = execute_all(
        specs,
        folder=out,
        executor=executor,
        on_progress=request.on_progress,
        on_note=request.on_note,
        begun=begun_text(request),
    )
    for run in runs:
        info = run.info
        request.on_note(f"{info.id}: {info.n:,} rows, {info.n_excluded:,} excluded, {info.folder}")
        finished = Result("run", info.id)
        request.on_progress(Progress("Finished", 1, 1, result=finished))
    return runs


def loader(request: Request) -> Callable[..., Any]:
    """Return what loads a model by its name, and reports the request's progress."""
    return partial(load_by_name, on_progress=request.on_progress)


def run_planned(request: RunSettings, planned: Planned[Any]) -> Runs:
    """The planned runs: each model's alone, unless the executor computes them together."""
    workers = make_executor(request.executor)
    together = [[spec] for spec in planned.specs] if workers.here else [[*planned.specs]]
    runs = [
        run
        for specs in together
        for run in make_runs(request, specs, out=request.out, executor=workers)
    ]
    return Runs(request, tuple(runs))


def _index(request: Request, corpus: str | None) -> None:
    """Make the index of a corpus where it isn't there."""
    if corpus is not None:
        open_index(load_corpus(corpus), request.on_progress)


def _probe(request: ProbeRequest) -> Runs:
    _index(request, request.open_book)
    return run_planned(request, plan(request, load=loader(request)))


probe = Function(
    ProbeRequest,
    _probe,
    _itself,
    """Probe models with a dataset's cloze queries: a run for each model.

    Returns:
        The runs; `.frame` has a row for each model and fact, excluded facts with their reason.

    >>> import lama_core as lama
    >>> runs = lama.probe("starter", models=["minilm-mlm"], relations=["P36"], limit=3)
    >>> runs.frame[["subject", "object", "rank_filtered"]].astype({"rank_filtered": int})
          subject object  rank_filtered
    0       Egypt  Cairo              1
    1      Norway   Oslo              1
    2  Bangladesh  Dhaka              1
    """,
)


def _statements(request: StatementsRequest) -> Runs:
    return run_planned(request, statements_probing.plan(request, load=loader(request)))


statements = Function(
    StatementsRequest,
    _statements,
    _itself,
    """Rank each relation's answers by the likelihood of the whole statement: a run for each model.

    Returns:
        The runs; `.frame` has a row for each model and fact.
    """,
)


@dataclass(frozen=True, eq=False)
class AnalogyRuns(Runs):
    """The finished runs of an analogy probe.

    Attributes:
        accuracies: A line for each model, setting, probe and relation (or kind of relations).
    """

    accuracies: tuple[Accuracy, ...]

    def to_json(self) -> list[dict[str, Any]]:
        """Return what `analogy probe --json` prints."""
        return [asdict(line) for line in self.accuracies]


def _analogy_probe(request: AnalogyRequest) -> AnalogyRuns:
    if not request.judges:
        request = replace(request, models=(DEFAULT_MODEL,))
    specs = analogy_probing.plan(request, load=loader(request))
    runs = make_runs(request, specs, out=request.out)
    probed = [ProbeRun(run) for run in runs]
    for text in sorted(_left_out(probed)):
        request.on_note(text)
    lines = accuracy_tables.accuracies(probed, by=request.by)
    if request.by == "kind":
        lines = [*lines, *accuracy_tables.unmarked(probed)]
    return AnalogyRuns(request, runs, tuple(lines))


def _left_out(runs: Sequence[ProbeRun]) -> set[str]:
    """Why instances were excluded, a sentence each."""
    found: set[str] = set()
    for run in runs:
        found |= {one.reason for one in run.details.left_out}
        if missing := run.details.missing:
            rest = f" and {len(missing) - 20} more" if len(missing) > 20 else ""
            found.add(
                f"{run.info.model} has no vector for {', '.join(missing[:20])}{rest}: instances "
                "with these words are excluded from this baseline."
            )
    return found


analogy_probe = Function(
    AnalogyRequest,
    _analogy_probe,
    _itself,
    """Probe models and word vectors with analogies: a run for each model, setting and probe.

    Returns:
        The runs; `.frame` has a row for each model, probe and instance.
    """,
)


def _found(request: FindRequest, planner: Callable[..., Planned[Any]]) -> Runs:
    planned = planner(request, load=loader(request), on_progress=request.on_progress)
    return Runs(request, make_runs(request, planned.specs, out=request.out))


def _extract(request: ExtractRequest) -> Runs:
    return _found(request, plan_extract)


extract = Function(
    ExtractRequest,
    _extract,
    _itself,
    """Extract relations from the sentences that state the facts: LAMA's RE_n and RE_o.

    The extractor is trained on sentences of a corpus that hold other pairs than the queried one.

    Returns:
        The runs, one for each way of linking entities.
    """,
)


def _read(request: ReadRequest) -> Runs:
    _index(request, request.corpus)
    return _found(request, plan_read)


read = Function(
    ReadRequest,
    _read,
    _itself,
    """Let question-answering models find the answers in a corpus, as LAMA's DrQA.

    Returns:
        The runs, one for each reader.
    """,
)


def load_run(name: str | Path) -> "pd.DataFrame":
    """Return a finished run's rows: one for each fact (or pair), excluded ones with their reason.

    Args:
        name: The run's name (or how it begins), as `results` lists it; or its folder.

    >>> import lama_core as lama
    >>> run = lama.load_run("starter-minilm_mlm-manual")
    >>> bool((run["rank_filtered"] <= run["rank_raw"])[run["excluded"].isna()].all())
    True
    """
    return find.load_run(name).facts


@dataclass(frozen=True)
class KeptRuns:
    """All runs on this machine, finished or not."""

    rows: tuple[KeptRun, ...]

    def to_json(self) -> list[dict[str, Any]]:
        """Return what `runs list --json` prints."""
        return [row.record() for row in self.rows]

    @property
    def frame(self) -> "pd.DataFrame":
        """A row for each run."""
        import pandas as pd  # heavy

        return pd.DataFrame(self.to_json())


list_runs = Function(
    RunsRequest,
    lambda _: KeptRuns(tuple(list_kept())),
    lambda kept: kept.frame,
    """List every run on this machine: what it is, its state, its size on disk.

    Returns:
        A DataFrame with a row for each run.
    """,
)


def kind_title(info: RunInfo) -> str:
    """Return what a run's kind of probe is called."""
    return kinds.KINDS[info.kind].title if info.kind in kinds.KINDS else info.kind


__all__ = [
    "RANDOM",
    "SIGNIFICANT",
    "Accuracy",
    "AnalogyRuns",
    "KeptRuns",
    "Runs",
    "analogy_probe",
    "delete_run",
    "extract",
    "frequency_summary",
    "kind_title",
    "list_runs",
    "load_run",
    "own_folder",
    "probe",
    "probes_in",
    "read",
    "rename_run",
    "statements",
]
