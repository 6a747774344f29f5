"""Whole sentences, such as minimal pairs, scored token by token."""

import math
from html import escape

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
MOST_LEAD = math.log(MOST_TIMES)
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
    parts, names = [heat_scale(colour)], names_of([one.text for one in found.sentences])
    for name, one in zip(names, found.sentences, strict=True):
        parts.append(
            f'<div class="lx-pair"><b>{escape(name)}: {_values(one)}</b><span class="lx-muted">'
            f"{_minus_first(one, found)}</span>"
            f"</div>{heat_strip(one.tokens, colour)}"
        )
    parts += [f'<div class="lx-muted">{escape(note)}</div>' for note in found.notes()]
    st.html("".join(parts))


def _preferred(found: ModelSentences) -> str:
    """The words of the likeliest sentence and its lead, as HTML; empty for fewer than two sums."""
    names = names_of([one.text for one in found.sentences])
    totals = [
        (one.total, name)
        for one, name in zip(found.sentences, names, strict=True)
        if one.total is not None
    ]
    if len(totals) < 2:
        return ""
    (first, name), (second, _) = sorted(totals, key=lambda one: -one[0])[:2]
    lead = fixed(first - second, 2, signed=True)
    if KINDS[found.kind].sees_both:  # no ratio of probabilities follows
        degree = "higher" if len(totals) == 2 else "highest"
        than = "" if len(totals) == 2 else " compared with the second"
        end = f"has the {degree} pseudo-log-likelihood: {lead}{than}."
    else:
        times = _times(first - second)
        end = f"is {times} likelier: {predictions.unbroken(f'log-prob. {lead}')}."
    word = f"<b>{escape(name)}</b>"
    what = word if name in (one.text for one in found.sentences) else f"The sentence with {word}"
    return f"{what} {end}"


def _times(lead: float) -> str:
    """A difference of log-probabilities as a ratio of probabilities, in words."""
    ratio = math.exp(min(lead, MOST_LEAD))
    if lead > MOST_LEAD:
        return f"over {MOST_TIMES:,} times"
    return f"about {fixed(ratio, 0 if ratio >= 10 else 1)} times"


def _values(one: ScoredSentence) -> str:
    if one.total is None or one.mean is None:
        return one.fault
    return f"sum {fixed(one.total, 2)}, mean {fixed(one.mean, 2)}"


def _minus_first(one: ScoredSentence, found: ModelSentences) -> str:
    if one is found.sentences[0] or one.difference is None or one.mean_difference is None:
        return ""
    total, mean = (fixed(value, 2, signed=True) for value in (one.difference, one.mean_difference))
    return f"compared with the first: {total}, mean {mean}"


def _draw_caption(
    answer: Answer[SentencesRequest, tuple[str, ...], ModelSentences], *_: object
) -> None:
    st.caption(
        "Log-probabilities are natural logarithms. The stronger a token's colour, the less "
        "likely the token. Every token lowers the sum, so compare sentences of different "
        f"lengths by their mean.{describe_sums(answer.models)}"
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
