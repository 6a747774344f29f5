"""Models' answers side by side: one column per model, one bar per word.

All words of users and models are escaped with `html.escape`.
"""

from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import Literal

import streamlit as st

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import COMMON, OWN_WITH_FUNCTION_WORDS, is_per_model
from lama_core.models.devices import settings_text
from lama_core.models.protocols import FIRST_RESCORED, KINDS, Kind
from lama_core.models.sources.catalog import find_model
from lama_core.queries.blank_answers import (
    CONTEXTS,
    N_CONTINUED,
    OVER_AS_TEXT,
    OVER_SETTING,
    BlankAnswer,
    Gold,
    ModelAnswer,
    called,
    marked_answer,
    visible,
)
from lama_core.rounding import fixed
from lama_core.scoring.model_info import AboutModel
from lama_core.texts import word_key
from pages.ui.shared.messages import plain
from pages.ui.shared.url_state import title_of

DETAIL = "lx-detail"  # class of what Ask shows only with the switch Details
# What the logarithm of a number is called that has a name of `blank_answers.called`.
LOG_OF = {"probability": "log-prob.", "share": "log share"}
BLANK = '<b aria-label="blank">&nbsp;?&nbsp;</b>'
MARKS = {True: " (correct)", False: " (wrong)", None: ""}
PRELIMINARY = (
    f"Preliminary: the first {FIRST_RESCORED} proposed words. The ranking of all of them follows."
)
CONTINUES = "→: how the model continues the word."


def with_blank(parts: Iterable[str], blank: str = BLANK) -> str:
    """HTML of a sentence with a blank between its parts. blank: as HTML."""
    return blank.join(map(escape, parts))


def draw_sentence(parts: Iterable[str]) -> None:
    """Draw a sentence with a blank between its parts."""
    st.html(f'<div class="lx-sentence">{with_blank(parts)}</div>')


def draw_head(name: str, title: str, colour: str, detail: str, hint: str = "") -> None:
    """Draw a model's name with a dot in its colour, and a line of detail with a hint below."""
    st.html(
        f'<div class="lx-head"><span class="lx-dot" style="background:{colour}"></span>'
        f'<span class="lx-name" title="{escape(name)}">{escape(title)}</span></div>'
        f'<div class="lx-muted" title="{escape(hint)}">{escape(detail)}</div>'
    )


def draw_conclusion(html: str) -> None:
    """Draw what a chart or a table shows, in one line above it."""
    st.html(f'<div class="lx-conclusion">{html}</div>')


def describe(answer: ModelAnswer) -> str:
    """A model's kind, which sides of the blank it sees, and precision and device if unusual."""
    return join_details(answer, KINDS[answer.kind].title, CONTEXTS[answer.context])


def join_details(one: AboutModel, *details: str) -> str:
    """Details of a model in one line; precision and device unless they are fp32 on the CPU."""
    return " · ".join([*details, *filter(None, [settings_text(one.precision, one.device)])])


def title_of_kind(kind: Kind | None) -> str:
    """A kind of model for display."""
    return KINDS[kind].title if kind else "a model of your own"


def name_of_values(settings: Mapping[str, str]) -> Literal["probability", "share"]:
    """The name of the numbers next to answers; settings: those of the kind of query."""
    return "probability" if settings.get(OVER_SETTING) == OVER_AS_TEXT["vocabulary"] else "share"


def draw_answers(blank: BlankAnswer, colour: str, listed: str = "") -> None:
    """Draw a model's best answers with bars, and the rank of the right answer.

    Bars of shares of rescored words are outlines: next to another model's probabilities, their
    lengths can't be compared.
    listed: The name of the candidate list.
    """
    gold = word_key(blank.gold.word) if blank.gold else None
    is_ranked = blank.gold and blank.gold.in_candidates and blank.gold.proposed
    ranked_gold = blank.gold.rank if blank.gold and is_ranked else None
    rescored = blank.over == "rescored"
    look = "border:1.5px solid " if rescored else "background:"
    value = f"share of {blank.n_over:,}" if rescored else called(blank.over)
    log = LOG_OF[called(blank.over)]
    rows = []
    for item in blank.rows:
        is_gold = item.rank == ranked_gold if item.rank else word_key(item.token) == gold
        reason = f'<div class="lx-muted">not ranked: {escape(blank.why_not_ranked())}</div>'
        rows.append(
            f'<tr class="{"gold" if is_gold else ""}"><td class="rank">{item.rank or "–"}</td>'
            f'<td class="word">{escape(visible(item.token))}{longer_word(item.begins)}'
            f"{'' if item.rank else reason}</td>{bar_cell(item.prob, f'{look}{colour}')}"
            f"{value_cells(item.prob, fixed(item.log_prob, 2), log)}</tr>"
        )
    ranked = "answer" if blank.over == "answers" else "word"
    notes = list(blank.notes())
    if any(item.begins for item in blank.predictions):
        few = f" Only the first {N_CONTINUED} words are continued."
        notes.append(CONTINUES + few * (len(blank.predictions) > N_CONTINUED))
    st.html(
        f'<table class="lx"><thead><tr><th>#</th><th>{ranked}</th>'
        f'<th class="num" colspan="2" title="of {escape(blank.shown_over())}">'
        f'{value}</th><th class="num {DETAIL}">{log}</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
        + (_gold_line(blank.gold, blank, listed) if blank.gold else "")
        + "".join(f'<div class="lx-muted {DETAIL}">{escape(note)}</div>' for note in notes)
    )


def bar_cell(share: float, look: str) -> str:
    """HTML of a bar as long as a share of its cell. look: its colour, as CSS."""
    return f'<td class="bar"><div style="width:{100 * share:.2f}%;{look}"></div></td>'


def value_cells(value: float, log: str, name: str) -> str:
    """HTML of a probability with its logarithm, which Details and the tooltip show."""
    return (
        f'<td class="num" title="{value:.2g}, {name} {log}">{probability(value)}</td>'
        f'<td class="num muted {DETAIL}">{log}</td>'
    )


def preliminary_drawer(colour: str) -> Callable[[ModelAnswer], None]:
    """A function that draws a model's preliminary answers here, until its answer replaces them."""
    place = st.empty()

    def draw(answer: ModelAnswer) -> None:
        with place.container():
            st.caption(f":material/hourglass_top: {PRELIMINARY}")
            draw_answers(answer.blanks[-1], colour)

    return draw


def longer_word(begins: str | None) -> str:
    """HTML of the longer word of which an answer is the beginning; empty if there is none."""
    if not begins:
        return ""
    return f' <span class="lx-muted" title="{CONTINUES}">→ {escape(begins)}</span>'


def _gold_line(gold: Gold, blank: BlankAnswer, listed: str) -> str:
    value = f"{LOG_OF[called(blank.over)]} " * (gold.log_prob is not None) + gold.shown_log_prob()
    notes = []
    if len(gold.pieces) > 1:
        tokens = " + ".join(gold.pieces)
        notes.append(f"{len(gold.pieces)} subword tokens, scored one after the other: {tokens}")
    if gold.is_changed:
        notes.append(f"scored as the model's token {gold.pieces[0]}")
    if not gold.in_candidates:
        shown = blank.predictions
        before = gold.rank <= len(shown) and shown[gold.rank - 1].token
        notes.append(
            "not among the candidates; "
            + (f"it would rank before {before}" if before else "this is the rank it would have")
        )
    note = f'<div class="lx-muted">{escape("; ".join(notes))}</div>' if notes else ""
    among = f" of {blank.n_over:,}" if blank.over == "rescored" and blank.n_over else ""
    if not among and blank.n_candidates and is_per_model(listed):
        among = f" of {blank.n_candidates:,} words of this model"
    among = f'<span class="{DETAIL}">{among}</span>' * bool(among)
    rank = gold.describe_apart(blank.n_over) or f"rank <b>{gold.rank:,}</b>{among}"
    is_listed = gold.rank <= len(blank.predictions) and gold.in_candidates and gold.proposed
    return (
        f'<div class="lx-gold {DETAIL * is_listed}">Right answer <b>{escape(gold.word)}</b>: {rank}'
        f'<span class="{DETAIL}">, {unbroken(escape(value))}</span></div>{note}'
    )


def unbroken(html: str) -> str:
    """HTML without line breaks in log-probabilities."""
    return html.replace("log-prob. ", "log\N{NON-BREAKING HYPHEN}prob.\N{NO-BREAK SPACE}")


def probability(value: float) -> str:
    """A probability with three decimals, or that it is below 0.001 or above 0.999."""
    if 0.9995 <= value < 1:
        return ">\N{NO-BREAK SPACE}0.999"
    return fixed(value, 3) if value >= 0.001 else "<\N{NO-BREAK SPACE}0.001"


def describe_first_answers(
    firsts: Mapping[str, str],
    rights: Mapping[str, bool | None],
    beaten_by: Mapping[str, str] = {},
) -> str:
    """Each model's first answer in one line as HTML; right and wrong answers are marked.

    Args:
        firsts: Model -> first answer.
        rights: Model -> whether its answer is right; None if that isn't known.
        beaten_by: Model -> the likelier token that isn't ranked, if any.
    """
    return " · ".join(
        f"{escape(short_title(name))}: <b>{escape(word)}</b>{MARKS[rights.get(name)]}"
        f"{unranked(beaten_by.get(name, ''))}"
        for name, word in firsts.items()
    )


def short_title(name: str) -> str:
    """A model's title without the part in parentheses, such as `MiniLM-MLM`."""
    return title_of(name).partition(" (")[0]


def draw_first_answers(blanks: Mapping[str, BlankAnswer]) -> None:
    """Draw the first answer of each model with answers on the screen in one line."""
    tops = {name: found.predictions[0] for name, found in blanks.items()}
    firsts = {name: marked_answer(top.token, top.begins, None) for name, top in tops.items()}
    rights = {name: found.is_right for name, found in blanks.items()}
    beaten_by = {name: one.beaten_by.token for name, one in blanks.items() if one.beaten_by}
    st.html(f"<div>{describe_first_answers(firsts, rights, beaten_by)}</div>")


def unranked(token: str) -> str:
    """HTML after a first answer of the likelier token that isn't ranked; empty if there is none."""
    name = escape(visible(token)).replace(" ", "\N{NO-BREAK SPACE}")
    return f' <span class="lx-muted">(likelier, but not ranked: {name})</span>' * bool(token)


def describe_candidates(
    candidates: Candidates, sizes: Mapping[str, int], *, without: str = ""
) -> str:
    """The ranked words and the meaning of their probabilities, as Markdown.

    Args:
        candidates: The candidates.
        sizes: Model that answered -> the number of candidates in its vocabulary.
        without: Which words are removed from these candidates, after a comma.
    """
    alone = len(sizes) == 1
    if candidates.words is None:
        whole, unit = "whole vocabulary", "tokens"
        if candidates.keep:
            whole, unit = "own words", "words"
            whole += " with function words" * (candidates.name == OWN_WITH_FUNCTION_WORDS)
        shown = ", ".join(f"{plain(title_of(name))} {size:,}" for name, size in sizes.items())
        if len(set(sizes.values())) == 1:
            shown, unit = f"{next(iter(sizes.values())):,}", unit + " each" * (not alone)
        return (
            f"Candidates: {'the' if alone else 'each'} model's {whole} ({shown} {unit}){without}."
        )
    which = ""
    if candidates.name == COMMON:
        which = f" that are one token in {'the' if alone else 'each'} model, without stop words"
    text = (
        f"Candidates: {len(candidates.words):,} words{which} "
        f"(list: {plain(candidates.name)}){without}."
    )
    if candidates.fold_case and (alone or all(find_model(name).cased is False for name in sizes)):
        text += f" The {'model knows' if alone else 'models know'} only lower-case words."
    elif candidates.fold_case:
        text += (
            " Words are lower-cased because one of the models is uncased; a cased model's "
            "probability is the sum over a word's case variants."
        )
    return text
