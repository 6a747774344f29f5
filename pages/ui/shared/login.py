"""The button of Streamlit's login, if the operator has set up a provider (docs/hosting.md)."""

import streamlit as st
from streamlit.runtime.secrets import secrets_singleton

from pages.ui.shared import visitors
from pages.ui.shared.text import plain


def is_offered() -> bool:
    """Whether visitors can log in: never in public mode, whose visitors are all anonymous."""
    if visitors.is_public() or not secrets_singleton.load_if_toml_exists():
        return False
    return bool(secrets_singleton.get("auth"))


def draw_login() -> None:
    """Draw the button that logs the visitor in, or their name and the button that logs out."""
    if not is_offered():
        return
    with st.container(key="login", horizontal=True, vertical_alignment="center"):
        if visitors.is_logged_in():
            name = st.user.get("name") or st.user.get("email") or "a user without a name"
            st.caption(plain(f"Logged in as {name}"))
            if st.button("Log out", icon=":material/logout:", type="tertiary"):
                st.logout()
        elif st.button("Log in", icon=":material/login:", type="tertiary"):
            st.login()
