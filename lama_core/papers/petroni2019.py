"""Petroni et al. 2019 (LAMA), Tables 1 to 3, Figures 2 to 4: `reproduce petroni2019`.

What they are made from is `papers.lama`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lama_core import rounding
from lama_core.asking.blanks import parse_query
from lama_core.metrics import (
    Average,
    average_ranks,
    correlate,
    mentions_of,
    precision_curves,
    score_table,
)
from lama_core.metrics.intervals import METHOD, METHOD_OF_MEANS
from lama_core.metrics.tables import CONCEPTNET
from lama_core.models.catalog import find_model
from lama_core.papers.framework import (
    Absent,
    Chart,
    Made,
    Paper,
    PaperTable,
    ReproducedRow,
    Series,
    Value,
)
from lama_core.papers.lama import BOOK, RANKING, SPREAD_LIMIT, TEN_SENTENCES, TREX, Lama, prepare
from lama_core.papers.published import (
    LAMA_MODELS,
    PublishedRow,
    PublishedTable,
    published_examples,
    published_table,
)
from lama_core.probes.cloze.ask import ask
from lama_core.probes.extraction.extractor import NAMES
from lama_core.probes.probing import choose_context
from lama_core.progress import Progress
from lama_core.runs.info import Run

if TYPE_CHECKING:
    import pandas as pd

PAPER = "petroni2019"
BERT_LARGE = "BERT-large"
CHARTED = ("Freq", "BERT-base", "BERT-large")  # whose published values are drawn beside ours
NO_DATA = "not in the data that is here"
NO_FACT = "no fact counts"
NO_NUMBER = "the paper prints no number"
UNKNOWN = "unknown, or the same of every fact"
# Table 2's baseline that nothing here stands for by itself.
DRQA = Absent(
    "DrQA",
    "a trained reader, and none comes with the project: `read --reader MODEL` asks any "
    "question-answering model in its place",
)
EXTRACTOR = "another extractor and another text"
# What the columns of Figure 3 are computed from that isn't what the paper took.
OTHER_MEASURES = {
    "SM": "other counts than of BERT's training text",
    "OM": "other counts than of BERT's training text",
    "SOCS": "other vectors than spaCy's",
}
NO_COUNTS = Absent(
    "mentions in BERT's training text (Figure 3: SM, OM)",
    "the text was never published, and the paper's own version of it neither",
)
NO_VECTORS = Absent(
    "spaCy's vectors (Figure 3: SOCS)", "the model's own input embeddings stand in their place"
)


Line = dict[str, Any]


def make_table1(lama: Lama) -> Made:
    """The models: as the catalogue describes them, beside the paper."""
    table = published_table(PAPER, "table1")
    theirs = dict(zip(LAMA_MODELS, table.rows, strict=True))
    rows = []
    for column, reference in lama.models.items():
        entry = find_model(reference)
        n = entry.n_parameters
        ours = {
            "parameters": f"{n / 1e6:.4g}M" if n else "",
            "training corpus": entry.corpus,
            "corpus size": entry.corpus_size,
        }
        for what, value in ours.items():
            row = theirs.get(column)
            published = None if row is None else row.values[table.columns.index(what)]
            reason = "" if value else "not said where the model comes from"
            rows.append(ReproducedRow(column, what, 1, value or None, published, reason))
    return Made(tuple(rows), notes=("Ours: as the catalogue has it from the models' cards.",))


def make_table2(lama: Lama) -> Made:
    """P@1 by source: every model and extractor that can be had, and why the others can't."""
    table = published_table(PAPER, "table2")
    rows: list[ReproducedRow] = []
    for number, (column, run) in enumerate(lama.runs()):
        if number == 0:  # the facts that count are those of the first model
            rows += _run_rows(lama, table, "Freq", run, "freq")
        rows += _run_rows(lama, table, column, run, "p_at_1")
    if not rows:
        rows += _missing_rows(table, "Freq", "no model could be run, so no facts were selected")
    for column, run in lama.read_runs():
        rows += _run_rows(lama, table, f"{column}, open book", run, "p_at_1")
    for column, run in lama.extracted():
        rows += _extracted_rows(lama, table, column, run)
    missing = [one for name, one in lama.missing.items() if name != BOOK]
    missing.insert(sum(one.what not in NAMES.values() for one in missing), DRQA)
    for one in missing:
        rows += _missing_rows(table, one.what, one.reason)
    notes = (
        "ConceptNet's total is the mean over its facts, as the released code counts it; over its "
        "relations, as the paper's text says, it is a line of its own, without a published value.",
        f"Intervals: {METHOD}; of a mean, {METHOD_OF_MEANS}. Open book: the passage of "
        "minilm-mlm's training text that is nearest to the query stands before it.",
    )
    chart = Chart("P@1 of each source", "bars", "", "P@1, %", _drawn(lama, _bars(rows)))
    return Made(tuple(rows), (chart,), notes, (*lama.absent(), DRQA))


def _bars(rows: Sequence[ReproducedRow]) -> tuple[Series, ...]:
    """P@1 of each source, by model: ours, and the paper's of those in `CHARTED`."""
    series = []
    totals = [row for row in rows if "total" in row.what]
    for model in dict.fromkeys(row.model for row in totals):
        own = [row for row in totals if row.model == model]
        ours = {row.what: row.ours for row in own if isinstance(row.ours, float)}
        theirs = {row.what: row.published for row in own if isinstance(row.published, float)}
        if ours:
            series.append(Series(model, tuple(ours), tuple(ours.values())))
        if model in CHARTED:
            series.append(Series(f"{model}, paper", tuple(theirs), tuple(theirs.values()), True))
    return tuple(series)


def _drawn(lama: Lama, series: Sequence[Series]) -> tuple[Series, ...]:
    """What a chart shows: the paper's values only beside ours of its own data."""
    return tuple(one for one in series if not (one.published and lama.data.other))


def _run_rows(
    lama: Lama, table: PublishedTable, column: str, run: Run, figure: str
) -> list[ReproducedRow]:
    """One model's column of Table 2, from a run."""
    lines, by_facts = _lines_of(run), _lines_of(run, "facts")
    rows = []
    for row in table.rows:
        source, relation, kind, n_facts, n_relations = row.labels
        published = _published(table, column, row)
        line = lines.get((source, relation, kind))
        if line is None or not line["n"]:
            reason = NO_DATA if line is None else NO_FACT
            rows.append(ReproducedRow(column, _what(row), 0, None, published, reason))
            continue
        n = int(line["n"])
        differs = lama.differs(
            relations=(int(line["n_relations"]), int(n_relations)) if n_relations else None,
            facts=_counted(n, int(line["n_excluded"]), int(n_facts or 0)),
        )
        if source != CONCEPTNET:
            rows.append(_row(column, _what(row), line, figure, published, differs))
            continue
        of_facts = by_facts[source, relation, kind]
        rows.append(_row(column, _what(row), of_facts, figure, published, differs))
        what = f"{source} total, mean over relations"
        rows.append(_row(column, what, line, figure, None, differs))
    return rows


def _row(
    column: str, what: str, line: Line, figure: str, published: float | None, differs: str
) -> ReproducedRow:
    """A value of the score table, in percent; P@1 has an interval."""
    low, high = 100 * float(line["low"]), 100 * float(line["high"])
    interval = (low, high) if figure == "p_at_1" and low == low else None
    value = 100 * float(line[figure])
    return ReproducedRow(column, what, int(line["n"]), value, published, "", differs, interval)


def _extracted_rows(
    lama: Lama, table: PublishedTable, column: str, run: Run
) -> list[ReproducedRow]:
    """An extractor's column of Table 2, of the sources that the paper asks it of."""
    found = []
    for row in _run_rows(lama, table, column, run, "p_at_1"):
        if row.ours is not None or row.published is not None:
            said = "; ".join(filter(None, (EXTRACTOR, row.differs)))
            found.append(row if row.ours is None else replace(row, differs=said))
    return found


def _counted(n: int, n_excluded: int, of_facts: int) -> tuple[int, int] | None:
    """Facts that count and the paper's, for `differing`; None where they are the same facts.

    The paper's number is of the lines of LAMA's files, or of those that count.
    """
    return None if of_facts in (n, n + n_excluded) else (n, of_facts)


def _lines_of(run: Run, conceptnet: Average = "relations") -> dict[tuple[Any, ...], Line]:
    """(source, relation, type), as Table 2 labels its lines -> a line of the score table.

    conceptnet: what its total is the mean over.
    """
    found: dict[tuple[Any, ...], Line] = {}
    for line in _records(score_table([run], by="relation", ranking=RANKING)):
        found[line["source"], line["relation"], None] = line
    for line in _records(score_table([run], by="type", ranking=RANKING)):
        found[line["source"], None, line["type"]] = line
    totals = score_table([run], by="source", ranking=RANKING, conceptnet=conceptnet)
    for line in _records(totals):
        found[line["source"], None, None] = line
    return found


def _records(table: "pd.DataFrame") -> list[Line]:
    return [{str(key): value for key, value in line.items()} for line in table.to_dict("records")]


def _published(table: PublishedTable, column: str, row: PublishedRow) -> float | None:
    if column not in table.columns:
        return None
    value = row.values[table.columns.index(column)]
    return None if value is None else float(value)


def _missing_rows(table: PublishedTable, column: str, reason: str) -> list[ReproducedRow]:
    """A column that could not be run: its published numbers, with the reason."""
    if column not in table.columns:
        return [ReproducedRow(column, "", 0, None, None, reason)]
    return [
        ReproducedRow(column, _what(row), 0, None, published, reason)
        for row in table.rows
        if (published := _published(table, column, row)) is not None
    ]


def _what(row: PublishedRow) -> str:
    source, relation, kind = row.labels[:3]
    if source == CONCEPTNET:
        return f"{source} total, mean over facts"
    return f"{source} {relation or kind or 'total'}"


def make_table3(lama: Lama) -> Made:
    """The examples: the five best words of each model, and how often the gold is among them."""
    examples = published_examples()
    published: dict[str, Value] = {
        one.query: ", ".join(f"{word} [{value}]" for word, value in one.answers) for one in examples
    }
    published |= _golds([one.rank for one in examples])
    differs = "other candidates" if lama.own_words else ""
    rows = []
    for column, reference in lama.usable.items():
        own = column == BERT_LARGE
        for what, value in _answers(lama, column, reference).items():
            shown = published[what] if own else None
            said = differs if own else ""
            n = len(examples) if isinstance(value, float) else 1
            rows.append(ReproducedRow(column, what, n, value, shown, differs=said))
    if BERT_LARGE in lama.missing:
        reason = lama.missing[BERT_LARGE].reason
        for what, shown in published.items():
            rows.append(ReproducedRow(BERT_LARGE, what, 0, None, shown, reason))
    notes = ("In brackets natural log-probabilities, over each model's whole vocabulary.",)
    return Made(tuple(rows), notes=notes, absent=lama.absent())


def _answers(lama: Lama, column: str, reference: str) -> dict[str, Value]:
    """Query -> a model's five words as the paper writes them; then how often the gold is there."""
    model = lama.load(reference)
    candidates = lama.words(model)
    columns = candidates.columns(model.vocabulary)
    context = choose_context("left", model.kind)
    found: dict[str, Value] = {}
    ranks = []
    examples = published_examples()
    for number, one in enumerate(examples):
        lama.on_progress(Progress(f"Table 3: {column}", number, len(examples), "queries"))
        query = parse_query(one.query)
        answer = ask(model, query, candidates, gold=one.gold, context=context, columns=columns)
        blank = answer.blanks[0]
        words = (f"{item.token} [{rounding.fixed(item.log_prob, 1)}]" for item in blank.predictions)
        found[one.query] = ", ".join(words)
        ranks.append(blank.gold.rank if blank.gold else None)
    return found | _golds(ranks)


def _golds(ranks: Sequence[int | None]) -> dict[str, Value]:
    """How many golds are first, and among the five. ranks: None is not among the five."""
    n = len(ranks)
    return {
        f"golds that are first, of {n}": float(sum(rank == 1 for rank in ranks)),
        f"golds among the five, of {n}": float(
            sum(rank is not None and rank <= 5 for rank in ranks)
        ),
    }


def make_figure2(lama: Lama) -> Made:
    """Mean P@k on T-REx, k from 1 to 100."""
    table, totals = published_table(PAPER, "figure2"), published_table(PAPER, "table2")
    told = {float(row.labels[0] or 0): float(row.values[0] or 0) for row in table.rows}
    rows, lines = [], []
    for column, run in lama.runs():
        curve = precision_curves([run], ranking=RANKING, relations=lama.trex)
        values = tuple(100 * float(value) for value in curve["p_at_k"])
        n = int(curve["n"].iloc[0])
        differs = _differs_on_trex(lama, run, n)
        lines.append(Series(column, tuple(map(float, curve["k"])), values))
        theirs = {1.0: _published(totals, column, _trex_total())}
        theirs |= told if column.startswith("BERT") else dict.fromkeys(told)
        for k, published in theirs.items():
            what, value = f"P@{k:.0f}", values[int(k) - 1]
            rows.append(ReproducedRow(column, what, n, value, published, "", differs))
    told_of = Series("BERT, as section 5 tells it", tuple(told), tuple(told.values()), True)
    chart = Chart(
        "Mean P@k, T-REx", "lines", "k", "mean P@k, %", _drawn(lama, (*lines, told_of)), log_x=True
    )
    return Made(tuple(rows), (chart,), (table.note,), lama.absent())


def _trex_total() -> PublishedRow:
    rows = published_table(PAPER, "table2").rows
    return next(row for row in rows if row.labels[:3] == (TREX, None, None))


def _differs_on_trex(lama: Lama, run: Run, n: int) -> str:
    """What of T-REx isn't the paper's, in a run of which n facts count."""
    of_facts, of_relations = (int(value or 0) for value in _trex_total().labels[3:])
    own = [one for one in run.info.relations if one.source == TREX]
    return lama.differs(
        relations=(sum(one.n > 0 for one in own), of_relations),
        facts=_counted(n, sum(one.n_excluded for one in own), of_facts),
    )


def make_figure3(lama: Lama) -> Made:
    """Correlations of P@1 and six measures, over T-REx's facts."""
    table = published_table(PAPER, "figure3")
    cells = {
        (str(row.labels[0]), name): float(value)
        for row in table.rows
        for name, value in zip(table.columns, row.values, strict=True)
        if value is not None
    }
    rows, bars, notes = [], [], []
    for column, run in lama.runs():
        reference = lama.usable[column]
        vectors = getattr(lama.load(reference), "word_vectors", None)
        mentions = mentions_of(reference)
        found = correlate(run, mentions, vectors, ranking=RANKING, relations=lama.trex)
        matrix = found.matrix.to_dict()
        notes.append(f"{column}, SM and OM: {found.mentions}.")
        own = column == BERT_LARGE
        same = _differs_on_trex(lama, run, found.n)
        for (one, other), published in cells.items():
            value = float(matrix[other][one])
            said = [same, *(OTHER_MEASURES.get(name, "") for name in (one, other))]
            differs = "; ".join(dict.fromkeys(filter(None, said))) if own else same
            unknown = value != value
            rows.append(
                ReproducedRow(
                    column, f"{one} and {other}", found.n, None if unknown else value,
                    published if own else None, UNKNOWN if unknown else "", differs,
                )
            )  # fmt: skip
        of_p = {name: float(matrix[name]["P@1"]) for name in table.columns}
        known = {name: value for name, value in of_p.items() if value == value}
        bars.append(Series(column, tuple(known), tuple(known.values())))
    if BERT_LARGE in lama.missing:
        reason = lama.missing[BERT_LARGE].reason
        for (one, other), published in cells.items():
            rows.append(ReproducedRow(BERT_LARGE, f"{one} and {other}", 0, None, published, reason))
    theirs = tuple(cells["P@1", name] for name in table.columns)
    bars.append(Series("BERT-large, paper", table.columns, theirs, True))
    chart = Chart("Pearson's correlation with P@1", "bars", "", "correlation", _drawn(lama, bars))
    absent = (*lama.absent(), NO_COUNTS, NO_VECTORS)
    return Made(tuple(rows), (chart,), tuple(notes), absent)


def make_figure4(lama: Lama) -> Made:
    """The mean rank over ten sentences a fact, on T-REx."""
    table = published_table(PAPER, "figure4")
    rows, boxes = [], []
    for column, run in lama.runs(TEN_SENTENCES):
        ranks = average_ranks(run, ranking=RANKING)
        n = len(ranks)
        values = {
            "mean over facts": float(ranks["mean_rank"].mean()),
            "median over facts": float(ranks["mean_rank"].median()),
            "a fact's standard deviation, mean over facts": float(ranks["sd"].mean()),
        }
        for what, value in values.items():
            rows.append(ReproducedRow(column, what, n, value, None, "", lama.data.other))
        boxes.append(Series(column, (column,) * n, tuple(map(float, ranks["mean_rank"]))))
    for row in table.rows:
        said = str(row.values[0])
        rows.append(ReproducedRow(str(row.labels[0]), "variability", 0, None, said, NO_NUMBER))
    notes = [table.note]
    if lama.data.other:
        limit = lama.options.limit or SPREAD_LIMIT
        notes.append(
            "The starter facts' sentences are patterns: this says how much the wording matters, "
            f"not natural mentions. At most {limit} facts a relation."
        )
    charts = Chart("Mean rank over ten sentences", "boxes", "", "rank of the gold", tuple(boxes))
    return Made(tuple(rows), (charts,) if boxes else (), tuple(notes), lama.absent())


LAMA_PAPER = Paper(
    PAPER,
    published_table(PAPER, "table2").citation,
    (
        PaperTable("table1", "Language models considered", "text", "models", make_table1, 0),
        PaperTable("table2", "Mean P@1 across the corpora", "percent", "facts", make_table2),
        PaperTable("table3", "Examples of generation", "text", "queries", make_table3, 0),
        PaperTable("figure2", "Mean P@k on T-REx", "percent", "facts", make_figure2),
        PaperTable("figure3", "Correlations with P@1", "correlation", "facts", make_figure3, 3),
        PaperTable("figure4", "Mean rank over ten sentences", "rank", "facts", make_figure4),
    ),
    prepare,
)
