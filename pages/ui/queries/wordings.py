"""Wordings: a subject and a relation, queried in every wording, with a row for each."""

from collections import Counter
from html import escape
from typing import Any

import pandas as pd
import streamlit as st

from lama_core.datasets.library.installed import STARTER, dataset_names
from lama_core.errors import UserError
from lama_core.glossary import explain
from lama_core.models.protocols import KINDS
from lama_core.queries.blank_answers import CONTEXTS
from lama_core.queries.wordings import (
    MAX_SUBJECT,
    PICKED_BLIND,
    AskedRelation,
    RelationAnswer,
    RelationKind,
    RelationModelAnswers,
    RelationQuestion,
    RelationRequest,
    first_answers,
    relations_with_templates,
    subjects_of,
)
from lama_core.texts import word_key
from lama_core.types import Relation
from lama_core.views.figure import relation_label
from pages.ui.queries import widgets
from pages.ui.queries.answer_table import LIKELIER, answer_columns, draw_answer_table
from pages.ui.queries.form import DrawField, Form, Values, Widget
from pages.ui.queries.tab import Tab
from pages.ui.shared import cache, predictions, screens, url_state
from pages.ui.shared.messages import counted, plain
from pages.ui.shared.model_columns import ModelColumn

KIND = RelationKind(load=cache.dataset_of)
FIRST_RELATION, FIRST_SUBJECT = "P36", "France"
MAX_SUGGESTED = 2000
SUGGESTED = "suggested subject"
MAX_LISTED = 6  # other answers


def _layout(draw: DrawField) -> None:
    widgets.draw_in(
        draw,
        ("dataset", "relation", "subject", "gold"),
        st.columns([2, 3, 3, 2], vertical_alignment="bottom"),
    )
    widgets.draw_models_and_options(draw, "mined", cloze=True)


def _choose_data(_: Values) -> str:
    names = dataset_names()
    return st.selectbox(
        "Data",
        names,
        index=names.index(STARTER),
        key="data",
        bind=url_state.BOUND,
        help="The data set that the relations, templates and suggested subjects come from.",
    )


def _label(relation: Relation) -> str:
    """A relation in words: `P19 place of birth`, or `place of birth (Google-RE)`."""
    label = relation_label(relation.name, relation.label)
    if "_" in relation.name and relation.name not in label:  # beside those of T-REx
        return f"{label} ({relation.source.replace('_', '-')})"
    return label


def _choose_relation(values: Values) -> str:
    """Draw the choice of a relation. Raises UserError if no relation of the data has a template."""
    labels = {
        relation.name: _label(relation)
        for relation in relations_with_templates(cache.dataset_of(values["dataset"]))
    }
    if not labels:
        raise UserError(
            "No relation of this data has a template. Its facts have their own sentences: ask them "
            "on the Sentence tab."
        )
    url_state.drop_stale("relation", labels)
    first = FIRST_RELATION if FIRST_RELATION in labels else next(iter(labels))
    shown = labels[st.session_state.get("relation", first)]
    url_state.note_unknown("Relation", "relation", labels, shown)
    return st.selectbox(
        "Relation",
        list(labels),
        key="relation",
        bind=url_state.BOUND,
        index=list(labels).index(first),
        format_func=lambda name: labels[name],
        help="Only relations with a template are listed.",
    )


def _choose_subject(values: Values) -> str:
    """Draw the choice of a subject, one of the relation's or any other text; return the subject.

    When the relation changes, a typed subject stays. A suggested subject that the new relation has
    no fact about is replaced by the new relation's first suggestion.
    """
    relation, dataset = values["relation"], cache.dataset_of(values["dataset"])
    subjects = subjects_of(dataset, relation)
    best = [FIRST_SUBJECT] * (FIRST_SUBJECT in subjects)
    suggested = list(dict.fromkeys((*best, *subjects)))[:MAX_SUGGESTED]
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
    st.session_state[SUGGESTED] = (dataset.name, relation, subject) if subject in subjects else None
    return " ".join((subject or "").split())


def _type_gold(values: Values) -> str | None:
    url_state.follow_query(
        (values["dataset"], values["relation"], values["subject"]), {"object": ""}
    )
    typed = st.text_input(
        "Right answer (optional)",
        key="object",
        bind=url_state.BOUND,
        placeholder="as in the data",
        help="The word whose rank is shown. If empty, the data's first object for this subject is "
        "used; if there is none, no rank is shown.",
    )
    return (typed or "").strip() or None


FORM = Form(
    RelationRequest,
    {
        "dataset": Widget(_choose_data, widgets.kept("dataset", "data")),
        "relation": Widget(
            _choose_relation,
            lambda request: {
                "relation": _label(cache.dataset_of(request.dataset).relation(request.relation))
            },
        ),
        "subject": Widget(_choose_subject, widgets.kept("subject")),
        "gold": Widget(_type_gold, widgets.kept("gold", "object")),
        "models": widgets.MODELS,
        "mined": widgets.toggle_field(
            "mined",
            "Wordings found in texts (mined), too",
            help="Also query prompts extracted from texts, and their paraphrases: those of LPAQA "
            "if installed, and for some relations those of the starter facts. Many of them "
            "express another relation.",
        ),
        **widgets.CLOZE_OPTIONS,
    },
    _layout,
)


def _draw_fact(asked: AskedRelation) -> None:
    """Draw the subject's objects in the data, and which wordings are queried."""
    request, question = asked.request, asked.shared
    relation = cache.dataset_of(request.dataset).relation(question.relation)
    label = _label(relation).removeprefix(f"{relation.name} ")
    text = f"**{plain(question.subject)}, {plain(label)}**: "
    text += plain(", ".join(question.objects) or f"{request.dataset} has no such fact")
    text += "."
    if question.gold is None:
        text += " Type a right answer to see its rank."
    elif len(question.objects) > 1 or (question.gold not in question.objects):
        text += f" Right answer: {plain(question.gold)}."
    n_queried = len(question.wordings)
    if question.n_left_out:
        text += f" Asked: the first {n_queried} of {n_queried + question.n_left_out} wordings."
    if request.mined and not question.n_mined:
        text += " No mined prompts are installed for this relation."
    st.markdown(text)


def _describe(model: RelationModelAnswers) -> str:
    """A model's kind, and in how many sentences it sees the left side only."""
    contexts = [row.context for row in model.rows]
    n_left = contexts.count("left")
    seen = f"sees the left side only in {n_left} of {len(contexts)} sentences"
    if n_left in (0, len(contexts)):
        seen = CONTEXTS[contexts[0]]
    return predictions.join_details(model, KINDS[model.kind].title, seen)


def _draw_agreement(asked: AskedRelation, column: ModelColumn[RelationModelAnswers]) -> None:
    """Draw the most frequent first answer, whether it is right, the others, and notes."""
    question, model = asked.shared, column.answer
    counts = first_answers(model)
    total = question.n_agreeing
    shown: dict[str, str] = {}  # a first answer -> its text with the mark
    for row in model.rows:
        if row.kind != "negated":
            shown.setdefault(word_key(row.word), escape(row.answer))
    (word, n), *others = counts
    head = "Others: "
    if total == 1:
        text = f"The only wording gives <b>{shown[word_key(word)]}</b> first."
    elif n == 1:
        text = f"No two of <b>{total}</b> wordings give the same word first:"
        head, others = "", list(counts)
    else:
        text = f"<b>{n} of {total}</b> wordings give <b>{shown[word_key(word)]}</b> first."
    listed = [f"{shown[word_key(other)]}{f' × {times}' * (times > 1)}" for other, times in others]
    more = [f"and {len(listed) - MAX_LISTED} more"] * (len(listed) > MAX_LISTED)
    line = f"<div>{head}{', '.join(listed[:MAX_LISTED] + more)}</div>" * bool(listed)
    predictions.draw_conclusion(text)
    notes = escape("; ".join(_notes(question, model, word, n)))
    st.html(f'{line}<div class="lx-muted">{notes}</div>')


def _notes(question: RelationQuestion, model: RelationModelAnswers, word: str, n: int) -> list[str]:
    """Return how many wordings are right, and what is special about some.

    word, n: the most frequent first answer, and its number of wordings.
    """
    rights = [row.right for row in model.rows]
    n_right = rights.count(True)
    # The conclusion says it already if its answer, with ✓, is the only right one.
    is_right = n_right == n > 1 and any(
        row.right and word_key(row.word) == word_key(word) for row in model.rows
    )
    notes = []
    if set(rights) - {None} and not is_right:
        notes.append(f"right: {n_right} of {question.n_agreeing}")
    if question.n_agreeing < len(question.wordings):
        notes.append("negation not counted")
    if any(row.kind == "negated" and question.has(row.word) for row in model.rows):
        notes.append("misses “not”")
    if n_beaten := sum(bool(row.not_ranked) for row in model.rows):
        notes.append(f"in {counted(n_beaten, 'wording')} a word that isn't ranked is likelier")
    caveats = Counter(row.note for row in model.rows if row.kind != "negated")
    return notes + [
        f"in {counted(times, 'wording')} the model {caveat}"
        for caveat, times in caveats.items()
        if caveat
    ]


def make_table(answer: RelationAnswer) -> pd.DataFrame:
    """A row per wording: its text, each model's first answer and the gold answer's rank, its kind.

    A kind of model that doesn't see the subject in some wordings has a column with notes on this.
    """
    asked = answer.asked
    tables = [(one, KIND.rows(asked, one)) for one in answer.models]
    rows = tables[0][1]
    columns: dict[str, Any] = {"sentence": [row.sentence for row in rows]}
    for one, rows in tables:
        if any(row.note for row in rows):
            columns[KINDS[one.kind].title] = [
                "ranks proposed words" if row.note == PICKED_BLIND else row.note for row in rows
            ]
    for one, rows in tables:
        columns |= answer_columns(one.name, rows, [row.answer for row in rows])
        columns[f"{one.name} prob"] = [predictions.probability(row.prob) for row in rows]
        if asked.shared.gold:
            columns[f"{one.name} rank"] = [row.gold_rank for row in rows]
    return pd.DataFrame(columns | {"wording": [row.wording for row in rows]})


def _draw_table(answer: RelationAnswer, *_: object) -> None:
    """Draw the table of all wordings, and which words are ranked."""
    question = answer.asked.shared
    models = tuple(model.name for model in answer.models)
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    sizes = {model.name: model.n_candidates for model in answer.models}
    notes = [predictions.describe_candidates(answer.asked.candidates, sizes)]
    if any(row.begins for model in answer.models for row in model.rows):
        notes.append(predictions.CONTINUES)
    if question.n_agreeing < len(question.wordings):
        notes.append(
            "The negated sentence denies the fact. If the right answer is first there, the model "
            "missed the “not”; other answers don't show whether it knows the fact."
        )
    draw_answer_table(
        make_table(answer),
        [(query.text("___"), question.gold or "") for query in question.queries],
        models,
        columns={
            "sentence": text("sentence", width=300),
            "wording": text("wording", help=explain("Kinds of wordings")),
            KINDS["causal"].title: text(
                width="medium",
                help="The subject is after the blank. If the model sees both sides, it ranks "
                "proposed words, some of them proposed without the subject, by the "
                "log-probability of the whole sentence.",
            ),
        },
        model_columns={
            "answer": text(
                help="First answer, → the longer word that it begins; ✓ marks an object from the "
                "data, or the right answer that you typed, and ✗ other words. After “not”, ✗ marks "
                "the right answer, and other words have no mark."
            ),
            "likelier": LIKELIER,
            "prob": text(
                "prob.",
                help="Probability of the first answer, over the model's whole vocabulary; over "
                "the candidates if chosen under Options. Of a causal model that sees both sides: "
                "share of the rescored words.",
            ),
            "rank": number(
                "rank",
                format="localized",
                help=f"Rank of {plain(question.gold or '')} among all candidates.",
            ),
        },
        note=" ".join(notes),
        key=f"wordings {hash((question, models))}",
    )


WORDINGS = Tab(
    kind=KIND,
    name="Wordings",
    opens=screens.WORDINGS,
    caption="Choose a fact. Every wording of it and its negation are asked: does the answer depend "
    "on the wording?",
    form=FORM,
    draw=_draw_agreement,
    describe=_describe,
    above=_draw_fact,
    below=_draw_table,
    exported="wordings",
)
