"""The app's entry point and router: `streamlit run app.py`.

Draws the menu and a page skeleton first, because the imports in `main` take seconds on a cold
start.
"""

import sys
from collections.abc import Callable
from pathlib import PurePosixPath

import streamlit as st

from lama_core import plugins
from lama_core.paths import ASSETS
from pages.ui.shared import screens, style

PAGES = {
    screens.ASK: ("Ask", ":material/edit_note:"),
    screens.LESSONS: ("Lessons", ":material/school:"),
    screens.RESULTS: ("Results", ":material/bar_chart:"),
    screens.DATA: ("Data and runs", ":material/database:"),
    screens.MODELS: ("Models", ":material/memory:"),
    screens.HELP: ("Help", ":material/help:"),
}
# Paths that plug-ins' pages can't have: /first shows the first page.
TAKEN = {"first", "poll", *screens.REDIRECTS, *(PurePosixPath(file).stem for file in PAGES)}


def _page_of_plugin(path: str) -> Callable[[], None]:
    """Return the function that draws a plug-in's page."""

    def draw() -> None:
        from pages.ui.router import is_routed
        from pages.ui.shared.messages import errors_shown

        if is_routed():
            with errors_shown():
                plugins.find("pages", path)()

    return draw


def main() -> None:
    """Draw the page that the URL names."""
    st.set_page_config(page_icon=str(ASSETS / "icon.png"), layout="wide")
    shown = {
        file: st.Page(
            file,
            title=title,
            icon=icon,
            default=file == screens.ASK,
            # Streamlit reserves this path for the first page, which it shows at "/".
            url_path="first" if file == screens.ASK else None,
        )
        for file, (title, icon) in PAGES.items()
    }
    for path in plugins.names("pages"):
        if path not in TAKEN:
            title = path.replace("-", " ").capitalize()
            shown[f"pages/{path}.py"] = st.Page(
                _page_of_plugin(path), title=title, icon=":material/extension:", url_path=path
            )
    shown[screens.HELP] = shown.pop(screens.HELP)  # the last one
    # /ask and URLs of earlier versions; `routing` redirects them.
    redirects = [
        st.Page(file, title="LAMA Explorer", url_path=path, visibility="hidden")
        for path, file in screens.REDIRECTS.items()
    ]
    poll = st.Page(screens.POLL, title="Class poll", visibility="hidden")
    page = st.navigation([*shown.values(), *redirects, poll], position="top")
    style.draw_style([listed.title for file, listed in shown.items() if file not in PAGES])
    with st.container(horizontal=True, key="menu"):  # for phones, where Streamlit hides its menu
        for listed in shown.values():
            st.page_link(listed)
    outline = st.empty()
    if "pages.ui.router" not in sys.modules:
        with outline.container():
            st.header(page.title, anchor=False)
            st.skeleton(height=160)
            st.skeleton(height=260)

    from pages.ui.shared import garbage_collection

    garbage_collection.collect_rarely()  # also while the modules below are imported
    from pages.ui.router import draw_help_link, draw_pinned, routing
    from pages.ui.shared import visitors
    from pages.ui.shared.login import draw_login

    visitors.disable_streamlit_requests()
    files = {**shown, screens.POLL: poll}
    file = next((name for name in files if files[name] is page), screens.ASK)
    with routing(file, page.url_path, page.title, outline):
        page.run()
        draw_pinned(file)
        draw_help_link(file)
        draw_login()


main()
