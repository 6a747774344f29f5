"""The runs of a view: chosen by name or all, restricted to shared facts, and named."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from lama_core.errors import UserError
from lama_core.metrics.verdicts import with_verdicts
from lama_core.models.devices import settings_text
from lama_core.requests import Request, argument, option
from lama_core.rounding import counted, few
from lama_core.runs.alignment import align, differing_candidates, small_runs
from lama_core.runs.chosen_facts import only_facts
from lama_core.runs.find import list_runs, load_run
from lama_core.runs.info import FACT_KINDS, Run, RunInfo
from lama_core.runs.series import earlier_checkpoints
from lama_core.scoring import shared_fields
from lama_core.scoring.ranking import Ranking


@dataclass(frozen=True)
class NamedRuns(Request):
    """The runs of a view: the field that every view has."""

    runs: Annotated[
        Sequence[str],
        argument(
            "Names of runs (or their beginnings: of several runs, the only bundled one), or "
            "folders of runs. Default: all, but of runs of the same model, data and prompts only "
            "those with the most facts, and none with less than half of the facts of the largest.",
            selects=True,
        ),
    ] = ()


@dataclass(frozen=True)
class RunsRequest(NamedRuns):
    """The runs and facts of a view: the fields of all views of facts."""

    ranking: Annotated[
        Ranking | None, option("filtered or raw. Default: the ranking each run was made with.")
    ] = None
    relations: shared_fields.Relations = ()
    facts: shared_fields.Facts = ""
    verdicts: Annotated[
        bool,
        option(
            "Count the verdicts on generated texts that you overrode on Wrong answers. Default: "
            "count what the texts match."
        ),
    ] = False
    own: Annotated[
        bool,
        option(
            "Score each run on all its facts. Default: only facts that count in all runs of the "
            "same data and prompts.",
            name="--unaligned",
        ),
    ] = False

    def ranking_of(self, info: RunInfo) -> Ranking:
        """Return the ranking that applies to a run."""
        return self.ranking or info.ranking


@dataclass(frozen=True)
class TopRequest(RunsRequest):
    """The fields of views of P@k."""

    k: Annotated[int, option("A fact is right if its gold answer is in the top k.", ge=1)] = 1


def choose_runs(request: RunsRequest, *, aligned: bool, checkpoints: bool) -> list[Run]:
    """Return the runs that a request names, or all.

    Args:
        request: The request. Its notes name hidden runs and the facts that are scored.
        aligned: Restrict runs of the same data and prompts to the facts that all of them count,
            unless the request wants each run's own facts.
        checkpoints: If no run is named, include the earlier checkpoints of training runs.

    Raises:
        UserError: If no run is finished, or a run or relation is unknown.
    """
    if request.runs:
        chosen = [load_run(name, kinds=FACT_KINDS) for name in request.runs]
    else:
        listing = list_runs(kinds=FACT_KINDS).intact()
        for problem in listing.problems:
            request.on_note(problem)
        hidden = frozenset() if checkpoints else earlier_checkpoints(listing)
        if hidden:
            request.on_note(
                f"Not shown: {counted(len(hidden), 'run')} of training checkpoints. `results "
                "training` shows them."
            )
        chosen = [Run(info) for info in listing if info.id not in hidden]
    if not chosen:
        raise UserError("No finished runs. Make one first: see `probe --help`.")
    for name in request.relations:
        if not any(name == relation.name for run in chosen for relation in run.info.relations):
            chosen[0].info.relation(name)  # raises UserError with the most similar name
    chosen = only_facts(chosen, request.facts)
    if request.verdicts:
        chosen = [with_verdicts(run) for run in chosen]
    if aligned and not request.own:
        if not request.runs:
            # A run of `probe --limit 20` has fewer facts than the bundled run of the same model,
            # data and prompts; alignment would score every model on these 20 facts only.
            n = {run.info.id: run.info.n + run.info.n_excluded for run in chosen}
            most: dict[Hashable, int] = {}
            for info in (run.info for run in chosen):
                most[_setting(info)] = max(n[info.id], most.get(_setting(info), 0))
            partial = [run.info.id for run in chosen if n[run.info.id] < most[_setting(run.info)]]
            if partial:
                request.on_note(
                    f"Not shown: {counted(len(partial), 'run')} on fewer facts than another run of "
                    f"the same model, data and prompts: {few(partial)}. Name runs, or pass "
                    "--unaligned, to see them."
                )
            runs = [run for run in chosen if run.info.id not in partial]
            infos = [run.info for run in runs]
            if said := described_small(infos, {info.id: info.id for info in infos}):
                request.on_note(
                    "Not shown, because all runs would be scored on its few facts only: "
                    f"{said}. Name runs, or pass --unaligned, to include it."
                )
            small = small_runs(infos)
            chosen = [run for run in runs if run.info.id not in small]
        chosen = [*align(chosen)]
        shared = [run.info for run in chosen if run.info.beside]
        given = {info.id: info for info in (one for run in shared for one in run.beside)}
        exact_to = [run.info.exact_to for run in chosen if run.info.exact_to is not None]
        note = "Runs of the same data and prompts are scored on the facts that all of them count."
        if small_ones := described_small([*given.values()], {name: name for name in given}):
            note += (
                f" Few facts are left because of {small_ones}: leave it out to score the others on "
                "more."
            )
        if exact_to:
            note += (
                " Runs with different candidates are ranked on the candidates that all of them "
                f"share: P@k is exact up to k = {min(exact_to)}."
            )
        elif any(differing_candidates(info.beside) for info in shared):
            note += " Some runs have different candidates: fewer candidates give better ranks."
        if shared:
            request.on_note(f"{note} To score each run on all its facts, pass --unaligned.")
    return chosen


def described_small(infos: Sequence[RunInfo], names: Mapping[str, str]) -> str:
    """Return the runs of `small_runs` with their facts: `A (2 of 9,365 facts)`; "" without any.

    names: run id -> its name for readers.
    """
    most = small_runs(infos)
    return few(
        [
            f"{names[one.id]} ({one.n:,} of {most[one.id]:,} {one.counts})"
            for one in infos
            if one.id in most
        ]
    )


def _setting(info: RunInfo) -> Hashable:
    return info.kind, info.data_digest, info.prompts, info.model, info.precision, info.device


def model_names(infos: Sequence[RunInfo]) -> dict[str, str]:
    """Return run id -> label: the model, then prompts and precision if not the default.

    Runs with the same label also get the dataset, and if that is the same, the end of their ids.
    """
    names = {}
    for info in infos:
        prompts = "" if info.prompts == "manual" else info.prompts
        how = settings_text(info.precision, info.device)
        names[info.id] = ", ".join(filter(None, (info.model, prompts, how)))
    endings: tuple[Callable[[RunInfo], str], ...] = (
        lambda info: f" on {info.dataset}",
        lambda info: f", {info.id[-10:]}",
    )
    for ending in endings:
        n_runs = Counter(names.values())
        for info in infos:
            if n_runs[names[info.id]] > 1:
                names[info.id] += ending(info)
    return names
