"""Jiang et al. 2020 (LPAQA), Tables 1 to 15 and Figures 1 to 5: `reproduce jiang2020`.

The tables show the user's models, by default the embedded one. The paper's values are those of its
BERT models, so they are shown only for the same BERT models, with the differences in the setup.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np

from lama_core.datasets.variants import uhn_substring
from lama_core.errors import UserError
from lama_core.grouping import grouped
from lama_core.papers.differences import differing, joined
from lama_core.probes.prompts import analyses, paper_tables
from lama_core.probes.prompts.mining import PIPELINE, SpacyParser
from lama_core.probes.prompts.plan import candidates_of
from lama_core.probes.prompts.published_scores import (
    BERTS,
    COLUMNS,
    LINES,
    N_FACTS,
    N_RELATIONS,
    PAPER,
    Averaging,
    make_table,
)
from lama_core.probes.prompts.request import StudyRequest
from lama_core.probes.prompts.spec import Study, list_studies
from lama_core.published import published_table
from lama_core.queries.blank_answers import query_model
from lama_core.rounding import fixed
from lama_core.scoring.blanks import parse_query
from lama_core.types import Fact
from lama_core.views.figure import Axis
from lama_papers.charts import boxes, chart, compared
from lama_papers.framework import (
    Paper,
    of_models,
)
from lama_papers.jiang2020_ablations import ablated, asked_back, refined
from lama_papers.jiang2020_data import (
    WITH_ENTITIES,
    Studies,
)
from lama_papers.tables import Item, ReproducedRow, UnavailableItem

NO_NAME = "the paper doesn't name the model"
GUESSED = "without the facts that a model guesses from names"
# Figure 1: a prompt of each kind, with DirectX as the subject, and the right answer.
ONE_FACT = {
    "manual": "DirectX is developed by ___ .",
    "mined": "___ released the DirectX .",
    "paraphrased": "DirectX is created by ___ .",
}
DEVELOPER = "Microsoft"
SHOWN_GAINS = 6  # as in the paper's Table 4
SHOWN_CHANGES = 5  # as in the paper's Table 6
SHOWN_WEIGHTS = 3
SHOWN_K = (1, 2, 3, 5, 10, 20, 30, 40)


def _one_fact(studies: Studies, model: str) -> Iterator[Item]:
    """Yield Figure 1: the five best answers to one fact with a prompt of each kind."""
    table = published_table(PAPER, "figure1")
    loaded = studies.load(model)
    candidates = candidates_of(studies.request(model), loaded)
    known = model in BERTS
    for kind, text in ONE_FACT.items():
        printed = [row.values for row in table.rows if row.labels[0] == kind]
        words = [str(word) for word, _ in printed]
        theirs = ", ".join(f"{word} [{fixed(float(value or 0), 2)}]" for word, value in printed)
        blank = query_model(loaded, parse_query(text), candidates, gold=DEVELOPER).blanks[0]
        ours = ", ".join(f"{one.token} [{fixed(one.log_prob, 2)}]" for one in blank.predictions)
        rank = blank.gold.rank if blank.gold else None
        differs = NO_NAME if known else ""
        yield ReproducedRow(
            model, f"{kind}: {text}", 1, ours, theirs if known else None, differs=differs
        )
        yield ReproducedRow(
            model,
            f"{kind}: rank of {DEVELOPER}",
            1,
            None if rank is None else float(rank),
            float(words.index(DEVELOPER) + 1) if known else None,
            f"not among {model}'s candidates" if rank is None else "",
            differs,
        )


def _statistics(studies: Studies) -> Iterator[Item]:
    """Yield Table 1: statistics of all facts of the relations, before sampling."""
    easy = uhn_substring(studies.dataset)
    splits = {name: studies.split(name) for name in studies.relation_names}
    kept = {fact.id for name in splits for fact in easy.facts_of(name)}
    tests = [split.test for split in splits.values()]
    groups: dict[str, list[Sequence[Fact]]] = {
        "T-REx": [*tests],
        "T-REx-UHN": [[fact for fact in facts if fact.id in kept] for facts in tests],
        "T-REx-train": [split.train for split in splits.values()],
    }
    table = published_table(PAPER, "table1")
    for column, facts in groups.items():
        found = [paper_tables.fact_statistics(one) for one in facts if one]
        differs = differing(data=studies.data.other, relations=(len(found), N_RELATIONS))
        if column == "T-REx-UHN":
            differs = joined(differs, GUESSED)
        for line in found[0] if found else ():
            theirs, mean = table.value(column, property=line), fmean(one[line] for one in found)
            yield ReproducedRow(column, line, len(found), mean, theirs, differs=differs)


@dataclass(frozen=True, slots=True)
class PrecisionTable:
    """The specification of a table of P@1 by set of prompts and way of combining them.

    Attributes:
        table: Id of the published table.
        averaging: Micro or macro.
        best: Whether to show only the manual prompt and the optimised ensembles. Then the sets of
            prompts are the published columns, otherwise the rows.
        titles: Names of models -> the paper's names.
        request: Returns the request of a model's study.
        few: Whether the study is one of fewer facts (`Studies.fewer`).
        of: Number of relations and of facts in the paper; None if unknown.
        other: Further differences from the paper.
    """

    table: str
    averaging: Averaging = "micro"
    best: bool = True
    titles: Mapping[str, str] = field(default_factory=lambda: BERTS)
    request: Callable[[Studies, str], StudyRequest] = Studies.request
    few: bool = False
    of: tuple[int, int | None] = (N_RELATIONS, N_FACTS)
    other: str = ""

    def __call__(self, studies: Studies, model: str) -> Iterator[ReproducedRow]:
        """Yield a model's rows."""
        relations = studies.relations(model, self.request(studies, model))
        limit = studies.fewer("").limit if self.few else None
        table, title = published_table(PAPER, self.table), self.titles.get(model)
        for row in make_table(relations, model):
            best = "top1" if row.combination == "manual" else "optimised"
            line = LINES.get(row.combination)
            if line is None or (self.best and row.method != best):
                continue
            column, labels = COLUMNS.get(row.method, row.method), {"prompts": line}
            if self.best:
                column, labels = line, {}
            differs = studies.differs(row.n_relations, row.n_facts, limit=limit, of=self.of)
            yield ReproducedRow(
                model,
                line if self.best else f"{line} {column}",
                row.n_facts,
                100 * (row.micro if self.averaging == "micro" else row.macro),
                table.number(column, model=title, **labels) if title else None,
                differs=joined(differs, self.other),
            )


@dataclass(frozen=True, slots=True)
class Combined:
    """The specification of Tables 2 and 3: all sets of prompts and ways of combining them."""

    table: str
    averaging: Averaging

    def __call__(self, studies: Studies, model: str) -> Iterator[Item]:
        """Yield the majority baseline, a model's rows, their chart, and unavailable prompt sets."""
        relations = studies.relations(model)
        found = [paper_tables.majority(one.objects)[self.averaging] for one in relations]
        n_facts = sum(len(one.objects) for one in relations)
        majority = ReproducedRow(
            "Majority",
            f"facts that count for {model}",
            n_facts,
            100 * float(np.mean(found)),
            published_table(PAPER, "majority").value(self.averaging, baseline="Majority"),
            differs=studies.differs(len(relations), n_facts),
        )
        rows = [majority, *PrecisionTable(self.table, self.averaging, best=False)(studies, model)]
        yield from rows
        yield from compared(
            f"{self.averaging.capitalize()} P@1 of sets of prompts",
            rows,
            x_title="prompts and how they are combined",
            y_title="P@1, %",
            published=lambda row: not row.differs,
        )
        for title in LINES.values():
            if not any(row.what.startswith(f"{title} ") for row in rows):
                reason, command = "no relation in this dataset has them", "data get lpaqa"
                yield UnavailableItem(f"{title} prompts", reason, f"lama-explorer {command}")


# --- tables 4 to 6: gains -------------------------------------------------------------------------


def _mined_gains(studies: Studies, model: str) -> Iterator[Item]:
    """Yield Table 4: the paper's gains if both prompts are in the study, and our largest gains."""
    yield from _papers_gains(studies, model, "table4")
    own = [found for one in studies.relations(model) if (found := paper_tables.mined_gain(one))]
    for found in sorted(own, key=lambda one: -one.gain)[:SHOWN_GAINS]:
        yield _gain_row(studies, model, found, None, "best mined")


def _papers_gains(studies: Studies, model: str, table: str) -> Iterator[Item]:
    """Yield our values of the gains that a table prints, if both prompts are in the study."""
    relations = {one.relation.name: one for one in studies.relations(model)}
    for row in published_table(PAPER, table).rows:
        study = relations.get(str(row.labels[0]))
        if study is None:
            continue
        before, after = (paper_tables.find_prompt(study, str(text)) for text in row.values[:2])
        if before is not None and after is not None:
            found = paper_tables.prompt_gain(study, before, after)
            yield _gain_row(studies, model, found, row.values[2], "the paper's")


def _gain_row(
    studies: Studies,
    model: str,
    found: paper_tables.PromptGain,
    theirs: float | str | None,
    what: str,
) -> ReproducedRow:
    change = f"{found.relation}, {what}: {found.before} → {found.after}"
    return _unnamed_row(studies, model, change, found.n, 100 * found.gain, theirs)


def _unnamed_row(
    studies: Studies, model: str, what: str, n: int, ours: float, theirs: float | str | None
) -> ReproducedRow:
    """Return a row with a published value for which the paper doesn't name the BERT model."""
    known = theirs if model in BERTS else None
    differs = joined(differing(data=studies.data.other, limit=studies.limit), NO_NAME)
    return ReproducedRow(model, what, n, ours, known, differs="" if known is None else differs)


def _weights(studies: Studies, model: str) -> Iterator[Item]:
    """Yield Table 5: gains of weighted prompts over the best mined prompt, and the weights.

    Relations of the paper's table come first, then those with the largest gains.
    """
    theirs = {str(row.labels[0]): row.values for row in published_table(PAPER, "table5").rows}
    found = [
        one for study in studies.relations(model) if (one := paper_tables.weighted_gain(study))
    ]
    found.sort(key=lambda one: (one.relation not in theirs, -one.gain))
    for one in found[:SHOWN_GAINS]:
        values = theirs.get(one.relation, ())
        what = f"{one.relation} {one.label}: gain"
        yield _unnamed_row(
            studies, model, what, one.n, 100 * one.gain, values[-1] if values else None
        )
        for template, weight in one.weights[:SHOWN_WEIGHTS]:
            what = f"{one.relation}: weight of {template}"
            printed = zip(values[:6:2], values[1:6:2], strict=True)
            weights = (
                share for text, share in printed if paper_tables.same_prompt(template, str(text))
            )
            known = next((100 * float(share or 0) for share in weights), None)
            yield _unnamed_row(studies, model, what, one.n, 100 * weight, known)


def _word_changes(studies: Studies, model: str) -> Iterator[Item]:
    """Yield Table 6: the paper's word changes if both prompts are in the study, and our best."""
    yield from _papers_gains(studies, model, "table6")
    changes = [one for x in studies.relations(model) for one in paper_tables.word_changes(x)]
    changes.sort(key=lambda one: -one[1].gain)
    for change, gain in changes[:SHOWN_CHANGES]:
        yield _gain_row(studies, model, gain, None, change)


# --- tables 8 and 11, figures 2 to 5 --------------------------------------------------------------


def _models(studies: Studies) -> Iterator[Item]:
    """Yield Table 8: the queried models; models with linked entities are unavailable."""
    yield from of_models(studies, PrecisionTable("table8", titles={"bert-base-cased": "BERT"}))
    for name, reason in WITH_ENTITIES.items():
        yield UnavailableItem(name, reason)


def _patterns(studies: Studies) -> Iterator[Item]:
    """Yield Table 11: ReVerb's patterns, as regular expressions."""
    for row, (name, pattern) in zip(
        published_table(PAPER, "table11").rows, analyses.PATTERNS.items(), strict=False
    ):
        yield ReproducedRow("", name, 0, pattern.pattern, row.values[0], differs="notation")


@dataclass(frozen=True, slots=True)
class Curves:
    """The specification of a figure of P@1 by number K of best prompts.

    combinations: sets of prompts. kinds: ways of weighting them.
    """

    figure: str
    combinations: Sequence[str]
    kinds: Sequence[str]

    def __call__(self, studies: Studies, model: str) -> Iterator[Item]:
        """Yield a chart with all of a model's points, and rows for some of them."""
        relations = studies.relations(model)
        n_facts = sum(len(one.test) for one in relations)
        for (combination, kind), values in paper_tables.mean_curves(relations).items():
            if combination not in self.combinations or kind not in self.kinds:
                continue
            name = LINES[combination] + (f", {kind}" if len(self.kinds) > 1 else "")
            points = [
                {"series": f"{model}: {name}", "k": float(k), "value": 100 * value}
                for k, value in enumerate(values, start=1)
            ]
            yield chart(
                "lines", self.figure, points, Axis(column="k", title="K, prompts"), "P@1, %"
            )
            for k in SHOWN_K:
                if k <= len(values):
                    yield ReproducedRow(
                        model, f"{name}, K = {k}", n_facts, 100 * values[k - 1], None
                    )


def _divergence(studies: Studies, model: str) -> Iterator[Item]:
    """Yield Figure 3: divergence of mined prompts by edit distance."""
    relations = studies.relations(model)
    pairs = [pair for one in relations for pair in analyses.prompt_pairs(one, "mine")]
    found = analyses.measure_divergence(pairs)
    bins = grouped((pair.bin_number, 100 * pair.divergence) for pair in pairs)
    yield boxes(
        f"Divergence of two prompts by edit distance, {model}",
        [
            (model, f"{n / analyses.N_BINS:.1f} to {(n + 1) / analyses.N_BINS:.1f}", values)
            for n, values in bins.items()
        ],
        "edit distance of two mined prompts",
        "divergence, % of facts",
    )
    edits = published_table(PAPER, "edit-distances")
    for title, sets in (("mined", ("mine",)), ("paraphrased", ("mine+para", "man+para"))):
        here = [n for x in relations for name in sets for n in paper_tables.edit_distances(x, name)]
        if here:
            own = edits.value("edit distance", prompts=title)
            yield (
                f"Mean word edits between two {title} prompts: {np.mean(here):.2f} "
                f"({len(here):,} pairs in {model}'s study); in the paper: {own:.2f}."
            )
    constant = bool(np.isnan(found.correlation))
    known = model in BERTS
    differs = studies.differs(len(relations), sum(len(one.test) for one in relations))
    yield ReproducedRow(
        model,
        "Pearson, mined prompts",
        found.n_pairs,
        None if constant else found.correlation,
        published_table(PAPER, "figure3").rows[0].values[0] if known else None,
        "all values are equal" if constant else "",
        joined(differs, NO_NAME) if known else "",
    )


def _pattern_ranks(studies: Studies) -> Iterator[Item]:
    """Yield Figure 4: ranks of prompts by part-of-speech pattern."""
    try:
        parser = SpacyParser()
    except UserError as error:
        yield UnavailableItem("Figure 4", str(error), f"python -m spacy download {PIPELINE}")
        return

    def of_model(studies: Studies, model: str) -> Iterator[Item]:
        ranks = [
            rank for one in studies.relations(model) for rank in analyses.rank_patterns(one, parser)
        ]
        groups = []
        for name in (*analyses.PATTERNS, analyses.OTHER):
            own = [one.rank for one in ranks if name in one.patterns]
            groups += [(model, name, own)] * bool(own)
            mean = float(np.mean(own)) if own else None
            reason = "" if own else "no prompt has this pattern"
            yield ReproducedRow(model, f"mean rank, {name}", len(own), mean, None, reason)
        yield boxes(f"Rank of prompts by pattern, {model}", groups, "pattern", "rank, 1 = best")

    yield from of_models(studies, of_model)
    findings = {row.labels[0]: row.values[1] for row in published_table(PAPER, "figures").rows}
    yield f"The paper's figure has no numbers; its finding is that {findings['Figure 4']}."


# --- tables 12 and 13: other models' weights ------------------------------------------------------


def _transfer(studies: Studies) -> Iterator[Item]:
    """Yield Table 12: each model with its ensemble weights and with those of every other model.

    The other models include those of comparable saved studies.
    """
    known: dict[str, Study] = {}
    for model in studies.asked:
        try:
            known[model] = studies.study(model)
        except UserError as error:
            yield UnavailableItem(model, str(error))
    made = {_made_with(study) for study in known.values()}
    for study in list_studies(on_problem=lambda _: None):
        if _made_with(study) in made:
            known.setdefault(study.info.model, study)
    relations = {
        name: [study.relation(one) for one in study.relations] for name, study in known.items()
    }
    n_rows = unsure = 0
    for test in (name for name in studies.asked if name in known):
        for train in (name for name in known if name != test):
            for combination, title in LINES.items():
                found = paper_tables.mean_transfer(relations[test], relations[train], combination)
                if found is None:
                    continue
                unsure += found.n_uncertain
                for weights, value in ((test, found.own), (train, found.other)):
                    n_rows += 1
                    yield ReproducedRow(
                        test,
                        f"{title}, weights of {weights}",
                        found.n,
                        100 * value,
                        published_table(PAPER, "table12").number(
                            f"{BERTS[test]}, weights of {BERTS[weights]}", prompts=title
                        )
                        if test in BERTS and train in BERTS  # the paper's models
                        else None,
                        differs=studies.differs(found.n_relations, found.n),
                    )
    if not n_rows:
        yield UnavailableItem(
            "prompt weights of another model",
            "only one model was requested",
            f"lama-explorer reproduce {PAPER} --model {studies.asked[0]} --model OTHER",
        )
    yield (
        "Computed on the facts whose best candidates a study stores. For "
        f"{unsure:,} of them, a candidate that isn't stored could be first with other weights."
    )


def _made_with(study: Study) -> tuple[object, ...]:
    """Return a study's facts, prompts and sets as a key; studies with equal keys are comparable."""
    return (
        study.info.data_digest,
        study.info.limit,
        tuple(study.details["combinations"]),
        tuple(relation.templates for relation in study.info.relations),
    )


LPAQA_PAPER = Paper(
    PAPER,
    Studies,
    {
        "figure1": _one_fact,
        "table1": _statistics,
        "table2": Combined("table2", "micro"),
        "table3": Combined("table3", "macro"),
        "table4": _mined_gains,
        "table5": _weights,
        "figure2": Curves("Figure 2", tuple(LINES), ("log-linear",)),
        "table6": _word_changes,
        "table7": ablated,
        "table8": _models,
        "table9": PrecisionTable(
            "table9", request=Studies.uhn, few=True, of=(N_RELATIONS, None), other=GUESSED
        ),
        "table10": PrecisionTable("table10", request=Studies.google_re, few=True, of=(3, 5_527)),
        "figure3": _divergence,
        "table11": _patterns,
        "figure4": _pattern_ranks,
        "table12": _transfer,
        "table13": lambda _: [UnavailableItem("Table 13", f"ERNIE: {WITH_ENTITIES['ERNIE']}")],
        "figure5": Curves("Figure 5", ("mine",), ("log-linear", "linear")),
        "table14": refined,
        "table15": asked_back,
    },
)
