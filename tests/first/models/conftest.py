"""What tests of models share."""

from checked_models import own_checks  # noqa: F401
