"""The Overview tab of Results: the best model, charts, and P@k by source, type and relation.

A click on a row of the scores selects its relation or source in all charts, a click elsewhere the
mark's model; what is selected is in the URL. A click on the only relation and model opens the facts
behind the mark. One chart can have the width of the page, without the others; the URL names it.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import pandas as pd
import streamlit as st

from lama_core.glossary import explain
from lama_core.metrics import headline, standings
from lama_core.metrics.intervals import METHOD, METHOD_OF_MEANS
from lama_core.metrics.relation_figures import METRICS
from lama_core.metrics.score_tables import CONCEPTNET, relations_counted
from lama_core.metrics.slices import ORIGIN
from lama_core.published import LAMA, published_scores, published_table
from lama_core.rounding import percentage
from lama_core.runs.info import RunInfo
from lama_core.tables import Column, Line, text
from lama_core.types import RELATION_TYPES
from lama_core.views.curves import curves
from lama_core.views.figure import Figure, scored_labels
from lama_core.views.ranks import ranks
from lama_core.views.scores import (
    RunScores,
    ScoreMeasure,
    ScoresRequest,
    bars,
    best_first,
    chart_sources,
    measures,
    origins_notes,
    said_of_best,
    scores,
    undefined_metrics,
    weakest,
)
from lama_core.views.view import Shown, ViewFunction
from pages.ui.results.charts import draw_curves, draw_histogram
from pages.ui.results.draw_view import (
    MOST_INTERVALS,
    MOST_LETTERS,
    MOST_ROWS,
    OF_RELATION,
    Cell,
    described,
    draw_facts_button,
    draw_figure,
    draw_view_export,
    draw_wide,
    open_behind,
    open_facts,
    open_line,
)
from pages.ui.shared import links, screens
from pages.ui.shared.cache import cached
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import draw_headline, plain, short
from pages.ui.shared.partial_lama import draw_partial
from pages.ui.shared.run_choice import RunChoice, comparison_basis, draw_question, unscored
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import BOUND, drop_stale, pick

ShownScores = Shown[ScoresRequest, RunScores]
OVER_FACTS, OVER_RELATIONS = "mean over facts", "mean over relations"
DEFAULT_PUBLISHED = ("BERT-base", "BERT-large")
N_WEAKEST, MOST_WEAKEST = 3, 8  # more than the first if several are level
LOW = 0.5  # below this P@k, a click opens only the facts with a wrong answer
# Column -> its width in both tables.
WIDTHS = {
    "source": 86,
    "kind": 150,
    "relation": OF_RELATION,
    "interval": 81,
    "freq": 68,
    "n_answers": 68,
    "chance": 68,
    "n": 68,
    "n_excluded": 68,
    "n_relations": 68,
}


def draw_overview(choice: RunChoice) -> None:
    """Draw the tab: headline, chart, totals as in LAMA's Table 2, and scores by relation."""
    draw_question(choice)
    shown = choice.view(scores)
    top, chart = st.container(), st.container()
    with st.container(horizontal=True, key="chart-options"):
        known = measures(shown)
        drop_stale("figure", (None, *known))
        name = st.selectbox(
            "Measure",
            list(known),
            key="figure",
            bind=BOUND,
            width=180,
            help="\n\n".join(
                f"**{label}**: {one.metric.meaning} "
                f"*{'facts with rank at most k / facts' if one.is_p_at_k else one.metric.formula}*"
                for label, one in known.items()
            ),
        )
        is_best_first = pick("Order", ("as in the data", "best first"), key="order") == "best first"
        names, few = chart_sources(shown)
        opened = st.pills(
            "Show the relations of",
            names,
            selection_mode="multi",
            default=names if few else [],
            # Two keys, because the URL omits the default, and there are two defaults.
            key="open_few" if few else "open",
            bind=BOUND,
            help="In the chart, the mean of each chosen source is followed by a row per relation. "
            "The table shows all relations.",
        )
    measure = known[name]
    if name == METRICS["p_at_10"].label:  # the same as P@k with k = 10, which has intervals
        choice = replace(choice, k=10)
        shown = choice.view(scores)
        measure = measures(shown)["P@k"]
    with top:
        counted = _draw_headline(choice, shown, measure)
    with chart:
        key = f"{shown.request!r} {measure.label} {opened} {is_best_first} {shown.names}"
        mark = draw_dashboard(
            choice, _bars(key, shown.infos, shown, measure, opened, is_best_first)
        )
        st.caption(
            "**Bold**: means over relations."
            + " Click a row or a curve to select it, and once more to see its facts."
            * (st.query_params.get("large") not in ENLARGED),
            help=f"{counted} Bold: means over relations; "
            + "whiskers: 95 % intervals; " * measure.is_p_at_k
            + f"diamonds: {measure.label} of a random order of the answers. "
            * (measure.is_p_at_k and shown.guessable)
            + f"interval for a relation, over its facts: {METHOD}; for a mean: {METHOD_OF_MEANS}.",
        )
        if mark is not None:
            _open(choice, shown, mark, measure)
    _draw_totals(choice, shown, measure)
    if measure.is_p_at_k and choice.k == 1 and any(run.ranks_statements for run in choice.runs):
        from pages.ui.results.leaderboard import draw_leaderboard  # imports how such runs are made

        draw_leaderboard(choice, shown)
    st.markdown(f"### {_heading(choice, measure)} by relation")
    _draw_relations(choice, shown, measure, is_best_first)
    if not choice.all_words:
        return
    with st.expander("The published models (Table 1 of Petroni et al. 2019)"):
        draw_table(published_table("petroni2019", "table1").frame())
        links.draw_link(
            "Published scores on LAMA's T-REx",
            "arrow_forward",
            screens.RESULTS,
            {**choice.params(), **screens.chart(screens.LAMA_TREX)},
        )


def _heading(choice: RunChoice, measure: ScoreMeasure) -> str:
    """Return the measure as a heading, with the prompts if they aren't the manual ones."""
    title = measure.label[0].upper() + measure.label[1:]
    kinds = list(dict.fromkeys(run.prompts_said for run in choice.runs))
    if kinds == ["manual"]:
        return title
    return f"{title} ({plain(', '.join(kinds))}{' prompts' * choice.all_words})"


def _draw_headline(choice: RunChoice, shown: ShownScores, measure: ScoreMeasure) -> str:
    """Draw the headline and the link to Compare; return what is counted, as Markdown."""
    every, (names, _) = shown.found.every, chart_sources(shown)
    found = headline(
        standings(every.assign(name=every["run"].map(shown.names)), measure.column),
        measure.metric,
        k=choice.k if measure.is_p_at_k else None,
        relations=scored_labels(choice.runs, choice.relations),
        source=names[0] if len(names) == 1 else "",
        counts=choice.counts,
        differ=comparison_basis(choice)[1],
    )
    ids = {title: run_id for run_id, title in shown.names.items()}
    draw_headline(found.text)
    more = said_of_best(shown, ids[found.order[0]], measure) if found.order else ""
    st.caption(f"{more} {comparison_basis(choice)[0]} {unscored(choice)}")
    with st.container(horizontal=True, key="ways"):
        if len(found.order) > 1:
            best, second = (ids[title] for title in found.order[:2])
            there = {**choice.params(), "tab": "Compare", "run_a": second, "run_b": best}
            links.draw_link("Compare the best two", "balance", screens.RESULTS, there)
    return plain(found.counted)


@cached(60)
def _bars(
    key: str,
    infos: tuple[RunInfo, ...],
    _shown: ShownScores,
    _measure: ScoreMeasure,
    _opened: Sequence[str],
    _is_best_first: bool,
) -> Figure:
    return bars(_shown, _measure, _opened, is_best_first=_is_best_first)


def _is_low(line: Line, measure: ScoreMeasure, column: str = "") -> bool:
    """Whether a mark, or a cell of this column, has a low score."""
    shows_score = column in ("", measure.column, "interval")
    return measure.is_p_at_k and shows_score and bool(line["p_at_k"] < LOW)


def _open(
    choice: RunChoice, shown: ShownScores, line: Line, measure: ScoreMeasure, column: str = ""
) -> None:
    """Open the facts behind a cell or mark, only the wrong ones if it has a low score."""
    found = shown.facts(line, column)
    if found is not None and _is_low(line, measure, column):
        found = replace(found, wrong=(line["run"],))
    open_behind(choice, found)


def _draw_totals(choice: RunChoice, by_relation: ShownScores, measure: ScoreMeasure) -> None:
    """Draw the rows of LAMA's Table 2, by relation type and source, with published scores."""
    head, box = st.columns([5, 4], vertical_alignment="bottom")
    shown = by_relation.asking(by="source")
    rows = _rows_of_totals(shown.found)
    over_facts = OVER_FACTS in set(rows["kind"])
    head.markdown(
        f"### {_heading(choice, measure)} by source and type of relation",
        help="ConceptNet: the paper's text averages over relations, as this table does for each "
        "source. Its released code treats ConceptNet as one relation and averages over facts, like "
        "the published values."
        if over_facts
        else None,
    )
    published, asked = [], st.query_params.get_all("published")
    is_manual = all(run.prompts == "manual" and run.ranks_words for run in choice.runs)
    if not (measure.is_p_at_k and choice.k == 1 and is_manual):
        if asked:
            links.set_param("published", asked)
            box.caption(
                "The published scores are P@1 with manual prompts, so they aren't shown here."
            )
    elif set(by_relation.frame["source"]) & set(published_scores()["source"]):
        of_paper = all(run.dataset in LAMA for run in choice.runs)
        published = box.multiselect(
            "Compare with published",
            published_table("petroni2019", "table2").columns,
            default=list(DEFAULT_PUBLISHED) if of_paper else [],
            key="published",
            bind=BOUND,
            placeholder="None",
            help="P@1 in percent, from Table 2 of Petroni et al. 2019, on LAMA's facts. Compare it "
            "with these runs only if they use the same facts and candidates.",
            select_all=False,
        )
    place = st.container(key="totals way")
    if published:
        for data, counts in dict.fromkeys(
            (run.dataset, tuple((part.source, part.n + part.n_excluded) for part in run.relations))
            for run in choice.runs
        ):
            draw_partial(data, counts, note="The published numbers cover all of LAMA's facts.")
    groups = rows.drop_duplicates(["source", "kind"])
    cell = _draw_scores(
        choice,
        shown,
        rows,
        measure,
        "totals table",
        [text("source"), text("kind", "type of relation")],
        [
            text(
                "n_relations",
                "relations",
                "Number of relations in the unweighted mean. 2 of 3: one relation has no scored "
                "fact. Several numbers: the models differ.",
                cell=lambda line: (
                    relations_counted(line["n_relations"], line["of_relations"]).removesuffix(
                        " relations"
                    )
                    or str(line["n_relations"])
                ),
            )
        ],
        more=[
            published_cells(source, kind, published)
            for source, kind in zip(groups["source"], groups["kind"], strict=True)
        ],
        more_columns={
            f"{name} *": st.column_config.NumberColumn(
                f"{name} *", format="%.1f", help="Published: Petroni et al. 2019, Table 2."
            )
            for name in published
        },
    )

    def describe(cell: Cell) -> str:
        source, kind = cell.line["source"], cell.line["kind"]
        return described(cell, choice, f"{source} {kind}" if kind in RELATION_TYPES else source)

    draw_facts_button(
        cell,
        describe,
        lambda cell: open_line(choice, shown, cell.line, cell.column),
        place,
        "totals facts",
    )
    if published:
        st.caption(
            "**\\***: published by Petroni et al. 2019, Table 2, on LAMA's facts and candidates."
        )
    for note in undefined_metrics(shown):
        st.caption(plain(note))
    if measure.is_p_at_k and (origins := list(origins_notes(shown))):
        with st.expander("Facts from the models' training sources", icon=":material/menu_book:"):
            st.markdown("\n".join(f"- {plain(note)}" for note in origins))
            st.caption("A fact of several sources counts for each of them.")
            there = {**choice.params(), "tab": "More", "chart": "Slices", "slice_by": ORIGIN}
            links.draw_link(f"P@{choice.k} by origin", "arrow_forward", screens.RESULTS, there)
    requests = [replace(shown.request, by="type"), shown.request]
    if over_facts:
        concepts = dict.fromkeys(
            relation.name
            for run in choice.runs
            for relation in run.relations
            if relation.source == CONCEPTNET
            and relation.name in (choice.relations or choice.labels)
        )
        requests.append(replace(shown.request, conceptnet="facts", relations=tuple(concepts)))
    draw_export(
        "totals",
        lambda: shown.found.totals,
        choice.made() | {"intervals": f"95 %, {METHOD_OF_MEANS}"},
        tuple(requests),
    )


def _rows_of_totals(found: RunScores) -> pd.DataFrame:
    """Return the rows of the table: of each source its types and its means.

    The column `kind` has the type, or what a mean is over.
    """
    rows = found.totals
    has_type = rows["by"] == "type"
    kind = rows["type"].where(has_type, rows["mean_over"].map("mean over {}".format))
    kind = kind.mask(~has_type & (rows["source"] != CONCEPTNET), OVER_RELATIONS)
    rows = rows.assign(kind=kind)
    n_types = rows[has_type & rows["kind"].isin(RELATION_TYPES)].groupby("source")["kind"].nunique()
    several = rows["source"].map(n_types) > 1
    rows = rows[~has_type | (rows["kind"].isin(RELATION_TYPES) & several)]
    sources = dict.fromkeys(found.by("source")["source"])
    order = [*sources, *RELATION_TYPES, OVER_RELATIONS, OVER_FACTS]
    return rows.sort_values(["source", "kind"], key=lambda names: names.map(order.index))


def _draw_relations(
    choice: RunChoice, shown: ShownScores, measure: ScoreMeasure, is_best_first: bool
) -> None:
    """Draw the table by relation; a cell opens the relation's scored or excluded facts."""
    if shown.frame["relation"].nunique() > N_WEAKEST:
        with st.container(horizontal=True, vertical_alignment="center", key="weakest"):
            worst = {
                name: measure.metric.shown(value) + " %" * measure.metric.is_share
                for name, value in weakest(shown, measure, N_WEAKEST).items()
            }
            level = f"**{len(worst)} relations at {next(iter(worst.values()), '')}**"
            head = "**Weakest relations**" if len(set(worst.values())) > 1 else level
            head += ", such as" * (len(worst) > MOST_WEAKEST)
            st.markdown(
                f"{head} (mean over the models)",
                width="content",
                help="The relations with the worst mean over the models. Click one to see the "
                "facts that are wrong, the most confident answers first.",
            )
            for name, said in islice(worst.items(), MOST_WEAKEST):
                if st.button(f"{plain(choice.labels[name])}: {said}", type="tertiary"):
                    open_facts(
                        choice,
                        relations=[choice.labels[name]],
                        wrong=list(choice.names),
                        sort=screens.CONFIDENT_FIRST,
                    )
    place = st.container(key="relations way")
    cell = _draw_scores(
        choice,
        shown,
        best_first(shown.frame, "relation", measure) if is_best_first else shown.frame,
        measure,
        "by relation table",
        [text("relation", cell=lambda line: short(choice.labels[line["relation"]], MOST_LETTERS))],
        [text("type"), text("source")],
    )

    def describe(cell: Cell) -> str:
        name = described(cell, choice, choice.labels[cell.line["relation"]])
        return name + ", wrong answers" * _is_low(cell.line, measure, cell.column)

    draw_facts_button(
        cell,
        describe,
        lambda cell: _open(choice, shown, cell.line, measure, cell.column),
        place,
        "relations facts",
        explains=False,
    )
    draw_view_export(choice, shown, name="relations", made={"intervals": f"95 %, {METHOD}"})


def _draw_scores(
    choice: RunChoice,
    shown: ShownScores,
    rows: pd.DataFrame,
    measure: ScoreMeasure,
    key: str,
    head: Sequence[Column],
    tail: Sequence[Column],
    **more: Any,
) -> Cell | None:
    """Draw a table of scores with columns for each run.

    head, tail: the columns before and after those of scores and numbers of facts.
    """
    keys = [column.name for column in head]
    return draw_wide(
        choice,
        shown,
        rows,
        key,
        [*head, *_columns(choice, shown, rows, measure), *tail],
        keys=keys,
        hidden=["interval"] if len(choice.titles) > MOST_INTERVALS else [],
        widths=WIDTHS if choice.same_counts else {**WIDTHS, "n": "small"},
        height="content" if len(rows.drop_duplicates(keys)) <= MOST_ROWS else 460,
        **more,
    )


def _columns(
    choice: RunChoice, shown: ShownScores, rows: pd.DataFrame, measure: ScoreMeasure
) -> list[Column]:
    """Return the columns of scores and numbers of facts, in the page's words."""
    known, counts = shown.columns, choice.counts
    chosen = [known[measure.column]]
    if measure.is_p_at_k:
        chosen[0] = replace(chosen[0], help=explain("P@k"))
        chosen.append(replace(known["interval"], label="interval"))
    same = choice.same_counts
    n = replace(
        known["n"],
        label="facts" if same else counts,
        help=f"{counts.capitalize()} that are scored{', the same number for every model' * same}.",
        of_run=not same,
    )
    if not same:
        chosen.append(n)
    if measure.is_p_at_k and choice.k == 1 and rows["freq"].notna().any():
        help = "P@1 of ranking words by how often they are objects of the relation."
        chosen.append(replace(known["freq"], label="Freq", help=help))
    if shown.guessable:
        # A run that doesn't record how many words it ranked has NaN here.
        if "n_answers" in rows:
            chosen.append(_as_text(known["n_answers"], explain("Answers ranked")))
        if measure.is_p_at_k:
            chosen.append(_as_text(known["chance"], explain("Chance")))
    if same:
        excluded = f"{explain('Excluded facts')} Click to see them."
        chosen += [n, replace(known["n_excluded"], help=excluded, of_run=False)]
    return chosen


def _as_text(column: Column, help_text: str) -> Column:
    """Return a column of texts, which shows all values if runs have different ones."""
    return text(
        column.name,
        column.label,
        help_text,
        cell=lambda line: column.format(line[column.name]),
    )


def published_cells(source: str, kind: str | None, columns: Sequence[str]) -> dict[str, Any]:
    """Return `MODEL *` -> published P@1 of a source or one of its relation types, in percent."""
    if not columns:
        return {}
    # The published means are over relations, except ConceptNet's.
    if kind == (OVER_FACTS if source == CONCEPTNET else OVER_RELATIONS):
        kind = None
    table = published_scores()
    rows = table[(table["source"] == source) & table["relation"].isna()]
    rows = rows[rows["type"].isna() if kind is None else rows["type"] == kind]
    values = rows.set_index("model")["p_at_1"]
    return {f"{name} *": percentage(values[name]) if name in values else None for name in columns}


SCORES, RANKS = "scores", "ranks"
VIEWS: dict[str, ViewFunction[..., Any, Any]] = {screens.CURVES: curves, RANKS: ranks}
ENLARGED = {screens.CURVES: draw_curves, RANKS: draw_histogram}
MOST_BESIDE = 14  # rows of the scores; with more, the other charts stand above them


def draw_dashboard(choice: RunChoice, bars: Figure) -> Line | None:
    """Draw the three charts; return a clicked mark of the scores whose facts are to be opened.

    bars: the scores, with columns `run`, `source` and `relation`.
    """
    if (choice.models or choice.relations) and st.button(
        "Wrong answers", icon=":material/fact_check:", type="tertiary", key="wrongs"
    ):
        open_facts(choice, wrong=[choice.names[0]], sort=screens.CONFIDENT_FIRST)
    ranked = choice.where(lambda run: run.has_ranks)
    is_wide = bars.frame[bars.by.column].nunique() > MOST_BESIDE
    large = st.query_params.get("large")
    names = (SCORES, *VIEWS) if ranked.runs else (SCORES,)
    if large in names:
        links.set_param("large", [large])
        if st.button("All charts", icon=":material/close_fullscreen:", type="tertiary"):
            _select(large=[])
        if large in ENLARGED:
            ENLARGED[large](ranked)
            return None
    with st.container(key="dashboard"):
        if not ranked.runs or large == SCORES:
            boxes: list[Any] = [st.container()]
        elif is_wide:  # the others first, because the scores may be longer than the screen
            boxes = list(st.columns(2, gap="medium"))
            boxes.insert(0, st.container())
        else:
            boxes = list(st.columns([5, 4, 4], gap="medium"))
        places = [box.container() for box in boxes]
        for name, box in zip(names, boxes, strict=False):  # below the charts
            if large != name and box.button(
                f"Enlarge {name}", icon=":material/open_in_full:", type="tertiary"
            ):
                _select(large=[name])
        with places[0]:  # next to the others at least 430 pixels high
            mark = draw_figure(
                choice, _short(bars), "precision chart", height=0 if is_wide else 430
            )
        for function, place in zip(VIEWS.values(), places[1:], strict=False):
            shown = ranked.view(function)
            with place:
                line = draw_figure(
                    ranked, _short(shown.figure), f"overview {function.view.name} chart"
                )
            if line is not None and mark is None:
                _select_model(choice, str(line["run"]))
                open_line(choice, shown, line)
    if mark is not None:
        relations = _relations_of(choice, mark)
        if relations and {*relations} != {*(choice.relations or choice.labels)}:
            _select(relations=choice.labels_of(relations))
        _select_model(choice, str(mark["run"]))
        return mark
    return None


def _short(figure: Figure) -> Figure:
    """Return a figure with a title of one line, so that charts side by side begin together."""
    return replace(figure, title=figure.title.partition(",")[0])


def _relations_of(choice: RunChoice, mark: Line) -> list[str]:
    """Return the relations of a row of the scores; [] of the row for all."""
    if isinstance(mark["relation"], str):
        return [mark["relation"]]
    if not isinstance(mark["source"], str):
        return []
    every = {one.name: one.source for run in choice.runs for one in run.relations}
    return [name for name in choice.relations or every if every.get(name) == mark["source"]]


def _select_model(choice: RunChoice, run_id: str) -> None:
    """Show the run alone, unless it is alone."""
    if len(choice.runs) < 2:
        return
    if choice.exact:
        _select(runs=[run_id])
    _select(models=[run.model for run in choice.runs if run.id == run_id])


def _select(**params: Sequence[str]) -> None:
    """Open the page with another choice of runs or relations."""
    links.go(screens.RESULTS, links.params_without(params) | {k: [*v] for k, v in params.items()})
