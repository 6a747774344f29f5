"""A page without a browser doesn't know where its visitor comes from: here, unless a test says."""

import pytest


@pytest.fixture(autouse=True)
def at_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The visitor is whoever runs the app."""
    monkeypatch.setattr("pages.ui.shared.visitors.comes_from_here", lambda *_: True)
