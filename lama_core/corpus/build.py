"""The corpus as files: one passage a line, one file a source, and the held-out texts apart.

A text is held out when the hash of its source and key falls below HELD_OUT_SHARE; every passage
made from it goes with it. Passages that a source has twice are kept once.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lama_core.corpus.fetch_sources import open_origin
from lama_core.corpus.source_list import SOURCES
from lama_core.corpus.source_passages import Passage, Source, split_sentences, tidy
from lama_core.errors import UserError
from lama_core.files import atomic_file, write_text_atomically
from lama_core.metrics.word_counts import COUNTS_FILE, count_corpus, save_corpus_counts
from lama_core.paths import CORPUS_SUMMARY

HELD_OUT_SHARE = 0.02
CORPUS_FORMAT = 1

Report = Callable[[str], None]


@dataclass(frozen=True)
class SourceSummary:
    """What one source gave to the corpus."""

    name: str
    title: str
    licence: str
    share: float
    n_passages: int
    n_words: int
    n_held_out: int


@dataclass(frozen=True)
class Corpus:
    """A corpus on disk. train: name, share and file of each source. held_out: name and file."""

    train: tuple[tuple[str, float, Path], ...]
    held_out: tuple[tuple[str, Path], ...]
    summary: tuple[SourceSummary, ...]
    digest: str


def build_corpus(
    folder: Path, *, sources: tuple[Source, ...] = SOURCES, report: Report = lambda line: None
) -> Corpus:
    """Fetch the sources and write the corpus into `folder`, unless it is there already.

    Raises UserError when a source can't be fetched, or the folder holds a corpus of other sources.
    """
    if (folder / CORPUS_SUMMARY).exists():
        there = open_corpus(folder)
        if {one.name for one in there.summary} != {source.name for source in sources}:
            raise UserError(f"{folder} holds a corpus of other sources: name another --run")
        return there
    digests: Digests = (set(), set())
    parts = []
    for source in sources:
        report(f"corpus: {source.title}")
        parts.append(_divided(source, source.passages(open_origin(source.origin)), digests))
    return _write(folder, sources, parts)


def corpus_from_files(files: list[Path], folder: Path) -> Corpus:
    """A corpus from the user's own text files: every file a source, shares by size.

    A file's lines are joined up to the next blank line, and long paragraphs are cut at sentence
    ends. Raises UserError for a file that is missing, empty or not UTF-8 text.
    """
    sources, parts = [], []
    for number, file in enumerate(files):
        passages = [Passage(f"{i}", text) for i, text in enumerate(_read_text_file(file))]
        source = replace(
            SOURCES[0],
            name=f"file-{number}",
            title=file.name,
            licence="the user's",
            held_out=len(passages) >= 50,
        )
        sources.append(source)
        parts.append(_divided(source, passages))
    n_words = [_n_words(train) for train, _ in parts]
    shared = [replace(one, share=n / sum(n_words)) for one, n in zip(sources, n_words, strict=True)]
    return _write(folder, shared, parts)


def open_corpus(folder: Path) -> Corpus:
    """The corpus that `build_corpus` wrote into `folder`."""
    loaded = json.loads((folder / CORPUS_SUMMARY).read_text(encoding="utf-8"))
    summary = tuple(SourceSummary(**entry) for entry in loaded["sources"])
    train = tuple((s.name, s.share, folder / f"{s.name}.txt") for s in summary if s.n_passages)
    held_out = tuple((s.name, folder / f"{s.name}.held-out.txt") for s in summary if s.n_held_out)
    digest = hashlib.sha256()
    for _, _, path in train:
        digest.update(path.read_bytes())
    return Corpus(train, held_out, summary, digest.hexdigest())


def read_lines(path: Path) -> list[str]:
    """The passages of a corpus file."""
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line]


def is_held_out(source: str, key: str) -> bool:
    """Whether the text of this key is kept from training."""
    # 'wordnet' and 'wordnet-facts' share their keys, so that a synset is held out of both.
    family = source.split("-")[0] if source.startswith("wordnet") else source
    digest = hashlib.sha256(f"{family}\t{key}".encode()).digest()
    return int.from_bytes(digest[:4], "big") < HELD_OUT_SHARE * 2**32


Parts = tuple[list[Passage], list[Passage]]
"""The passages to train on, and those held out."""

Digests = tuple[set[bytes], set[bytes]]
"""Of the texts trained on and of those held out, over all sources so far."""


def _divided(source: Source, passages: Iterable[Passage], earlier: Digests | None = None) -> Parts:
    """The source's passages in two parts.

    With `earlier`, which is added to, a text counts once a source. Two sources that state the same
    both count, as a fact that is told twice is learnt better; but no text is in both parts.
    """
    parts: Parts = ([], [])
    here: set[bytes] = set()
    for passage in passages:
        kept = source.held_out and is_held_out(source.name, passage.key)
        if earlier is not None:
            digest = hashlib.blake2b(passage.text.lower().encode(), digest_size=8).digest()
            if not passage.text or digest in here or digest in earlier[not kept]:
                continue
            here.add(digest)
            earlier[kept].add(digest)
        parts[kept].append(passage)
    return parts


def _write(folder: Path, sources: Sequence[Source], parts: Sequence[Parts]) -> Corpus:
    """Write the files of each source, the counts of words, and last the summary."""
    folder.mkdir(parents=True, exist_ok=True)
    summary = []
    for source, (train, held_out) in zip(sources, parts, strict=True):
        _write_lines(folder / f"{source.name}.txt", train)
        if source.held_out:
            _write_lines(folder / f"{source.name}.held-out.txt", held_out)
        summary.append(
            SourceSummary(
                source.name,
                source.title,
                source.licence,
                source.share,
                len(train),
                _n_words(train),
                len(held_out),
            )
        )
    about = ((passage.text, passage.entities) for train, _ in parts for passage in train)
    save_corpus_counts(count_corpus(about), folder / COUNTS_FILE)
    text = json.dumps({"format": CORPUS_FORMAT, "sources": [asdict(s) for s in summary]}, indent=1)
    write_text_atomically(folder / CORPUS_SUMMARY, text + "\n")
    return open_corpus(folder)


def _write_lines(path: Path, passages: Iterable[Passage]) -> None:
    with atomic_file(path) as part, part.open("w", encoding="utf-8") as stream:
        stream.writelines(tidy(passage.text) + "\n" for passage in passages)


def _n_words(passages: Iterable[Passage]) -> int:
    return sum(len(passage.text.split()) for passage in passages)


def _read_text_file(path: Path) -> list[str]:
    if not path.exists():
        raise UserError(f"there is no corpus file {path}")
    if path.is_dir():
        raise UserError(f"the corpus file {path} is a folder: name the text files in it")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"the corpus file {path} isn't UTF-8 text") from error
    if "\0" in text:
        raise UserError(f"the corpus file {path} isn't text: it holds zero bytes")
    paragraphs = [tidy(p) for p in text.replace("\r\n", "\n").split("\n\n") if p.strip()]
    if not paragraphs:
        raise UserError(f"the corpus file {path} is empty")
    return [piece for paragraph in paragraphs for piece in split_sentences(paragraph)]
