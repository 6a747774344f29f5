"""Every prompt with its accuracy and weight, and the facts that only it gets right."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.glossary import explain
from lama_core.metrics.precision_at_k import precision_at
from lama_core.probes.prompts.plan import as_select
from lama_core.rounding import percent, percentage
from lama_core.scoring.blanks import fill
from pages.ui.prompts.study_choice import PromptsChoice
from pages.ui.shared import links, screens
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import plain

SHOWN_FACTS = 50
TELLS_NOTHING = "nothing: [Y] before [X]"
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
            "weight": np.nan if study.pool.entries[number].aside else float(weights[number]),
            "only it": int(only[number]),
            "tells": "" if choice.shows_subject(number) else TELLS_NOTHING,
            "published weight": study.pool.prompts[number].weight,
        }
        for number in choice.members
    ]
    return pd.DataFrame(rows).sort_values("training", ascending=False, kind="stable")


def _headline(choice: PromptsChoice) -> str:
    """What choosing and weighting gains over the manual prompt, in a line; empty where unknown."""
    study = choice.study
    manual = study.pool.manual
    found = {
        title: study.ensemble(choice.combination, method)
        for method, title in (("top1", "the best on training facts"), ("optimised", "optimised"))
    }
    said = [f"{title} **{percent(precision_at(one[1]))} %**" for title, one in found.items() if one]
    if manual is None or not said:
        return ""
    own = f"manual prompt **{percent(study.test_accuracies[manual])} %**"
    return f"Test P@1, {study.ranking} ranking: {own}, {', '.join(said)}"


def draw_prompts(choice: PromptsChoice) -> None:
    """The table; a chosen row shows its own facts below."""
    st.markdown(_headline(choice))
    table = prompt_rows(choice).reset_index(drop=True)
    shown = table.drop(columns="number")
    if shown["published weight"].isna().all():
        shown = shown.drop(columns="published weight")
    if not shown["tells"].any():
        shown = shown.drop(columns="tells")
    for name, shares in (
        ("training", choice.study.train_accuracies),
        ("test", choice.study.test_accuracies),
    ):
        shown[name] = [percentage(shares[number]) for number in table["number"]]
    event: Any = st.dataframe(
        shown,
        key=f"prompts of {choice.study.relation.name}",
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "prompt": st.column_config.TextColumn("Prompt", width="medium"),
            "from": st.column_config.TextColumn(
                "From",
                help="Its sets: the manual prompt, mined ones, and paraphrases of either.",
            ),
            "training": st.column_config.NumberColumn(
                "Training P@1",
                format="%.1f %%",
                help="Training facts whose object comes first. Prompts are chosen by this.",
            ),
            "test": st.column_config.ProgressColumn(
                "Test P@1",
                format="%.1f %%",
                min_value=0,
                max_value=100,
                help="Test facts whose object comes first.",
            ),
            "weight": st.column_config.NumberColumn(
                "Weight",
                format="%.3f",
                help="Of the optimised ensemble. " + explain("Optimised ensemble"),
            ),
            "only it": st.column_config.NumberColumn(
                "Right only here",
                help="Test facts that no other prompt of this relation gets.",
            ),
            "published weight": st.column_config.NumberColumn(
                "LPAQA's weight",
                format="%.3f",
                help="As released, learnt on BERT.",
            ),
            "tells": st.column_config.TextColumn(
                "Tells the model",
                width="medium",
                help="A causal model sees what stands before the blank [Y]: where the subject [X] "
                "comes after it, the query is the same for every fact. Without a weight such a "
                "prompt is excluded from ensembles.",
            ),
        },
    )
    st.caption("Click a row to see the facts that only this prompt gets right.")
    chosen = list(event.selection.rows)
    number = int(table["number"][chosen[0] if chosen else _most_alone(table)])
    draw_only_right(choice, number)
    draw_export(
        "prompts", lambda: table.drop(columns="number"), choice.made(), as_select(choice.request())
    )


def _most_alone(table: pd.DataFrame) -> int:
    """The row of the prompt that is alone right most often; one that shows the subject if any."""
    told = table["tells"] == ""
    return int(table["only it"].where(told, -1).to_numpy().argmax())


def draw_only_right(choice: PromptsChoice, prompt: int) -> None:
    """The facts that one prompt alone gets right, each with a way to its cloze query."""
    study = choice.study
    template = study.pool.prompts[prompt].template
    facts = np.flatnonzero(study.only_right[prompt]).tolist()
    st.markdown(f"**Only {plain(template)} is right on {len(facts)} of {len(study.test):,} facts**")
    if not len(facts):
        return
    others = [number for number in choice.members if number != prompt]
    rows = []
    for fact in facts[:SHOWN_FACTS]:
        wrong = study.first_answers(study.rows[others, fact])
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
    draw_facts(choice, template, rows, facts)


def draw_facts(
    choice: PromptsChoice, template: str, rows: Sequence[Mapping[str, object]], facts: Sequence[int]
) -> None:
    """A row a fact; a click opens it on the page Ask. facts: positions among the test facts."""
    study = choice.study
    event: Any = st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key=f"facts of {study.relation.name} {template}",
        height="content",
        column_config={"log-prob. here": st.column_config.NumberColumn(format="%.2f")},
    )
    st.caption(f"Click a row to ask the fact with {plain(template)}")
    if event.selection.rows:
        fact = facts[event.selection.rows[0]]
        to_cloze(choice, template, study.test[fact].subject, study.objects[fact])


def to_cloze(choice: PromptsChoice, template: str, subject: str, gold: str) -> None:
    """Open the page Ask on one fact through one prompt."""
    text = fill(template, subject).text("___")
    links.go(screens.ASK, {"text": text, "gold": gold, "models": [choice.info.model]})
