"""The library without its plug-ins, as if nobody had installed them."""

from collections.abc import Callable, Iterator

import pytest

from lama_core import plugins


@pytest.fixture
def take_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """A function that takes all plug-ins away until the test ends."""

    def forget() -> None:
        plugins.rows.cache_clear()

    def take() -> None:
        monkeypatch.setattr(plugins, "find_plugins", lambda: ((), ()))
        forget()

    yield take
    forget()
