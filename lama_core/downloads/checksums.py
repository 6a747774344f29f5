"""Checksums stored at the first download, to detect later changes of a source."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lama_core.errors import UserError
from lama_core.files import lock_for_changes, read_file, write_text_atomically


@dataclass(frozen=True, slots=True)
class Pins:
    """A JSON file, name -> pin. A pin is a checksum, or an object that has all `fields`."""

    path: Path
    fields: frozenset[str] = frozenset()

    def read(self) -> dict[str, Any]:
        """Return all pins, name -> pin; raise UserError if the file is damaged."""
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
                f"{self.path} is damaged, so downloads can't be compared with the first ones: fix "
                "it, or delete it to accept new downloads without a comparison."
            )
        return pins

    def find(self, name: str) -> Any:
        """Return the pin of a name, or None."""
        return self.read().get(name)

    def keep(self, name: str, pin: str | dict[str, str]) -> None:
        """Store the pin of a name, replacing an earlier pin."""
        with lock_for_changes(self.path):
            self._write(self.read() | {name: pin})

    def drop(self, name: str) -> None:
        """Delete the pin of a name, if there is one."""
        with lock_for_changes(self.path):
            self._write({other: pin for other, pin in self.read().items() if other != name})

    def _write(self, pins: dict[str, Any]) -> None:
        write_text_atomically(self.path, json.dumps(pins, indent=1))
