"""Building the corpus: a file per source with one passage per line, and files of held-out texts.

A text is held out, with all passages made from it, if the hash of its source and key is below
HELD_OUT_SHARE of the largest hash. Duplicate passages of a source are kept once.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lama_core.errors import UserError
from lama_core.files import atomic_file, write_text_atomically
from lama_core.metrics.word_counts import COUNTS_FILE, count_corpus, save_corpus_counts
from lama_core.paths import CORPUS_SUMMARY
from tools.training.corpus.fetch_sources import open_origin
from tools.training.corpus.source_list import SOURCES
from tools.training.corpus.source_passages import CorpusSource, Passage, split_sentences, tidy

HELD_OUT_SHARE = 0.02
CORPUS_FORMAT = 1

Report = Callable[[str], None]


@dataclass(frozen=True)
class SourceSummary:
    """Size and licence of one source in the corpus."""

    name: str
    title: str
    licence: str
    share: float
    n_passages: int
    n_words: int
    n_held_out: int


@dataclass(frozen=True)
class TrainingCorpus:
    """A corpus on disk. train: name, share and file of each source. held_out: name and file."""

    train: tuple[tuple[str, float, Path], ...]
    held_out: tuple[tuple[str, Path], ...]
    summary: tuple[SourceSummary, ...]
    digest: str


def build_corpus(
    folder: Path, *, sources: tuple[CorpusSource, ...] = SOURCES, report: Report = lambda line: None
) -> TrainingCorpus:
    """Download the sources and write the corpus into `folder`, unless it is already there.

    Raises UserError if a source can't be downloaded, or the folder has a corpus of other sources.
    """
    if (folder / CORPUS_SUMMARY).exists():
        existing = open_corpus(folder)
        if {summary.name for summary in existing.summary} != {source.name for source in sources}:
            raise UserError(f"{folder} has a corpus of other sources: give another --run")
        return existing
    digests: Digests = (set(), set())
    parts = []
    for source in sources:
        report(f"corpus: {source.title}")
        parts.append(_divided(source, source.passages(open_origin(source.origin)), digests))
    return _write(folder, sources, parts)


def corpus_from_files(files: list[Path], folder: Path) -> TrainingCorpus:
    """Build a corpus from the user's text files; a file's share is its proportion of the words.

    Blank lines separate paragraphs, and long paragraphs are cut at sentence ends.
    Raises UserError for a file that is missing, empty or not UTF-8 text.
    """
    sources, parts = [], []
    for number, file in enumerate(files):
        passages = [Passage(f"{i}", text) for i, text in enumerate(_read_passages(file))]
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
    total = sum(n_words)
    sources = [replace(source, share=n / total) for source, n in zip(sources, n_words, strict=True)]
    return _write(folder, sources, parts)


def open_corpus(folder: Path) -> TrainingCorpus:
    """Return the corpus that was built in `folder`."""
    loaded = json.loads((folder / CORPUS_SUMMARY).read_text(encoding="utf-8"))
    summary = tuple(SourceSummary(**entry) for entry in loaded["sources"])
    train = tuple((s.name, s.share, folder / f"{s.name}.txt") for s in summary if s.n_passages)
    held_out = tuple((s.name, folder / f"{s.name}.held-out.txt") for s in summary if s.n_held_out)
    digest = hashlib.sha256()
    for _, _, path in train:
        digest.update(path.read_bytes())
    return TrainingCorpus(train, held_out, summary, digest.hexdigest())


def read_lines(path: Path) -> list[str]:
    """Return the passages of a corpus file."""
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line]


def is_held_out(source: str, key: str) -> bool:
    """Whether the text with this key is held out from training."""
    # 'wordnet' and 'wordnet-facts' have the same keys: a synset is held out of both or neither.
    family = source.split("-")[0] if source.startswith("wordnet") else source
    digest = hashlib.sha256(f"{family}\t{key}".encode()).digest()
    return int.from_bytes(digest[:4], "big") < HELD_OUT_SHARE * 2**32


PassageSplit = tuple[list[Passage], list[Passage]]
"""(passages to train on, held-out passages)."""

Digests = tuple[set[bytes], set[bytes]]
"""(digests of the training passages, digests of the held-out passages) of all sources so far."""


def _divided(
    source: CorpusSource, passages: Iterable[Passage], earlier: Digests | None = None
) -> PassageSplit:
    """Divide a source's passages into training and held-out passages.

    With `earlier`, which is updated, empty passages and duplicates within the source are excluded.
    So are passages to train on that an earlier source holds out, and the reverse. A passage that
    two sources have in the same part is kept in both: repeated facts are learnt better.
    """
    parts: PassageSplit = ([], [])
    seen: set[bytes] = set()
    for passage in passages:
        held_out = source.held_out and is_held_out(source.name, passage.key)
        if earlier is not None:
            digest = hashlib.blake2b(passage.text.lower().encode(), digest_size=8).digest()
            if not passage.text or digest in seen or digest in earlier[not held_out]:
                continue
            seen.add(digest)
            earlier[held_out].add(digest)
        parts[held_out].append(passage)
    return parts


def _write(
    folder: Path, sources: Sequence[CorpusSource], parts: Sequence[PassageSplit]
) -> TrainingCorpus:
    """Write the files of each source, then the word counts, and the summary last."""
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
    texts = ((passage.text, passage.entities) for train, _ in parts for passage in train)
    save_corpus_counts(count_corpus(texts), folder / COUNTS_FILE)
    text = json.dumps({"format": CORPUS_FORMAT, "sources": [asdict(s) for s in summary]}, indent=1)
    write_text_atomically(folder / CORPUS_SUMMARY, text + "\n")
    return open_corpus(folder)


def _write_lines(path: Path, passages: Iterable[Passage]) -> None:
    with atomic_file(path) as part, part.open("w", encoding="utf-8") as stream:
        stream.writelines(tidy(passage.text) + "\n" for passage in passages)


def _n_words(passages: Iterable[Passage]) -> int:
    return sum(len(passage.text.split()) for passage in passages)


def _read_passages(path: Path) -> list[str]:
    if not path.exists():
        raise UserError(f"no such corpus file: {path}")
    if path.is_dir():
        raise UserError(f"the corpus file {path} is a folder: give the text files in it")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"the corpus file {path} isn't UTF-8 text: save it as UTF-8") from error
    if "\0" in text:
        raise UserError(f"the corpus file {path} isn't text: it has null bytes")
    paragraphs = [tidy(p) for p in text.replace("\r\n", "\n").split("\n\n") if p.strip()]
    if not paragraphs:
        raise UserError(f"the corpus file {path} is empty")
    return [passage for paragraph in paragraphs for passage in split_sentences(paragraph)]
