"""A page opened as by its address, without a browser."""

from urllib.parse import parse_qs, urlsplit

from project_files import ROOT
from streamlit.testing.v1 import AppTest

from pages.ui.shared import screens

TIMEOUT = 300  # a first answer loads the model; a busy machine is slow, not wrong
# Screens of every page, as `open_page` takes them.
SCREENS: list[tuple[str, dict[str, str]]] = [
    ("cloze", {}),
    ("cloze", screens.ONLY_THESE),
    ("cloze", screens.WHOLE_SENTENCES),
    ("cloze", screens.WORDINGS),
    ("analogy", {}),
    ("results", {"tab": "More", "chart": "Analogy probes"}),
    ("results", {}),
    ("data", screens.NEW_RUN),
    ("facts", {}),
    ("prompts", {}),
    ("data", {}),
    ("data", {"tab": "Import"}),
    ("data", screens.NEW_STUDY),
    ("data", {"tab": "Runs"}),
    ("models", {}),
    ("method", {}),
    ("lessons", {}),
    ("lessons", {"lesson": "1-cloze-queries", "step": "10"}),
]


def open_page(name: str, /, **params: str | list[str]) -> AppTest:
    """The page of that name with these parameters in its address; no exception is on it.

    name: the last part of its path, also of an address of an earlier version.
    """
    page, there = screens.resolve(name, params)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    if page != screens.ASK:
        app.switch_page(page)
    for key, value in there.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    """Everything that the page says in words."""
    headings = (*app.header, *app.subheader, *app.caption, *app.markdown)
    shown = (*headings, *app.info, *app.success, *app.warning, *app.error)
    return " ".join(str(one.value) for one in shown).replace("\\", "")


def html(app: AppTest) -> str:
    """The page's own HTML, without styles."""
    return "".join(one.proto.body for one in app.get("html") if "<style>" not in one.proto.body)


def captions(app: AppTest) -> str:
    """The page's captions, a line each."""
    return "\n".join(one.value for one in app.caption)


def shared(app: AppTest) -> dict[str, list[str]]:
    """The parameters of the address that the page gives away."""
    return parse_qs(urlsplit(app.code[0].value).query)


def press(app: AppTest, label: str) -> None:
    """Click the button with this label; no exception is on the page then."""
    next(one for one in app.button if one.label == label).click().run()
    assert not app.exception
