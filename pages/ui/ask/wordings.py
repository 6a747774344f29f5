"""Wordings: a subject and a relation, queried in every wording, with a row for each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import islice
from typing import Any

import pandas as pd
import streamlit as st

from lama_core.datasets import Dataset
from lama_core.datasets.library.installed import STARTER, dataset_names
from lama_core.glossary import explain
from lama_core.models.protocols import KINDS, Context, Kind
from lama_core.queries.blank_answers import CONTEXTS
from lama_core.queries.wordings import (
    MAX_SUBJECT,
    RelationAnswer,
    RelationModelAnswers,
    RelationQuestion,
    RelationRequest,
    first_answers,
    relations_with_templates,
    subjects_of,
)
from lama_core.requests import field_values
from lama_core.scoring.shared_fields import ClozeSettings
from pages.ui.ask.answer_table import draw_answer_table, shown_answer
from pages.ui.queries import history
from pages.ui.shared import cache, predictions, url_state
from pages.ui.shared.export import draw_answer_export
from pages.ui.shared.messages import counted, plain, show_note
from pages.ui.shared.model_columns import Column, query_models
from pages.ui.shared.run_choice import relation_label

FIRST_RELATION, FIRST_SUBJECT = "P36", "France"
MAX_SUGGESTED = 2000
SUGGESTED = "suggested subject"
MAX_CHIPS = 6
PROB_HELP = (
    "Probability of the first answer, over the model's whole vocabulary; over the candidates if "
    "chosen under Options; over the rescored words for a causal model that sees both sides."
)


@dataclass(frozen=True, slots=True)
class FormInput:
    """The form's values: `data` is a data set's name, `gold` the typed answer or empty."""

    data: str
    question: RelationQuestion
    gold: str
    mined: bool
    choice: url_state.ClozeChoice

    def request(self, settings: ClozeSettings) -> RelationRequest:
        """The request that gives the same answers on the command line."""
        return RelationRequest(
            **field_values(settings),
            relation=self.question.relation,
            subject=self.question.subject,
            dataset=self.data,
            mined=self.mined,
            gold=self.gold or None,
            renormalise=self.choice.renormalise,
        )


def draw_wordings() -> None:
    """Draw the tab."""
    given = _draw_form()
    if given is None:
        return
    given.choice.settings.check()
    history.add_entry(given.request(given.choice.settings))
    _draw_fact(given)
    columns = _draw_columns(given)
    if not columns:
        return
    settings = replace(given.choice.settings, models=tuple(columns))
    candidates = cache.candidates_of(settings)
    answers = tuple(column.answer for column in columns.values())
    answer = RelationAnswer(given.question, candidates, answers)
    _draw_table(answer)
    sizes = [model.n_candidates for model in answer.models]
    st.caption(predictions.describe_candidates(candidates, sizes))
    draw_answer_export("wordings", answer, given.request(settings))


def _draw_form() -> FormInput | None:
    """Draw the form; return its values, or None if no relation of the data has a template."""
    st.caption(
        "Choose a relation and type a subject. The relation's template, its paraphrases and its "
        "negation are asked at once. A model that knows the fact answers every wording correctly."
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
        help="The data set that the relations, templates and suggested subjects come from.",
    )
    dataset = cache.dataset_of(data)
    labels = {
        relation.name: relation_label(relation.name, relation.label)
        for relation in relations_with_templates(dataset)
    }
    if not labels:
        show_note(
            "No relation of this data has a template. Its facts have their own sentences: ask them "
            "on the Sentence tab."
        )
        return None
    relations = list(labels)
    url_state.drop_stale("relation", labels)
    first = FIRST_RELATION if FIRST_RELATION in labels else relations[0]
    kept = st.session_state.get("relation", first)
    url_state.note_unknown("Relation", "relation", labels, labels[kept])
    relation = relation_box.selectbox(
        "Relation",
        relations,
        key="relation",
        bind=url_state.BOUND,
        index=relations.index(first),
        format_func=lambda name: labels[name],
        help="Only relations with a template are listed.",
    )
    with subject_box:
        subject = _choose_subject(dataset, relation)
    gold = gold_box.text_input(
        "Right answer (optional)",
        key="object",
        bind=url_state.BOUND,
        placeholder="as in the data",
        help="The word whose rank is shown. If empty, the data's first object for this subject is "
        "used; if there is none, no rank is shown.",
    )
    models, more = st.columns([3, 1], vertical_alignment="bottom")
    with models:
        chosen = url_state.choose_models()
    with more, st.popover("Options", icon=":material/tune:"):
        mined = st.toggle(
            "Mined prompts, too",
            key="mined",
            bind=url_state.BOUND,
            help="Also query prompts extracted from texts, and their paraphrases: those of LPAQA "
            "if installed, and for some relations those of the starter facts. Many of them "
            "express another relation.",
        )
        choice = url_state.choose_cloze_options(chosen, lists=False)
    gold = (gold or "").strip()
    question = cache.relation_question(data, relation, subject, gold, bool(mined))
    return FormInput(data, question, gold, bool(mined), choice)


def _choose_subject(dataset: Dataset, relation: str) -> str:
    """Draw the choice of a subject, one of the relation's or any other text; return the subject.

    When the relation changes, a typed subject stays. A suggested subject that the new relation has
    no fact about is replaced by the new relation's first suggestion.
    """
    subjects = subjects_of(dataset, relation)
    best = [FIRST_SUBJECT] if FIRST_SUBJECT in subjects else []
    suggested = list(islice(dict.fromkeys((*best, *subjects)), MAX_SUGGESTED))
    # (data, relation, subject) of the last rerun, if the relation has a fact about the subject.
    before = st.session_state.get(SUGGESTED)
    now = (dataset.name, relation, st.session_state.get("subject"))
    if before and before[:2] != now[:2] and before[2] == now[2] and now[2] not in subjects:
        st.session_state["subject"] = suggested[0] if suggested else None
    subject = st.selectbox(
        "Subject",
        suggested,
        key="subject",
        bind=url_state.BOUND,
        accept_new_options=True,
        help=f"Type any name or word, of at most {MAX_SUBJECT} characters. The list suggests up to "
        f"{MAX_SUGGESTED:,} subjects that the data has facts about.",
    )
    known = subject in subjects
    st.session_state[SUGGESTED] = (dataset.name, relation, subject) if known else None
    return subject or ""


def _draw_fact(given: FormInput) -> None:
    """Draw the subject's objects in the data, and which wordings are queried."""
    question = given.question
    what = f"{plain(question.subject)}, {plain(relation_label(question.relation, question.label))}"
    if question.objects:
        text = f"**{what}**: {', '.join(map(plain, question.objects))} ({plain(given.data)})."
    else:
        text = f"**{what}**: {plain(given.data)} has no such fact."
    if question.gold is None:
        text += " Type a right answer to see its rank."
    elif len(question.objects) > 1 or (question.gold not in question.objects):
        text += f" Right answer: {plain(question.gold)}."
    n_queried = len(question.wordings)
    if question.n_left_out:
        text += f" Asked: the first {n_queried} of {n_queried + question.n_left_out} wordings."
    if question.n_mined and not given.mined:
        text += f" To ask {question.n_mined} mined prompts, too, see Options."
    elif given.mined and not question.n_mined:
        text += " No mined prompts are installed for this relation."
    st.markdown(text)


def _draw_columns(given: FormInput) -> dict[str, Column[RelationModelAnswers]]:
    """Draw a box per model: how far its answers agree across wordings; or a download button."""
    choice, question = given.choice, given.question

    def query_model(name: str, installed: tuple[str, ...]) -> RelationModelAnswers:
        settings = replace(choice.settings, models=installed)
        return cache.relation_answer(settings, name, question, choice.renormalise)

    columns = query_models(choice.settings.models, query_model, _describe)
    for column in columns.values():
        with column.place.container():
            _draw_agreement(question, column.answer)
    return columns


def _describe(model: RelationModelAnswers) -> str:
    contexts = [answer.context for answer in model.answers]
    return describe_contexts(model.kind, contexts, model.precision, model.device, "sentences")


def describe_contexts(
    kind: Kind, contexts: Sequence[Context], precision: str, device: str, queries: str
) -> str:
    """A model's kind, and in how many queries it sees the left side only, in words."""
    n_left = contexts.count("left")
    seen = f"sees the left side only in {n_left} of {len(contexts)} {queries}"
    if n_left in (0, len(contexts)):
        seen = CONTEXTS[contexts[0]]
    return predictions.join_details(KINDS[kind].title, seen, precision=precision, device=device)


def _draw_agreement(question: RelationQuestion, model: RelationModelAnswers) -> None:
    """Draw the most frequent first answer, the frequencies of the others, and notes."""
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
        f'<span class="lx-chip">{escape(other)}{f" × {times}" * (times > 1)}</span>'
        for other, times in others[:MAX_CHIPS]
    ]
    if len(others) > len(chips):
        chips.append(f"and {len(others) - len(chips)} more")
    label = "" if others is counts else "Others: "
    line = f"<div>{label}{' '.join(chips)}</div>" if chips else ""
    notes = ["negation not counted"] if total < len(question.wordings) else []
    caveats = [
        answer.note
        for wording, answer in zip(question.wordings, model.answers, strict=True)
        if wording.kind != "negated" and answer.note
    ]
    notes += [
        f"in {counted(times, 'wording')} the model {caveat}"
        for caveat, times in Counter(caveats).items()
    ]
    st.html(f'<div>{text}</div>{line}<div class="lx-muted">{escape("; ".join(notes))}</div>')


def make_table(answer: RelationAnswer) -> pd.DataFrame:
    """A row per wording: its text and kind, each model's first answer and the gold answer's rank.

    A kind of model that doesn't see the subject in some wordings has a column with notes on this.
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
            shown_answer(one.first, right=bool(question.is_right(wording, one.first.token)))
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
    question = answer.question
    models = tuple(model.name for model in answer.models)
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    if question.n_agreeing < len(question.wordings):
        st.caption(
            "The negated sentence denies the fact. If the right answer is first there, the model "
            "missed the “not”; other answers don't show whether it knows the fact."
        )
    draw_answer_table(
        make_table(answer),
        [(query.text("___"), question.gold or "") for query in question.queries],
        models,
        columns={
            "sentence": text("sentence", width="large"),
            "wording": text("wording", help=explain("Kinds of wordings")),
        },
        model_columns={
            "answer": text(
                help="First answer, → the longer word that it begins; ✓ marks an object from the "
                "data, or the right answer that you typed."
            ),
            "prob": text("prob.", help=PROB_HELP),
            "rank": number(
                "rank of the right answer",
                format="localized",
                help=f"Rank of {plain(question.gold or '')} among all candidates.",
            ),
        },
        key=f"wordings {hash((question, models))}",
    )
