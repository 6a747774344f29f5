"""A page without a browser doesn't know where its visitor comes from: here, unless a test says."""

from collections.abc import Iterator
from functools import cache

import pytest
from opening import ROOT
from streamlit.components.v2 import manifest_scanner


@pytest.fixture(scope="session", autouse=True)
def components_are_sought_once() -> Iterator[None]:
    """AppTest looks through all installed packages for each app: 0.2 s of CPU time."""
    with pytest.MonkeyPatch.context() as patch:
        seek = cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", seek)
        yield


@pytest.fixture(autouse=True)
def at_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The visitor is whoever runs the app, in the project's root."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("pages.ui.shared.visitors.is_local_connection", lambda *_: True)
