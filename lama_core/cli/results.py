"""`results` and `compare`: print score tables and comparisons of finished runs."""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from lama_core.cli import commands, output
from lama_core.errors import UserError, did_you_mean
from lama_core.files import atomic_file, user_path
from lama_core.probes.making_runs import Runs
from lama_core.views import figure_files
from lama_core.views.compare import compare as comparison
from lama_core.views.figure_files import FigureFile
from lama_core.views.scores import ScoresRequest, scores
from lama_core.views.scores import results as results_of
from lama_core.views.table import all_views
from lama_core.views.view import Shown, show_runs


def scores_of(runs: Runs) -> Shown[Any, Any]:
    """Return the scores of new runs by relation, with the ranking of the request."""
    return show_runs(
        scores.view, runs.runs, ScoresRequest(ranking=getattr(runs.request, "ranking", None))
    )


def print_runs(runs: Runs) -> None:
    """Print the score table of runs that a command made."""
    print_view(scores_of(runs))


def runs_json(runs: Runs) -> object:
    """Return the `--json` output of a command that makes runs."""
    return scores_of(runs).to_json()


def print_view(shown: Shown[Any, Any]) -> None:
    """Print the conclusion, tables, lines and notes of a view."""
    if shown.conclusion:
        output.print_line(f"{shown.conclusion}\n")
    output.print_parts(shown.view.tables(shown))
    for note in shown.notes:
        output.print_note(note)


def write_figure(shown: Shown[Any, Any], file: FigureFile) -> None:
    """Write the figure of a view to a file, with the colours of the app."""
    figure = shown.figure
    made = figure_files.draw(
        figure,
        file.format,
        shown.inks,
        width=file.width,
        font_size=file.font_size,
        titled=file.titled,
        on_note=output.print_note,
    )
    for path, content in file.named(made).items():
        with atomic_file(user_path(path)) as part:
            part.write_bytes(content)
        output.print_note(f"Wrote {path}.")
    if not file.titled:
        output.print_note(f"Caption: {figure.title}. {figure.caption}")


results = commands.make(results_of, print_view, "results --by source")
for view in all_views():
    if view.request.command[:-1] == ("results",) and view.request.command[-1] not in {*results}:
        draw = write_figure if view.view.has_figure else None
        results.command(commands.make(view, print_view, view.view.example, write_figure=draw))
compare = commands.make(comparison, print_view, comparison.view.example, write_figure=write_figure)
print_scores = cast(Callable[..., None], results.default_command)


@wraps(print_scores)
def print_scores_or_hint(*names: str, **options: Any) -> None:
    """Print the scores; suggest a view for a word that is nearly its name, and no run's."""
    try:
        print_scores(*names, **options)
    except UserError as error:
        views = [view.view.name for view in all_views() if view.request.command[0] == "results"]
        hint = did_you_mean(names[0], views) if len(names) == 1 else ""
        raise UserError(f"{error}{hint}") from error


results.default_command = print_scores_or_hint
