"""Analogy pairs: BATS 3.0 and the Google analogies.

BATS (Gladkova et al. 2016): four folders, ten files each, a line `head<TAB>tail` or
`head<TAB>tail1/tail2/...`; words of one term are joined by underscores, read here as spaces.
Google (Mikolov et al. 2013): one file of sections `: name` with four words a line, two pairs of
the relation; each pair is kept once, in order of first appearance.

Marks follow Table 2 of Rezaee and Camacho-Collados; a relation that isn't in it is one-to-many
when any of its heads has several tails.
"""

from dataclasses import dataclass, field
from pathlib import Path

from lama_core.datasets.base import (
    AnalogyDataset,
    AnalogyKind,
    AnalogyRelation,
    Dropped,
    ReadReport,
    make_analogies,
)
from lama_core.datasets.folders import find_folder, subfolders
from lama_core.datasets.jsonl import iter_text_lines
from lama_core.errors import UserError
from lama_core.files import open_file

KIND_OF_FOLDER: dict[str, AnalogyKind] = {
    "inflectional": "inflectional",
    "derivational": "derivational",
    "encyclopedic": "encyclopedic",
    "lexicographic": "lexicographic",
}
ONE_TO_MANY = {
    "animal - sound", "animal - shelter", "things - color", "animal - young", "meronyms - part",
    "antonyms - binary", "synonyms - exact", "hyponyms - misc", "antonyms - gradable",
    "meronyms - member", "hypernyms - misc", "meronyms - substance", "synonyms - intensity",
    "hypernyms - animals",
}  # fmt: skip
BIDIRECTIONAL = {"antonyms - binary", "synonyms - exact"}
ONE_TO_ONE = {"male - female", "name - nationality", "country - language", "UK_city - county",
              "name - occupation", "country - capital"}  # fmt: skip
GOOGLE_FILE = "questions-words.txt"
GOOGLE_DERIVATIONAL = {"gram1-adjective-to-adverb", "gram2-opposite", "gram6-nationality-adjective"}


@dataclass
class _Pairs:
    """The pairs of one relation while its lines are read."""

    name: str
    kind: AnalogyKind
    tails: dict[str, list[str]] = field(default_factory=dict)

    def relation(self) -> AnalogyRelation:
        """The pairs as a relation with the paper's marks."""
        several = any(len(tails) > 1 for tails in self.tails.values())
        known = self.name in ONE_TO_MANY | ONE_TO_ONE
        return AnalogyRelation(
            self.name,
            self.kind,
            tuple((head, tuple(tails)) for head, tails in self.tails.items()),
            one_to_many=self.name in ONE_TO_MANY if known else several,
            bidirectional=self.name in BIDIRECTIONAL,
        )


def is_analogies(path: Path) -> bool:
    """Whether `path` looks like BATS (a folder or one above it) or the Google analogies."""
    return _bats_root(path) is not None or _google_file(path) is not None


def find_root(path: Path) -> Path | None:
    """The folder at or under `path` that holds BATS's folders or Google's file, or None."""
    google = _google_file(path)
    return _bats_root(path) or (google.parent if google else None)


def load(
    path: Path, *, name: str | None = None, licence: str = "", citation: str = ""
) -> AnalogyDataset:
    """The analogies at `path`, in BATS's folders or Google's file.

    Raises UserError if it is neither, or holds no pair.
    """
    dropped: list[Dropped] = []
    notes: list[str] = []
    google = _google_file(path)
    root = _bats_root(path)
    if root is not None:
        relations = _read_bats(root, dropped, notes)
    elif google is not None:
        relations = _read_google(google, dropped)
    else:
        raise UserError(
            f"{path} holds no analogies: expected BATS's folders such as "
            f"1_Inflectional_morphology, or {GOOGLE_FILE}"
        )
    if not relations:
        first = f"; the first: {dropped[0]}" if dropped else ""
        raise UserError(f"{path} has no usable pair: {len(dropped)} line(s) were left out{first}")
    report = ReadReport(tuple(dropped), tuple(notes))
    return make_analogies(name or path.name, relations, report, licence=licence, citation=citation)


def _kind_folders(folder: Path) -> list[tuple[AnalogyKind, Path]]:
    found: list[tuple[AnalogyKind, Path]] = []
    for child in subfolders(folder):
        for word, kind in KIND_OF_FOLDER.items():
            if word in child.name.lower() and any(child.glob("*.txt")):
                found.append((kind, child))
    return found


def _bats_root(path: Path) -> Path | None:
    return find_folder(path, lambda folder: bool(_kind_folders(folder)))


def _google_file(path: Path) -> Path | None:
    if path.is_file() and path.suffix == ".txt":
        with open_file(path) as file:
            return path if file.read(1) == b":" else None
    folder = find_folder(path, lambda folder: (folder / GOOGLE_FILE).is_file())
    return folder / GOOGLE_FILE if folder else None


def _read_bats(root: Path, dropped: list[Dropped], notes: list[str]) -> list[AnalogyRelation]:
    relations = []
    for kind, folder in _kind_folders(root):
        for file in sorted(folder.glob("*.txt")):
            shown = file.relative_to(root).as_posix()
            pairs = _Pairs(_title(file.stem), kind)
            for number, line in iter_text_lines(file, shown, dropped):
                reason = _add_line(pairs, line)
                if reason:
                    dropped.append(Dropped(shown, number, reason))
            if pairs.tails:
                relations.append(pairs.relation())
            else:
                notes.append(f"{shown} has no pairs")
    return relations


def _add_line(pairs: _Pairs, line: str) -> str | None:
    """Add a line of BATS to the pairs; why it can't be, or None."""
    cells = line.split("\t") if "\t" in line else line.split(None, 1)
    if len(cells) != 2:
        return "a head, a tab and its tails were expected"
    head = _term(cells[0])
    tails = [tail for cell in cells[1].split("/") if (tail := _term(cell))]
    if not head or not tails:
        return "the head or the tails are empty"
    if head in pairs.tails:
        # BATS repeats a few heads; their tails belong together.
        new = [tail for tail in tails if tail not in pairs.tails[head]]
        if not new:
            return f"the pair of {head!r} was there already"
        pairs.tails[head] += new
        return None
    pairs.tails[head] = list(dict.fromkeys(tails))
    return None


def _read_google(path: Path, dropped: list[Dropped]) -> list[AnalogyRelation]:
    sections: list[_Pairs] = []
    for number, line in iter_text_lines(path, path.name, dropped):
        if line.startswith(":"):
            name = line[1:].strip()
            sections.append(_Pairs(name, _google_kind(name)))
            continue
        words = [_term(word) for word in line.split()]
        if len(words) != 4:
            dropped.append(
                Dropped(path.name, number, f"four words were expected, not {len(words)}")
            )
        elif not sections:
            dropped.append(Dropped(path.name, number, "the pairs stand before any section"))
        else:
            for head, tail in (words[:2], words[2:]):
                tails = sections[-1].tails.setdefault(head, [])
                if tail not in tails:
                    tails.append(tail)
    return [pairs.relation() for pairs in sections if pairs.tails]


def _google_kind(name: str) -> AnalogyKind:
    if name in GOOGLE_DERIVATIONAL:
        return "derivational"
    return "inflectional" if name.startswith("gram") else "encyclopedic"


def _title(stem: str) -> str:
    """`I01 [noun - plural_reg]` -> `noun - plural_reg`; another name stays as it is."""
    inside = stem.partition("[")[2].partition("]")[0]
    return inside.strip() or stem


def _term(text: str) -> str:
    return text.strip().replace("_", " ")
