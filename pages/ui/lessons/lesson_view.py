"""A lesson: one step at a time with Back and Next, and a summary of the predictions at the end."""

from dataclasses import replace
from html import escape
from typing import Any

import streamlit as st

from lama_core.lessons.handout import handout, sheet, summary_table, summary_title
from lama_core.lessons.lesson import SHOWING, Ask, Explain, Lesson, LessonListing, Predict, Step
from lama_core.lessons.markup import as_markdown
from lama_core.lessons.step_results import (
    StepResult,
    answering_model,
    first_to_predict,
    judge,
    judged_predictions,
    missing_row_note,
)
from lama_core.queries.cloze import fill
from lama_core.scoring.blanks import parse_query
from pages.ui.lessons import own
from pages.ui.lessons.progress import KEY, LessonProgress, progress_in
from pages.ui.lessons.step_view import DRAWN
from pages.ui.lessons.teacher import BACK, LARGE, NEXT, draw_teacher_mode, is_teaching
from pages.ui.poll.entry import draw_entry, hides_answers
from pages.ui.shared import links, predictions, screens, visitors
from pages.ui.shared.export import draw_download
from pages.ui.shared.messages import errors_shown, plain, show_note
from pages.ui.shared.url_state import BOUND, title_of

LESSON, STEP, EDIT = "lesson", "step", "edit"
PREPARED = "teacher sheet of"  # in the session: the lesson whose teacher sheet is prepared


def address_of(lesson: Lesson | None, number: int = 1) -> dict[str, str]:
    """URL parameters of a lesson's step, counted from 1; for None, of the list of lessons."""
    there = {LESSON: lesson.id, STEP: str(number)} if lesson else {}
    return there | ({LARGE: "true"} if is_teaching() else {})


def draw_lesson(lesson: Lesson, listing: LessonListing) -> None:
    """Draw the step that the URL names, or the first step if the number is invalid."""
    typed = st.query_params.get(STEP, "")
    last = len(lesson.steps) + 1  # the summary
    number = int(typed) if typed.isdecimal() and len(typed) <= 4 else 1
    number = number if 1 <= number <= last else 1
    links.set_param(LESSON, [lesson.id])
    links.set_param(STEP, [str(number)])
    with st.container(key="lesson-head"):
        head, box = st.columns([5, 3], vertical_alignment="bottom")
    box = box.container(horizontal=True, horizontal_alignment="right", key="lesson-mode")
    teaching = box.toggle(
        "Teacher mode",
        key=LARGE,
        bind=BOUND,
        help="For a class: large type, no header, a menu of all steps, a button that reveals the "
        "answer, and arrow keys for back and next.",
    )
    if teaching:
        draw_teacher_mode()
    head.header(plain(lesson.title), anchor=False)
    if teaching:
        n_steps = len(lesson.steps)
        chosen = st.segmented_control(
            "Step",
            range(1, n_steps + 2),
            default=number,
            format_func=lambda at: str(at) if at <= n_steps else "Summary",
            key=f"jump {lesson.id} {number}",
            label_visibility="collapsed",
        )
        if chosen not in (None, number):
            links.go(screens.LESSONS, address_of(lesson, chosen))
    else:
        st.caption(plain(lesson.question))
        st.progress(
            min(1.0, number / len(lesson.steps)),
            text=f"Step {number} of {len(lesson.steps)}" if number < last else "Summary",
        )
    progress = progress_in(lesson)
    missing = None if teaching else first_to_predict(lesson, progress.predicted, number)
    if missing is not None and number not in progress.seen:  # opened by a link
        st.info(
            "This lesson has a question before this step. Predict first, or open the step without "
            "a prediction.",
            icon=":material/psychology_alt:",
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            if st.button("To the question", type="primary"):
                links.go(screens.LESSONS, address_of(lesson, missing))
            if st.button("Open the step", icon=":material/lock_open:"):
                progress.seen.add(number)
                st.rerun()
            links.draw_link("All lessons", "apps", screens.LESSONS, address_of(None))
        return
    progress.seen.add(number)
    if number == last:
        _draw_summary(lesson, progress)
    else:
        with st.container(key="lesson-step"), errors_shown():
            _draw_step(lesson, number, progress)
    _draw_navigation(lesson, listing, number, progress)


def _draw_step(lesson: Lesson, number: int, progress: LessonProgress) -> None:
    step = lesson.steps[number - 1]
    draw_text(step)
    if isinstance(step, Predict):
        _draw_question(lesson, number, step, progress)
    before = lesson.steps[number - 2] if number > 1 else None
    if isinstance(step, Ask) and hides_answers(
        step.request,
        f"show {number}",
        # After a question, which opens the poll, a teacher has chosen to see the answers.
        always=is_teaching() and not isinstance(before, Predict),
    ):
        predictions.draw_sentence(parse_query(step.request.text).parts)
        _draw_poll(step, f"poll {number}")
    elif type(step) in DRAWN:
        verdict = st.container()  # above the results, where readers see it
        progress.shown[number] = DRAWN[type(step)](step, f"{lesson.id} {number}")
        if isinstance(before, Predict) and not before.answer:
            with verdict:
                _draw_judged(before, number - 1, progress)


def draw_text(step: Step) -> None:
    """Draw what a reader reads first: the title, the text, and its source or the question."""
    if step.title:
        st.subheader(plain(step.title), anchor=False)
    if step.text:
        st.markdown(as_markdown(step.text, plain))
    if isinstance(step, Explain):
        st.caption(plain(step.source, links=False))
    if isinstance(step, Predict):
        st.markdown(f"**{plain(step.question)}**")


def _draw_question(lesson: Lesson, number: int, step: Predict, progress: LessonProgress) -> None:
    """Draw the form of a question or, once predicted, the prediction and any answer."""
    if number in progress.predicted:
        if step.answer:
            _draw_judged(step, number, progress)
        else:
            st.markdown(f"You predicted **{plain(progress.predicted[number])}**.")
        return
    prediction, sent, revealed = draw_form(step, f"{lesson.id} {number}")
    if is_teaching():
        after = lesson.steps[number] if number < len(lesson.steps) else None
        if isinstance(after, Ask) and not step.answer:  # else the query is another question
            _draw_poll(after, f"poll {lesson.id} {number}", step)
    if revealed and step.answer:
        st.info(f"The answer is **{plain(step.answer)}**.", icon=":material/compare:")
    elif revealed:
        links.go(screens.LESSONS, address_of(lesson, number + 1))
    if not sent:
        return
    if not prediction:
        st.warning("Make a prediction first; a guess is enough.", icon=":material/psychology_alt:")
        return
    progress.predicted[number] = prediction
    if step.answer:
        st.rerun()
    links.go(screens.LESSONS, address_of(lesson, number + 1))


def _draw_poll(step: Ask, key: str, question: Predict | None = None) -> None:
    """Draw the button that opens a poll for a step's query to the models that are here.

    question: The question whose answer this step shows.
    """
    here = visitors.models_here()
    request = replace(step.request, models=tuple(name for name in step.models if name in here))
    options, asks = (question.choices, question.question) if question else ((), "")
    draw_entry(fill.kind, request, options=options, asks=asks, key=key)


def draw_form(step: Predict, key: str, *, disabled: bool = False) -> tuple[str, bool, bool]:
    """Draw the form; return the prediction, and whether Predict and Reveal were clicked.

    Only teachers have Reveal.
    """
    with st.form(f"predict {key}", border=False):
        same: dict[str, Any] = {"key": f"prediction {key}", "disabled": disabled}
        given = (
            st.radio("Your prediction", step.options, index=None, format_func=plain, **same)
            if step.options
            else st.text_input("Your prediction: one word", max_chars=60, **same)
        )
        with st.container(horizontal=True):
            sent = st.form_submit_button(
                "Predict", type="primary", icon=":material/psychology:", disabled=disabled
            )
            revealed = is_teaching() and st.form_submit_button(
                "Reveal",
                icon=":material/visibility:",
                help="Shows the answer without a prediction.",
            )
    return str(given or "").strip(), sent, revealed


def _draw_judged(step: Predict, number: int, progress: LessonProgress) -> None:
    """Draw the prediction, if there is one, next to the answer."""
    shown = progress.shown.get(number + 1)
    verdict = judge(step, progress.predicted.get(number, ""), shown)
    text = f"You predicted **{plain(verdict.predicted)}**."
    if number not in progress.predicted:  # in teacher mode the question is on another screen
        text = f"{plain(step.question)}  \n" if not step.answer else ""
    model, answer = answering_model(step, shown), f"**{plain(verdict.answer)}**"
    by_model = f"{plain(title_of(model))}: {answer}." if model else ""
    if not verdict.answer:
        reason = plain(missing_row_note(step, shown)) or "The answer can't be shown here."
        show_note(f"{text} {reason}")
    elif verdict.right and shown and shown.firsts:  # the model's word can be wrong
        st.info(f"{text} The prediction is right. {by_model}", icon=":material/check:")
    elif verdict.right:
        st.success(f"{text} Correct! {by_model}", icon=":material/check:")
    else:
        st.info(f"{text} {by_model or f'The answer is {answer}.'}", icon=":material/compare:")


def _draw_navigation(
    lesson: Lesson, listing: LessonListing, number: int, progress: LessonProgress
) -> None:
    """Draw the buttons Back, Next and All lessons; after the last step also the handout."""
    last = len(lesson.steps) + 1
    step: Step | None = lesson.steps[number - 1] if number < last else None
    asks = isinstance(step, Predict) and number not in progress.predicted
    waits = asks and not is_teaching()
    with st.container(horizontal=True, vertical_alignment="center", key="lesson-ways"):
        links.draw_link(
            "Back",
            "arrow_back",
            screens.LESSONS,
            address_of(lesson, number - 1),
            key=BACK,
            type="secondary",
            disabled=number == 1,
        )
        if step is not None:
            links.draw_link(
                "Next" if number < last - 1 else "Summary",
                "arrow_forward",
                screens.LESSONS,
                address_of(lesson, number + 1),
                key=NEXT,
                type="secondary" if asks else "primary",
                disabled=waits,
                help="Choose a prediction first." if waits else None,
            )
        else:
            at = listing.lessons.index(lesson) + 1
            if at < len(listing.lessons):
                links.draw_link(
                    f"Next lesson: {plain(listing.lessons[at].title)}",
                    "arrow_forward",
                    screens.LESSONS,
                    address_of(listing.lessons[at]),
                    type="primary",
                )
            draw_download(
                "Handout",
                lambda: handout(lesson, progress.predicted, progress.shown),
                f"{lesson.id}.html",
                icon=":material/print:",
                help="An HTML file to print, with the answers and numbers that you saw.",
            )
            if st.button("Start again", icon=":material/replay:"):
                st.session_state[KEY].pop(lesson.id)
                links.go(screens.LESSONS, address_of(lesson))
        if own.is_mine(lesson) and not is_teaching():
            links.draw_link(
                "Edit this step",
                "edit",
                screens.LESSONS,
                address_of(lesson, min(number, last - 1)) | {EDIT: "true"},
            )
        links.draw_link("All lessons", "apps", screens.LESSONS, address_of(None))


def _draw_summary(lesson: Lesson, progress: LessonProgress) -> None:
    """Draw what the lesson showed, the predictions next to the answers, and the sources."""
    if lesson.takeaway:
        predictions.draw_conclusion(escape(lesson.takeaway))
    verdicts = list(judged_predictions(lesson, progress.predicted, progress.shown))
    st.subheader(summary_title(progress.predicted), anchor=False)
    if verdicts:
        st.html(f'<div class="lx-lesson">{summary_table(verdicts)}</div>')
    else:
        st.caption("This lesson has no questions.")
    if known := [one for one in verdicts if one.answer and one.predicted]:
        st.caption(f"{sum(one.right for one in known)} of {len(known)} predictions were right.")
    if not all(one.answer for one in verdicts) and st.button("Show the answers"):
        _show_steps(lesson)
        st.rerun()
    if lesson.sources:
        st.subheader("Sources", anchor=False)
        st.markdown("\n".join(f"- {plain(source)}" for source in lesson.sources))


def _show_steps(lesson: Lesson) -> dict[int, StepResult]:
    """Query the models for the steps that the reader hasn't seen; return what all steps show."""
    shown = progress_in(lesson).shown
    with st.spinner("Querying the models", show_time=True), st.container(key="prepared"):
        for number, step in enumerate(lesson.steps, start=1):
            if isinstance(step, SHOWING) and number not in shown:
                shown[number] = DRAWN[type(step)](step, f"{lesson.id} {number}")
    return shown


def draw_handouts(lesson: Lesson) -> None:
    """Draw the downloads of the student sheet, and of the teacher sheet after its preparation."""
    st.caption("Handouts: each file opens the print dialog.")
    draw_download(
        "Student sheet, with blanks",
        lambda: sheet(lesson),
        f"{lesson.id}-students.html",
        key=f"students {lesson.id}",
    )
    if st.session_state.get(PREPARED) != lesson.id:
        if st.button("Prepare the teacher sheet", key=f"prepare {lesson.id}"):
            st.session_state[PREPARED] = lesson.id
            st.rerun()
        st.caption("The teacher sheet has the models' answers, so the models are queried first.")
        return
    shown = _show_steps(lesson)
    draw_download(
        "Teacher sheet, with answers",
        lambda: sheet(lesson, shown),
        f"{lesson.id}-teacher.html",
        key=f"teacher {lesson.id}",
        type="primary",
    )
