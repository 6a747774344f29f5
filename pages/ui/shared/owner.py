"""Whether a visitor is whoever runs the app: only they rename and delete.

The app knows no accounts: its owner is who sits at the machine that it runs on.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

import streamlit as st

# A proxy between the visitor and the app says so by one of these.
FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
# What a browser was asked to open: at this machine it is this machine.
NAMED = ("host", "origin")
OWNERS_ONLY = "Renaming and deleting is for whoever runs the app, at the machine it runs on."


def is_owner() -> bool:
    """Whether the visitor of this page comes from the machine that the app runs on."""
    return comes_from_here(st.context.ip_address, dict(st.context.headers))


def comes_from_here(address: str | None, headers: Mapping[str, str]) -> bool:
    """Whether a connection is from this machine itself.

    address: of who connects; None is this machine, as Streamlit has it. The headers are what the
    visitor says: they can only deny, for a proxy on this machine connects from here, too.
    """
    said = {name.lower(): value for name, value in headers.items()}
    if not (address is None or _is_loopback(address)) or any(name in said for name in FORWARDED):
        return False
    return all(_is_here(said[name]) for name in NAMED if name in said)


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
