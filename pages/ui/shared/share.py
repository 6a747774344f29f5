"""The address of the screen to give away: as a text with a button that copies it, and as a QR code.

The code is drawn here (segno): an address may hold what somebody typed, and goes to no service.
"""

from functools import lru_cache
from io import BytesIO
from ipaddress import ip_address
from urllib.parse import urlsplit

import segno
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.net_util import get_internal_ip

from pages.ui.shared import links

QUIET = 4  # light modules around the code (ISO/IEC 18004)
WIDTH = 320
EVERYWHERE = ("0.0.0.0", "::")  # addresses of a server that answers every machine
MAX_BYTES = 2953  # of a code; longer addresses aren't tried, and so aren't kept


def make_place() -> DeltaGenerator:
    """Where the buttons stand that all pages have; call before the page is drawn."""
    place = st.container(key="share", horizontal=True, horizontal_alignment="right", gap="small")
    place.empty()  # takes its room from the start: what is below stays where it is
    return place


def draw_share(place: DeltaGenerator, query: str) -> None:
    """The button; call when the page has been drawn and its address is whole."""
    address = whole_address(query)
    with place, st.popover("Share", icon=":material/share:", type="tertiary"):
        st.caption("This address opens what is on the screen now.")
        st.code(address, language=None, wrap_lines=True)
        if is_local(address):
            address = address_for_others(address)
            if not address:
                st.caption(
                    "Only this machine can open it, so there is no QR code. The README says under "
                    "“Who may do what” how to open the app to others safely."
                )
                return
            st.caption("Only this machine can open it. Others in the network open:")
            st.code(address, language=None, wrap_lines=True)
        code = qr_code(address) if len(address) <= MAX_BYTES else ""
        if code:
            st.image(code, width=WIDTH, alt="QR code of this address")
        else:
            st.caption("It is too long for a QR code.")


def whole_address(query: str) -> str:
    """The address that the browser shows."""
    place = urlsplit(st.context.url or "")
    path = links.path_of(st.session_state[links.PAGE])
    return place._replace(path=path, query=query, fragment="").geturl()


def is_local(address: str) -> bool:
    """Whether an address names the machine itself, whichever that is."""
    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def address_for_others(address: str) -> str:
    """The same address with this machine's own in place of `localhost`.

    Returns an empty string if the server answers this machine alone, or isn't in a network.
    """
    listens = st.get_option("server.address") or EVERYWHERE[0]
    host = (get_internal_ip() or "") if listens in EVERYWHERE else listens
    host = f"[{host}]" if ":" in host else host
    place = urlsplit(address)
    if not host or is_local(f"//{host}"):
        return ""
    return place._replace(netloc=f"{host}:{place.port}" if place.port else host).geturl()


@lru_cache(maxsize=256)
def qr_code(text: str) -> str:
    """A QR code as SVG, dark on white; empty for a text of more than `MAX_BYTES`."""
    try:
        made = segno.make(text, error="l", micro=False, boost_error=False)
    except segno.DataOverflowError:
        return ""
    drawn = BytesIO()
    made.save(
        drawn, kind="svg", xmldecl=False, border=QUIET, dark="#000", light="#fff", omitsize=True
    )
    return drawn.getvalue().decode()
