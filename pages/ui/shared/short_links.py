"""Short links: choices of a screen that this server stores under a short name.

The name is a hash of the choices. So the same choices have the same link, no link is overwritten,
and a damaged one isn't opened. Links are never deleted by the app: when the folder is full, URLs
stay long.
"""

import re
import threading
from base64 import b32encode
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from urllib.parse import parse_qs

from lama_core.errors import UserError
from lama_core.files import read_file, write_text_atomically
from lama_core.paths import data_dir
from pages.ui.shared import screens

NAME = re.compile("[a-z2-7]{16}")
MAX_LINKS = 20_000
MAX_BYTES = 8_000  # of one link's choices
MAX_OF_ADDRESS = 100  # new links of one network address since the start of the app
_lock = threading.Lock()
_made: Counter[str] = Counter()


def find(path: str, query: str) -> str:
    """The name of a screen's link; empty if it isn't stored.

    Args:
        path: The path of the page's URL below the app's.
        query: The URL's query string.
    """
    name = _name_of(f"{path}\n{query}")
    return name if _file(name).is_file() else ""


def store(path: str, query: str, address: str) -> str:
    """Store a screen's link; return its name, or "" if there is no place for it.

    address: The visitor's network address.
    """
    text = f"{path}\n{query}"
    name = _name_of(text)
    with _lock:
        n_links = sum(1 for _ in _file(name).parent.glob("*"))
        full = n_links >= MAX_LINKS or _made[address] >= MAX_OF_ADDRESS
        if not full and len(text.encode()) <= MAX_BYTES:
            write_text_atomically(_file(name), text)
            _made[address] += 1
    return find(path, query)


def read(name: str) -> tuple[str, screens.Params] | None:
    """The page and URL parameters of a link; None if it is unknown or damaged."""
    try:
        text = read_file(_file(name), MAX_BYTES).decode() if NAME.fullmatch(name) else ""
    except (UserError, UnicodeDecodeError):
        return None
    path, _, query = text.partition("\n")
    if _name_of(text) != name:
        return None
    return screens.resolve(path, parse_qs(query, keep_blank_values=True))


def _name_of(text: str) -> str:
    return b32encode(blake2b(text.encode(), digest_size=10).digest()).decode().lower()


def _file(name: str) -> Path:
    return data_dir() / "links" / name
