"""The Overview tab of Results: who is ahead, and P@k by source, by type and by relation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import pandas as pd
import streamlit as st

from lama_core.glossary import explain
from lama_core.metrics import METRICS, Metric, headline, overall, standings
from lama_core.metrics.intervals import METHOD, METHOD_OF_MEANS
from lama_core.metrics.score_tables import (
    CONCEPTNET,
    Average,
    By,
    ResultsRequest,
    relations_counted,
)
from lama_core.papers.published import published_scores, published_table
from lama_core.rounding import percent, percentage, rounded
from pages.ui.results.leaderboard import draw_leaderboard
from pages.ui.results.origins import draw_origins
from pages.ui.shared import cache, charts, links, screens
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import counted, plain, show_note
from pages.ui.shared.partial_lama import draw_partial
from pages.ui.shared.run_choice import OWN, RunChoice, draw_question, footing
from pages.ui.shared.url_state import BOUND, pick

Grouped = dict[tuple[Any, ...], dict[str, dict[str, Any]]]
P_AT_K = METRICS["p_at_1"]  # what is said of P@1 holds of P@k
# Freq is a baseline next to P@1, not a model's figure; P@k takes P@1's place.
FIGURES = {"P@k": P_AT_K} | {
    one.label: one for name, one in METRICS.items() if name not in ("p_at_1", "freq")
}
ORDERS = ("as in the data", "best first")
OVER_FACTS, OVER_RELATIONS = "over facts", "over relations"
MOST_OPEN = 12  # relations that are shown at once, without being asked for
MOST_INTERVALS = 3  # for more runs their columns are hidden, and can be shown by the table's menu
INTERVALS = {"relation": METHOD, "source": METHOD_OF_MEANS, "type": METHOD_OF_MEANS}
DEFAULT_PUBLISHED = ("BERT-base", "BERT-large")


def score_rows(choice: RunChoice, by: By, conceptnet: Average = "relations") -> pd.DataFrame:
    """The score table of the chosen runs, with the run's title in the column `name`."""
    tables = []
    for run, title in zip(choice.runs, choice.titles, strict=True):
        table = cache.scores(run, by, choice.ranking, choice.k, choice.relations, conceptnet)
        tables.append(table.assign(name=title))
    return pd.concat(tables, ignore_index=True)


def with_chance(choice: RunChoice, table: pd.DataFrame) -> pd.DataFrame:
    """What a chart is of, without the chance level where that isn't worth showing."""
    return table if choice.guessable else table.assign(chance=float("nan"))


def made(choice: RunChoice, by: By) -> dict[str, object]:
    """How a score table was made, to go with it."""
    return choice.made() | {"intervals": f"95 %, {INTERVALS[by]}"}


LOW = 0.5  # a P@k below it leads to the wrong facts


def to_facts(choice: RunChoice, title: str = "", **filters: Any) -> None:
    """Open Wrong answers on what a number stands for; `title` is the run in focus."""
    params: dict[str, str | list[str]] = {**choice.params(), "of": choice.name_of(title)}
    for key, value in filters.items():
        params[key] = value if isinstance(value, list) else str(value)
    links.go(screens.RESULTS, {**params, **screens.WRONG_ANSWERS})


def draw_way(said: str | None, key: str) -> bool:
    """The button that leads to the facts of the number that is chosen in the table above it.

    Choosing leads nowhere by itself: the keyboard can't come to a table, nor pass by it, without
    choosing its first cell. said: the number's facts in words; None while none is chosen.
    """
    return st.button(
        f"Facts: {said}" if said else "Choose a number to see its facts",
        icon=":material/fact_check:",
        disabled=said is None,
        key=key,
    )


def request_of(choice: RunChoice, by: By, conceptnet: Average = "relations") -> ResultsRequest:
    """What gives the same table from a terminal."""
    own = all(run.ranking == choice.ranking for run in choice.runs)
    return ResultsRequest(
        tuple(run.id for run in choice.runs),
        by,
        None if own else choice.ranking,
        choice.k,
        choice.relations,
        own=choice.facts == OWN,
        conceptnet=conceptnet,
    )


def _explain(label: str, metric: Metric) -> str:
    """What a figure says, and its formula."""
    formula = "facts with rank at most k / facts" if label == "P@k" else metric.formula
    return f"**{label}**: {metric.meaning} *{formula}*"


@dataclass(frozen=True)
class Measure:
    """The figure that the tab shows. column: of the score table. label: as people read it."""

    metric: Metric
    column: str
    label: str

    @property
    def is_p_at_k(self) -> bool:
        """Whether it has intervals and a chance level."""
        return self.column == "p_at_k"


def draw_scores(choice: RunChoice) -> None:
    """The whole tab: who is ahead, the chart, the totals as in LAMA's Table 2, and by relation."""
    draw_question(choice)
    top, chart = st.container(), st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", key="chart-options"):
        name = st.selectbox(
            "Measure",
            list(FIGURES),
            key="figure",
            bind=BOUND,
            width=180,
            help="\n\n".join(_explain(*one) for one in FIGURES.items()),
        )
        order = pick("Order", ORDERS, key="order")
        rows = score_rows(choice, "relation")
        opened = _choose_open(choice, rows)
    metric = FIGURES[name]
    column = "p_at_k" if metric is P_AT_K else metric.name
    measure = Measure(metric, column, f"P@{choice.k}" if metric is P_AT_K else name)
    rows["label"] = rows["relation"].map(choice.labels)
    sources, every = score_rows(choice, "source"), overall(rows)
    with top:
        said = _draw_headline(choice, every, sources, measure)
    if order == "best first":
        rows = _best_first(rows, "relation", measure)
        sources = _best_first(sources, "source", measure)
    with chart:
        _draw_chart(choice, every, sources, rows, measure, opened, said)
    _draw_totals(choice, measure)
    if measure.is_p_at_k and choice.k == 1:
        draw_leaderboard(choice, score_rows(choice, "relation"))
    st.markdown(f"### {_titled(choice, measure)} by relation")
    _draw_relations(choice, rows, measure)
    if choice.any_statements:
        return
    with st.expander("The published models (Table 1 of Petroni et al. 2019)"):
        st.dataframe(published_table("petroni2019", "table1").frame(), hide_index=True)


def _titled(choice: RunChoice, measure: Measure) -> str:
    """The measure as a heading, with what was asked where that is unusual."""
    title = measure.label[0].upper() + measure.label[1:]
    kinds = list(dict.fromkeys(run.prompts for run in choice.runs))
    if kinds == ["manual"]:
        return title
    return f"{title} ({plain(', '.join(kinds))}{' prompts' * (not choice.any_statements)})"


def _draw_headline(
    choice: RunChoice, every: pd.DataFrame, sources: pd.DataFrame, measure: Measure
) -> str:
    """Who is ahead, and links to what users come for; what the figure counts, as Markdown."""
    same, names = footing(choice), list(dict.fromkeys(sources["source"]))
    found = headline(
        standings(every, measure.column),
        measure.metric,
        k=choice.k if measure.is_p_at_k else None,
        relations=[choice.labels[one] for one in choice.relations],
        source=names[0] if len(names) == 1 else "",
        counts=choice.counts,
        differ=same.differ,
    )
    with st.container(key="headline"):
        st.subheader(plain(found.text), anchor=False)
    here = {**choice.params(), "tab": "More"}
    with st.container(horizontal=True, key="ways"):
        if len(found.order) > 1 and st.button(
            "Compare the best two", icon=":material/balance:", type="tertiary"
        ):
            ids = dict(zip(choice.titles, (run.id for run in choice.runs), strict=True))
            a, b = found.order[1], found.order[0]
            links.go(screens.RESULTS, {**here, "tab": "Compare", "run_a": ids[a], "run_b": ids[b]})
        for chart, icon in ((screens.CURVES, "show_chart"), (screens.RANKS, "bar_chart")):
            if st.button(chart, icon=f":material/{icon}:", type="tertiary"):
                links.go(screens.RESULTS, {**here, "chart": chart})
    return f"{plain(found.counted)} {same.said}"


def _draw_partial(choice: RunChoice) -> None:
    """Which of the runs are on a part of LAMA only, beside its published numbers."""
    seen = [
        (run.dataset, tuple((one.source, one.n + one.n_excluded) for one in run.relations))
        for run in choice.runs
    ]
    for data, counts in dict.fromkeys(seen):
        draw_partial(data, counts, note="The published numbers are of all of LAMA's facts.")


def _draw_totals(choice: RunChoice, measure: Measure) -> None:
    """Table 2's rows: each type of relation, then the source's total; published figures."""
    head, box = st.columns([5, 4], vertical_alignment="bottom")
    head.markdown(f"### {_titled(choice, measure)} by source and type of relation")
    asked_plainly = all(run.prompts == "manual" for run in choice.runs)
    is_p_at_1 = measure.is_p_at_k and choice.k == 1
    published: list[str] = []
    if is_p_at_1 and asked_plainly and not choice.any_statements:
        published = box.multiselect(
            "Compare with published",
            published_table("petroni2019", "table2").columns,
            default=list(DEFAULT_PUBLISHED),
            key="published",
            bind=BOUND,
            placeholder="None",
            help="P@1 in percent as printed in Table 2 of Petroni et al. 2019, on LAMA's own "
            "facts. Comparable with ours only on the same facts and candidates.",
        )
    if published:
        _draw_partial(choice)
    by_type = _group(score_rows(choice, "type"), "source", "type")
    totals = _group(score_rows(choice, "source"), "source")
    over_facts = _group(_conceptnet_over_facts(choice), "source")
    lines: list[tuple[str, str | None]] = []
    for (source,) in totals:
        kinds = [kind for kind in ("1-1", "N-1", "N-M") if (source, kind) in by_type]
        lines += [(source, kind) for kind in kinds if len(kinds) > 1] + [(source, None)]
        lines += [(source, OVER_FACTS)] * ((source,) in over_facts)
    grid = []
    for source, kind in lines:
        if kind == OVER_FACTS:
            part = over_facts[source,]
        else:
            part = totals[source,] if kind is None else by_type[source, kind]
        first = next(iter(part.values()))
        row: dict[str, Any] = {
            "corpus": source,
            "relations": kind or (OVER_RELATIONS if source == CONCEPTNET else "total"),
            **_cells(part, choice, measure),
            **_published_cells(source, kind, published),
            "Freq": percentage(first["freq"]) if is_p_at_1 else None,
            **_guessed(part, choice, measure),
            **_counts(choice, first),
            "#rel": " / ".join(dict.fromkeys(_n_relations(one) for one in part.values())),
        }
        grid.append(row)
    event = _table(pd.DataFrame(grid), choice, measure, "totals", METHOD_OF_MEANS, published)
    cell = _clicked(event)
    said = None
    if cell is not None:
        source, kind = lines[cell[0]]
        said = _said(choice, cell[1], f"{source} {kind or 'total'}")
    if draw_way(said, "totals way") and cell is not None:
        types = [kind] if kind and kind != OVER_FACTS else []
        _follow(choice, cell[1], sources=[source], types=types)
    notes = []
    if published:
        notes.append(
            "**\\***: published by Petroni et al. 2019, Table 2, on LAMA's facts and candidates."
        )
    if over_facts:
        notes.append(
            "**ConceptNet**: the paper's text means over relations, as we do for every source; its "
            "released code counts ConceptNet as one relation, over facts"
            + (", and so it is next to the published values." if published else ".")
        )
    if notes:
        st.caption(" ".join(notes))
    if measure.is_p_at_k:
        draw_origins(choice)
    requests = [request_of(choice, "type"), request_of(choice, "source")]
    if over_facts:
        concepts = [
            one.name
            for run in choice.runs
            for one in run.relations
            if one.source == CONCEPTNET and one.name in (choice.relations or choice.labels)
        ]
        request = request_of(choice, "source", "facts")
        requests.append(replace(request, relations=tuple(dict.fromkeys(concepts))))
    draw_export("totals", lambda: _all_totals(choice), made(choice, "source"), tuple(requests))


def _all_totals(choice: RunChoice) -> pd.DataFrame:
    """The rows of every type and source, told apart by `by` and `mean_over`."""
    tables = [score_rows(choice, by).assign(by=by) for by in ("type", "source")]
    over_facts = _conceptnet_over_facts(choice).assign(by="source")
    return pd.concat([*tables, over_facts], ignore_index=True)


def _conceptnet_over_facts(choice: RunChoice) -> pd.DataFrame:
    """The rows of ConceptNet's total as the released code has it; none without ConceptNet."""
    rows = score_rows(choice, "source", "facts")
    return rows[rows["mean_over"] == "facts"]


def _best_first(rows: pd.DataFrame, key: str, measure: Measure) -> pd.DataFrame:
    """The rows in the order of the best value that any run has for their `key`."""
    rising = not measure.metric.higher_is_better
    best = rows.groupby(key)[measure.column].agg("min" if rising else "max")
    places = best.rank(ascending=rising, method="first")
    ordered = rows.assign(place=rows[key].map(places)).sort_values("place", kind="stable")
    return ordered.reset_index(drop=True)


def _draw_chart(
    choice: RunChoice,
    every: pd.DataFrame,
    sources: pd.DataFrame,
    rows: pd.DataFrame,
    measure: Measure,
    opened: Sequence[str],
    said: str,
) -> None:
    """The chart of all relations and by source, an open one with its relations.

    A click opens a row's facts. every: of `overall`. said: what is counted, as Markdown.
    """
    lines: list[pd.DataFrame] = []
    params: dict[str, dict[str, list[str]]] = {}

    def add(row: str, part: pd.DataFrame, name: str, **filters: list[str]) -> None:
        n = int(part["n_relations"].max())
        of = int(part["of_relations"].max()) if "of_relations" in part else n
        label = f"{name}, {relations_counted(n, of) or counted(n, 'relation')}"
        lines.append(part.assign(relation=row, label=label, is_source=True))
        params[row] = filters

    names = list(dict.fromkeys(sources["source"]))
    if len(names) > 1:
        add("all", every, "all")
    for source in names:
        within = rows[rows["source"] == source]
        if source not in opened or len(set(within["relation"])) > 1:
            add(f"source {source}", sources[sources["source"] == source], source, sources=[source])
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
        said
        + " **Bold**: means over relations."
        + " Whiskers: 95 % intervals." * measure.is_p_at_k
        + f" Diamonds: {measure.label} of a random order of the answers."
        * (measure.is_p_at_k and choice.guessable)
        + " Click any number or bar to see its facts.",
        help=f"Interval of a relation, over its facts: {METHOD}. Of a mean: {METHOD_OF_MEANS}.",
    )
    for point in points:
        title, row = point["customdata"][:2]
        values = chart["value"][(chart["relation"] == row) & (chart["name"] == title)]
        low = measure.is_p_at_k and bool((values < LOW).any())
        to_facts(choice, title, **params[row], **_wrong_of(choice, title, low))


def _choose_open(choice: RunChoice, rows: pd.DataFrame) -> list[str]:
    """The sources whose relations the chart shows: all where they are few, else those chosen."""
    every = dict.fromkeys(relation.source for run in choice.runs for relation in run.relations)
    names = [name for name in every if name in set(rows["source"])]
    few = rows["relation"].nunique() <= MOST_OPEN or len(names) == 1
    return st.pills(
        "Show the relations of",
        names,
        selection_mode="multi",
        default=names if few else [],
        # What stands in the address is told from what the page shows by itself, which is another
        # for few relations than for many.
        key="open_few" if few else "open",
        bind=BOUND,
        help="The sources whose relations the chart shows under their mean. The table has all.",
    )


def _draw_relations(choice: RunChoice, rows: pd.DataFrame, measure: Measure) -> None:
    """The table by relation; a cell opens the relation's facts, or the excluded ones."""
    groups = _group(rows, "relation")
    names = [relation for (relation,) in groups]
    grid = []
    for part in groups.values():
        first = next(iter(part.values()))
        row = {
            "relation": first["label"],
            **_cells(part, choice, measure),
            "Freq": percentage(first["freq"]) if measure.is_p_at_k and choice.k == 1 else None,
            **_guessed(part, choice, measure),
            **_counts(choice, first),
            "type": first["type"],
            "corpus": first["source"],
        }
        grid.append(row)
    event = _table(pd.DataFrame(grid), choice, measure, "by relation", METHOD, [])
    cell = _clicked(event)
    relation = choice.labels[names[cell[0]]] if cell else ""
    line = groups[names[cell[0]],].get(_run_of(cell[1], choice), {}) if cell else {}
    low = measure.is_p_at_k and line.get(measure.column, 1.0) < LOW
    said = _said(choice, cell[1], relation) + ", wrong answers" * low if cell else None
    if draw_way(said, "relations way") and cell:
        wrong = _wrong_of(choice, _run_of(cell[1], choice), low)
        _follow(choice, cell[1], relations=[relation], **wrong)
    draw_export(
        "relations",
        lambda: score_rows(choice, "relation"),
        made(choice, "relation"),
        request_of(choice, "relation"),
    )


def _said(choice: RunChoice, column: str, of: str) -> str:
    """What the chosen cell's facts are, in words."""
    out = ", excluded" if column == "excluded" else ""
    return f"{of}{out}, {_run_of(column, choice) or choice.titles[0]}"


def _follow(choice: RunChoice, column: str, **filters: list[str]) -> None:
    """Open the facts of the chosen cell."""
    rows = {"rows": "excluded"} if column == "excluded" else {}
    to_facts(choice, _run_of(column, choice), **filters, **rows)


def _wrong_of(choice: RunChoice, title: str, low: bool) -> dict[str, list[str]]:
    """The filter to the facts that a run gets wrong, for a low P@k."""
    return {"wrong": [choice.name_of(title)]} if low else {}


def _group(rows: pd.DataFrame, *columns: str) -> Grouped:
    """The rows of a score table by some columns, then by run name, in their order."""
    grouped: Grouped = {}
    for row in rows.to_dict("records"):
        key = tuple(row[column] for column in columns)
        grouped.setdefault(key, {})[row["name"]] = {str(k): value for k, value in row.items()}
    return grouped


def _n_relations(line: dict[str, Any]) -> str:
    """How many relations a value is the mean of, such as `41` or `2 of 3`."""
    n = int(line["n_relations"])
    return relations_counted(n, int(line["of_relations"])).removesuffix(" relations") or str(n)


def _counts(choice: RunChoice, line: dict[str, Any]) -> dict[str, Any]:
    """How many facts a row is of, where all runs are on the same; else each run says it."""
    if not choice.same_counts:
        return {}
    return {"facts": int(line["n"]), "excluded": int(line["n_excluded"])}


def _guessed(
    part: dict[str, dict[str, Any]], choice: RunChoice, measure: Measure
) -> dict[str, str | None]:
    """How many answers a row's relation has, and the chance level, where that is worth showing."""
    if not choice.guessable:
        return {}
    lines = list(part.values())
    cells = {}
    if "n_answers" in lines[0]:
        cells["answers"] = _each(f"{int(one['n_answers']):,}" for one in lines if _known(one))
    if measure.is_p_at_k:
        cells["chance"] = _each(percent(one["chance"]) for one in lines if _known(one))
    return cells


def _known(line: dict[str, Any]) -> bool:
    """Whether a row's run says how many words it ranked."""
    return bool(line["chance"] == line["chance"])


def _each(values: Iterable[str]) -> str | None:
    """Values as text, each once; None where there is none."""
    return " / ".join(dict.fromkeys(values)) or None


def _cells(part: dict[str, dict[str, Any]], choice: RunChoice, measure: Measure) -> dict[str, Any]:
    """Each run's value and interval in a row of a table."""
    cells: dict[str, Any] = {}
    digits = 3 if measure.column == "mrr" else 1
    number = percentage if measure.metric.is_share else partial(rounded, digits=digits)
    for title in choice.titles:
        row = part.get(title)
        cells[title] = number(row[measure.column]) if row else None
        if measure.is_p_at_k:
            known = row is not None and row["n"] > 0
            cells[f"{title} interval"] = (
                f"{percent(row['low'])}–{percent(row['high'])}" if row and known else ""
            )
        if not choice.same_counts:
            cells[f"{title} n"] = int(row["n"]) if row else None
    return cells


def _published_cells(source: str, kind: str | None, columns: Sequence[str]) -> dict[str, Any]:
    if source == CONCEPTNET:  # its published totals are over facts
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
) -> Any:
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    form = "%.3f" if measure.column == "mrr" else "%.1f"
    counts = choice.counts
    config: dict[str, Any] = {
        "corpus": text(pinned=key == "totals", width=86),
        "relations": text(pinned=True, width=104),
        "relation": text(pinned=True, width=190),
        "excluded": number(help=f"{explain('Left out')} Click to see them.", width="small"),
        "facts": number(
            counts,
            help=f"{counts.capitalize()} that count, for every model",
            format="localized",
            width="small",
        ),
        "#rel": text(
            "relations",
            help="Relations with facts that count, of which the value is the unweighted mean; 2 of "
            "3 where one has no such fact, several numbers where models count other relations.",
            width="small",
        ),
        "answers": text(help=explain("Answers ranked"), width="small"),
        "chance": text(help=explain("Chance"), width="small"),
        "Freq": number(
            format="%.1f",
            width="small",
            help="P@1 of always giving the relation's most frequent object.",
        ),
    }
    for title in choice.titles:
        config[title] = number(format=form, help=f"{measure.label}. {explain('P@k')}")
        config[f"{title} n"] = number(
            counts, help=f"{counts.capitalize()} that {title} counts", width="small"
        )
        config[f"{title} interval"] = text(
            "95 %", help=f"95 % interval: {method}, over facts.", width=84
        )
    for name in published:
        config[f"{name} *"] = number(
            f"{name} *", format="%.1f", help="Published: Petroni et al. 2019, Table 2"
        )
    if table["Freq"].isna().all():
        table = table.drop(columns="Freq")
    hides = len(choice.titles) > MOST_INTERVALS
    return st.dataframe(
        table,
        hide_index=True,
        column_order=[one for one in map(str, table) if not (hides and one.endswith(" interval"))],
        column_config=config,
        key=f"{key} table",
        on_select="rerun",
        selection_mode="single-cell",
        placeholder="–",
        height="content" if len(table) <= 12 else 460,
    )


def _clicked(event: Any) -> tuple[int, str] | None:
    cells = event["selection"]["cells"]
    return cast(tuple[int, str], tuple(cells[0])) if cells else None


def _run_of(column: str, choice: RunChoice) -> str:
    """The title of the run whose figure a column has; empty for none."""
    title = column.removesuffix(" interval").removesuffix(" n")
    return title if title in choice.titles else ""


def draw_types(choice: RunChoice) -> None:
    """P@k against the type of relation, as the paper discusses it in section 5."""
    relations = score_rows(choice, "relation")
    relations = relations[relations["type"].notna() & (relations["n"] > 0)]
    means = score_rows(choice, "type")
    means = means[means["type"].notna()]
    if means.empty:
        show_note("None of these relations has a type in the data.")
        return
    sources = list(dict.fromkeys(means["source"]))
    source = max(sources, key=lambda name: int((relations["source"] == name).sum()))
    if len(sources) > 1:
        chosen = pick("Source", sources, key="type_source", first=source)
        source = chosen or source
    relations, means = (part[part["source"] == source] for part in (relations, means))
    points = choice.show(
        charts.precision_by_type(
            relations.assign(
                value=relations["p_at_k"], label=relations["relation"].map(choice.labels)
            ),
            with_chance(choice, means.assign(value=means["p_at_k"])),
            choice.inks,
            choice.k,
            choice.counts,
        ),
        "type chart",
        f"P@{choice.k} by type of relation, {source}",
    )
    st.caption(
        "Bars: the unweighted mean over relations with its 95 % interval; points: relations. "
        + f"Diamonds: mean P@{choice.k} of a random order of the answers. " * choice.guessable
        + "**1-1**: one object per subject and one subject per object, as capitals. **N-1**: many "
        "subjects share an object, as birthplaces. **N-M**: many of both, as shared borders.",
        help=f"Interval: {METHOD_OF_MEANS}.",
    )
    for point in points:
        title, what, which = point["customdata"][:3]
        if what == "type":
            to_facts(choice, title, types=[which], sources=[source])
        to_facts(choice, title, relations=[choice.labels[which]])
    draw_export(
        "types",
        lambda: score_rows(choice, "type"),
        made(choice, "type"),
        request_of(choice, "type"),
    )
