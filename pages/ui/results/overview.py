"""The Overview tab of Results: the best model, and P@k by source, type and relation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from lama_core.api.results import ResultsRequest
from lama_core.glossary import explain
from lama_core.metrics import (
    METRICS,
    OF_RANKS,
    TEXT_METRICS,
    Metric,
    headline,
    overall,
    standings,
)
from lama_core.metrics.intervals import METHOD, METHOD_OF_MEANS
from lama_core.metrics.score_tables import (
    CONCEPTNET,
    Average,
    By,
    relations_counted,
)
from lama_core.published import published_scores, published_table
from lama_core.rounding import percent, percentage, rounded
from pages.ui.results.draw_view import draw_facts_button, open_facts
from pages.ui.results.leaderboard import draw_leaderboard
from pages.ui.results.origins import draw_origins
from pages.ui.shared import cache, charts, links, screens
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import counted, draw_headline, plain
from pages.ui.shared.partial_lama import draw_partial
from pages.ui.shared.run_choice import OWN, RunChoice, comparison_basis, draw_question
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import BOUND, drop_stale, pick

Grouped = dict[tuple[Any, ...], dict[str, dict[str, Any]]]
P_AT_K = METRICS["p_at_1"]  # its texts are valid for every k
# P@k replaces P@1. Freq is excluded: it is a baseline, not a measure of a model.
MEASURES = {"P@k": P_AT_K} | {
    metric.label: metric for name, metric in METRICS.items() if name not in ("p_at_1", "freq")
}
OF_TEXTS = {metric.label: metric for metric in TEXT_METRICS.values()}
ORDERS = ("as in the data", "best first")
OVER_FACTS, OVER_RELATIONS = "over facts", "over relations"
MOST_OPEN = 12  # the chart shows up to this many relations by default
MOST_INTERVALS = 3  # with more runs, interval columns are hidden; the table's menu shows them
DEFAULT_PUBLISHED = ("BERT-base", "BERT-large")


def score_rows(choice: RunChoice, by: By, conceptnet: Average = "relations") -> pd.DataFrame:
    """Return the score table of the chosen runs; the column `name` holds each run's title."""
    tables = []
    for run, title in zip(choice.runs, choice.titles, strict=True):
        table = cache.scores(run, by, choice.ranking, choice.k, choice.relations, conceptnet)
        tables.append(table.assign(name=title))
    return pd.concat(tables, ignore_index=True)


def with_chance(choice: RunChoice, table: pd.DataFrame) -> pd.DataFrame:
    """Return the table; its chance levels are NaN unless a run has informative ones."""
    return table if choice.guessable else table.assign(chance=float("nan"))


def provenance(choice: RunChoice, by: By) -> dict[str, object]:
    """Return how a score table was computed, for the export."""
    method = METHOD if by == "relation" else METHOD_OF_MEANS
    return choice.made() | {"intervals": f"95 %, {method}"}


LOW = 0.5  # below this P@k, a click opens only the facts with a wrong answer


def results_request(choice: RunChoice, by: By, conceptnet: Average = "relations") -> ResultsRequest:
    """Return the request that computes the same table on the command line."""
    same_ranking = all(run.ranking == choice.ranking for run in choice.runs)
    return ResultsRequest(
        tuple(run.id for run in choice.runs),
        by=by,
        ranking=None if same_ranking else choice.ranking,
        k=choice.k,
        relations=choice.relations,
        own=choice.facts == OWN,
        conceptnet=conceptnet,
    )


def _measure_help(label: str, metric: Metric) -> str:
    """Return what a measure means, and its formula."""
    formula = "facts with rank at most k / facts" if label == "P@k" else metric.formula
    return f"**{label}**: {metric.meaning} *{formula}*"


@dataclass(frozen=True)
class Measure:
    """The measure that the tab shows: its column in the score table and its label on screen."""

    metric: Metric
    column: str
    label: str

    @property
    def is_p_at_k(self) -> bool:
        """Whether it is P@k, the only measure with intervals and a chance level."""
        return self.column == "p_at_k"


def draw_overview(choice: RunChoice) -> None:
    """Draw the tab: headline, chart, totals as in LAMA's Table 2, and scores by relation."""
    draw_question(choice)
    top, chart = st.container(), st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", key="chart-options"):
        measures = _measures(choice)
        drop_stale("figure", (None, *measures))
        name = st.selectbox(
            "Measure",
            list(measures),
            key="figure",
            bind=BOUND,
            width=180,
            help="\n\n".join(_measure_help(*item) for item in measures.items()),
        )
        order = pick("Order", ORDERS, key="order")
        rows = score_rows(choice, "relation")
        opened = _choose_open(choice, rows)
    metric = measures[name]
    column = "p_at_k" if metric is P_AT_K else metric.name
    measure = Measure(metric, column, f"P@{choice.k}" if metric is P_AT_K else name)
    rows["label"] = rows["relation"].map(choice.labels)
    sources, every = score_rows(choice, "source"), overall(rows)
    with top:
        counts_note = _draw_headline(choice, every, sources, measure)
    if order == "best first":
        rows = _best_first(rows, "relation", measure)
        sources = _best_first(sources, "source", measure)
    with chart:
        _draw_chart(choice, every, sources, rows, measure, opened, counts_note)
    _draw_totals(choice, measure)
    if measure.is_p_at_k and choice.k == 1:
        draw_leaderboard(choice, score_rows(choice, "relation"))
    st.markdown(f"### {_heading(choice, measure)} by relation")
    _draw_relations(choice, rows, measure)
    if not choice.all_words:
        return
    with st.expander("The published models (Table 1 of Petroni et al. 2019)"):
        draw_table(published_table("petroni2019", "table1").frame())


def _measures(choice: RunChoice) -> dict[str, Metric]:
    """Return label -> measure.

    Measures of ranks are excluded if all runs generate texts; measures of texts are included if any
    run does.
    """
    measures = MEASURES | (OF_TEXTS if choice.generated else {})
    unknown = OF_RANKS if choice.all_generated else ()
    return {label: one for label, one in measures.items() if one.name not in unknown}


def _heading(choice: RunChoice, measure: Measure) -> str:
    """Return the measure as a heading, with the prompts if they aren't the manual ones."""
    title = measure.label[0].upper() + measure.label[1:]
    kinds = list(dict.fromkeys(run.prompts for run in choice.runs))
    if kinds == ["manual"]:
        return title
    return f"{title} ({plain(', '.join(kinds))}{' prompts' * choice.all_words})"


def _draw_headline(
    choice: RunChoice, every: pd.DataFrame, sources: pd.DataFrame, measure: Measure
) -> str:
    """Draw the headline and links to charts; return a note on what is counted, as Markdown."""
    names = list(dict.fromkeys(sources["source"]))
    basis = comparison_basis(choice)
    found = headline(
        standings(every, measure.column),
        measure.metric,
        k=choice.k if measure.is_p_at_k else None,
        relations=[choice.labels[name] for name in choice.relations],
        source=names[0] if len(names) == 1 else "",
        counts=choice.counts,
        differ=basis.differ,
    )
    draw_headline(found.text)
    here = {**choice.params(), "tab": "More"}
    with st.container(horizontal=True, key="ways"):
        if len(found.order) > 1 and st.button(
            "Compare the best two", icon=":material/balance:", type="tertiary"
        ):
            ids = dict(zip(choice.titles, (run.id for run in choice.runs), strict=True))
            a, b = found.order[1], found.order[0]
            links.go(screens.RESULTS, {**here, "tab": "Compare", "run_a": ids[a], "run_b": ids[b]})
        for chart, icon in ((screens.CURVES, "show_chart"), (screens.RANKS, "bar_chart")):
            if not choice.all_generated and st.button(
                chart, icon=f":material/{icon}:", type="tertiary"
            ):
                links.go(screens.RESULTS, {**here, "chart": chart})
    return f"{plain(found.counted)} {basis.said}"


def _draw_partial(choice: RunChoice) -> None:
    """Draw a badge for each dataset that is only a part of LAMA, unlike the published numbers."""
    datasets = dict.fromkeys(
        (run.dataset, tuple((part.source, part.n + part.n_excluded) for part in run.relations))
        for run in choice.runs
    )
    for data, counts in datasets:
        draw_partial(data, counts, note="The published numbers cover all of LAMA's facts.")


def _draw_totals(choice: RunChoice, measure: Measure) -> None:
    """Draw the rows of LAMA's Table 2, by relation type and source, with published scores."""
    head, box = st.columns([5, 4], vertical_alignment="bottom")
    head.markdown(f"### {_heading(choice, measure)} by source and type of relation")
    only_manual = all(run.prompts == "manual" for run in choice.runs)
    is_p_at_1 = measure.is_p_at_k and choice.k == 1
    published: list[str] = []
    if is_p_at_1 and only_manual and choice.all_words:
        published = box.multiselect(
            "Compare with published",
            published_table("petroni2019", "table2").columns,
            default=list(DEFAULT_PUBLISHED),
            key="published",
            bind=BOUND,
            placeholder="None",
            help="P@1 in percent, from Table 2 of Petroni et al. 2019, on LAMA's facts. Compare it "
            "with these runs only if they use the same facts and candidates.",
        )
    if published:
        _draw_partial(choice)
    by_type = _group(score_rows(choice, "type"), "source", "type")
    totals = _group(score_rows(choice, "source"), "source")
    over_facts = _group(_conceptnet_over_facts(choice), "source")
    lines: list[tuple[str, str | None, dict[str, dict[str, Any]]]] = []
    for (source,), total in totals.items():
        kinds = [kind for kind in ("1-1", "N-1", "N-M") if (source, kind) in by_type]
        lines += [(source, kind, by_type[source, kind]) for kind in kinds if len(kinds) > 1]
        lines.append((source, None, total))
        if (source,) in over_facts:
            lines.append((source, OVER_FACTS, over_facts[source,]))
    grid = []
    for source, kind, part in lines:
        first = next(iter(part.values()))
        row: dict[str, Any] = {
            "corpus": source,
            "relations": kind or (OVER_RELATIONS if source == CONCEPTNET else "total"),
            **_cells(part, choice, measure),
            **published_cells(source, kind, published),
            "Freq": percentage(first["freq"]) if is_p_at_1 else None,
            **_chance_cells(part, choice, measure),
            **_counts(choice, first),
            "#rel": _distinct(map(_n_relations, part.values())),
        }
        grid.append(row)
    cell = _table(pd.DataFrame(grid), choice, measure, "totals", METHOD_OF_MEANS, published)
    description = None
    if cell is not None:
        source, kind, _ = lines[cell[0]]
        description = _cell_description(choice, cell[1], f"{source} {kind or 'total'}")
    if draw_facts_button(description, "totals way") and cell is not None:
        types = [kind] if kind and kind != OVER_FACTS else []
        _open_cell(choice, cell[1], sources=[source], types=types)
    notes = []
    if published:
        notes.append(
            "**\\***: published by Petroni et al. 2019, Table 2, on LAMA's facts and candidates."
        )
    if over_facts:
        notes.append(
            "**ConceptNet**: the paper's text averages over relations, as this table does for each "
            "source. Its released code treats ConceptNet as one relation and averages over facts"
            + (", like the published values." if published else ".")
        )
    if notes:
        st.caption(" ".join(notes))
    if measure.is_p_at_k:
        draw_origins(choice)
    requests = [results_request(choice, "type"), results_request(choice, "source")]
    if over_facts:
        concepts = dict.fromkeys(
            relation.name
            for run in choice.runs
            for relation in run.relations
            if relation.source == CONCEPTNET
            and relation.name in (choice.relations or choice.labels)
        )
        request = results_request(choice, "source", "facts")
        requests.append(replace(request, relations=tuple(concepts)))
    draw_export(
        "totals", lambda: _all_totals(choice), provenance(choice, "source"), tuple(requests)
    )


def _all_totals(choice: RunChoice) -> pd.DataFrame:
    """Return the rows of all types and sources. The column `by` is `type` or `source`."""
    tables = [score_rows(choice, by).assign(by=by) for by in ("type", "source")]
    over_facts = _conceptnet_over_facts(choice).assign(by="source")
    return pd.concat([*tables, over_facts], ignore_index=True)


def _conceptnet_over_facts(choice: RunChoice) -> pd.DataFrame:
    """Return ConceptNet's total over facts, as in LAMA's code; empty without ConceptNet."""
    rows = score_rows(choice, "source", "facts")
    return rows[rows["mean_over"] == "facts"]


def _best_first(rows: pd.DataFrame, key: str, measure: Measure) -> pd.DataFrame:
    """Sort rows by group (column `key`): first the group with the best value of any run."""
    rising = not measure.metric.higher_is_better
    best = rows.groupby(key)[measure.column].agg("min" if rising else "max")
    order = best.rank(ascending=rising, method="first")
    return rows.sort_values(
        key, key=lambda names: names.map(order), kind="stable", ignore_index=True
    )


def _draw_chart(
    choice: RunChoice,
    every: pd.DataFrame,
    sources: pd.DataFrame,
    rows: pd.DataFrame,
    measure: Measure,
    opened: Sequence[str],
    counts_note: str,
) -> None:
    """Draw the chart: rows for all relations, each source, and each relation of opened sources.

    A click on a row opens its facts. `every` holds the scores over all relations, `rows` the
    scores by relation, `opened` the names of the opened sources.
    """
    lines: list[pd.DataFrame] = []
    params: dict[str, dict[str, list[str]]] = {}

    def add_mean(row: str, part: pd.DataFrame, name: str, **filters: list[str]) -> None:
        n = int(part["n_relations"].max())
        n_all = int(part["of_relations"].max()) if "of_relations" in part else n
        label = f"{name}, {relations_counted(n, n_all) or counted(n, 'relation')}"
        lines.append(part.assign(relation=row, label=label, is_source=True))
        params[row] = filters

    names = list(dict.fromkeys(sources["source"]))
    if len(names) > 1:
        add_mean("all", every, "all")
    for source in names:
        within = rows[rows["source"] == source]
        if source not in opened or len(set(within["relation"])) > 1:
            part = sources[sources["source"] == source]
            add_mean(f"source {source}", part, source, sources=[source])
        if source in opened:
            lines.append(within.assign(is_source=False))
            for name in within["relation"].unique():
                params[name] = {"relations": [choice.labels[name]]}
    table = pd.concat(lines, ignore_index=True)
    chart = with_chance(choice, table.assign(value=table[measure.column]))
    nan = float("nan")
    if not measure.is_p_at_k:
        chart = chart.assign(low=nan, high=nan, chance=nan)
    if not measure.metric.is_share or choice.k != 1:
        chart = chart.assign(freq=nan)
    points = choice.show(
        charts.precision_by_relation(
            chart, choice.inks, what=measure.label, metric=measure.metric, counts=choice.counts
        ),
        "precision chart",
        f"{measure.label} by source and relation, {choice.data}",
    )
    st.caption(
        counts_note
        + " **Bold**: means over relations."
        + " Whiskers: 95 % intervals." * measure.is_p_at_k
        + f" Diamonds: {measure.label} of a random order of the answers."
        * (measure.is_p_at_k and choice.guessable)
        + " Click any number or bar to see its facts.",
        help=f"Interval for a relation, over its facts: {METHOD}. For a mean: {METHOD_OF_MEANS}.",
    )
    for point in points:
        title, row = point["customdata"][:2]
        values = chart["value"][(chart["relation"] == row) & (chart["name"] == title)]
        low = measure.is_p_at_k and bool((values < LOW).any())
        open_facts(choice, title, **params[row], **_wrong_filter(choice, title, low))


def _choose_open(choice: RunChoice, rows: pd.DataFrame) -> list[str]:
    """Draw the choice of sources whose relations the chart shows.

    By default all sources if there are few relations, else none.
    """
    every = dict.fromkeys(relation.source for run in choice.runs for relation in run.relations)
    names = [name for name in every if name in set(rows["source"])]
    few = rows["relation"].nunique() <= MOST_OPEN or len(names) == 1
    return st.pills(
        "Show the relations of",
        names,
        selection_mode="multi",
        default=names if few else [],
        # Two keys, because the URL omits the default, and there are two defaults.
        key="open_few" if few else "open",
        bind=BOUND,
        help="In the chart, the mean of each chosen source is followed by a row per relation. The "
        "table shows all relations.",
    )


def _draw_relations(choice: RunChoice, rows: pd.DataFrame, measure: Measure) -> None:
    """Draw the table by relation; a cell opens the relation's scored or excluded facts."""
    groups = _group(rows, "relation")
    names = [relation for (relation,) in groups]
    grid = []
    for part in groups.values():
        first = next(iter(part.values()))
        row = {
            "relation": first["label"],
            **_cells(part, choice, measure),
            "Freq": percentage(first["freq"]) if measure.is_p_at_k and choice.k == 1 else None,
            **_chance_cells(part, choice, measure),
            **_counts(choice, first),
            "type": first["type"],
            "corpus": first["source"],
        }
        grid.append(row)
    cell = _table(pd.DataFrame(grid), choice, measure, "by relation", METHOD, [])
    description: str | None = None
    filters: dict[str, list[str]] = {}
    if cell:
        name, title = names[cell[0]], _title_of_column(cell[1], choice)
        relation = choice.labels[name]
        value = groups[name,].get(title, {}).get(measure.column, 1.0)
        low = measure.is_p_at_k and value < LOW
        description = _cell_description(choice, cell[1], relation) + ", wrong answers" * low
        filters = {"relations": [relation], **_wrong_filter(choice, title, low)}
    if draw_facts_button(description, "relations way") and cell:
        _open_cell(choice, cell[1], **filters)
    draw_export(
        "relations",
        lambda: score_rows(choice, "relation"),
        provenance(choice, "relation"),
        results_request(choice, "relation"),
    )


def _cell_description(choice: RunChoice, column: str, group: str) -> str:
    """Describe the facts of the selected cell in words."""
    excluded = ", excluded" if column == "excluded" else ""
    return f"{group}{excluded}, {_title_of_column(column, choice) or choice.titles[0]}"


def _open_cell(choice: RunChoice, column: str, **filters: list[str]) -> None:
    """Open the facts of the selected cell."""
    rows = {"rows": "excluded"} if column == "excluded" else {}
    open_facts(choice, _title_of_column(column, choice), **filters, **rows)


def _wrong_filter(choice: RunChoice, title: str, low: bool) -> dict[str, list[str]]:
    """Return the filter for a run's wrong facts if its P@k is low, else no filter."""
    return {"wrong": [choice.name_of(title)]} if low else {}


def _group(rows: pd.DataFrame, *columns: str) -> Grouped:
    """Return values of `columns` -> run title -> row of the score table, in the table's order."""
    grouped: Grouped = {}
    for row in rows.to_dict("records"):
        key = tuple(row[column] for column in columns)
        grouped.setdefault(key, {})[row["name"]] = {str(k): value for k, value in row.items()}
    return grouped


def _n_relations(line: dict[str, Any]) -> str:
    """Return how many relations a value is averaged over, such as `41` or `2 of 3`."""
    n = int(line["n_relations"])
    return relations_counted(n, int(line["of_relations"])).removesuffix(" relations") or str(n)


def _counts(choice: RunChoice, line: dict[str, Any]) -> dict[str, Any]:
    """Return a row's numbers of scored and excluded facts.

    Empty if the runs' numbers differ: each run then has a column for its number.
    """
    if not choice.same_counts:
        return {}
    return {"facts": int(line["n"]), "excluded": int(line["n_excluded"])}


def _chance_cells(
    part: dict[str, dict[str, Any]], choice: RunChoice, measure: Measure
) -> dict[str, str | None]:
    """Return a row's number of ranked answers and chance level.

    Empty if no run has an informative chance level.
    """
    if not choice.guessable:
        return {}
    # A run that doesn't record how many words it ranked has NaN here.
    lines = [line for line in part.values() if line["chance"] == line["chance"]]
    cells = {}
    if all("n_answers" in line for line in part.values()):
        cells["answers"] = _distinct(f"{int(line['n_answers']):,}" for line in lines)
    if measure.is_p_at_k:
        cells["chance"] = _distinct(percent(line["chance"]) for line in lines)
    return cells


def _distinct(values: Iterable[str]) -> str | None:
    """Join the distinct values with slashes; None without values."""
    return " / ".join(dict.fromkeys(values)) or None


def _cells(part: dict[str, dict[str, Any]], choice: RunChoice, measure: Measure) -> dict[str, Any]:
    """Return each run's value and interval in a row of a table."""
    cells: dict[str, Any] = {}
    digits = 3 if measure.column == "mrr" else 1
    number = percentage if measure.metric.is_share else partial(rounded, digits=digits)
    for title in choice.titles:
        row = part.get(title)
        cells[title] = number(row[measure.column]) if row else None
        if measure.is_p_at_k:
            cells[f"{title} interval"] = (
                f"{percent(row['low'])}–{percent(row['high'])}" if row and row["n"] > 0 else ""
            )
        if not choice.same_counts:
            cells[f"{title} n"] = int(row["n"]) if row else None
    return cells


def published_cells(source: str, kind: str | None, columns: Sequence[str]) -> dict[str, Any]:
    """Return `MODEL *` -> published P@1 of a source or one of its relation types, in percent."""
    if source == CONCEPTNET:  # its published total is an average over facts
        kind = None if kind == OVER_FACTS else OVER_RELATIONS
    table = published_scores()
    rows = table[(table["source"] == source) & table["relation"].isna()]
    rows = rows[rows["type"].isna() if kind is None else rows["type"] == kind]
    values = rows.set_index("model")["p_at_1"]
    return {f"{name} *": percentage(values[name]) if name in values else None for name in columns}


def _table(
    table: pd.DataFrame,
    choice: RunChoice,
    measure: Measure,
    key: str,
    method: str,
    published: Sequence[str],
) -> tuple[int, str] | None:
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    form = "%.3f" if measure.column == "mrr" else "%.1f"
    counts = choice.counts
    config: dict[str, Any] = {
        "corpus": text(pinned=key == "totals", width=86),
        "relations": text(pinned=True, width=100),
        "relation": text(pinned=True, width=190),
        "excluded": number(help=f"{explain('Excluded facts')} Click to see them.", width=68),
        "facts": number(
            counts,
            help=f"{counts.capitalize()} that are scored, the same number for every model.",
            format="localized",
            width=68,
        ),
        "#rel": text(
            "relations",
            help="Number of relations in the unweighted mean. 2 of 3: one relation has no scored "
            "fact. Several numbers: the models differ.",
            width=68,
        ),
        "answers": text(help=explain("Answers ranked"), width=68),
        "chance": text(help=explain("Chance"), width=68),
        "Freq": number(
            format="%.1f",
            width=68,
            help="P@1 of ranking words by how often they are objects of the relation.",
        ),
    }
    for title in choice.titles:
        config[title] = number(
            choice.heads[title], format=form, help=f"{measure.label}. {explain('P@k')}"
        )
        config[f"{title} n"] = number(
            counts, help=f"{counts.capitalize()} that {title} is scored on.", width="small"
        )
        config[f"{title} interval"] = text(
            "95 %", help=f"95 % interval over facts: {method}.", width=81
        )
    for name in published:
        config[f"{name} *"] = number(
            f"{name} *", format="%.1f", help="Published: Petroni et al. 2019, Table 2."
        )
    if table["Freq"].isna().all():
        table = table.drop(columns="Freq")
    hides_intervals = len(choice.titles) > MOST_INTERVALS
    return draw_table(
        table,
        column_order=[
            name for name in map(str, table) if not (hides_intervals and name.endswith(" interval"))
        ],
        column_config=config,
        key=f"{key} table",
        picks="single-cell",
        placeholder="–",
        height="content" if len(table) <= 12 else 460,
    ).cell


def _title_of_column(column: str, choice: RunChoice) -> str:
    """Return the title of the run that a column belongs to; empty for other columns."""
    title = column.removesuffix(" interval").removesuffix(" n")
    return title if title in choice.titles else ""
