"""Models' answers side by side: one column a model, one bar a word.

Every word of a user or a model goes through `html.escape`.
"""

from collections.abc import Mapping, Sequence
from html import escape

import streamlit as st

from lama_core.candidates.columns import Candidates
from lama_core.models.devices import how_computed
from lama_core.models.protocols import KINDS, Kind
from lama_core.probes.cloze.query import BlankAnswer, Gold, ModelAnswer, Prediction
from lama_core.rounding import fixed
from pages.ui.shared.messages import plain
from pages.ui.shared.url_state import title_of

TWINS = {"minilm-mlm", "minilm-mlm-twin"}
TWIN_NOTE = (
    "The twin is MiniLM-MLM trained in the same way on less text: without eleven sources of facts, "
    "such as GeoNames."
)
CONTEXTS = {"left": "sees the left side only", "both": "sees both sides"}


def draw_head(name: str, title: str, colour: str, detail: str) -> None:
    """A model's name in its colour, with a line of detail under it."""
    st.html(
        f'<div class="lx-head"><span class="lx-dot" style="background:{colour}"></span>'
        f'<span class="lx-name" title="{escape(name)}">{escape(title)}</span></div>'
        f'<div class="lx-muted">{escape(detail)}</div>'
    )


def describe(answer: ModelAnswer) -> str:
    """A model's kind and what it was shown, in words, and how it computed where that is unusual."""
    said = (KINDS[answer.kind].title, CONTEXTS[answer.context])
    return with_how(*said, precision=answer.precision, device=answer.device)


def with_how(*said: str, precision: str, device: str) -> str:
    """What is said of a model in one line; fp32 on a processor goes without saying."""
    return " · ".join([*said, *filter(None, [how_computed(precision, device)])])


def title_of_kind(kind: Kind | None) -> str:
    """A kind of model in words, before its answer is there."""
    return KINDS[kind].title if kind else "a model of your own"


def draw_answers(blank: BlankAnswer, colour: str) -> None:
    """A model's best words with bars, and the rank of the right answer."""
    gold = blank.gold.word.lower() if blank.gold else None
    rows = []
    for item in blank.predictions:
        word = item.token.lower()
        rows.append(
            f'<tr class="{"gold" if word == gold else ""}"><td class="rank">{item.rank}</td>'
            f'<td class="word">{escape(item.token)}{_begun(item)}</td>'
            f'<td class="bar"><div style="width:{100 * item.prob:.2f}%;background:{colour}">'
            f'</div></td><td class="num">{probability(item.prob)}</td>'
            f'<td class="num muted">{fixed(item.log_prob, 2)}</td></tr>'
        )
    ranked = "answer" if blank.over == "answers" else "word"
    st.html(
        f'<table class="lx"><thead><tr><th>#</th><th>{ranked}</th>'
        f'<th class="num" colspan="2">prob. of {escape(blank.shown_over())}</th>'
        '<th class="num">log-prob.</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
        + (_gold_line(blank.gold, blank) if blank.gold else "")
        + "".join(f'<div class="lx-muted">{escape(note)}</div>' for note in blank.notes())
    )


def _begun(item: Prediction) -> str:
    """The longer word that an answer begins, as a mark."""
    if not item.begins:
        return ""
    return f' <span class="lx-muted" title="the model goes on to it">→ {escape(item.begins)}</span>'


def _gold_line(gold: Gold, blank: BlankAnswer) -> str:
    value = ("log-prob. " if gold.log_prob is not None else "") + gold.shown_log_prob()
    notes = []
    if len(gold.pieces) > 1:
        notes.append(f"{len(gold.pieces)} subword tokens, scored one after the other: ")
        notes[-1] += " + ".join(gold.pieces)
    if not gold.in_candidates:
        shown = blank.predictions
        before = gold.rank <= len(shown) and shown[gold.rank - 1].token
        notes.append(
            "not among the candidates; "
            + (f"it would come before {before}" if before else "the rank is the one it would have")
        )
    note = f'<div class="lx-muted">{escape("; ".join(notes))}</div>' if notes else ""
    among = f" of {blank.n_over:,}" if blank.over == "rescored" and blank.n_over else ""
    return (
        f'<div class="lx-gold">Right answer <b>{escape(gold.word)}</b>: '
        f"rank <b>{gold.rank:,}</b>{among}, "
        f"{escape(value)}</div>{note}"
    )


def probability(value: float) -> str:
    """A probability with three decimals, or as a small power of ten."""
    return fixed(value, 3) if value >= 0.001 else f"{value:.0e}".replace("e-0", "e-")


def describe_firsts(firsts: Mapping[str, str], gold: str = "") -> str:
    """Each model's first answer in one line, the right one marked, as HTML.

    firsts: by model. gold: the right answer, if it is known.
    """
    parts = [
        f"{escape(short_title(name))}: <b>{escape(word)}</b>"
        + " (correct)" * (word.lower() == gold.lower())
        for name, word in firsts.items()
    ]
    return " · ".join(parts)


def short_title(name: str) -> str:
    """A model's title without what stands in brackets: MiniLM-MLM."""
    return title_of(name).partition(" (")[0]


def draw_firsts(answers: Sequence[ModelAnswer], blank: int) -> None:
    """Each model's first answer in one line."""
    firsts = {answer.name: answer.blanks[blank].predictions[0].token for answer in answers}
    golds = [answer.blanks[blank].gold for answer in answers]
    gold = next((one.word for one in golds if one is not None), "")
    st.html(f"<div>{describe_firsts(firsts, gold)}</div>")


def describe_candidates(candidates: Candidates, sizes: Sequence[int]) -> str:
    """Which words were ranked, and how their probabilities are to be read; as Markdown.

    sizes: how many of them each model has.
    """
    if candidates.words is None:
        shown = ", ".join(f"{size:,}" for size in sizes)
        return f"Ranked: each model's whole vocabulary ({shown} tokens)."
    text = f"Ranked: {len(candidates.words):,} words ({plain(candidates.name)})."
    if candidates.fold_case:
        text += (
            " Words are lower-cased because an uncased model takes part; a cased model's "
            "probability is the sum over a word's case variants."
        )
    return text
