"""What tests of pages share."""

from visiting import (  # noqa: F401
    at_the_machine,
    components_are_sought_once,
    gone,
)
