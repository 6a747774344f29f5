"""Redirect for links to an earlier version: app.py opens the screen that replaced this page."""

from pages.ui.router import is_routed

is_routed()
