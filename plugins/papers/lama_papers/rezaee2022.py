"""Rezaee and Camacho-Collados 2022, Tables 1 and 2 and section 4: `reproduce rezaee2022`.

The paper's models are RoBERTa-base, RoBERTa-large, RelBERT and fastText, on BATS 3.0. If BATS is
unavailable, the embedded models are run on the starter analogies instead, with the limit of the
bundled runs. docs/departures.md lists what the paper doesn't specify; differences of a few points
are expected.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from lama_core.errors import UserError
from lama_core.papers.analogies import (
    BY_RELATION,
    COLUMNS,
    DATASET,
    PAPER,
    differs_from_paper,
    published_by_kind,
    published_by_relation,
    published_unmarked,
)
from lama_core.papers.differences import joined
from lama_core.probes.analogy.accuracy_tables import (
    RANDOM_PROBES,
    SIGNIFICANT,
    ProbeAccuracy,
    frequency_summary,
    probe_accuracies,
    unmarked_accuracies,
)
from lama_core.probes.analogy.instances import SETTINGS, Setting
from lama_core.probes.analogy.plan import plan
from lama_core.probes.analogy.request import AnalogyRequest
from lama_core.probes.analogy.spec import ProbeRun
from lama_core.published import published_table
from lama_core.runs.execute import execute_all
from lama_papers.charts import compared
from lama_papers.framework import (
    EMBEDDED,
    NO_DATA,
    Data,
    Paper,
    PaperInputs,
)
from lama_papers.tables import Item, ReproducedRow

STARTER_LIMIT = 40
MODELS_GET = "lama-explorer models get "


@dataclass(frozen=True, slots=True)
class AnalogyJudge:
    """A judge: a model or a set of word vectors that the probes test.

    request: request of its runs; None if it is unavailable. command: fetches it. reason: why it
    is unavailable.
    """

    request: AnalogyRequest | None
    command: str = ""
    reason: str = ""


def _model(reference: str) -> AnalogyJudge:
    return AnalogyJudge(AnalogyRequest(DATASET, models=(reference,)), MODELS_GET + reference)


JUDGES: dict[str, AnalogyJudge] = {
    "RoBERTa-base": _model("roberta-base"),
    "RoBERTa-large": _model("roberta-large"),
    "RelBERT": AnalogyJudge(
        AnalogyRequest(DATASET, relbert=("relbert/relbert-roberta-large",)),
        MODELS_GET + "relbert/relbert-roberta-large",
    ),
    "fastText": AnalogyJudge(
        None,
        "lama-explorer analogy probe --dataset bats --vectors wiki-news-300d-1M.vec --setting both",
        "its vectors are a download of several gigabytes from fasttext.cc; pass the file to "
        "`analogy probe`",
    ),
}


@dataclass
class JudgeRuns(PaperInputs):
    """The judges and their runs."""

    own = DATASET
    instead = Data("starter-analogies", "starter analogies")
    _made: dict[tuple[str, Setting], tuple[ProbeRun, ...]] = field(default_factory=dict)

    @property
    def limit(self) -> int | None:
        """Maximum number of instances per relation."""
        if self.options.limit is None and self.data.other:
            return STARTER_LIMIT
        return self.options.limit

    @cached_property
    def judges(self) -> dict[str, AnalogyJudge]:
        """Displayed name -> judge: the paper's, then others."""
        further = {name: _model(name) for name in self.options.models}
        if not self.data.other:
            return JUDGES | further
        reason = "needs BATS 3.0, which isn't available"
        judges = {name: AnalogyJudge(None, one.command, reason) for name, one in JUDGES.items()}
        return judges | {name: _model(name) for name in EMBEDDED} | further

    @property
    def notes(self) -> Sequence[str]:
        """Notes that apply to all tables."""
        notes = [
            "Accuracy. Random is the mean of random-head and random-tail, and n counts the "
            "decisions of both. Unsupervised: sum of the log-probabilities. Supervised: last "
            "layer, mean over subword tokens, 100 hidden units, five seeds.",
            "The paper doesn't specify which tails make a relation's 100 pairs, how pairs are "
            "halved, and which negatives are sampled; these choices are ours.",
        ]
        if self.data.other:
            notes.append(
                f"BATS 3.0 isn't available. The embedded models are run on the {self.data.other}, "
                "whose results can't be compared with the paper's."
            )
        if self.limit is not None:
            notes.append(f"At most {self.limit:,} instances per relation, sampled at random.")
        return notes

    @property
    def by_relation(self) -> list[str]:
        """The judges for Table 2 and section 4: RoBERTa-large, and models that the paper lacks."""
        return [name for name in self.judges if name == BY_RELATION or name not in JUDGES]

    def runs(self, name: str, setting: Setting) -> tuple[ProbeRun, ...]:
        """Return one judge's runs of the four probes; () if it is unavailable (see `missing`)."""
        judge = self.judges[name]
        if name in self.missing:
            return ()
        if (name, setting) not in self._made:
            with self.noting(name, judge.command):
                if judge.request is None:
                    raise UserError(judge.reason)
                request = replace(
                    judge.request, dataset=self.data.name, setting=setting, limit=self.limit
                )
                specs = plan(request, load=self.load)
                runs = tuple(
                    map(ProbeRun, execute_all(specs, on_progress=self.options.on_progress))
                )
                for reason in sorted({one.reason for run in runs for one in run.details.left_out}):
                    self.options.on_note(reason)
                self._made[name, setting] = runs
        return self._made.get((name, setting), ())


def _differs(runs: Sequence[ProbeRun]) -> str:
    """Describe how runs differ from the paper's; "" if they don't."""
    return joined(*(word for run in runs for word in differs_from_paper(run)))


@dataclass(frozen=True, slots=True)
class AccuracyTable:
    """The specification of a table of accuracies.

    settings: settings to show. axis: title of the axis of its rows. judges: returns the judges to
    show. ours: returns the accuracies of runs. theirs: returns the published accuracies.
    """

    settings: tuple[Setting, ...]
    axis: str
    judges: Callable[[JudgeRuns], Iterable[str]]
    ours: Callable[[Sequence[ProbeRun]], list[ProbeAccuracy]]
    theirs: Callable[[], list[ProbeAccuracy]]

    def __call__(self, found: JudgeRuns) -> Iterator[Item]:
        """Yield the rows of each setting and judge, and a chart of each probe."""
        for setting in self.settings:
            rows = [row for name in self.judges(found) for row in self._rows(found, name, setting)]
            yield from rows
            for probe in COLUMNS:
                title = f"{setting} {probe}"
                chosen = [
                    replace(row, what=row.what.removesuffix(f", {title}"))
                    for row in rows
                    if row.what.endswith(f", {title}")
                ]
                yield from compared(title, chosen, x_title=self.axis, y_title="accuracy, %")

    def _rows(self, found: JudgeRuns, model: str, setting: Setting) -> Iterator[ReproducedRow]:
        """Yield a row for each accuracy of a model that was computed or published."""
        runs = found.runs(model, setting)
        made = {(line.name, line.probe): line for line in self.ours(runs)}
        printed = {
            (line.name, line.probe): line
            for line in self.theirs()
            if (line.model, line.setting) == (model, setting)
        }
        missing = NO_DATA if runs else f"{model} isn't available"
        for name, probe in dict.fromkeys((*printed, *made)):
            line, other = made.get((name, probe)), printed.get((name, probe))
            if probe in COLUMNS:
                yield ReproducedRow(
                    model,
                    f"{name}, {setting} {probe}",
                    line.n if line else 0,
                    100 * line.accuracy if line else None,
                    round(100 * other.accuracy, 2) if other else None,
                    "" if line else missing,
                    _differs(runs) if other else "",
                )


def section4(found: JudgeRuns) -> Iterator[Item]:
    """Yield the frequency test: share of relations with p above 0.05, and names of the rest."""
    above, least = map(str, published_table(PAPER, "frequency").rows[0].values)
    for model in found.by_relation:
        runs = found.runs(model, "supervised")
        lines = probe_accuracies(runs, by="relation")
        for probe in ("random", *RANDOM_PROBES):
            tested = [line for line in lines if line.probe == probe and line.p_value is not None]
            n, n_above = frequency_summary(tested)
            tested.sort(key=lambda line: line.p_value or 0)
            strongest = [line.name for line in tested if (line.p_value or 0) <= SIGNIFICANT]
            of_paper = model == BY_RELATION and probe == "random"
            if not (runs or of_paper):
                continue
            no_test = "" if n else "no relation has two right and two wrong decisions"
            if not runs:
                no_test = f"{model} isn't available"
            for what, ours, theirs in (
                (f"above {SIGNIFICANT}", 100 * n_above / n if n else None, above),
                (
                    f"not above {SIGNIFICANT}, lowest first",
                    ", ".join(strongest) or "none" if n else None,
                    least,
                ),
            ):
                yield ReproducedRow(
                    model,
                    f"p {what}, {probe}",
                    n,
                    ours,
                    theirs if of_paper else None,
                    no_test,
                    _differs(runs) if of_paper else "",
                )


ANALOGY_PAPER = Paper(
    PAPER,
    JudgeRuns,
    {
        "table1": AccuracyTable(
            SETTINGS,
            "kind of relation",
            lambda found: found.judges,
            partial(probe_accuracies, by="kind"),
            published_by_kind,
        ),
        "table2": AccuracyTable(
            ("supervised",),
            "relation",
            lambda found: found.by_relation,
            lambda runs: [*probe_accuracies(runs, by="relation"), *unmarked_accuracies(runs)],
            lambda: [*published_by_relation(), *published_unmarked()],
        ),
        "section4": section4,
    },
)
