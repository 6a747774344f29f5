"""The table of prompts with accuracies and weights, and facts that only one prompt gets right."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.glossary import explain
from lama_core.metrics.precision_at_k import precision_at
from lama_core.probes.prompts.plan import as_select_request, request_of
from lama_core.rounding import percent, percentage
from lama_core.scoring.blanks import fill
from pages.ui.prompts.study_choice import PromptsChoice
from pages.ui.shared import links, screens
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import plain
from pages.ui.shared.tables import draw_table

SHOWN_FACTS = 50
HIDES_SUBJECT = "no: [Y] before [X]"
ORIGIN_TITLES = {
    "manual": "manual",
    "mined": "mined",
    "mined-paraphrased": "paraphrase of a mined one",
    "manual-paraphrased": "paraphrase of the manual one",
    "user": "own",
}


def prompt_rows(choice: PromptsChoice) -> pd.DataFrame:
    """Return one row per prompt, sorted by accuracy on the training facts."""
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
            "tells": "" if choice.shows_subject(number) else HIDES_SUBJECT,
            "published weight": study.pool.prompts[number].weight,
        }
        for number in choice.members
    ]
    return pd.DataFrame(rows).sort_values("training", ascending=False, kind="stable")


def _headline(choice: PromptsChoice) -> str:
    """Compare test P@1 of the manual, the best and the weighted prompts; empty if unknown."""
    study = choice.study
    manual = study.pool.manual
    found = {
        title: study.ensemble(choice.combination, method)
        for method, title in (
            ("top1", "best prompt on training facts"),
            ("optimised", "optimised ensemble"),
        )
    }
    parts = [
        f"{title} **{percent(precision_at(one[1]))} %**" for title, one in found.items() if one
    ]
    if manual is None or not parts:
        return ""
    parts.insert(0, f"manual prompt **{percent(study.test_accuracies[manual])} %**")
    return f"Test P@1, {study.ranking} ranking: {', '.join(parts)}"


def draw_prompts(choice: PromptsChoice) -> None:
    """Draw the table and, below it, the facts that only the selected prompt gets right."""
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
    picked = draw_table(
        shown,
        key=f"prompts of {choice.study.relation.name}",
        picks="single-row",
        column_config={
            "prompt": st.column_config.TextColumn("Prompt", width="medium"),
            "from": st.column_config.TextColumn(
                "From",
                help="Source of the prompt: manual, mined, or a paraphrase of one of these.",
            ),
            "training": st.column_config.NumberColumn(
                "Training P@1",
                format="%.1f %%",
                help="Share of training facts with a right first answer. Prompts are chosen by it.",
            ),
            "test": st.column_config.ProgressColumn(
                "Test P@1",
                format="%.1f %%",
                min_value=0,
                max_value=100,
                help="Share of test facts with a right first answer.",
            ),
            "weight": st.column_config.NumberColumn(
                "Weight",
                format="%.3f",
                help="Weight in the optimised ensemble. " + explain("Optimised ensemble"),
            ),
            "only it": st.column_config.NumberColumn(
                "Right only with it",
                help="Number of test facts that no other prompt of this relation gets right.",
            ),
            "published weight": st.column_config.NumberColumn(
                "LPAQA's weight",
                format="%.3f",
                help="Weight in LPAQA's release, fitted on BERT.",
            ),
            "tells": st.column_config.TextColumn(
                "Shows the subject",
                width="medium",
                help="A causal model sees only the text before the blank [Y]. If the subject [X] "
                "comes after it, the query is the same for every fact. Such prompts have no weight "
                "if ensembles exclude them.",
            ),
        },
    )
    st.caption("Click a row to see the facts that only this prompt gets right.")
    selected = picked.rows
    number = int(table["number"][selected[0] if selected else _default_row(table)])
    draw_only_right(choice, number)
    request = as_select_request(request_of(choice.whole, (choice.study.relation.name,)))
    draw_export("prompts", lambda: table.drop(columns="number"), choice.made(), request)


def _default_row(table: pd.DataFrame) -> int:
    """Return the row with the largest `only it` among prompts that show the subject."""
    has_subject = table["tells"] == ""
    return int(table["only it"].where(has_subject, -1).to_numpy().argmax())


def draw_only_right(choice: PromptsChoice, prompt: int) -> None:
    """Draw the facts that only this prompt gets right; a click opens the cloze query."""
    study = choice.study
    template = study.pool.prompts[prompt].template
    facts = np.flatnonzero(study.only_right[prompt]).tolist()
    st.markdown(
        f"**Facts that only {plain(template)} gets right: {len(facts)} of {len(study.test):,}**"
    )
    if not len(facts):
        return
    others = [number for number in choice.members if number != prompt]
    rows = []
    for fact in facts[:SHOWN_FACTS]:
        wrong = study.first_answers(study.rows[others, fact])
        words, counts = np.unique(wrong, return_counts=True)
        most_frequent = int(words[counts.argmax()]) if len(words) else -1
        rows.append(
            {
                "subject": study.test[fact].subject,
                "object": study.objects[fact],
                "most others say": study.words.get(most_frequent, ""),
                "log-prob. here": float(study.rows["log_prob"][prompt, fact]),
            }
        )
    draw_facts(choice, template, rows, facts)


def draw_facts(
    choice: PromptsChoice, template: str, rows: Sequence[Mapping[str, object]], facts: Sequence[int]
) -> None:
    """Draw a row per fact; a click opens it on the page Ask. facts: indexes into the test facts."""
    picked = draw_table(
        pd.DataFrame(rows),
        picks="single-row",
        key=f"facts of {choice.study.relation.name} {template}",
        height=420 if len(rows) > 10 else "content",
        column_config={"log-prob. here": st.column_config.NumberColumn(format="%.2f")},
    )
    st.caption(f"Click a row to query its fact with {plain(template)}")
    if picked.rows:
        open_cloze(choice, template, facts[picked.rows[0]])


def open_cloze(choice: PromptsChoice, template: str, fact: int) -> None:
    """Open the page Ask on one test fact with one prompt."""
    text = fill(template, choice.study.test[fact].subject).text("___")
    gold = choice.study.objects[fact]
    links.go(screens.ASK, {"text": text, "gold": gold, "models": [choice.info.model]})
