"""View: accuracies of analogy probes, by kind of relation or by relation.

Source: Rezaee and Camacho-Collados 2022, Tables 1 and 2.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import pandas as pd

from lama_core.errors import UserError, choose
from lama_core.grouping import grouped
from lama_core.metrics.headlines import is_level
from lama_core.probes.analogy.accuracy_tables import (
    ALL,
    RANDOM_PROBES,
    RELATION_KINDS,
    SHOWN_PROBES,
    SIGNIFICANT,
    UNMARKED,
    AccuracyBy,
    ProbeAccuracy,
    frequency_summary,
    probe_accuracies,
    probes_in,
    unmarked_accuracies,
)
from lama_core.probes.analogy.instances import PROBES, Setting
from lama_core.probes.analogy.spec import AnalogySpec, ProbeRun, list_probe_runs
from lama_core.requests import option
from lama_core.rounding import percent
from lama_core.runs.find import load_run
from lama_core.runs.info import Run
from lama_core.tables import Table, table_of
from lama_core.views.choice import NamedRuns
from lama_core.views.conclusions import as_share
from lama_core.views.figure import Axis, Figure, said
from lama_core.views.view import Shown, View, ViewFunction

# BATS' abbreviations -> in words.
ABBREVIATIONS = {
    "_irreg$": ", irregular",
    "_reg$": "",
    r"\bverb_inf\b": "infinitive",
    r"\bverb_": "",
    r"\b3pSg\b": "3rd person",
    r"\bVing\b": "ing-form",
    r"\bVed\b": "past form",
    r"\badj\b": "adjective",
}
Accuracies = tuple[ProbeAccuracy, ...]


@dataclass(frozen=True)
class AnalogiesRequest(NamedRuns, command="results analogies", python="analogies"):
    """Request for accuracies of analogy probes: the fields of `results analogies`."""

    by: Annotated[AccuracyBy, option("One row per relation or kind of relation.")] = "kind"
    setting: Annotated[
        Setting | None, option("Only unsupervised or supervised probes. Default: both.")
    ] = None
    probe: Annotated[
        str | None,
        option("Only this probe: random, random-head, random-tail, type or reverse. Default: all."),
    ] = None


class AnalogiesView(View[AnalogiesRequest, Accuracies]):
    """How often models choose the right pair of an analogy."""

    name = "analogies"
    title = "Analogy probes"
    question = "How often does a model choose the right pair of an analogy?"
    example = "results analogies --by relation"
    keys = ("probe", "name")

    def load(self, request: AnalogiesRequest) -> list[Run]:
        """Return the analogy runs that a request names, or all."""
        if request.runs:
            return [load_run(name, kinds=(AnalogySpec.kind,)) for name in request.runs]
        found = list_probe_runs(on_problem=request.on_note)
        if not found:
            raise UserError(
                "No finished analogy probe. Make one first: see `analogy probe --help`."
            )
        return [one.run for one in found]

    def compute(self, runs: Sequence[Run], request: AnalogiesRequest) -> Accuracies:
        """Return the accuracies; by kind, also over the relations that the paper doesn't mark."""
        probe_runs = [ProbeRun(run) for run in runs]
        lines = probe_accuracies(probe_runs, by=request.by)
        lines += unmarked_accuracies(probe_runs) if request.by == "kind" else []
        if request.probe is not None:
            choose(request.probe, ("random", *PROBES), "probe")
        found = tuple(
            line
            for line in lines
            if request.setting in (None, line.setting) and request.probe in (None, line.probe)
        )
        if not found:
            raise UserError("These runs have no such probe. Choose other runs or options.")
        return found

    def frame(self, shown: Shown[AnalogiesRequest, Accuracies]) -> pd.DataFrame:
        """Return a row for each model, setting, probe, and relation or kind."""
        return pd.DataFrame(self.json(shown))

    def json(self, shown: Shown[AnalogiesRequest, Accuracies]) -> list[dict[str, Any]]:
        """Return what `analogy probe --json` prints, too."""
        return [asdict(line) for line in shown.found]

    def conclusion(self, shown: Shown[AnalogiesRequest, Accuracies]) -> str:
        """Return the most accurate run of each probe over all kinds of relations."""
        lines = [line for line in shown.found if line.name == ALL]
        names = [shown.names.get(line.run.split(", ")[0], line.model) for line in lines]
        won: dict[str, list[str]] = {}
        for probe in SHOWN_PROBES:
            of_probe = [at for at, line in enumerate(lines) if line.probe == probe]
            if of_probe:
                best = max(lines[at].accuracy for at in of_probe)
                level = [names[at] for at in of_probe if is_level(best - lines[at].accuracy)]
                won.setdefault(" and ".join(level), []).append(f"{probe} ({as_share(best)})")
        found = "; ".join(f"{who} on {' and '.join(probes)}" for who, probes in won.items())
        what = "Highest accuracy" if len(set(names)) > 1 else "Accuracy"
        return f"{what}: {found}; chance: 50 %" if won else ""

    def basis(self, shown: Shown[AnalogiesRequest, Accuracies]) -> str:
        """Return the numbers of relations, over which accuracies are means, and of decisions."""
        return f"means over {shown.size().replace(shown.counts, 'decisions')} of each run"

    def figure(self, shown: Shown[AnalogiesRequest, Accuracies]) -> Figure:
        """Return the accuracies of one probe in one setting: `random` unless another is chosen."""
        probes = probes_in(shown.found)
        return accuracy_figure(shown, shown.request.probe or probes[0], shown.found[0].setting)

    def tables(self, shown: Shown[AnalogiesRequest, Accuracies]) -> Iterator[Table | str]:
        """Yield a table for each setting: rows are relations (or kinds) and models."""
        for setting in dict.fromkeys(line.setting for line in shown.found):
            lines = [line for line in shown.found if line.setting == setting]
            probes = probes_in(lines)
            cells = {(line.model, line.name, line.made_with, line.probe): line for line in lines}
            # `random` has the decisions of random-head and random-tail; n is that of one probe.
            single = [line for line in lines if line.probe != "random"] or lines
            counts = grouped(((line.model, line.name, line.made_with), line.n) for line in single)
            rows = []
            for (model, name, made_with), (n, *_) in counts.items():
                of_row = [cells.get((model, name, made_with, probe)) for probe in probes]
                rows.append((name, model, *map(_cell, of_row), n))
            yield table_of(
                ("kind or relation", "model", *probes, "n per probe"),
                rows,
                title=f"Accuracy in percent, {setting} (chance: 50; ±: SD over classifier seeds)",
            )
            yield from dict.fromkeys(line.made_with for line in lines)
            yield from _frequencies(lines)
            yield ""


def in_words(relation: str) -> str:
    """Return a relation's name without BATS' abbreviations: `infinitive - past form`."""
    for short, words in ABBREVIATIONS.items():
        relation = re.sub(short, words, relation)
    return relation.replace("_", " ")


def accuracy_figure(
    shown: Shown[AnalogiesRequest, Accuracies],
    probe: str,
    setting: Setting,
    published: Sequence[ProbeAccuracy] = (),
) -> Figure:
    """Return the chart of one probe and setting, with published accuracies next to the runs'.

    Marks: `*` one-to-many, `†` bidirectional relations.
    """
    lines = [
        line
        for line in (*shown.found, *published)
        if (line.probe, line.setting) == (probe, setting)
    ]
    names = dict(shown.names)
    rows = []
    for line in lines:
        key = f"{line.model} (published)" if line.published else line.run.split(", ")[0]
        names.setdefault(key, key)
        label = f"{in_words(line.name)} {line.mark}".strip()
        spread = line.spread
        rows.append(
            {
                **asdict(line),
                "series": key,
                "label": label,
                "low": line.accuracy - spread if spread is not None else float("nan"),
                "high": line.accuracy + spread if spread is not None else float("nan"),
                "said": said(
                    f"{names[key]}, {label}",
                    f"{percent(line.accuracy)} %"
                    + (f" ± {percent(spread)} (s.d. over seeds)" if spread is not None else ""),
                    f"{line.n:,} decisions" if line.n else "decisions not published",
                ),
            }
        )
    order = (*RELATION_KINDS, ALL, UNMARKED) if shown.request.by == "kind" else ()
    known = {str(row["label"]) for row in rows}
    what = "kind of relation" if shown.request.by == "kind" else "relation"
    return Figure(
        shape="bars" if shown.request.by == "kind" else "points",
        frame=pd.DataFrame(rows),
        by=Axis(column="label", title=what, order=tuple(one for one in order if one in known)),
        value=Axis(column="accuracy", title="accuracy, % of decisions", share=True, ends=(0, 1.01)),
        series="series",
        names=names,
        published=frozenset(names) - frozenset(shown.names) if published else frozenset(),
        low="low",
        high="high",
        zero=0.5,
        title=shown.title_of(f"{probe}: accuracy by {what}, {setting}"),
        caption="; ".join(
            (
                ", ".join(dict.fromkeys(info.dataset for info in shown.infos)),
                *dict.fromkeys(line.made_with for line in lines if line.made_with),
                f"at most {max(line.n for line in lines):,} decisions for each bar",
                "line: chance",
            )
        ),
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
