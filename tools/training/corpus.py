"""The corpus as files: one passage a line, one file a source, and the held-out texts apart.

A text is held out when the hash of its source and key falls below HELD_OUT_SHARE; every passage
made from it goes with it. Passages that a source has twice are kept once.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from lama_core.errors import UserError
from lama_core.metrics.counts import COUNTS_FILE, count_corpus, save_corpus_counts
from lama_core.paths import CORPUS_SUMMARY
from tools.training.catalog import SOURCES
from tools.training.fetch import open_origin
from tools.training.passages import Passage, Source, split_sentences, tidy

HELD_OUT_SHARE = 0.02
CORPUS_FORMAT = 1
MAX_WORDS_OF_A_PASSAGE = 45

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
    """Fetch the sources and write the corpus into `folder`, unless it stands there already.

    Raises UserError when a source can't be fetched, or a corpus of other sources stands there.
    """
    if (folder / CORPUS_SUMMARY).exists():
        there = open_corpus(folder)
        if {one.name for one in there.summary} != {source.name for source in sources}:
            raise UserError(f"{folder} holds a corpus of other sources: name another --run")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        digests: Digests = (set(), set())
        about: list[tuple[str, tuple[str, ...]]] = []
        summaries = []
        for source in sources:
            report(f"corpus: {source.title}")
            passages = source.passages(open_origin(source.origin))
            train, held_out = _divided(source, passages, digests)
            _write_lines(folder / f"{source.name}.txt", (p.text for p in train))
            if source.held_out:
                _write_lines(folder / f"{source.name}.held-out.txt", (p.text for p in held_out))
            about += [(p.text, p.entities) for p in train]
            n_words = sum(len(p.text.split()) for p in train)
            summaries.append(
                SourceSummary(source.name, source.title, source.licence, source.share,
                              len(train), n_words, len(held_out))
            )  # fmt: skip
        save_corpus_counts(count_corpus(about), folder / COUNTS_FILE)
        text = json.dumps(
            {"format": CORPUS_FORMAT, "sources": [asdict(s) for s in summaries]}, indent=1
        )
        (folder / CORPUS_SUMMARY).write_text(text + "\n", encoding="utf-8")
        there = open_corpus(folder)
    return there


def open_corpus(folder: Path) -> Corpus:
    """The corpus that `build_corpus` wrote into `folder`."""
    loaded = json.loads((folder / CORPUS_SUMMARY).read_text(encoding="utf-8"))
    summary = tuple(SourceSummary(**entry) for entry in loaded["sources"])
    train = tuple((s.name, s.share, folder / f"{s.name}.txt") for s in summary if s.n_passages)
    held_out = tuple((s.name, folder / f"{s.name}.held-out.txt") for s in summary if s.n_held_out)
    return Corpus(train, held_out, summary, _digest(path for _, _, path in train))


def corpus_from_files(files: list[Path], folder: Path) -> Corpus:
    """A corpus from the user's own text files: every file a source, shares by size.

    A file's lines are joined up to the next blank line, and long paragraphs are cut at sentence
    ends. Raises UserError for a file that is missing, empty or not UTF-8 text.
    """
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for number, file in enumerate(files):
        passages = [Passage(f"{i}", text) for i, text in enumerate(_read_text_file(file))]
        source = Source(f"file-{number}", file.name, "the user's", 0.0, _NO_ORIGIN,
                        lambda read: iter(()), held_out=len(passages) >= 50)  # fmt: skip
        train, held_out = _divided(source, passages)
        _write_lines(folder / f"{source.name}.txt", (p.text for p in train))
        _write_lines(folder / f"{source.name}.held-out.txt", (p.text for p in held_out))
        parts.append((source, train, held_out))
    n_words = [sum(len(p.text.split()) for p in train) for _, train, _ in parts]
    summaries = [
        SourceSummary(s.name, s.title, s.licence, n / sum(n_words), len(train), n, len(held_out))
        for (s, train, held_out), n in zip(parts, n_words, strict=True)
    ]
    about = [(p.text, p.entities) for _, train, _ in parts for p in train]
    save_corpus_counts(count_corpus(about), folder / COUNTS_FILE)
    text = json.dumps(
        {"format": CORPUS_FORMAT, "sources": [asdict(s) for s in summaries]}, indent=1
    )
    (folder / CORPUS_SUMMARY).write_text(text + "\n", encoding="utf-8")
    return open_corpus(folder)


def read_lines(path: Path) -> list[str]:
    """The passages of a corpus file."""
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line]


def is_held_out(source: str, key: str) -> bool:
    """Whether the text of this key is kept from training."""
    # 'wordnet' and 'wordnet-facts' share their keys, so that a synset is held out of both.
    family = source.split("-")[0] if source.startswith("wordnet") else source
    digest = hashlib.sha256(f"{family}\t{key}".encode()).digest()
    return int.from_bytes(digest[:4], "big") < HELD_OUT_SHARE * 2**32


_NO_ORIGIN = SOURCES[0].origin


Digests = tuple[set[bytes], set[bytes]]
"""Of the texts trained on and of those held out, over all sources so far."""


def _divided(
    source: Source, passages: Iterable[Passage], earlier: Digests | None = None
) -> tuple[list[Passage], list[Passage]]:
    """The passages to train on, and those held out.

    With `earlier`, which is added to, a text counts once a source. Two sources that state the same
    both count, as a fact that is told twice is learnt better; but no text is in both parts.
    """
    parts: tuple[list[Passage], list[Passage]] = ([], [])
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


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8") as stream:
        stream.writelines(tidy(line) + "\n" for line in lines)
    partial.replace(path)


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _read_text_file(path: Path) -> list[str]:
    if not path.exists():
        raise UserError(f"there is no corpus file {path}")
    if path.is_dir():
        raise UserError(f"the corpus file {path} is a folder: name the text files in it")
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"the corpus file {path} isn't UTF-8 text") from error
    if "\0" in text:
        raise UserError(f"the corpus file {path} isn't text: it holds zero bytes")
    paragraphs = [tidy(p) for p in text.replace("\r\n", "\n").split("\n\n") if p.strip()]
    if not paragraphs:
        raise UserError(f"the corpus file {path} is empty")
    pieces = [split_sentences(p, max_words=MAX_WORDS_OF_A_PASSAGE) for p in paragraphs]
    return [text for parts in pieces for text in parts]
