"""Share the screen's URL as a text to copy and as a QR code.

The app makes the QR code itself (segno) and sends the URL to no service, because it can contain
what the visitor typed.
"""

from functools import lru_cache
from io import BytesIO
from urllib.parse import urlsplit

import segno
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.net_util import get_internal_ip

from pages.ui.shared import links, screens
from pages.ui.shared.visitors import is_this_machine

QUIET = 4  # light modules around the code (ISO/IEC 18004)
WIDTH = 320
EVERYWHERE = ("0.0.0.0", "::")  # addresses of a server that listens on all interfaces
MAX_BYTES = 2953  # a QR code's capacity
MASK = 3  # one of eight patterns, which readers find out; comparing all takes four times as long


def make_place() -> DeltaGenerator:
    """Make the container of the buttons that all pages have; call before drawing the page."""
    place = st.container(key="share", horizontal=True, horizontal_alignment="right", gap="small")
    place.empty()  # reserves the space, so that the page below doesn't move
    return place


def draw_share(place: DeltaGenerator, query: str) -> None:
    """Draw the Share button; call after drawing the page. query: the complete query string."""
    if st.session_state[links.PAGE] == screens.POLL:  # its lecturer's URL is secret
        return
    with place, st.popover("Share", icon=":material/share:", type="tertiary"):
        st.caption("This URL opens the current screen.")
        draw_address(whole_address(query))


def draw_address(address: str) -> None:
    """Draw a URL as text and as QR code; of this machine, also the one for others."""
    st.code(address, language=None, wrap_lines=True)
    if is_this_machine(address):
        address = address_for_others(address)
        if not address:
            hosting = f"{links.path_of(screens.HELP)}?doc=hosting"
            st.caption(
                "Works on this computer only, so it has no QR code.",
                help=f"`lama-explorer app --public` opens the app to others; see "
                f"[Hosting]({hosting}).",
            )
            return
        st.caption("Works on this computer only. Others in the network open:")
        st.code(address, language=None, wrap_lines=True)
    code = qr_code(address) if len(address) <= MAX_BYTES else ""
    if code:
        st.image(code, width=WIDTH, alt="QR code of this URL")
    else:
        st.caption("The URL is too long for a QR code.")


def whole_address(query: str) -> str:
    """The URL that the browser shows."""
    place = urlsplit(st.context.url or "")
    path = links.path_of(st.session_state[links.PAGE])
    return place._replace(path=path, query=query, fragment="").geturl()


def address_for_others(address: str) -> str:
    """The URL with this machine's network address in place of `localhost`.

    Returns:
        The URL; empty if the server only answers this machine, or isn't in a network.
    """
    listens = st.get_option("server.address") or EVERYWHERE[0]
    host = (get_internal_ip() or "") if listens in EVERYWHERE else listens
    host = f"[{host}]" if ":" in host else host
    place = urlsplit(address)
    if not host or is_this_machine(f"//{host}"):
        return ""
    return place._replace(netloc=f"{host}:{place.port}" if place.port else host).geturl()


@lru_cache(maxsize=256)
def qr_code(text: str) -> str:
    """A QR code as SVG, dark on white; empty for a text of more than `MAX_BYTES`."""
    try:
        code = segno.make(text, error="l", micro=False, boost_error=False, mask=MASK)
    except segno.DataOverflowError:
        return ""
    svg = BytesIO()
    code.save(
        svg, kind="svg", xmldecl=False, border=QUIET, dark="#000", light="#fff", omitsize=True
    )
    return svg.getvalue().decode()
