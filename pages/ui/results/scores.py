"""The P@k tables and charts of the Results page: by source, by type, by relation."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pandas as pd
import streamlit as st

from lama_core.glossary import explain
from lama_core.metrics import METRICS, Metric
from lama_core.metrics.intervals import METHOD, METHOD_OF_MEANS
from lama_core.metrics.tables import (
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
from pages.ui.shared.choice import OWN, RunChoice
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import counted, plain, show_note
from pages.ui.shared.partial import draw_partial
from pages.ui.shared.state import BOUND, pick

Grouped = dict[tuple[Any, ...], dict[str, dict[str, Any]]]
P_AT_K = METRICS["p_at_1"]  # what is said of P@1 holds of P@k
# Freq stands beside P@1 and is no figure of a model; P@k takes P@1's place.
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
    """The score table of the chosen runs, with the run's name in the column `name`."""
    tables = []
    for run, name in zip(choice.runs, choice.names, strict=True):
        table = cache.scores(run, by, choice.ranking, choice.k, choice.relations, conceptnet)
        tables.append(table.assign(name=name))
    return pd.concat(tables, ignore_index=True)


def with_chance(choice: RunChoice, table: pd.DataFrame) -> pd.DataFrame:
    """What a chart is of, without the chance level where that isn't worth showing."""
    return table if choice.guessable else table.assign(chance=float("nan"))


def made(choice: RunChoice, by: By) -> dict[str, object]:
    """How a score table was made, to go with it."""
    return choice.made() | {"intervals": f"95 %, {INTERVALS[by]}"}


def to_facts(choice: RunChoice, name: str = "", **filters: Any) -> None:
    """Open Wrong answers on what a number stands for; `name` is the run in focus."""
    params: dict[str, str | list[str]] = {**choice.params(), "of": name}
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


def draw_scores(choice: RunChoice) -> None:
    """The whole tab: totals as in the paper's Table 2, the chart and the table by relation."""
    head, published_box, figure_box = st.columns([5, 3, 2], vertical_alignment="bottom")
    figure = figure_box.selectbox(
        "Figure",
        list(FIGURES),
        key="figure",
        bind=BOUND,
        help="\n\n".join(_explain(*one) for one in FIGURES.items()),
    )
    metric = FIGURES[figure]
    column = "p_at_k" if metric is P_AT_K else metric.name
    label = f"P@{choice.k}" if figure == "P@k" else figure
    asked_plainly = all(run.prompts == "manual" for run in choice.runs)
    comparable = column == "p_at_k" and choice.k == 1 and asked_plainly
    shown = []
    if not choice.any_statements:  # the paper has nothing that stands beside whole answers
        shown = published_box.multiselect(
            "Published beside them",
            published_table("petroni2019", "table2").columns,
            default=list(DEFAULT_PUBLISHED),
            key="published",
            bind=BOUND,
            placeholder="None",
            disabled=not comparable,
            help="P@1 in percent as printed in Table 2 of Petroni et al. 2019, on LAMA's own "
            "facts: comparable with ours only where ours is on the same facts and candidates. They "
            "stand beside P@1 of the relations' own templates only.",
        )
    title = label[0].upper() + label[1:]
    if not asked_plainly:
        kinds = dict.fromkeys(run.prompts for run in choice.runs)
        title += f" ({plain(', '.join(kinds))}{' prompts' * (not choice.any_statements)})"
    head.markdown(f"### {title} by source and type of relation")
    if comparable and shown:
        _draw_partial(choice)
    _draw_totals(choice, column, label, shown if comparable else [])
    rows = score_rows(choice, "relation")
    if column == "p_at_k" and choice.k == 1:
        draw_leaderboard(choice, rows)
    rows["label"] = rows["relation"].map(choice.labels)
    head, order_box = st.columns([4, 2], vertical_alignment="bottom")
    head.markdown(f"### {title} by source and relation")
    with order_box, st.container(horizontal=True, horizontal_alignment="right"):
        order = pick("Order", ORDERS, key="order", label_visibility="collapsed")
    sources = score_rows(choice, "source")
    if order == "best first":
        rows = _best_first(rows, "relation", column, metric)
        sources = _best_first(sources, "source", column, metric)
    _draw_chart(choice, sources, rows, column, label)
    st.markdown(f"### {title} by relation")
    _draw_relations(choice, rows, column, label)
    if choice.any_statements:
        return
    with st.expander("The published models (Table 1 of Petroni et al. 2019)"):
        st.dataframe(published_table("petroni2019", "table1").frame(), hide_index=True)


def _draw_partial(choice: RunChoice) -> None:
    """Which of the runs are on a part of LAMA only, beside its published numbers."""
    seen = [
        (run.dataset, tuple((one.source, one.n + one.n_excluded) for one in run.relations))
        for run in choice.runs
    ]
    for data, counts in dict.fromkeys(seen):
        draw_partial(data, counts, note="The published numbers are of all of LAMA's facts.")


def _draw_totals(choice: RunChoice, column: str, label: str, published: Sequence[str]) -> None:
    """Table 2's rows: each type of relation, then the source's total."""
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
        counted = next(iter(part.values()))
        row: dict[str, Any] = {
            "corpus": source,
            "relations": kind or (OVER_RELATIONS if source == CONCEPTNET else "total"),
            "#rel": " / ".join(dict.fromkeys(_n_relations(one) for one in part.values())),
            **_counts(choice, counted),
            "Freq": percentage(counted["freq"]) if column == "p_at_k" and choice.k == 1 else None,
            **_guessed(part, choice, column),
        }
        grid.append(row | _cells(part, choice, column) | _published_cells(source, kind, published))
    table = pd.DataFrame(grid)
    event = _table(table, choice, label, "totals", METHOD_OF_MEANS, list(published))
    cell = _clicked(event)
    said = None
    if cell is not None:
        source, kind = lines[cell[0]]
        name = _run_of(cell[1], choice)
        said = _said(choice, name, cell[1], f"{source} {kind or 'total'}")
    if draw_way(said, "totals way") and cell is not None:
        types = [kind] if kind and kind != OVER_FACTS else []
        filters: dict[str, Any] = {"sources": [source], "types": types}
        _follow(choice, name, cell[1], filters)
    notes = []
    if len(published):
        notes.append(
            "**published**: Petroni et al. 2019, Table 2, on LAMA's own facts and candidates."
        )
    if over_facts:
        notes.append(
            "**ConceptNet**: the paper's text means over relations, as we do for every source; its "
            "released code counts ConceptNet as one relation, over facts"
            + (", and so it is beside the published values." if len(published) else ".")
        )
    if notes:
        st.caption(" ".join(notes))
    if column == "p_at_k":
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


def _best_first(rows: pd.DataFrame, key: str, column: str, metric: Metric) -> pd.DataFrame:
    """The rows in the order of the best value that any run has for their `key`."""
    best = rows.groupby(key)[column].agg("max" if metric.higher_is_better else "min")
    places = best.rank(ascending=not metric.higher_is_better, method="first")
    ordered = rows.assign(place=rows[key].map(places)).sort_values("place", kind="stable")
    return ordered.reset_index(drop=True)


def _draw_chart(
    choice: RunChoice, sources: pd.DataFrame, rows: pd.DataFrame, column: str, label: str
) -> None:
    """The chart by source, an open one with its relations; a click opens a row's facts."""
    opened = _choose_open(choice, rows)
    lines, params = [], {}
    for source, totals in sources.groupby("source", sort=False):
        within = rows[rows["source"] == source]
        most = max(totals.to_dict("records"), key=lambda line: int(line["n_relations"]))
        row = f"source {source}"
        params[row] = {"sources": [str(source)]}
        n = int(most["n_relations"])
        partial_mean = relations_counted(n, int(most["of_relations"]))
        said = f"{source}, {partial_mean or counted(n, 'relation')}"
        lines.append(totals.assign(relation=row, label=said, is_source=True))
        if source in opened:
            lines.append(within.assign(is_source=False))
            params |= {
                name: {"relations": [choice.labels[name]]} for name in within["relation"].unique()
            }
    metric = P_AT_K if column == "p_at_k" else METRICS[column]
    table = pd.concat(lines, ignore_index=True)
    chart = table.assign(value=table[column])
    chart = with_chance(choice, chart)
    if column != "p_at_k":
        chart = chart.assign(low=float("nan"), high=float("nan"), chance=float("nan"))
    if not metric.is_share or choice.k != 1:
        chart = chart.assign(freq=float("nan"))
    points = choice.show(
        charts.precision_by_relation(
            chart, choice.colours, what=label, metric=metric, counts=choice.counts
        ),
        "precision chart",
        f"{label} by source and relation, {choice.data}",
    )
    st.caption(
        "**Bold**: the unweighted mean over a source's relations. "
        + (
            f"Whiskers: 95 % intervals, of a relation over its facts ({METHOD}), of a source over "
            f"its relations ({METHOD_OF_MEANS}). "
            if column == "p_at_k"
            else ""
        )
        + (
            f"Diamonds: {label} of a random order of the answers. "
            if column == "p_at_k" and choice.guessable
            else ""
        )
        + "Click a mark to see its facts."
    )
    for point in points:
        name, row = point["customdata"][:2]
        to_facts(choice, name, **params[row])


def _choose_open(choice: RunChoice, rows: pd.DataFrame) -> list[str]:
    """The sources whose relations the chart shows: all where they are few, else those chosen."""
    every = dict.fromkeys(relation.source for run in choice.runs for relation in run.relations)
    names = [name for name in every if name in set(rows["source"])]
    few = rows["relation"].nunique() <= MOST_OPEN or len(names) == 1
    return st.pills(
        "Relations of",
        names,
        selection_mode="multi",
        default=names if few else [],
        # What stands in the address is told from what the page shows by itself, which is another
        # for few relations than for many.
        key="open_few" if few else "open",
        bind=BOUND,
        help="The sources whose relations are shown under their mean. The table has all of them.",
    )


def _draw_relations(choice: RunChoice, rows: pd.DataFrame, column: str, label: str) -> None:
    """The table by relation; a cell opens the relation's facts, or those left out."""
    groups = _group(rows, "relation")
    names = [relation for (relation,) in groups]
    grid = []
    for part in groups.values():
        first = next(iter(part.values()))
        row = {
            "relation": first["label"],
            "type": first["type"],
            "corpus": first["source"],
            **_counts(choice, first),
            "Freq": percentage(first["freq"]) if column == "p_at_k" and choice.k == 1 else None,
            **_guessed(part, choice, column),
        }
        grid.append(row | _cells(part, choice, column))
    event = _table(pd.DataFrame(grid), choice, label, "by relation", METHOD, [])
    cell = _clicked(event)
    relation = choice.labels[names[cell[0]]] if cell else ""
    name = _run_of(cell[1], choice) if cell else ""
    said = _said(choice, name, cell[1], relation) if cell else None
    if draw_way(said, "relations way") and cell:
        _follow(choice, name, cell[1], {"relations": [relation]})
    draw_export(
        "relations",
        lambda: score_rows(choice, "relation"),
        made(choice, "relation"),
        request_of(choice, "relation"),
    )


def _said(choice: RunChoice, name: str, column: str, of: str) -> str:
    """What the chosen cell's facts are, in words."""
    out = ", left out" if column == "left out" else ""
    return f"{of}{out}, {name or choice.names[0]}"


def _follow(choice: RunChoice, name: str, column: str, filters: dict[str, Any]) -> None:
    if column == "left out":
        filters["rows"] = "excluded"
    to_facts(choice, name, **filters)


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
    return {"facts": int(line["n"]), "left out": int(line["n_excluded"])}


def _guessed(
    part: dict[str, dict[str, Any]], choice: RunChoice, column: str
) -> dict[str, str | None]:
    """How many answers a row's relation has, and the chance level, where that is worth showing."""
    if not choice.guessable:
        return {}
    lines = list(part.values())
    cells = {}
    if "n_answers" in lines[0]:
        cells["answers"] = _each(f"{int(one['n_answers']):,}" for one in lines if _known(one))
    if column == "p_at_k":
        cells["chance"] = _each(percent(one["chance"]) for one in lines if _known(one))
    return cells


def _known(line: dict[str, Any]) -> bool:
    """Whether a row's run says how many words it ranked."""
    return bool(line["chance"] == line["chance"])


def _each(values: Iterable[str]) -> str | None:
    """Values as text, each once; None where there is none."""
    return " / ".join(dict.fromkeys(values)) or None


def _cells(part: dict[str, dict[str, Any]], choice: RunChoice, column: str) -> dict[str, Any]:
    """Each run's value and interval in a row of a table."""
    cells: dict[str, Any] = {}
    is_share = column == "p_at_k" or METRICS[column].is_share
    number = percentage if is_share else partial(rounded, digits=_decimals(column))
    for name in choice.names:
        row = part.get(name)
        cells[name] = number(row[column]) if row else None
        if not choice.same_counts:
            cells[f"{name} n"] = int(row["n"]) if row else None
        if column == "p_at_k":
            known = row is not None and row["n"] > 0
            cells[f"{name} interval"] = (
                f"{percent(row['low'])}–{percent(row['high'])}" if row and known else ""
            )
    return cells


def _decimals(column: str) -> int:
    """How many decimals a figure has in the tables."""
    return 3 if column == "mrr" else 1


def _published_cells(source: str, kind: str | None, columns: Sequence[str]) -> dict[str, Any]:
    if source == CONCEPTNET:  # its published totals are over facts
        kind = None if kind == OVER_FACTS else OVER_RELATIONS
    table = published_scores()
    rows = table[(table["source"] == source) & table["relation"].isna()]
    rows = rows[rows["type"].isna() if kind is None else rows["type"] == kind]
    values = rows.set_index("model")["p_at_1"]
    return {f"{name} *": percentage(values[name]) if name in values else None for name in columns}


def _table(
    table: pd.DataFrame, choice: RunChoice, label: str, key: str, method: str, published: list[str]
) -> Any:
    number = st.column_config.NumberColumn
    form = "%.3f" if label == "MRR" else "%.1f"
    config: dict[str, Any] = {
        "left out": number(help=f"{explain('Left out')} Click to see them.", width="small"),
        "facts": number(
            choice.counts,
            help=f"{choice.counts.capitalize()} that count, for every model",
            format="localized",
            width="small",
        ),
        "#rel": st.column_config.TextColumn(
            help="Relations with facts that count, of which the value is the unweighted mean; 2 of "
            "3 where one has no such fact, several numbers where models count other relations.",
            width="small",
        ),
        "answers": st.column_config.TextColumn(help=explain("Answers ranked"), width="small"),
        "chance": st.column_config.TextColumn(help=explain("Chance"), width="small"),
        "Freq": number(
            format="%.1f",
            width="small",
            help="P@1 of always giving the relation's most frequent object.",
        ),
    }
    for name in choice.names:
        config[name] = number(f"{name} · {label}", format=form, help=explain("P@k"))
        config[f"{name} n"] = number(
            choice.counts, help=f"{choice.counts.capitalize()} that {name} counts", width="small"
        )
        config[f"{name} interval"] = st.column_config.TextColumn(
            "95 % interval", help=f"{method}. Over facts: the relations are taken as they are."
        )
    for name in published:
        config[f"{name} *"] = number(
            f"{name} · published", format="%.1f", help="Petroni et al. 2019, Table 2"
        )
    if table["Freq"].isna().all():
        table = table.drop(columns="Freq")
    hidden = (
        (lambda name: name.endswith(" interval")) if len(choice.names) > MOST_INTERVALS else None
    )
    return st.dataframe(
        table,
        hide_index=True,
        column_order=[str(name) for name in table if not (hidden and hidden(str(name)))],
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
    name = column.removesuffix(" interval").removesuffix(" n")
    return name if name in choice.names else ""


def draw_types(choice: RunChoice) -> None:
    """P@k against the type of relation, as the paper discusses it in section 5."""
    st.markdown(f"### P@{choice.k} by type of relation")
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
            choice.colours,
            choice.k,
            choice.counts,
        ),
        "type chart",
        f"P@{choice.k} by type of relation, {source}",
    )
    st.caption(
        f"Bars: the unweighted mean over relations with its 95 % interval ({METHOD_OF_MEANS}); "
        "points: relations. "
        + f"Diamonds: mean P@{choice.k} of a random order of the answers. "
        * choice.guessable
        + "**1-1**: one object a subject and the other way round, as capitals. **N-1**: many "
        "subjects share an object, as birthplaces. **N-M**: many of both, as shared borders."
    )
    for point in points:
        name, what, which = point["customdata"][:3]
        if what == "type":
            to_facts(choice, name, types=[which], sources=[source])
        to_facts(choice, name, relations=[choice.labels[which]])
    draw_export(
        "types",
        lambda: score_rows(choice, "type"),
        made(choice, "type"),
        request_of(choice, "type"),
    )
