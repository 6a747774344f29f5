"""A running app and a real browser."""

from opened import all_gates, app_home, app_url, browser, gates, page, start_app  # noqa: F401
