"""What this plug-in's tests share."""

from taking_away import take_away  # noqa: F401
