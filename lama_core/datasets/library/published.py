"""The published sources: address, licence, size, citation and checksum, from `assets/datasets`.

The addresses are those of the authors. If no checksum is published, that of the first complete
download is stored, and later downloads must match it (`downloads.checksums`). This is the case for
LPAQA, ParaRel and the Google analogies, of which no release exists: the first download defines the
content, and later changes are refused.
"""

from dataclasses import dataclass

import msgspec

from lama_core.datasets.dataset import Content
from lama_core.downloads import SourceFile
from lama_core.errors import UserError, did_you_mean
from lama_core.paths import ASSETS

LAMA_VOCABULARY = "common_vocab_cased.txt"


@dataclass(frozen=True, slots=True)
class Source:
    """A published source.

    max_unpacked_bytes: limit for the unpacked archives. needs: name of another source, whose
    templates this one uses; the other is downloaded first, and this one can be computed from it.
    """

    name: str
    title: str
    kind: Content
    licence: str
    citation: str
    homepage: str
    files: tuple[SourceFile, ...] = ()
    max_unpacked_bytes: int = 2 << 30
    needs: str | None = None
    note: str = ""

    @property
    def size(self) -> int | None:
        """Bytes to download, or None if the size of a file is unknown."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(size for size in sizes if size is not None)


SOURCES = msgspec.json.decode(
    (ASSETS / "datasets" / "catalog.json").read_bytes(), type=tuple[Source, ...]
)


def source(name: str) -> Source:
    """Return the published source `name`. Raises UserError, with the nearest name, if unknown."""
    known = {source.name: source for source in SOURCES}
    if name not in known:
        hint = did_you_mean(name, known) or f"; known: {', '.join(known)}"
        raise UserError(f"unknown published source {name!r}{hint}")
    return known[name]


def is_published(name: str) -> bool:
    """Whether `name` is one of the published sources."""
    return any(source.name == name for source in SOURCES)
