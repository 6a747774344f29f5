"""Pinned queries: their answers side by side, below those of the query on the screen.

A pin holds the query, not its answers. In a URL or a file a pin is the record of its
request (`lama_core.requests`), which is checked like any other input. Cached answers are shown at
once. Of the other queries, the first `N_ASKED` run immediately, the rest after a click.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from itertools import cycle
from typing import Annotated, Any, cast
from urllib.parse import quote

import msgspec
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.errors import UserError
from lama_core.models.devices import settings_text
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.queries.analogy import SolveRequest
from lama_core.queries.answers import RankRequest
from lama_core.queries.cloze import ClozeRequest
from lama_core.queries.kind import Asked
from lama_core.requests import Request, from_record, record
from lama_core.rounding import fixed
from lama_core.scoring.shared_fields import ModelSettings
from lama_core.tables import FirstAnswers
from lama_core.texts import word_key
from lama_core.views.colours import model_colours
from pages.ui.queries import history
from pages.ui.queries.table import all_tabs, tab_of
from pages.ui.shared import cache, links, predictions, url_state, visitors
from pages.ui.shared.export import draw_export, made_with
from pages.ui.shared.messages import errors_shown, plain, show_error
from pages.ui.shared.model_columns import boxes_in_rows
from pages.ui.shared.query_queue import if_cached, queue_last

MAX_PINS = 12
N_ASKED = 12  # queries (one pin, one model) that run without a click
N_SHOWN = 5
PER_ROW = 3
PARAM = "pin"
MAX_ADDRESS = 6000  # characters of all pins in a URL
# In the session: the pinned requests, and the errors of the URL's pins.
PINS, FAULTS = "pinned", "pin faults"
ABOVE = "query above the pins"  # in the session: the query whose answers the page shows
# In the session: the queries that were run, as (pin, model), and how many may run.
ASKED, ALLOWED = "pins asked", "pins allowed"

FORMER_KINDS = {"sentence": "cloze"}  # as pins of earlier versions name them


@dataclass(frozen=True, slots=True)
class PinFile:
    """A file of pins. pinned: the pins' records; other keys of the file are ignored."""

    pinned: Annotated[list[Any], msgspec.Meta(min_length=1)]


@dataclass(frozen=True, slots=True)
class PinnedAnswers:
    """One model's first answers to a pinned query.

    Attributes:
        name: The model's name.
        words: The answers, best first.
        gold: The right answer and its rank as a text, or empty.
        right: The right answer, or empty.
        settings: Setting -> value, for the settings on which the answers depend.
        precision: The model's precision.
    """

    name: str
    words: FirstAnswers
    gold: str
    right: str
    settings: dict[str, str]
    precision: str


# A pin on the page: each model's answers, the number of models not queried yet, and a placeholder
# for the pin's settings.
DrawnPin = tuple[dict[str, PinnedAnswers], int, DeltaGenerator]


def pinned() -> tuple[Request, ...]:
    """The pinned requests, oldest first; at the start of a session those in the URL."""
    if PINS not in st.session_state:
        st.session_state[PINS] = ()
        for text in st.query_params.get_all(PARAM)[:MAX_PINS]:
            try:
                _add(read_pin(_decoded(text, "it", object)))
            except UserError as error:
                faults = st.session_state.setdefault(FAULTS, [])
                faults.append(f"A pin in this URL was excluded: {error}")
    return cast(tuple[Request, ...], st.session_state[PINS])


def write_pin(request: Request) -> dict[str, Any]:
    """The record of a pinned request."""
    return {"kind": tab_of(request).kind.name, **record(request)}


def read_pin(given: object) -> Request:
    """The request of a record.

    Raises:
        UserError: If the record isn't valid, or names a model or text that this visitor can't use.
    """
    fields = dict(given) if isinstance(given, dict) else {}
    name = str(fields.pop("kind", ""))
    tabs = {tab.kind.name: tab for tab in all_tabs().values() if tab.kind.answer_field}
    tab = tabs.get(FORMER_KINDS.get(name, name))
    if tab is None:
        raise UserError(f"it has no known kind of query. Set `kind` to one of {', '.join(tabs)}.")
    request = cast(Any, from_record(cast(Any, tab.form.request), fields))
    request.check()
    url_state.check_named(request, getattr(request, "open_book", None))
    cache.prepared(tab.kind, request)
    tab.form.params(request)  # it can be opened on its tab
    return cast(Request, request)


def read_file(data: bytes, name: str) -> tuple[Request, ...]:
    """The pinned requests of a file.

    Raises:
        UserError: If it isn't a file of pins; names the first invalid pin.
    """
    pins = _decoded(data, name, PinFile).pinned
    if len(pins) > MAX_PINS:
        raise UserError(f"{name} has {len(pins):,} pins; the maximum is {MAX_PINS}.")
    requests = []
    for number, pin in enumerate(pins, start=1):
        try:
            requests.append(read_pin(pin))
        except UserError as error:
            raise UserError(f"{name}, pin {number}: {error}") from error
    return tuple(requests)


def _decoded(data: str | bytes, name: str, kind: Any) -> Any:
    """Decode JSON from a URL or an upload; raise UserError if it isn't of the given kind."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise UserError(
            f"No pins found in {name}: upload a JSON file exported from this page."
        ) from error
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{name} is not valid JSON. Use a file or URL that this page exported."
        ) from error


def _add(*requests: Request) -> None:
    """Append requests to the pins, without duplicates."""
    before = st.session_state.get(PINS, ())
    st.session_state[PINS] = tuple(dict.fromkeys((*before, *requests)))[:MAX_PINS]


def _remove(request: Request) -> None:
    st.session_state[PINS] = tuple(one for one in pinned() if one != request)


def draw_pin(request: Request, *, key: str) -> None:
    """Draw the button that pins or unpins a request."""
    st.session_state[ABOVE] = request
    is_pinned = request in pinned()
    full = len(pinned()) >= MAX_PINS and not is_pinned
    st.button(
        "Unpin" if is_pinned else "Pin",
        key=key,
        icon=":material/keep:",
        disabled=full,
        on_click=_remove if is_pinned else _add,
        args=(request,),
        help=f"You have {MAX_PINS} pins, the maximum: unpin one first."
        if full
        else "Keeps these answers below those of the next query, next to other pins.",
    )


def draw_history(place: DeltaGenerator) -> None:
    """Draw the popover with earlier queries and the upload of a file of pins."""
    with place, st.popover("History", icon=":material/history:", type="tertiary"):
        history.draw_entries()
        if not visitors.may("upload"):
            return
        number = st.session_state.get("pin files", 0)
        file = st.file_uploader(
            "Pins from a file",
            type="json",
            key=f"pin file {number}",
            max_upload_size=1,  # MB
            help="The JSON that Export under the pins saves.",
        )
        if file is None:
            return
        with errors_shown():
            requests = read_file(file.getvalue(), file.name)
            st.button(
                f"Replace current pins with these {len(requests)}",
                on_click=st.session_state.update,
                args=({PINS: tuple(dict.fromkeys(requests)), "pin files": number + 1},),
            )


def draw_pinned() -> None:
    """Draw all pins side by side, and the settings that differ between them; once in a rerun.

    Errors in the URL's pins are shown once.
    """
    if PINS in st.session_state[links.PUT]:  # they are below the answers
        return
    st.session_state[links.PUT].add(PINS)
    requests = pinned()
    for fault in st.session_state.pop(FAULTS, ()):
        show_error(fault)
    if not requests:
        return
    st.subheader("Pinned", anchor=False)
    texts = [
        json.dumps(pin, ensure_ascii=False, separators=(",", ":"))
        for pin in map(write_pin, requests)
    ]
    fits = sum(len(quote(text)) for text in texts) <= MAX_ADDRESS
    if fits:
        links.set_param(PARAM, texts)
    if requests == (st.session_state.pop(ABOVE, None),):  # its answers needn't be shown twice
        st.caption("The query above is pinned. Ask another one: this one stays here, below it.")
        return
    above = st.container()
    colours = model_colours([name for one in requests for name in history.HistoryEntry(one).models])
    drawn: dict[Request, DrawnPin] = {}
    spread = len(requests) == 1
    boxes = boxes_in_rows(len(requests), PER_ROW, border=True)
    for number, (request, box) in enumerate(zip(requests, boxes, strict=False)):
        with box:
            drawn[request] = _draw_one(request, colours, f"pin {number}", spread=spread)
    with above:
        if n := sum(n_unasked for _, n_unasked, _ in drawn.values()):
            st.button(
                f"Run the next {N_ASKED} of {n}" if n > N_ASKED else f"Run the other {n}",
                key="pins ask",
                icon=":material/play_arrow:",
                on_click=st.session_state.update,
                args=({ALLOWED: st.session_state.get(ALLOWED, N_ASKED) + N_ASKED},),
                help=f"A query is one pin with one model. Only the first {N_ASKED} run without a "
                "click.",
            )
        _draw_made(drawn)
        if not fits:
            st.caption("Too many pins for a URL; export them as JSON.")
    _draw_export(requests, {request: found for request, (found, *_) in drawn.items()})


def _draw_one(request: Request, colours: Mapping[str, str], key: str, *, spread: bool) -> DrawnPin:
    """Draw a pinned query with every model's first answers.

    spread: whether the models are side by side, because the pin has the page's whole width.
    """
    entry = history.HistoryEntry(request)
    st.markdown(f"**{plain(entry.title)}**")
    found: dict[str, PinnedAnswers] = {}
    n_unasked = 0
    here = tuple(name for name in entry.models if is_here(find_model(name)))
    side = st.columns(len(entry.models)) if spread and entry.models else [st.container()]
    for name, spot in zip(entry.models, cycle(side), strict=False):
        head = (
            f'<div class="lx-head"><span class="lx-dot" style="background:{colours[name]}"></span>'
            f"<b>{escape(url_state.title_of(name))}</b></div>"
        )
        place = spot.empty()
        if name not in here:
            place.html(f'{head}<div class="lx-muted">not installed</div>')
            continue
        place.html(f'{head}<div class="lx-muted">querying</div>')
        with spot, errors_shown():
            listed = if_cached(partial(_ask, request, name, here))
            if listed is None:
                asked: set[tuple[Request, str]] = st.session_state.setdefault(ASKED, set())
                if len(asked) < st.session_state.get(ALLOWED, N_ASKED):
                    asked.add((request, name))
                if (request, name) in asked:
                    queue_last()
                    listed = _ask(request, name, here)
            if listed is None:
                n_unasked += 1
                place.html(f'{head}<div class="lx-muted">not queried yet</div>')
            else:
                found[name] = listed
                has_probs = isinstance(request, ClozeRequest | RankRequest | SolveRequest)
                place.html(head + _table(listed, colours[name] * has_probs))
    note = st.empty()
    with st.container(horizontal=True):
        st.button(
            "Open",
            key=f"{key} open",
            icon=":material/arrow_outward:",
            type="tertiary",
            on_click=history.choose,
            args=(entry,),
            help=f"Opens this query on the tab {entry.tab.name}.",
        )
        st.button(
            "Unpin",
            key=f"{key} unpin",
            icon=":material/keep_off:",
            type="tertiary",
            on_click=_remove,
            args=(request,),
        )
    return found, n_unasked, note


def _ask(request: Request, name: str, here: tuple[str, ...]) -> PinnedAnswers:
    """A model's first answers, scored as on the tab of the request."""
    kind = tab_of(request).kind
    more: dict[str, Any] = {"models": here}
    if hasattr(request, "top_k"):
        more["top_k"] = max(request.top_k, N_SHOWN)
    compared = cast(ModelSettings, replace(request, **more))
    one = cache.answer(kind, compared, name)
    asked = Asked(compared, cache.prepared(kind, compared), cache.candidates_for(compared))
    return PinnedAnswers(
        name,
        words=kind.first_answers(asked, one, N_SHOWN),
        gold=kind.gold(asked, one),
        right=str(getattr(request, "gold", None) or "").strip(),
        settings=kind.settings(asked, one)
        | {"precision": settings_text(one.precision, one.device) or "fp32"},
        precision=one.precision,
    )


def _table(listed: PinnedAnswers, colour: str) -> str:
    """HTML of the answers and of the right answer's rank.

    colour: that of the bars of probabilities or shares; empty for answers that only have
    log-probabilities.
    """
    right, rows = word_key(listed.right), ""
    name = predictions.name_of_values(listed.settings) if colour else "probability"
    log_name = predictions.LOG_OF[name]
    for rank, word, value, begins in listed.words:
        shown = f"{escape(word)}{predictions.longer_word(begins)}"
        log = "" if value is None else fixed(value, 2)
        cells = "<td></td><td></td>" * bool(colour) + f'<td class="num muted">{log}</td>'
        if colour and value is not None:
            prob = math.exp(value)
            cells = predictions.bar_cell(prob, f"background:{colour}")
            cells += predictions.value_cells(prob, log, log_name)
        rows += (
            f'<tr class="{"gold" if word_key(word) == right else ""}">'
            f'<td class="rank">{rank or "–" * bool(colour)}</td>'
            f'<td class="word">{shown}</td>{cells}</tr>'
        )
    head = "<thead><tr><th>#</th><th>answer</th>"
    head += f'<th class="num" colspan="2">{name}</th>' * bool(colour)
    head += f'<th class="num {predictions.DETAIL * bool(colour)}">{log_name}</th></tr></thead>'
    table = f'<table class="lx">{head}<tbody>{rows}</tbody></table>'
    return table + f'<div class="lx-muted">{escape(listed.gold)}</div>' * bool(listed.gold)


def _aspects(request: Request, found: Mapping[str, PinnedAnswers]) -> dict[str, str]:
    """Setting -> value of a pin; several values if its models differ."""
    titles = map(url_state.title_of, history.HistoryEntry(request).models)
    values: dict[str, dict[str, None]] = {"models": {", ".join(titles): None}}
    for listed in found.values():
        for name, value in listed.settings.items():
            values.setdefault(name, {}).update({value: None} if value else {})
    return {name: "; ".join(value) for name, value in values.items()}


def _draw_made(drawn: Mapping[Request, DrawnPin]) -> None:
    """Draw each answered pin's settings; settings that differ between pins are bold."""
    settings = [
        (_aspects(request, found), note)
        for request, (found, n_unasked, note) in drawn.items()
        if not n_unasked
    ]
    names = dict.fromkeys(name for one, _ in settings for name in one)
    differing = [name for name in names if len({one.get(name, "") for one, _ in settings}) > 1]
    for one, note in settings:
        note.caption(
            "  \n".join(
                f"**{name}: {plain(value)}**" if name in differing else f"{name}: {plain(value)}"
                for name, value in one.items()
                if value and (name != "models" or name in differing)
            )
        )
    if len(settings) > 1:
        comparison = (
            f"Differ between pins (in bold): {', '.join(differing)}."
            if differing
            else "All pins have the same models, candidates and precision."
        )
        st.caption(comparison + " Evaluated pins only." * (len(settings) < len(drawn)))


def _draw_export(
    requests: Sequence[Request], found: Mapping[Request, dict[str, PinnedAnswers]]
) -> None:
    """Draw the export of the answers and of the pins, which can be uploaded again."""
    rows = [
        {
            "pin": number,
            "query": history.HistoryEntry(request).title,
            "model": listed.name,
            "rank": rank,
            "word": word,
            "begins": begins,
            "log_prob": value,
            "gold": listed.gold or None,
            **listed.settings,
        }
        for number, request in enumerate(requests, start=1)
        for listed in found[request].values()
        for rank, word, value, begins in listed.words
    ]
    pins = [write_pin(one) for one in requests]
    answers = list({one.name: one for each in found.values() for one in each.values()}.values())
    draw_export(
        "pinned",
        lambda: rows,
        made_with({}, answers),
        tuple(requests),
        record=lambda: {"pinned": pins, "rows": rows},
        more=lambda: st.button(
            "Unpin all",
            icon=":material/keep_off:",
            on_click=st.session_state.update,
            args=({PINS: ()},),
        ),
    )
