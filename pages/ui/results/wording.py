"""Effect of wording on the same facts: paraphrases, negated and misprimed queries."""

from dataclasses import replace

import streamlit as st

from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.runs.find import RunListing
from lama_core.runs.info import RunInfo
from lama_core.tables import count
from lama_core.views.wording import in_all, wording
from pages.ui.results.draw_view import draw_rows, draw_shown, draw_view_export, open_line
from pages.ui.results.new_run import WORDS_AT_BLANK
from pages.ui.shared import links, screens
from pages.ui.shared.messages import counted, plain
from pages.ui.shared.run_choice import RunChoice, unscored, words_compared

ALTERED = ("negated", "misprimed")
SEVERAL = ("paraphrases", "ten-sentences")
# Part -> its title, the term of the glossary, and what is asked.
PARTS = {
    "contrast": (
        "Negated and misprimed queries compared with plain ones",
        explain("Agreement with altered queries"),
        "A **negated** query denies the fact: *The capital of France is not ___.* To name Paris is "
        "then wrong. A **misprimed** query has a misleading word in front: *Talk? The capital of "
        "France is ___.* Paris is still right.",
    ),
    "consistency": ("The same fact in several wordings", explain("Consistency"), ""),
}


def wording_runs(choice: RunChoice, listing: RunListing) -> tuple[list[RunInfo], list[RunInfo]]:
    """Return runs on altered queries, and runs on several wordings of a fact.

    The chosen runs if any is one, else all of the chosen models.
    """
    models = list(dict.fromkeys(run.model for run in choice.runs))
    of_data = [run for run in listing if run.dataset == choice.data and run.model in models]
    runs = _chosen(choice) or sorted(of_data, key=lambda run: models.index(run.model))
    several = [run for run in runs if run.kind != "ensemble" and _has_several_wordings(run)]
    return [run for run in runs if run.kind == "contrast"], several


def _chosen(choice: RunChoice) -> list[RunInfo]:
    """Return the chosen runs that ask facts in other or several wordings."""
    return [run for run in choice.runs if run.kind == "contrast" or _has_several_wordings(run)]


def draw_wording(choice: RunChoice, listing: RunListing) -> None:
    """Draw both tables; if a table has no runs, name the runs that it needs."""
    altered, several = wording_runs(choice, listing)
    found = {run.model for run in (*altered, *several)}
    lacking = choice.where(lambda run: run.model not in found)
    if lacking.runs:
        with st.container(horizontal=True, vertical_alignment="center"):
            titles = plain(", ".join(lacking.titles))
            st.caption(f"Models without such a run: {titles}.", width="content")
            if st.button("Start a run", icon=":material/play_arrow:", type="tertiary"):
                st.session_state["new models"] = [run.model for run in lacking.runs]
                form = {"data": choice.data, "run_rank": WORDS_AT_BLANK, "run_prompts": ALTERED[0]}
                links.go(screens.DATA, {**screens.NEW_RUN, **form})
    for what, runs, prompts in (("contrast", altered, ALTERED), ("consistency", several, SEVERAL)):
        title, help_text, meaning = PARTS[what]
        if runs:
            st.markdown(f"### {title}", help=help_text)
            st.markdown(meaning)
            _draw(choice.with_runs(runs), what)
        elif not _chosen(choice):
            data, names = plain(choice.data), " or ".join(prompts)
            st.caption(
                f"**{title}** needs a run of these models on {data} with the prompts {names}."
            )


def _has_several_wordings(run: RunInfo) -> bool:
    wordings = max((len(relation.templates) for relation in run.relations), default=0)
    return wordings > 1 or run.prompt_kind == "ten sentences"


def _draw(choice: RunChoice, what: str) -> None:
    """Draw the means by run, then a row per relation; a ticked row opens the relation's facts."""
    try:
        shown = choice.view(wording)
    except UserError as error:
        st.caption(plain(str(error)))
        return
    is_contrast = what == "contrast"
    frame = shown.found.altered if is_contrast else shown.found.agreement
    common = in_all(frame)
    st.caption(f"{words_compared(choice)[0]} {unscored(choice)}")
    draw_shown(choice, shown, f"{what} chart", alone=True)
    n, names = "n_facts", "n_prompts consistency accuracy consistent_accuracy"
    if is_contrast:
        n, names = "n", "overlap spearman plain altered"
    named = all(info.prompts in shown.names[info.id] for info in shown.infos)
    head = shown.chosen("run" if named else "run prompts")
    measures = [
        replace(one, label="wordings") if one.name == "n_prompts" else one
        for one in shown.chosen(f"{n} {names}")
    ]
    means = common.groupby("run", sort=False).agg(
        relations=("relation", "size"),
        **{n: (n, "sum")},
        **{name: (name, "mean") for name in names.split()},
    )
    draw_rows(means.reset_index(), [*head, count("relations"), *measures])
    st.caption(
        f"Above: means over the {counted(common['relation'].nunique(), 'relation')} that all runs "
        "have. Below: each relation. Tick a row, or tap its card, to see its facts. "
        + " ".join(f"**{one.head}**: {one.help}" for one in measures)
    )
    picked = draw_rows(
        frame.assign(relation=frame["relation"].map(choice.labels)),
        [*head, *shown.chosen("relation"), *measures],
        key=f"{what} by relation",
        picks="single-row",
        height=420 if len(frame) > 10 else "content",
    )
    if picked.rows:
        open_line(choice, shown, frame.to_dict("records")[picked.rows[0]], alone=True)
    draw_view_export(choice, shown, name=what)
