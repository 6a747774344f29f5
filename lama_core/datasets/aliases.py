"""Aliases of objects: a TSV file next to a dataset, with relation, object, alias and origin."""

import csv
from dataclasses import replace
from pathlib import Path

from lama_core.datasets.dataset import Dataset
from lama_core.grouping import grouped
from lama_core.texts import word_key
from lama_core.types import Fact

ALIASES_FILE = "aliases.tsv"


def with_aliases(dataset: Dataset, file: Path) -> Dataset:
    """Return the dataset with the aliases of its objects; unchanged if `file` doesn't exist.

    An alias that is part of a fact's subject is not added to that fact: an answer that repeats the
    question would contain the alias.
    """
    if not file.is_file():
        return dataset
    with file.open(encoding="utf-8", newline="") as stream:
        known = grouped(
            ((row["relation"], row["object"]), row["alias"])
            for row in csv.DictReader(stream, dialect="excel-tab")
        )

    def named(fact: Fact) -> Fact:
        subject = word_key(fact.subject)
        given = known.get((fact.relation, fact.object), [])
        names = tuple(name for name in given if word_key(name) not in subject)
        return replace(fact, aliases=names) if names else fact

    # The dataset's digest doesn't cover aliases: they only change how generated answers are
    # matched. The identity of a generation run covers them (`GenerationSpec.aliases_digest`).
    return replace(dataset, facts=tuple(map(named, dataset.facts)))
