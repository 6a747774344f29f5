"""Share the screen's URL as a text to copy and as a QR code.

The app makes the QR code itself (segno) and sends the URL to no service, because it can contain
what the visitor typed. A hosted app stores a long URL on its server if the visitor asks for that.
"""

from functools import lru_cache
from pathlib import PurePosixPath
from urllib.parse import urlsplit

import segno
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.net_util import get_internal_ip

from pages.ui.shared import links, screens, short_links, visitors
from pages.ui.shared.messages import errors_shown
from pages.ui.shared.visitors import is_this_machine

LONG = 200  # characters of a URL, above which a hosted app offers a short link


def make_place() -> DeltaGenerator:
    """Make the container of the buttons that all pages have; call before drawing the page."""
    place = st.container(key="share", horizontal=True, horizontal_alignment="right", gap="small")
    place.empty()  # reserves the space, so that the page below doesn't move
    return place


def draw_share(place: DeltaGenerator, query: str) -> None:
    """Draw the Share button; call after drawing the page. query: the complete query string."""
    page = st.session_state[links.PAGE]
    if page == screens.POLL:  # its lecturer's URL is secret
        return
    address = whole_address(query)
    with place, st.popover("Share", icon=":material/share:", type="tertiary"):
        st.caption(
            "This URL holds what is typed and chosen on this screen. Answers are computed again."
        )
        name = "" if page == screens.ASK else PurePosixPath(page).stem
        is_page = screens.resolve(name, {})[0] == page  # not that of a plug-in
        if len(address) > LONG and is_page and not is_this_machine(address):
            button, short = st.empty(), short_links.find(name, query)
            if not short and button.button(
                "Make a short link",
                icon=":material/link:",
                help="Stores what this URL holds on the server of the app.",
            ):
                with errors_shown():
                    short = short_links.store(name, query, visitors.address())
                if not short:
                    st.caption("There is no place for another short link: use the whole URL.")
            if short:
                button.empty()
                address = whole_address(f"{links.SHORT}={short}")
        draw_address(address)


def draw_address(address: str) -> None:
    """Draw a URL as text and as QR code; of this machine, also the one for others."""
    st.code(address, language=None, wrap_lines=True)
    if is_this_machine(address):
        address = address_for_others(address)
        if not address:
            st.caption(
                "Works on this computer only. For phones, start the app with `lama-explorer app "
                f"--public`: see [Hosting]({links.path_of(screens.HELP)}?doc=hosting)."
            )
            return
        st.caption("Works on this computer only. Others in the network open:")
        st.code(address, language=None, wrap_lines=True)
    if code := qr_code(address):
        st.image(code, width=320, alt="QR code of this URL")
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
    host = st.get_option("server.address") or ""
    if host in ("", "0.0.0.0", "::"):  # it listens on all interfaces
        host = get_internal_ip() or ""
    host = f"[{host}]" if ":" in host else host
    place = urlsplit(address)
    if not host or is_this_machine(f"//{host}"):
        return ""
    return place._replace(netloc=f"{host}:{place.port}" if place.port else host).geturl()


@lru_cache(maxsize=256)
def qr_code(text: str) -> str:
    """A QR code as SVG, dark on white; empty for a text that is too long for one (2,953 bytes)."""
    try:
        # The mask is one of eight patterns, which readers find out; comparing all takes four times
        # as long.
        code = segno.make(text, error="l", micro=False, boost_error=False, mask=3)
    except segno.DataOverflowError:
        return ""
    # Four light modules are around the code (ISO/IEC 18004).
    return code.svg_inline(border=4, dark="#000", light="#fff", omitsize=True)
