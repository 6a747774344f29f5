"""The editor of a visitor's own lesson: each step as a form next to its preview."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
import streamlit as st
from msgspec import NODEFAULT
from msgspec.inspect import DictType, Field, IntType, LiteralType, StrType, type_info

from lama_core.errors import UserError
from lama_core.lessons.charts import chart_of
from lama_core.lessons.lesson import (
    FIGURES,
    SLICED_BY,
    STEPS,
    AnyStep,
    Lesson,
    LessonFile,
    Predict,
    ShowRun,
    Step,
    figure_names,
    lesson_fields,
    lesson_text,
    parse_lesson,
    toml_value,
)
from lama_core.models.sources.catalog import known_models
from lama_core.queries.analogy_templates import TEMPLATES
from pages.ui.lessons import own
from pages.ui.lessons.lesson_view import EDIT, LESSON, STEP, address_of, draw_form, draw_text
from pages.ui.lessons.step_view import DRAWN
from pages.ui.shared import links, screens
from pages.ui.shared.export import draw_download
from pages.ui.shared.messages import errors_shown, plain, short, show_error
from pages.ui.shared.url_state import title_of

DRAFT = "draft of a lesson"  # in the session
# The content of required fields in new steps.
NEW: dict[str, Any] = {
    "text": "Write your text here.",
    "question": "Which word comes first?",
    "choices": ["Paris", "London"],
    "query": "The capital of France is ___.",
    "queries": ["The capital of France is ___.", "The capital of Norway is ___."],
    "analogies": [["Paris", "France", "Rome", "Italy"]],
    "figure": FIGURES[0],
    "source": "Own observation",
}
KINDS = {
    "text": "Text",
    "explain": "Explanation with its source",
    "predict": "Question to predict",
    "ask": "Query: the five best words",
    "compare": "Queries: the first answers",
    "analogy": "Analogies",
    "run": "Chart of finished runs",
    "try": "Try a sentence",
}
NEW_LESSON = {
    "title": "New lesson",
    "minutes": 5,
    "question": "What does this lesson ask?",
    "sources": [],
    "steps": [{"kind": "ask", "query": NEW["query"], "gold": "Paris"}],
}
# Field -> its label and help.
LABELS: dict[str, tuple[str, str]] = {
    "text": ("Text", "An empty line begins a paragraph, - a list item; **bold**, *italic*."),
    "takeaway": ("Takeaway", "What the reader learns, in one or two sentences; optional."),
    "sources": ("Sources", "One per line; optional."),
    "choices": ("Choices", "One per line; without choices, the reader types a word."),
    "between": ("Bounds of ranges, in percent", "One per line. Only before a run."),
    "answer": ("Answer", "Empty: the next step shows the answer."),
    "row": ("Row of the next step with the answer", "Empty: the first."),
    "model": ("Model with the answer", "Empty: the first."),
    "query": ("Sentence with a blank", "Write ___ where a word is missing."),
    "gold": ("Right answer", "Optional."),
    "queries": ("Sentences, one per line", "Write ___ where a word is missing."),
    "golds": ("Right answers", "One per line, in the order of the sentences; optional."),
    "wrong": ("Answers that negations rule out", "One per line, in the order of the sentences."),
    "analogies": ("Analogies, one per line", "Such as Paris : France :: Rome : Italy."),
    "figure": ("Chart", "The guide to lesson files describes each."),
    "data": ("Data set", "Its short name."),
    "relations": ("Relations", "One per line, such as P36; empty: all."),
    "k": ("k of P@k", ""),
    "by": ("Slices by", "Only for the chart slices."),
    "of": ("Mentions of", "Only for the chart mentions."),
    "options": ("Options of the chart", 'Such as { by = "source" }.'),
    "other": ("Second sentence", "Optional."),
    "page": ("Page of the link", ""),
    "params": ("Parameters of the link", 'Such as { tab = "Compare" }.'),
}
LISTS = {"template": TEMPLATES, "by": SLICED_BY, "page": ("ask", "results")}
LONG = ("text", "takeaway", "question")
ALIGNED = ("golds", "wrong")  # one line for each sentence, which may be empty
FIRST = ("title", "text", "choices", "answer", "gold", "golds", "takeaway", "query")  # not folded


@dataclass
class EditedLesson:
    """What is typed in the editor.

    Attributes:
        saved: The lesson as it was last saved.
        fields: The fields of the lesson's file, which can be invalid.
        version: The number of times that the forms were filled in.
        kept: Number of a step -> its fields of other kinds, which come back with the kind.
        removed: The steps that were removed, the last one last, and their numbers.
    """

    saved: Lesson
    fields: dict[str, Any]
    version: int
    kept: dict[int, dict[str, Any]] = field(default_factory=dict)
    removed: list[tuple[int, dict[str, Any]]] = field(default_factory=list)


def draw_editor(lesson: Lesson) -> None:
    """Draw the form of the step that the URL names, and save each valid change."""
    draft: EditedLesson | None = st.session_state.get(DRAFT)
    if draft is None or draft.saved != lesson:
        draft = st.session_state[DRAFT] = EditedLesson(
            lesson, lesson_fields(lesson), draft.version + 1 if draft else 0
        )
    steps: list[dict[str, Any]] = draft.fields["steps"]
    typed = st.query_params.get(STEP, "")
    number = int(typed) if typed.isdecimal() and len(typed) <= 4 else 1
    number = min(number, len(steps))
    for name, value in ((LESSON, lesson.id), (STEP, str(number)), (EDIT, "true")):
        links.set_param(name, [value])
    head, ways = st.container(), st.container(horizontal=True, vertical_alignment="center")
    tabs = ["About"] + [
        plain(f"{at} {short(one.get('title') or KINDS[one['kind']], 24)}")
        for at, one in enumerate(steps, 1)
    ]
    chosen = st.segmented_control(
        "Step",
        range(len(steps) + 1),
        default=number,
        format_func=tabs.__getitem__,
        key=f"edit {lesson.id} {draft.version} {number}",
        label_visibility="collapsed",
    )
    key = f"{lesson.id} {draft.version} {number}"
    form, preview = st.columns(2, gap="large") if number else (st.container(), st.empty())
    with form:
        order = st.container(horizontal=True, gap="small")
        if number:
            kinds = list(STEPS)
            step = steps[number - 1]
            kind = st.selectbox(
                "Kind of step", kinds, kinds.index(step["kind"]), KINDS.__getitem__, key=key
            )
            if kind != step["kind"]:
                kept = draft.kept[number] = draft.kept.get(number, {}) | step
                required = [one.name for one in _fields(STEPS[kind]) if one.required]
                step = {name: NEW[name] for name in required if name in NEW} | kept
                if "text" not in required and step.get("text") == NEW["text"]:
                    del step["text"]
            steps[number - 1] = {"kind": kind} | _draw_fields(STEPS[kind], step, f"{key} {kind}")
        else:
            draft.fields = _draw_fields(LessonFile, draft.fields, key) | {"steps": steps}
    problem = ""
    try:
        saved = parse_lesson(draft.fields, lesson.id)
        if saved != lesson:
            own.save(saved)
            draft.saved = saved
    except UserError as error:
        named = "|".join(KINDS)  # which the field says in words
        problem = re.sub(
            rf"(?<=[(, ])({named})(?=[),]|$)", lambda found: f"“{KINDS[found[0]]}”", str(error)
        )
    with head:
        st.header(plain(draft.saved.title), anchor=False)
        if problem:
            show_error(f"Not saved. {problem}")
        else:
            st.caption(f"Every change is saved {own.place_of(lesson)}.")
    with ways:
        _draw_ways(draft.saved, max(number, 1), "Show the saved lesson" if problem else "Show it")
    if number:
        with order:
            _draw_order(draft, number)
        with preview, st.container(border=True, key="lesson-step"), errors_shown():
            st.caption("Preview")
            try:
                shown: Step = msgspec.convert(steps[number - 1], AnyStep)
            except msgspec.ValidationError:
                st.caption("It is shown when the form is complete.")
            else:
                draw_text(shown)
                if isinstance(shown, Predict):
                    draw_form(shown, f"preview {key}", disabled=True)
                if type(shown) in DRAWN:
                    DRAWN[type(shown)](shown, f"preview {key}")
    if chosen not in (None, number):
        links.go(screens.LESSONS, address_of(lesson, chosen) | {EDIT: "true"})


def _title_of_chart(name: str) -> str:
    title = chart_of(ShowRun(figure=name)).title.format(
        k="k", by="group", of="subject or object", prompts="altered"
    )
    return title[0].upper() + title[1:]


def _draw_ways(lesson: Lesson, number: int, shows: str) -> None:
    """Draw the buttons that concern the whole lesson. shows: the label of the first."""
    links.draw_link(
        shows, "play_arrow", screens.LESSONS, address_of(lesson, number), type="secondary"
    )
    draw_download("Download", lesson_text(lesson), f"{lesson.id}.toml", icon=":material/download:")
    with st.popover("Delete", icon=":material/delete:"):
        st.markdown(f"{plain(lesson.title)} can't be restored.")
        if st.button("Delete this lesson", type="primary"):
            own.delete(lesson)
            links.go(screens.LESSONS, {})
    links.draw_link("All lessons", "apps", screens.LESSONS, {})


def _draw_order(draft: EditedLesson, number: int) -> None:
    """Draw the buttons that add, move and remove steps, and that restore a removed one."""
    steps, n_steps = draft.fields["steps"], len(draft.fields["steps"])
    adds = st.button("Add a step", icon=":material/add:")
    earlier = st.button("Earlier", icon=":material/arrow_back:", disabled=number == 1)
    later = st.button("Later", icon=":material/arrow_forward:", disabled=number == n_steps)
    removes = st.button("Remove", icon=":material/delete:", disabled=n_steps == 1)
    restores = bool(draft.removed) and st.button("Undo Remove", icon=":material/undo:")
    if not (adds or earlier or later or removes or restores):
        return
    # Between a prediction and the step with its answer is no place for another.
    before = adds and steps[number - 1]["kind"] == "predict" and number < n_steps
    there = number + adds + before + later - earlier
    if restores:
        there, step = draft.removed.pop()
    else:
        step = {"kind": "text", "text": NEW["text"]} if adds else steps.pop(number - 1)
    if removes:
        draft.removed.append((number, step))
    else:
        steps.insert(there - 1, step)
    draft.version += 1
    draft.kept.clear()  # whose numbers have changed
    links.go(screens.LESSONS, address_of(draft.saved, min(there, len(steps))) | {EDIT: "true"})


def _fields(kind: type[Any]) -> Sequence[Field]:
    return cast(Any, type_info(kind)).fields


def _draw_fields(kind: type[Any], values: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Draw the fields of a step or a lesson; return those that don't have their default."""
    found: dict[str, Any] = {}
    fields = [one for one in _fields(kind) if one.name != "steps"]
    folded = [one for one in fields if not (one.required or one.name in FIRST)]
    for one in fields:
        if one not in folded:
            found[one.name] = _draw_field(one, values.get(one.name), key)
    if folded:
        with st.expander("More fields"):
            found |= {one.name: _draw_field(one, values.get(one.name), key) for one in folded}
    plainly = {name: tuple(one) if isinstance(one, list) else one for name, one in found.items()}
    return {
        one.name: found[one.name]
        for one in fields
        if plainly[one.name] not in (one.default, "", {})
    }


def _draw_field(one: Field, value: Any, key: str) -> Any:
    """Draw a field and return its content, as in a lesson's file."""
    label, help = LABELS.get(one.name, (one.name.capitalize(), ""))
    given: dict[str, Any] = {"key": f"{key} {one.name}", "help": help or None}
    value = (None if one.default is NODEFAULT else one.default) if value is None else value
    listed = one.type.values if isinstance(one.type, LiteralType) else ()
    if listed := figure_names() if one.name == "figure" else tuple(LISTS.get(one.name, listed)):
        given["format_func"] = _title_of_chart if one.name == "figure" else str
        options = [*dict.fromkeys((*listed, value or listed[0]))]
        return st.selectbox(label, options, options.index(value or listed[0]), **given)
    if one.name == "models":
        names = [model.name for model in known_models() if model.source.how != "none"]
        return st.multiselect(
            label,
            [*dict.fromkeys((*names, *value))],
            value,
            format_func=title_of,
            accept_new_options=True,
            max_selections=4,
            **given,
        )
    if isinstance(one.type, IntType):
        return st.number_input(
            label, one.type.ge, one.type.le, int(value or one.type.ge or 0), **given
        )
    if isinstance(one.type, DictType):
        text = st.text_area(label, toml_value(value) if value else "", **given)
        try:
            return tomllib.loads(f"value = {text}")["value"] if text else {}
        except ValueError:
            return text  # which the check of the lesson refuses
    if isinstance(one.type, StrType):
        given["max_chars"] = one.type.max_length
        if one.name in LONG:
            return st.text_area(label, value or "", height="content", **given)
        return st.text_input(label, value or "", **given)
    lines = st.text_area(
        label, value if isinstance(value, str) else _lines(value or ()), **given
    ).split("\n")
    lines = (
        lines if one.name in ALIGNED and any(lines) else [line for line in lines if line.strip()]
    )
    if one.name == "analogies":
        return [re.split(r"\s*:+\s*", line.strip()) for line in lines]
    return [_number(line) for line in lines] if one.name == "between" else lines


def _lines(values: Sequence[Any]) -> str:
    """A list as text, one value per line."""
    return "\n".join(
        one if isinstance(one, str) else " : ".join(one) if isinstance(one, list) else f"{one:g}"
        for one in values
    )


def _number(text: str) -> float | str:
    """The number in a text; other texts unchanged, which the check of the lesson refuses."""
    try:
        return float(text)
    except ValueError:
        return text
