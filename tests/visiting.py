"""A page without a browser doesn't know where its visitor comes from: here, unless a test says."""

from collections.abc import Iterator
from functools import cache
from typing import Any, NoReturn

import pytest
import streamlit as st
from opening import ROOT
from streamlit.components.v2 import manifest_scanner

from pages.ui.shared import links


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


@pytest.fixture
def gone(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Where clicks lead, instead of going there: `page` and the parameters of the URL."""
    found: list[dict[str, Any]] = []

    def go(there: str, params: dict[str, Any], **_: Any) -> NoReturn:
        found.append({"page": there, **params})
        st.stop()

    monkeypatch.setattr(links, "go", go)
    return found
