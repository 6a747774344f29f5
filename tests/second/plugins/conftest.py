"""What tests of plug-ins' pages share."""

from visiting import at_the_machine  # noqa: F401
