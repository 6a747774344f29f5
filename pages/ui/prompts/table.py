"""The leaderboard of prompts with their weights, and facts that only one prompt gets right."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.glossary import explain
from lama_core.metrics.intervals import METHOD, METHOD_OF_DIFFERENCES
from lama_core.metrics.precision_at_k import precision_at
from lama_core.probes.prompts.accuracy_growth import OWN, PromptTrial, leaderboard
from lama_core.rounding import percent, percentage
from lama_core.scoring.blanks import fill
from pages.ui.prompts.study_choice import PromptsChoice
from pages.ui.shared import links, screens
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import draw_headline, plain
from pages.ui.shared.tables import Picked, draw_table

SHOWN_FACTS = 50
LEAST_FACTS = 20  # with fewer, two prompts are hardly ever told apart
TRIALS = "tried prompts"  # session key: (study, relation) -> prompt -> its trial and facts
MOST_TRIALS = 20  # of a relation
ORIGIN_TITLES = {
    "manual": "manual",
    "mined": "mined",
    "mined-paraphrased": "paraphrase of mined",
    "manual-paraphrased": "paraphrase",
    "user": "own",
}


def keep_trial(choice: PromptsChoice, trial: PromptTrial, facts: Sequence[int]) -> None:
    """Keep the visitor's prompt for the leaderboard of this study and relation."""
    kept = st.session_state.setdefault(TRIALS, {}).setdefault(_mark(choice), {})
    kept.pop(trial.template, None)  # it becomes the last one
    kept[trial.template] = (trial, facts)
    if len(kept) > MOST_TRIALS:
        kept.pop(next(iter(kept)))


def _mark(choice: PromptsChoice) -> tuple[str, str]:
    return choice.info.digest, choice.study.relation.name


def leaderboard_of(choice: PromptsChoice) -> pd.DataFrame:
    """Return the leaderboard of the shown prompts and those that the visitor tried."""
    kept = st.session_state.get(TRIALS, {}).get(_mark(choice), {})
    return leaderboard(choice.study, choice.members, kept.values())


def prompt_rows(choice: PromptsChoice, board: pd.DataFrame) -> pd.DataFrame:
    """Return a leaderboard with the prompts' origins, weights and accuracy on training facts."""
    study = choice.study
    found = study.ensemble(choice.combination, "optimised")
    weights = found[0].weights if found else np.full(len(study.pool.entries), np.nan)
    rows = []
    for line in board.to_dict("records"):
        number = int(line["number"])
        row = {"number": number, "prompt": line["prompt"]}
        shares = {
            "test": 100 * line["p_at_1"],
            "interval": said_ends(line["low"], line["high"]),
            "difference": 100 * line["difference"],
            "its interval": said_ends(line["difference_low"], line["difference_high"], signed=True),
        }
        if number == OWN:
            n_only = len(only_right(choice, number, line["prompt"]))
            rows.append(row | {"from": "yours"} | shares | {"only it": n_only})
            continue
        entry, prompt = study.pool.entries[number], study.pool.prompts[number]
        origins = [title for origin, title in ORIGIN_TITLES.items() if origin in entry.origins]
        more = {
            "training": 100 * study.train_accuracies[number],
            "weight": np.nan if entry.aside else float(weights[number]),
            "only it": int(study.only_right[number].sum()),
            "tells": "no: [Y] before [X]" * (not choice.shows_subject(number)),
            "published weight": prompt.weight,
        }
        rows.append(row | {"from": ", ".join(origins)} | shares | more)
    table = pd.DataFrame(rows)
    return table.assign(
        **{"only it": table["only it"].astype("Int64"), "tells": table["tells"].fillna("")}
    )


def only_right(choice: PromptsChoice, number: int, template: str) -> Sequence[int]:
    """Return the test facts that only this prompt gets right: their places.

    number: the prompt's in the study's pool; `OWN` for one that the visitor tried.
    """
    study = choice.study
    if number != OWN:
        return np.flatnonzero(study.only_right[number]).tolist()
    trial, facts = st.session_state[TRIALS][_mark(choice)][template]
    others = (study.ranks[:, list(facts)] == 1).any(axis=0)
    return np.array(facts)[trial.right & ~others].tolist()


def said_ends(low: float, high: float, *, signed: bool = False) -> str:
    """Return an interval in percent; empty without one."""
    if low != low:
        return ""
    return f"{percent(low, signed=signed)} to {percent(high, signed=signed)}"


def _headline(choice: PromptsChoice) -> str:
    """Compare test P@1 of the best prompt with that of the manual one; empty if unknown."""
    study = choice.study
    manual, found = study.pool.manual, study.ensemble(choice.combination, "top1")
    if manual is None or found is None:
        return ""
    chosen = percent(precision_at(found[1]))
    best = percent(max(study.test_accuracies[number] for number in choice.members))
    return (
        f"The best prompt on training facts gets {chosen} % of {len(study.test):,} test facts right"
        + f" (the best on the test facts: {best} %)" * (best != chosen)
        + f", the manual prompt {percent(study.test_accuracies[manual])} %"
    )


def draw_prompts(choice: PromptsChoice, tried: str, *, marks: bool) -> None:
    """Draw all prompts and the place of the tried one, and the facts that only one gets right.

    marks: whether the tried prompt is ticked at first, else that with the most such facts.
    """
    table = prompt_rows(choice, leaderboard_of(choice))
    st.markdown(f"### All {len(table):,} prompts of the relation")
    draw_headline(_headline(choice))
    shares, own = table["test"], table["prompt"] == tried
    if own.any():
        share = shares[own].iloc[0]
        place, last = 1 + (shares > share).sum(), (shares >= share).sum()
        places = f"place {place:,}" if place == last else f"places {place:,} to {last:,}"
        st.markdown(f"The prompt above has {places} of {len(table):,}.")
    hidden = ["number"]
    hidden += ["published weight"] * bool(table["published weight"].isna().all())
    hidden += ["tells"] * (not table["tells"].any())
    marks &= bool(own.any())
    most = table["only it"].where(table["tells"] == "", -1).fillna(-1).to_numpy()
    first = int((own.to_numpy() if marks else most).argmax())
    selected = _draw_table(
        table.drop(columns=hidden),
        key=f"prompts of {choice.study.relation.name} {tried * marks}",
        picks="single-row",
        selection_default={"selection": {"rows": [first], "columns": [], "cells": []}},
        height="content" if len(table) <= 40 else 460,
    ).rows
    st.caption("Tick a row, or tap its card, to see the facts that only its prompt gets right.")
    line = table.iloc[selected[0] if selected else first]
    draw_only_right(choice, int(line["number"]), str(line["prompt"]))
    request = choice.request((choice.study.relation.name,))
    draw_export(
        "prompts",
        lambda: prompt_rows(choice, leaderboard_of(choice)).drop(columns="number"),
        choice.made() | {"intervals": f"95 %, {METHOD}; of differences: {METHOD_OF_DIFFERENCES}"},
        request and request.selection,
    )


def _draw_table(table: pd.DataFrame, **options: Any) -> Picked:
    """Draw the leaderboard, or some of its columns."""
    shares = table[["test", "training", "difference"]]
    table = table.assign(**shares.map(lambda value: percentage(value / 100)))
    number, words = st.column_config.NumberColumn, st.column_config.TextColumn
    config = {
        "prompt": words("Prompt", width=300),
        "from": words(
            "From",
            help="Source of the prompt: manual, mined, a paraphrase of one of these, or yours.",
        ),
        "test": st.column_config.ProgressColumn(
            "Test P@1",
            format="%.1f %%",
            min_value=0,
            max_value=100,
            help="Share of test facts with a right first answer.",
        ),
        "interval": words("P@1 interval", help=f"95 % interval of the test P@1: {METHOD}."),
        "difference": number(
            "Minus manual",
            format="%+.1f",
            help="Test P@1 minus that of the manual prompt on the same facts, in points.",
        ),
        "its interval": words(
            "Difference interval",
            help=f"95 % interval of this difference: {METHOD_OF_DIFFERENCES}.",
        ),
        "training": number(
            "Training P@1",
            format="%.1f %%",
            help="Share of training facts with a right first answer. Prompts are chosen by it.",
        ),
        "weight": number(
            "Weight",
            width=72,
            format="%.3f",
            help="Weight in the optimised ensemble. " + explain("Optimised ensemble"),
        ),
        "only it": number(
            "Right only here",
            width=110,
            help="Number of test facts that only this prompt of the relation gets right.",
        ),
        "published weight": number(
            "LPAQA's weight",
            format="%.3f",
            help="Weight in LPAQA's release, fitted on BERT.",
        ),
        "tells": words(
            "Shows the subject",
            width="medium",
            help="A causal model sees only the text before the blank [Y]. If the subject [X] "
            "comes after it, the query is the same for every fact. Such prompts have no weight "
            "if ensembles exclude them.",
        ),
    }
    return draw_table(table, column_config=config, placeholder="–", **options)


def draw_only_right(choice: PromptsChoice, prompt: int, template: str) -> None:
    """Draw the facts that only this prompt gets right; a click opens the cloze query.

    prompt, template: as of `only_right`.
    """
    study, facts = choice.study, only_right(choice, prompt, template)
    st.markdown(
        f"**Facts that only {plain(template)} gets right: {len(facts)} of {len(study.test):,}**"
    )
    if not facts:
        return
    others = [number for number in choice.members if number != prompt]
    rows = []
    for fact in facts[:SHOWN_FACTS]:
        answers = study.first_answers(study.rows[others, fact])
        words, counts = np.unique(answers, return_counts=True)
        row: dict[str, object] = {
            "subject": study.test[fact].subject,
            "right answer": study.test[fact].object,
            "most others say": study.words.get(int(words[counts.argmax()]), "") if others else "",
        }
        if prompt != OWN:
            row["log-prob. here"] = float(study.rows["log_prob"][prompt, fact])
        rows.append(row)
    draw_facts(choice, template, rows, facts)


def draw_facts(
    choice: PromptsChoice, template: str, rows: Sequence[Mapping[str, object]], facts: Sequence[int]
) -> None:
    """Draw a row per fact; a click opens it on the page Ask. facts: indexes into the test facts."""
    picked = draw_table(
        pd.DataFrame(rows),
        picks="single-row",
        key=f"facts by {' '.join(rows[0])} of {choice.study.relation.name} {template}",
        height=420 if len(rows) > 10 else "content",
        column_config={"log-prob. here": st.column_config.NumberColumn(format="%.2f")},
    )
    st.caption(f"Tick a row, or tap its card, to ask its fact with the prompt “{plain(template)}”.")
    if picked.rows:
        open_cloze(choice, template, facts[picked.rows[0]])


def open_cloze(choice: PromptsChoice, template: str, fact: int) -> None:
    """Open the page Ask on one test fact with one prompt."""
    text = fill(template, choice.study.test[fact].subject).text("___")
    asked = {"text": text, "gold": choice.study.objects[fact], "models": [choice.info.model]}
    links.go(screens.ASK, asked | {"candidates": "common"})  # as in the study
