"""View: accuracies of analogy probes, by kind of relation or by relation.

Source: Rezaee and Camacho-Collados 2022, Tables 1 and 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from lama_core.errors import UserError
from lama_core.probes.analogy.accuracy_tables import (
    RANDOM_PROBES,
    SIGNIFICANT,
    By,
    ProbeAccuracy,
    frequency_summary,
    probe_accuracies,
    probes_in,
    unmarked_accuracies,
)
from lama_core.probes.analogy.spec import AnalogySpec, ProbeRun, list_probe_runs
from lama_core.requests import option
from lama_core.rounding import percent
from lama_core.runs.find import load_run
from lama_core.runs.info import Run
from lama_core.tables import Table, table_of
from lama_core.views.choice import NamedRuns
from lama_core.views.view import Shown, View, ViewFunction

if TYPE_CHECKING:
    import pandas as pd

Accuracies = tuple[ProbeAccuracy, ...]


@dataclass(frozen=True)
class AnalogiesRequest(NamedRuns):
    """Request for accuracies of analogy probes: the fields of `results analogies`."""

    command: ClassVar[tuple[str, ...]] = ("results", "analogies")
    python: ClassVar[str] = "analogies"

    by: Annotated[By, option("One row per relation or kind of relation.")] = "kind"


class AnalogiesView(View[AnalogiesRequest, Accuracies]):
    """How often models choose the right pair of an analogy."""

    name = "analogies"
    title = "Analogy probes"
    question = "How often does a model choose the right pair of an analogy?"
    example = "results analogies --by relation"

    def load(self, request: AnalogiesRequest) -> list[Run]:
        """Return the analogy runs that a request names, or all."""
        if request.runs:
            return [load_run(name, kinds=(AnalogySpec.kind,)) for name in request.runs]
        listing = list_probe_runs()
        for problem in listing.problems:
            request.on_note(problem)
        if not listing.runs:
            raise UserError(
                "No finished analogy probe. Make one first: see `analogy probe --help`."
            )
        return [one.run for one in listing.runs]

    def compute(self, runs: Sequence[Run], request: AnalogiesRequest) -> Accuracies:
        """Return the accuracies; by kind, also over the relations that the paper doesn't mark."""
        probe_runs = [ProbeRun(run) for run in runs]
        lines = probe_accuracies(probe_runs, by=request.by)
        return (*lines, *(unmarked_accuracies(probe_runs) if request.by == "kind" else ()))

    def frame(self, shown: Shown[AnalogiesRequest, Accuracies]) -> "pd.DataFrame":
        """Return a row for each model, setting, probe, and relation or kind."""
        import pandas as pd

        return pd.DataFrame(self.json(shown))

    def json(self, shown: Shown[AnalogiesRequest, Accuracies]) -> list[dict[str, Any]]:
        """Return what `analogy probe --json` prints, too."""
        return [asdict(line) for line in shown.found]

    def keys(self, shown: Shown[AnalogiesRequest, Accuracies]) -> tuple[str, ...]:
        """Return the columns that, with the run, identify a row."""
        return "probe", "name"

    def tables(self, shown: Shown[AnalogiesRequest, Accuracies]) -> Iterator[Table | str]:
        """Yield a table for each setting: rows are relations (or kinds) and models."""
        for setting in dict.fromkeys(line.setting for line in shown.found):
            lines = [line for line in shown.found if line.setting == setting]
            yield _of_setting(setting, lines)
            yield from dict.fromkeys(line.made_with for line in lines)
            yield from _frequencies(lines)
            yield ""


def _of_setting(setting: str, lines: Sequence[ProbeAccuracy]) -> Table:
    """Return the accuracies of one setting, with a column for each probe."""
    probes = probes_in(lines)
    found = {(line.model, line.name, line.made_with, line.probe): line for line in lines}
    keys = dict.fromkeys(
        (line.model, line.name, line.made_with) for line in lines if line.probe != "random"
    )
    rows = []
    for model, name, how in keys:
        of_row = [found.get((model, name, how, probe)) for probe in probes]
        # `random` has the decisions of random-head and random-tail; n is that of one probe.
        n = next(line.n for line in of_row if line is not None and line.probe != "random")
        rows.append((name, model, *map(_cell, of_row), n))
    return table_of(
        ("kind or relation", "model", *probes, "n per probe"),
        rows,
        title=f"Accuracy in percent, {setting} (chance: 50; ±: SD over classifier seeds)",
    )


def _frequencies(lines: Sequence[ProbeAccuracy]) -> Iterator[Table | str]:
    """Yield p of the frequency test by relation, and in how many relations p isn't significant."""
    shown = ("random", *RANDOM_PROBES)
    found = {
        (line.model, line.name, line.made_with, line.probe): line
        for line in lines
        if line.probe in shown and line.p_value is not None
    }
    rows = dict.fromkeys((model, name, how) for model, name, how, _ in found)
    if not rows:
        return
    yield ""
    yield table_of(
        ("relation", "model", *shown),
        [
            (name, model, *(_p_value(found.get((model, name, how, probe))) for probe in shown))
            for model, name, how in rows
        ],
        title="Do the frequencies of right and wrong pairs differ? p of a Kolmogorov-Smirnov test",
    )
    for model, how, probe in dict.fromkeys((model, how, probe) for model, _, how, probe in found):
        chosen = [line for key, line in found.items() if (key[0], *key[2:]) == (model, how, probe)]
        n, above = frequency_summary(chosen)
        yield f"{model}, {probe}: p is above {SIGNIFICANT} in {above} of {n} relations"


def _p_value(line: ProbeAccuracy | None) -> str:
    return f"{line.p_value:.3f}" if line is not None and line.p_value is not None else ""


def _cell(line: ProbeAccuracy | None) -> str:
    if line is None:
        return ""
    spread = f" ± {percent(line.spread)}" if line.spread is not None else ""
    return f"{percent(line.accuracy)}{line.mark}{spread}"


analogies = ViewFunction(
    AnalogiesRequest,
    AnalogiesView(),
    """Return accuracies of analogy probes (Rezaee and Camacho-Collados 2022, Tables 1 and 2).

    The accuracy of a kind of relations is the mean over its relations; chance is 0.5.

    Returns:
        A DataFrame with a row for each model, setting, probe, and relation or kind of relations:
        accuracy, spread (standard deviation over a classifier's seeds), n (decisions), n_excluded,
        mark, p_value (of the frequency test), and how the run was made.

    Raises:
        UserError: If there is no finished analogy probe, or a run is unknown.
    """,
)
