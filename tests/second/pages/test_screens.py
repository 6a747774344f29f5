"""Addresses of earlier versions, and the screens that show the same now."""

import pytest
from old_addresses import MOVED, Params

from pages.ui.shared import screens


@pytest.mark.parametrize(("name", "params", "page", "now"), MOVED)
def test_an_old_address_has_a_new_one_which_stays_and_keeps_other_parameters(
    name: str, params: Params, page: str, now: Params
) -> None:
    assert screens.resolve(name, params) == (page, now)
    there, found = screens.resolve(name, {one: [value] for one, value in params.items()})
    assert (there, {one: "".join(values) for one, values in found.items()}) == (page, now)
    more = {"models": ["minilm-mlm", "gpt2"], "k": "3"}
    assert screens.resolve(name, params | more) == (page, now | more)
    new = "" if page == screens.ASK else page.removeprefix("pages/").removesuffix(".py")
    assert screens.resolve(new, now) == (page, now)


def test_an_address_of_no_screen_opens_its_page() -> None:
    assert screens.resolve("facts", {"view": []})[0] == screens.RESULTS
    assert screens.resolve("prompts", {"tab": ["gone", "Weights"]})[0] == screens.RESULTS
    assert screens.resolve("gone", {"tab": "Several"})[0] == screens.ASK
