"""What each visitor may do: decided here alone; the README has the table.

The app knows no accounts. Whoever sits at the machine that it runs on may do everything. Whoever
comes from elsewhere is taken for anybody: they ask, browse, compare and export. Between the two
stand those whom the operator knows: who has logged in (Streamlit's `st.login`), or everybody who
comes, where the operator says with LAMA_MEMBERS=1 that a proxy asks for a login.

In public (`--public` or LAMA_PUBLIC=1) everybody is anybody, and the models are those that were
there at the start, or those that LAMA_PUBLIC_MODELS names.
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
from streamlit import config, runtime
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest
from streamlit.proto.ForwardMsg_pb2 import BackendOperationResponse, ForwardMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.backend_operation_handler import (
    DismissSkillsNudgeHandler,
    InstallSkillsHandler,
)

from lama_core.errors import UserError, positive
from lama_core.models.server.addresses import is_server
from lama_core.models.sources.catalog import all_models
from lama_core.models.sources.locations import is_here

# paths: of this machine, typed. fetch: data and models from elsewhere, other models than those that
# are here. upload: a file from the browser. run: probing runs and studies. manage: the lists of
# models, what is in memory; renaming, deleting, tagging; others' jobs.
Right = Literal["paths", "fetch", "upload", "run", "manage"]
ALL: frozenset[Right] = frozenset(("paths", "fetch", "upload", "run", "manage"))
OF_MEMBERS: frozenset[Right] = frozenset(("fetch", "upload", "run"))
NOTHING: frozenset[Right] = frozenset()

WHO: dict[Right, str] = {
    "paths": "Typing paths is for whoever runs the app, at the machine it runs on.",
    "fetch": "Fetching is for those whom the operator of this app knows.",
    "upload": "Importing is for those whom the operator of this app knows.",
    "run": "Starting runs is for those whom the operator of this app knows.",
    "manage": "This is for whoever runs the app, at the machine it runs on.",
}
OWNERS_ONLY = "Renaming and deleting is for whoever runs the app, at the machine it runs on."

# A proxy between the visitor and the app says so by one of these.
FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
# What a browser was asked to open: at this machine it is this machine.
NAMED = ("host", "origin")


def is_public() -> bool:
    """Whether the app was started for anybody."""
    return "--public" in sys.argv[1:] or _is_on("LAMA_PUBLIC")


def close_doors() -> None:
    """Take from the browser what Streamlit lets anybody ask for: idle to call twice.

    That is to clear what all sessions share, to be told of the repository's branch and files or of
    the folder that the app lies in, and, in public, to leave files in the server's memory, or
    Streamlit's notes for coding agents beside the app. The doors close when the first page is
    drawn: whoever opened it has been told the folder, and goes on being told.
    """
    served = runtime.get_instance() if runtime.exists() else None
    sessions = getattr(served, "_session_mgr", None)
    if sessions and AppSession._create_new_session_message is _greet:
        _told.update(one.session for one in sessions.list_sessions())
    for name in ("_handle_clear_cache_request", "_handle_git_information_request"):
        setattr(AppSession, name, _do_nothing)
    setattr(AppSession, _greet.__name__, _greet_without_folder)
    if is_public():
        config.set_option("server.maxUploadSize", 0)
        for handler in (InstallSkillsHandler, DismissSkillsNudgeHandler):
            setattr(handler, handler.handle.__name__, _refuse)


def _do_nothing(session: AppSession) -> None:
    """Answer a message of the browser with nothing."""


async def _refuse(
    handler: object, request: BackendOperationRequest, session_id: str
) -> BackendOperationResponse:
    """Answer what a browser asks the server to do with a no."""
    return BackendOperationResponse(request_id=request.request_id, error_msg="Not in public.")


_greet = AppSession._create_new_session_message
# To a browser another path is another app, and it forgets what was chosen in the one before.
_told: WeakSet[AppSession] = WeakSet()


def _greet_without_folder(session: AppSession, *args: Any, **options: Any) -> ForwardMsg:
    """What a browser is told when a page begins, with the script's name instead of its path."""
    message = _greet(session, *args, **options)
    if session not in _told:
        path = PurePath(message.new_session.main_script_path)
        message.new_session.main_script_path = path.name
    return message


def rights() -> frozenset[Right]:
    """What the visitor of this page may do besides asking, browsing, comparing and exporting."""
    if is_public():
        return frozenset(("run",)) if n_public_jobs() else NOTHING
    if is_owner():
        return ALL
    return OF_MEMBERS if _is_on("LAMA_MEMBERS") or _is_logged_in() else NOTHING


def may(right: Right) -> bool:
    """Whether the visitor may do this."""
    return right in rights()


def check(right: Right) -> None:
    """Raise UserError, saying who may, if the visitor may not."""
    if not may(right):
        raise UserError(WHO[right])


def is_owner() -> bool:
    """Whether the visitor comes from the machine that the app runs on; in public nobody does."""
    here = comes_from_here(st.context.ip_address, dict(st.context.headers))
    return here and not is_public()


def n_public_jobs() -> int:
    """How many runs of visitors may be at work or waiting in public; 0: none is started."""
    return positive("LAMA_PUBLIC_JOBS", 0)


def offered_models() -> frozenset[str] | None:
    """The names of the models that visitors ask; None: any that they may fetch or name."""
    if may("fetch"):
        return None
    return _offered_at_start() if is_public() else frozenset(_models_here())


def models_here() -> list[str]:
    """The models that are on this machine, and that the visitor may ask."""
    here, offered = _models_here(), _offered_at_start() if is_public() else None
    return [name for name in here if offered is None or name in offered]


def _models_here() -> list[str]:
    return [entry.name for entry in all_models() if is_here(entry)]


@cache
def _offered_at_start() -> frozenset[str]:
    here = set(_models_here())
    own = {name for name in here if not is_server(name)}  # a server is named, or left out
    named = {name.strip() for name in os.environ.get("LAMA_PUBLIC_MODELS", "").split(",")} - {""}
    unknown = sorted(named - here)
    if unknown:
        raise UserError(f"LAMA_PUBLIC_MODELS names {unknown[0]!r}, which is not on this machine.")
    return frozenset(named or own)


def comes_from_here(address: str | None, headers: Mapping[str, str]) -> bool:
    """Whether a connection is from this machine itself.

    address: of who connects; None is this machine, as Streamlit has it. The headers are what the
    visitor says: they can only deny, for a proxy on this machine connects from here, too.
    """
    said = {name.lower(): value for name, value in headers.items()}
    if not (address is None or _is_loopback(address)) or any(name in said for name in FORWARDED):
        return False
    return all(_is_here(said[name]) for name in NAMED if name in said)


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in ("", "0", "no", "false")


def _is_logged_in() -> bool:
    """Whether Streamlit's own login is set up and was passed."""
    return bool(getattr(st.user, "is_logged_in", False))


def _is_here(named: str) -> bool:
    """Whether a `host:port`, or an address that begins with `https://`, names this machine."""
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
