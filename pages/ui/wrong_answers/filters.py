"""The filters of Wrong answers: widgets <-> address bar <-> AnswerFilter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import streamlit as st

from lama_core.glossary import explain
from lama_core.metrics.fact_answers import (
    COUNTINGS,
    WRONG_KINDS,
    AnswerFilter,
    JoinedAnswers,
    WrongKind,
)
from lama_core.metrics.slices import (
    ANSWERS_HELP,
    DOMAIN,
    NO_TYPE,
    ORIGIN,
    PAIR_SEEN,
    SLICINGS,
    WORDING_SEEN,
    slicings,
)
from lama_core.runs.info import OWN_WORDS, RunInfo
from lama_core.runs.tags import known_tags, read_tags
from pages.ui.shared import links, screens
from pages.ui.shared.messages import plain
from pages.ui.shared.run_choice import RunChoice
from pages.ui.shared.url_state import BOUND

ANY = "any"
CONFIDENT = 0.5  # the least probability of a confident answer
SORTS = (
    "as in the data",
    "best rank first",
    "worst rank first",
    "most confident first",
    "least confident first",
    "most frequent gold first",
)
TAGS_HELP = (
    "Facts with one of these tags, which the owner of this app has put on them in the run of the "
    "model in focus: in the opened fact, or for several rows at once."
)


@dataclass(frozen=True)
class FactsChoice:
    """What Wrong answers shows. of: the run in focus, by name. sort: one of SORTS."""

    filter: AnswerFilter
    of: str
    sort: str


def choose_filters(choice: RunChoice, joined: JoinedAnswers) -> FactsChoice:
    """The widgets, and what they say."""
    names = list(choice.names)
    with st.container(key="fact-filters"):
        boxes = st.columns([2, 2.2, 2.2, 2.2, 1.4], vertical_alignment="bottom")
    of = boxes[0].selectbox(
        "Model",
        names,
        key="of",
        bind=BOUND,
        help="Ranks, probabilities, wrong answers and excluded facts are of this model.",
    )
    right = boxes[1].multiselect(
        "Right in",
        names,
        key="right",
        bind=BOUND,
        placeholder="Any",
        help=f"Only facts whose right answer is among these models' {choice.k} best (k is above).",
    )
    wrong = boxes[2].multiselect(
        "Wrong in",
        names,
        key="wrong",
        bind=BOUND,
        placeholder="Any",
        help="Together with **Right in**: right in A and wrong in B.",
    )
    text = boxes[3].text_input(
        "Search",
        key="find",
        bind=BOUND,
        placeholder="Subject, right answer, query, answer",
        help="Facts with this text in the subject, an answer or the query.",
    )
    with boxes[4], st.popover("Filters", icon=":material/filter_alt:", width="stretch"):
        more = _choose_more(choice, choice.runs[names.index(of)], joined)
    _draw_quick(names, of, choice.titles[names.index(of)])
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


def _draw_quick(names: Sequence[str], of: str, title: str) -> None:
    """Filters of one click. of, title: the run in focus, as in an address and as shown."""
    others = [name for name in names if name != of]
    quick: dict[str, dict[str, str | list[str]]] = {
        f"Wrong in {title}": {"wrong": [of]},
        f"Confident and wrong in {title}": {"wrong": [of], "conf": [str(CONFIDENT), "1.0"]},
    }
    if others:
        quick |= {
            f"Only {title} is right": {"right": [of], "wrong": others},
            "All are wrong": {"wrong": list(names)},
        }
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for label, params in quick.items():
            if st.button(plain(label), type="tertiary", icon=":material/filter_alt:"):
                narrow(**{"right": [], "conf": [], "of": of, **params})


def _choose_more(choice: RunChoice, focus: RunInfo, joined: JoinedAnswers) -> dict[str, Any]:
    """The filters in the popover, as fields of AnswerFilter."""
    infos = [relation for run in choice.runs for relation in run.relations]
    types = [kind for kind in ("1-1", "N-1", "N-M") if any(r.type == kind for r in infos)]
    types += [NO_TYPE] if any(relation.type is None for relation in infos) else []
    sources = list(dict.fromkeys(relation.source for relation in infos))
    left, right = st.columns(2)
    kinds = left.multiselect("Type of relation", types, key="types", bind=BOUND, placeholder="Any")
    chosen = right.multiselect("Source", sources, key="sources", bind=BOUND, placeholder="Any")
    origins, domains, stated, wording = (
        _choose_slices(joined, *one)
        for one in (
            ("Origin", ORIGIN, "origins", "The data says none", explain("Origin")),
            ("Domain", DOMAIN, "domains", "The data says none", explain("Domain")),
            (
                "Pair seen in training",
                PAIR_SEEN,
                "stated",
                "No model's text is known",
                explain("Pair seen in training"),
            ),
            (
                "Wording seen in training",
                WORDING_SEEN,
                "wording",
                "No model's text is known",
                explain("Wording seen in training"),
            ),
        )
    )
    ranks = _choose_range("Rank", "rank")
    margins = _choose_margins() if focus.ranks_statements else {}
    confidence = st.slider(
        "Probability of the first answer",
        0.0,
        1.0,
        (0.0, 1.0),
        0.01,
        key="conf",
        bind=BOUND,
        help=f"{explain('Probability of the first answer')} Above the lower end and at most the "
        "upper one, as the bins of the reliability diagram.",
    )
    left, right = st.columns(2)
    gold = left.text_input("Right answer", key="gold", bind=BOUND, help="Exactly this word.")
    answer = right.text_input("First answer", key="answer", bind=BOUND, help="Exactly this word.")
    kind = left.selectbox(
        "The wrong answer is",
        (ANY, *WRONG_KINDS),
        key="kind",
        bind=BOUND,
        help=explain("Kinds of wrong answers"),
    )
    rows = right.selectbox(
        "Facts",
        COUNTINGS,
        key="rows",
        bind=BOUND,
        help="**excluded**: those that the model in focus leaves out, with the reason.",
    )
    counts = _choose_range("Gold's frequency", "count", SLICINGS["gold's frequency"].help)
    words = _choose_range("Subject's words", "words", SLICINGS["subject's words"].help)
    pieces = _choose_range("Subject's pieces", "pieces", SLICINGS["subject's pieces"].help)
    of_own = focus.candidates == OWN_WORDS
    answers = _choose_range("Number of answers", "answers", ANSWERS_HELP) if of_own else {}
    left, right = st.columns(2)
    contained = left.selectbox(
        "Gold in the subject",
        (ANY, "yes", "no"),
        key="contained",
        bind=BOUND,
        help=explain("Gold in the subject"),
    )
    known = known_tags(read_tags(focus))
    gone = [tag for tag in st.session_state.get("tag", ()) if tag not in known]
    tags = right.multiselect(
        "Tags",
        [*known, *gone],
        key="tag",
        bind=BOUND,
        help=TAGS_HELP,
        placeholder="Any" if known else "No fact has one",
    )
    return {
        "types": tuple("" if kind == NO_TYPE else kind for kind in kinds),
        "sources": tuple(chosen),
        "origins": tuple("" if origin == NO_TYPE else origin for origin in origins),
        "domains": tuple("" if domain == NO_TYPE else domain for domain in domains),
        "stated": tuple(stated),
        "wording": tuple(wording),
        **ranks,
        **margins,
        "confidence_min": float(confidence[0]),
        "confidence_max": float(confidence[1]),
        "wrong_kind": None if kind == ANY else cast(WrongKind, kind),
        "gold": (gold or "").strip(),
        "answer": (answer or "").strip(),
        **counts,
        **words,
        **pieces,
        **answers,
        "contained": {ANY: None, "yes": True, "no": False}[contained],
        "tags": tuple(tags),
        "counting": rows,
    }


def _choose_slices(
    joined: JoinedAnswers, label: str, by: str, key: str, none: str, help_text: str
) -> list[str]:
    """Some of the slices of one way of slicing. none: what is shown if the data has none."""
    way = slicings(joined).get(by)
    return st.multiselect(
        label,
        list(way.slices) if way else [],
        key=key,
        bind=BOUND,
        placeholder="Any" if way else none,
        help=help_text,
    )


def _choose_range(label: str, name: str, help_text: str | None = None) -> dict[str, int | None]:
    """Both ends of a range of whole numbers, as `name_min` and `name_max`."""
    boxes = st.columns(2)
    for end in ("min", "max"):
        links.leave_endless(f"{name}_{end}")
    ends = [
        box.number_input(
            f"{label} {way}", 1, None, None, key=f"{name}_{end}", bind=BOUND, help=help_text
        )
        for box, way, end in zip(boxes, ("from", "to"), ("min", "max"), strict=True)
    ]
    return {
        f"{name}_{end}": int(n) if n else None for n, end in zip(ends, ("min", "max"), strict=True)
    }


def _choose_margins() -> dict[str, float | None]:
    """Both ends of a range of margins, as `margin_min` and `margin_max`."""
    found = {}
    more = f"{explain('Margin')} Above the lower end and at most the upper one."
    ways = {"margin_min": "above", "margin_max": "up to"}
    for box, (name, way) in zip(st.columns(2), ways.items(), strict=True):
        links.leave_endless(name)
        options: dict[str, Any] = {"value": None, "format": "%g", "help": more}
        value = box.number_input(f"Margin {way}", key=name, bind=BOUND, **options)
        found[name] = None if value is None else float(value)
    return found


def params_of(fields: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """Fields of AnswerFilter that a slice sets, as parameters of this page's address."""
    params: dict[str, str | list[str]] = {}
    for name, value in fields.items():
        if isinstance(value, bool):
            params[name] = "yes" if value else "no"
        elif isinstance(value, tuple):
            params[name] = [one or NO_TYPE for one in value]
        elif value is not None:
            params[name] = str(value)
    return params


def narrow(**params: str | list[str]) -> NoReturn:
    """The list of the same facts, with more filters in the address; an empty one is taken away."""
    links.go(screens.RESULTS, links.kept(("view", "fact", "page")) | params)


def describe(chosen: FactsChoice, choice: RunChoice) -> list[str]:
    """The filters that are set, each in a few words."""
    f, names, of = chosen.filter, choice.names, chosen.of
    said = [f"right in {names[number]}" for number in f.right]
    said += [f"wrong in {names[number]}" for number in f.wrong]
    if f.rank_min or f.rank_max:
        said.append(f"rank {f.rank_min or 1} to {f.rank_max or 'last'} in {of}")
    if f.confidence_min > 0 or f.confidence_max < 1:
        said.append(f"probability {f.confidence_min:.2f} to {f.confidence_max:.2f} in {of}")
    if f.margin_min is not None or f.margin_max is not None:
        ends = (("above", f.margin_min), ("up to", f.margin_max))
        named = " and ".join(f"{way} {end:.9g}" for way, end in ends if end is not None)
        said.append(f"margin {named} in {of}")
    if f.answers_min or f.answers_max:
        said.append(f"{f.answers_min or 1} to {f.answers_max or 'any number of'} answers")
    said += [f"domain {' or '.join(n or NO_TYPE for n in f.domains)}"] if f.domains else []
    said += [f"type {' or '.join(kind or NO_TYPE for kind in f.types)}"] if f.types else []
    said += [f"from {' or '.join(f.sources)}"] if f.sources else []
    said += [f"origin {' or '.join(name or NO_TYPE for name in f.origins)}"] if f.origins else []
    said += [f"pair {' or '.join(f.stated)}"] if f.stated else []
    said += [f"wording {' or '.join(f.wording)}"] if f.wording else []
    said += [f"right answer “{f.gold}”"] if f.gold else []
    said += [f"{of} answers “{f.answer}”"] if f.answer else []
    if f.wrong_kind:
        said.append(f"{of}'s wrong answer: {f.wrong_kind}")
    if f.count_min or f.count_max:
        said.append(f"gold in {f.count_min or 1} to {f.count_max or 'all'} facts of its relation")
    for what, low, high in (
        ("words", f.words_min, f.words_max),
        (f"pieces of {of}", f.pieces_min, f.pieces_max),
    ):
        if low or high:
            said.append(f"subject of {low or 1} to {high or 'any number of'} {what}")
    said += [f"tagged {' or '.join(f.tags)}"] if f.tags else []
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
            links.go(screens.RESULTS, {**screens.WRONG_ANSWERS, **choice.params(), "relations": []})
