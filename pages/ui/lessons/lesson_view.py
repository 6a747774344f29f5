"""A lesson: one step at a time, the way to the next, and what was predicted at the end."""

import streamlit as st

from lama_core.lessons.handout import HEADS, handout, sheet, summary_row
from lama_core.lessons.lesson import SHOWING, Explain, Lesson, LessonListing, Predict, Step
from lama_core.lessons.markup import as_markdown
from lama_core.lessons.step_results import first_to_predict, judge, judged, whose, without_line
from lama_core.reports.html import grid
from pages.ui.lessons.progress import Progress, forget, progress_in
from pages.ui.lessons.step_view import DRAWN
from pages.ui.lessons.teacher import BACK, LARGE, NEXT, draw_teacher_mode, is_teaching
from pages.ui.shared import links, screens
from pages.ui.shared.messages import faults_shown, plain, show_note
from pages.ui.shared.url_state import BOUND, title_of

LESSON, STEP = "lesson", "step"
PREPARED = "teacher sheet of"  # in the session: the lesson whose answers are wanted


def address_of(lesson: Lesson | None, number: int = 1) -> dict[str, str]:
    """The parameters of a step's address, from 1; of the list of lessons for None."""
    large = {LARGE: "true"} if st.session_state.get(LARGE) else {}
    return ({LESSON: lesson.id, STEP: str(number)} if lesson else {}) | large


def draw_lesson(lesson: Lesson, listing: LessonListing) -> None:
    """The step that the address names; the first for a number that is none."""
    asked = st.query_params.get(STEP, "")
    last = len(lesson.steps) + 1  # the summary
    number = int(asked) if asked.isdecimal() and len(asked) <= 4 else 1
    number = number if 1 <= number <= last else 1
    links.put(LESSON, [lesson.id])
    links.put(STEP, [str(number)])
    with st.container(key="lesson-head"):
        head, box = st.columns([5, 2.3], vertical_alignment="bottom")
    teaching = box.toggle(
        "Teacher mode",
        key=LARGE,
        bind=BOUND,
        help="For a class: large type, no header, a jump to any step, answers revealed by a "
        "button, and the arrow keys for back and next.",
    )
    if teaching:
        draw_teacher_mode()
    head.header(plain(lesson.title), anchor=False)
    if teaching:
        _draw_jump(lesson, number)
    else:
        st.caption(plain(lesson.question))
        said = f"Step {number} of {len(lesson.steps)}" if number < last else "Summary"
        st.progress(number / last, text=said)
    progress = progress_in(lesson)
    missing = None if teaching else first_to_predict(lesson, progress.predicted, number)
    if missing is not None:
        st.info(
            "What follows shows the answer to a question of this lesson: predict first.",
            icon=":material/psychology_alt:",
        )
        if st.button("To the question", type="primary"):
            links.go(screens.LESSONS, address_of(lesson, missing))
        return
    progress.seen.add(number)
    if number == last:
        _draw_summary(lesson, listing, progress)
    else:
        with st.container(key="lesson-step"), faults_shown():
            _draw_step(lesson, number, progress)
    _draw_ways(lesson, number, progress)


def _draw_jump(lesson: Lesson, number: int) -> None:
    """A menu of all steps; a choice leads there."""
    titles = [
        step.title or ("Question" if isinstance(step, Predict) else "") for step in lesson.steps
    ]
    chosen = st.segmented_control(
        "Step",
        range(1, len(titles) + 2),
        default=number,
        format_func=lambda at: f"{at} {plain(titles[at - 1])}" if at <= len(titles) else "Summary",
        key=f"jump {lesson.id} {number}",
        label_visibility="collapsed",
    )
    if chosen not in (None, number):
        links.go(screens.LESSONS, address_of(lesson, chosen))


def _draw_step(lesson: Lesson, number: int, progress: Progress) -> None:
    step = lesson.steps[number - 1]
    if step.title:
        st.subheader(plain(step.title), anchor=False)
    draw_text(step.text)
    if isinstance(step, Predict):
        _draw_question(lesson, number, step, progress)
    if isinstance(step, Explain):
        st.caption(plain(step.source, links=False))
    if type(step) in DRAWN:
        verdict = st.container()  # above what is shown, where it is seen
        progress.shown[number] = DRAWN[type(step)](step, f"{lesson.id} {number}")
        before = lesson.steps[number - 2] if number > 1 else None
        if isinstance(before, Predict) and not before.answer:
            with verdict:
                _draw_judged(before, number - 1, progress)


def draw_text(text: str) -> None:
    """A text of a lesson."""
    if text:
        st.markdown(as_markdown(text, plain))


def _draw_question(lesson: Lesson, number: int, step: Predict, progress: Progress) -> None:
    """The question; once it is answered, what was predicted, and the answer if it is written."""
    st.markdown(f"**{plain(step.question)}**")
    if number in progress.predicted:
        if step.answer:
            _draw_judged(step, number, progress)
        else:
            st.markdown(f"You predicted **{plain(progress.predicted[number])}**.")
        return
    with st.form(f"predict {lesson.id} {number}", border=False):
        if step.options:
            given = st.radio(
                "Your prediction",
                step.options,
                index=None,
                format_func=plain,
                key=f"prediction {lesson.id} {number}",
            )
        else:
            given = st.text_input(
                "Your prediction: one word", key=f"prediction {lesson.id} {number}", max_chars=60
            )
        with st.container(horizontal=True):
            sent = st.form_submit_button("Predict", type="primary", icon=":material/psychology:")
            shown = is_teaching() and st.form_submit_button(
                "Reveal",
                icon=":material/visibility:",
                help="Shows the answer without a prediction.",
            )
    if shown and step.answer:
        st.info(f"The answer is **{plain(step.answer)}**.", icon=":material/compare:")
    elif shown:
        links.go(screens.LESSONS, address_of(lesson, number + 1))
    if not sent:
        return
    if not (given or "").strip():
        st.warning("Answer first: a guess is enough.", icon=":material/psychology_alt:")
        return
    progress.predicted[number] = str(given).strip()
    if step.answer:
        st.rerun()
    links.go(screens.LESSONS, address_of(lesson, number + 1))


def _draw_judged(step: Predict, number: int, progress: Progress) -> None:
    """A prediction next to its answer; in teacher mode perhaps the answer alone."""
    shown = progress.shown.get(number + 1)
    found = judge(step, progress.predicted.get(number, ""), shown)
    said = f"You predicted **{plain(found.predicted)}**." if number in progress.predicted else ""
    model, answer = whose(step, shown), f"**{plain(found.answer)}**"
    of = f"{plain(title_of(model))}: {answer}." if model else ""
    if not found.answer:
        why = plain(without_line(step, shown)) or "The answer can't be shown here."
        show_note(f"{said} {why}")
    elif found.right:
        st.success(f"{said} Correct! {of}", icon=":material/check:")
    else:
        st.info(f"{said} {of or f'The answer is {answer}.'}", icon=":material/compare:")


def _draw_ways(lesson: Lesson, number: int, progress: Progress) -> None:
    """Back, next, and to the list."""
    last = len(lesson.steps) + 1
    step: Step | None = lesson.steps[number - 1] if number < last else None
    waits = isinstance(step, Predict) and number not in progress.predicted and not is_teaching()
    with st.container(horizontal=True, vertical_alignment="center", key="lesson-ways"):
        if st.button("Back", key=BACK, icon=":material/arrow_back:", disabled=number == 1):
            links.go(screens.LESSONS, address_of(lesson, number - 1))
        if step is not None and st.button(
            "Next" if number < last - 1 else "Summary",
            key=NEXT,
            type="secondary" if waits else "primary",
            icon=":material/arrow_forward:",
            disabled=waits,
        ):
            links.go(screens.LESSONS, address_of(lesson, number + 1))
        if st.button("All lessons", icon=":material/apps:", type="tertiary"):
            links.go(screens.LESSONS, address_of(None))


def _draw_summary(lesson: Lesson, listing: LessonListing, progress: Progress) -> None:
    """The predictions beside their answers, the handout, and the next lesson."""
    found = list(judged(lesson, progress.predicted, progress.shown))
    st.subheader("Your predictions", anchor=False)
    if found:
        st.html(f'<div class="lx-lesson">{grid(HEADS, map(summary_row, found))}</div>')
        known = [one for one in found if one.answer]
        st.caption(f"{sum(one.right for one in known)} of {len(known)} as you predicted.")
    else:
        st.caption("This lesson asks for no prediction.")
    if lesson.sources:
        st.subheader("Sources", anchor=False)
        st.markdown("\n".join(f"- {plain(source)}" for source in lesson.sources))
    with st.container(horizontal=True):
        st.download_button(
            "Handout",
            lambda: handout(lesson, progress.predicted, progress.shown),
            f"{lesson.id}.html",
            "text/html",
            icon=":material/print:",
            on_click="ignore",
            help="One HTML file to print, with the answers and numbers that you were shown.",
        )
        if st.button("Start again", icon=":material/replay:"):
            forget(lesson)
            links.go(screens.LESSONS, address_of(lesson, 1))
        at = listing.lessons.index(lesson) + 1
        if at < len(listing.lessons) and st.button(
            f"Next lesson: {plain(listing.lessons[at].title)}", icon=":material/school:"
        ):
            links.go(screens.LESSONS, address_of(listing.lessons[at], 1))


def draw_handouts(lesson: Lesson) -> None:
    """The sheets to print: for students, and for the teacher once the models have answered."""
    st.caption("Each file opens the print dialog.")
    st.download_button(
        "Student sheet, with blanks",
        lambda: sheet(lesson),
        f"{lesson.id}-students.html",
        "text/html",
        key=f"students {lesson.id}",
        on_click="ignore",
    )
    if st.session_state.get(PREPARED) != lesson.id:
        if st.button("Prepare the teacher sheet", key=f"prepare {lesson.id}"):
            st.session_state[PREPARED] = lesson.id
            st.rerun()
        st.caption("It holds the answers, so the models are queried first.")
        return
    progress = progress_in(lesson)
    with st.spinner("Querying the models", show_time=True), st.container(key="prepared"):
        for number, step in enumerate(lesson.steps, start=1):
            if isinstance(step, SHOWING) and number not in progress.shown:
                shown = DRAWN[type(step)](step, f"{lesson.id} {number}")
                progress.shown[number] = shown
    st.download_button(
        "Teacher sheet, with answers",
        lambda: sheet(lesson, progress.shown),
        f"{lesson.id}-teacher.html",
        "text/html",
        key=f"teacher {lesson.id}",
        type="primary",
        on_click="ignore",
    )
