"""Widgets <-> URL <-> frozen settings.

Every widget is bound to the query parameter of its key, so the address bar holds what is on the
screen; a parameter that equals its default is left out. A default that depends on what is here, or
on what was done before, is none for Streamlit: `choose` chooses it, and it stands in the address.
Links between pages use the same names.
"""

import json
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar, cast

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.candidates.lists import COMMON, FILE, explain_lists, list_names
from lama_core.datasets.passages import STARTER
from lama_core.errors import UserError, did_you_mean
from lama_core.glossary import explain
from lama_core.models.cache import Precision
from lama_core.models.protocols import RESCORED, Context
from lama_core.models.server.addresses import is_server
from lama_core.models.sources.catalog import added_models, find_model, known_models
from lama_core.papers.published import published_examples
from lama_core.paths import ASSETS
from lama_core.scoring.shared_fields import MAX_MODELS, ClozeSettings, ModelSettings
from pages.ui.shared import links, visitors
from pages.ui.shared.messages import plain, show_note

DEFAULT_MODELS = ("minilm-mlm", "minilm-mlm-twin", "smollm2-135m")
CONTEXTS = ("auto", "left", "both")
PRECISIONS = ("auto", "fp32", "bf16")
TYPED = "typed by this visitor"
SHOWN = "shown in"
MAX_SAID = 200  # characters of an address that are repeated
ASKED_TEXT = "text asked last"
BOUND: Literal["query-params"] = "query-params"
Option = TypeVar("Option")


def pick(
    label: str,
    options: Sequence[Option],
    *,
    key: str,
    first: Option | None = None,
    place: DeltaGenerator | None = None,
    bound: bool = True,
    **more: Any,
) -> Option:
    """One of a few options, side by side; at first `first`, or the first of them.

    bound: whether it stands in the address; else it is kept for the session.
    """
    kept: dict[str, Any] = {"bind": BOUND} if bound else {"persist_state": "session"}
    default = options[0] if first is None else first
    chosen = (place or st).segmented_control(
        label, options, default=default, required=True, key=key, **kept, **more
    )
    return default if chosen is None else chosen


def draw_rows(
    table: pd.DataFrame, names: Sequence[str], *, key: str, height: int | None = 460, **more: Any
) -> None:
    """A table in which a click on a row chooses its name for the widget of that key."""
    widget = f"{key} table"

    def take() -> None:
        if rows := st.session_state[widget]["selection"]["rows"]:
            st.session_state[key] = names[rows[0]]

    st.dataframe(
        table,
        hide_index=True,
        key=widget,
        on_select=take,
        selection_mode="single-row",
        height=height if height and len(table) > 12 else "content",
        **{"placeholder": ""} | more,
    )


def drop_stale(key: str, options: Container[object]) -> None:
    """Forget what another page, or other data, left under a widget's key, if it is no option."""
    if st.session_state.get(key) not in options:
        st.session_state.pop(key, None)


def choose(
    label: str,
    options: Sequence[str],
    *,
    key: str,
    first: str = "",
    show: Callable[[str], str] = str,
    place: DeltaGenerator | None = None,
    help: str | None = None,
) -> str:
    """A selectbox whose default, `first` or the first option, depends on what is here.

    It has no default for Streamlit, so that its choice always stands in the address. What the
    address asks for counts, as an option or as `show` writes it; then what was chosen before.
    """
    labels = {show(option): option for option in options}
    links.respell(key, {option: text for text, option in labels.items()})
    asked = st.query_params.get(key)
    chosen = labels.get(asked or "", "")
    if not chosen:
        before = str(st.session_state.get(key))
        chosen = before if before in options else first or options[0]
        links.put(key, [show(chosen)])
        st.session_state[key] = chosen
        if asked and links.entered():
            hint = did_you_mean(asked, [*options, *labels])
            said = f"{label}: {asked[:MAX_SAID]} is unknown here{hint}; shown is {show(chosen)}."
            show_note(plain(said))
    found = (place or st).selectbox(
        label, options, index=None, required=True, key=key, bind=BOUND, format_func=show, help=help
    )
    return found or chosen


def heed_unknown(label: str, key: str, options: Mapping[str, str], shown: str) -> None:
    """Say which values of an address are unknown, and what is shown; call before the widget.

    options: name -> how the widget writes it; the address may hold either.
    """
    links.respell(key, options)
    unknown = [one for one in st.query_params.get_all(key) if one not in options.values()]
    if unknown and links.entered():
        hint = did_you_mean(unknown[0], [*options, *options.values()])
        names = ", ".join(unknown)[:MAX_SAID]
        show_note(plain(f"{label}: {names} is unknown here{hint}; shown is {shown}."))


@cache
def examples() -> tuple[tuple[str, str], ...]:
    """Example texts with their golds, from the LAMA paper."""
    read = json.loads((ASSETS / "examples.json").read_text(encoding="utf-8"))
    first = tuple((entry["text"], entry["gold"]) for entry in read["examples"])
    return first + tuple((one.query, one.gold) for one in published_examples())


def title_of(name: str) -> str:
    """A model's name as a person reads it."""
    known = {entry.name: entry.title for entry in known_models()}
    if is_server(name):
        return f"{name.partition('#')[2]} (server)"
    return known.get(name, name.rstrip("/").rsplit("/", 1)[-1] if name.startswith("/") else name)


def choose_models(label: str = "Models") -> tuple[str, ...]:
    """The models to compare; a folder or a hub name can be typed in by whom the operator knows.

    What an address names is a name alone: a folder of this machine is only taken from who types it.
    """
    offered = visitors.offered_models()
    names = [entry.name for entry in known_models() if entry.source.how != "none"]
    names += [entry.name for entry in added_models() if entry.source.how != "none"]
    if offered is not None:
        names = [name for name in names if name in offered]
        _say_not_offered("models", offered)
    more = offered is None
    chosen = st.multiselect(
        label,
        names,
        default=[name for name in DEFAULT_MODELS if name in names] or names[:1],
        key="models",
        bind=BOUND,
        accept_new_options=more,
        on_change=_note_typed,
        args=("models",),
        max_selections=MAX_MODELS,
        placeholder="Choose models, or type a folder or hub name" if more else "Choose models",
        help="Answers stand side by side."
        + (
            " Besides the known models you can type the path of a model folder, or a hub name such "
            "as owner/name or owner/name@revision." * more
        ),
    )
    st.session_state[f"{SHOWN} models"] = tuple(chosen)
    found = [_model_of(name, names) for name in chosen]
    return tuple(dict.fromkeys(name for name in found if name))


def _say_not_offered(key: str, offered: frozenset[str]) -> None:
    """Say which models of an address this app doesn't offer."""
    asked = [name for name in st.query_params.get_all(key) if name not in offered]
    if asked and links.entered():
        said = f"{', '.join(asked)[:200]}: not among the models of this app, and left out."
        show_note(plain(said))


def _model_of(name: str, names: Sequence[str]) -> str | None:
    """The model's own name; None, said on the page, for what an address alone can't name.

    That is a folder of this machine, or a server that this machine would call.
    """
    if name in names:
        return name
    typed = name in st.session_state.get(TYPED, ())
    if typed or not _looks_like_path(name):
        entry = find_model(name)
        if entry.source.how not in ("folder", "server") or entry.name in names:
            return entry.name
        if typed:
            visitors.check("paths")
            return entry.name
    st.warning(
        f"An address can't name a folder or a server here: if {plain(name[:200])} is to be asked, "
        "type it under Models.",
        icon=":material/link_off:",
    )
    return None


def check_named(settings: ModelSettings, book: str | None = None) -> None:
    """Raise UserError for models, candidates or a book that an address, or a file, can't name here.

    Those are folders, servers and files of this machine that this visitor didn't type, and models
    that the app doesn't offer. book: the text that is read.
    """
    offered = visitors.offered_models()
    typed = st.session_state.get(TYPED, frozenset())
    listed = {entry.name for entry in (*known_models(), *added_models())}
    for name in settings.models:
        if offered is not None and name not in offered:
            raise UserError(f"{name[:200]!r} is not among the models of this app.")
        if name not in listed | typed and (
            _looks_like_path(name) or find_model(name).source.how in ("folder", "server")
        ):
            raise UserError(f"{name[:200]!r} is no model that can be named here: type it yourself.")
    candidates = settings.candidates if isinstance(settings, ClozeSettings) else COMMON
    if candidates not in (*list_names(of_relations=False), *typed):
        raise UserError(f"{candidates[:200]!r} is no list of candidates that can be named here.")
    if book not in (None, STARTER, *typed):
        raise UserError(f"{str(book)[:200]!r} is no text that can be named here.")


def _looks_like_path(name: str) -> bool:
    """Whether a name can't be a model's: told by its letters, without looking at the disk."""
    begins = is_server(name) or name.startswith(("/", "~", "."))
    return begins or "\\" in name or name.count("/") > 1


def _note_typed(key: str) -> None:
    """Keep what was typed into a field, and not taken from the address, as this visitor's own."""
    now = st.session_state[key]
    values = {now} if isinstance(now, str) else set(now or ())
    new = values - set(st.session_state.get(f"{SHOWN} {key}", ()))
    st.session_state[TYPED] = st.session_state.get(TYPED, frozenset()) | new


def choose_or_type(
    label: str,
    options: Sequence[str],
    *,
    key: str,
    types: bool,
    help: str,
    refused: str,
    names: str = "",
) -> str:
    """One of the options, or what this visitor typed; an address alone can't name a path.

    types: whether the visitor may type. names: how what names a path begins; other words that are
    none of the options are left to the caller. Raises UserError, saying `refused`, for a path that
    wasn't typed here.
    """
    chosen = st.selectbox(
        label,
        options,
        key=key,
        bind=BOUND,
        accept_new_options=types,
        on_change=_note_typed,
        args=(key,),
        help=help,
    )
    st.session_state[f"{SHOWN} {key}"] = (chosen,)
    if not chosen:
        return options[0]
    if chosen not in options and chosen.startswith(names):
        visitors.check("paths")
        if chosen not in st.session_state.get(TYPED, ()):
            raise UserError(refused)
    return chosen


@dataclass(frozen=True, slots=True)
class ClozeChoice:
    """What is chosen on the tab Sentence besides the text and the gold. book: what is read."""

    settings: ClozeSettings
    top_k: int
    renormalise: bool
    book: str | None = None


def start_with_example() -> None:
    """Query the first example where the address names no text and no gold; write both into it.

    Without the text there, a gold that was emptied would be the example's again.
    """
    asked = "text" in st.query_params or "gold" in st.query_params
    first = links.entered() or "text" not in st.session_state  # not drawn yet: another tab was open
    if first and not asked:
        st.session_state.setdefault("text", examples()[0][0])
        st.session_state.setdefault("gold", dict(examples()).get(st.session_state["text"], ""))
    for name in ("text", "gold"):
        if name not in st.query_params and st.session_state.get(name):
            links.put(name, [st.session_state[name]])


def type_text(place: DeltaGenerator, label: str, *, help: str) -> str:
    """The sentence that is typed; an example's gold answer comes and goes with the example."""

    def follow() -> None:
        golds = dict(examples())
        gold = st.session_state.get("gold") or ""
        if gold in ("", golds.get(st.session_state.get(ASKED_TEXT, ""))):
            st.session_state["gold"] = golds.get(st.session_state["text"] or "", "")

    typed = place.text_input(label, key="text", bind=BOUND, on_change=follow, help=help) or ""
    st.session_state[ASKED_TEXT] = typed
    return typed


def draw_examples() -> None:
    """The paper's examples; a click fills in the text and its gold."""

    def take(text: str, gold: str) -> None:
        st.session_state["text"], st.session_state["gold"] = text, gold

    st.caption("From Petroni et al. 2019, Figure 1 and Table 3")
    with st.container(height=380, border=False, gap=None):
        for text, gold in examples():
            st.button(plain(text), key=text, type="tertiary", on_click=take, args=(text, gold))


def choose_precision() -> Precision:
    """The precision that models compute in."""
    chosen = pick("Precision", PRECISIONS, key="precision", first="auto", help=explain("Precision"))
    return cast(Precision, chosen)


def choose_cloze_options(models: tuple[str, ...], *, lists: bool = True) -> ClozeChoice:
    """The options of a cloze query. lists: whether more than the first answer is shown."""
    top_k = st.slider("Answers per model", 1, 20, 5, key="k", bind=BOUND) if lists else 1
    typed = visitors.may("paths")
    candidates = choose_or_type(
        "Candidates",
        list_names(of_relations=False),
        key="candidates",
        types=typed,
        names=FILE,
        help=f"The words that are ranked. {explain_lists(of_relations=False)}"
        + " Or type `file:PATH`: a list of your own, one word a line." * typed,
        refused="An address can't name a file of this machine: type the candidates yourself under "
        "Options.",
    )
    with st.expander("Advanced"):
        context = pick(
            "Causal models see", CONTEXTS, key="context", first="auto", help=explain("Context")
        )
        rescored = st.slider(
            "Words rescored with both sides", 10, 1000, RESCORED, 10, key="rescored", bind=BOUND
        )
        renormalise = st.toggle(
            "Probabilities over the candidates only",
            key="renormalise",
            bind=BOUND,
            help="Off: log-softmax over the model's whole vocabulary, as the paper prints it. "
            "On: divided by the sum over the candidates.",
        )
        precision = choose_precision()
    settings = ClozeSettings(
        models=models,
        candidates=candidates,
        context=None if context == "auto" else cast(Context, context),
        precision=precision,
        n_rescored=rescored,
    )
    return ClozeChoice(settings, top_k, renormalise)
