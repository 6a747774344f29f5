"""The documentation lists the licence of every package that the project installs."""

from tools.documentation import licences


def test_the_page_lists_the_installed_packages() -> None:
    assert licences.PAGE.read_text(encoding="utf-8") == licences.page()


def test_every_direct_dependency_is_listed() -> None:
    listed = licences.page()
    for name in ("streamlit", "torch", "transformers", "wordfreq", "locate"):
        assert f"| {name} | " in listed
