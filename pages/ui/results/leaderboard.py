"""BEAR's leaderboard next to the P@1 of whole-answer runs on BEAR."""

import pandas as pd
import streamlit as st

from lama_core.papers.bear import (
    BEAR,
    BOARD,
    N_FACTS,
    N_RELATIONS,
    PAPER,
    differs_from_leaderboard,
    over_facts,
)
from lama_core.published import BEAR_MODELS, published_table
from lama_core.rounding import percentage
from lama_core.runs.info import OWN_WORDS, RunInfo
from lama_core.views.scores import RunScores, ScoresRequest
from lama_core.views.view import Shown
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import plain
from pages.ui.shared.run_choice import RunChoice
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import title_of

PYTHON = (
    "from lama_core.metrics import score_table\n"
    "from lama_core.published import published_table\n"
    "from lama_core.papers.bear import over_facts\n"
    "{runs}\n"
    'published_table("{paper}", "{board}").frame()\n'
    "[over_facts(score_table([run], ranking={ranking!r}, relations={relations!r}))"
    " for run in runs]\n"
)


def draw_leaderboard(choice: RunChoice, shown: Shown[ScoresRequest, RunScores]) -> None:
    """Draw the table if a whole-answer run is on BEAR."""
    names = {
        name: run
        for run, name in zip(choice.runs, choice.titles, strict=True)
        if run.ranks_statements and run.dataset == BEAR
    }
    if not names:
        return
    st.markdown("### Compared with BEAR's leaderboard")
    table = _rows(names, shown.found.by("relation"))
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    draw_table(
        table,
        key="leaderboard table",
        placeholder="–",
        height=460,
        column_order=[str(name) for name in table if name != "differs"],
        column_config={
            "model": text(pinned=True),
            "asked": text("prompts", width="medium"),
            "P@1": number(
                format="%.1f", help="Percent of the scored facts, not averaged by relation."
            ),
            "chance": number(format="%.1f", help="Mean over facts of 1 / answers, in percent."),
            "facts": number(
                format="localized", help=f"Scored facts, out of the leaderboard's {N_FACTS:,}."
            ),
            "relations": number(help=f"Relations with scored facts, out of {N_RELATIONS}."),
            "published": number(
                format="%.1f", help="Accuracy in percent, mean over the three templates."
            ),
            "± error": number(format="%.1f", help="Standard error of that mean, in percent."),
        },
    )
    for name, differs in zip(names, table["differs"], strict=False):  # our runs come first
        st.caption(f"**What differs**, {plain(name)}: {plain(differs)}.")
    st.caption(
        "**published**: the leaderboard by BEAR's authors (Wiland et al. 2024). Mean accuracy over "
        f"three templates, each on all {N_FACTS:,} facts of {N_RELATIONS} relations, and its "
        "standard error. Their random baseline is the mean over facts of 1 / answers. These runs "
        "use one template; `lama-explorer reproduce wiland2024` uses all three. **P@1** in this "
        "table is over facts, as on the leaderboard; in the table above it is the mean over "
        "relations."
    )
    draw_export(
        "leaderboard",
        lambda: table,
        choice.made() | {"published": published_table(PAPER, BOARD).citation},
        PYTHON.format(
            runs=choice.lines_of_runs(),
            paper=PAPER,
            board=BOARD,
            ranking=choice.ranking,
            relations=choice.relations,
        ),
    )


def _rows(names: dict[str, RunInfo], scores: pd.DataFrame) -> pd.DataFrame:
    """Return a row per run with its model's published score, then a row per other model.

    scores: the runs' P@1 by relation.
    """
    printed = {
        str(row.labels[0]): tuple(one and percentage(float(one)) for one in row.values)
        for row in published_table(PAPER, BOARD).rows
    }
    published_names = {reference: name for name, reference in BEAR_MODELS.items()}
    ours = []
    for run in names.values():
        figures = over_facts(scores[scores["run"] == run.id])
        mean, error = printed.get(published_names.get(run.model, ""), (None, None))
        unusual = [run.prompts.partition(", ")[2]]
        unusual += ["other answers"] * (run.candidates != OWN_WORDS)
        ours.append(
            {
                "model": run.title or title_of(run.model),
                "asked": run.prompts_said,
                "P@1": percentage(figures.accuracy),
                "chance": percentage(figures.chance),
                "facts": figures.n,
                "relations": figures.n_relations,
                "published": mean,
                "± error": error,
                "differs": differs_from_leaderboard(
                    n_relations=figures.n_relations,
                    n_facts=figures.n,
                    n_templates=1,
                    limit=run.limit,
                    asked="; ".join(filter(None, unusual)),
                ),
            }
        )
    here = {published_names.get(run.model) for run in names.values()}
    others = [
        {"model": name, "published": mean, "± error": error}
        for name, (mean, error) in printed.items()
        if name not in here
    ]
    others.sort(key=lambda row: -float(row["published"] or 0))
    return pd.DataFrame([*ours, *others])
