"""Every prompt with its accuracy and weight, and the facts that only it gets right."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.asking.blanks import fill
from lama_core.probes.prompts.probing import as_select
from pages.ui.prompts.choice import PromptsChoice
from pages.ui.shared import links
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import plain

SHOWN_FACTS = 50
ORIGIN_TITLES = {
    "manual": "manual",
    "mined": "mined",
    "mined-paraphrased": "like a mined one",
    "manual-paraphrased": "like the manual one",
    "user": "own",
}


def prompt_rows(choice: PromptsChoice) -> pd.DataFrame:
    """One row a prompt, the most accurate on the training facts first."""
    study = choice.study
    found = study.ensemble(choice.combination, "optimised")
    weights = found[0].weights if found else np.full(len(study.pool.entries), np.nan)
    only = study.only_right.sum(axis=1)
    rows = [
        {
            "number": number,
            "prompt": study.pool.prompts[number].template,
            "from": ", ".join(
                title
                for origin, title in ORIGIN_TITLES.items()
                if origin in study.pool.entries[number].origins
            ),
            "training": 100 * study.train_accuracies[number],
            "test": 100 * study.test_accuracies[number],
            "weight": float(weights[number]),
            "only it": int(only[number]),
            "published weight": study.pool.prompts[number].weight,
        }
        for number in choice.members
    ]
    return pd.DataFrame(rows).sort_values("training", ascending=False, kind="stable")


def draw_prompts(choice: PromptsChoice) -> None:
    """The table; a chosen row shows its own facts below."""
    table = prompt_rows(choice).reset_index(drop=True)
    shown = table.drop(columns="number")
    if shown["published weight"].isna().all():
        shown = shown.drop(columns="published weight")
    event: Any = st.dataframe(
        shown,
        key=f"prompts of {choice.study.relation.name}",
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "prompt": st.column_config.TextColumn("Prompt", width="medium"),
            "from": st.column_config.TextColumn(
                "From", help="Its sets: the manual prompt, mined ones, and paraphrases of either.",
            ),
            "training": st.column_config.NumberColumn(
                "Training P@1", format="%.1f %%",
                help="Training facts whose object comes first. Prompts are chosen by this.",
            ),
            "test": st.column_config.ProgressColumn(
                "Test P@1", format="%.1f %%", min_value=0, max_value=100,
                help="Test facts whose object comes first.",
            ),
            "weight": st.column_config.NumberColumn(
                "Weight", format="%.3f",
                help="Of the optimised ensemble: softmax(theta), fitted so that the training "
                "facts' objects become as likely as they can.",
            ),
            "only it": st.column_config.NumberColumn(
                "Only it is right", help="Test facts that no other prompt of this relation gets.",
            ),
            "published weight": st.column_config.NumberColumn(
                "LPAQA's weight", format="%.3f", help="As released, learnt on BERT.",
            ),
        },
    )  # fmt: skip
    st.caption("Choose a row to see the facts that only this prompt gets right.")
    chosen = list(event.selection.rows)
    number = int(table["number"][chosen[0]] if chosen else table["number"][_most_alone(table)])
    draw_only_right(choice, number)
    draw_export(
        "prompts", lambda: table.drop(columns="number"), choice.made(), as_select(choice.request())
    )


def _most_alone(table: pd.DataFrame) -> int:
    return int(table["only it"].to_numpy().argmax())


def draw_only_right(choice: PromptsChoice, prompt: int) -> None:
    """The facts that one prompt alone gets right, each with a way to its cloze query."""
    study = choice.study
    template = study.pool.prompts[prompt].template
    facts = np.flatnonzero(study.only_right[prompt])
    st.markdown(f"**Only {plain(template)} is right on {len(facts)} of {len(study.test):,} facts**")
    if not len(facts):
        return
    others = [number for number in choice.members if number != prompt]
    rows = []
    for fact in facts[:SHOWN_FACTS]:
        wrong = study.rows["top"][others, fact, 0]
        words, counts = np.unique(wrong, return_counts=True)
        usual = int(words[counts.argmax()]) if len(words) else -1
        rows.append(
            {
                "subject": study.test[fact].subject,
                "object": study.objects[fact],
                "most others say": study.words.get(usual, ""),
                "log-prob. here": float(study.rows["log_prob"][prompt, fact]),
            }
        )
    event: Any = st.dataframe(
        pd.DataFrame(rows), hide_index=True, on_select="rerun", selection_mode="single-row",
        key=f"only right {study.relation.name} {prompt}", height="content",
        column_config={"log-prob. here": st.column_config.NumberColumn(format="%.2f")},
    )  # fmt: skip
    if event.selection.rows:
        fact = int(facts[event.selection.rows[0]])
        to_cloze(choice, template, study.test[fact].subject, study.objects[fact])


def to_cloze(choice: PromptsChoice, template: str, subject: str, gold: str) -> None:
    """Open the Cloze page on one fact through one prompt."""
    text = fill(template, subject).text("___")
    links.go(
        links.PROMPTS, links.CLOZE, {"text": text, "gold": gold, "models": [choice.info.model]}
    )
