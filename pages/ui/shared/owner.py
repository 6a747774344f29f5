"""Who is at the browser: the person whose machine this is, or a visitor."""

from ipaddress import ip_address

import streamlit as st

# What a proxy adds: with one of them the browser is somewhere else, whatever the address says.
PROXIED = ("X-Forwarded-For", "Forwarded", "X-Real-IP")


def is_owner() -> bool:
    """Whether the browser is on the machine that runs the app, and nothing stands between them.

    Headers only ever deny: anybody can send one.
    """
    headers = st.context.headers
    if any(name in headers for name in PROXIED):
        return False
    address = st.context.ip_address
    if address is None:
        return True
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
