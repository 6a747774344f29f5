"""Items of a JSON file that holds one list of objects, as T-REx's files do."""

from collections.abc import Iterator
from pathlib import Path

import orjson

from lama_core.datasets.line_reader import JsonObject, Reading, as_object

MAX_BYTES = 512 << 20  # CounterFact, the largest, has about 45 MB


def json_items(reading: Reading, path: Path) -> Iterator[tuple[int, JsonObject]]:
    """Yield (number from 1, object) for each item of the list.

    An item that is not an object is excluded, and so is a file that is not a list.

    Raises:
        UserError: If the file can't be read, or is larger than `MAX_BYTES`.
    """
    try:
        items = orjson.loads(reading.content(path, MAX_BYTES).removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        reading.drop(path, 0, f"not valid JSON ({error.msg}, line {error.lineno})")
        return
    if not isinstance(items, list):
        reading.drop(path, 0, f"a list was expected, not a {type(items).__name__}")
        return
    for number, item in enumerate(items, start=1):
        with reading.dropping(path, 0, named(number)):
            yield number, as_object(item)


def named(number: int) -> str:
    """Return the beginning of the reason for excluding an item, such as `item 3: `."""
    return f"item {number:,}: "
