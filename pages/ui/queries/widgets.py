"""The widgets of fields that several kinds of query have."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.glossary import explain
from lama_core.models.protocols import HIDINGS, RESCORED, START_TOKENS, Context
from lama_core.progress import ignore
from lama_core.queries.analogy_templates import TEMPLATES, template_label, template_name
from lama_core.queue import nothing
from pages.ui.queries.form import DrawField, Widget
from pages.ui.shared import links, url_state
from pages.ui.shared.messages import plain


def kept(field: str, key: str = "") -> Callable[[Any], dict[str, Any]]:
    """The URL parameter of a widget whose values are those of the field."""
    return lambda request: {key or field: getattr(request, field)}


def text_field(field: str, label: str, *, key: str = "", first: str = "", help: str) -> Widget:
    """A line of text."""
    return Widget(
        lambda _: st.text_input(label, first, key=key or field, bind=url_state.BOUND, help=help),
        kept(field, key),
    )


def list_field(
    field: str,
    label: str,
    *,
    key: str = "",
    first: Sequence[str],
    between: str,
    help: str,
    height: int = 0,
    unique: bool = False,
) -> Widget:
    """Several texts in one field.

    Args:
        field: The field.
        label: The widget's label.
        key: The widget's key, if it isn't the field.
        first: The texts at the start.
        between: What separates the texts; a line break makes a text area.
        help: The widget's help text.
        height: The height of the text area in pixels.
        unique: Whether a repeated text counts once.
    """
    key = key or field

    def draw(_: Any) -> tuple[str, ...]:
        field: Any = partial(st.text_area, height=height) if between == "\n" else st.text_input
        typed = field(label, between.join(first), key=key, bind=url_state.BOUND, help=help) or ""
        texts = typed.splitlines() if between == "\n" else typed.split(between.strip())
        found = tuple(filter(None, (" ".join(text.split()) for text in texts)))
        return tuple(dict.fromkeys(found)) if unique else found

    return Widget(draw, lambda request: {key: between.join(getattr(request, field))})


def toggle_field(field: str, label: str, *, key: str = "", help: str) -> Widget:
    """An option that is off at the start."""
    return Widget(
        lambda _: st.toggle(label, key=key or field, bind=url_state.BOUND, help=help),
        kept(field, key),
    )


def slider_field(
    field: str, label: str, least: int, most: int, first: int, step: int = 1, *, key: str = ""
) -> Widget:
    """A number."""
    return Widget(
        lambda _: st.slider(
            label, least, most, first, step, key=key or field, bind=url_state.BOUND
        ),
        kept(field, key),
    )


def choice_field(field: str, label: str, options: Sequence[str], *, help: str) -> Widget:
    """A few options side by side."""
    return Widget(lambda _: url_state.pick(label, options, key=field, help=help), kept(field))


def example_field(examples: url_state.ExampleField, field: str, label: str, *, help: str) -> Widget:
    """A line of text with examples; when it changes, the right answer follows."""
    return Widget(lambda _: examples.type(label, help=help), kept(field, examples.texts))


def typed_gold_field(*, key: str = "gold", help: str) -> Widget:
    """A line for the right answer; None if it is empty."""
    return Widget(
        lambda _: (
            st.text_input("Right answer (optional)", key=key, bind=url_state.BOUND, help=help)
            or None
        ),
        kept("gold", key),
    )


def gold_field(
    query: str, answers: str, label: str, *, key: str, golds: Mapping[str, str], help: str
) -> Widget:
    """The right one of typed answers, or none.

    Args:
        query: The field of the query to which the answers belong.
        answers: The field of the answers.
        label: The widget's label.
        key: The widget's key.
        golds: An example's query -> its right answer; that of the first example is chosen at the
            start.
        help: The widget's help text.
    """

    def draw(values: Mapping[str, Any]) -> str | None:
        options, first = list(dict.fromkeys(values[answers])), next(iter(golds.values()))
        url_state.follow_query(values[query], {key: golds.get(values[query])})
        url_state.drop_stale(key, (None, *options))
        return st.selectbox(
            label,
            options,
            key=key,
            bind=url_state.BOUND,
            index=options.index(first) if first in options else None,
            placeholder="None chosen",
            help=help,
        )

    return Widget(draw, kept("gold", key))


def models_field(*, key: str = "models", **options: Any) -> Widget:
    """The models to compare."""
    return Widget(lambda _: url_state.choose_models(key=key, **options), kept("models", key))


def template_field(default: str, key: str) -> Widget:
    """One of the six templates of analogies, or a typed one."""
    names = [default, *(name for name in TEMPLATES if name != default)]

    def draw(_: Any) -> str:
        links.replace_values(key, {name: template_label(name) for name in names})
        chosen = st.selectbox(
            "Template",
            names,
            key=key,
            bind=url_state.BOUND,
            format_func=template_label,
            accept_new_options=True,
            help="The six templates of Ushio et al. 2021; Rezaee and Camacho-Collados use "
            "**what-to**. Or type your own, with [A], [B], [C] and [D] once each.",
        )
        return template_name(chosen or default)

    return Widget(
        draw,
        lambda request: {key: template_label(request.template) if request.template else None},
    )


def _choose_context(_: Any) -> Context | None:
    chosen = url_state.pick(
        "Causal models see", ("auto", "left", "both"), key="context", help=explain("Context")
    )
    return None if chosen == "auto" else cast(Context, chosen)


MODELS = models_field()
PRECISION = Widget(lambda _: url_state.choose_precision(), kept("precision"))
HIDING = choice_field(
    "hiding", "Hidden with a token", HIDINGS, help=explain("Masked together with a token")
)
START_TOKEN = choice_field(
    "start_token",
    "Start token of causal models",
    START_TOKENS,
    help=explain("Start token"),
)
# The widgets of `ClozeSettings` and of what all its requests have, for `draw_cloze_options`.
CLOZE_OPTIONS = {
    "candidates": Widget(lambda _: url_state.choose_candidates(), kept("candidates")),
    "context": Widget(_choose_context, lambda request: {"context": request.context or "auto"}),
    "n_rescored": slider_field(
        "n_rescored", "Words rescored with both sides", 10, 1000, RESCORED, 10, key="rescored"
    ),
    "renormalise": toggle_field(
        "renormalise",
        "Probabilities over the candidates only",
        help="Off: probabilities over the model's whole vocabulary, as in the paper. On: divided "
        "by their sum over the candidates.",
    ),
    "precision": PRECISION,
}
TOP_K = slider_field("top_k", "Answers per model", 1, 20, 5, key="k")
# Widths of one, two or three fields and the button of `draw_ask`.
QUERY_ROWS = ((7.1, 1), (5.2, 1.9, 1), (1.5, 3.7, 1.9, 1))


def draw_cloze_options(draw: DrawField) -> None:
    """Draw the widgets of `CLOZE_OPTIONS`."""
    draw("candidates")
    with st.expander("Advanced"):
        for name in ("context", "n_rescored", "renormalise", "precision"):
            draw(name)


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example.

    Attributes:
        label: The text of its button.
        values: A widget's key -> the value that a click sets.
        help: What the button's tooltip shows.
    """

    label: str
    values: Mapping[str, str]
    help: str = ""


def examples_of(field: url_state.ExampleField) -> list[Example]:
    """The examples of a text field and of the field for its right answer."""
    return [
        Example(text, {field.texts: text, field.golds: gold}) for text, gold in field.examples()
    ]


def open_with_template(key: str, name: str, *fields: str) -> None:
    """Choose a template, unless the visitor has, or the URL has a template or one of the fields.

    Call before the fields are filled in. URLs without a template mean the widget's default.
    """
    if key not in st.session_state and not any(one in st.query_params for one in (key, *fields)):
        st.session_state[key] = name
        links.set_param(key, [template_label(name)])


def draw_ask(label: str = "Ask") -> None:
    """Draw the button next to a query's text; Enter in the field does the same."""
    st.button(label, key=f"send {label}", type="primary", icon=":material/send:", width="stretch")


def draw_with_ask(draw: DrawField, *fields: str, label: str = "Ask") -> tuple[Any, ...]:
    """Draw one to three fields in a row that ends with the button of `draw_ask`; return values."""
    *places, button = st.columns(QUERY_ROWS[len(fields) - 1], vertical_alignment="bottom")
    with button:
        draw_ask(label)
    return draw_in(draw, fields, places)


def draw_models_and_options(
    draw: DrawField,
    *options: str,
    cloze: bool = False,
    more: Callable[[Sequence[str]], object] = ignore,
) -> None:
    """Draw the row below a query: the models, and a popover with the options.

    Args:
        draw: Draws a field.
        options: The fields of the popover.
        cloze: Whether the popover ends with `CLOZE_OPTIONS`.
        more: Draws what is before the popover, from the chosen models.
    """
    place, row = st.columns([3, 1], vertical_alignment="bottom")
    with place:
        names = draw("models")
    with row, st.container(horizontal=True, key="more" if more is not ignore else None):
        more(names)
        with st.popover("Options", icon=":material/tune:"):
            for name in options:
                draw(name)
            if cloze:
                draw_cloze_options(draw)


def draw_in(
    draw: DrawField, fields: Sequence[str], places: Sequence[DeltaGenerator]
) -> tuple[Any, ...]:
    """Draw each field in its place; return their values."""
    values = []
    for name, place in zip(fields, places, strict=True):
        with place:
            values.append(draw(name))
    return tuple(values)


def draw_chips(examples: Iterable[Example]) -> None:
    """Draw examples as small buttons side by side; a click on one fills in the form."""
    with st.container(horizontal=True, gap="xsmall", key="chips"):
        for one in examples:
            _draw_example(one, "secondary")


def draw_examples(
    examples: Iterable[Example],
    *,
    caption: str,
    below: Callable[[], object] = nothing,
) -> None:
    """Draw the popover with more examples; a click on one fills in the form.

    below: Draws what is below them.
    """
    with st.popover("More examples", icon=":material/lightbulb:"):
        st.caption(caption)
        with st.container(height=380, border=False, gap=None):
            for one in examples:
                _draw_example(one, "tertiary")
        below()


def _draw_example(one: Example, type: Literal["secondary", "tertiary"]) -> None:
    st.button(
        plain(one.label),
        key=f"{type} {one.label}",
        type=type,
        on_click=st.session_state.update,
        args=(one.values,),
        help=plain(one.help) or None,
    )
