"""How a query becomes P@1, in four pictures of a finished run that comes with the project."""

from collections.abc import Sequence
from html import escape
from math import exp

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.datasets.corpus import STARTER
from lama_core.rounding import fixed
from lama_core.runs.find import list_runs
from lama_core.runs.info import Run
from pages.ui.shared import cache
from pages.ui.shared.colours import model_colours

MODEL, RELATION = "minilm-mlm", "P36"
N_FACTS, N_WORDS = 10, 5


def draw_illustrated() -> None:
    """The four pictures; nothing without the run."""
    found = [
        run
        for run in list_runs(kinds=("cloze",))
        if (run.model, run.dataset, run.prompts) == (MODEL, STARTER, "manual") and run.bundled
    ]
    if not found:
        return
    run = cache.finished_run(found[0])
    facts = run.facts[(run.facts["relation"] == RELATION) & run.facts["excluded"].isna()]
    facts = facts.head(N_FACTS)
    ranks = facts["rank_filtered"]
    best = int(facts["rank_raw"].between(2, N_WORDS).to_numpy().argmax())
    place = int(np.flatnonzero(run.facts.index == facts.index[[best]].item())[0])
    fact = facts.iloc[best]
    answer, rank, query = str(fact["object"]), int(fact["rank_raw"]), str(fact["query"])
    words = _words(run, place)
    right = int(ranks.eq(1).sum())
    pictures = (
        (
            "1. Blank",
            "A sentence asks for a fact and leaves out its answer.",
            _sentence(query),
        ),
        (
            "2. Candidates",
            f"The model gives each of {run.info.n_candidates:,} words, the candidates, a "
            f"probability. Its first {N_WORDS}:",
            _table(words, ""),
        ),
        (
            "3. Rank",
            f"The right answer, {answer}, is at rank {rank}.",
            _table(words, answer.lower()),
        ),
        (
            "4. P@1",
            f"Of {len(facts)} such facts the model has the right answer at rank 1 for {right}: "
            f"P@1 is {fixed(100 * right / len(facts), 0)}\u00a0%.",
            _dots(facts, model_colours([MODEL])[MODEL]),
        ),
    )
    for column, (title, text, picture) in zip(st.columns(4, gap="medium"), pictures, strict=True):
        with column.container(border=True, height="stretch"):
            st.markdown(f"**{title}**")
            st.html(f"<div>{escape(text)}</div>{picture}")
    st.caption(
        f"From the run of MiniLM-MLM on the starter facts, relation {RELATION} (capital): the "
        f"first {len(facts)} facts that count."
    )


def _words(run: Run, place: int) -> list[tuple[str, float]]:
    """The first words of a row with their probabilities."""
    names, log_probs = run.top.words[place], run.top.log_probs[place]
    return [(str(word), exp(value)) for word, value in zip(names, log_probs, strict=True)][:N_WORDS]


def _sentence(query: str) -> str:
    before, _, after = query.partition("[MASK]")
    blank = '<b aria-label="blank">&nbsp;?&nbsp;</b>'
    return f'<div class="lx-sentence">{escape(before)}{blank}{escape(after)}</div>'


def _table(words: Sequence[tuple[str, float]], right: str) -> str:
    rows = "".join(
        f'<tr class="{"gold" if word.lower() == right else ""}"><td class="rank">{rank}</td>'
        f'<td class="word">{escape(word)}</td><td class="num">{fixed(prob, 3)}</td></tr>'
        for rank, (word, prob) in enumerate(words, 1)
    )
    head = '<thead><tr><th>#</th><th>word</th><th class="num">probability</th></tr></thead>'
    return f'<table class="lx lx-small">{head}<tbody>{rows}</tbody></table>'


def _dots(facts: pd.DataFrame, colour: str) -> str:
    dots = "".join(
        f'<span class="lx-fact" title="{escape(str(subject))}: rank {int(rank)}" '
        f'style="background:{colour if rank == 1 else "transparent"}">{int(rank)}</span>'
        for subject, rank in zip(facts["subject"], facts["rank_filtered"], strict=True)
    )
    return f'<div class="lx-facts">{dots}</div><div class="lx-muted">rank in each fact</div>'
