"""Petroni et al. 2019 (LAMA), Tables 1 to 3, Figures 2 to 4 and section 5: `reproduce petroni2019`.

Data, models and runs are in `papers.lama_data`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from lama_core import rounding
from lama_core.metrics import (
    Average,
    average_ranks,
    correlate,
    mentions_of,
    precision_curves,
    score_table,
)
from lama_core.metrics.intervals import METHOD, METHOD_OF_MEANS
from lama_core.metrics.score_tables import CONCEPTNET
from lama_core.models.sources.catalog import find_model
from lama_core.papers.differences import joined
from lama_core.probes.plan import choose_context
from lama_core.progress import Progress
from lama_core.published import (
    LAMA_MODELS,
    PublishedRow,
    published_examples,
    published_table,
)
from lama_core.queries.blank_answers import query_model
from lama_core.runs.info import Run
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.queries import SQUAD
from lama_core.views.curves import KS
from lama_core.views.figure import Axis
from lama_papers.charts import boxes, chart, compared
from lama_papers.framework import NO_DATA, Paper
from lama_papers.lama_data import (
    BOOK,
    EXTRACTORS,
    NO_MODEL,
    RANKING,
    SPREAD_LIMIT,
    TEN_SENTENCES,
    TREX,
    Lama,
)
from lama_papers.tables import Item, ReproducedRow, UnavailableItem, Value

PAPER = "petroni2019"
BERT_LARGE = "BERT-large"
NO_FACT = "no fact counts"
# A baseline of Table 2 that has no counterpart in this project.
DRQA = UnavailableItem(
    "DrQA",
    "needs a trained reader, which the project doesn't include; `read --reader MODEL` runs any "
    "question-answering model instead",
)
# Differences from the paper in the measures of Figure 3.
OTHER_MEASURES = {
    "SM": "counts not from BERT's training text",
    "OM": "counts not from BERT's training text",
    "SOCS": "vectors not from spaCy",
}
TABLE2 = published_table(PAPER, "table2")
(TREX_TOTAL,) = (row for row in TABLE2.rows if row.labels[:3] == (TREX, None, None))

TableLine = dict[str, Any]


def models(lama: Lama) -> Iterator[Item]:
    """Yield Table 1: the models, as described in the catalogue."""
    table = published_table(PAPER, "table1")
    theirs = dict(zip(LAMA_MODELS, table.rows, strict=True))
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
            reason = "" if value else "the model's publisher doesn't report it"
            yield ReproducedRow(column, what, 1, value or None, published, reason)
    yield "Our values are from the catalogue, which takes them from the models' cards."


def sources(lama: Lama) -> Iterator[Item]:
    """Yield Table 2: P@1 by source of every model and extractor, and why models are missing."""
    yield (
        f"Intervals: {METHOD}; for means, {METHOD_OF_MEANS}. Open-book context: the most similar "
        "passage of minilm-mlm's training text precedes the query."
    )
    rows: list[ReproducedRow] = []
    for number, (column, run) in enumerate(lama.runs()):
        if number == 0:  # Freq uses the facts that count for the first model
            rows += _run_rows(lama, "Freq", run, "freq")
        rows += _run_rows(lama, column, run, "p_at_1")
    if not rows:
        rows += _missing_rows("Freq", NO_MODEL)
    for column, run in lama.read_runs():
        rows += _run_rows(lama, f"{column}, open-book context", run, "p_at_1")
    for column, run in lama.extracted():
        for row in _run_rows(lama, column, run, "p_at_1"):
            if row.ours is not None:
                rows.append(
                    replace(row, differs=joined("another extractor and another text", row.differs))
                )
            elif row.published is not None:
                rows.append(row)
    missing = [one for name, one in lama.missing.items() if name != BOOK]
    missing.insert(sum(one.what not in EXTRACTORS for one in missing), DRQA)
    for one in missing:
        rows += _missing_rows(one.what, one.reason)
    yield from rows
    yield from compared(
        "P@1 of each source",
        [row for row in rows if "total" in row.what],
        y_title="P@1, %",
        published=lambda row: (
            row.model in ("Freq", "BERT-base", BERT_LARGE) and not lama.data.other
        ),
    )
    yield DRQA


def _run_rows(lama: Lama, column: str, run: Run, figure: str) -> Iterator[ReproducedRow]:
    """Yield one model's column of Table 2 from a run, in percent; only P@1 has intervals."""
    lines, by_facts = _lines_of(run), _lines_of(run, "facts")
    for row in TABLE2.rows:
        source, _, _, n_facts, n_relations = row.labels
        what, published = _what(row), TABLE2.of_row(row, column)
        line = lines.get(row.labels[:3])
        if line is None or not line["n"]:
            yield ReproducedRow(
                column, what, 0, None, published, NO_DATA if line is None else NO_FACT
            )
            continue
        differs = lama.differs(
            relations=(int(line["n_relations"]), int(n_relations)) if n_relations else None,
            facts=_counted(int(line["n"]), int(line["n_excluded"]), int(n_facts or 0)),
        )
        shown = [(what, published, line)]
        if source == CONCEPTNET:
            over_relations = f"{source} total, mean over relations"
            shown = [(what, published, by_facts[row.labels[:3]]), (over_relations, None, line)]
        for name, theirs, one in shown:
            low, high = 100 * float(one["low"]), 100 * float(one["high"])
            interval = (low, high) if figure == "p_at_1" and low == low else None
            yield ReproducedRow(
                column, name, int(one["n"]), 100 * float(one[figure]), theirs, "", differs, interval
            )


def _counted(n: int, n_excluded: int, of_facts: int) -> tuple[int, int] | None:
    """Return our and the paper's number of facts, for `differing`; None if they are the same.

    The paper's number can include excluded facts, so it may equal `n` or `n + n_excluded`.
    """
    return None if of_facts in (n, n + n_excluded) else (n, of_facts)


def _lines_of(run: Run, conceptnet: Average = "relations") -> dict[tuple[Any, ...], TableLine]:
    """Return Table 2's labels (source, relation, type) -> the row of the run's score table.

    conceptnet: whether ConceptNet's total is the mean over relations or facts.
    """
    tables = {
        "relation": score_table([run], by="relation", ranking=RANKING),
        "type": score_table([run], by="type", ranking=RANKING),
        "": score_table([run], by="source", ranking=RANKING, conceptnet=conceptnet),
    }
    found: dict[tuple[Any, ...], TableLine] = {}
    for label, table in tables.items():
        for line in table.to_dict("records"):
            labels = (line[name] if name == label else None for name in ("relation", "type"))
            found[line["source"], *labels] = {str(key): value for key, value in line.items()}
    return found


def _missing_rows(column: str, reason: str) -> list[ReproducedRow]:
    """Return the published numbers of a column that couldn't be run, with the reason."""
    if column not in TABLE2.columns:
        return [ReproducedRow(column, "", 0, None, None, reason)]
    return [
        ReproducedRow(column, _what(row), 0, None, published, reason)
        for row in TABLE2.rows
        if (published := TABLE2.of_row(row, column)) is not None
    ]


def _what(row: PublishedRow) -> str:
    source, relation, kind = row.labels[:3]
    if source == CONCEPTNET:
        return f"{source} total, mean over facts"
    return f"{source} {relation or kind or 'total'}"


def questions(lama: Lama) -> Iterator[Item]:
    """Yield P@10 on SQuAD, which section 5 reports for BERT-large and DrQA."""
    published = published_table(PAPER, "section5")
    (total,) = (row for row in TABLE2.rows if row.labels[0] == SQUAD)
    what = f"{SQUAD} P@10"
    rows = []
    for column, run in lama.runs():
        theirs = published.number(column, source=SQUAD)
        table = score_table([run], by="source", ranking=RANKING, k=10)
        line = next((one for one in table.to_dict("records") if one["source"] == SQUAD), None)
        if line is None or not line["n"]:
            rows.append(
                ReproducedRow(column, what, 0, None, theirs, NO_DATA if line is None else NO_FACT)
            )
            continue
        n, n_facts = int(line["n"]), int(total.labels[3] or 0)
        differs = lama.differs(facts=_counted(n, int(line["n_excluded"]), n_facts))
        interval = (100 * float(line["low"]), 100 * float(line["high"]))
        value = 100 * float(line["p_at_10"])
        rows.append(ReproducedRow(column, what, n, value, theirs, "", differs, interval))
    yield from rows
    yield from _without_bert(lama, {what: published.number(BERT_LARGE, source=SQUAD)})
    yield ReproducedRow(
        DRQA.what, what, 0, None, published.number(DRQA.what, source=SQUAD), DRQA.reason
    )
    yield from compared(
        "P@10 on SQuAD",
        rows,
        x=lambda row: row.model,
        y_title="P@10, %",
        name=lambda row: what,
        published=lambda row: not lama.data.other,
    )
    yield DRQA


def examples(lama: Lama) -> Iterator[Item]:
    """Yield Table 3: each model's five best words, and how often the gold answer is among them."""
    printed = published_examples()
    published: dict[str, Value] = {
        one.query: ", ".join(f"{word} [{value}]" for word, value in one.answers) for one in printed
    }
    published |= _golds([one.rank for one in printed])
    differs = "other candidates" if lama.own_words else ""
    for column, reference in lama.usable.items():
        for what, value in _answers(lama, column, reference).items():
            n = len(printed) if isinstance(value, float) else 1
            theirs, differing = (published[what], differs) if column == BERT_LARGE else (None, "")
            yield ReproducedRow(column, what, n, value, theirs, differs=differing)
    yield from _without_bert(lama, published)
    yield "In brackets: natural log-probability over the model's whole vocabulary."


def _without_bert(lama: Lama, published: dict[str, Value]) -> Iterator[ReproducedRow]:
    """Yield rows with BERT-large's published values if the model is missing.

    published: row label -> value.
    """
    if BERT_LARGE in lama.missing:
        for what, theirs in published.items():
            yield ReproducedRow(BERT_LARGE, what, 0, None, theirs, lama.missing[BERT_LARGE].reason)


def _answers(lama: Lama, column: str, reference: str) -> dict[str, Value]:
    """Return query -> a model's five best words, as in the paper, and the counts of `_golds`."""
    model = lama.load(reference)
    candidates = lama.words(model)
    context = choose_context("left", model.kind)
    found: dict[str, Value] = {}
    ranks = []
    printed = published_examples()
    for number, one in enumerate(printed):
        lama.options.on_progress(Progress(f"Table 3: {column}", number, len(printed), "queries"))
        query = parse_query(one.query)
        blank = query_model(model, query, candidates, gold=one.gold, context=context).blanks[0]
        found[one.query] = ", ".join(
            f"{item.token} [{rounding.fixed(item.log_prob, 1)}]" for item in blank.predictions
        )
        ranks.append(blank.gold.rank if blank.gold else None)
    return found | _golds(ranks)


def _golds(ranks: Sequence[int | None]) -> dict[str, Value]:
    """Return the number of gold answers with rank 1, and of those with a rank up to 5, by label.

    ranks: rank of each gold answer; None if it has no rank.
    """
    known = [rank for rank in ranks if rank is not None]
    return {
        f"right answers ranked first, of {len(ranks)}": float(known.count(1)),
        f"right answers among the five, of {len(ranks)}": float(sum(rank <= 5 for rank in known)),
    }


def curves(lama: Lama) -> Iterator[Item]:
    """Yield Figure 2: mean P@k on T-REx, k from 1 to 100."""
    table = published_table(PAPER, "figure2")
    yield table.note
    in_text = {float(row.labels[0] or 0): float(row.values[0] or 0) for row in table.rows}
    points: list[dict[str, Any]] = []
    for column, run in lama.runs():
        curve = precision_curves([run], ranking=RANKING, relations=lama.trex)
        values = tuple(100 * float(value) for value in curve["p_at_k"])
        n = int(curve["n"].iloc[0])
        differs = _differs_on_trex(lama, run, n)
        points += [
            {"series": column, "k": float(k), "value": value}
            for k, value in zip(curve["k"], values, strict=True)
        ]
        theirs = {1.0: TABLE2.of_row(TREX_TOTAL, column)}
        theirs |= in_text if column.startswith("BERT") else dict.fromkeys(in_text)
        for k, published in theirs.items():
            value = values[int(k) - 1]
            yield ReproducedRow(column, f"P@{k:.0f}", n, value, published, "", differs)
    if not lama.data.other:
        name = "BERT, from the text of section 5"
        points += [{"series": name, "k": k, "value": value} for k, value in in_text.items()]
    axis = Axis(column="k", title="k (log axis)", log=True, ticks={k: str(k) for k in KS})
    yield chart("lines", "Mean P@k, T-REx", points, axis, "mean P@k, %")


def _differs_on_trex(lama: Lama, run: Run, n: int) -> str:
    """Describe how a run's T-REx, with n facts that count, differs from the paper's."""
    of_facts, of_relations = (int(value or 0) for value in TREX_TOTAL.labels[3:])
    own = [one for one in run.info.relations if one.source == TREX]
    return lama.differs(
        relations=(sum(one.n > 0 for one in own), of_relations),
        facts=_counted(n, sum(one.n_excluded for one in own), of_facts),
    )


def correlations(lama: Lama) -> Iterator[Item]:
    """Yield Figure 3: correlations of P@1 and six measures, over T-REx's facts."""
    table = published_table(PAPER, "figure3")
    cells = {
        (str(row.labels[0]), name): float(value)
        for row in table.rows
        for name, value in zip(table.columns, row.values, strict=True)
        if value is not None
    }
    rows = []
    for column, run in lama.runs():
        reference = lama.usable[column]
        found = correlate(
            run,
            mentions_of(reference),
            getattr(lama.load(reference), "word_vectors", None),
            ranking=RANKING,
            relations=lama.trex,
        )
        yield f"{column}, SM and OM: {found.mentions}."
        matrix = found.matrix.to_dict()
        own = column == BERT_LARGE
        differs = _differs_on_trex(lama, run, found.n)
        for (one, other), published in cells.items():
            value = float(matrix[other][one])
            measures = (OTHER_MEASURES.get(name, "") for name in (one, other) if own)
            known = value == value
            rows.append(
                ReproducedRow(
                    column,
                    f"{one} and {other}",
                    found.n,
                    value if known else None,
                    published if own else None,
                    "" if known else "unknown, or equal for all facts",
                    joined(differs, *measures),
                )
            )
    rows += _without_bert(lama, {f"{one} and {other}": x for (one, other), x in cells.items()})
    yield from rows
    yield from compared(
        "Pearson's correlation with P@1",
        [row for row in rows if row.what.startswith("P@1 and ")],
        x=lambda row: row.what.removeprefix("P@1 and "),
        y_title="correlation",
        published=lambda row: not lama.data.other,
    )
    yield UnavailableItem(
        "mentions in BERT's training text (Figure 3: SM, OM)",
        "neither the text nor the paper's version of it was published",
    )
    yield UnavailableItem(
        "spaCy's vectors (Figure 3: SOCS)", "replaced by the model's input embeddings"
    )


def spread(lama: Lama) -> Iterator[Item]:
    """Yield Figure 4: the mean rank over ten sentences per fact, on T-REx."""
    groups = []
    for column, run in lama.runs(TEN_SENTENCES):
        ranks = average_ranks(run, ranking=RANKING)
        values = {
            "mean over facts": ranks["mean_rank"].mean(),
            "median over facts": ranks["mean_rank"].median(),
            "a fact's standard deviation, mean over facts": ranks["sd"].mean(),
        }
        for what, value in values.items():
            yield ReproducedRow(column, what, len(ranks), float(value), None, "", lama.data.other)
        groups.append((column, column, ranks["mean_rank"].tolist()))
    table = published_table(PAPER, "figure4")
    yield table.note
    for row in table.rows:
        yield ReproducedRow(
            str(row.labels[0]),
            "variability",
            0,
            None,
            str(row.values[0]),
            "the paper prints no number",
        )
    if lama.data.other:
        yield (
            "The starter facts' sentences are filled templates, not natural mentions as in the "
            f"paper. At most {lama.options.limit or SPREAD_LIMIT} facts per relation."
        )
    if groups:
        title, axis = "Mean rank over ten sentences", "rank of the right answer (log axis)"
        yield boxes(title, groups, "", axis, log=True)


LAMA_PAPER = Paper(
    PAPER,
    Lama,
    {
        "table1": models,
        "table2": sources,
        "section5": questions,
        "table3": examples,
        "figure2": curves,
        "figure3": correlations,
        "figure4": spread,
    },
)
