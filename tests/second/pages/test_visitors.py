"""Who may rename and delete: whoever sits at the machine that the app runs on."""

import pytest

from pages.ui.shared import visitors

comes_from_here = visitors.is_local_connection  # before a fixture stands in for it

LOCAL = {"Host": "localhost:8501", "Origin": "http://localhost:8501"}


@pytest.mark.parametrize(
    ("address", "headers", "is_owner"),
    [
        (None, LOCAL, True),
        ("127.0.0.1", {"host": "127.0.0.1:8501"}, True),
        ("::1", {"Host": "[::1]:8501", "Origin": "http://[::1]:8501"}, True),
        (None, {}, True),
        ("203.0.113.7", LOCAL, False),
        ("192.168.1.5", LOCAL, False),
        ("", LOCAL, False),
        (None, {**LOCAL, "X-Forwarded-For": "127.0.0.1"}, False),
        (None, {**LOCAL, "Forwarded": "for=127.0.0.1"}, False),
        (None, {**LOCAL, "x-real-ip": ""}, False),
        (None, {**LOCAL, "Host": "lama.example.org"}, False),
        (None, {**LOCAL, "Host": "localhost.example.org"}, False),
        (None, {**LOCAL, "Host": "user@example.org:80"}, False),
        (None, {**LOCAL, "Host": ""}, False),
        # A proxy that names the app by its own address, as many do without being told to.
        (None, {**LOCAL, "Origin": "https://lama.example.org"}, False),
        (None, {**LOCAL, "Origin": "null"}, False),
    ],
)
def test_a_visitor_at_the_machine_is_its_owner_and_no_header_makes_another_one(
    address: str | None, headers: dict[str, str], is_owner: bool
) -> None:
    assert comes_from_here(address, headers) is is_owner
