"""Who may rename and delete: whoever sits at the machine that the app runs on."""

import pytest

from pages.ui.shared import visitors

comes_from_here = visitors.is_local_connection  # before a fixture stands in for it

LOCAL = {"Host": "localhost:8501", "Origin": "http://localhost:8501"}


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        (None, LOCAL),
        ("127.0.0.1", {"host": "127.0.0.1:8501"}),
        ("::1", {"Host": "[::1]:8501", "Origin": "http://[::1]:8501"}),
        (None, {}),
    ],
)
def test_a_visitor_at_the_machine_itself_is_its_owner(
    address: str | None, headers: dict[str, str]
) -> None:
    assert comes_from_here(address, headers)


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("203.0.113.7", LOCAL),
        ("192.168.1.5", LOCAL),
        ("", LOCAL),
        (None, {**LOCAL, "X-Forwarded-For": "127.0.0.1"}),
        (None, {**LOCAL, "Forwarded": "for=127.0.0.1"}),
        (None, {**LOCAL, "x-real-ip": ""}),
        (None, {**LOCAL, "Host": "lama.example.org"}),
        (None, {**LOCAL, "Host": "localhost.example.org"}),
        (None, {**LOCAL, "Host": "user@example.org:80"}),
        (None, {**LOCAL, "Host": ""}),
        # A proxy that names the app by its own address, as many do without being told to.
        (None, {**LOCAL, "Origin": "https://lama.example.org"}),
        (None, {**LOCAL, "Origin": "null"}),
    ],
)
def test_no_header_makes_a_visitor_from_elsewhere_the_owner(
    address: str | None, headers: dict[str, str]
) -> None:
    assert not comes_from_here(address, headers)
