"""The tab Entities: the models' cards of one entity, whose answers open further cards."""

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.datasets.library.installed import STARTER, dataset_names
from lama_core.queries.question import can_generate
from lama_core.queries.wordings import MAX_SUBJECT
from lama_core.texts import word_key
from lama_entities.card import (
    AskedCard,
    CardAnswer,
    CardsAnswer,
    EntityKind,
    EntityRequest,
    ModelCard,
    entity_behind,
)
from lama_entities.types import find_entity, relation_types, type_words
from pages.ui.queries import widgets
from pages.ui.queries.form import DrawField, Form, Values, Widget
from pages.ui.queries.tab import Tab
from pages.ui.shared import cache, links, predictions, screens, url_state
from pages.ui.shared.messages import counted, plain
from pages.ui.shared.model_columns import ModelColumn, reserve_line

KIND = EntityKind(load=cache.dataset_of)
NAME, TYPE, DATA, ASK, TRAIL = "entity", "entity_type", "entity_data", "entity_ask", "trail"
CONTEXT, TOP_K = "entity_context", "entity_k"
PARAMS = ("tab", NAME, TYPE, DATA, ASK, TRAIL, CONTEXT, TOP_K)
CARDS = {"tab": "Entities"}
FROM_DATA = "as in the data"
MAX_TRAIL = 12
OF_TRAIL = "entity of the trail"  # session key
EXAMPLES = ("Marie Curie", "Norway", "Paris", "Isaac Newton", "The Beatles", "a piano")
_JS, _CSS = (Path(__file__).with_name(f"card.{end}").read_text("utf-8") for end in ("js", "css"))
ASKINGS = {"sentences": "each relation's sentence", "facts": "for a list of facts"}


def _layout(draw: DrawField) -> None:
    widgets.draw_with_ask(draw, "name", "type")
    widgets.draw_chips([widgets.Example(name, {NAME: name, TYPE: FROM_DATA}) for name in EXAMPLES])
    widgets.draw_models_and_options(draw, "ask", "dataset", "top_k", cloze=True)


def _choose_type(_: Values) -> str | None:
    url_state.drop_stale(TYPE, (FROM_DATA, *type_words()))
    chosen = st.selectbox(
        "Type",
        (FROM_DATA, *type_words()),
        key=TYPE,
        bind=url_state.BOUND,
        help="The relations of a card depend on the type. As in the data: the type of the entity's "
        "facts; without facts, each model is asked.",
    )
    return None if chosen == FROM_DATA else chosen


def _choose_data(_: Values) -> str:
    names = dataset_names()
    url_state.drop_stale(DATA, names)
    return st.selectbox(
        "Data",
        names,
        index=names.index(STARTER),
        key=DATA,
        bind=url_state.BOUND,
        help="The data set of the relations, types and right answers.",
    )


FORM = Form(
    EntityRequest,
    {
        "name": widgets.text_field(
            "name",
            "Entity",
            key=NAME,
            first=EXAMPLES[0],
            help=f"A person, place, work or thing, of at most {MAX_SUBJECT} characters.",
        ),
        "type": Widget(_choose_type, lambda request: {TYPE: request.type or FROM_DATA}),
        "models": widgets.MODELS,
        "ask": Widget(
            lambda _: url_state.pick(
                "Ask",
                tuple(ASKINGS),
                key=ASK,
                format_func=lambda one: ASKINGS[one],
                help="A list of facts: a model that generates text writes relations of its choice. "
                "What isn't of the form `relation: object` is dropped and counted.",
            ),
            widgets.kept("ask", ASK),
        ),
        "dataset": Widget(_choose_data, widgets.kept("dataset", DATA)),
        "top_k": widgets.slider_field("top_k", "Answers per relation", 1, 10, 3, key=TOP_K),
        **widgets.CLOZE_OPTIONS,
        "context": Widget(
            lambda _: url_state.pick(
                "Causal models see",
                ("left", "both"),
                key=CONTEXT,
                help="left: the text before the blank. both: proposed words are scored in the "
                "whole sentence, so that a card takes long.",
            ),
            widgets.kept("context", CONTEXT),
        ),
    },
    _layout,
)


def _trail(name: str) -> list[tuple[str, str]]:
    """The cards that led to this one: (name, relation that was followed); kept in the URL.

    A name that was typed begins a new trail.
    """
    steps = [step for step in st.query_params.get_all(TRAIL) if ":" in step][-MAX_TRAIL:]
    if not links.is_new_url():  # an interrupted run may not have written its URL
        of, kept = st.session_state.get(OF_TRAIL, (name, steps))
        steps = kept if of == name else []
    st.session_state[OF_TRAIL] = name, steps
    if TRAIL in st.query_params:
        links.set_param(TRAIL, steps or [""])
    pairs = (step[: MAX_SUBJECT + 60].partition(":") for step in steps)
    return [(of, relation) for relation, _, of in pairs]


def _address(name: str, kind: str | None, trail: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The URL parameters of another card with the models and options of this one."""
    kept = links.params_without((NAME, TYPE, TRAIL))
    steps = [f"{relation}:{of}" for of, relation in trail[-MAX_TRAIL:]]
    return {**kept, **CARDS, NAME: name, TYPE: kind or "", TRAIL: steps}


def _draw_head(asked: AskedCard) -> Sequence[DeltaGenerator]:
    """Draw the trail, the entity's name and types in the data; return a place for a line."""
    question, request = asked.shared, asked.request
    trail = _trail(request.name)
    if trail:
        with st.container(horizontal=True, gap="xsmall", vertical_alignment="center", key="trail"):
            for at, (name, relation) in enumerate(trail):
                if st.button(plain(name), key=f"trail {at}", type="tertiary"):
                    links.go(screens.ASK, _address(name, None, trail[:at]))
                row = relation_types().get(relation)
                label = row.label if row else relation
                st.caption(f"{plain(label)} :material/arrow_forward:", width="content")
            st.markdown(f"**{plain(question.name)}**", width="content")
    kinds = [kind for kind in (request.type, *question.types) if kind]
    known = {one.name for _, rows in question.relations for one in rows if one.objects}
    found = f"right answers for {counted(len(known), 'relation')} of this card"
    if not question.types:
        found = "nothing about it" + ": each model is asked for its type" * (not kinds)
    text = "".join(f"{kind}. " for kind in kinds[:1]) + f"The {plain(request.dataset)} facts have "
    text += f"{found}."
    st.markdown(f"**{plain(question.name)}**: {text}")
    if question.similar and st.button(
        f"Did you mean {plain(question.similar)}?", type="tertiary", icon=":material/spellcheck:"
    ):
        links.go(screens.ASK, _address(question.similar, None, ()))
    return (reserve_line("entity"),) if len(request.models) > 1 else ()


def _draw_card(asked: AskedCard, column: ModelColumn[ModelCard]) -> None:
    """Draw a model's card; a click on an answer opens its card."""
    card, dataset = column.answer, cache.dataset_of(asked.request.dataset)
    predictions.draw_conclusion(card.summary().partition(";")[0])
    trail = _trail(asked.request.name)

    def row_of(answer: CardAnswer) -> dict[str, Any]:
        words = []
        for at, item in enumerate(answer.predictions):
            name, kind = entity_behind(dataset, answer, item)
            found = find_entity(dataset, name)
            typed = "" if found and found.types[0] == kind else kind
            step = (asked.shared.name, answer.relation.name or answer.relation.label)
            steps = trail if name == asked.shared.name else [*trail, step]
            there = _address(name, typed, steps)
            verdict = answer.right if at == 0 else answer.relation.is_right(item.token) or None
            words.append(
                {
                    "text": item.token,
                    "longer": item.begins,
                    "value": predictions.probability(item.prob) if math.isfinite(item.prob) else "",
                    "width": f"{100 * item.prob:.1f}%" if math.isfinite(item.prob) else "0",
                    "verdict": {True: "✓", False: "✗", None: ""}[verdict],
                    "name": name,
                    "opens": {"params": there, "address": f"?{urlencode(there, doseq=True)}"},
                }
            )
        right = ""
        if answer.right is not True and answer.relation.objects:
            first, *others = answer.rights
            first += f" ({answer.gold_place})" * bool(answer.gold)
            right = f"right: {', '.join((first, *others[:2]))}"
            right += f" and {len(others) - 2} more" * (len(others) > 2)
        sentence = answer.relation.sentence(asked.shared.name, "___") if answer.context else ""
        gold = next(iter(answer.rights), "")
        # Only this model, since Ask compares with one right answer.
        alone = links.params_without(PARAMS) | {"text": sentence, "gold": gold}
        alone |= {"models": [card.name]}
        return {
            "label": answer.relation.label,
            "sentence": sentence,
            "alone": {"params": alone, "address": f"?{urlencode(alone, doseq=True)}"},
            "right": right,
            "likelier": answer.likelier and f"likelier: {answer.likelier}",
            "note": answer.outside,
            "words": words,
        }

    n_known = sum(bool(one.relation.objects) for one in card.answers)
    rows = [row_of(one) for one in card.in_order]
    if 0 < n_known < len(rows):
        rows.insert(n_known, {"heading": f"No right answer in the {asked.request.dataset} facts"})
    if card.missing:
        rows.append({"heading": "Not listed"})
    for one in card.missing:
        shown = ", ".join(one.objects[:3])
        rows.append({"label": one.label, "right": f"right: {shown}", "words": []})
    data = {"rows": rows, "colour": column.colour}
    draw = st.components.v2.component("lama_card", js=_JS, css=_CSS, isolate_styles=False)
    found = draw(data=data, key=f"card {card.name}", on_opened_change=lambda: None)
    if card.dropped and card.listed:
        n = counted(len(card.dropped), "part")
        st.caption(
            f"Dropped: {n} of its line, not a fact or repeated.", help=plain(card.listed.text)
        )
    if opened := found.get("opened"):
        links.go(screens.ASK, opened)


def _describe(card: ModelCard) -> str:
    whose = f"takes it for: {card.type}" if card.from_model else ""
    how = "lists facts" if card.listed else ""
    title = predictions.title_of_kind(card.kind)
    return predictions.join_details(card, title, *filter(None, (whose, how)))


def _draw_below(answer: CardsAnswer, lines: Sequence[DeltaGenerator], _: object) -> None:
    """Draw on how many relations the models agree, and what is ranked."""
    firsts: dict[str, set[str]] = {}
    n_cards: dict[str, int] = {}
    for card in answer.models:
        for one in card.answers:
            key = one.relation.name
            firsts.setdefault(key, set()).add(word_key(one.predictions[0].token))
            n_cards[key] = n_cards.get(key, 0) + 1
    shared = [key for key, n in n_cards.items() if key and n == len(answer.models)]
    if lines and len(answer.models) == 1:  # the others have no answer
        lines[0].empty()
    elif lines and shared:
        n_same = sum(len(firsts[key]) == 1 for key in shared)
        titles = [predictions.short_title(one.name) for one in answer.models]
        who = f"{', '.join(titles[:-1])} and {titles[-1]}"  # perhaps not all that were chosen
        which = " that their cards share" * (len(shared) < len(n_cards))
        said = f"the same first answer in <b>{n_same} of {len(shared)}</b> relations{which}"
        if len(shared) == 1:
            said = f"{'the same' if n_same else 'different'} first answers in the only relation"
            said += " that their cards share"
        lines[0].html(f"<div>{escape(who)} give {said}.</div>")
    elif lines:
        kinds = ", ".join(
            f"{predictions.short_title(one.name)} {one.type}" for one in answer.models
        )
        lines[0].html(f"<div>No relation is on all cards. Types: {escape(kinds)}.</div>")
    sizes = {card.name: card.n_candidates for card in answer.models if not card.listed}
    notes = [
        "Click an answer to open its card, or a relation to open its sentence. Bars and numbers: "
        "probabilities of the answers. ✗: not among the data's answers, which can lack some. "
        "Likelier: a more probable token that isn't a candidate."
        if sizes
        else "Click an answer to open its card. Bars and numbers: probabilities of the written "
        "answers' tokens. A relation that a model didn't list counts as not right."
    ]
    if sizes:
        notes.append(predictions.describe_candidates(answer.asked.candidates, sizes))
    st.caption(" ".join(notes))


ENTITIES = Tab(
    kind=KIND,
    name="Entities",
    opens=CARDS,
    caption="Type a person, place, work or thing to see what each model believes about it. Click "
    "an answer to open its card.",
    form=FORM,
    draw=_draw_card,
    describe=_describe,
    can_answer=lambda name: st.session_state.get(ASK) != "facts" or can_generate(name),
    cannot="Masked models don't write lists: choose a causal or encoder-decoder model, or a chat "
    "server.",
    above=_draw_head,
    below=_draw_below,
    exported="entity",
)
