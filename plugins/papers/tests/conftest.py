"""Fixtures of the tests of reproductions."""

import pytest

from lama_core.errors import UserError


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No dataset can be downloaded."""

    def refuse(name: str, **_: object) -> None:
        raise UserError(f"{name} can't be reached.")

    monkeypatch.setattr("lama_papers.framework.get_dataset", refuse)
