"""Illustrated introduction: how a query becomes P@1, in four pictures of a bundled run."""

from html import escape

import streamlit as st

from lama_core.rounding import fixed
from lama_core.runs.illustration import illustration
from lama_core.views.colours import model_colours
from pages.ui.shared.predictions import with_blank

MODEL = "minilm-mlm"


def draw_illustrated() -> None:
    """Draw the four pictures, if the run exists."""
    found = illustration(MODEL)
    if found is None:
        return
    right, n_facts = found.ranks.count(1), len(found.ranks)
    look = f"background:{model_colours([MODEL])[MODEL]};color:#fff"
    dots = "".join(
        f'<span class="lx-fact" title="{escape(subject)}: rank {rank}" '
        f'style="{look * (rank == 1)}">{rank}</span>'
        for subject, rank in zip(found.subjects, found.ranks, strict=True)
    )
    rows = "".join(
        f'<tr><td class="rank">{rank}</td>'
        f'<td class="word">{escape(word)}</td><td class="num">{fixed(prob, 3)}</td></tr>'
        for rank, (word, prob) in enumerate(found.words, 1)
    )
    head = '<thead><tr><th>#</th><th>word</th><th class="num">probability</th></tr></thead>'
    pictures = (
        (
            "1. Blank",
            "A sentence states a fact, with a blank in place of the answer.",
            f'<div class="lx-sentence">{with_blank(found.query.split("[MASK]"))}</div>',
        ),
        (
            "2. Candidates",
            f"The model gives a probability to each of {found.n_candidates:,} words, the "
            f"candidates. Its first {len(found.words)}:",
            f'<table class="lx lx-small">{head}<tbody>{rows}</tbody></table>',
        ),
        (
            "3. Rank",
            "The rank of the right answer is its place in this list:",
            f'<div class="lx-sentence">{escape(found.answer)}: rank {found.rank}</div>',
        ),
        (
            "4. P@1",
            f"For {right} of {n_facts} such facts, the right answer is at rank 1: P@1 is "
            f"{fixed(100 * right / n_facts, 0)}\u00a0%.",
            f'<div class="lx-facts">{dots}</div><div class="lx-muted">rank for each fact</div>',
        ),
    )
    for column, (title, text, picture) in zip(st.columns(4, gap="medium"), pictures, strict=True):
        with column.container(border=True, height="stretch"):
            st.markdown(f"**{title}**")
            st.html(f"<div>{escape(text)}</div>{picture}")
    st.caption(
        "From the run of MiniLM-MLM on the starter facts, relation P36 (capital): the first "
        f"{n_facts} facts that are scored. Its candidates are the words that are one token in "
        "MiniLM-MLM, its twin and SmolLM2; on Ask they depend on the models that you choose."
    )
