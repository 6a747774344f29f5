"""Answers of every prompt to one fact, side by side (Jiang et al. 2020, Figure 1)."""

from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.rounding import fixed
from lama_core.scoring.blanks import fill
from pages.ui.prompts.ensembles import METHODS_IN_WORDS
from pages.ui.prompts.study_choice import PromptsChoice
from pages.ui.prompts.table import open_cloze
from pages.ui.shared.messages import counted, draw_headline
from pages.ui.shared.predictions import probability
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import BOUND

PER_ROW = 3
MOST_PROMPTS = 12
N_WORDS = 5
RANK = st.column_config.NumberColumn(format="localized")
BLIND = '<div class="lx-muted">the model doesn’t see the subject, which comes after the blank</div>'


def draw_fact(choice: PromptsChoice) -> None:
    """Draw the choice of a fact and, for each prompt, a box with its five best answers."""
    study = choice.study
    names = [f"{fact.subject} – {fact.object}" for fact in study.test]
    right = (study.ranks[list(choice.members)] == 1).sum(axis=0)
    fact = st.selectbox(
        "Fact",
        range(len(names)),
        # The first fact that about half of the prompts get right.
        index=int(np.abs(right / len(choice.members) - 0.5).argmin()),
        key="fact",
        bind=BOUND if len(names) > 1 else None,
        format_func=lambda number: (
            f"{names[number]}  ({right[number]} of {len(choice.members)} right)"
        ),
        help="Subject and object; in brackets the number of prompts whose first answer is right.",
    )
    gold, n_right = study.test[fact].object, counted(int(right[fact]), "prompt")
    draw_headline(
        f"{n_right} of {len(choice.members)} answer {gold}; below, the best on training facts first"
    )
    order = sorted(choice.members, key=lambda number: -study.train_accuracies[number])
    chips = []
    for at, ensemble in enumerate(study.ensembles):
        if ensemble.combination != choice.combination:
            continue
        best = study.first_answers(study.ensemble_rows[at, fact])
        word = study.words.get(int(best), "?")
        mark = " ✓" if study.ensemble_ranks[at, fact] == 1 else ""
        method = METHODS_IN_WORDS.get(ensemble.method, ensemble.method)
        chips.append(f'<span class="lx-chip">{escape(method)}: {escape(word)}{mark}</span>')
    st.html(f"<div>{''.join(chips)}</div>")
    for first in range(0, min(len(order), MOST_PROMPTS), PER_ROW):
        row = order[first : min(first + PER_ROW, MOST_PROMPTS)]
        for column, prompt in zip(st.columns(PER_ROW), row, strict=False):
            with column.container(border=True, height="stretch"):
                st.html(_answers(choice, prompt, fact))
                if st.button("Ask it", key=f"open {prompt}", icon=":material/edit_note:"):
                    template = study.pool.prompts[prompt].template
                    open_cloze(choice, template, fact)
    if rest := order[MOST_PROMPTS:]:
        _draw_rest(choice, rest, fact)


def _answers(choice: PromptsChoice, prompt: int, fact: int) -> str:
    """Return one prompt's query and best words as HTML; every text is escaped."""
    study = choice.study
    row = study.rows[prompt, fact]
    query = fill(study.pool.prompts[prompt].template, study.test[fact].subject).text("____")
    cells = []
    for rank, (word, log_prob) in enumerate(study.answers(row, fact)[:N_WORDS]):
        prob = float(np.exp(log_prob))
        gold = "gold" if word == study.objects[fact] else ""
        cells.append(
            f'<tr class="{gold}"><td class="rank">{rank + 1}</td>'
            f'<td class="word">{escape(word)}</td>'
            f'<td class="bar"><div style="width:{100 * prob:.2f}%;background:{choice.colour}">'
            f'</div></td><td class="num">{probability(prob)}</td></tr>'
        )
    rank = int(study.ranks[prompt, fact])
    blind = "" if choice.shows_subject(prompt) else BLIND
    return (
        f'<div class="lx-name" style="font-size:1rem">{escape(query)}</div>{blind}'
        f'<div class="lx-muted">right answer: rank {rank:,}, '
        f"log-prob. {fixed(row['log_prob'], 2)}</div>"
        '<table class="lx"><thead><tr><th>#</th><th>word</th><th class="num" colspan="2">'
        f"probability</th></tr></thead><tbody>{''.join(cells)}</tbody></table>"
    )


def _draw_rest(choice: PromptsChoice, prompts: Sequence[int], fact: int) -> None:
    """Draw a table of the first answers with these prompts; a click opens one on the page Ask."""
    study = choice.study
    st.markdown(f"### The other {counted(len(prompts), 'prompt')}, worse on the training facts")
    rows = []
    for prompt in prompts:
        row = study.rows[prompt, fact]
        query = fill(study.pool.prompts[prompt].template, study.test[fact].subject).text("____")
        first = study.words.get(int(study.first_answers(row)), "?")
        rank = int(study.ranks[prompt, fact])
        rows.append(
            {
                "query": query,
                "first answer": first + " ✓" * (rank == 1),
                "rank of the right answer": rank,
            }
        )
    picked = draw_table(pd.DataFrame(rows), key=f"other prompts {fact}", picks="single-row",
                        column_config={"rank of the right answer": RANK})  # fmt: skip
    st.caption("Tick a row, or tap its card, to ask it.")
    if picked.rows:
        open_cloze(choice, study.pool.prompts[prompts[picked.rows[0]]].template, fact)
