"""The embedded model's training text: built, and searched for the facts that it states."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lama_core.corpus import build
from lama_core.corpus.build import Corpus
from lama_core.corpus.catalog import all_but
from lama_core.datasets import load_dataset
from lama_core.datasets.library.installed import STARTER
from lama_core.metrics import stated
from lama_core.metrics.stated import STATED_FILE
from lama_core.paths import training_dir
from lama_core.progress import OnProgress, Progress, silent


@dataclass(frozen=True)
class Stated:
    """How many pairs of subject and object there are, and how many a training passage states."""

    n_pairs: int
    n_stated: int


def build_corpus(*, on_progress: OnProgress = silent) -> Corpus:
    """Return the corpus, built in the cache from fetched sources where it isn't there yet."""
    return build.build_corpus(corpus_dir(), report=lambda stage: on_progress(Progress(stage)))


def corpus_dir() -> Path:
    """Return the folder of the corpus."""
    return training_dir() / "corpus"


def find_stated(
    out: Path,
    *,
    dataset: str = STARTER,
    without: Sequence[str] = (),
    on_progress: OnProgress = silent,
) -> Stated:
    """Write which facts have subject and object in the same training passage.

    Args:
        out: The file to write, in the model's folder.
        without: Sources that the model hasn't read.
    """
    kept = {source.name for source in all_but(without)}
    train = build_corpus(on_progress=on_progress).train
    texts = (line for name, _, path in train if name in kept for line in build.read_lines(path))
    pairs = [(fact.subject, fact.object) for fact in load_dataset(dataset).facts]
    found = stated.find_stated(pairs, texts)
    stated.save_stated(pairs, found, out)
    return Stated(len(set(pairs)), len(found))


__all__ = [
    "STARTER",
    "STATED_FILE",
    "Corpus",
    "Stated",
    "build_corpus",
    "corpus_dir",
    "find_stated",
]
