"""Checksums remembered at the first fetch, so that a later change of the source is noticed."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lama_core.errors import UserError
from lama_core.files import read_file, write_text_atomically


@dataclass(frozen=True, slots=True)
class Pins:
    """A JSON file of pins by name: a checksum each, or an object with the given `fields`."""

    path: Path
    fields: frozenset[str] = frozenset()

    def read(self) -> dict[str, Any]:
        """Return all pins. Raises UserError if the file is damaged: nothing is accepted then."""
        if not os.path.lexists(self.path):
            return {}
        try:
            pins = json.loads(read_file(self.path))
            whole = all(
                self.fields <= {*pin} if isinstance(pin, dict) else isinstance(pin, str)
                for pin in pins.values()
            )
        except (ValueError, AttributeError, RecursionError):
            whole = False
        if not whole:
            raise UserError(
                f"{self.path} is damaged: without it no fetch can be compared with the first one; "
                "fix it, or remove it to accept what comes now."
            )
        return pins

    def find(self, name: str) -> Any:
        """Return the pin of a name, or None."""
        return self.read().get(name)

    def keep(self, name: str, pin: str | dict[str, str]) -> None:
        """Remember a pin, in place of an earlier one."""
        self._write(self.read() | {name: pin})

    def drop(self, name: str) -> None:
        """Forget a pin."""
        self._write({other: pin for other, pin in self.read().items() if other != name})

    def _write(self, pins: dict[str, Any]) -> None:
        write_text_atomically(self.path, json.dumps(pins, indent=1))
