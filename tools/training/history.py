"""`python -m tools.training.history`: what a training run's models know, step by step.

Probes the models that `python -m tools.training --history` kept, and counts how often each pair of
a starter fact was read before each step. The order of the passages follows from the seed, so the
counts are exact.
"""

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from tools.training.checkpoints import find_checkpoints
from tools.training.corpus.build import open_corpus, read_lines
from tools.training.modelling import load_tokenizer
from tools.training.recipe import default_encoder, make_sampler
from tools.training.train import Settings

DATASET = "starter"
Passages = Mapping[int, frozenset[Pair]]  # number of a passage -> the pairs in it


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
    counts = list(_counts_before(read, ordered))
    return Readings(tuple(ordered), {pair: tuple(c[pair] for c in counts) for pair in pairs})


def _pairs_by_step(run: Path, index: PairIndex, tokenizer: Any) -> Iterator[Counter[Pair]]:
    """Yield how often each pair is read in each step of a run."""
    state = json.loads((find_checkpoints(run)[-1] / "state.json").read_text(encoding="utf-8"))
    fields = ("steps", "seed", "tokens_per_batch", "max_length")
    settings = Settings(**{name: state["settings"][name] for name in fields})
    corpus = open_corpus(run / "corpus")
    found = [
        _pairs_by_passage(read_lines(path), index, tokenizer, settings.max_length)
        for _, _, path in corpus.train
    ]
    sampler = make_sampler(corpus, tokenizer, settings, run)
    for batch in islice(sampler.passages(), settings.steps):
        yield Counter(
            pair for file, passage in batch for pair in found[file].get(passage, frozenset())
        )


def _pairs_by_passage(
    passages: Iterable[str], index: PairIndex, tokenizer: Any, max_length: int
) -> Passages:
    """Return number of a passage -> pairs in its first `max_length` tokens, if it has any."""
    found: dict[int, frozenset[Pair]] = {}
    for number, passage in enumerate(passages):
        if index.pairs_in(passage):
            read = tokenizer(
                passage, truncation=True, max_length=max_length, return_offsets_mapping=True
            )
            end = max(last for _, last in read["offset_mapping"])
            if pairs := index.pairs_in(passage[:end]):
                found[number] = frozenset(pairs)
    return found


def _counts_before(read: Iterator[Counter[Pair]], steps: Sequence[int]) -> Iterator[Counter[Pair]]:
    """Yield how often each pair was read before a step, for each of the ascending `steps`."""
    counts: Counter[Pair] = Counter()
    before = 0
    for step in steps:
        for pairs in islice(read, step - before):
            counts.update(pairs)
        before = step
        yield counts.copy()


def probe_history(history: Path, name: str, limit: int, out: Path) -> None:
    """Store a run of each kept model on the starter facts, as checkpoint `NAME@step<n>`."""
    for folder in checkpoint_folders(history):
        step = step_of(folder.name)
        assert step is not None  # checkpoint_folders only returns folders with a step
        with tempfile.TemporaryDirectory(dir=out, prefix=".history-") as temporary:
            lama.probe(DATASET, models=(str(folder),), limit=limit, out=Path(temporary))
            made = next(one for one in Path(temporary).iterdir() if (one / "run.json").is_file())
            info = replace(
                read_info(made), model=f"{name}@{folder.name}", checkpoint=Checkpoint(name, step)
            )
            write_info(info, made)
            start, _, end = made.name.partition(folder.name)
            made.rename(out / f"{start}{name.replace('-', '_')}_{folder.name}{end}")


def main(words: Sequence[str] | None = None) -> None:
    """Run the command with these arguments."""
    options = argparse.ArgumentParser("python -m tools.training.history", description=__doc__)
    options.add_argument(
        "--run",
        type=Path,
        action="append",
        required=True,
        help="Folder of the training run; again for a run that continued its model.",
    )
    options.add_argument("--history", type=Path, required=True, help="Folder of the kept models.")
    options.add_argument("--encoder", type=Path, help="The encoder, if another than MiniLM.")
    options.add_argument("--name", default="minilm-mlm", help="Name of the trained model.")
    options.add_argument("--limit", type=int, default=20, help="Facts per relation (default 20).")
    options.add_argument("--out", type=Path, required=True, help="Folder for the runs.")
    options.add_argument("--model", type=Path, required=True, help="Folder for the readings.")
    given = options.parse_args(words)
    steps = [step_of(folder.name) or 0 for folder in checkpoint_folders(given.history)]
    pairs = sorted({(fact.subject, fact.object) for fact in lama.load_dataset(DATASET).facts})
    encoder = given.encoder or default_encoder()
    save_readings(count_readings(given.run, encoder, pairs, steps), given.model / READINGS_FILE)
    probe_history(given.history, given.name, given.limit, given.out)


if __name__ == "__main__":
    main()
