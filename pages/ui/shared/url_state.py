"""Widgets bound to the URL, and the settings that they make.

Every widget is bound to the query parameter of its key, so the URL describes the screen. A
parameter that equals its default is not in the URL, unless the default depends on the installed
data or on earlier choices: `choose` sets such a default itself and always writes it into the URL.
Links between pages use the same names.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.candidates.lists import COMMON, FILE, OWN, explain_lists, list_names
from lama_core.datasets.library.installed import dataset_names
from lama_core.datasets.passages import STARTER
from lama_core.errors import UserError, did_you_mean
from lama_core.glossary import explain
from lama_core.models.cache import Precision
from lama_core.models.sources.catalog import added_models, find_model, is_served, known_models
from lama_core.paths import ASSETS
from lama_core.published import published_examples
from lama_core.scoring.shared_fields import MAX_MODELS, ModelSettings
from pages.ui.shared import links, visitors
from pages.ui.shared.messages import plain, show_note
from pages.ui.shared.tables import draw_table

DEFAULT_MODELS = ("minilm-mlm", "minilm-mlm-twin", "smollm2-135m")
# Session keys: the values that the visitor typed, a field's last values (`SHOWN` + its key), and
# the query that fields belong to (`OF` + the first field's key), and the table with a new choice.
TYPED = "typed by this visitor"
SHOWN = "shown in"
CLICKED = "key of the clicked row"
OF = "query of"
VECTOR_FILE = re.compile(r"\.(txt|vec)(\.(gz|bz2|xz|zip))?$")  # not part of a title
MARK = "→"  # before the first cell of the chosen row of a table
MAX_SHOWN = 200  # characters of a URL's value that a message repeats
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
    """Draw a few options side by side and return the chosen one; the default is `first`.

    bound: whether the choice is in the URL; otherwise only the session keeps it.
    """
    kept: dict[str, Any] = {"bind": BOUND} if bound else {"persist_state": "session"}
    default = options[0] if first is None else first
    if bound:
        show = more.get("format_func", str)
        note_unknown(label, key, {str(one): show(one) for one in options}, show(default))
    chosen = (place or st).segmented_control(
        label, options, default=default, required=True, key=key, **kept, **more
    )
    return default if chosen is None else chosen


def choose_row(
    label: str,
    table: pd.DataFrame,
    names: Sequence[str],
    *,
    key: str,
    drops: Sequence[str] = (),
    show: Callable[[str], str] = str,
    height: int | None = 460,
    **more: Any,
) -> str:
    """Draw a table; return the name of the row that was clicked last, which the URL holds.

    drops: URL parameters that belong to the row that was chosen before. show: makes the URL's
    text of a name.
    """
    if st.session_state.pop(CLICKED, None) == key:
        there = links.params_without([key, *drops]) | {key: show(st.session_state[key])}
        links.go(st.session_state[links.PAGE], there)
    chosen = _chosen(label, names, key=key, show=show)
    table = table.copy()
    at = table.index[names.index(chosen)], table.columns[0]
    table.loc[at] = f"{MARK} {table.loc[at]}"

    def take(rows: Sequence[int]) -> None:
        if rows and names[rows[0]] != st.session_state.get(key):
            st.session_state[key] = names[rows[0]]
            st.session_state[CLICKED] = key

    draw_table(
        table,
        key=f"{key} table",
        on_pick=lambda picked: take(picked.rows),
        picks="row-or-cell",
        n_cards=3,  # the choice is drawn below them
        height=height if height and len(table) > 12 else "content",
        **{"placeholder": ""} | more,
    )
    return chosen


def drop_stale(key: str, options: Container[object]) -> None:
    """Remove a widget's value from the session if it isn't among the options."""
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
    """Draw a selectbox whose default depends on what is installed; return the chosen option.

    The value comes from the URL (an option, or an option as `show` writes it), else from the
    earlier choice, else it is `first` or the first option. Streamlit gets no default, so the choice
    is always in the URL.
    """
    chosen = _chosen(label, options, key=key, first=first, show=show)
    return (place or st).selectbox(
        label, options, index=None, required=True, key=key, bind=BOUND, format_func=show, help=help
    ) or chosen


def _chosen(
    label: str,
    options: Sequence[str],
    *,
    key: str,
    first: str = "",
    show: Callable[[str], str] = str,
) -> str:
    """Return the chosen option, see `choose`, and put it in the URL; name an unknown value."""
    labels = {show(option): option for option in options}
    links.replace_values(key, {option: text for text, option in labels.items()})
    asked = st.query_params.get(key)
    chosen = labels.get(asked or "", "")
    if not chosen:
        before = str(st.session_state.get(key))
        chosen = before if before in options else first or options[0]
        links.set_param(key, [show(chosen)])
        st.session_state[key] = chosen
        if asked and links.is_new_url():
            hint = did_you_mean(asked, [*options, *labels])
            unknown = f"{label}: {asked[:MAX_SHOWN]} is unknown{hint}; showing {show(chosen)}."
            show_note(plain(unknown))
    return chosen


def note_unknown(label: str, key: str, options: Mapping[str, str], shown: str) -> None:
    """Show a note on unknown values of a URL parameter; call before drawing its widget.

    options: name -> the widget's spelling; the URL may have either. shown: what the page shows
    instead of the unknown values, as a text.
    """
    links.replace_values(key, options)
    unknown = [value for value in st.query_params.get_all(key) if value not in options.values()]
    if unknown and links.is_new_url():
        said = ", ".join(unknown)[:MAX_SHOWN] + " is unknown"
        said += did_you_mean(unknown[0], [*options, *options.values()])
        show_note(plain(f"{label}: {said}; showing {shown}."))


@cache
def examples() -> tuple[tuple[str, str], ...]:
    """Example texts of the LAMA paper, each with its gold answer."""
    read = json.loads((ASSETS / "examples.json").read_text(encoding="utf-8"))
    return (
        *((entry["text"], entry["gold"]) for entry in read["examples"]),
        *((one.query, one.gold) for one in published_examples()),
    )


def title_of(name: str) -> str:
    """A model's name for display."""
    known = {entry.name: entry.title for entry in known_models()}
    if is_served(name):
        return f"{name.partition('#')[2]} (server)"
    last = name.rstrip("/").rsplit("/", 1)[-1] if name.startswith("/") else name
    return known.get(name, VECTOR_FILE.sub("", last).replace("glove.", "GloVe "))


@cache
def place_of(model: str) -> int:
    """A model's place in the catalogue, the order of every choice of models; others come last."""
    names = [entry.name for entry in known_models()]
    return names.index(model) if model in names else len(names)


def choose_models(
    label: str = "Models", *, key: str = "models", default: Sequence[str] = DEFAULT_MODELS
) -> tuple[str, ...]:
    """Draw the choice of the models to compare and return their names. key: also the URL parameter.

    Visitors with the right `fetch` can also type a hub name, and the local user a folder. A URL
    can't name a folder of this machine: it must be typed.
    """
    offered = visitors.offered_models()
    titles = {
        entry.name: entry.title
        for entry in (*known_models(), *added_models())
        if entry.source.how != "none" and (offered is None or entry.name in offered)
    }
    known = {*titles, *titles.values()}
    refused = ", ".join(name for name in st.query_params.get_all(key) if name not in known)
    if offered is not None and refused and links.is_new_url():
        excluded = "Excluded, because this app doesn't offer these models: "
        show_note(plain(f"{excluded}{refused[:MAX_SHOWN]}."))
    more = offered is None
    chosen = choose_several(
        label,
        titles,
        key=key,
        bind=BOUND,
        default=[name for name in default if name in titles] or list(titles)[:1],
        accept_new_options=more,
        max_selections=MAX_MODELS,
        placeholder="Choose models, or type a folder or hub name" if more else "Choose models",
        help="Shows the models' answers side by side."
        + (
            " You can also type a model's short name as in `lama-explorer models`, the path of a "
            "model folder, or a hub name such as owner/name or owner/name@revision." * more
        ),
    )
    found = dict.fromkeys(_model_of(name, list(titles)) for name in chosen)
    return tuple(filter(None, found))


def choose_several(
    label: str,
    options: Mapping[str, str],
    *,
    key: str,
    place: DeltaGenerator | None = None,
    **more: Any,
) -> tuple[str, ...]:
    """Draw a field for several options and return the names of those chosen, and values typed.

    Enter chooses one option, the first that contains what was typed: never all that match. A typed
    name of an option chooses the option.

    Args:
        label: The field's label.
        options: name -> what the field and the URL show, unless two options would have it.
            URLs may have either.
        key: The field's key, and its URL parameter if it is bound.
        place: Where it is drawn.
        **more: As of `st.multiselect`.
    """
    titles = Counter(options.values())
    shown = {name: title if titles[title] == 1 else name for name, title in options.items()}
    links.replace_values(key, shown)

    def take() -> None:
        typed = {name.lower(): name for name in options}
        now = dict.fromkeys(typed.get(value.lower(), value) for value in st.session_state[key])
        st.session_state[key] = list(now)
        _note_typed(key)

    chosen = (place or st).multiselect(
        label,
        list(options),
        format_func=lambda name: shown.get(name, name),
        key=key,
        on_change=take,
        filter_mode="contains",
        select_all=False,
        **more,
    )
    st.session_state[f"{SHOWN} {key}"] = tuple(chosen)
    return tuple(chosen)


def _model_of(name: str, names: Sequence[str]) -> str | None:
    """The model's full name; for a folder or server that only the URL names, warn and return None.

    A URL from someone else must not open a folder of this machine, or make it call a server.
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
        f"URLs can't reference local folders or servers. Type {plain(name[:MAX_SHOWN])} under "
        "Models to query it.",
        icon=":material/link_off:",
    )
    return None


def check_named(settings: ModelSettings, book: str | None = None) -> None:
    """Check the models, candidates, data and open-book text that a URL or an uploaded file names.

    Args:
        settings: The request with the models, and perhaps candidates and a data set.
        book: The open-book text, if there is one.

    Raises:
        UserError: If any of them is a folder, server or file that this visitor didn't type, or a
            model that the app doesn't offer.
    """
    offered = visitors.offered_models()
    typed = st.session_state.get(TYPED, frozenset())
    listed = {entry.name for entry in (*known_models(), *added_models())}
    for name in settings.models:
        if offered is not None and name not in offered:
            raise UserError(f"This app doesn't offer the model {name[:MAX_SHOWN]!r}.")
        if name not in listed | typed and (
            _looks_like_path(name) or find_model(name).source.how in ("folder", "server")
        ):
            raise UserError(
                f"URLs and files can't reference the model {name[:MAX_SHOWN]!r}: type it under "
                "Models."
            )
    lists, sets = list_names(of_relations=False), dataset_names()
    for what, value, known, where in (
        ("candidate list", getattr(settings, "candidates", COMMON), lists, "type it under Options"),
        ("open-book text", book, (None, STARTER), "type it under Options"),
        ("data set", getattr(settings, "dataset", sets[0]), sets, "choose one under Data"),
    ):
        if value not in (*known, *typed):
            raise UserError(
                f"URLs and files can't reference the {what} {str(value)[:MAX_SHOWN]!r}: {where}."
            )


def _looks_like_path(name: str) -> bool:
    """Whether a name looks like a path or a server's URL; the disk isn't checked."""
    return (
        is_served(name) or name.startswith(("/", "~", ".")) or "\\" in name or name.count("/") > 1
    )


def _note_typed(key: str) -> None:
    """Store the new values of a field as typed by the visitor, not taken from a URL."""
    now = st.session_state[key]
    values = {now} if isinstance(now, str) else set(now or ())
    before = st.session_state.get(f"{SHOWN} {key}", ())
    st.session_state[TYPED] = st.session_state.get(TYPED, frozenset()) | values.difference(before)


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
    """Draw a selectbox that also takes typed values; return the chosen or typed value.

    Args:
        label: The widget's label.
        options: The listed options.
        key: The widget's key and URL parameter.
        types: Whether the visitor may type a value.
        help: The widget's help text.
        refused: The error for a path that is in the URL but wasn't typed.
        names: The prefix of values that are paths. The caller checks other unlisted values.

    Raises:
        UserError: With `refused`, for a path that this visitor didn't type.
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
class ExampleField:
    """A text field with examples, and the field for the right answer.

    Attributes:
        texts: The key of the text field.
        golds: The key of the field for the right answer.
        examples: Makes the example texts, each with its right answer.
    """

    texts: str = "text"
    golds: str = "gold"
    examples: Callable[[], Sequence[tuple[str, str]]] = examples

    @property
    def gold_of(self) -> dict[str, str]:
        """Example text -> its right answer."""
        return dict(self.examples())

    def start(self, *, with_gold: bool = True) -> None:
        """Fill in the first example if the URL has no text and no gold answer; put both in the URL.

        With the text in the URL, a reload doesn't fill in a gold answer that the visitor cleared.

        with_gold: Whether the view has the field for the gold answer.
        """
        asked = self.texts in st.query_params or self.golds in st.query_params
        # The field isn't drawn yet if another tab was open.
        if not asked and (links.is_new_url() or self.texts not in st.session_state):
            text = st.session_state.setdefault(self.texts, self.examples()[0][0])
            st.session_state.setdefault(self.golds, self.gold_of.get(text, ""))
        for name in (self.texts, self.golds)[: 1 + with_gold]:
            if name not in st.query_params and st.session_state.get(name):
                links.set_param(name, [st.session_state[name]])

    def type(self, label: str, *, help: str) -> str:
        """Draw the text field and return its text.

        When the text changes, the gold answer becomes that of the new example, or empty for other
        texts: a gold answer belongs to one text.
        """

        def follow() -> None:
            st.session_state[self.golds] = self.gold_of.get(st.session_state[self.texts] or "", "")

        return st.text_input(label, key=self.texts, bind=BOUND, on_change=follow, help=help) or ""


SENTENCE = ExampleField()


def follow_query(query: object, values: Mapping[str, Any]) -> bool:
    """Reset fields that belong to a query when another query is shown; call before drawing them.

    A new URL has its own values of the fields.

    Args:
        query: The query, or what identifies it.
        values: A field's key -> its value for a new query.

    Returns:
        Whether the fields were reset.
    """
    mark = f"{OF} {next(iter(values))}"
    resets = not links.is_new_url() and st.session_state.get(mark) != query
    if resets:
        st.session_state.update(values)
    st.session_state[mark] = query
    return resets


def choose_precision() -> Precision:
    """Draw the choice of the models' precision and return it."""
    from lama_core.models.cpu import NO_BF16, has_bf16  # imports the conversion of releases

    said = explain("Precision") + f" {NO_BF16}" * (not has_bf16())
    options: tuple[Precision, ...] = ("auto", "fp32", "bf16")
    return pick("Precision", options, key="precision", help=said)


def choose_candidates() -> str:
    """Draw the choice of the ranked words and return their name."""
    typed = visitors.may("paths")
    return choose_or_type(
        "Candidates",
        tuple(dict.fromkeys((OWN, *list_names(of_relations=False)))),
        key="candidates",
        types=typed,
        names=FILE,
        help=f"The words that are ranked; {COMMON} has the same words for all models. "
        f"{explain_lists(of_relations=False)}"
        + " Or type `file:PATH` for your own list, one word per line."
        * typed,
        refused="URLs can't reference a file of this machine: type the candidates under Options.",
    )
