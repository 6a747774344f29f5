"""Widgets <-> URL <-> frozen settings.

Every widget is bound to the query parameter of its key, so the address bar holds what is on the
screen; a parameter that equals its default is left out. A default that depends on what is here, or
on what was done before, is none for Streamlit: `choose` chooses it, and it stands in the address.
Links between pages use the same names.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.asking.settings import MAX_MODELS, ClozeSettings
from lama_core.candidates.lists import explain_lists, list_names
from lama_core.models.base import RESCORED, Context
from lama_core.models.catalog import added_models, find_model, known_models
from lama_core.models.loader import Precision
from lama_core.paths import ASSETS
from pages.ui.shared import links
from pages.ui.shared.messages import plain

DEFAULT_MODELS = ("minilm-mlm", "smollm2-135m")
CONTEXTS = ("auto", "left", "both")
PRECISIONS = ("fp32", "bf16")
BOUND: Literal["query-params"] = "query-params"


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
            said = f"{label}: {asked} is not here; shown is {show(chosen)}."
            st.info(plain(said), icon=":material/info:")
    found = (place or st).selectbox(
        label, options, index=None, required=True, key=key, bind=BOUND, format_func=show, help=help
    )
    return found or chosen


@cache
def examples() -> tuple[tuple[str, str], ...]:
    """Example texts with their golds, from the LAMA paper."""
    read = json.loads((ASSETS / "examples.json").read_text(encoding="utf-8"))
    return tuple((entry["text"], entry["gold"]) for entry in read["examples"])


def title_of(name: str) -> str:
    """A model's name as a person reads it."""
    known = {entry.name: entry.title for entry in known_models()}
    return known.get(name, name.rstrip("/").rsplit("/", 1)[-1] if name.startswith("/") else name)


def choose_models(label: str = "Models") -> tuple[str, ...]:
    """The models to compare; a folder or a hub name can be typed in."""
    names = [entry.name for entry in known_models() if entry.source.how != "none"]
    names += [entry.name for entry in added_models()]
    chosen = st.multiselect(
        label,
        names,
        default=list(DEFAULT_MODELS),
        key="models",
        bind=BOUND,
        accept_new_options=True,
        max_selections=MAX_MODELS,
        placeholder="Choose models, or type a folder or hub name",
        help="Answers stand side by side. Besides the known models you can type the path of a "
        "model folder, or a hub name such as owner/name or owner/name@revision.",
    )
    return tuple(find_model(name).name for name in chosen)


@dataclass(frozen=True, slots=True)
class ClozeChoice:
    """What is chosen on the Cloze page besides the text and the gold."""

    settings: ClozeSettings
    top_k: int
    renormalise: bool


def start_with_example() -> None:
    """Ask the first example where the address asks nothing; both its text and its gold stand there.

    Without the text there, a gold that was emptied would be the example's again.
    """
    asked = "text" in st.query_params or "gold" in st.query_params
    for name, value in zip(("text", "gold"), examples()[0], strict=True):
        if links.entered() and not asked:
            st.session_state.setdefault(name, value)
        if name not in st.query_params and st.session_state.get(name):
            links.put(name, [st.session_state[name]])


def draw_examples() -> None:
    """The paper's examples; a click fills in the text and its gold."""

    def take(text: str, gold: str) -> None:
        st.session_state["text"], st.session_state["gold"] = text, gold

    st.caption("From Petroni et al. 2019, Figure 1 and Table 3")
    with st.container(height=380, border=False, gap=None):
        for text, gold in examples():
            st.button(plain(text), key=text, type="tertiary", on_click=take, args=(text, gold))


def choose_cloze_options(models: tuple[str, ...], *, lists: bool = True) -> ClozeChoice:
    """The options of a cloze query. lists: whether more than the first answer is shown."""
    top_k = st.slider("Answers per model", 1, 20, 5, key="k", bind=BOUND) if lists else 1
    candidates = st.selectbox(
        "Candidates",
        list_names(of_relations=False),
        key="candidates",
        bind=BOUND,
        accept_new_options=True,
        help=f"The words that are ranked. {explain_lists(of_relations=False)} Or type `file:PATH`: "
        "a list of your own, one word a line.",
    )
    context = st.segmented_control(
        "Left-to-right models see",
        CONTEXTS,
        default="auto",
        required=True,
        key="context",
        bind=BOUND,
        help="**left**: what stands left of the blank, as in the LAMA paper. **both**: the best "
        "words by the left side are rescored by the log-probability of the whole sentence, "
        "the gold with them, and normalised over them. **auto**: left where nothing but "
        "punctuation follows the blank, else both. Masked models always see both sides.",
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
    precision = st.segmented_control(
        "Precision",
        PRECISIONS,
        default="fp32",
        required=True,
        key="precision",
        bind=BOUND,
        help="bf16 is faster where the processor has it, and can change close ranks.",
    )
    settings = ClozeSettings(
        models=models,
        candidates=candidates or "common",
        context=None if context == "auto" else cast(Context, context),
        precision=cast(Precision, precision),
        n_rescored=rescored,
    )
    return ClozeChoice(settings, top_k, renormalise)
