"""Short links: the same choices have one, which nothing overwrites and no damage opens."""

from pathlib import Path

import pytest
from opening import open_page, said

from pages.ui.shared import screens, short_links

QUERY = "tab=Compare&data=starter&text=%3Cb%3E+%26+%0A&gold="


@pytest.fixture(autouse=True)
def nothing_made(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No visitor has made a link."""
    short_links._made.clear()


def test_the_same_choices_have_the_same_link_and_others_another() -> None:
    assert short_links.find("results", QUERY) == ""
    name = short_links.store("results", QUERY, "a")
    assert name == short_links.store("results", QUERY, "b") == short_links.find("results", QUERY)
    assert name != short_links.store("data", QUERY, "a")
    page, params = short_links.read(name) or ("", {})
    assert page == screens.RESULTS
    assert params == {"tab": ["Compare"], "data": ["starter"], "text": ["<b> & \n"], "gold": [""]}


def test_an_unknown_name_and_a_damaged_link_open_nothing(home: Path) -> None:
    for name in ("", "../../etc/passwd", "a" * 16, "a" * 17, "A" * 16, "a\n"):
        assert short_links.read(name) is None
    name = short_links.store("results", QUERY, "a")
    for content in (b"results\ntab=Prompts", b"\xff", b""):
        (home / "data" / "links" / name).write_bytes(content)
        assert short_links.read(name) is None
    assert "This short link is unknown here" in said(open_page("cloze", link="a" * 16))


@pytest.mark.parametrize("bound", ["MAX_LINKS", "MAX_OF_ADDRESS"])
def test_links_are_bounded_in_number(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_links, bound, 2)
    stored = [short_links.store("results", f"k={k}", "a") for k in range(4)]
    assert [bool(name) for name in stored] == [True, True, False, False]
    assert short_links.store("results", "k=0", "a") == stored[0], "a stored link stays"
    assert bool(short_links.store("results", "k=9", "b")) == (bound == "MAX_OF_ADDRESS")
    assert short_links.store("results", "x" * short_links.MAX_BYTES, "b") == ""
