"""Computing and chemistry: the Free On-line Dictionary of Computing, and the elements."""

import gzip
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.training.corpus.fetch_sources import ReadMember
from tools.training.corpus.source_passages import Passage, split_sentences, tidy

FOLDOC = "usr/share/dictd/foldoc.dict.dz"
ELEMENTS = "mendeleev/elements.db"


def computing_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield the articles of FOLDOC, without links, references and dates."""
    text = gzip.decompress(read(FOLDOC)).decode("utf-8", errors="replace")
    head = ""
    for block in re.split(r"\n\s*\n", text):
        if not block.lstrip("\n").startswith(" "):
            head = tidy(block)
            continue
        plain = re.sub(r"<[^<>]*>|\{\(?http[^}]*\}|\(\d{4}-\d\d-\d\d\)|\[[^\[\]]*\]", " ", block)
        plain = tidy(re.sub(r"[{}]", "", plain))
        for piece in split_sentences(plain):
            if len(piece.split()) >= 5 and len(head) < 60:
                yield Passage(head, f"{head}: {piece}", (head,))


def element_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield sentences on symbol, number, discovery, name and use of each chemical element."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "elements.db"
        path.write_bytes(read(ELEMENTS))
        connection = sqlite3.connect(path)
        connection.row_factory = sqlite3.Row
        rows = connection.execute("SELECT * FROM elements ORDER BY atomic_number").fetchall()
        connection.close()
    for row in rows:
        name = row["name"]
        yield from (
            Passage(
                name, f"{name} is a chemical element with the symbol {row['symbol']}.", (name,)
            ),
            Passage(name, f"The element number {row['atomic_number']} is {name}.", (name,)),
        )
        for label in ("description", "name_origin", "uses", "sources"):
            if row[label]:
                lead = "The name of this element, " if label == "name_origin" else ""
                for piece in split_sentences(tidy(row[label])):
                    yield Passage(name, f"{lead}{name}: {piece}", (name,))
        for label, verb in (
            ("discoverers", "discovered by"),
            ("discovery_location", "first found in"),
        ):
            if row[label]:
                yield Passage(name, f"{name} was {verb} {row[label]}.", (name,))
