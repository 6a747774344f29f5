"""`results` and `compare`: print score tables and comparisons of finished runs."""

from typing import TYPE_CHECKING, Any

from lama_core import rounding
from lama_core.api import results as api
from lama_core.api.results import (
    METHOD_OF_DIFFERENCES,
    ComparedRuns,
    ComparedSlices,
    Interval,
    what_differs,
)
from lama_core.cli import commands, output
from lama_core.cli.output import percent
from lama_core.files import atomic_file, user_path
from lama_core.views.figure_files import FigureFile
from lama_core.views.scores import ScoresRequest, scores
from lama_core.views.table import VIEWS
from lama_core.views.view import MOST_LISTED, Shown, show_runs

if TYPE_CHECKING:
    from lama_core.api.runs import Runs


def scores_of(runs: "Runs") -> Shown[Any, Any]:
    """Return the scores of new runs by relation, with the ranking of the request."""
    ranking = getattr(runs.request, "ranking", None)
    return show_runs(scores.view, runs.runs, ScoresRequest(ranking=ranking))


def print_runs(runs: "Runs") -> None:
    """Print the score table of runs that a command made."""
    print_view(scores_of(runs))


def runs_json(runs: "Runs") -> object:
    """Return the `--json` output of a command that makes runs."""
    return scores_of(runs).to_json()


def print_view(shown: Shown[Any, Any]) -> None:
    """Print the tables, lines and notes of a view."""
    output.print_parts(shown.view.tables(shown))
    for note in shown.view.notes(shown):
        output.print_note(note)


def write_figure(shown: Shown[Any, Any], file: FigureFile) -> None:
    """Write the figure of a view to a file, with the colours of the app."""
    from lama_core.views import drawing  # slow to import (0.4 s)
    from lama_core.views.colours import run_colours

    made = drawing.draw(
        shown.figure,
        file.format,
        run_colours(shown.infos),
        width=file.width,
        font_size=file.font_size,
    )
    with atomic_file(user_path(file.path)) as part:
        part.write_bytes(made)
    output.print_note(f"Wrote {file.path}.")


def print_compared(found: ComparedRuns | ComparedSlices) -> None:
    """Print the comparison of two runs over all facts, or on slices of them."""
    a, b = found.a.info, found.b.info
    print(f"A: {a.label} ({a.id})\nB: {b.label} ({b.id})\n")
    if isinstance(found, ComparedSlices):
        _print_differences(found)
        return
    if note := what_differs(a, b):
        output.print_note(note)
    k, ranking = found.request.k, found.request.ranking
    unit = found.found.units
    output.print_table(
        ("relation", unit, "A", "B", "B - A", "95% interval", "only A", "only B"),
        [
            (
                line.relation,
                line.n,
                percent(line.a),
                percent(line.b),
                rounding.percent(line.difference, signed=True),
                _signed(line.interval),
                line.only_a,
                line.only_b,
            )
            for line in found.found.relations
        ],
        title=f"P@{k} in percent, {ranking} ranking, by relation over its {unit}; Tango's score "
        "intervals for paired shares",
    )
    total, mean, mcnemar = found.found.over_facts, found.found.over_relations, found.found.mcnemar
    output.print_table(
        ("over", "n", "A", "B", "B - A", "95% interval", "for A", "for B", "equal", "test", "p"),
        [
            (
                over,
                means.n,
                percent(means.a),
                percent(means.b),
                rounding.percent(means.difference, signed=True),
                _signed(interval),
                *counts,
                test,
                "" if p != p else f"{p:.3g}",
            )
            for over, means, interval, counts, test, p in (
                (
                    unit,
                    total,
                    total.interval,
                    (total.only_a, total.only_b, total.n - total.only_a - total.only_b),
                    "McNemar, exact",
                    mcnemar.p,
                ),
                (
                    "relations",
                    mean,
                    mean.interval,
                    (mean.ahead_a, mean.ahead_b, mean.equal),
                    "",
                    float("nan"),
                ),
                (
                    "relations, as a sample",
                    mean,
                    mean.sample_interval,
                    (mean.ahead_a, mean.ahead_b, mean.equal),
                    "Student's t",
                    mean.p,
                ),
            )
        ],
        title=f"\nAll relations together: averaged over {unit}, and over relations; intervals: "
        f"{METHOD_OF_DIFFERENCES}; of means over relations, with an effective number of {unit}; of "
        "relations as a sample, Student's",
    )
    agreement = found.found.agreement
    print(
        f"\nA and B give the same first answer on {percent(agreement.same_first)}% of the {unit}; "
        f"Cohen's kappa of being right: {rounding.fixed(agreement.kappa, 2)}; excluded: "
        f"{found.found.n_unpaired:,} rows that only one run counts"
    )
    if flips := found.flips(MOST_LISTED):
        n_flips = mcnemar.only_a + mcnemar.only_b
        output.print_table(
            ("right", "relation", "query", "gold answer", "answer of A", "answer of B"),
            [
                [flip[name] for name in ("right", "relation", "query", "object", "a", "b")]
                for flip in flips
            ],
            title=f"\nFacts that only one run gets right ({len(flips)} of {n_flips:,})",
        )


def _print_differences(found: ComparedSlices) -> None:
    output.print_table(
        ("slice by", "slice", "facts", "A", "B", "B - A", "95% interval", "only A", "only B"),
        [
            (
                line["by"],
                line["slice"],
                f"{line['n']:,}",
                percent(line["a"]),
                percent(line["b"]),
                rounding.percent(line["difference"], signed=True),
                _signed(Interval(line["low"], line["high"])),
                line["only_a"],
                line["only_b"],
            )
            for line in found.frame.to_dict("records")
        ],
        title=f"P@{found.request.k} in percent, {found.request.ranking} ranking, over the facts "
        "that both runs count; Tango's score intervals for paired shares",
    )


def _signed(interval: Interval) -> str:
    """Return `-1.2 to +3.4`; empty without an interval."""
    ends = (interval.low, interval.high)
    if ends[0] != ends[0]:
        return ""
    return " to ".join(rounding.percent(end, signed=True) for end in ends)


results = commands.make(api.results, print_view, "results --by source")
for view in VIEWS:
    if view.request.command[:-1] == ("results",):
        draw = write_figure if view.view.has_figure else None
        results.command(commands.make(view, print_view, view.view.example, write_figure=draw))
compare = commands.make(api.compare, print_compared, "compare RUN_A RUN_B")
