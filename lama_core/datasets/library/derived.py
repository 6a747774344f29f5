"""Compute LAMA-UHN from LAMA as its authors' script does, with any masked model as name guesser."""

from pathlib import Path

import orjson

from lama_core.datasets import lama_writer, variants
from lama_core.datasets.dataset import Dataset, make_dataset

EXCLUDED_FILE = "excluded.json"


def write_uhn(
    lama: Dataset, folder: Path, *, guess: variants.Guess | None = None
) -> tuple[variants.Excluded, ...]:
    """Write LAMA-UHN, computed from `lama`, into `folder`; return the excluded facts.

    guess: the name guesser (bert-base-cased in the paper); without one, only the substring filter
    is applied. `excluded.json` lists the excluded facts with their reasons.
    """
    relations = [r for r in lama.relations if r.source in variants.UHN_SOURCES]
    facts = [fact for fact in lama.facts if fact.source in variants.UHN_SOURCES]
    dataset = make_dataset(lama.name, relations, facts, lama.report)
    kept, excluded = variants.uhn(dataset, guess=guess)
    lama_writer.write(kept, folder, suffix="_UHN")
    rows = [{"id": item.fact.id, "reason": item.reason} for item in excluded]
    (folder / EXCLUDED_FILE).write_bytes(orjson.dumps(rows, option=orjson.OPT_INDENT_2))
    return excluded
