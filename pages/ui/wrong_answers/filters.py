"""Filters of Wrong answers: widgets, URL parameters and `AnswerFilter`."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn, cast

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.glossary import explain
from lama_core.metrics.fact_answers import (
    COUNTINGS,
    WRONG_KINDS,
    AnswerFilter,
    JoinedAnswers,
    WrongKind,
)
from lama_core.metrics.slices import NO_TYPE
from lama_core.runs.info import RunInfo
from lama_core.runs.tags import known_tags, read_tags
from lama_core.scoring.ranking import Ints
from pages.ui.shared import links, screens
from pages.ui.shared.messages import counted, plain
from pages.ui.shared.run_choice import RunChoice
from pages.ui.shared.url_state import BOUND

MAX_SEARCH = 500  # characters

ANY = "any"
OPENED_ON = ("wrong", "sort")  # URL parameters of the facts that the tab opens on
# URL parameters that choose runs, and don't ask for some of their facts.
CHOICES_OF_RUNS = {
    "tab",
    "data",
    "models",
    "runs",
    "prompts",
    "p_at",
    "ranking",
    "scored_on",
    links.AMONG,
    links.ONLY,
}
VERDICT = ("right", "wrong", "conf")  # URL parameters of frequent filters
CONFIDENT = (0.5, 1.0)  # probabilities of a confident answer
ANY_CONFIDENCE = (0.0, 1.0)
OF = "filtered model"  # session key: the model that the filters applied to when last drawn


# Fields of the filter that only links set, such as those of charts' marks, and how the URL's values
# are read.
LINKED: dict[str, Callable[[Sequence[str]], Any]] = {
    **dict.fromkeys(
        ("types", "sources", "origins", "domains", "stated", "wording"),
        lambda given: tuple("" if value == NO_TYPE else value for value in given),
    ),
    **dict.fromkeys(("gold", "answer"), lambda given: given[0].strip()[:MAX_SEARCH]),
    **dict.fromkeys(("margin_min", "margin_max"), lambda given: float(given[0])),
    **{
        f"{name}_{end}": lambda given: int(given[0])
        for name in ("count", "words", "pieces", "answers", "popularity")
        for end in ("min", "max")
    },
    "contained": lambda given: {"yes": True, "no": False}[given[0]],
}


def open_on_wrong(names: Sequence[str]) -> None:
    """Choose the first model's wrong answers, the most confident first, unless the URL asks more.

    The app's own URLs of earlier versions list the runs, and show all facts without a filter.
    """
    links.replace_values("wrong", {screens.FIRST_MODEL: names[0]})
    params = set(st.query_params)
    if links.is_new_url():
        asked = links.lists_runs() or bool(params - CHOICES_OF_RUNS)
    else:
        asked = "of" in st.session_state or bool(params & {"right", "fact", *OPENED_ON})
    if not asked:
        links.set_param("wrong", [names[0]])
        links.set_param("sort", [screens.CONFIDENT_FIRST])
        st.session_state.update(wrong=[names[0]], sort=screens.CONFIDENT_FIRST)


def choose_filters(
    choice: RunChoice, *, any_verdict: bool = False, label: str = "Model"
) -> tuple[AnswerFilter, bool]:
    """Draw the filter widgets; return the filter, and whether a marked one says what is right.

    any_verdict: whether the view shows the right and the wrong answers of the selected model, so
    that "Wrong in" applies to the other models only.
    label: of the field for the selected model.
    """
    names = list(choice.names)
    titles = dict(zip(names, choice.titles, strict=True))
    for key in ("of", "right", "wrong"):
        links.replace_values(key, titles)

    def follow() -> None:
        """Apply the filters on right and wrong answers to the newly selected model instead."""
        before, now = st.session_state[OF], st.session_state["of"]
        swapped = {before: now, now: before}
        for end in ("right", "wrong"):
            st.session_state[end] = [swapped.get(n, n) for n in st.session_state.get(end, ())]

    with st.container(key="fact-filters"):
        boxes = st.columns([2, 4, 1.4], vertical_alignment="bottom")
    of = boxes[0].selectbox(
        label,
        names,
        key="of",
        bind=BOUND,
        format_func=titles.__getitem__,
        on_change=follow,
        help="Filters on ranks, probabilities, wrong answers and excluded facts use this model.",
    )
    st.session_state[OF] = of
    links.drop_long("find", MAX_SEARCH)
    text = boxes[1].text_input(
        "Search",
        key="find",
        bind=BOUND,
        max_chars=MAX_SEARCH,
        placeholder="Subject, right answer, query, answer",
        help="Facts with this text in the subject, an answer or the query.",
    )
    with boxes[2], st.popover("Filters", icon=":material/filter_alt:", width="stretch"):
        left, middle = st.columns(2)
        right = _choose_any(
            "Right in",
            choice.names,
            "right",
            left,
            format_func=titles.__getitem__,
            help=f"Facts whose right answer is among the first {choice.k} of each of these models "
            "(k is set under More options).",
        )
        wrong = _choose_any(
            "Wrong in",
            choice.names,
            "wrong",
            middle,
            format_func=titles.__getitem__,
            help="Combine with **Right in** to see the facts that A gets right and B gets wrong. "
            "Of the selected model, Confusion and Frequent answers show all answers.",
        )
        more = _choose_answers(choice.runs[names.index(of)])
    now = (right, wrong, (more["confidence_min"], more["confidence_max"]))
    marked = not any_verdict and _choose_verdict(names, of, now)
    for name, read in LINKED.items():
        if given := st.query_params.get_all(name):
            links.set_param(name, given)
            with suppress(ValueError, KeyError):
                more[name] = read(given)
    chosen = AnswerFilter(
        of=names.index(of),
        k=choice.k,
        relations=choice.relations,
        right=tuple(names.index(name) for name in right),
        wrong=tuple(names.index(name) for name in wrong if not (any_verdict and name == of)),
        text=(text or "").strip(),
        **more,
    )
    return chosen, marked


Verdict = tuple[tuple[str, ...], tuple[str, ...], tuple[float, float]]


def _choose_verdict(names: Sequence[str], of: str, now: Verdict) -> bool:
    """Draw frequent filters on right and wrong answers; return whether one is set, and so marked.

    now: the models that are right, those that are wrong, and the range of the probability.
    """
    others = tuple(name for name in names if name != of)
    known: dict[str, Verdict] = {
        "All facts": ((), (), ANY_CONFIDENCE),
        "Wrong": ((), (of,), ANY_CONFIDENCE),
        "Confident and wrong": ((), (of,), CONFIDENT),
    }
    if others:
        known |= {
            "Only this model is right": ((of,), others, ANY_CONFIDENCE),
            "All models are wrong": ((), tuple(names), ANY_CONFIDENCE),
        }
    sets = {(frozenset(one), frozenset(other), ends): n for n, (one, other, ends) in known.items()}
    marked = sets.get((frozenset(now[0]), frozenset(now[1]), now[2]))
    # The key holds the filter that is set, so that the mark follows filters set elsewhere.
    chosen = st.pills(
        "Facts",
        list(known),
        default=marked,
        required=marked is not None,
        key=f"verdict {of} {marked}",
        label_visibility="collapsed",
    )
    if chosen is not None and chosen != marked:
        right, wrong, confidence = known[chosen]
        conf = [] if confidence == ANY_CONFIDENCE else [str(end) for end in confidence]
        narrow(right=[*right], wrong=[*wrong], conf=conf, of=of)
    return marked is not None


def _choose_answers(focus: RunInfo) -> dict[str, Any]:
    """Draw the filters on the selected run's answers; return them as fields of AnswerFilter."""
    found: dict[str, Any] = {}
    if focus.has_ranks:
        for box, end, way in zip(st.columns(2), ("min", "max"), ("from", "to"), strict=True):
            key = f"rank_{end}"
            links.drop_infinite(key)
            found[key] = box.number_input(
                f"Rank {way}", value=None, key=key, bind=BOUND, min_value=1
            )
    confidence = st.slider(
        "Probability of the first answer",
        0.0,
        1.0,
        ANY_CONFIDENCE,
        0.01,
        key="conf",
        bind=BOUND,
        help=f"{explain('Probability of the first answer')} The range excludes the lower end and "
        "includes the upper one, as in the reliability diagram.",
    )
    left, right = st.columns(2)
    kind = left.selectbox(
        "The wrong answer is",
        (ANY, *WRONG_KINDS),
        key="kind",
        bind=BOUND,
        help=explain("Kinds of wrong answers"),
    )
    counting = right.selectbox(
        "Facts",
        COUNTINGS,
        key="rows",
        bind=BOUND,
        help="**excluded**: facts that the selected model isn't scored on, with the reason.",
    )
    known = list(dict.fromkeys((*known_tags(read_tags(focus)), *st.session_state.get("tag", ()))))
    tags = known and _choose_any(
        "Tags",
        known,
        "tag",
        help="Facts with at least one of these tags in the selected model's run. The local user "
        "(operator) adds tags to an opened fact, or to several rows at once.",
    )
    return {
        **found,
        "confidence_min": float(confidence[0]),
        "confidence_max": float(confidence[1]),
        "wrong_kind": None if kind == ANY else cast(WrongKind, kind),
        "counting": counting,
        "tags": tuple(tags),
    }


def _choose_any(
    label: str, options: Sequence[str], key: str, place: DeltaGenerator | None = None, **more: Any
) -> tuple[str, ...]:
    """Draw a field for several values; none means any. more: as of `st.multiselect`."""
    return tuple(
        (place or st).multiselect(
            label, options, key=key, bind=BOUND, placeholder="Any", select_all=False, **more
        )
    )


def params_of(fields: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """Convert the fields of AnswerFilter that a view sets to URL parameters."""
    written: dict[type, Callable[[Any], str | list[str]]] = {
        float: lambda value: f"{value:.9g}",
        bool: lambda value: "yes" if value else "no",
        tuple: lambda value: [item or NO_TYPE for item in value],
    }
    ends = [fields.get("confidence_min", 0.0), fields.get("confidence_max", 1.0)]
    params = {
        name: written.get(type(value), str)(value)
        for name, value in fields.items()
        if value is not None and not name.startswith("confidence")
    }
    return params | ({"conf": [f"{end:.2f}" for end in ends]} if ends != [0, 1] else {})


def narrow(**params: str | list[str]) -> NoReturn:
    """Reload the list of facts with more filters in the URL; empty values remove a filter."""
    kept = {key: st.session_state[key] for key in OPENED_ON if st.session_state.get(key)}
    links.go(screens.RESULTS, links.params_without(("view", "fact", "page")) | kept | params)


def describe(f: AnswerFilter, choice: RunChoice) -> dict[str, tuple[str, ...]]:
    """Describe each filter that is set in a few words; the values are its URL parameters."""
    names = choice.titles
    of, ways = names[f.of], (("above", f.margin_min), ("up to", f.margin_max))
    confidence = f"{f.confidence_min:.2f} to {f.confidence_max:.2f}"
    margin = " and ".join(f"{way} {end:.9g}" for way, end in ways if end is not None)
    popularity = _ends(f.popularity_min, f.popularity_max, 0, "any number", ",")
    words = _ends(f.words_min, f.words_max, 1, "any number of")
    pieces = _ends(f.pieces_min, f.pieces_max, 1, "any number of")

    def ends(name: str) -> tuple[str, ...]:
        return f"{name}_min", f"{name}_max"

    # What is before a filter's values, the values as a text, which is empty without the filter,
    # what is after them, and the URL parameters.
    said = [
        ("right in ", " and ".join(names[number] for number in f.right), "", ("right",)),
        ("wrong in ", " and ".join(names[number] for number in f.wrong), "", ("wrong",)),
        ("rank ", _ends(f.rank_min, f.rank_max, 1, "last"), f" in {of}", ends("rank")),
        ("probability ", confidence * (confidence != "0.00 to 1.00"), f" in {of}", ("conf",)),
        ("margin ", margin, f" in {of}", ends("margin")),
        ("", _ends(f.answers_min, f.answers_max, 1, "any number of"), " answers", ends("answers")),
        ("popularity of the subject ", popularity, "", ends("popularity")),
        ("domain ", _any_of(f.domains), "", ("domains",)),
        ("type ", _any_of(f.types), "", ("types",)),
        ("from ", _any_of(f.sources), "", ("sources",)),
        ("origin ", _any_of(f.origins), "", ("origins",)),
        ("pair ", _any_of(f.stated), "", ("stated",)),
        ("wording ", _any_of(f.wording), "", ("wording",)),
        ("right answer “", f.gold, "”", ("gold",)),
        (f"{of} answers “", f.answer, "”", ("answer",)),
        (f"{of}'s wrong answer: ", f.wrong_kind, "", ("kind",)),
        (
            "right answer in ",
            _ends(f.count_min, f.count_max, 1, "all"),
            " facts of its relation",
            ends("count"),
        ),
        ("subject of ", words, " words", ends("words")),
        ("subject of ", pieces, f" tokens of {of}", ends("pieces")),
        ("tagged ", " or ".join(f.tags), "", ("tag",)),
        (
            "right answer ",
            {None: "", True: "in", False: "not in"}[f.contained],
            " the subject",
            ("contained",),
        ),
        ("with “", f.text, "”", ("find",)),
        ("", f.counting if f.counting != "counted" else "", f" facts of {of}", ("rows",)),
    ]
    return {f"{before}{values}{after}": params for before, values, after, params in said if values}


def _ends(low: int | None, high: int | None, least: int, most: str, form: str = "") -> str:
    """A range with words for open ends; empty if both ends are open."""
    return f"{low or least:{form}} to {f'{high:{form}}' if high else most}" if low or high else ""


def _any_of(values: Sequence[str]) -> str:
    return " or ".join(value or NO_TYPE for value in values)


def draw_active(
    f: AnswerFilter, choice: RunChoice, joined: JoinedAnswers, rows: Ints, *, marked: bool
) -> None:
    """Draw the number of facts, and each filter that is set as a button that removes it.

    rows: the facts that pass the filters. marked: whether `choose_filters` shows what is right.
    """
    every = AnswerFilter(of=f.of, counting=f.counting, relations=f.relations)
    n_of, n_queries = len(joined.select(every)), len(np.unique(joined.queries[rows]))
    is_scored = f.counting == "counted" and n_of < len(joined.facts)
    kind = "scored " * is_scored + "excluded " * (f.counting == "excluded")
    said = f"**{len(rows):,}** of {n_of:,} {kind}{choice.counts}"
    said += f" in {counted(n_queries, 'query')}" * (n_queries < len(rows))
    parts = describe(f, choice)
    shown = [part for part, of in parts.items() if marked and of[0] in VERDICT]
    st.markdown(" · ".join((said, *map(plain, shown))), width="content")
    for text in [part for part in parts if part not in shown]:
        key = f"filter {text}"
        if st.button(plain(text), icon=":material/close:", help="Remove this filter.", key=key):
            narrow(**{name: [] for name in parts[text]})
