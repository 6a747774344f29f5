"""Tags on facts, and the user's verdicts on generated texts, which are tags, too.

All visitors see them; only the local user (operator) can change them.
"""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from lama_core.metrics.fact_answers import AnswerFilter, JoinedAnswers
from lama_core.rounding import percent
from lama_core.runs.info import RunInfo
from lama_core.runs.tags import MOST_TAGS, VERDICTS, Row, change_tags, known_tags, read_tags
from pages.ui.shared import visitors
from pages.ui.shared.messages import counted, errors_shown, plain
from pages.ui.shared.run_choice import RunChoice
from pages.ui.wrong_answers.filters import narrow

EXAMPLES = "Choose or type a tag: wrong in the data, ambiguous, ..."
AS_MATCHED = "as matched"


def draw_fact_tags(
    joined: JoinedAnswers, row: int, chosen: AnswerFilter, choice: RunChoice
) -> None:
    """Draw the tags of one fact in the selected run; the local user can change them."""
    info = joined.runs[chosen.of].run.info
    of = plain(choice.titles[chosen.of])
    (key,) = _rows_of(joined, [row])
    with errors_shown():
        tags = read_tags(info)
        own = tags.get(key, ())
        if not visitors.may("manage"):
            if own:
                st.markdown(f"Tags in the run of {of}: {plain(', '.join(own))}")
            return
        # The key holds the stored tags, so the widget can't undo a change from another window.
        chosen_tags = st.multiselect(
            f"Tags in the run of {of}",
            [*own, *(tag for tag in known_tags(tags) if tag not in own)],
            default=own,
            key=f"tags of {info.id} {key} {own}",
            accept_new_options=True,
            max_selections=MOST_TAGS,
            placeholder=EXAMPLES,
            select_all=False,
        )
        if tuple(chosen_tags) != own:
            change_tags(
                info,
                [key],
                add=[tag for tag in chosen_tags if tag not in own],
                remove=[tag for tag in own if tag not in chosen_tags],
            )
            st.rerun()


def draw_fact_verdict(info: RunInfo, key: Row) -> None:
    """Draw the local user's verdict on a generated text, which the local user can change."""
    with errors_shown():
        own = [tag for tag in read_tags(info).get(key, ()) if tag in VERDICTS]
        now = own[0] if len(own) == 1 else AS_MATCHED
        if not visitors.may("manage"):
            if own:
                st.caption(f"The operator's verdict: {now}.")
            return
        # The key holds the stored verdict, so the widget can't undo a change from another window.
        chosen = st.segmented_control(
            "Verdict",
            (AS_MATCHED, *VERDICTS),
            default=now,
            required=True,
            key=f"verdict of {info.id} {key} {own}",
            help="Overrides whether the text is right. The verdict is stored as a tag, and scores "
            "are shown with and without it. **as matched**: the text is right if whole words of "
            "it are a right answer.",
        )
        if chosen is not None and chosen != now:
            add = [chosen] if chosen in VERDICTS else []
            change_tags(info, [key], add=add, remove=[tag for tag in own if tag not in add])
            st.rerun()


def draw_verdicts(joined: JoinedAnswers, rows: NDArray[np.int64], choice: RunChoice) -> None:
    """Draw P@1 of the listed facts with and without verdicts, for each run that has any."""
    for number, title in enumerate(choice.titles):
        counted_rows = rows[~np.isnan(joined.runs[number].rank[rows])]
        verdicts = joined.verdicts(number)
        if n_own := len(verdicts.keys() & set(counted_rows.tolist())):
            right = joined.right(number)
            judged = [verdicts.get(int(row), bool(right[row])) for row in counted_rows]
            st.caption(
                f"P@1 of {plain(title)} on these {counted(len(judged), 'fact')}: "
                f"{percent(float(right[counted_rows].mean()))} % as matched, "
                f"{percent(float(np.mean(judged)))} % with your {counted(n_own, 'verdict')}."
            )


def draw_picked_tags(
    joined: JoinedAnswers, rows: Sequence[int], chosen: AnswerFilter, choice: RunChoice
) -> None:
    """Draw the form that adds or removes tags of several facts."""
    info = joined.runs[chosen.of].run.info
    with st.container(border=True), errors_shown():
        box, buttons = st.columns([3, 2], vertical_alignment="bottom")
        tags = box.multiselect(
            f"Tags for the ticked facts, in the run of {plain(choice.titles[chosen.of])}",
            known_tags(read_tags(info)),
            key="tags of picked",
            accept_new_options=True,
            max_selections=MOST_TAGS,
            placeholder=EXAMPLES,
            select_all=False,
        )
        with buttons, st.container(horizontal=True):
            add, shows, remove = (
                st.button(label, icon=f":material/{icon}:", disabled=not tags)
                for label, icon in (
                    (f"Add to {counted(len(rows), 'fact')}", "new_label"),
                    ("Add and show", "filter_alt"),
                    ("Remove", "label_off"),
                )
            )
        if add or shows or remove:
            change_tags(
                info,
                _rows_of(joined, rows),
                add=() if remove else tags,
                remove=tags if remove else (),
            )
            if shows:
                narrow(tag=tags)
            st.rerun()


def _rows_of(joined: JoinedAnswers, rows: Sequence[int]) -> list[Row]:
    facts = joined.facts.iloc[list(rows)]
    return list(zip(facts["fact_id"], facts["prompt"].astype(int).tolist(), strict=True))
