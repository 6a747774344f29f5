"""The filters of the Facts page: widgets <-> address bar <-> AnswerFilter."""

from dataclasses import dataclass
from typing import Any, cast

import streamlit as st

from lama_core.metrics.answers import COUNTINGS, WRONG_KINDS, AnswerFilter, WrongKind
from pages.ui.shared import links
from pages.ui.shared.choice import RunChoice
from pages.ui.shared.messages import plain
from pages.ui.shared.state import BOUND

ANY = "any"
SORTS = (
    "as in the data",
    "best rank first",
    "worst rank first",
    "most confident first",
    "least confident first",
    "most frequent gold first",
)
CONTAINED_HELP = (
    "Whether the lower-cased gold is part of the lower-cased subject, as in *Apple Watch* is "
    "produced by *Apple*: the first rule by which LAMA-UHN drops facts that can be guessed "
    "(Poerner et al. 2020)."
)
KIND_HELP = (
    "**right type**: the wrong answer is an object of the relation in the data (right type, wrong "
    "fact). **another valid**: it is another right answer for this very subject. **neither**: the "
    "rest."
)
COUNT_HELP = "How many facts of the relation have this gold in the data."
CONFIDENCE_HELP = (
    "Probability of the first answer over the model's whole vocabulary; above the lower end and "
    "at most the upper one, as the bins of the reliability diagram."
)


@dataclass(frozen=True)
class FactsChoice:
    """What the Facts page is asked for. of: the run in focus, by name. sort: one of SORTS."""

    filter: AnswerFilter
    of: str
    sort: str


def choose_filters(choice: RunChoice) -> FactsChoice:
    """The widgets, and what they say."""
    names = list(choice.names)
    boxes = st.columns([2, 2.2, 2.2, 2.2, 1.4], vertical_alignment="bottom")
    of = boxes[0].selectbox(
        "Model in focus",
        names,
        key="of",
        bind=BOUND,
        help="The one that rank, probability, wrong answers and left-out facts are about.",
    )
    right = boxes[1].multiselect(
        "Right in", names, key="right", bind=BOUND, placeholder="Any",
        help=f"Only facts whose gold is among these models' {choice.k} best (k is above).",
    )  # fmt: skip
    wrong = boxes[2].multiselect(
        "Wrong in", names, key="wrong", bind=BOUND, placeholder="Any",
        help="Together with **Right in**: right in A and wrong in B.",
    )  # fmt: skip
    text = boxes[3].text_input(
        "Search", key="find", bind=BOUND, placeholder="Subject, gold, query, answer",
        help="Facts with this text in the subject, the gold, the query or a model's answer.",
    )  # fmt: skip
    with boxes[4], st.popover("Filters", icon=":material/filter_alt:", width="stretch"):
        more = _choose_more(choice)
    sort = st.session_state.get("sort", SORTS[0])
    chosen = AnswerFilter(
        of=names.index(of),
        k=choice.k,
        relations=choice.relations,
        right=tuple(names.index(name) for name in right),
        wrong=tuple(names.index(name) for name in wrong),
        text=(text or "").strip(),
        **more,
    )
    return FactsChoice(chosen, of, sort)


def _choose_more(choice: RunChoice) -> dict[str, Any]:
    """The filters in the popover, as fields of AnswerFilter."""
    infos = [relation for run in choice.runs for relation in run.relations]
    types = [kind for kind in ("1-1", "N-1", "N-M") if any(r.type == kind for r in infos)]
    sources = list(dict.fromkeys(relation.source for relation in infos))
    left, right = st.columns(2)
    kinds = left.multiselect("Type of relation", types, key="types", bind=BOUND, placeholder="Any")
    chosen = right.multiselect("Source", sources, key="sources", bind=BOUND, placeholder="Any")
    low = left.number_input("Rank from", 1, None, None, key="rank_min", bind=BOUND)
    high = right.number_input("Rank to", 1, None, None, key="rank_max", bind=BOUND)
    confidence = st.slider(
        "Probability of the first answer", 0.0, 1.0, (0.0, 1.0), 0.01, key="conf", bind=BOUND,
        help=CONFIDENCE_HELP,
    )  # fmt: skip
    left, right = st.columns(2)
    kind = left.selectbox(
        "The wrong answer is", (ANY, *WRONG_KINDS), key="kind", bind=BOUND, help=KIND_HELP
    )
    answer = right.text_input("First answer", key="answer", bind=BOUND, help="Exactly this word.")
    fewest = left.number_input(
        "Gold's frequency from", 1, None, None, key="count_min", bind=BOUND, help=COUNT_HELP
    )
    most = right.number_input("Gold's frequency to", 1, None, None, key="count_max", bind=BOUND)
    contained = left.selectbox(
        "Gold in the subject", (ANY, "yes", "no"), key="contained", bind=BOUND, help=CONTAINED_HELP
    )
    rows = right.selectbox(
        "Facts", COUNTINGS, key="rows", bind=BOUND,
        help="**excluded**: those that the model in focus leaves out, with the reason.",
    )  # fmt: skip
    return {
        "types": tuple(kinds),
        "sources": tuple(chosen),
        "rank_min": int(low) if low else None,
        "rank_max": int(high) if high else None,
        "confidence_min": float(confidence[0]),
        "confidence_max": float(confidence[1]),
        "wrong_kind": None if kind == ANY else cast(WrongKind, kind),
        "answer": (answer or "").strip(),
        "count_min": int(fewest) if fewest else None,
        "count_max": int(most) if most else None,
        "contained": {ANY: None, "yes": True, "no": False}[contained],
        "counting": rows,
    }


def describe(chosen: FactsChoice, choice: RunChoice) -> list[str]:
    """The filters that are set, each in a few words."""
    f, names, of = chosen.filter, choice.names, chosen.of
    said = [f"right in {names[number]}" for number in f.right]
    said += [f"wrong in {names[number]}" for number in f.wrong]
    if f.rank_min or f.rank_max:
        said.append(f"rank {f.rank_min or 1} to {f.rank_max or 'last'} in {of}")
    if f.confidence_min > 0 or f.confidence_max < 1:
        said.append(f"probability {f.confidence_min:.2f} to {f.confidence_max:.2f} in {of}")
    said += [f"type {' or '.join(f.types)}"] if f.types else []
    said += [f"from {' or '.join(f.sources)}"] if f.sources else []
    said += [f"{of} answers “{f.answer}”"] if f.answer else []
    if f.wrong_kind:
        said.append(f"{of}'s wrong answer: {f.wrong_kind}")
    if f.count_min or f.count_max:
        said.append(f"gold in {f.count_min or 1} to {f.count_max or 'all'} facts of its relation")
    if f.contained is not None:
        said.append("gold in the subject" if f.contained else "gold not in the subject")
    said += [f"with “{f.text}”"] if f.text else []
    said += [f"{f.counting} facts of {of}"] if f.counting != "counted" else []
    labels = choice.labels
    said += [labels[name] for name in choice.relations[:3]]
    said += ["..."] if len(choice.relations) > 3 else []
    return said


def draw_active(chosen: FactsChoice, choice: RunChoice, n: int, n_all: int) -> None:
    """How many facts there are and why, with a way back to all."""
    said = describe(chosen, choice)
    with st.container(horizontal=True, vertical_alignment="center"):
        text = f"**{n:,}** of {n_all:,} facts"
        st.markdown(text + "".join(f" · {plain(part)}" for part in said), width="content")
        if said and st.button("Show all", icon=":material/filter_alt_off:", type="tertiary"):
            links.go(links.FACTS, links.FACTS, {**choice.params(), "relations": []})
