"""What this plug-in's tests share."""

from taking_away import take_away  # noqa: F401
from visiting import (  # noqa: F401
    at_the_machine,
    components_are_sought_once,
    gone,
)
