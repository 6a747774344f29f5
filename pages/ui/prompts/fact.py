"""Answers of every prompt to one fact, side by side (Jiang et al. 2020, Figure 1)."""

from collections.abc import Sequence
from html import escape

import numpy as np
import streamlit as st

from lama_core.rounding import fixed
from lama_core.scoring.blanks import fill
from pages.ui.prompts.ensembles import METHODS_IN_WORDS
from pages.ui.prompts.study_choice import PromptsChoice
from pages.ui.prompts.table import open_cloze
from pages.ui.shared.messages import counted, draw_headline
from pages.ui.shared.predictions import probability
from pages.ui.shared.url_state import BOUND

PER_ROW = 3
MOST_PROMPTS = 12
N_WORDS = 5
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
        word = study.words.get(int(best), "?") + " ✓" * bool(study.ensemble_ranks[at, fact] == 1)
        method = METHODS_IN_WORDS.get(ensemble.method, ensemble.method)
        chips.append(f'<span class="lx-chip">{escape(method)}: {escape(word)}</span>')
    st.html(f"<div>{''.join(chips)}</div>")
    _draw_answers(choice, order[:MOST_PROMPTS], fact)
    if rest := order[MOST_PROMPTS:]:
        said = f"The other {counted(len(rest), 'prompt')}, worse on the training facts"
        with st.expander(said, icon=":material/table:"):
            _draw_answers(choice, rest, fact)


def _draw_answers(choice: PromptsChoice, prompts: Sequence[int], fact: int) -> None:
    """Draw a box for each prompt, with a button that opens the page Ask."""
    for first in range(0, len(prompts), PER_ROW):
        for column, prompt in zip(st.columns(PER_ROW), prompts[first:], strict=False):
            with column.container(border=True, height="stretch"):
                st.html(_answers(choice, prompt, fact))
                if st.button("Ask it", key=f"open {prompt}", icon=":material/edit_note:"):
                    open_cloze(choice, choice.study.pool.prompts[prompt].template, fact)


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
