"""Analogy pairs: BATS 3.0 and the Google analogies.

BATS (Gladkova et al. 2016) has four folders of ten files. A line is `head<TAB>tail` or
`head<TAB>tail1/tail2/...`; underscores join the words of a term and are read as spaces.
The Google analogies (Mikolov et al. 2013) are one file of sections `: name`, recognised by its
content. A line has four words, two pairs of the relation; each pair is kept once, in order of first
appearance. Sections of the same name are one relation. Files of BATS of the same name in brackets
are relations that are named after the whole file name.

Which relations are one-to-many and which are bidirectional follows Table 2 of Rezaee and
Camacho-Collados. A relation that the table lacks is one-to-many if a head has several tails.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from lama_core.datasets.dataset import (
    AnalogyDataset,
    AnalogyRelation,
    AnalogyRelationKind,
    make_analogies,
)
from lama_core.datasets.file_search import files_in, find_files, find_folder_with, head_of
from lama_core.datasets.line_reader import Reading, Rejected
from lama_core.datasets.nested_folders import find_folder, subfolders

# The name of each of BATS's folders contains the kind of its relations.
KINDS: tuple[AnalogyRelationKind, ...] = (
    "inflectional",
    "derivational",
    "encyclopedic",
    "lexicographic",
)
# As marked in Table 2.
ONE_TO_MANY = """
    animal - sound, animal - shelter, things - color, animal - young, meronyms - part,
    antonyms - binary, synonyms - exact, hyponyms - misc, antonyms - gradable, meronyms - member,
    hypernyms - misc, meronyms - substance, synonyms - intensity, hypernyms - animals
"""
ONE_TO_ONE = """
    male - female, name - nationality, country - language, UK_city - county, name - occupation,
    country - capital
"""
TO_MANY = {name.strip(): True for name in ONE_TO_MANY.split(",")} | {
    name.strip(): False for name in ONE_TO_ONE.split(",")
}
BIDIRECTIONAL = {"antonyms - binary", "synonyms - exact"}
GOOGLE_DERIVATIONAL = {"gram1-adjective-to-adverb", "gram2-opposite", "gram6-nationality-adjective"}

TailsByHead = dict[str, list[str]]  # head -> its tails


def is_analogies(path: Path) -> bool:
    """Whether BATS's folders or a file like the Google analogies are at or under `path`."""
    return is_google(path) if path.is_file() else find_root(path) is not None


def is_google(path: Path) -> bool:
    """Whether a file begins like the Google analogies: a section `: name`, and four words."""
    lines = head_of(path).splitlines()
    first, second, *_ = [line for line in lines if line.strip()] + [b"", b""]
    return first.lstrip().startswith(b":") and len(second.split()) == 4


def find_root(path: Path) -> Path | None:
    """Return the folder at or under `path` with BATS's folders or Google's files, or None."""
    return _bats_root(path) or find_folder_with(path, is_google)


def load(path: Path, *, name: str | None = None, **about: str) -> AnalogyDataset:
    """Return the analogies at `path`, in BATS's folders or files like Google's.

    Raises UserError if `path` has neither, or no usable pair.
    """
    root = None if path.is_file() else _bats_root(path)
    google = find_files(path, is_google) if root is None and is_analogies(path) else []
    missing = (
        "has no analogies: expected BATS's folders, such as 1_Inflectional_morphology, or a file "
        "with sections like questions-words.txt"
    )
    reading = Reading.at(root or next(iter(google), None), path, missing)
    if root is None and path.is_dir():
        reading.root = google[0].parent
    relations = _read_google(reading, google) if root is None else _read_bats(reading)
    if not relations:
        raise reading.nothing(path, "pair")
    return make_analogies(name or path.name, relations, reading.report, **about)


def _kind_folders(folder: Path) -> list[tuple[AnalogyRelationKind, Path]]:
    return [
        (kind, child)
        for child in subfolders(folder)
        for kind in KINDS
        if kind in child.name.lower() and files_in(child, _is_text)
    ]


def _bats_root(path: Path) -> Path | None:
    return find_folder(path, lambda folder: bool(_kind_folders(folder)))


def _is_text(path: Path) -> bool:
    return path.suffix.lower() == ".txt"


def _read_bats(reading: Reading) -> list[AnalogyRelation]:
    files = [
        (kind, file)
        for kind, folder in _kind_folders(reading.root)
        for file in files_in(folder, _is_text)
    ]
    titles = Counter(_title(file.stem) for _, file in files)
    stems = Counter(file.stem for _, file in files)
    relations = []
    for kind, file in files:
        name = _title(file.stem)
        if titles[name] > 1:
            name = file.stem if stems[file.stem] == 1 else f"{file.parent.name}/{file.stem}"
            reading.notes.append(
                f"{reading.shown(file)} is the relation {name!r}: another file has the same title"
            )
        pairs: TailsByHead = {}
        for number, line in reading.lines(file):
            with reading.dropping(file, number):
                cells = line.split("\t") if "\t" in line else line.split(None, 1)
                if len(cells) != 2:
                    raise Rejected("expected a head, a tab and its tails")
                head = _term(cells[0])
                tails = [tail for cell in cells[1].split("/") if (tail := _term(cell))]
                if not head or not tails:
                    raise Rejected("empty head or tails")
                if not _add(pairs, head, tails):
                    raise Rejected(f"duplicate pair of {head!r}")
        if pairs:
            relations.append(_relation(name, kind, pairs))
        else:
            reading.notes.append(f"{reading.shown(file)} has no pairs")
    return relations


def _read_google(reading: Reading, files: Iterable[Path]) -> list[AnalogyRelation]:
    sections: dict[str, TailsByHead] = {}
    for file in files:
        section: TailsByHead | None = None
        for number, line in reading.lines(file):
            words = [_term(word) for word in line.split()]
            with reading.dropping(file, number):
                if line.startswith(":"):
                    name = line[1:].strip()
                    if name in sections:
                        place = f"{reading.shown(file)}, line {number}"
                        reading.notes.append(f"{place}: more pairs of {name!r}, the same relation")
                    section = sections.setdefault(name, {})
                elif len(words) != 4:
                    raise Rejected(f"expected four words, not {len(words)}")
                elif section is None:
                    raise Rejected("pairs without a section: add a line ': NAME' above them")
                else:
                    for head, tail in (words[:2], words[2:]):
                        _add(section, head, [tail])
    return [_relation(name, _google_kind(name), pairs) for name, pairs in sections.items() if pairs]


def _add(pairs: TailsByHead, head: str, tails: Iterable[str]) -> bool:
    """Add the tails that the head doesn't have yet; return whether there were any."""
    known = pairs.setdefault(head, [])
    new = [tail for tail in dict.fromkeys(tails) if tail not in known]
    known += new
    return bool(new)


def _google_kind(name: str) -> AnalogyRelationKind:
    if name in GOOGLE_DERIVATIONAL:
        return "derivational"
    return "inflectional" if name.startswith("gram") else "encyclopedic"


def _relation(name: str, kind: AnalogyRelationKind, pairs: TailsByHead) -> AnalogyRelation:
    """Return the pairs as a relation; one-to-many and bidirectional are as in the paper."""
    several = any(len(tails) > 1 for tails in pairs.values())
    return AnalogyRelation(
        name,
        kind,
        tuple((head, tuple(tails)) for head, tails in pairs.items()),
        one_to_many=TO_MANY.get(name, several),
        bidirectional=name in BIDIRECTIONAL,
    )


def _title(stem: str) -> str:
    """`I01 [noun - plural_reg]` -> `noun - plural_reg`; other names are unchanged."""
    return stem.partition("[")[2].partition("]")[0].strip() or stem


def _term(text: str) -> str:
    return text.strip().replace("_", " ")
