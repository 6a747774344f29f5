"""The documentation lists the licence of every package that the project installs."""

from tools.documentation import licences


def test_the_page_lists_the_installed_packages() -> None:
    assert licences.PAGE.read_text(encoding="utf-8") == licences.page()
