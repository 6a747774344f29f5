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
from lama_core.papers.rezaee2022 import (
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
DEFAULT_PUBLISHED = ("RoBERTa-base", "fastText")
EXCLUDED = "excluded"
EXAMPLE = (
    "The query is *Tokyo : Japan*, the right pair *Paris : France*. Wrong pair on **random**: one "
    "word is of another pair, *Paris : Italy*; **reverse**: a pair turned round, *Italy : Rome*; "
    "**type**: two words of one side, *Paris : Rome*."
)
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
        _draw_kinds(runs, names, setting, published)
        _draw_relations(runs, names, setting)
        _draw_decisions(runs, names)
    place = form if wanted else st.container()
    with place.expander("New probe", icon=":material/play_arrow:", expanded=wanted):
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
    of_data = [run for run in of_data if run.info.id in kept]
    of_data.sort(key=lambda run: url_state.place_of(run.info.model))
    of_data.sort(key=lambda run: run.details.method != "model")  # baselines last
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
    settings = [name for name in SETTINGS if any(run.details.setting == name for run in of_data)]
    setting = pick(
        "Setting",
        settings,
        key="setting",
        place=setting_box,
        help=explain("Unsupervised and supervised probes"),
    )
    known = list(dict.fromkeys(line.model for line in published_by_kind()))
    published = published_box.multiselect(
        "Compare with published",
        known,
        default=list(DEFAULT_PUBLISHED),
        key="beside",
        bind=BOUND,
        placeholder="None",
        help="Table 1 of Rezaee and Camacho-Collados, on BATS 3.0. Only runs on the same pairs are "
        "comparable with it.",
        select_all=False,
    )
    of_setting = [run for run in of_data if run.details.setting == setting]
    wanted = [run for model in chosen for run in of_setting if run.info.model == model]
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


def _colours(runs: Sequence[ProbeRun]) -> dict[str, str]:
    """Run id -> colour of its model."""
    by_model = model_colours(list(dict.fromkeys(run.info.model for run in runs)))
    return {run.info.id: by_model[run.info.model] for run in runs}


def _draw(figure: Figure, key: str, colours: dict[str, str], legend: bool | None = None) -> None:
    alone = replace(figure, caption="")  # the page says below the charts what they count
    figures.draw_figure(alone, colours, key, legend=legend)


def _legend(figure: Figure, colours: Mapping[str, str]) -> list[str]:
    """The legend of a chart of bars and open symbols, as HTML."""
    drawn = set(figure.frame["series"])
    symbols, whole = cycle("◇□△○"), '<span style="white-space: nowrap">'
    return [
        f'{whole}<span style="color: {colours[key]}">■</span> {escape(name)}</span>'
        if key in colours
        else f"{whole}{next(symbols)} {escape(name)}</span>"
        for key, name in figure.names.items()
        if key in drawn
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
    runs: Sequence[ProbeRun], names: dict[str, str], setting: Setting, published: Sequence[str]
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
    st.caption(EXAMPLE)
    st.markdown("### Accuracy by kind of relation", help=PROBE_HELP)
    colours = _colours(runs)
    order = [kind for kind in (*RELATION_KINDS, ALL, UNMARKED) if (table["name"] == kind).any()]
    # What the runs' options have in common, then each model's others.
    parts = {one: options_text(one.details).split(", ") for one in runs}
    shared = [part for part in parts[runs[0]] if all(part in own for own in parts.values())]
    others: dict[str, dict[str, None]] = {}  # options -> the models that have them
    for one, own in parts.items():
        special = ", ".join(part for part in own if part not in shared) or one.details.method
        others.setdefault(special, {})[url_state.title_of(one.info.model)] = None
    said = [", ".join(shared)]
    if len(others) > 1 or list(others) != [""]:
        said += [f"{' and '.join(models)}: {special}" for special, models in others.items()]
    options = "; ".join(filter(None, said))
    for key, sentence in TEMPLATES.items():
        options = options.replace(f"template {key}", f"template “{sentence}”")
    done = [probe for probe in SHOWN_PROBES if (table["probe"] == probe).any()]
    drawn = {probe: accuracy_figure(shown, probe, setting, theirs) for probe in done}
    legend = dict.fromkeys(name for figure in drawn.values() for name in _legend(figure, colours))
    st.html(" &emsp; ".join(legend))
    with st.container(key="probe-charts"):  # below each other where they would be narrow
        boxes = st.columns(len(SHOWN_PROBES), gap="small")
    for probe, box in zip(SHOWN_PROBES, boxes, strict=True):
        with box:
            if probe in drawn:
                figure = replace(drawn[probe], title=f"{probe}, {setting}")
                _draw(figure, f"kinds {probe}", colours, legend=False)
            else:
                st.caption(f"{probe}: not run")
    caption = (
        f"{plain(options)}. Relations with fewer instances are used whole. A kind's accuracy is "
        "the mean over its relations. The line at 50 % is chance."
    )
    if setting == "supervised":
        caption += (
            " Whiskers: ± the standard deviation over the classifier's seeds, not an interval over "
            "decisions."
        )
    if UNMARKED in order:
        caption += (
            f" *{UNMARKED}*: only encyclopedic and lexicographic relations that are neither "
            "one-to-many nor bidirectional; published only for RoBERTa-large, supervised."
        )
    st.caption(caption)
    with st.expander("As a table", icon=":material/table:"):
        pinned = st.column_config.TextColumn(pinned=True)
        by_cell = table.drop_duplicates(["name", "who", "probe"]).set_index(
            ["name", "who", "probe"]
        )
        cells = {key: _cell(row) for key, row in by_cell.iterrows()}
        rows = [
            {"model": model, "probe": probe}
            | {name: cells.get((name, model, probe), "") for name in order}
            for model in [*dict.fromkeys(names.values()), *published]
            for probe in SHOWN_PROBES
        ]
        wide = pd.DataFrame(row for row in rows if any([*row.values()][2:]))
        draw_table(wide, width="stretch", column_config={"model": pinned, "probe": pinned})
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


def _draw_relations(runs: Sequence[ProbeRun], names: dict[str, str], setting: Setting) -> None:
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
    all_lines = shown.found
    lines = [line for line in all_lines if line.probe == probe]
    if not lines:
        st.caption("This probe has no finished run.")
        return
    table = _table(lines, names)
    table["label"] = table["name"] + table["mark"].map(lambda mark: f" {mark}" if mark else "")
    _draw(accuracy_figure(shown, str(probe), setting), f"relations {probe}", _colours(runs))
    found = "".join(table["mark"])
    if marks := " ".join(text for mark, text in MARKS.items() if mark in found):
        st.caption(marks)
    with st.expander("As a table, with the frequency test and the paper's Table 2"):
        wide = table.pivot_table(index=["kind", "label"], columns="who", values="value", sort=False)
        draw_table(wide.map(partial(rounded, digits=3)).reset_index())
        draw_frequency(all_lines, names, probe)
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
    accuracies = {
        run.info.id: [one.accuracy for one in run.details.relations if one.accuracy is not None]
        for run in runs
    }
    lowest = min(ids, key=lambda name: fmean(accuracies[name] or [math.inf]))
    run_id = run_box.selectbox(
        "Run",
        ids,
        index=ids.index(lowest),
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
    url_state.drop_stale("relation", known)
    shown = st.session_state.get("relation", hardest.name)
    url_state.note_unknown(
        "Relation", "relation", {name: in_words(name) for name in known}, in_words(shown)
    )
    relation = relation_box.selectbox(
        "Relation",
        known,
        index=known.index(hardest.name),
        key="relation",
        bind=BOUND,
        format_func=in_words,
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
            right, wrong = (
                ":".join(pair_from_text(row[name])) for name in ("right pair", "wrong pair")
            )
            params = {
                **screens.ANALOGIES,
                "analogy": "Score",
                "query": ":".join(pair_from_text(row["query"])),
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
    if which == EXCLUDED:
        chosen = frame[frame["excluded"].notna()]
        return chosen[["subject", "object", "excluded"]].rename(
            columns={"subject": "query", "object": "pair", "excluded": "reason"}
        )
    chosen = frame[frame["rank_raw"] == (1 if which == "right" else 2)]
    if frame["seed"].notna().any():
        return chosen[["subject", "object", "label", "seed"]].rename(
            columns={"subject": "query", "object": "pair", "label": "a true analogy"}
        )
    rows = chosen[["subject", "object", "negative", "score", "negative_score"]].rename(
        columns={
            "subject": "query",
            "object": "right pair",
            "negative": "wrong pair",
            **SCORES,
        }
    )
    return rows.reset_index(drop=True)
