"""Addresses of the page Prompts of 0.1, and the views of Results that show the same."""

import pytest

from pages.ui.prompts.view import VIEWS
from pages.ui.shared import screens


@pytest.mark.parametrize(
    ("old", "view", "part"),
    [
        (None, "Prompts", None),
        ("Prompts", "Prompts", None),
        ("Try a prompt", None, None),  # the first view
        ("Ensembles", "Ensembles", None),
        ("Weights", "Ensembles", None),
        ("One fact", "One fact", None),
        ("Analyses", screens.FOLDED, None),
        ("In the paper", screens.FOLDED, "In the paper"),
    ],
)
def test_an_old_view_of_prompts_has_a_new_one(
    old: str | None, view: str | None, part: str | None
) -> None:
    given = {"tab": old} if old else {}
    page, there = screens.resolve("prompts", given | {"table": "table4"})
    assert (page, there["tab"], there["table"]) == (screens.RESULTS, "Prompts", "table4")
    assert (there.get("prompts_view"), there.get("prompts_part")) == (view, part)
    assert view is None or view in VIEWS
    assert screens.resolve("results", there) == (page, there)
