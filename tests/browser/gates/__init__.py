"""Gates that hold an app under test, so that a test can look at a state that else would pass."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of `sitecustomize` in this folder. folder: of their files."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What an app with these gates has in its environment."""
        found = filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH")))
        return {"PYTHONPATH": os.pathsep.join(found), "LAMA_TEST_GATES": str(self.folder)}

    @contextmanager
    def closed(self, name: Literal["query", "part"]) -> Iterator[None]:
        """Hold all apps with these gates at one of them during the block."""
        with (self.folder / name).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
