"""A page opened as by its address, without a browser."""

from pathlib import Path

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 300  # a first answer loads the model; a busy machine is slow, not wrong


def open_page(name: str, /, **params: str | list[str]) -> AppTest:
    """The page of that name with these parameters in its address; no exception is on it."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    app.switch_page(f"pages/{name}.py")
    for key, value in params.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception
    return app
