"""The chart Causal traces: a relation's average effect of each token role at each layer."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from lama_core.glossary import explain
from lama_core.probes.tracing.roles import ROLES
from lama_core.probes.tracing.traces import ALL_FACTS, trace_runs
from lama_core.rounding import fixed
from lama_core.runs.find import RunListing
from lama_core.runs.info import RunInfo
from lama_core.views.colours import PALETTE
from lama_core.views.figure import Axis, Figure, relation_label, said
from pages.ui.shared import cache, links, screens
from pages.ui.shared.export import draw_export, request_of
from pages.ui.shared.figures import draw_figure
from pages.ui.shared.messages import counted, draw_headline, plain
from pages.ui.shared.run_choice import RunChoice
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import choose, title_of

MOST_FACTS = 500  # rows of the table on screen; the export has all
FEW_FACTS = 12  # with fewer, the page says that the average is of few facts
PARTS = {"states": "hidden states", "attention": "attention", "mlp": "MLPs"}
INKS = dict(zip(ROLES, (PALETTE[6], *PALETTE[1:5], PALETTE[0]), strict=True))


def traces_need(choice: RunChoice, _: RunListing) -> str:
    """Return what is missing for the chart, in words; empty if nothing is missing."""
    if trace_runs(choice.data):
        return ""
    return "a run of causal traces on this data, which `lama-explorer trace` makes"


def draw_traces(choice: RunChoice, _: RunListing) -> Sequence[RunInfo]:
    """Draw the average effects of a run, and the facts behind a point; return the run."""
    with st.container(key="way-choice"):
        boxes = st.columns(2, vertical_alignment="bottom")
    runs = {run.id: run for run in trace_runs(choice.data)}
    names, shown = _names(runs), [run.model for run in choice.runs]
    first = next((name for name, run in runs.items() if run.model in shown), "")
    chosen = choose(
        "Run", list(runs), key="trace_run", first=first, show=names.__getitem__, place=boxes[0]
    )
    info = runs[chosen]
    if choice.only:
        st.caption("Traces are of all facts of their run, not only of the chosen facts.")
    traced = sorted((one for one in info.relations if one.n), key=lambda one: -one.n)
    labels = {one.name: relation_label(one.name, one.label) for one in traced}
    options = [*labels, *([ALL_FACTS] if len(labels) > 1 else [])]
    first_relation = next((name for name in choice.relations if name in labels), "")
    relation = choose(
        "Relation",
        options,
        key="trace_relation",
        first=first_relation,
        show=lambda name: labels.get(name, name),
        place=boxes[1],
    )
    found = cache.traces_of(info, relation)
    st.markdown(
        "The subject is made unreadable with random noise, which makes the answer less likely. "
        "Then the values of one layer at one token are put back. If the answer's probability "
        "returns, the fact passed through there."
    )
    how, best, n = found.options, found.largest, int(found.effects["n"].max())
    low, last = found.best_layers
    layers = f"one of the layers {low} to {last}" if last > low else f"layer {low}"
    of = counted(len(labels), "relation") if relation == ALL_FACTS else labels[relation]
    up_to, blank = "up to " * (last > low), found.at_blank
    draw_headline(
        f"{title_of(info.model)}: restoring {layers} at the {best.role} raises the right "
        f"answer's probability by {up_to}{fixed(best.effect, 2)}, restoring layer {blank.layer} at "
        f"the blank by {fixed(blank.effect, 2)}; means over {counted(n, 'fact')} of {of}",
        help=explain("Causal trace"),
    )
    few = f" Fewer than {FEW_FACTS} facts: the intervals are wide." * (n < FEW_FACTS)
    window = "" if how.part == "states" else " in the paper's share of the layers"
    window = f" in {counted(how.window, 'layer')}" if how.window else window
    excluded = "".join(
        f" Excluded from the run, all relations together: {counted(number, 'fact')} ({reason})."
        for reason, number in found.reasons.items()
    )
    part = PARTS[how.part] if how.part != "states" else "the values of a layer (hidden states)"
    st.caption(
        "Only facts whose right answer is the model's first answer. Restored: "
        f"{part}{window}.{few}" + plain(excluded),
        help=f"{counted(how.draws, 'draw')} of noise on the subject for each fact.",
    )
    title = f"Effect of restored {PARTS[how.part]} by token role, {title_of(info.model)}"
    footnote = f"{info.dataset}, {relation}, {counted(how.draws, 'draw')} of noise"
    figure = effect_lines(found.effects, title, footnote)
    line = draw_figure(figure, INKS, "trace averages", height=380)
    fewer = found.effects.groupby("role")["n"].max().nunique() > 1
    st.caption(
        "Effect: the right answer's probability with the layer restored at tokens of this role, "
        "minus its probability with noise alone. Bands: 95 % intervals over facts. "
        + "Not every subject has tokens of all roles: the legend has the lower numbers of facts. "
        * fewer
        + "Lines at 0 hide each other. Click a point to see its facts."
    )
    at = (line["layer"], line["role"]) if line else (best.layer, best.role)
    draw_export("traces", lambda: found.effects, {"run": info.id}, request_of(info))
    _draw_facts(info, found.facts, at)
    return [info]


def _names(runs: dict[str, RunInfo]) -> dict[str, str]:
    """Return id -> unique name for display."""
    names: dict[str, str] = {}
    for name, run in runs.items():
        part = PARTS.get(run.prompts.removeprefix("trace "), run.prompts)
        limit = f", first {run.limit} a relation" if run.limit else ""
        shown = run.title or f"{title_of(run.model)}, {part}{limit}"
        names[name] = shown if shown not in names.values() else f"{shown}, {run.digest[:6]}"
    return names


def effect_lines(effects: pd.DataFrame, title: str, caption: str) -> Figure:
    """Return average effects by layer as a line for each role, with a band for its intervals.

    effects: the columns of `RoleEffect`, of one relation.
    """
    lines = []
    for row in effects.to_dict("records"):
        known = row["low"] is not None and row["low"] == row["low"]
        lines.append(
            said(
                f"{row['role']}, layer {row['layer']}: {fixed(row['effect'], 3, signed=True)}",
                f"95 % interval: {fixed(row['low'], 2)} to {fixed(row['high'], 2)}"
                if known
                else "",
                counted(row["n"], "fact"),
            )
        )
    # If all facts have the same effect, there is no interval: the band has no width.
    ends = {end: effects[end].fillna(effects["effect"]).astype(float) for end in ("low", "high")}
    last, n = int(effects["layer"].max()), effects.groupby("role")["n"].max()
    of_fewer = {role: f" ({counted(int(of), 'fact')})" for role, of in n.items() if of < n.max()}
    return Figure(
        shape="lines",
        frame=effects.assign(said=lines, **ends),
        by=Axis(
            column="layer",
            title="layer",
            ticks={layer: str(layer) for layer in range(1, last + 1, 1 + last // 16)},
        ),
        value=Axis(column="effect", title="mean effect on the answer's probability"),
        series="role",
        names={role: role + of_fewer.get(role, "") for role in ROLES},
        low="low",
        high="high",
        bands=True,
        title=title,
        caption=caption,
    )


def _draw_facts(info: RunInfo, rows: pd.DataFrame, at: tuple[int, str]) -> None:
    """Draw the facts behind a point; a row opens the fact's trace on Ask."""
    layer, role = at
    chosen = rows[(rows["layer"] == layer) & (rows["role"] == role)]
    chosen = chosen.sort_values("effect", ascending=False, kind="stable")
    shown = chosen.head(MOST_FACTS)
    st.markdown(f"### {counted(len(chosen), 'fact')}: layer {layer}, {role}")
    several = shown["relation"].nunique() > 1
    picked = draw_table(
        pd.DataFrame(
            {
                "subject": shown["subject"],
                **({"relation": shown["relation"]} if several else {}),
                "right answer": shown["object"],
                "without noise": shown["prob"],
                "with noise": shown["corrupted"],
                "effect": shown["effect"],
            }
        ),
        key=f"traced facts {layer} {role}",
        picks="single-row",
        height=420 if len(shown) > 10 else "content",
        column_config={
            name: st.column_config.NumberColumn(name, format="%.3f", help=meaning)
            for name, meaning in (
                ("without noise", "Probability of the right answer."),
                ("with noise", "The same with noise on the subject, mean over the draws."),
                ("effect", "Probability with the restoration, minus the probability with noise."),
            )
        },
    )
    first = f"the first {MOST_FACTS:,} of " * (len(chosen) > MOST_FACTS)
    st.caption(
        f"Shown: {first}{counted(len(chosen), 'fact')}. Tick a row, or tap its card, "
        "to trace its sentence on Ask."
    )
    if picked.rows:
        fact = shown.iloc[picked.rows[0]]
        (template, *_) = info.relation(str(fact["relation"])).templates
        text = template.replace("[X]", str(fact["subject"])).replace("[Y]", "[MASK]")
        asked = {"text": text, "gold": str(fact["object"]), "models": [info.model]}
        links.go(screens.ASK, {**asked, "look": "Causal trace", "subject": str(fact["subject"])})
    draw_export("traced facts", lambda: rows, {"run": info.id}, request_of(info))
