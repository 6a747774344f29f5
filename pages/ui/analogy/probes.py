"""The chart Analogy probes: accuracies of finished runs, the paper's, and single decisions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from html import escape
from itertools import cycle
from statistics import fmean

import pandas as pd
import streamlit as st

from lama_core.glossary import explain
from lama_core.grouping import grouped
from lama_core.papers.analogies import (
    differs_from_paper,
    published_by_kind,
    published_by_relation,
    published_unmarked,
)
from lama_core.probes.analogy.accuracy_tables import (
    ALL,
    RELATION_KINDS,
    SHOWN_PROBES,
    UNMARKED,
    AccuracyBy,
    ProbeAccuracy,
    options_text,
)
from lama_core.probes.analogy.decisions import pair_from_text
from lama_core.probes.analogy.instances import PROBES, SETTINGS, Setting
from lama_core.probes.analogy.request import AnalogyRequest
from lama_core.probes.analogy.spec import ProbeRun, list_probe_runs
from lama_core.queries.analogy_templates import TEMPLATES, template_label
from lama_core.rounding import fixed, percentage, rounded
from lama_core.runs.find import list_runs
from lama_core.runs.info import FACT_KINDS, FACTS_FILE, RunInfo
from lama_core.views.analogies import (
    Accuracies,
    AnalogiesRequest,
    accuracy_figure,
    analogies,
    in_words,
)
from lama_core.views.colours import model_colours
from lama_core.views.figure import Figure
from lama_core.views.view import Shown
from pages.ui.analogy.frequency import draw_frequency
from pages.ui.analogy.new_probe import draw_form
from pages.ui.shared import cache, figures, links, screens, url_state
from pages.ui.shared.export import draw_export, request_of
from pages.ui.shared.messages import draw_headline, plain, show_error, show_note
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import BOUND, pick

PROBE_HELP = (
    "Rezaee and Camacho-Collados, section 2.2. **random** is the mean of the first two probes "
    "below.\n\n" + "\n\n".join(f"**{name}**: {probe.meaning}." for name, probe in PROBES.items())
)
EXCLUDED = "excluded"
MARKS = {
    "*": "\\* one-to-many: a wrong pair of the random probe may be true.",
    "†": "† bidirectional: a reversed pair may be true.",
}
SCORES = {"score": "score, right pair", "negative_score": "score, wrong pair"}


def draw_probes() -> None:
    """Draw the chart with its tables, and the form for a new probe."""
    found = list_probe_runs(on_problem=show_error)
    if not found:
        show_note(
            "There is no finished probe yet. A probe asks a model to choose between a right and a "
            "wrong pair for many analogies. Start one below."
        )
        draw_form()
        return
    wanted = "new_probe" in st.query_params
    form = st.container()
    if wanted:
        links.set_param("new_probe", ["true"])
    runs, setting, published = _choose(found)
    if not runs:
        show_note(
            "There is no run with this setting and these models. Choose others, or start one below."
        )
    else:
        names = _names(runs)
        by_model = model_colours(list(dict.fromkeys(run.info.model for run in runs)))
        colours = {run.info.id: by_model[run.info.model] for run in runs}
        _draw_kinds(runs, names, colours, setting, published)
        _draw_relations(runs, names, colours, setting)
        _draw_decisions(runs, names)
    with (form if wanted else st).expander(
        "New probe", icon=":material/play_arrow:", expanded=wanted
    ):
        draw_form()


def _choose(
    runs: Sequence[ProbeRun],
) -> tuple[tuple[ProbeRun, ...], Setting, tuple[str, ...]]:
    """Draw the choices; return the runs, their setting, and the published models to compare."""
    st.toggle("Choose data, models and setting", key="choosing")  # on phones
    with st.container(key="run-choice"):
        data_box, models_box, setting_box, published_box = st.columns(
            [3.4, 5.4, 3.1, 3.5], vertical_alignment="bottom"
        )
    datasets = list(dict.fromkeys(run.info.dataset for run in runs))
    # The URL may have the data of the other charts.
    facts = {run.dataset: datasets[0] for run in list_runs(kinds=FACT_KINDS)}
    links.replace_values("data", {name: facts[name] for name in facts if name not in datasets})
    data = url_state.choose("Data", datasets, key="data", place=data_box)
    of_data = [run for run in runs if run.info.dataset == data]
    kept = links.runs_of_url([run.info for run in of_data], of=data)
    of_data = sorted(  # baselines last
        (run for run in of_data if run.info.id in kept),
        key=lambda run: (run.details.method != "model", url_state.place_of(run.info.model)),
    )
    models = list(dict.fromkeys(run.info.model for run in of_data))
    links.replace_values("probed", {name: url_state.title_of(name) for name in models})
    chosen = models_box.multiselect(
        "Models",
        models,
        default=models,
        key="probed",
        bind=BOUND,
        format_func=url_state.title_of,
        placeholder="Choose models",
        select_all=False,
    )
    setting = pick(
        "Setting",
        [name for name in SETTINGS if any(run.details.setting == name for run in of_data)],
        key="setting",
        place=setting_box,
        help=explain("Unsupervised and supervised probes"),
    )
    published = published_box.multiselect(
        "Compare with published",
        list(dict.fromkeys(line.model for line in published_by_kind())),
        default=["RoBERTa-base", "fastText"],
        key="beside",
        bind=BOUND,
        placeholder="None",
        help="Table 1 of Rezaee and Camacho-Collados, on BATS 3.0. Only runs on the same pairs are "
        "comparable with it.",
        select_all=False,
    )
    wanted = (
        run
        for model in chosen
        for run in of_data
        if (run.info.model, run.details.setting) == (model, setting)
    )
    return tuple(wanted), setting, tuple(published)


def _names(runs: Sequence[ProbeRun]) -> dict[str, str]:
    """Run id -> name in charts: the model, and the options if they differ between its runs."""
    options: dict[str, set[str]] = {}
    for run in runs:
        options.setdefault(run.info.model, set()).add(options_text(run.details))
    return {
        run.info.id: url_state.title_of(run.info.model)
        + (f" ({options_text(run.details)})" if len(options[run.info.model]) > 1 else "")
        for run in runs
    }


def _legend(figure: Figure, colours: Mapping[str, str]) -> list[str]:
    """The legend of a chart of bars and open symbols, as HTML."""
    symbols, whole = cycle("◇□△○"), '<span style="white-space: nowrap">'
    return [
        f'{whole}<span style="color: {colours[key]}">■</span> {escape(name)}</span>'
        if key in colours
        else f"{whole}{next(symbols)} {escape(name)}</span>"
        for key, name in figure.names.items()
        if key in set(figure.frame["series"])
    ]


def _table(lines: Sequence[ProbeAccuracy], names: dict[str, str]) -> pd.DataFrame:
    """A row per accuracy: `who` is a run or published model, `value` and `spread` are percent."""
    return pd.DataFrame(
        [
            {
                "who": line.model if line.published else names[line.run.split(", ")[0]],
                "name": line.name,
                "kind": line.kind,
                "probe": line.probe,
                "value": percentage(line.accuracy, 6),
                "spread": None if line.spread is None else percentage(line.spread, 6),
                "mark": line.mark,
                "n": line.n,
                "n_excluded": line.n_excluded,
                "p_value": line.p_value,
                "published": line.published,
            }
            for line in lines
        ]
    )


def _accuracies(runs: Sequence[ProbeRun], by: AccuracyBy) -> Shown[AnalogiesRequest, Accuracies]:
    """The accuracies of these runs by kind of relation or by relation, cached."""
    request = AnalogiesRequest(tuple(run.info.id for run in runs), by=by)
    return cache.shown(analogies.view, request, tuple(run.info for run in runs), _names(runs))


def _draw_kinds(
    runs: Sequence[ProbeRun],
    names: dict[str, str],
    colours: dict[str, str],
    setting: Setting,
    published: Sequence[str],
) -> None:
    """Draw accuracy by kind of relation, a chart per probe, as in the paper's Table 1."""
    shown = _accuracies(runs, "kind")
    theirs = [
        line
        for line in (*published_by_kind(), *published_unmarked())
        if line.model in published and line.setting == setting
    ]
    lines = [*shown.found, *theirs]
    table = _table(lines, names)
    draw_headline(shown.conclusion)
    st.caption(
        "The query is *Tokyo : Japan*, the right pair *Paris : France*. Wrong pair on **random**: "
        "one word is of another pair, *Paris : Italy*; **reverse**: a pair turned round, *Italy : "
        "Rome*; **type**: two words of one side, *Paris : Rome*."
    )
    st.markdown("### Accuracy by kind of relation", help=PROBE_HELP)
    order = [kind for kind in (*RELATION_KINDS, ALL, UNMARKED) if (table["name"] == kind).any()]
    models = grouped(
        (options_text(run.details) or run.details.method, url_state.title_of(run.info.model))
        for run in runs
    )
    options = "; ".join(
        f"{' and '.join(dict.fromkeys(names))}: " * (len(models) > 1) + options
        for options, names in models.items()
    )
    for key, sentence in TEMPLATES.items():
        options = options.replace(f"template {key}", f"template “{sentence}”")
    drawn = {
        probe: accuracy_figure(shown, probe, setting, theirs)
        for probe in SHOWN_PROBES
        if (table["probe"] == probe).any()
    }
    legend = dict.fromkeys(name for figure in drawn.values() for name in _legend(figure, colours))
    st.html(" &emsp; ".join(legend))
    with st.container(key="probe-charts"):  # below each other where they would be narrow
        boxes = st.columns(len(SHOWN_PROBES), gap="small")
    for probe, box in zip(SHOWN_PROBES, boxes, strict=True):
        with box:
            if probe in drawn:  # a caption below the charts says what they count
                figure = replace(drawn[probe], title=f"{probe}, {setting}", caption="")
                figures.draw_figure(figure, colours, f"kinds {probe}", legend=False)
            else:
                st.caption(f"{probe}: not run")
    st.caption(
        f"{plain(options)}. Relations with fewer instances are used whole. A kind's accuracy is "
        "the mean over its relations. The line at 50 % is chance."
        + " Whiskers: ± the standard deviation over the classifier's seeds, not an interval over "
        "decisions."
        * (setting == "supervised")
        + f" *{UNMARKED}*: only encyclopedic and lexicographic relations that are neither "
        "one-to-many nor bidirectional; published only for RoBERTa-large, supervised."
        * (UNMARKED in order)
    )
    with st.expander("As a table", icon=":material/table:"):
        pinned = st.column_config.TextColumn(pinned=True)
        table["cell"] = table.apply(_cell, axis="columns")
        wide = table.pivot_table("cell", ["who", "probe"], "name", aggfunc="first")[order]
        models_of_rows = [*dict.fromkeys(names.values()), *published]
        rows = pd.MultiIndex.from_product([models_of_rows, SHOWN_PROBES], names=["model", "probe"])
        draw_table(
            wide.reindex(rows).dropna(how="all").fillna("").reset_index(),
            width="stretch",
            column_config={"model": pinned, "probe": pinned},
        )
    if published:
        differences = dict.fromkeys(text for run in runs for text in differs_from_paper(run))
        if differences:
            st.warning(
                f"Differs from the paper: {plain('; '.join(differences))}.",
                icon=":material/warning:",
            )
        else:
            st.caption(
                "On BATS, as in the paper. The paper doesn't say which tails make up a relation's "
                "100 pairs, how the pairs are halved, and which negatives are drawn: the project "
                "chose these."
            )
    requests = dict.fromkeys(request_of(run.info) for run in runs)
    draw_export(
        "analogy-probes",
        lambda: pd.DataFrame([asdict(line) for line in lines]),
        {"runs": [run.info.id for run in runs], "options": options},
        tuple(
            replace(request, setting=setting)
            for request in requests
            if isinstance(request, AnalogyRequest)
        )
        or None,
    )


def _cell(line: pd.Series) -> str:
    spread = line["spread"]
    around = f" ± {fixed(spread, 1)}" if isinstance(spread, float) and spread == spread else ""
    return f"{fixed(line['value'], 1)}{line['mark']}{around}"


def _draw_relations(
    runs: Sequence[ProbeRun], names: dict[str, str], colours: dict[str, str], setting: Setting
) -> None:
    """Draw one probe by relation as in the paper's Table 2, with marks and frequency test."""
    st.markdown(
        "### Accuracy by relation",
        help="*p* comes from a "
        "Kolmogorov-Smirnov test: do the pairs that a model gets wrong have rarer or more frequent "
        "words than those it gets right?",
    )
    first = {one: run.info.id for run in runs[::-1] for one in run.details.probe.split("-")}
    first |= {run.details.probe: run.info.id for run in runs[::-1]}

    def follow() -> None:  # the decisions below are of the chart's probe
        st.session_state["run"] = first.get(st.session_state["probe"])

    probe = pick("Probe", ("random", *PROBES), key="probe", help=PROBE_HELP, on_change=follow)
    shown = _accuracies(runs, "relation")
    every = _table(shown.found, names)
    table = every[every["probe"] == probe]
    if table.empty:
        st.caption("This probe has no finished run.")
        return
    figure = replace(accuracy_figure(shown, str(probe), setting), caption="")
    figures.draw_figure(figure, colours, f"relations {probe}")
    found = "".join(table["mark"])
    if marks := " ".join(text for mark, text in MARKS.items() if mark in found):
        st.caption(marks)
    with st.expander("As a table, with the frequency test and the paper's Table 2"):
        labelled = table.assign(label=(table["name"] + " " + table["mark"]).str.strip())
        wide = labelled.pivot_table("value", ["kind", "label"], "who", sort=False)
        draw_table(wide.map(partial(rounded, digits=3)).reset_index())
        draw_frequency(every, probe)
        paper = _table(published_by_relation(), names)
        paper["shown"] = paper["value"].map(lambda value: fixed(value, 2)) + paper["mark"]
        st.caption("Table 2 of Rezaee and Camacho-Collados: RoBERTa-large, supervised, BATS 3.0")
        draw_table(
            paper.pivot_table(
                index=["kind", "name"], columns="probe", values="shown", aggfunc="first", sort=False
            ).reset_index(),
        )


def _draw_decisions(runs: Sequence[ProbeRun], names: dict[str, str]) -> None:
    """Draw the decisions of one run on one relation, each with its query and pairs."""
    st.markdown("### The decisions behind the numbers")
    run_box, relation_box, which_box = st.columns([4, 3, 3], vertical_alignment="bottom")
    ids = [run.info.id for run in runs]
    by_id = {run.info.id: run for run in runs}

    def accuracy_of(name: str) -> float:
        found = (one.accuracy for one in by_id[name].details.relations)
        return fmean([one for one in found if one is not None] or [math.inf])

    run_id = run_box.selectbox(
        "Run",
        ids,
        index=ids.index(min(ids, key=accuracy_of)),
        key="run",
        bind=BOUND,
        format_func=lambda name: f"{names[name]}: {by_id[name].details.probe}",
        help=f"Initially the run with the lowest mean accuracy over relations.\n\n{PROBE_HELP}",
    )
    run = by_id[run_id]
    relations = run.details.relations
    known = [relation.name for relation in relations]
    # Where a word has several partners, a pair that counts as wrong can be true.
    clear = [one for one in relations if not (one.one_to_many or one.bidirectional)]
    hardest = min(clear or relations, key=lambda one: 2 if one.accuracy is None else one.accuracy)
    relation = url_state.choose(
        "Relation",
        known,
        key="relation",
        first=hardest.name,
        show=in_words,
        place=relation_box,
        help="Initially the relation with the lowest accuracy, of those without a mark.",
    )
    which = pick("Show", ("wrong", "right", EXCLUDED), key="which", place=which_box)
    rows = decision_rows(run.info, relation, str(which))
    if rows.empty:
        st.caption("None.")
        return
    picked = draw_table(
        rows,
        width="stretch",
        height=min(420, 38 + 35 * len(rows)),
        picks="single-row",
        key="decisions",
        column_config={
            name: st.column_config.NumberColumn(name, format="%.2f") for name in SCORES.values()
        },
    ).rows
    if run.details.setting == "unsupervised" and which != EXCLUDED:
        if not picked:
            st.caption("Tick a row, or tap its card, to score its pairs token by token on Ask.")
        elif st.button("Show the scores token by token", icon=":material/search:"):
            row, options = rows.iloc[picked[0]], run.details.options
            query, right, wrong = (
                ":".join(pair_from_text(row[name]))
                for name in ("query", "right pair", "wrong pair")
            )
            params = {
                **screens.ANALOGIES,
                "analogy": "Score",
                "query": query,
                "pairs": f"{right}, {wrong}",
            }
            if run.details.method == "model":
                params |= {
                    "score_template": template_label(options.template),
                    "normalise": options.normalise,
                    "models": [run.info.model],
                }
            links.go(screens.ASK, params)


def decision_rows(info: RunInfo, relation: str, which: str) -> pd.DataFrame:
    """The decisions on one relation. which: `wrong`, `right` or `excluded`."""
    import pyarrow.compute as pc

    from lama_core.runs.facts_table import read_columns

    table = read_columns(info.path(FACTS_FILE))
    frame = table.filter(pc.equal(table["relation"].cast("string"), relation)).to_pandas()
    names = {"subject": "query", "object": "pair"}
    if which == EXCLUDED:
        frame, names["excluded"] = frame[frame["excluded"].notna()], "reason"
    else:
        frame = frame[frame["rank_raw"] == (1 if which == "right" else 2)]
        if frame["seed"].notna().any():
            names |= {"label": "a true analogy", "seed": "seed"}
        else:
            names |= {"object": "right pair", "negative": "wrong pair", **SCORES}
    return frame[[*names]].rename(columns=names).reset_index(drop=True)
