"""Jiang et al. 2020 (LPAQA), Tables 1 to 15 and Figures 2 to 5, done again: `reproduce jiang2020`.

For the user's models, by default the embedded one. The paper's values are of BERT, and stand beside
ours only where the model is that BERT: ours are then compared, and what differs is said.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby

import numpy as np

from lama_core.datasets.variants import uhn_substring
from lama_core.errors import UserError
from lama_core.papers.framework import (
    Absent,
    Chart,
    Made,
    Paper,
    PaperTable,
    ReproducedRow,
    ReproduceOptions,
    Series,
    differing,
)
from lama_core.papers.jiang2020_ablations import ablated, asked_back, refined
from lama_core.papers.jiang2020_data import N_RELATIONS, WITH_ENTITIES, Studies
from lama_core.papers.jiang2020_scores import (
    BERTS,
    COLUMNS,
    LINES,
    PAPER,
    TABLES,
    Averaging,
    make_table,
    published,
)
from lama_core.papers.published import published_table
from lama_core.probes.prompts import analyses, tabulated
from lama_core.probes.prompts.mining import PIPELINE, SpacyParser
from lama_core.probes.prompts.runs import Study, list_studies
from lama_core.probes.prompts.study import RelationStudy
from lama_core.progress import OnNote, OnProgress
from lama_core.types import Fact

NO_NAME = "the paper names no model"
SHOWN_GAINS = 6  # as many as the paper's table 4 has
SHOWN_CHANGES = 5  # as many as its table 6 has
SHOWN_WEIGHTS = 3
SHOWN_K = (1, 2, 3, 5, 10, 20, 30, 40)


def prepare(options: ReproduceOptions, on_progress: OnProgress, on_note: OnNote) -> Studies:
    """The data and models that the tables are made from."""
    return Studies(options, on_progress, on_note)


# --- what several tables have -------------------------------------------------------------------


def _absent_sets(found: Iterable[str]) -> tuple[Absent, ...]:
    """The sets of prompts that no relation has."""
    lacking = [title for name, title in LINES.items() if name not in set(found)]
    return tuple(
        Absent(
            f"{title} prompts",
            "no relation of these data has them",
            "python -m lama_core data get lpaqa",
        )
        for title in lacking
    )


def _theirs(model: str, averaging: Averaging, combination: str, method: str) -> float | None:
    """The published value of one of the paper's own models; None beside any other."""
    title = BERTS.get(model)
    return None if title is None else published(title, averaging, combination, method)


def _named(model: str, differs: str) -> str:
    """What differs where the paper gives a value without naming its model."""
    return "; ".join(filter(None, (differs, NO_NAME))) if model in BERTS else ""


# --- tables 1 to 3: data and scores ---------------------------------------------------------------


def _statistics(studies: Studies) -> Made:
    """Table 1: of all facts of the relations, before any are drawn."""
    data, names = studies.dataset, studies.relation_names
    easy, _ = uhn_substring(data)
    splits = {name: studies.split(name) for name in names}
    groups: dict[str, list[Sequence[Fact]]] = {
        "T-REx": [split.test for split in splits.values()],
        "T-REx-UHN": [
            [fact for fact in split.test if fact.id in kept]
            for split, kept in (
                (split, {fact.id for fact in easy.facts_of(name)}) for name, split in splits.items()
            )
        ],
        "T-REx-train": [split.train for split in splits.values()],
    }
    table = published_table(PAPER, "table1")
    rows = []
    for column, facts in groups.items():
        found = [tabulated.fact_statistics(one) for one in facts if one]
        differs = differing(data=studies.source.other, relations=(len(found), N_RELATIONS))
        if column == "T-REx-UHN":
            differs = "; ".join(filter(None, (differs, "names not guessed by a model")))
        for line, value in (
            ("subject-object pairs", [one.n_pairs for one in found]),
            ("unique subjects", [one.n_subjects for one in found]),
            ("unique objects", [one.n_objects for one in found]),
            ("object entropy", [one.entropy for one in found]),
        ):
            rows.append(
                ReproducedRow(
                    column, line, len(found), float(np.mean(value)),
                    table.value(column, property=line), differs=differs,
                )
            )  # fmt: skip
    return Made(tuple(rows), notes=("Means over relations; entropy in natural units.",))


def _scores(averaging: Averaging, studies: Studies) -> Made:
    """Tables 2 and 3: every set of prompts, every way of combining them."""
    sets: set[str] = set()

    def rows_of(model: str) -> Iterable[ReproducedRow]:
        relations = studies.relations(model)
        yield _majority(studies, relations, averaging, model)
        for row in make_table(relations, model):
            if row.combination not in LINES:
                continue
            sets.add(row.combination)
            yield ReproducedRow(
                model,
                f"{LINES[row.combination]} {COLUMNS.get(row.method, row.method)}",
                row.n_facts,
                100 * (row.micro if averaging == "micro" else row.macro),
                _theirs(model, averaging, row.combination, row.method),
                differs=studies.differs(row.n_relations, row.n_facts),
            )

    rows = studies.rows(rows_of)
    chart = Chart(
        f"{averaging.capitalize()} P@1 of sets of prompts",
        "bars",
        "prompts and how they are combined",
        "P@1, %",
        tuple(
            Series(
                model, tuple(one.what for one in own), tuple(float(one.ours or 0) for one in own)
            )
            for model, found in groupby(rows, key=lambda row: row.model)
            if (own := [one for one in found if one.ours is not None])
        ),
    )
    return Made(rows, (chart,), absent=(*studies.absent(), *_absent_sets(sets)))


def _majority(
    studies: Studies, relations: Sequence[RelationStudy], averaging: Averaging, model: str
) -> ReproducedRow:
    found = [tabulated.majority(one.objects) for one in relations]
    n_facts = sum(len(one.objects) for one in relations)
    return ReproducedRow(
        "Majority", f"facts that count for {model}", n_facts,
        100 * float(np.mean([getattr(one, averaging) for one in found])),
        published_table(PAPER, "majority").value(averaging, baseline="Majority"),
        differs=studies.differs(len(relations), n_facts),
    )  # fmt: skip


# --- tables 4 to 6: gains -------------------------------------------------------------------------


def _mined_gains(studies: Studies) -> Made:
    """Table 4: the paper's own prompts where both are here, then where mined ones gain most."""

    def rows_of(model: str) -> Iterable[ReproducedRow]:
        relations = {one.relation.name: one for one in studies.relations(model)}
        yield from _papers_gains(studies, model, relations, "table4")
        own = [found for one in relations.values() if (found := tabulated.mined_gain(one))]
        for found in sorted(own, key=lambda one: -one.gain)[:SHOWN_GAINS]:
            yield _gain_row(studies, model, found, None, "best mined")

    note = (
        "In points of P@1: the mined prompt that is best on the training facts less the manual "
        "one, on the test facts."
    )
    return Made(studies.rows(rows_of), notes=(note,), absent=studies.absent())


def _papers_gains(
    studies: Studies, model: str, relations: Mapping[str, RelationStudy], table: str
) -> Iterable[ReproducedRow]:
    """The gains that a table prints, where both of its prompts are here; relations: by name."""
    for row in published_table(PAPER, table).rows:
        name, (before, after, gain) = str(row.labels[0]), row.values
        if name in relations:
            found = _between(relations[name], str(before), str(after))
            if found:
                yield _gain_row(studies, model, found, gain, "the paper's")


def _between(study: RelationStudy, before: str, after: str) -> tabulated.PromptGain | None:
    """Between two prompts as the paper writes them; None where the pool lacks one."""
    first, second = (tabulated.find_prompt(study, text) for text in (before, after))
    if first is None or second is None:
        return None
    return tabulated.prompt_gain(study, first, second)


def _gain_row(
    studies: Studies,
    model: str,
    found: tabulated.PromptGain,
    theirs: float | str | None,
    what: str,
) -> ReproducedRow:
    known = theirs if model in BERTS else None
    differs = differing(data=studies.source.other, limit=studies.limit)
    return ReproducedRow(
        model, f"{found.relation}, {what}: {found.before} → {found.after}", found.n,
        100 * found.gain, known, differs="" if known is None else _named(model, differs),
    )  # fmt: skip


def _weights(studies: Studies) -> Made:
    """Table 5: where weights gain most over the best mined prompt, and the heaviest prompts."""

    def rows_of(model: str) -> Iterable[ReproducedRow]:
        theirs = {str(row.labels[0]): row.values for row in published_table(PAPER, "table5").rows}
        found = [
            one for study in studies.relations(model) if (one := tabulated.weighted_gain(study))
        ]
        found.sort(key=lambda one: (one.relation not in theirs, -one.gain))
        for one in found[:SHOWN_GAINS]:
            values = theirs.get(one.relation) if model in BERTS else None
            differs = differing(data=studies.source.other, limit=studies.limit)
            differs = _named(model, differs) if values else ""
            yield ReproducedRow(
                model, f"{one.relation} {one.label}: gain", one.n, 100 * one.gain,
                values[-1] if values else None, differs=differs,
            )  # fmt: skip
            for template, weight in one.weights[:SHOWN_WEIGHTS]:
                known = _weight_of(template, values) if values else None
                yield ReproducedRow(
                    model, f"{one.relation}: weight of {template}", one.n, 100 * weight, known,
                    differs="" if known is None else differs,
                )  # fmt: skip

    note = (
        "In points of P@1: the optimised ensemble of the mined prompts less the best of them on "
        "the training facts; weights in percent."
    )
    return Made(studies.rows(rows_of), notes=(note,), absent=studies.absent())


def _weight_of(template: str, values: Sequence[float | str | None]) -> float | None:
    """The published weight of a prompt, in percent; None where the paper doesn't print it."""
    for text, weight in zip(values[:6:2], values[1:6:2], strict=True):
        if tabulated.same_prompt(template, str(text)):
            return 100 * float(weight or 0)
    return None


def _word_changes(studies: Studies) -> Made:
    """Table 6: the paper's own changes where both prompts are here, then our largest."""

    def rows_of(model: str) -> Iterable[ReproducedRow]:
        relations = {one.relation.name: one for one in studies.relations(model)}
        yield from _papers_gains(studies, model, relations, "table6")
        changes = [one for study in relations.values() for one in tabulated.word_changes(study)]
        changes.sort(key=lambda one: -one.gain.gain)
        for one in changes[:SHOWN_CHANGES]:
            yield _gain_row(studies, model, one.gain, None, one.change)

    note = "In points of P@1 on the test facts, of paraphrases that are one word apart."
    return Made(studies.rows(rows_of), notes=(note,), absent=studies.absent())


# --- tables 8 to 10: models and other facts -------------------------------------------------------


def _optimised_rows(
    studies: Studies,
    model: str,
    relations: Sequence[RelationStudy],
    table: str,
    printed: str | None,
    differs: Callable[[int, int], str],
) -> Iterable[ReproducedRow]:
    """The manual prompt and the optimised ensemble of each set; printed: the paper's name of it."""
    for row in make_table(relations, model):
        method = "top1" if row.combination == "manual" else "optimised"
        if row.combination not in LINES or row.method != method:
            continue
        column = LINES[row.combination]
        theirs = published_table(PAPER, table).value(column, model=printed) if printed else None
        yield ReproducedRow(
            model, column, row.n_facts, 100 * row.micro, theirs,
            differs=differs(row.n_relations, row.n_facts),
        )  # fmt: skip


def _models(studies: Studies) -> Made:
    """Table 8: the models that were asked."""

    def rows_of(model: str) -> Iterable[ReproducedRow]:
        printed = "BERT" if BERTS.get(model) == "BERT-base" else None
        relations = studies.relations(model)
        return _optimised_rows(studies, model, relations, "table8", printed, studies.differs)

    return Made(studies.rows(rows_of), absent=studies.absent(entities=True))


def _uhn(studies: Studies) -> Made:
    """Table 9: without facts that names give away."""

    def differs(n_relations: int, n_facts: int) -> str:
        said = studies.differs(n_relations, None, limit=studies.fewer("").limit)
        return "; ".join(filter(None, (said, "names not guessed by a model")))

    def rows_of(model: str) -> Iterable[ReproducedRow]:
        relations = studies.relations(model, studies.uhn(model))
        return _optimised_rows(studies, model, relations, "table9", BERTS.get(model), differs)

    note = (
        "Without facts whose object stands in their subject; the paper's facts are also without "
        "those whose object a model guesses from the name."
    )
    return Made(studies.rows(rows_of), notes=(note,), absent=studies.absent())


def _google_re(studies: Studies) -> Made:
    """Table 10: Google-RE, asked with the prompts of the same relations of T-REx."""

    def differs(n_relations: int, n_facts: int) -> str:
        return studies.differs(
            n_relations, n_facts, limit=studies.fewer("").limit, of_relations=3, of_facts=5_527
        )

    def rows_of(model: str) -> Iterable[ReproducedRow]:
        relations = studies.relations(model, studies.google_re(model))
        return _optimised_rows(studies, model, relations, "table10", BERTS.get(model), differs)

    note = "The prompts and training pairs are those of T-REx's P19, P20 and P569."
    return Made(studies.rows(rows_of), notes=(note,), absent=studies.absent())


# --- table 11, figures 2 to 5 ---------------------------------------------------------------------


def _patterns(studies: Studies) -> Made:
    """Table 11: ReVerb's patterns, as they are matched here."""
    table = published_table(PAPER, "table11")
    rows = [
        ReproducedRow("", name, 0, pattern.pattern, table.rows[at].values[0], differs="notation")
        for at, (name, pattern) in enumerate(analyses.PATTERNS.items())
    ]
    note = "Ours are over Penn tags between [X] and [Y]."
    return Made(tuple(rows), notes=(note,))


def _top_k(studies: Studies) -> Made:
    """Figure 2: P@1 of the K best prompts."""
    return _curves(studies, "Figure 2", list(LINES), ("log-linear",))


def _interpolation(studies: Studies) -> Made:
    """Figure 5: log-linear against linear, of mined prompts."""
    return _curves(studies, "Figure 5", ["mine"], ("log-linear", "linear"))


def _curves(
    studies: Studies, figure: str, combinations: Sequence[str], kinds: Sequence[str]
) -> Made:
    series: list[Series] = []

    def rows_of(model: str) -> Iterable[ReproducedRow]:
        relations = studies.relations(model)
        n_facts = sum(len(one.test) for one in relations)
        found = tabulated.mean_curves(relations)
        for (combination, kind), values in found.items():
            if combination not in combinations or kind not in kinds:
                continue
            name = LINES[combination] if len(kinds) == 1 else f"{LINES[combination]}, {kind}"
            ks = tuple(float(k) for k in range(1, len(values) + 1))
            series.append(Series(f"{model}: {name}", ks, tuple(100 * value for value in values)))
            for k in SHOWN_K:
                if k <= len(values):
                    yield ReproducedRow(
                        model, f"{name}, K = {k}", n_facts, 100 * values[k - 1], None
                    )

    rows = studies.rows(rows_of)
    theirs = {str(row.labels[0]): row.values for row in published_table(PAPER, "figures").rows}
    notes = (
        "Each K averages the relations that have so many prompts.",
        f"The paper's figure has no numbers; it finds that {theirs[figure][1]}.",
    )
    chart = Chart(figure, "lines", "K, prompts", "P@1, %", tuple(series))
    return Made(rows, (chart,), notes, studies.absent())


def _divergence(studies: Studies) -> Made:
    """Figure 3: edit distance against divergence, of mined prompts."""
    charts: list[Chart] = []
    notes: list[str] = []
    theirs = published_table(PAPER, "figure3").rows[0].values[0]
    edits = published_table(PAPER, "edit-distances")

    def rows_of(model: str) -> Iterable[ReproducedRow]:
        relations = studies.relations(model)
        pairs = [pair for one in relations for pair in analyses.prompt_pairs(one, "mine")]
        found = analyses.measure_divergence(pairs)
        charts.append(
            Chart(
                f"Divergence of two prompts by edit distance, {model}", "boxes",
                "edit distance of two mined prompts", "divergence, % of facts",
                (
                    Series(
                        model,
                        tuple(_bin_of(pair.distance) for pair in pairs),
                        tuple(100 * pair.divergence for pair in pairs),
                    ),
                ),
            )
        )  # fmt: skip
        for title, sets in (("mined", ("mine",)), ("paraphrased", ("mine+para", "man+para"))):
            here = [n for one in relations for name in sets
                    for n in tabulated.edit_distances(one, name)]  # fmt: skip
            if here:
                own = edits.value("edit distance", prompts=title)
                notes.append(
                    f"Mean word edits between two {title} prompts: {np.mean(here):.2f} "
                    f"({len(here):,} pairs of {model}'s study); the paper's prompts: {own:.2f}."
                )
        known = theirs if model in BERTS else None
        n_facts = sum(len(one.test) for one in relations)
        differs = studies.differs(len(relations), n_facts)
        yield ReproducedRow(
            model, "Pearson, mined prompts", found.n_pairs,
            None if np.isnan(found.correlation) else found.correlation, known,
            "it never varies" if np.isnan(found.correlation) else "",
            "" if known is None else _named(model, differs),
        )  # fmt: skip

    rows = studies.rows(rows_of)
    return Made(rows, tuple(charts), tuple(notes), studies.absent())


def _bin_of(distance: float) -> str:
    """The bin of `analyses.measure_divergence`, as it is written."""
    number = max(0, int(np.ceil(distance * analyses.N_BINS - 1e-9)) - 1)
    return f"{number / analyses.N_BINS:.1f} to {(number + 1) / analyses.N_BINS:.1f}"


def _pattern_ranks(studies: Studies) -> Made:
    """Figure 4: ranks of prompts by part-of-speech pattern."""
    try:
        parser = SpacyParser()
    except UserError as error:
        command = f"python -m spacy download {PIPELINE}"
        return Made((), absent=(Absent("Figure 4", str(error), command), *studies.absent()))
    charts: list[Chart] = []

    def rows_of(model: str) -> Iterable[ReproducedRow]:
        ranks = [
            rank for one in studies.relations(model) for rank in analyses.rank_patterns(one, parser)
        ]
        by_pattern = {
            name: [one.rank for one in ranks if one.pattern == name]
            for name in (*analyses.PATTERNS, analyses.OTHER)
        }
        charts.append(
            Chart(
                f"Rank of prompts by pattern, {model}", "boxes", "pattern", "rank, 1 = best",
                (
                    Series(
                        model,
                        tuple(name for name, own in by_pattern.items() for _ in own),
                        tuple(float(rank) for own in by_pattern.values() for rank in own),
                    ),
                ),
            )
        )  # fmt: skip
        for name, own in by_pattern.items():
            mean = float(np.mean(own)) if own else None
            reason = "" if own else "no prompt has it"
            yield ReproducedRow(model, f"mean rank, {name}", len(own), mean, None, reason)

    rows = studies.rows(rows_of)
    theirs = {str(row.labels[0]): row.values for row in published_table(PAPER, "figures").rows}
    note = f"The paper's figure has no numbers; it finds that {theirs['Figure 4'][1]}."
    return Made(rows, tuple(charts), (note,), studies.absent())


# --- tables 12 and 13: other models' weights ------------------------------------------------------


def _transfer(studies: Studies) -> Made:
    """Table 12: weights of each model on each other; also of studies of the same data here."""
    reasons: list[Absent] = []
    known: dict[str, Study] = {}
    for model in studies.models:
        try:
            known[model] = studies.study(model)
        except UserError as error:
            reasons.append(Absent(model, str(error)))
    made = {_made_with(study) for study in known.values()}
    for study in list_studies(on_problem=lambda _: None):
        if _made_with(study) in made:
            known.setdefault(study.info.model, study)
    relations = {name: [study.relation(one) for one in study.relations]
                 for name, study in known.items()}  # fmt: skip
    rows: list[ReproducedRow] = []
    unsure = 0
    for test in (name for name in studies.models if name in known):
        for train in (name for name in known if name != test):
            for combination, title in LINES.items():
                found = tabulated.mean_transfer(relations[test], relations[train], combination)
                if found is None:
                    continue
                unsure += found.n_uncertain
                for weights, value in ((test, found.own), (train, found.other)):
                    rows.append(
                        ReproducedRow(
                            test, f"{title}, weights of {weights}", found.n, 100 * value,
                            _theirs_of(test, weights, train, title),
                            differs=studies.differs(found.n_relations, found.n),
                        )
                    )  # fmt: skip
    if not rows:
        command = f"python -m lama_core reproduce {PAPER} --model {studies.models[0]} --model OTHER"
        reasons.append(Absent("weights of another model", "one model was asked", command))
    note = (
        "On the facts whose best candidates a study keeps; on "
        f"{unsure:,} of them another candidate might come first under the other's weights."
    )
    return Made(tuple(rows), notes=(note,), absent=(*reasons, *studies.absent()))


def _made_with(study: Study) -> tuple[object, ...]:
    """The facts, prompts and sets of a study: what two models' studies need to share."""
    info = study.info
    details = study.details
    templates = tuple(relation.templates for relation in info.relations)
    return info.data_digest, info.limit, tuple(details["combinations"]), templates


def _theirs_of(test: str, weights: str, other: str, title: str) -> float | None:
    """The published cell of Table 12; None where one of the two isn't a BERT of the paper."""
    if test not in BERTS or other not in BERTS:
        return None
    column = f"{BERTS[test]}, weights of {BERTS[weights]}"
    try:
        return published_table(PAPER, "table12").value(column, prompts=title)
    except KeyError:
        return None  # a manual prompt alone has no weights


def _with_ernie(studies: Studies) -> Made:
    """Table 13: nothing of it can be had without ERNIE."""
    return Made((), absent=(Absent("Table 13", f"ERNIE: {WITH_ENTITIES['ERNIE']}"),))


def _table(
    number: str, title: str, counts: str, make: Callable[[Studies], Made]
) -> PaperTable[Studies]:
    return PaperTable(number, title, "percent", counts, make)


def _title(number: str) -> str:
    return published_table(PAPER, number).title


LPAQA_PAPER = Paper(
    PAPER,
    published_table(PAPER, "table2").citation,
    (
        PaperTable("table1", _title("table1"), "number", "relations", _statistics),
        _table(TABLES["micro"], _title("table2"), "facts", partial(_scores, "micro")),
        _table(TABLES["macro"], _title("table3"), "facts", partial(_scores, "macro")),
        _table("table4", _title("table4"), "facts", _mined_gains),
        _table("table5", _title("table5"), "facts", _weights),
        _table("figure2", "Performance of the K best prompts", "facts", _top_k),
        _table("table6", _title("table6"), "facts", _word_changes),
        _table("table7", _title("table7"), "facts", ablated),
        _table("table8", _title("table8"), "facts", _models),
        _table("table9", _title("table9"), "facts", _uhn),
        _table("table10", _title("table10"), "facts", _google_re),
        PaperTable(
            "figure3", _title("figure3"), "correlation", "pairs of prompts", _divergence, digits=2
        ),
        PaperTable("table11", _title("table11"), "text", "", _patterns),
        PaperTable("figure4", "Ranks of prompts by pattern", "rank", "prompts", _pattern_ranks),
        _table("table12", _title("table12"), "facts", _transfer),
        _table("table13", _title("table13"), "facts", _with_ernie),
        _table("figure5", "Log-linear and linear combination", "facts", _interpolation),
        _table("table14", _title("table14"), "facts", refined),
        _table("table15", _title("table15"), "facts", asked_back),
    ),
    prepare,
)
