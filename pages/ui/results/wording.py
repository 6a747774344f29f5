"""Effect of wording on the same facts: paraphrases, negated and misprimed queries."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from lama_core import metrics
from lama_core.api.results import ResultsRequest
from lama_core.glossary import explain
from lama_core.rounding import percentage, rounded
from lama_core.runs.find import RunListing
from lama_core.runs.info import Run, RunInfo
from pages.ui.results.draw_view import open_facts
from pages.ui.shared import cache
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import plain
from pages.ui.shared.run_choice import RunChoice, run_names
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import title_of

ALTERED = ("negated", "misprimed")
SEVERAL = ("paraphrases", "ten-sentences")


def wording_runs(choice: RunChoice, listing: RunListing) -> tuple[list[RunInfo], list[RunInfo]]:
    """Return the shown models' runs on altered queries, and runs on several wordings of a fact."""
    models = {run.model for run in choice.runs}
    runs = [run for run in listing if run.dataset == choice.data and run.model in models]
    altered = [run for run in runs if run.kind == "contrast"]
    return altered, [run for run in runs if _has_several_wordings(run)]


def draw_wording(choice: RunChoice, listing: RunListing) -> None:
    """Draw both tables; if a table has no runs, name the runs that it needs."""
    altered, several = wording_runs(choice, listing)
    title = "Negated and misprimed queries compared with plain ones"
    if altered:
        st.markdown(f"### {title}", help=explain("Agreement with altered queries"))
        _draw(choice, altered, "contrast", _contrast_rows, _CONTRAST_COLUMNS)
    else:
        _draw_needs(choice, title, ALTERED)
    title = "The same fact in several wordings"
    if several:
        st.markdown(f"### {title}", help=explain("Consistency"))
        _draw(choice, several, "consistency", _consistency_rows, _CONSISTENCY_COLUMNS)
    else:
        _draw_needs(choice, title, SEVERAL)


def _has_several_wordings(run: RunInfo) -> bool:
    wordings = max((len(relation.templates) for relation in run.relations), default=0)
    return wordings > 1 or run.prompt_kind == "ten sentences"


def _draw_needs(choice: RunChoice, title: str, prompts: Sequence[str]) -> None:
    run = plain(f"a run of these models on {choice.data} with the prompts {' or '.join(prompts)}.")
    st.caption(f"**{title}** needs {run}")


def _contrast_rows(runs: list[Run], choice: RunChoice) -> pd.DataFrame:
    return pd.concat(
        [
            metrics.contrast(run, ranking=choice.ranking).assign(prompts=run.info.prompts)
            for run in runs
        ],
        ignore_index=True,
    )


def _consistency_rows(runs: list[Run], choice: RunChoice) -> pd.DataFrame:
    rows = [
        {
            "run": run.info.id,
            "prompts": run.info.prompts,
            "relation": line.relation,
            "n": line.n_facts,
            "wordings": line.n_prompts,
            "consistency": line.consistency,
            "accuracy": line.accuracy,
            "consistent": line.consistent_accuracy,
        }
        for run in runs
        for line in metrics.paraphrase_consistency(run.facts, ranking=choice.ranking)
    ]
    return pd.DataFrame(rows)


def _percent(label: str) -> Any:
    return st.column_config.NumberColumn(label, format="%.1f %%")


_CONTRAST_COLUMNS: dict[str, Any] = {
    "overlap": _percent("same first"),
    "spearman": st.column_config.NumberColumn("Spearman", format="%.2f"),
    "plain": _percent("P@1 plain"),
    "altered": _percent("P@1"),
}
_CONSISTENCY_COLUMNS: dict[str, Any] = {
    "wordings": st.column_config.NumberColumn("wordings", format="%d"),
    "consistency": _percent("consistency"),
    "accuracy": _percent("P@1"),
    "consistent": _percent("consistent P@1"),
}


def _draw(
    choice: RunChoice,
    infos: Sequence[RunInfo],
    what: str,
    make: Callable[[list[Run], RunChoice], pd.DataFrame],
    columns: dict[str, Any],
) -> None:
    """Draw the means by run, then a row per relation; a ticked row opens the relation's facts."""
    runs = tuple(infos)
    titles = run_names(runs, show=title_of)
    names = dict(zip([run.id for run in runs], titles, strict=True))
    table = cache.table_of_runs(what, runs, choice.ranking, (), lambda loaded: make(loaded, choice))
    if choice.relations:
        table = table[table["relation"].isin(choice.relations)].reset_index(drop=True)
    if table.empty:
        st.caption("The chosen relations aren't in these runs.")
        return
    labels = {r.name: choice.labels.get(r.name, r.name) for run in runs for r in run.relations}
    shown = table.assign(run=table["run"].map(names), relation=table["relation"].map(labels))
    config = columns | {"n": st.column_config.NumberColumn("facts", format="localized")}
    means = shown.groupby(["run", "prompts"], sort=False).agg(
        relations=("relation", "size"), n=("n", "sum"), **{name: (name, "mean") for name in columns}
    )
    draw_table(_as_shown(means.reset_index()), column_config=config)
    st.caption("Above: means over relations. Below: each relation. Tick a row to see its facts.")
    order = ["run", "prompts", "relation", "n", *columns]
    picked = draw_table(
        _as_shown(shown[order]),
        column_config=config,
        key=f"{what} by relation",
        picks="single-row",
        height=420 if len(shown) > 10 else "content",
    )
    if picked.rows:
        row = table.iloc[picked.rows[0]]
        open_facts(choice, runs=[row["run"]], relations=[labels[row["relation"]]])
    request = ResultsRequest(
        tuple(run.id for run in runs),
        ranking=choice.ranking,
        relations=choice.relations,
        wording=True,
    )
    made = {"runs": [run.id for run in runs], "ranking": choice.ranking}
    draw_export(what, lambda: table, made, request)


def _as_shown(table: pd.DataFrame) -> pd.DataFrame:
    """Round the numbers, shares in percent; browsers would round halves differently."""
    return table.assign(
        **{
            name: table[name].map(partial(rounded, digits=2) if name == "spearman" else percentage)
            for name in (*_CONTRAST_COLUMNS, *_CONSISTENCY_COLUMNS)
            if name in table and name != "wordings"
        }
    )
