"""The button of Streamlit's login is shown only where a provider is set up."""

from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.shared import login, visitors


def draw() -> AppTest:
    def page() -> None:
        from pages.ui.shared.login import draw_login

        draw_login()

    return AppTest.from_function(page).run()


def set_up(monkeypatch: pytest.MonkeyPatch, section: object) -> None:
    secrets = SimpleNamespace(load_if_toml_exists=lambda: True, get=lambda name: section)
    monkeypatch.setattr(login, "secrets_singleton", secrets)


def test_with_a_provider_visitors_log_in_and_out_and_in_public_there_is_no_login(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not login.is_offered() and not draw().button
    set_up(monkeypatch, None)
    assert not login.is_offered()
    set_up(monkeypatch, {"client_id": "lama"})
    (button,) = draw().button
    assert button.label == "Log in"
    monkeypatch.setattr(visitors, "is_logged_in", lambda: True)
    (button,) = draw().button
    assert button.label == "Log out"
    monkeypatch.setenv("LAMA_PUBLIC", "1")
    assert not login.is_offered()
