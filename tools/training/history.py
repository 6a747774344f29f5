"""`python -m tools.training.history`: what a training run's models know, step by step.

Probes the models that `python -m tools.training --history` kept, and counts how often each pair of
a starter fact was read before each step. The order of the passages follows from the seed, so the
counts are exact.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import lama_core as lama
from lama_core.datasets.dataset import Pair
from lama_core.metrics.cooccurrence import PairIndex
from lama_core.metrics.readings import READINGS_FILE, Readings, save_readings
from lama_core.models.sources.checkpoints import Checkpoint, checkpoint_folders, step_of
from lama_core.runs.info import read_info, write_info
from tools.training.corpus.build import open_corpus, read_lines
from tools.training.modelling import load_tokenizer
from tools.training.recipe import default_encoder, make_sampler
from tools.training.train import Settings, checkpoint_of

DATASET, NAME, LIMIT = "starter", "minilm-mlm", 20  # LIMIT: facts per relation


def count_readings(
    runs: Sequence[Path], encoder: Path, pairs: Sequence[Pair], steps: Iterable[int]
) -> Readings:
    """Return how often a model had read each pair before each of the steps of its training.

    A reading is a passage that contains subject and object (see `PairIndex`) in the tokens that
    the model reads.

    Args:
        runs: Folders of the training runs, with their corpus and a checkpoint: the first one, the
            one that continued from its model, and so on. Their steps are counted together.
        encoder: Folder of the tokenizer.
        pairs: Subjects and objects.
        steps: Training steps.
    """
    index, tokenizer = PairIndex(pairs), load_tokenizer(encoder)
    read = chain.from_iterable(_pairs_by_step(run, index, tokenizer) for run in runs)
    ordered = sorted(steps)
    so_far: Counter[Pair] = Counter()
    counts = []
    for before, step in zip([0, *ordered], ordered, strict=False):
        for found in islice(read, step - before):
            so_far.update(found)
        counts.append(so_far.copy())
    return Readings(tuple(ordered), {pair: tuple(c[pair] for c in counts) for pair in pairs})


def _pairs_by_step(run: Path, index: PairIndex, tokenizer: Any) -> Iterator[list[Pair]]:
    """Yield the pairs that are read in each step of a run, each as often as it is read."""
    checkpoint = checkpoint_of(run)
    assert checkpoint is not None  # a finished run has one
    stored = checkpoint["settings"]
    settings = Settings(**{name: value for name, value in stored.items() if name != "corpus"})
    corpus = open_corpus(run / "corpus")
    found: dict[tuple[int, int], frozenset[Pair]] = {}
    for file, (_, _, path) in enumerate(corpus.train):
        for number, passage in enumerate(read_lines(path)):
            if index.pairs_in(passage):
                read = tokenizer(
                    passage,
                    truncation=True,
                    max_length=settings.max_length,
                    return_offsets_mapping=True,
                )
                end = max(last for _, last in read["offset_mapping"])
                found[file, number] = frozenset(index.pairs_in(passage[:end]))
    sampler = make_sampler(corpus, tokenizer, settings)
    for batch in islice(sampler.passages(0), settings.steps):
        yield [pair for passage in batch for pair in found.get(passage, ())]


def probe_history(history: Path, out: Path) -> None:
    """Store a run of each kept model on the starter facts, as checkpoint `NAME@step<n>`."""
    for folder in checkpoint_folders(history):
        step = step_of(folder.name)
        assert step is not None  # checkpoint_folders only returns folders with a step
        with tempfile.TemporaryDirectory(dir=out, prefix=".history-") as temporary:
            lama.probe(DATASET, models=(str(folder),), limit=LIMIT, out=Path(temporary))
            made = next(one for one in Path(temporary).iterdir() if (one / "run.json").is_file())
            info = replace(
                read_info(made), model=f"{NAME}@{folder.name}", checkpoint=Checkpoint(NAME, step)
            )
            write_info(info, made)
            start, _, end = made.name.partition(folder.name)
            made.rename(out / f"{start}{NAME.replace('-', '_')}_{folder.name}{end}")


def main() -> None:
    """Run the command."""
    options = argparse.ArgumentParser("python -m tools.training.history", description=__doc__)
    options.add_argument(
        "--run",
        type=Path,
        action="append",
        required=True,
        help="Folder of the training run; again for a run that continued its model.",
    )
    options.add_argument("--history", type=Path, required=True, help="Folder of the kept models.")
    options.add_argument("--out", type=Path, required=True, help="Folder for the runs.")
    options.add_argument("--model", type=Path, required=True, help="Folder for the readings.")
    given = options.parse_args()
    steps = [step_of(folder.name) or 0 for folder in checkpoint_folders(given.history)]
    pairs = sorted({(fact.subject, fact.object) for fact in lama.load_dataset(DATASET).facts})
    readings = count_readings(given.run, default_encoder(), pairs, steps)
    save_readings(readings, given.model / READINGS_FILE)
    probe_history(given.history, given.out)


if __name__ == "__main__":
    main()
