"""The form for a subject and a relation: every wording asked at once, a row each."""

from collections import Counter
from dataclasses import dataclass, replace
from html import escape
from itertools import islice
from typing import Any

import pandas as pd
import streamlit as st

from lama_core.datasets import Dataset
from lama_core.datasets.library.installed import STARTER, dataset_names
from lama_core.glossary import explain
from lama_core.models.protocols import KINDS
from lama_core.probes.cloze.wordings import (
    MAX_SUBJECT,
    ModelOnRelation,
    RelationAnswer,
    RelationQuestion,
    RelationRequest,
    first_answers,
    subjects_of,
    worded_relations,
)
from lama_core.requests import values
from lama_core.scoring.shared_fields import ClozeSettings
from pages.ui.shared import cache, history, links, predictions, screens, url_state
from pages.ui.shared.export import draw_answer_export
from pages.ui.shared.messages import plain, show_note
from pages.ui.shared.model_columns import Column, ask_each
from pages.ui.shared.run_choice import relation_label

FIRST_RELATION, FIRST_SUBJECT = "P36", "France"
MAX_SUGGESTED = 2000
SUGGESTED = "suggested subject"
MAX_CHIPS = 6
# What stands in the address for this form alone, and means nothing to a sentence.
OWN = ("tab", "data", "relation", "subject", "object", "mined")
PROB_HELP = (
    "Probability of that answer, over the whole vocabulary, or over the candidates if the options "
    "say so; of a left-to-right model that is shown both sides, over the words that it rescored."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the form asks. data: by name. gold: as it was typed, or an empty string."""

    data: str
    question: RelationQuestion
    gold: str
    mined: bool
    choice: url_state.ClozeChoice

    def request(self, settings: ClozeSettings) -> RelationRequest:
        """What gives the same from a terminal."""
        return RelationRequest(
            **values(settings),
            relation=self.question.relation,
            subject=self.question.subject,
            dataset=self.data,
            mined=self.mined,
            gold=self.gold or None,
            renormalise=self.choice.renormalise,
        )


def draw_relation() -> None:
    """The whole tab."""
    asked = _ask()
    if asked is None:
        return
    asked.choice.settings.check()
    history.note(asked.request(asked.choice.settings))
    _draw_known(asked)
    columns = _draw_columns(asked)
    if not columns:
        return
    settings = replace(asked.choice.settings, models=tuple(columns))
    candidates, _ = cache.candidates_of(settings)
    answers = tuple(column.answer for column in columns.values())
    answer = RelationAnswer(asked.question, candidates, answers)
    _draw_table(answer)
    sizes = [model.n_candidates for model in answer.models]
    st.caption(predictions.describe_candidates(candidates, sizes))
    draw_answer_export("wordings", answer, asked.request(settings))


def _ask() -> Asked | None:
    """The widgets of the form; None where the data has no relation to ask."""
    st.caption(
        "Choose a relation and type a subject: its template, the paraphrases of it and its "
        "negation are asked at once. A model that knows the fact gives it in any wording."
    )
    left, relation_box, subject_box, gold_box = st.columns(
        [2, 3, 3, 2], vertical_alignment="bottom"
    )
    names = dataset_names()
    data = left.selectbox(
        "Data",
        names,
        index=names.index(STARTER),
        key="data",
        bind=url_state.BOUND,
        help="The facts that bring relations, templates and suggestions of subjects.",
    )
    dataset = cache.dataset_of(data)
    labels = {one.name: relation_label(one.name, one.label) for one in worded_relations(dataset)}
    if not labels:
        show_note(
            "No relation of this data has a template: its facts bring their own sentences, which "
            "are asked on the Sentence tab."
        )
        return None
    relations = list(labels)
    url_state.drop_stale("relation", labels)
    first = FIRST_RELATION if FIRST_RELATION in labels else relations[0]
    kept = st.session_state.get("relation", first)
    url_state.heed_unknown("Relation", "relation", labels, labels[kept])
    relation = relation_box.selectbox(
        "Relation",
        relations,
        key="relation",
        bind=url_state.BOUND,
        index=relations.index(first),
        format_func=lambda name: labels[name],
        help="Those that have a template.",
    )
    with subject_box:
        subject = _choose_subject(dataset, relation)
    gold = gold_box.text_input(
        "Right answer (optional)",
        key="object",
        bind=url_state.BOUND,
        placeholder="as in the data",
        help="The word whose rank is shown. Left empty, it is the data's first object of this "
        "subject; without one, no rank is shown.",
    )
    models, more = st.columns([3, 1], vertical_alignment="bottom")
    with models:
        chosen = url_state.choose_models()
    with more, st.popover("Options", icon=":material/tune:"):
        mined = st.toggle(
            "Mined prompts, too",
            key="mined",
            bind=url_state.BOUND,
            help="Prompts that were found in texts, and paraphrases of them: LPAQA's where it is "
            "installed, and for some relations the starter facts' own. Many mean something else.",
        )
        choice = url_state.choose_cloze_options(chosen, lists=False)
    gold = (gold or "").strip()
    question = cache.relation_question(data, relation, subject, gold, bool(mined))
    return Asked(data, question, gold, bool(mined), choice)


def _choose_subject(dataset: Dataset, relation: str) -> str:
    """One of the relation's subjects, or any other text.

    A subject that was typed stays when the relation changes; one that was suggested, and that the
    new relation has no fact about, gives way to the new relation's first.
    """
    subjects = subjects_of(dataset, relation)
    best = [FIRST_SUBJECT] if FIRST_SUBJECT in subjects else []
    suggested = list(islice(dict.fromkeys((*best, *subjects)), MAX_SUGGESTED))
    # (data, relation, subject) of the last run, where the subject was one of the relation's.
    before = st.session_state.get(SUGGESTED)
    asked = (dataset.name, relation, st.session_state.get("subject"))
    if before and before[:2] != asked[:2] and before[2] == asked[2] and asked[2] not in subjects:
        st.session_state["subject"] = suggested[0] if suggested else None
    subject = st.selectbox(
        "Subject",
        suggested,
        key="subject",
        bind=url_state.BOUND,
        accept_new_options=True,
        help=f"Type any name or word, of at most {MAX_SUBJECT} characters. Suggested are subjects "
        f"that the data has facts about, at most {MAX_SUGGESTED:,} of them.",
    )
    known = subject in subjects
    st.session_state[SUGGESTED] = (dataset.name, relation, subject) if known else None
    return subject or ""


def _draw_known(asked: Asked) -> None:
    """What the data says of the subject, and which wordings are asked."""
    question = asked.question
    what = f"{plain(question.subject)}, {plain(relation_label(question.relation, question.label))}"
    if question.objects:
        text = f"**{what}**: {', '.join(map(plain, question.objects))} ({plain(asked.data)})."
    else:
        text = f"**{what}**: {plain(asked.data)} has no such fact."
    if question.gold is None:
        text += " Type a right answer to see its rank."
    elif len(question.objects) > 1 or (question.gold not in question.objects):
        text += f" Right answer: {plain(question.gold)}."
    n_asked = len(question.wordings)
    if question.n_left_out:
        text += f" Asked: the first {n_asked} of {n_asked + question.n_left_out} wordings."
    if question.n_mined and not asked.mined:
        text += f" {question.n_mined} mined prompts can be asked, too: see Options."
    elif asked.mined and not question.n_mined:
        text += " No mined prompts of this relation are here."
    st.markdown(text)


def _draw_columns(asked: Asked) -> dict[str, Column[ModelOnRelation]]:
    """One box a model: how far the wordings agree; a model that isn't here is offered instead."""
    choice, question = asked.choice, asked.question

    def ask(name: str, here: tuple[str, ...]) -> ModelOnRelation:
        settings = replace(choice.settings, models=here)
        return cache.relation_answer(settings, name, question, choice.renormalise)

    columns = ask_each(choice.settings.models, ask, _describe)
    for column in columns.values():
        with column.place.container():
            _draw_agreement(question, column.answer)
    return columns


def _describe(model: ModelOnRelation) -> str:
    """A model's kind, and in how many of the sentences it is shown both sides."""
    n_left = sum(answer.context == "left" for answer in model.answers)
    n = len(model.answers)
    seen = f"sees the left side only in {n_left} of {n} sentences"
    if n_left in (0, n):
        seen = predictions.CONTEXTS["left" if n_left else "both"]
    return predictions.with_how(
        KINDS[model.kind].title, seen, precision=model.precision, device=model.device
    )


def _draw_agreement(question: RelationQuestion, model: ModelOnRelation) -> None:
    """The most frequent first answer, how often each of the others comes, and what counts."""
    counts = first_answers(question, model)
    total = question.n_agreeing
    word, n = counts[0]
    if total == 1:
        text, others = f"The only wording gives <b>{escape(word)}</b> first.", counts[1:]
    elif n == 1:
        text, others = f"No two of <b>{total}</b> wordings give the same word first:", counts
    else:
        text = f"<b>{n} of {total}</b> wordings give <b>{escape(word)}</b> first."
        others = counts[1:]
    chips = [
        f'<span class="lx-chip">{escape(one)}{f" × {times}" * (times > 1)}</span>'
        for one, times in others[:MAX_CHIPS]
    ]
    if len(others) > len(chips):
        chips.append(f"and {len(others) - len(chips)} more")
    label = "" if others is counts else "Others: "
    line = f"<div>{label}{' '.join(chips)}</div>" if chips else ""
    notes = ["negation not counted"] if total < len(question.wordings) else []
    noted = [
        answer.note
        for wording, answer in zip(question.wordings, model.answers, strict=True)
        if wording.kind != "negated" and answer.note
    ]
    notes += [f"in {times} of them it {note}" for note, times in Counter(noted).items()]
    st.html(f'<div>{text}</div>{line}<div class="lx-muted">{escape("; ".join(notes))}</div>')


def make_table(answer: RelationAnswer) -> pd.DataFrame:
    """A row a wording: its text and kind, and each model's first answer, with the gold's rank.

    A kind of model that doesn't see the whole of every subject has a column that says so.
    """
    question = answer.question
    columns: dict[str, list[Any]] = {
        "sentence": [query.text("___") for query in question.queries],
        "wording": [f"{one.kind} ({one.source})" for one in question.wordings],
    }
    for model in answer.models:
        if any(one.note for one in model.answers):
            columns[KINDS[model.kind].title] = [one.note for one in model.answers]
    for model in answer.models:
        columns[f"{model.name} answer"] = [
            one.first.token
            + (f" → {one.first.begins}" if one.first.begins else "")
            + " ✓" * bool(question.is_right(wording, one.first.token))
            for wording, one in zip(question.wordings, model.answers, strict=True)
        ]
        columns[f"{model.name} prob"] = [
            predictions.probability(one.first.prob) for one in model.answers
        ]
        if question.gold:
            columns[f"{model.name} rank"] = [
                one.gold.rank if one.gold else None for one in model.answers
            ]
    return pd.DataFrame(columns)


def _draw_table(answer: RelationAnswer) -> None:
    """The table; a click on a row leads to its sentence."""
    question = answer.question
    table = make_table(answer)
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    config: dict[str, Any] = {
        "sentence": text("sentence"),
        "wording": text("wording", help=explain("Kinds of wordings")),
    }
    for model in answer.models:
        config |= {
            f"{model.name} answer": text(
                url_state.title_of(model.name),
                help="Its first answer, → the longer word that it "
                "begins; ✓ marks what the data, or the gold that you typed, says.",
            ),
            f"{model.name} prob": text("prob.", help=PROB_HELP),
            f"{model.name} rank": number(
                "rank of the right answer",
                format="localized",
                help=f"Rank of {plain(question.gold or '')} among all candidates.",
            ),
        }
    event: Any = st.dataframe(
        table,
        hide_index=True,
        column_config=config,
        on_select="rerun",
        selection_mode="single-row",
        placeholder="",
        key=f"wordings {hash((question, tuple(model.name for model in answer.models)))}",
        height=600 if len(table) > 15 else "content",
    )
    about = "Choose a row to ask its sentence alone, with all answers of each model."
    if question.n_agreeing < len(question.wordings):
        about += (
            " The negated sentence says that it is not so: its answer says nothing about the fact, "
            "and a gold in the first place shows that the “not” was missed."
        )
    st.caption(about)
    if event.selection.rows:
        _to_sentence(question, int(event.selection.rows[0]))


def _to_sentence(question: RelationQuestion, row: int) -> None:
    """Open one wording on the Sentence tab, with the same models and options."""
    text, gold = question.queries[row].text("___"), question.gold or ""
    links.go(screens.ASK, links.kept(OWN) | {"text": text, "gold": gold})
