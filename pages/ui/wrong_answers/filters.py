"""Filters of Wrong answers: widgets, URL parameters and `AnswerFilter`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn, cast

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
from lama_core.metrics.slices import (
    ANSWERS_HELP,
    DOMAIN,
    NO_TYPE,
    ORIGIN,
    PAIR_SEEN,
    POPULARITY,
    POPULARITY_HELP,
    SLICINGS,
    WORDING_SEEN,
    Slicing,
    slicings,
)
from lama_core.runs.info import OWN_WORDS, RunInfo
from lama_core.runs.tags import known_tags, read_tags
from lama_core.types import RELATION_TYPES
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
}
CONFIDENT = 0.5  # lowest probability of a confident answer
TAGS_HELP = (
    "Facts with at least one of these tags in the selected model's run. The local user (operator) "
    "adds tags to an opened fact, or to several rows at once."
)
NOT_IN_DATA, NO_TEXTS = "Not in the data", "Training texts unknown"
# Field of the filter -> slicing whose groups are its values, its meaning, and why there may be no
# values.
SLICED: dict[str, tuple[str, Callable[[], str], str]] = {
    "origins": (ORIGIN, lambda: explain("Origin"), NOT_IN_DATA),
    "domains": (DOMAIN, lambda: explain("Domain"), NOT_IN_DATA),
    "stated": (PAIR_SEEN, lambda: explain("Pair seen in training"), NO_TEXTS),
    "wording": (WORDING_SEEN, lambda: explain("Wording seen in training"), NO_TEXTS),
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
    if asked:
        return
    links.set_param("wrong", [names[0]])
    links.set_param("sort", [screens.CONFIDENT_FIRST])
    st.session_state["wrong"] = [names[0]]
    st.session_state["sort"] = screens.CONFIDENT_FIRST


def choose_filters(
    choice: RunChoice, joined: JoinedAnswers, *, any_verdict: bool = False, label: str = "Model"
) -> AnswerFilter:
    """Draw the filter widgets and return the filter.

    any_verdict: whether the view shows the right and the wrong answers of the selected model, so
    that "Wrong in" applies to the other models only.
    label: of the field for the selected model.
    """
    names = list(choice.names)
    titles = dict(zip(names, choice.titles, strict=True))
    for key in ("of", "right", "wrong"):
        links.replace_values(key, titles)
    with st.container(key="fact-filters"):
        boxes = st.columns([2, 4, 1.4], vertical_alignment="bottom")
    of = boxes[0].selectbox(
        label,
        names,
        key="of",
        bind=BOUND,
        format_func=titles.__getitem__,
        help="Filters on ranks, probabilities, wrong answers and excluded facts use this model.",
    )
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
        focus = choice.runs[names.index(of)]
        slicing = slicings(joined)
        more = (
            _choose_kinds(choice.runs, slicing)
            | _choose_answers(focus)
            | _choose_facts(focus, slicing)
        )
    if not any_verdict:
        title = titles[of]
        others = [other for other in names if other != of]
        quick: dict[str, dict[str, str | list[str]]] = {
            f"Wrong in {title}": {"wrong": [of]},
            f"Confident and wrong in {title}": {"wrong": [of], "conf": [str(CONFIDENT), "1.0"]},
        }
        if others:
            quick |= {
                f"Only {title} is right": {"right": [of], "wrong": others},
                "All are wrong": {"wrong": list(names)},
            }
        with st.container(horizontal=True, key="quick-filters"):
            for text_of, params in quick.items():
                if st.button(plain(text_of)):
                    narrow(**{"right": [], "conf": [], "of": of, **params})
    return AnswerFilter(
        of=names.index(of),
        k=choice.k,
        relations=choice.relations,
        right=tuple(names.index(name) for name in right),
        wrong=tuple(names.index(name) for name in wrong if not (any_verdict and name == of)),
        text=(text or "").strip(),
        **more,
    )


def _choose_kinds(runs: Sequence[RunInfo], slicing: Mapping[str, Slicing]) -> dict[str, Any]:
    """Draw the filters on kinds of relations and facts; return them as fields of AnswerFilter."""
    relations = [relation for run in runs for relation in run.relations]
    of_relations = {relation.type for relation in relations}
    types = [kind or NO_TYPE for kind in (*RELATION_TYPES, None) if kind in of_relations]
    sources = list(dict.fromkeys(relation.source for relation in relations))
    left, right = st.columns(2)
    found = {
        "types": _choose_any("Type of relation", types, "types", left),
        "sources": _choose_any("Source", sources, "sources", right),
    }
    for field, (by, meaning, without) in SLICED.items():
        values = [*slicing[by].slices] if by in slicing else []
        empty = "Any" if by in slicing else without
        label = by.capitalize()
        found[field] = _choose_any(label, values, field, help=meaning(), placeholder=empty)
    for field in ("types", "origins", "domains"):
        found[field] = tuple("" if value == NO_TYPE else value for value in found[field])
    return found


def _choose_answers(focus: RunInfo) -> dict[str, Any]:
    """Draw the filters on the selected run's answers; return them as fields of AnswerFilter."""
    found = _choose_range("Rank", "rank", min_value=1) if focus.has_ranks else {}
    if focus.ranks_statements:
        margin_help = (
            f"{explain('Margin')} The range excludes the lower end and includes the upper one."
        )
        ways = ("above", "up to")
        found |= _choose_range("Margin", "margin", margin_help, ways=ways, format="%g")
    confidence = st.slider(
        "Probability of the first answer",
        0.0,
        1.0,
        (0.0, 1.0),
        0.01,
        key="conf",
        bind=BOUND,
        help=f"{explain('Probability of the first answer')} The range excludes the lower end and "
        "includes the upper one, as in the reliability diagram.",
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
    counting = right.selectbox(
        "Facts",
        COUNTINGS,
        key="rows",
        bind=BOUND,
        help="**excluded**: facts that the selected model isn't scored on, with the reason.",
    )
    return {
        **found,
        "confidence_min": float(confidence[0]),
        "confidence_max": float(confidence[1]),
        "wrong_kind": None if kind == ANY else cast(WrongKind, kind),
        "gold": (gold or "").strip(),
        "answer": (answer or "").strip(),
        "counting": counting,
    }


def _choose_facts(focus: RunInfo, slicing: Mapping[str, Slicing]) -> dict[str, Any]:
    """Draw the filters on properties of a fact; return them as fields of AnswerFilter.

    focus: the selected run, which has the tags and the lists of candidates.
    """
    counts = {
        "Right answer's frequency": ("count", SLICINGS["gold's frequency"].help),
        "Subject's words": ("words", SLICINGS["subject's words"].help),
        "Subject's tokens": ("pieces", SLICINGS["subject's pieces"].help),
    }
    if focus.candidates == OWN_WORDS:
        counts["Number of answers"] = ("answers", ANSWERS_HELP)
    found: dict[str, Any] = {}
    for label, (name, help_text) in counts.items():
        found |= _choose_range(label, name, help_text, min_value=1)
    if POPULARITY in slicing:
        found |= _choose_range("Subject's popularity", "popularity", POPULARITY_HELP, min_value=0)
    left, right = st.columns(2)
    contained = left.selectbox(
        "Right answer in the subject",
        (ANY, "yes", "no"),
        key="contained",
        bind=BOUND,
        help=explain("Gold in the subject"),
    )
    known = known_tags(read_tags(focus))
    unknown = [tag for tag in st.session_state.get("tag", ()) if tag not in known]
    empty = "Any" if known else "No fact has a tag"
    return {
        **found,
        "contained": {ANY: None, "yes": True, "no": False}[contained],
        "tags": _choose_any(
            "Tags", [*known, *unknown], "tag", right, help=TAGS_HELP, placeholder=empty
        ),
    }


def _choose_any(
    label: str, options: Sequence[str], key: str, place: DeltaGenerator | None = None, **more: Any
) -> tuple[str, ...]:
    """Draw a field for several values; none means any. more: as of `st.multiselect`."""
    usual: dict[str, Any] = {"bind": BOUND, "placeholder": "Any", "select_all": False}
    return tuple((place or st).multiselect(label, options, key=key, **(usual | more)))


def _choose_range(
    label: str,
    name: str,
    help_text: str | None = None,
    *,
    ways: tuple[str, str] = ("from", "to"),
    **options: Any,
) -> dict[str, Any]:
    """Draw two fields for a range; return `NAME_min` and `NAME_max`, None for an open end."""
    found = {}
    for box, end, way in zip(st.columns(2), ("min", "max"), ways, strict=True):
        key = f"{name}_{end}"
        links.drop_infinite(key)
        found[key] = box.number_input(
            f"{label} {way}", value=None, key=key, bind=BOUND, help=help_text, **options
        )
    return found


def params_of(fields: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """Convert the fields of AnswerFilter that a view sets to URL parameters."""
    params: dict[str, str | list[str]] = {}
    ends = ("confidence_min", "confidence_max")
    if any(end in fields for end in ends):
        low, high = fields.get(ends[0], 0.0), fields.get(ends[1], 1.0)
        params["conf"] = [f"{low:.2f}", f"{high:.2f}"]
    for name, value in fields.items():
        if name in ends:
            continue
        if isinstance(value, float):
            params[name] = f"{value:.9g}"
        elif isinstance(value, bool):
            params[name] = "yes" if value else "no"
        elif isinstance(value, tuple):
            params[name] = [item or NO_TYPE for item in value]
        elif value is not None:
            params[name] = str(value)
    return params


def narrow(**params: str | list[str]) -> NoReturn:
    """Reload the list of facts with more filters in the URL; empty values remove a filter."""
    kept = {key: st.session_state[key] for key in OPENED_ON if st.session_state.get(key)}
    links.go(screens.RESULTS, links.params_without(("view", "fact", "page")) | kept | params)


def describe(f: AnswerFilter, choice: RunChoice) -> list[str]:
    """Describe each filter that is set in a few words."""
    names = choice.titles
    of, ways = names[f.of], (("above", f.margin_min), ("up to", f.margin_max))
    has_confidence = f.confidence_min > 0 or f.confidence_max < 1
    confidence = f"{f.confidence_min:.2f} to {f.confidence_max:.2f}" * has_confidence
    margin = " and ".join(f"{way} {end:.9g}" for way, end in ways if end is not None)
    popularity = _ends(f.popularity_min, f.popularity_max, 0, "any number", ",")
    words, pieces = (
        _ends(low, high, 1, "any number of")
        for low, high in ((f.words_min, f.words_max), (f.pieces_min, f.pieces_max))
    )
    labels = choice.labels
    # What is before a filter's values, the values as a text, which is empty without the filter, and
    # what is after them.
    said = [
        *(("right in ", names[number], "") for number in f.right),
        *(("wrong in ", names[number], "") for number in f.wrong),
        ("rank ", _ends(f.rank_min, f.rank_max, 1, "last"), f" in {of}"),
        ("probability ", confidence, f" in {of}"),
        ("margin ", margin, f" in {of}"),
        ("", _ends(f.answers_min, f.answers_max, 1, "any number of"), " answers"),
        ("popularity of the subject ", popularity, ""),
        ("domain ", _any_of(f.domains), ""),
        ("type ", _any_of(f.types), ""),
        ("from ", _any_of(f.sources), ""),
        ("origin ", _any_of(f.origins), ""),
        ("pair ", _any_of(f.stated), ""),
        ("wording ", _any_of(f.wording), ""),
        ("right answer “", f.gold, "”"),
        (f"{of} answers “", f.answer, "”"),
        (f"{of}'s wrong answer: ", f.wrong_kind, ""),
        ("right answer in ", _ends(f.count_min, f.count_max, 1, "all"), " facts of its relation"),
        ("subject of ", words, " words"),
        ("subject of ", pieces, f" tokens of {of}"),
        ("tagged ", " or ".join(f.tags), ""),
        ("right answer ", {None: "", True: "in", False: "not in"}[f.contained], " the subject"),
        ("with “", f.text, "”"),
        ("", f.counting if f.counting != "counted" else "", f" facts of {of}"),
        *(("", labels[name], "") for name in choice.relations[:3]),
        ("", "..." * (len(choice.relations) > 3), ""),
    ]
    return [f"{before}{values}{after}" for before, values, after in said if values]


def _ends(low: int | None, high: int | None, least: int, most: str, form: str = "") -> str:
    """A range with words for open ends; empty if both ends are open."""
    end = f"{high:{form}}" if high else most
    return f"{low or least:{form}} to {end}" if low or high else ""


def _any_of(values: Sequence[str]) -> str:
    return " or ".join(value or NO_TYPE for value in values)


def draw_active(f: AnswerFilter, choice: RunChoice, joined: JoinedAnswers, n: int) -> None:
    """Draw the number of facts, the filters that are set, and a button that removes them.

    n: the number of facts that pass the filters.
    """
    parts = describe(f, choice)
    with st.container(horizontal=True, vertical_alignment="center"):
        n_all = len(joined.facts)
        n_of = len(joined.select(AnswerFilter(of=f.of, counting=f.counting)))
        scored = f.counting == "counted" and n_of < n_all
        kind = "scored " if scored else "excluded " if f.counting == "excluded" else ""
        text = f"**{n:,}** of {n_of:,} {kind}facts"
        text += f" ({n_all - n_of:,} excluded)" * scored
        st.markdown(text + "".join(f" · {plain(part)}" for part in parts), width="content")
        if parts:
            every = {**choice.params(), **screens.ALL_FACTS, "relations": []}
            links.draw_link("Show all", "filter_alt_off", screens.RESULTS, every)
        if f.right and f.wrong:
            n_other = len(joined.select(replace(f, right=f.wrong, wrong=f.right)))
            ahead = " and ".join(choice.titles[number] for number in f.wrong)
            label = f"The other way round: {counted(n_other, 'fact')} right in {plain(ahead)}"
            if st.button(
                label, icon=":material/swap_horiz:", type="tertiary", disabled=not n_other
            ):
                names = choice.names
                narrow(right=[names[at] for at in f.wrong], wrong=[names[at] for at in f.right])
