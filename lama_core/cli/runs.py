"""Commands that make runs (`probe`, `statements`, `generate`, `extract`, ...); `runs`."""

from typing import Annotated

from cyclopts import Parameter

from lama_core.cli import commands, output
from lama_core.cli.plugins import add_to_group
from lama_core.cli.results import print_runs, runs_json
from lama_core.errors import UserError
from lama_core.files import folder_bytes
from lama_core.probes import plan as cloze
from lama_core.probes.analogy import plan as analogy
from lama_core.probes.analogy.request import AnalogyRequest
from lama_core.probes.generation import plan as generation
from lama_core.probes.kinds import title_of
from lama_core.probes.making_runs import Runs
from lama_core.probes.statements import plan as whole_answers
from lama_core.probes.tracing import traces
from lama_core.probes.tracing.roles import ROLES, RoleEffect
from lama_core.rounding import fixed
from lama_core.runs import manage
from lama_core.views.analogies import Accuracies, AnalogiesRequest, analogies
from lama_core.views.view import Shown, show_runs

Name = Annotated[str, Parameter(help="Full name of the run, as `runs list` prints it.")]

probe, statements, generate = (
    commands.make(function, print_runs, function.example, runs_json)
    for function in (cloze.probe, whole_answers.statements, generation.generate)
)


def print_effects(runs: traces.TraceRuns) -> None:
    """Print a table for each model and relation: a row per layer, a column per token role."""
    for model, relation in dict.fromkeys((one.model, one.relation) for one in runs.effects):
        chosen = [one for one in runs.effects if (one.model, one.relation) == (model, relation)]
        cells = {(one.layer, one.role): one for one in chosen}
        shown = [role for role in ROLES if any(one.role == role for one in chosen)]
        layers = sorted({one.layer for one in chosen}, reverse=True)
        output.print_table(
            ("layer", *shown),
            [(layer, *(_effect(cells.get((layer, role))) for role in shown)) for layer in layers],
            title=f"{model}, {relation}: mean effect on the object's probability, "
            f"{max(one.n for one in chosen):,} facts (95 % interval)",
        )
        output.print_line()
    if not runs.effects:
        output.print_line(
            "No fact is traced: no object is a model's first answer. Choose other facts."
        )


def _effect(one: RoleEffect | None) -> str:
    if one is None:
        return ""
    value = fixed(one.effect, 3, signed=True)
    if one.low is None or one.high is None:
        return value
    return f"{value} ({fixed(one.low, 3)} to {fixed(one.high, 3)})"


trace = commands.make(traces.trace, print_effects, traces.trace.example)


def print_list(rows: tuple[manage.KeptRun, ...]) -> None:
    """Print a row for each run on this machine."""
    output.print_table(
        ("run", "title", "kind", "rows", "state", "made", "size", "place"),
        [
            (
                row.name,
                row.info.title if row.info else "",
                title_of(row.info.kind) if row.info else "",
                f"{row.info.n:,}" if row.info else "",
                row.state,
                row.changed[:10],
                output.size(row.n_bytes),
                "bundled" if row.bundled else "own",
            )
            for row in rows
        ],
    )


def rename(
    run: Name, title: Annotated[str, Parameter(help='The new title; "" removes the title.')], /
) -> None:
    """Change the title of a run that isn't bundled; its name and numbers stay the same."""
    info = manage.rename_run(run, title)
    output.print_line(
        f"{info.id}: {f'new title {info.label!r}' if info.title else 'title removed'}"
    )


def delete(run: Name, /, *, yes: commands.Yes = False) -> None:
    """Delete a finished or unfinished run from the disk; bundled runs can't be deleted."""
    size = output.size(folder_bytes(manage.own_folder(run)))
    if not yes:
        raise UserError(f"This permanently deletes {run} ({size}). Pass --yes to confirm.")
    output.print_line(f"Deleted {run} and freed {output.size(manage.delete_run(run))}")


runs = commands.make_group(
    "runs", commands.make_command(manage.list_runs, print_list, manage.records)
)
runs.command(commands.make(manage.list_runs, print_list, "runs list --json", manage.records))
runs.command(rename, help_epilogue='Example: lama-explorer runs rename RUN "Longer training"')
runs.command(delete, help_epilogue="Example: lama-explorer runs delete RUN --yes")


add_to_group(runs, "runs")


def accuracies(made: Runs) -> Shown[AnalogiesRequest, Accuracies]:
    """Return the accuracies of new analogy runs."""
    assert isinstance(made.request, AnalogyRequest)
    return show_runs(analogies.view, made.runs, AnalogiesRequest(by=made.request.by))


analogy_probe = commands.make(
    analogy.analogy_probe,
    lambda made: output.print_parts(analogies.view.tables(accuracies(made))),
    analogy.analogy_probe.example,
    lambda made: accuracies(made).to_json(),
)
