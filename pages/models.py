"""Models: those installed, those that can be downloaded, and those loaded into memory."""

from pathlib import Path

import pandas as pd
import streamlit as st

from lama_core.errors import UserError
from lama_core.files import format_bytes
from lama_core.models import devices
from lama_core.models.cache import check_and_add_model
from lama_core.models.server.addresses import is_chat
from lama_core.models.sources.catalog import Entry, all_models, forget_model
from lama_core.models.sources.locations import check_folder, is_here, locate
from lama_core.queries.cloze import ClozeRequest, fill
from lama_core.queries.question import AskRequest, ask
from lama_core.rounding import fixed
from lama_core.service import queries
from pages.ui.router import is_routed
from pages.ui.shared import cache, fetching, links, screens, url_state, visitors
from pages.ui.shared.messages import counted, draw_document, errors_shown, name_value_lines, plain

INSTALLED, OFFERED, IMPOSSIBLE = "installed", "can be downloaded", "can't run here"
# In the session: the model whose first answer is shown, the shown model and its status, and how
# many were added.
TESTED, SHOWN, N_ADDED = "model that was tested", "shown model", "number of added models"
PAPERS = {"petroni2019": "one of the models of Petroni et al. 2019"}


def status_of(entry: Entry) -> str:
    """The status of a model; an added folder that is missing can come back."""
    if is_here(entry):
        return INSTALLED
    can_come = entry.source.how in ("assets", "hub", "wheel", "release", "folder")
    return OFFERED if can_come else IMPOSSIBLE


def draw_list(entries: list[Entry]) -> str:
    """Draw models as a table; return the name of the model that was clicked last."""
    can_run = [status_of(entry) != IMPOSSIBLE for entry in entries]  # else sizes don't matter
    table = pd.DataFrame(
        {
            "model": [entry.title for entry in entries],
            "kind": [entry.kind or "known once loaded" for entry in entries],
            "parameters (M)": [
                round(entry.n_parameters / 1e6) if entry.n_parameters and can else None
                for entry, can in zip(entries, can_run, strict=True)
            ],
            "availability": [
                fetching.availability(
                    entry.source.n_bytes or (entry.n_parameters and 4 * entry.n_parameters),
                    is_installed=is_here(entry),
                )
                if can
                else None
                for entry, can in zip(entries, can_run, strict=True)
            ],
            "why it can't run": [
                None if can else entry.source.why
                for entry, can in zip(entries, can_run, strict=True)
            ],
        }
    ).dropna(axis="columns", how="all")
    titles = {entry.name: entry.title for entry in entries}
    return url_state.choose_row(
        "Model",
        table,
        list(titles),
        key="model",
        show=titles.__getitem__,
        column_config={
            "parameters (M)": st.column_config.NumberColumn(format="localized"),
            "availability": st.column_config.TextColumn(
                help="With the size of the weights, about 4 bytes for each parameter if it isn't "
                "known."
            ),
        },
        placeholder="–",
        height=38 * 13,
    )


def draw_model(entry: Entry, status: str) -> None:
    """Draw a model's details and the actions for its status, such as a download button."""
    how = entry.source.how
    facts = {
        "name": entry.name,
        "kind": entry.kind,
        "case": {True: "cased", False: "uncased", None: ""}[entry.cased],
        "parameters": f"{round(entry.n_parameters / 1e6):,} M" if entry.n_parameters else "",
        "download": format_bytes(entry.source.n_bytes) if entry.source.n_bytes else "",
        "in memory": ", ".join(
            f"{format_bytes(size)} in {precision}"
            for precision in ("fp32", "bf16")
            if (size := entry.bytes_held(precision))
        ),
        "languages": entry.languages,
        "trained on": ", ".join(part for part in (entry.corpus, entry.corpus_size) if part),
        "licence": entry.licence,
        "source": "" if how in ("assets", "none") else f"{how}: {entry.source.place}",
        "paper": PAPERS.get(entry.paper, entry.paper),
        "note": entry.note,
    }
    st.subheader(plain(entry.title), anchor=False)
    if status == INSTALLED:
        _draw_use(entry)
    st.markdown(name_value_lines(facts))
    found = locate(entry) if how == "assets" else None
    if found and (card := found.folder / "README.md").is_file():  # ours, so Markdown
        with st.expander("Model card"):
            draw_document(card)
    if status == IMPOSSIBLE:
        why = entry.source.why if entry.added else f"It can't be run here: {entry.source.why}."
        st.info(plain(why, code=True), icon=":material/block:")
    elif status == OFFERED and how == "folder":
        try:
            check_folder(Path(entry.source.place))
        except UserError as error:
            st.warning(plain(str(error), code=True), icon=":material/folder_off:")
    elif status == OFFERED:
        fetching.draw_offer(entry, about=False)
    removes = entry.added and visitors.may("manage")
    if removes and st.button("Remove from the list", icon=":material/remove:"):
        forget_model(entry.name)
        st.rerun()


def _draw_use(entry: Entry) -> None:
    """Draw the way to Ask, and the test that loads the model and shows its first answer."""
    chat = is_chat(entry.name)
    with st.container(horizontal=True, vertical_alignment="center"):
        links.draw_link(
            "Ask it",
            "edit_note",
            screens.ASK,
            {"tab": "Question", "generators": [entry.name]} if chat else {"models": [entry.name]},
            type="primary",
        )
        if st.button(
            "Test it",
            icon=":material/bolt:",
            help="Loads the model and shows its first answer to one sentence.",
        ):
            st.session_state[TESTED] = entry.name
    if st.session_state.get(TESTED) == entry.name:
        with errors_shown():
            draw_first_answer(entry, generates=chat)


def draw_first_answer(entry: Entry, *, generates: bool) -> None:
    """Load a model and show its first answer to one sentence.

    Raises:
        UserError: If the model can't be loaded or queried.
    """
    with st.spinner(f"Loading {plain(entry.title)} and asking it one sentence"):
        if generates:
            text, how = "What is the capital of France?", ""
            asked = cache.answer(ask.kind, AskRequest(text, models=(entry.name,)), entry.name)
            word = asked.generated.text
        else:
            text = "The capital of France is ___."
            filled = cache.answer(fill.kind, ClozeRequest(text, models=(entry.name,)), entry.name)
            first = filled.blanks[0].predictions[0]
            word, how = first.token, f" (probability {fixed(first.prob, 2)})"
    st.success(
        f"It works: {plain(entry.title)} answers “{plain(text)}” with **{plain(word)}**{how}.",
        icon=":material/check_circle:",
    )


def draw_add() -> None:
    """Draw the form that adds a model from a folder, the hub or a server."""
    n_added = st.session_state.get(N_ADDED, 0)  # another key closes the popover
    with (
        st.popover("Add a model", icon=":material/add:", key=f"add model {n_added}"),
        st.form("add", border=False),
    ):
        reference = st.text_input(
            "Folder, hub name or server",
            placeholder="owner/name",
            help="A folder with config.json and safetensors, a GGUF file, a name on the hub "
            "(owner/name or owner/name@revision), or server:http://host:8000#name for a model on "
            "an OpenAI-compatible server, or chat:http://host:8000#name if the server only "
            "generates text; the app reads the server's key from LAMA_SERVER_KEY. Pickled weights "
            "are refused, and code from a model's repository is never run.",
        )
        st.caption(
            "For example `/path/to/a/model`, `gpt2` or `server:http://host:8000#name`. A model on "
            "this machine is loaded at once and asked one sentence."
        )
        if st.form_submit_button("Add", type="primary") and reference:
            with errors_shown(), st.spinner("Checking the model"):
                added = check_and_add_model(reference.strip())
                st.session_state.update(
                    {"chosen later": added.name, TESTED: added.name, N_ADDED: n_added + 1}
                )
                st.rerun()


def draw_device() -> None:
    """Draw the choice of the device that the app computes on, for all visitors."""
    with st.spinner("Looking for devices"):
        here = devices.available_devices()
        titles = {name: devices.device_title(name) for name in here}
        free = {name: f"{devices.free_bytes(name) / 1e9:.1f} GB free" for name in here}
    st.session_state["device"] = "auto"
    with errors_shown():  # LAMA_DEVICE may name a missing device; the choice below replaces it
        wanted = devices.requested_device()
        if wanted != "auto":
            st.session_state["device"] = devices.find_device(wanted)
    st.selectbox(
        "Models compute on",
        ("auto", *here),
        key="device",
        on_change=_use_device,
        format_func=lambda name: (
            f"the best available: {titles[here[0]]}"
            if name == "auto"
            else f"{titles[name]} · {free[name]}"
        ),
        help="Applies to all users of this app, and unloads all models. Active runs stay on the "
        "device they started on.",
    )


def _use_device() -> None:
    cache.about_models(queries.use_device, st.session_state["device"])
    devices.use_device(st.session_state["device"])  # here, too: the keys of answers include it


def draw_loaded() -> None:
    """Draw the loaded models and their memory; the operator can unload each."""
    st.subheader("Loaded now", anchor=False)
    held, n_bytes, max_bytes = cache.about_models(queries.loaded_models)
    st.progress(
        min(1.0, n_bytes / max_bytes),
        text=f"{n_bytes / 1e9:.2f} of at most {max_bytes / 1e9:.1f} GB of weights; "
        "at the limit, the least recently used model is unloaded",
    )
    if not held:
        st.caption("No model is loaded. Each model is loaded by its first query.")
    for model in held:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                f"**{plain(url_state.title_of(model.name))}** · {model.precision}"
                f"{'' if model.device == 'cpu' else f' on {model.device}'} · "
                f"{model.n_bytes / 1e6:.0f} MB",
                width="content",
            )
            if visitors.may("manage") and st.button(
                "Unload", key=f"unload {model}", icon=":material/eject:"
            ):
                cache.about_models(queries.drop_model, model)
                st.rerun()


def main() -> None:
    """Draw the list, the chosen model, the form to add one, the memory, and what can't run."""
    st.header("Models", anchor=False)
    st.markdown(
        "**Masked** models read the text on both sides of the blank, **causal** models only the "
        "text before it, **bidirectional** models (ELMo) both sides separately."
    )
    with errors_shown():
        offered = visitors.offered_models()
        entries = [entry for entry in all_models() if offered is None or entry.name in offered]
        statuses = {entry.name: status_of(entry) for entry in entries}
        entries.sort(key=lambda entry: (INSTALLED, OFFERED, IMPOSSIBLE).index(statuses[entry.name]))
        name, status = st.session_state.get(SHOWN, ("", ""))
        if status == OFFERED and statuses.get(name) == INSTALLED:
            st.session_state["chosen later"] = name
        if "chosen later" in st.session_state:
            chosen = st.session_state.pop("chosen later")
            links.set_param("model", [chosen])
            st.toast(f"Ready: {plain(url_state.title_of(chosen))}", icon=":material/check:")
        is_operator = visitors.may("manage")
        impossible = [entry for entry in entries if statuses[entry.name] == IMPOSSIBLE]
        asked = st.query_params.get("model")
        if all(asked not in (entry.name, entry.title) for entry in impossible):
            entries = [entry for entry in entries if entry not in impossible]
        if is_operator:
            draw_add()
        left, right = st.columns([3, 2], gap="large")
        with left:
            chosen = draw_list(entries)
        with right, st.container(key="detail"):
            draw_model(next(one for one in entries if one.name == chosen), statuses[chosen])
            st.session_state[SHOWN] = chosen, statuses[chosen]
        with st.expander("Memory and device", icon=":material/memory:"):
            draw_loaded()
            if is_operator:
                draw_device()
        if impossible:
            with st.expander(
                f"{counted(len(impossible), 'model')} can't run here: which, and why",
                icon=":material/block:",
            ):
                st.markdown(name_value_lines({one.title: one.source.why for one in impossible}))


if is_routed():
    main()
