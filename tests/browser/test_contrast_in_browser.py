"""Text on the primary colour can be read, in light and dark."""

import re
from typing import Literal

import pytest
from drawn import wait_until_drawn
from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

READABLE = 4.5  # WCAG 2.2, 1.4.3
# The colours of buttons fade in; other animations have no end.
FADED_IN = """Promise.all(document.getAnimations()
    .filter(one => one instanceof CSSTransition).map(one => one.finished))"""


def luminance(colour: str) -> float:
    """Relative luminance of `rgb(r, g, b)` (WCAG 2.2, definitions)."""
    channels = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
                        for c in channels)  # fmt: skip
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(place: Locator) -> float:
    """Contrast of the text in `place` with its background."""
    text, ground = place.evaluate(
        "element => {"
        " const inner = element.querySelector('p, span') ?? element;"
        " return [getComputedStyle(inner).color, getComputedStyle(element).backgroundColor]; }"
    )
    low, high = sorted([luminance(text), luminance(ground)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_primary_button_and_a_chosen_model_are_readable(
    page: Page, app_url: str, scheme: Literal["light", "dark"]
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{app_url}/data?tab=New+run")
    start = page.get_by_role("button", name="Start")
    start.wait_for()
    wait_until_drawn(page)
    page.evaluate(FADED_IN)
    assert contrast(start) >= READABLE
    assert contrast(page.locator("[data-tag]").last) >= READABLE
