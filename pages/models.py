"""Models: what there is, what is here already, and what is loaded."""

from pathlib import Path

import pandas as pd
import streamlit as st

from lama_core.errors import UserError
from lama_core.files import bytes_text
from lama_core.models import devices
from lama_core.models.cache import CACHE, add_checked
from lama_core.models.sources.catalog import Entry, all_models, forget_model
from lama_core.models.sources.locations import check_folder, is_here
from pages.ui.shared import fetching, screens, url_state, visitors
from pages.ui.shared.messages import described, faults_shown, plain
from pages.ui.shared.router import draw_page

WHERE = {
    "assets": "not complete",
    "folder": "gone",
    "hub": "on the hub",
    "wheel": "as a wheel",
    "release": "at its address",
}
INSTALLED, OFFERED, IMPOSSIBLE = "Installed", "Can be downloaded", "Can't run here"
PAPERS = {"petroni2019": "one of the models of Petroni et al. 2019"}


def status_of(entry: Entry) -> str:
    """Where a model is, in two or three words."""
    if is_here(entry):
        return "here"
    return WHERE.get(entry.source.how, "can't run")


def group_of(status: str) -> str:
    """The group of the list that a model of this status is in."""
    return {"here": INSTALLED, "can't run": IMPOSSIBLE}.get(status, OFFERED)


def draw_groups(entries: tuple[Entry, ...], statuses: dict[str, str]) -> None:
    """One group of the models at a time, at first that of the model that is chosen."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(group_of(statuses[entry.name]), []).append(entry)
    asked = st.query_params.get("model") or st.session_state.get("model")
    first = group_of(statuses[asked]) if asked in statuses else next(iter(groups))
    url_state.drop_stale("group", groups)
    group = url_state.pick(
        "Models",
        tuple(groups),
        key="group",
        first=first,
        format_func=lambda name: f"{name} ({len(groups[name])})",
        label_visibility="collapsed",
    )
    if group == IMPOSSIBLE:
        _draw_impossible(groups[group])
    else:
        _draw_list(groups[group])


def _draw_impossible(entries: list[Entry]) -> None:
    table = pd.DataFrame(
        {
            "model": [entry.title for entry in entries],
            "reason": [entry.source.why for entry in entries],
        }
    )
    url_state.draw_rows(table, [entry.name for entry in entries], key="model", height=38 * 13)


def _draw_list(entries: list[Entry]) -> None:
    """Models as a table; a click on a row chooses the model below."""
    table = pd.DataFrame(
        {
            "model": [entry.title for entry in entries],
            "kind": [entry.kind or "read when loaded" for entry in entries],
            "parameters (M)": [
                entry.n_parameters / 1e6 if entry.n_parameters else None for entry in entries
            ],
            "to fetch (GB)": [(entry.source.n_bytes or 0) / 1e9 or None for entry in entries],
            "in fp32 (GB)": [(entry.bytes_held("fp32") or 0) / 1e9 or None for entry in entries],
            "case": [
                {True: "cased", False: "uncased", None: None}[entry.cased] for entry in entries
            ],
            "languages": [entry.languages or None for entry in entries],
            "trained on": [entry.corpus for entry in entries],
            "corpus size": [entry.corpus_size for entry in entries],
            "licence": [entry.licence for entry in entries],
        }
    )
    url_state.draw_rows(
        table,
        [entry.name for entry in entries],
        key="model",
        column_config={
            "parameters (M)": st.column_config.NumberColumn(format="%.0f"),
            "to fetch (GB)": st.column_config.NumberColumn(
                format="%.2f", help="Of the weights, where their size is known."
            ),
            "in fp32 (GB)": st.column_config.NumberColumn(
                format="%.2f", help="In memory, by the number of parameters; in bf16 half of it."
            ),
        },
        placeholder="–",
        height=38 * 13,
    )


def draw_one(entry: Entry, status: str) -> None:
    """One model: what is known of it, and what can be done with it."""
    st.subheader(plain(entry.title), anchor=False)
    held = {precision: entry.bytes_held(precision) for precision in ("fp32", "bf16")}
    facts = {
        "name": entry.name,
        "kind": entry.kind,
        "parameters": f"{entry.n_parameters:,}" if entry.n_parameters else "",
        "to fetch": bytes_text(entry.source.n_bytes) if entry.source.n_bytes else "",
        "in memory": ", ".join(
            f"{bytes_text(size)} in {one}" for one, size in held.items() if size
        ),
        "languages": entry.languages,
        "trained on": ", ".join(part for part in (entry.corpus, entry.corpus_size) if part),
        "licence": entry.licence,
        "source": f"{entry.source.how}: {entry.source.place}",
        "paper": PAPERS.get(entry.paper, entry.paper),
        "note": entry.note,
    }
    st.markdown(described(facts))
    if status == "can't run":
        why = entry.source.why if entry.added else f"It can't be run here: {entry.source.why}."
        st.info(plain(why, code=True), icon=":material/block:")
    elif status == "gone":
        _draw_fault(entry)
    elif status == "here":
        link = {"models": [entry.name]}
        st.page_link(screens.ASK, label="Ask it", icon=":material/edit_note:", query_params=link)
    else:
        fetching.draw_offer(entry)
    may_change = visitors.may("manage")
    if entry.added and may_change and st.button("Take it off the list", icon=":material/remove:"):
        forget_model(entry.name)
        st.rerun()


def _draw_fault(entry: Entry) -> None:
    """Why an added folder can't be asked."""
    try:
        check_folder(Path(entry.source.place))
    except UserError as error:
        st.warning(plain(str(error), code=True), icon=":material/folder_off:")


def draw_add() -> None:
    """A field for a folder or a hub name; only for the operator."""
    if not visitors.may("manage"):
        return
    with st.form("add", clear_on_submit=True, border=False):
        field, button = st.columns([4, 1], vertical_alignment="bottom")
        reference = field.text_input(
            "Add a model",
            placeholder="/path/to/a/model, owner/name@revision, or server:URL#name",
            help="A folder with config.json and safetensors, a GGUF file, a name on the hub, or "
            "server:http://host:8000#name for a model behind an OpenAI-compatible server, whose "
            "key is read from LAMA_SERVER_KEY. Pickled weights are refused and remote code is "
            "never run.",
        )
        if button.form_submit_button("Add", icon=":material/add:") and reference:
            with faults_shown(), st.spinner("Looking at it"):
                added = add_checked(reference.strip())
                st.session_state["chosen later"] = added.name
                st.rerun()


def draw_device() -> None:
    """Where models compute, and what else there is; only for the operator, and for everybody."""
    if not visitors.may("manage"):
        return
    with st.spinner("Looking which devices are here"):
        here = devices.devices_here()
        titles = {name: devices.title_of(name) for name in here}
        free = {name: f"{devices.free_bytes(name) / 1e9:.1f} GB free" for name in here}
    st.session_state["device"] = "auto"
    with faults_shown():  # LAMA_DEVICE may name what isn't here: the choice below mends it
        wanted = devices.wanted_device()
        if wanted != "auto":
            st.session_state["device"] = devices.find_device(wanted)
    st.selectbox(
        "Models compute on",
        ("auto", *here),
        key="device",
        on_change=_use_device,
        format_func=lambda name: (
            f"the best there is: {titles[here[0]]}"
            if name == "auto"
            else f"{titles[name]} · {free[name]}"
        ),
        help="For everybody who uses this app; what is loaded elsewhere is unloaded. Runs that are "
        "at work go on where they began.",
    )


def _use_device() -> None:
    devices.use_device(st.session_state["device"])
    for model in CACHE.held():
        CACHE.drop(model.name, model.precision, model.device)


def draw_loaded() -> None:
    """What the memory holds, with a button to free it."""
    st.subheader("Loaded now", anchor=False)
    held = CACHE.held()
    st.progress(
        min(1.0, CACHE.n_bytes / CACHE.max_bytes),
        text=f"{CACHE.n_bytes / 1e9:.2f} of at most {CACHE.max_bytes / 1e9:.1f} GB of weights; "
        "beyond that, the model unused for longest is dropped",
    )
    if not held:
        st.caption("No model is loaded: each is when it is first asked.")
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
                CACHE.drop(model.name, model.precision, model.device)
                st.rerun()


def main() -> None:
    """The list by groups, the chosen model, a field to add one, and the memory."""
    st.header("Models", anchor=False)
    st.caption(
        "Installed models answer at once. The others can be downloaded: from the hub, from their "
        "authors, or as a package."
        if visitors.may("fetch")
        else "The models that this app can query."
    )
    with faults_shown():
        offered = visitors.offered_models()
        entries = tuple(one for one in all_models() if offered is None or one.name in offered)
        statuses = {entry.name: status_of(entry) for entry in entries}
        entries = tuple(sorted(entries, key=lambda entry: statuses[entry.name] != "here"))
        if "chosen later" in st.session_state:
            st.session_state["model"] = st.session_state.pop("chosen later")
        draw_groups(entries, statuses)
        names = [entry.name for entry in entries]
        chosen = url_state.choose("Model", names, key="model")
        entry = next(entry for entry in entries if entry.name == chosen)
        draw_one(entry, statuses[entry.name])
        draw_add()
        with st.expander("Memory and device", icon=":material/memory:"):
            draw_loaded()
            draw_device()


draw_page(main)
