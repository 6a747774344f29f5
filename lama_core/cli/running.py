"""How commands load models and make runs: with a bar, notes, and the names that came out."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lama_core.cli import show

if TYPE_CHECKING:
    from lama_core.asking.executors import Executor
    from lama_core.asking.settings import ClozeSettings, ModelSettings
    from lama_core.candidates.columns import Candidates
    from lama_core.models.backends import Model
    from lama_core.probes.probing import Planned
    from lama_core.progress import OnProgress
    from lama_core.runs.info import Run
    from lama_core.runs.spec import RunSpec

Opened = TypeVar("Opened")


def open_with(plan: Callable[[Callable[..., Any]], Opened]) -> Opened:
    """What `plan` gives when it may load models, which are fetched with a bar."""
    from lama_core.runs.spec import load_by_name

    with show.progress() as on_progress:
        return plan(partial(load_by_name, on_progress=on_progress))


def open_models(request: "ModelSettings") -> "tuple[Model, ...]":
    """The models of a request, fetched with a bar."""
    from lama_core.asking import settings

    with show.progress() as on_progress:
        opened = settings.load_models(request, on_progress)
    for model in opened:
        for note in model.notes:
            show.say(f"{model.name}: {note}")
    return opened


def open_asked(request: "ClozeSettings") -> "tuple[tuple[Model, ...], Candidates]":
    """The models of a request, fetched with a bar, and the candidates that fit them."""
    from lama_core.asking.settings import choose_candidates

    opened = open_models(request)
    return opened, choose_candidates(request, opened)


def index_corpus(reference: str) -> None:
    """Make the index of a corpus where it isn't there, with a bar."""
    from lama_core.asking.retrieval import open_index
    from lama_core.datasets.corpus import load_corpus

    with show.progress() as on_progress:
        open_index(load_corpus(reference), on_progress)


def make_runs(
    specs: "Sequence[RunSpec]", out: Path | None, executor: "Executor | None" = None
) -> "tuple[Run, ...]":
    """The runs of these specifications, made together where they aren't there."""
    from lama_core.runs.execute import execute_all

    with show.progress() as on_progress:
        runs = execute_all(
            specs, folder=out, executor=executor, on_progress=on_progress, on_note=show.say
        )
    _announce(runs)
    return runs


def make_together(plan: "Callable[[OnProgress], Planned]", out: Path | None) -> "list[Run]":
    """The runs that `plan` asks for, made together; what they share says how far it is, too."""
    from lama_core.runs.execute import execute_all

    with show.progress() as on_progress:
        specs = plan(on_progress).specs
        runs = execute_all(specs, folder=out, on_progress=on_progress, on_note=show.say)
    _announce(runs)
    return list(runs)


def _announce(runs: "Sequence[Run]") -> None:
    for run in runs:
        info = run.info
        show.say(f"{info.id}: {info.n:,} rows, {info.n_excluded:,} left out, in {info.folder}")
        show.announce("run", info.id)


def plan_and_make(
    plan: "Callable[[Callable[..., Any]], Planned]", out: Path | None, executor: str
) -> "list[Run]":
    """The runs that `plan` asks for, each model's by itself unless others compute them."""
    from lama_core.asking.executors import make_executor

    workers = make_executor(executor)
    planned = open_with(plan)
    together = [[spec] for spec in planned.specs] if workers.here else [planned.specs]
    return [run for specs in together for run in make_runs(specs, out, workers)]
