"""The shelf: answers that were pinned, side by side at the foot of the pages that ask.

Pinned is the query, not what was answered: in the address or a file it is the record of its request
(`lama_core.requests`). Nothing of an address or a file is trusted. Answers that are kept are shown;
of the others the first few are asked for at once, and the rest when somebody wants them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from itertools import cycle
from typing import Annotated, Any, TypeVar, cast
from urllib.parse import quote

import msgspec
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.errors import UserError
from lama_core.models.devices import how_computed
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.probes.analogy.solve import SolveRequest
from lama_core.probes.cloze.query import ALL_OVER, ClozeRequest, golds_of
from lama_core.probes.statements.typed_answers import RankRequest
from lama_core.requests import Request, from_record, record
from lama_core.rounding import fixed
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.shared_fields import ModelSettings
from pages.ui.shared import cache, history, links, url_state, visitors
from pages.ui.shared.colours import model_colours
from pages.ui.shared.export import draw_export, made_with
from pages.ui.shared.messages import faults_shown, plain, show_fault
from pages.ui.shared.predictions import CONTEXTS
from pages.ui.shared.query_queue import if_kept, step_back

MAX_PINS = 12
N_ASKED = 12  # questions, of one pin to one model, that are asked without being wanted
N_SHOWN = 5
PER_ROW = 3
PARAM = "pin"
MAX_ADDRESS = 6000  # characters of all of them together
MAX_FILE = 1  # MB
# In the session: the requests that are pinned, and what is wrong with those of the address.
PINS, FAULTS = "pinned", "pin faults"
# And what of them was asked, as pin and model, of how many that may be.
ASKED, ALLOWED = "pins asked", "pins allowed"

HEAD = '<thead><tr><th>#</th><th>answer</th><th class="num">log-prob.</th></tr></thead>'

KINDS: dict[str, type[ModelSettings]] = {
    "sentence": ClozeRequest,
    "answers": RankRequest,
    "analogy": SolveRequest,
}


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PinFile:
    """What a file of pins holds: their records, and more that isn't read."""

    pinned: Annotated[list[Any], msgspec.Meta(min_length=1)]


@dataclass(frozen=True, slots=True)
class Listed:
    """The first answers of one model to what is pinned: rank, word, log-probability.

    name, precision, device: of the model. gold: in words where it stands, or empty. ranked: what
    was ranked. over: what the log-probabilities are over. sees: which sides of the blank.
    book: the text whose passage stood before the query, or empty.
    """

    name: str
    words: tuple[tuple[int | None, str, float | None], ...]
    gold: str
    ranked: str
    over: str
    sees: str
    precision: str
    device: str
    book: str = ""

    def aspects(self) -> dict[str, str]:
        """How it was made, by what is compared."""
        return {
            "ranked": self.ranked,
            "log-probabilities over": self.over,
            "context": self.sees,
            "open book": self.book,
            "precision": how_computed(self.precision, self.device) or "fp32",
        }


@dataclass(frozen=True, slots=True)
class Drawn:
    """A pin on the page.

    found: of each model that answered. n_unasked: models that weren't asked yet. note: a place for
    one.
    """

    found: dict[str, Listed]
    n_unasked: int
    note: DeltaGenerator


def kind_of(request: object) -> str:
    """What a request is called in a record; empty for one that can't be pinned."""
    return next((name for name, kind in KINDS.items() if type(request) is kind), "")


def pinned() -> tuple[Request, ...]:
    """What is pinned, in the order in which it was; at first what the address says."""
    if PINS not in st.session_state:
        st.session_state[PINS] = ()
        for text in st.query_params.get_all(PARAM)[:MAX_PINS]:
            try:
                _add(read_pin(_decoded(text, "it", object)))
            except UserError as error:
                said = f"A pin of this address was left out: {error}"
                st.session_state[FAULTS] = (*st.session_state.get(FAULTS, ()), said)
    return cast(tuple[Request, ...], st.session_state[PINS])


def write_pin(request: Request) -> dict[str, Any]:
    """What is pinned as a record."""
    return {"kind": kind_of(request), **record(request)}


def read_pin(given: object) -> Request:
    """The request of a record. Raises UserError for one that can't be asked here."""
    fields = dict(given) if isinstance(given, dict) else {}
    kind = KINDS.get(str(fields.pop("kind", "")))
    if kind is None:
        raise UserError(f"it has no kind of query: write one of {', '.join(KINDS)}.")
    request = cast(Any, from_record(cast(Any, kind), fields))
    request.check()
    url_state.check_named(request, getattr(request, "open_book", None))
    if isinstance(request, ClozeRequest):
        golds_of(request.gold, parse_query(request.text).n_blanks)
    if isinstance(request, SolveRequest):
        request.question()
        if request.text.count("___") != 1:
            raise UserError("an analogy is four words, of which one is ___.")
    return cast(Request, request)


def read_file(data: bytes, name: str) -> tuple[Request, ...]:
    """What a file has pinned. Raises UserError for what is no such file, naming the first fault."""
    pins = _decoded(data, name, PinFile).pinned
    if len(pins) > MAX_PINS:
        raise UserError(f"{name} has {len(pins):,} pins; at most {MAX_PINS} fit.")
    read = []
    for number, pin in enumerate(pins, start=1):
        try:
            read.append(read_pin(pin))
        except UserError as error:
            raise UserError(f"{name}, pin {number}: {error}") from error
    return tuple(read)


def _decoded(data: str | bytes, name: str, kind: type[T]) -> T:
    """The content of JSON from outside. Raises UserError for what isn't of that kind."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise UserError(
            f"{name} has nothing pinned: bring a JSON file that was taken from here."
        ) from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name} is no JSON: bring one that was taken from here.") from error


def _add(*requests: Request) -> None:
    """Pin these, at the end; the same once."""
    every = dict.fromkeys((*st.session_state.get(PINS, ()), *requests))
    st.session_state[PINS] = tuple(every)[:MAX_PINS]


def _remove(request: Request) -> None:
    st.session_state[PINS] = tuple(one for one in pinned() if one != request)


def draw_pin(request: Request, *, key: str) -> None:
    """A button that pins what is asked, or takes it down."""
    is_pinned = request in pinned()
    full = len(pinned()) >= MAX_PINS and not is_pinned
    st.button(
        "Unpin" if is_pinned else "Pin",
        key=key,
        icon=":material/keep:",
        disabled=full,
        on_click=_remove if is_pinned else _add,
        args=(request,),
        help=f"{MAX_PINS} are pinned, the most that fit: unpin one."
        if full
        else "Keeps these answers at the foot of the page Ask, next to others.",
    )


def draw_history(place: DeltaGenerator) -> None:
    """The popover with what was asked, and the way back for a file of pins."""
    with place, st.popover("History", icon=":material/history:", type="tertiary"):
        history.draw()
        if visitors.may("upload"):
            _draw_upload()


def _draw_upload() -> None:
    number = st.session_state.get("pin files", 0)
    file = st.file_uploader(
        "Pinned answers from a file",
        type="json",
        key=f"pin file {number}",
        max_upload_size=MAX_FILE,
        help="The JSON that stands under pinned answers.",
    )
    if file is None:
        return
    try:
        requests = read_file(file.getvalue(), file.name)
    except UserError as error:
        show_fault(str(error))
        return

    def take() -> None:
        st.session_state[PINS] = ()
        _add(*requests)
        st.session_state["pin files"] = number + 1

    st.button(f"Pin its {len(requests)} in place of those that are", on_click=take)


def draw_pinned() -> None:
    """All that is pinned, side by side, with what is not the same in all; nothing if none is.

    What an address had that can't be pinned is said once.
    """
    requests = pinned()
    for fault in st.session_state.pop(FAULTS, ()):
        show_fault(fault)
    if not requests:
        return
    st.subheader("Pinned", anchor=False)
    texts = [
        json.dumps(write_pin(one), ensure_ascii=False, separators=(",", ":")) for one in requests
    ]
    fits = sum(len(quote(text)) for text in texts) <= MAX_ADDRESS
    if fits:
        links.put(PARAM, texts)
    above = st.container()
    colours = model_colours([name for one in requests for name in history.Entry(one).models])
    drawn: dict[Request, Drawn] = {}
    for first in range(0, len(requests), PER_ROW):
        row = requests[first : first + PER_ROW]
        boxes = st.columns(min(len(requests), PER_ROW), border=True)
        for number, (request, box) in enumerate(zip(row, boxes, strict=False), start=first):
            with box:
                drawn[request] = _draw_one(
                    request, colours, f"pin {number}", spread=len(requests) == 1
                )
    with above:
        _draw_unasked(sum(one.n_unasked for one in drawn.values()))
        _draw_made(drawn)
        if not fits:
            st.caption("So many don't fit into the address: take them away as JSON.")
    _draw_taken(requests, {request: one.found for request, one in drawn.items()})


def _draw_one(request: Request, colours: Mapping[str, str], key: str, *, spread: bool) -> Drawn:
    """A pinned query with every model's first answers.

    spread: the models stand side by side, where the page's whole width is theirs.
    """
    entry = history.Entry(request)
    st.markdown(f"**{plain(entry.title)}**")
    found: dict[str, Listed] = {}
    n_unasked = 0
    here = tuple(name for name in entry.models if is_here(find_model(name)))
    side = st.columns(len(entry.models)) if spread and entry.models else [st.container()]
    for name, spot in zip(entry.models, cycle(side), strict=False):
        head = f'<span class="lx-dot" style="background:{colours[name]}"></span>'
        head = f'<div class="lx-head">{head}<b>{escape(url_state.title_of(name))}</b></div>'
        place = spot.empty()
        waits = "asking" if name in here else "not here yet"
        place.html(f'{head}<div class="lx-muted">{waits}</div>')
        if name in here:
            with spot, faults_shown():
                listed = if_kept(partial(_ask, request, name, here))
                if listed is None and _may_ask(request, name):
                    step_back()
                    listed = _ask(request, name, here)
                if listed is None:
                    n_unasked += 1
                    place.html(f'{head}<div class="lx-muted">not asked yet</div>')
                else:
                    found[name] = listed
                    place.html(head + _table(listed))
    note = st.empty()
    with st.container(horizontal=True):
        st.button(
            "Open",
            key=f"{key} open",
            icon=":material/arrow_outward:",
            type="tertiary",
            on_click=history.choose,
            args=(entry,),
            help=f"On {entry.view.name}.",
        )
        st.button(
            "Unpin",
            key=f"{key} unpin",
            icon=":material/keep_off:",
            type="tertiary",
            on_click=_remove,
            args=(request,),
        )
    return Drawn(found, n_unasked, note)


def _may_ask(request: Request, name: str) -> bool:
    """Whether a model may be asked what is pinned: it was before, or few enough were."""
    asked: set[tuple[Request, str]] = st.session_state.setdefault(ASKED, set())
    if len(asked) < st.session_state.get(ALLOWED, N_ASKED):
        asked.add((request, name))
    return (request, name) in asked


def _draw_unasked(n: int) -> None:
    """How many questions of what is pinned weren't asked yet, and a button that asks the next."""
    if not n:
        return

    def ask() -> None:
        st.session_state[ALLOWED] = st.session_state.get(ALLOWED, N_ASKED) + N_ASKED

    st.button(
        f"Ask the next {N_ASKED} of {n}" if n > N_ASKED else f"Ask the other {n}",
        key="pins ask",
        icon=":material/play_arrow:",
        on_click=ask,
        help="A question is one pinned query to one model. So many aren't asked before somebody "
        "wants them.",
    )


def _ask(request: Request, name: str, here: tuple[str, ...]) -> Listed:
    """A model's first answers, as the request's own view asks for them."""
    if isinstance(request, RankRequest):
        ranking = cache.ranked_answers(request, name)
        gold = ranking.find(request.gold) if request.gold else None
        return Listed(
            name,
            tuple((one.rank, one.answer, one.log_prob) for one in ranking.answers[:N_SHOWN]),
            f"Right answer {request.gold}: rank {gold.rank or 'unknown'}" if gold else "",
            f"{len(ranking.answers):,} answers by the {request.aggregate} over the {request.part}",
            ALL_OVER["answers"],
            "",
            ranking.precision,
            ranking.device,
        )
    asked = cast(ClozeRequest | SolveRequest, request)
    settings = replace(cache.settings_of(asked), models=here)
    top_k, gold_word, book = max(asked.top_k, N_SHOWN), asked.gold or "", ""
    if isinstance(asked, SolveRequest):
        answer = cache.solution(
            settings,
            name,
            asked.question(),
            gold_word,
            asked.keep_query_words,
            top_k,
            asked.renormalise,
        ).cloze.models[0]
    else:
        query, book = parse_query(asked.text), asked.open_book or ""
        passage = cache.passage_before(query, book) if book else None
        answer = cache.cloze_answer(
            settings, name, query.text(), gold_word, top_k, asked.renormalise, passage
        )
    candidates, _ = cache.candidates_of(settings)
    blank = answer.blanks[0]
    first = f" (blank 1 of {len(answer.blanks)})" if len(answer.blanks) > 1 else ""
    words = candidates.words
    size = "each model's own tokens" if words is None else f"{len(words):,} words"
    without = isinstance(asked, SolveRequest) and not asked.keep_query_words
    return Listed(
        name,
        tuple((one.rank, one.token, one.log_prob) for one in blank.predictions[:N_SHOWN]),
        f"Right answer {blank.gold.word}: rank {blank.gold.rank:,}{first}" if blank.gold else first,
        f"{candidates.name}, {size}{', without the given words' * without}",
        ALL_OVER[blank.over],
        CONTEXTS[answer.context],
        answer.precision,
        answer.device,
        book,
    )


def _table(listed: Listed) -> str:
    """The words with their log-probabilities, and where the gold stands."""
    rows = "".join(
        f'<tr><td class="rank">{rank or ""}</td><td class="word">{escape(word)}</td>'
        f'<td class="num muted">{"" if value is None else fixed(value, 2)}</td></tr>'
        for rank, word, value in listed.words
    )
    gold = f'<div class="lx-muted">{escape(listed.gold)}</div>' if listed.gold else ""
    return f'<table class="lx">{HEAD}<tbody>{rows}</tbody></table>{gold}'


def _aspects(request: Request, found: Mapping[str, Listed]) -> dict[str, str]:
    """How a pin's answers were made, by what is compared; what differs by model is all said."""
    titles = ", ".join(map(url_state.title_of, history.Entry(request).models))
    values: dict[str, dict[str, None]] = {"models": {titles: None}}
    for listed in found.values():
        for name, value in listed.aspects().items():
            values.setdefault(name, {}).update({value: None} if value else {})
    return {name: "; ".join(value) for name, value in values.items()}


def _draw_made(drawn: Mapping[Request, Drawn]) -> None:
    """Beside each pin that is answered how it was made, in bold what is not the same in all."""
    answered = {request: one for request, one in drawn.items() if not one.n_unasked}
    made = [_aspects(request, one.found) for request, one in answered.items()]
    names = list(dict.fromkeys(name for one in made for name in one))
    differing = {name for name in names if len({one.get(name, "") for one in made}) > 1}
    for one, pin in zip(made, answered.values(), strict=True):
        said = [
            f"**{name}: {plain(value)}**" if name in differing else f"{name}: {plain(value)}"
            for name, value in one.items()
            if value and (name != "models" or name in differing)
        ]
        pin.note.caption("  \n".join(said))
    if len(made) > 1:
        told = (
            f"Not the same in all: {', '.join(name for name in names if name in differing)}; it "
            "stands in bold."
            if differing
            else "Models, what was ranked and precision are the same in all."
        )
        st.caption(told + " Said of those that were asked." * (len(made) < len(drawn)))


def _draw_taken(requests: Sequence[Request], found: Mapping[Request, dict[str, Listed]]) -> None:
    """What can be taken away: the answers, and the queries, which can be brought back."""
    rows = [
        {
            "pin": number,
            "query": history.Entry(request).title,
            "model": listed.name,
            "rank": rank,
            "word": word,
            "log_prob": value,
            "gold": listed.gold or None,
            **listed.aspects(),
        }
        for number, request in enumerate(requests, start=1)
        for listed in found[request].values()
        for rank, word, value in listed.words
    ]
    pins = [write_pin(one) for one in requests]
    answers = list({one.name: one for each in found.values() for one in each.values()}.values())
    draw_export(
        "pinned",
        lambda: rows,
        made_with({}, answers),
        tuple(requests),
        record=lambda: {"pinned": pins, "rows": rows},
        more=_draw_unpin_all,
    )


def _draw_unpin_all() -> None:
    st.button("Unpin all", icon=":material/keep_off:", on_click=_remove_all)


def _remove_all() -> None:
    st.session_state[PINS] = ()
