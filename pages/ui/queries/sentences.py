"""Whole sentences, such as minimal pairs, scored token by token."""

import math
from collections.abc import Mapping
from html import escape

import numpy as np
import streamlit as st

from lama_core.models.protocols import KINDS
from lama_core.queries.kind import Answer
from lama_core.queries.sentences import (
    MAX_SENTENCES,
    AskedSentences,
    ModelSentences,
    ScoredSentence,
    SentencesRequest,
    sentences,
)
from lama_core.rounding import fixed
from pages.ui.queries import widgets
from pages.ui.queries.form import DrawField, Form
from pages.ui.queries.grid import names_of
from pages.ui.queries.tab import Tab, describe_sums, describe_tokens
from pages.ui.shared import predictions, screens
from pages.ui.shared.model_columns import ModelColumn
from pages.ui.shared.token_strips import heat_scale, heat_strip

MOST_TIMES = 1_000_000
UNSCORED = (
    " ·: a causal model's first token, which isn't scored if all sentences begin with the same "
    "word. So compare sums only within a list, or choose the start token *always* under Options."
)
# The acceptable sentence of each pair comes first.
EXAMPLES = (
    ("The keys to the cabinet are on the table.", "The keys to the cabinet is on the table."),
    ("The pilots that the senator likes laugh.", "The pilots that the senator likes laughs."),
    ("No student has ever read the book.", "Some student has ever read the book."),
    ("She put the cup on the table.", "She put on the table."),
)


def _layout(draw: DrawField) -> None:
    widgets.draw_with_ask(draw, "texts", label="Score")
    widgets.draw_chips(
        widgets.Example(texts[0], {"sentences": "\n".join(texts)}, texts[1]) for texts in EXAMPLES
    )
    widgets.draw_models_and_options(draw, "hiding", "start_token", "precision")


FORM = Form(
    SentencesRequest,
    {
        "texts": widgets.list_field(
            "texts",
            "Sentences, one per line",
            key="sentences",
            first=EXAMPLES[0],
            between="\n",
            height=110,
            help=f"Two to {MAX_SENTENCES} sentences; they are scored exactly as typed.",
        ),
        "models": widgets.MODELS,
        "hiding": widgets.HIDING,
        "start_token": widgets.START_TOKEN,
        "precision": widgets.PRECISION,
    },
    _layout,
)


def _draw_strips(_: AskedSentences, column: ModelColumn[ModelSentences]) -> None:
    """Draw a model's sentences as strips of tokens, each below its sum and mean."""
    found, colour = column.answer, column.colour
    if conclusion := _preferred(found):
        predictions.draw_conclusion(conclusion)
    parts, names = [heat_scale(colour)], _names(found)
    for one in found.sentences:
        parts.append(
            f'<div class="lx-pair"><b>{escape(names[one.text])}: {_values(one)}</b>'
            f'<span class="lx-muted">{escape(_minus_first(one, found, names))}</span>'
            f"</div>{heat_strip(one.tokens, colour)}"
        )
    parts += [f'<div class="lx-muted">{escape(note)}</div>' for note in found.notes()]
    st.html("".join(parts))


def _preferred(found: ModelSentences) -> str:
    """The best sentence, and its lead over the next one, as HTML; empty for fewer than two scores.

    Best by the sum or, for different numbers of words, by the mean.
    """
    if len(ranked := found.ranked()) < 2:
        return ""
    (value, first), (next_value, second) = ranked[:2]
    by_sum, names = found.ranked_by == "sum", _names(found)
    word, other = (f"<b>{escape(names[one.text])}</b>" for one in (first, second))
    if names[first.text] in first.text:
        word, other = f"The sentence with {word}", f"that with {other}"
    lead = fixed(value - next_value, 2, signed=True)
    if by_sum and not KINDS[found.kind].sees_both:
        text = f"{word} is {_times(value - next_value)} likelier than {other}: log-prob. {lead}."
        return predictions.unbroken(text)
    what = "pseudo-log-likelihood" if by_sum else "mean per token"
    if len(ranked) > 2:
        return f"{word} has the highest {what}, before {other}: {lead}."
    return f"{word} has a higher {what} than {other}: {lead}."


def _names(found: ModelSentences) -> dict[str, str]:
    """Sentence -> its name: the words that differ, if they are few and as many; or a number."""
    texts = [one.text for one in found.sentences]
    names = names_of(texts)
    if found.ranked_by == "mean" or names == texts or len(names[0].split()) > 3:
        names = [f"Sentence {number}" for number in range(1, len(texts) + 1)]
    return dict(zip(texts, names, strict=True))


def _times(lead: float) -> str:
    """A difference of log-probabilities as a ratio of probabilities, in words."""
    if lead > math.log(MOST_TIMES):
        return f"over {MOST_TIMES:,} times"
    ratio = math.exp(lead)
    return f"about {fixed(ratio, 0 if ratio >= 10 else 1)} times"


def _values(one: ScoredSentence) -> str:
    if one.total is None or one.mean is None:
        return one.fault
    return f"sum {fixed(one.total, 2)}, mean {fixed(one.mean, 2)}"


def _minus_first(one: ScoredSentence, found: ModelSentences, names: Mapping[str, str]) -> str:
    if one is found.sentences[0] or one.difference is None or one.mean_difference is None:
        return ""
    total, mean = (fixed(value, 2, signed=True) for value in (one.difference, one.mean_difference))
    compared = f"{total}, " * (found.ranked_by == "sum") + f"mean {mean}"
    return f"compared with {names[found.sentences[0].text]}: {compared}"


def _draw_caption(
    answer: Answer[SentencesRequest, tuple[str, ...], ModelSentences], *_: object
) -> None:
    by = "their sums. Sentences with different numbers of words are compared by their means."
    if answer.models[0].ranked_by == "mean":
        by = "their mean per token, as each word lowers the sum."
    dots = any(
        np.isnan(each.tokens.log_probs).any() for one in answer.models for each in one.sentences
    )
    st.caption(
        "Log-probabilities are natural logarithms. The stronger a token's colour, the less likely "
        f"the token. Sentences are compared by {by}{describe_sums(answer.models)}{UNSCORED * dots}"
    )


SENTENCES = Tab(
    kind=sentences.kind,
    name="Whole sentences",
    opens=screens.WHOLE_SENTENCES,
    caption="Type two or more sentences. Each model scores them token by token; what differs is "
    "underlined.",
    form=FORM,
    draw=_draw_strips,
    describe=describe_tokens,
    per_row=3,  # a sentence needs room
    language_of=lambda request: " ".join(request.texts),
    below=_draw_caption,
    exported="sentences",
)
