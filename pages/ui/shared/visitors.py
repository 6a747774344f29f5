"""The rights of each visitor, decided only in this module; docs/hosting.md has the table.

The app doesn't manage accounts. It tells three kinds of visitors apart:

- Local user (operator): connects from the machine that runs the app. Has all rights.
- Signed-in user: passed Streamlit's login (`st.login`), or any remote visitor if the operator sets
  LAMA_MEMBERS=1 because a proxy requires a login.
- Anonymous visitor: can query models, browse, compare and export.

In public mode (`--public` or LAMA_PUBLIC=1) every visitor is anonymous. The app offers the
models that are on the machine at the first request, or those that LAMA_PUBLIC_MODELS names.
"""

import os
import sys
from collections.abc import Mapping
from functools import cache
from ipaddress import ip_address
from pathlib import PurePath
from typing import Any, Literal
from urllib.parse import urlsplit
from weakref import WeakSet

import streamlit as st
from streamlit import config, net_util, runtime
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest
from streamlit.proto.ForwardMsg_pb2 import BackendOperationResponse, ForwardMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.backend_operation_handler import (
    DismissSkillsNudgeHandler,
    InstallSkillsHandler,
)
from streamlit.runtime.scriptrunner import get_script_run_ctx

from lama_core.errors import UserError, int_from_env
from lama_core.models.sources.catalog import all_models, is_served
from lama_core.models.sources.locations import is_here
from pages.ui.shared.addresses import network_address

# paths: type paths of this machine. fetch: download data and models. upload: upload a file from the
# browser. run: start probing runs and studies. manage: change the list of models, free memory,
# rename, delete and tag; cancel other visitors' jobs.
Right = Literal["paths", "fetch", "upload", "run", "manage"]
ALL_RIGHTS: frozenset[Right] = frozenset(("paths", "fetch", "upload", "run", "manage"))
SIGNED_IN_RIGHTS: frozenset[Right] = frozenset(("fetch", "upload", "run"))
NO_RIGHTS: frozenset[Right] = frozenset()

WHO_HAS_RIGHT: dict[Right, str] = {
    "paths": "Only the local user (operator) can type paths, on the machine that runs the app.",
    "fetch": "Downloads require a signed-in user.",
    "upload": "Imports require a signed-in user.",
    "run": "Starting runs requires a signed-in user.",
    "manage": "Only the local user (operator) can do this, on the machine that runs the app.",
}
LOCAL_USER_ONLY = "Only the local user (operator) can rename and delete."

# Headers that a proxy between the visitor and the app adds.
FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
# Headers that name the host in the browser's URL; for a local user this machine.
NAMED = ("host", "origin")


def is_public() -> bool:
    """Whether the app runs in public mode."""
    return "--public" in sys.argv[1:] or _is_on("LAMA_PUBLIC")


def disable_streamlit_requests() -> None:
    """Disable requests to Streamlit that any browser could send; a second call has no effect.

    Browsers can't clear the caches that all sessions share, or get the repository's branch and
    files or the app's folder; only sessions that are already open still get the folder. Streamlit
    doesn't ask an external service for the machine's address. In public mode, browsers also can't
    upload to the server's memory, or install Streamlit's notes for coding agents next to the app.
    """
    sessions = getattr(runtime.get_instance(), "_session_mgr", None) if runtime.exists() else None
    if sessions and AppSession._create_new_session_message is _new_session_message:
        _know_folder.update(one.session for one in sessions.list_sessions())
    # `lama-explorer app` has already replaced this (`pages/ui/serve.py`); `streamlit run` hasn't.
    net_util.get_external_ip = lambda: None
    for name in ("_handle_clear_cache_request", "_handle_git_information_request"):
        setattr(AppSession, name, lambda session: None)
    setattr(AppSession, _new_session_message.__name__, _message_without_folder)
    if is_public():
        config.set_option("server.maxUploadSize", 0)
        for handler in (InstallSkillsHandler, DismissSkillsNudgeHandler):
            setattr(handler, handler.handle.__name__, _refuse)


async def _refuse(
    handler: object, request: BackendOperationRequest, session_id: str
) -> BackendOperationResponse:
    """Refuse an operation that a browser requests."""
    return BackendOperationResponse(request_id=request.request_id, error_msg="Not in public.")


_new_session_message = AppSession._create_new_session_message
# Sessions that know the folder keep it: if the script path changed, the browser would assume
# another app and drop the session's choices.
_know_folder: WeakSet[AppSession] = WeakSet()


def _message_without_folder(session: AppSession, *args: Any, **options: Any) -> ForwardMsg:
    """Streamlit's message at the start of a page, with the script's name instead of its path."""
    message = _new_session_message(session, *args, **options)
    if session not in _know_folder:
        started = message.new_session
        started.main_script_path = PurePath(started.main_script_path).name
    return message


def rights() -> frozenset[Right]:
    """The visitor's rights in addition to querying, browsing, comparing and exporting."""
    if is_public():
        return frozenset(("run",)) if n_public_jobs() else NO_RIGHTS
    if is_local_user():
        return ALL_RIGHTS
    return SIGNED_IN_RIGHTS if _is_on("LAMA_MEMBERS") or is_logged_in() else NO_RIGHTS


def may(right: Right) -> bool:
    """Whether the visitor has this right."""
    return right in rights()


def check(right: Right) -> None:
    """Raise UserError, naming who has the right, if the visitor doesn't have it."""
    if not may(right):
        raise UserError(WHO_HAS_RIGHT[right])


def stop_if_left() -> None:
    """End this run of the page if its visitor has closed the page."""
    context = get_script_run_ctx()
    served = runtime.get_instance() if runtime.exists() else None
    if context and served and not served.is_active_session(context.session_id):
        st.stop()


def is_local_user() -> bool:
    """Whether the visitor is the local user; always False in public mode."""
    return not is_public() and is_local_connection(st.context.ip_address, dict(st.context.headers))


def address() -> str:
    """The visitor's network address, for limits by address; "" for the local user."""
    return "" if is_local_user() else network_address(st.context.ip_address)


def n_public_jobs() -> int:
    """The largest number of running and queued runs in public mode; 0: visitors can't start any."""
    return int_from_env("LAMA_PUBLIC_JOBS", 0)


def offered_models() -> frozenset[str] | None:
    """The names of the models that this visitor may query; None: any model."""
    if may("fetch"):
        return None
    return _offered_at_start() if is_public() else frozenset(_models_here())


def models_here() -> list[str]:
    """The models on this machine that the visitor may query."""
    here = _models_here()
    return [name for name in here if name in _offered_at_start()] if is_public() else here


def _models_here() -> list[str]:
    return [entry.name for entry in all_models() if is_here(entry)]


@cache
def _offered_at_start() -> frozenset[str]:
    here = set(_models_here())
    own = {name for name in here if not is_served(name)}  # servers only if they are named
    named = {name.strip() for name in os.environ.get("LAMA_PUBLIC_MODELS", "").split(",")} - {""}
    unknown = sorted(named - here)
    if unknown:
        raise UserError(
            f"LAMA_PUBLIC_MODELS names {unknown[0]!r}, which is not on this machine. Download the "
            "model or remove its name."
        )
    return frozenset(named or own)


def is_local_connection(address: str | None, headers: Mapping[str, str]) -> bool:
    """Whether a connection comes from this machine.

    Args:
        address: IP address of the client; None means this machine (Streamlit's convention).
        headers: The request's headers. They can only lead to False, because clients can forge
            them. A proxy on this machine connects from a loopback address and adds `FORWARDED`.
    """
    given = {name.lower(): value for name, value in headers.items()}
    if not (address is None or _is_loopback(address)) or any(name in given for name in FORWARDED):
        return False
    return all(is_this_machine(given[name]) for name in NAMED if name in given)


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in ("", "0", "no", "false")


def is_logged_in() -> bool:
    """Whether the visitor passed Streamlit's login."""
    return bool(getattr(st.user, "is_logged_in", False))


def is_this_machine(named: str) -> bool:
    """Whether a `host:port` or a URL names this machine."""
    try:
        host = urlsplit(named if "//" in named else f"//{named}").hostname or ""
    except ValueError:
        return False
    return host == "localhost" or _is_loopback(host)


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
