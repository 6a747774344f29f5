"""Building the corpus: a file per source with one passage per line, and files of held-out texts.

A text is held out, with all passages made from it, if the hash of its source and key is below
HELD_OUT_SHARE of the largest hash. Duplicate passages of a source are kept once.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from lama_core.errors import UserError
from lama_core.files import atomic_file, write_text_atomically
from lama_core.metrics.word_counts import COUNTS_FILE, count_corpus, save_corpus_counts
from lama_core.paths import CORPUS_SUMMARY
from tools.training.corpus.fetch_sources import read_member
from tools.training.corpus.source_list import SOURCES
from tools.training.corpus.source_passages import CorpusSource, Passage, tidy

HELD_OUT_SHARE = 0.02
CORPUS_FORMAT = 1


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
    folder: Path,
    *,
    sources: Sequence[CorpusSource] = SOURCES,
    report: Callable[[str], None] = lambda line: None,
) -> TrainingCorpus:
    """Download the sources and write the corpus into `folder`, unless it is already there.

    Empty passages and duplicates within a source are excluded. So are passages to train on that an
    earlier source holds out, and the reverse. A passage that two sources have in the same part is
    kept in both: repeated facts are learnt better.

    Raises UserError if a source can't be downloaded, or the folder has a corpus of other sources.
    """
    if (folder / CORPUS_SUMMARY).exists():
        existing = open_corpus(folder)
        if {summary.name for summary in existing.summary} != {source.name for source in sources}:
            raise UserError(f"{folder} has a corpus of other sources: give another --run")
        return existing
    earlier: tuple[set[bytes], set[bytes]] = (set(), set())  # digests to train on, and held out
    all_trained: list[Passage] = []
    summary = []
    for source in sources:
        report(f"corpus: {source.title}")
        parts: tuple[list[Passage], list[Passage]] = ([], [])  # to train on, and held out
        seen: set[bytes] = set()
        for passage in source.passages(partial(read_member, source.origin)):
            held_out = source.held_out and is_held_out(source.name, passage.key)
            digest = hashlib.blake2b(passage.text.lower().encode(), digest_size=8).digest()
            if passage.text and digest not in seen and digest not in earlier[not held_out]:
                seen.add(digest)
                earlier[held_out].add(digest)
                parts[held_out].append(passage)
        for suffix, passages in zip(("", ".held-out")[: 1 + source.held_out], parts, strict=False):
            with (
                atomic_file(folder / f"{source.name}{suffix}.txt") as part,
                part.open("w", encoding="utf-8") as stream,
            ):
                stream.writelines(tidy(passage.text) + "\n" for passage in passages)
        train, kept = parts
        n_words = sum(len(passage.text.split()) for passage in train)
        numbers = (source.share, len(train), n_words, len(kept))
        summary.append(SourceSummary(source.name, source.title, source.licence, *numbers))
        all_trained += train
    counts = count_corpus((passage.text, passage.entities) for passage in all_trained)
    save_corpus_counts(counts, folder / COUNTS_FILE)
    text = json.dumps({"format": CORPUS_FORMAT, "sources": [asdict(s) for s in summary]}, indent=1)
    write_text_atomically(folder / CORPUS_SUMMARY, text + "\n")
    return open_corpus(folder)


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
