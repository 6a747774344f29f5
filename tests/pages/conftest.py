"""A page without a browser doesn't know where its visitor comes from: here, unless a test says."""

import pytest
from opening import ROOT


@pytest.fixture(autouse=True)
def at_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The visitor is whoever runs the app, in the project's root."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("pages.ui.shared.visitors.is_local_connection", lambda *_: True)
