"""Results of other tools as the rows of a run: their facts are those of an installed dataset.

A row's fact is that of the dataset with the same relation, subject and object, as written
(`lama_core.texts`). The dataset is the
one given, or the installed one with the most of the results' facts, if it has half of them. Other
rows, and results of unknown facts, bring their own facts, which the run keeps.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lama_core.datasets.dataset import Dataset
from lama_core.datasets.library.installed import dataset_names, load_dataset
from lama_core.datasets.user_table import SOURCE
from lama_core.errors import UserError
from lama_core.progress import OnProgress, Progress
from lama_core.runs.importers.results import REQUIRED, ImportedResults
from lama_core.scoring.ranking import Ints
from lama_core.texts import written_key
from lama_core.types import Relation

SHARE = 0.5  # of the facts that an installed dataset must have, if no dataset is given


@dataclass(frozen=True)
class Matched:
    """Results and the facts that they are about.

    Attributes:
        results: The results.
        name: Name of the dataset.
        dataset: The installed dataset that has the facts; None if none has.
        at: Index of each row's fact in the dataset, int64 [row]; -1 if it isn't there.
    """

    results: ImportedResults
    name: str
    dataset: Dataset | None
    at: Ints

    @property
    def n_matched(self) -> int:
        """How many rows are about facts of the dataset."""
        return int((self.at >= 0).sum())

    @cached_property
    def relations(self) -> dict[str, Relation]:
        """Name -> relation, of the dataset or of the results."""
        known = {one.name: one for one in self.dataset.relations} if self.dataset else {}
        names = self.results.rows["relation"].unique().to_pylist()
        return {name: known.get(name) or Relation(name, SOURCE) for name in names}

    @property
    def data_digest(self) -> str:
        """The dataset's digest, or one of the results' own facts, whatever their order."""
        if self.dataset:
            return self.dataset.digest
        digest = hashlib.sha256()
        keys = keys_of(keyed(self.results.rows))
        for key in pc.sort_indices(distinct := keys.unique()).to_numpy():
            digest.update(distinct[key].as_buffer())
            digest.update(b"\n")
        return digest.hexdigest()

    @cached_property
    def fact_ids(self) -> pa.Array:
        """The id of each row's fact."""
        rows = keyed(self.results.rows)
        pair = pc.binary_join_element_wise(rows["subject"], rows["object"], "|")
        own = pc.binary_join_element_wise(rows["relation"], pair, ":").combine_chunks()
        if not self.dataset or not self.n_matched:
            return own
        ids = pa.array([fact.id for fact in self.dataset.facts], pa.string())
        return pc.coalesce(ids.take(pa.array(self.at, mask=self.at < 0)), own)

    @cached_property
    def origins(self) -> pa.Array:
        """Where each row's fact comes from, null if unknown."""
        facts = self.dataset.facts if self.dataset else ()
        known = pa.array([*(fact.origin or None for fact in facts), None], pa.string())
        return known.take(pa.array(np.where(self.at < 0, len(facts), self.at)))

    @cached_property
    def facts(self) -> pa.Table:
        """The keys of all known facts, each once: relation, subject and object."""
        own = keyed(self.results.rows.filter(pa.array(self.at < 0)))
        tables = [own, keyed(_table(self.dataset))] if self.dataset else [own]
        return pa.concat_tables(tables).group_by(list(REQUIRED)).aggregate([])


def keyed(table: pa.Table, key: Callable[[str], str] = written_key) -> pa.Table:
    """Return relation, subject and object of each row, those that it has, as their keys."""
    names = [name for name in REQUIRED if name in table.column_names]
    return pa.table({name: key_column(table[name], key) for name in names})


def key_column(
    texts: pa.Array | pa.ChunkedArray, key: Callable[[str], str] = written_key
) -> pa.Array:
    """Return the key of each text; null stays null."""
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    words = whole.dictionary_encode()
    keys = [None if word is None else key(word) for word in words.dictionary.to_pylist()]
    return pa.array(keys, pa.string()).take(words.indices)


def keys_of(facts: pa.Table, *names: str) -> pa.Array:
    """Return one text for each row of keys: relation, subject and object, or the columns named."""
    columns = [facts[name] for name in names or REQUIRED]
    return pc.binary_join_element_wise(*columns, "\x1f").combine_chunks()  # not part of any name


def _table(dataset: Dataset) -> pa.Table:
    columns = {name: [getattr(fact, name) for fact in dataset.facts] for name in REQUIRED}
    return pa.table(columns, pa.schema([(name, pa.string()) for name in REQUIRED]))


def match(
    results: Sequence[ImportedResults], dataset: str, on_progress: OnProgress
) -> list[Matched]:
    """Return the results with their facts; all results of an import share one dataset.

    Args:
        results: The results.
        dataset: Name or path of the dataset; "" to look among the installed ones.
        on_progress: Called with the current activity.

    Raises:
        UserError: If there is no such dataset, or it has none of the facts.
    """
    keys = [keys_of(keyed(one.rows)) for one in results]
    total = sum(map(len, keys))
    best: tuple[Dataset | None, list[Ints]] = (None, [np.full(len(one), -1) for one in keys])
    for name in [dataset] if dataset else dataset_names():
        try:
            one = load_dataset(name)
        except UserError:
            if dataset:
                raise
            continue  # the list of datasets shows why it can't be read
        on_progress(Progress(f"Comparing the facts with {one.name}"))
        known = keys_of(keyed(_table(one)))
        found = [_find(some, known) for some in keys]
        if _n_found(found) > max(_n_found(best[1]), 0 if dataset else SHARE * total - 1):
            best = (one, found)
        if _n_found(best[1]) == total:
            break
    if dataset and best[0] is None:
        raise UserError(
            f"{dataset} has none of these facts: relation, subject and object must be the same. "
            "Import without --dataset to keep the facts with the run."
        )
    return [
        Matched(one, best[0].name if best[0] else one.dataset, best[0], at)
        for one, at in zip(results, best[1], strict=True)
    ]


def _n_found(found: Sequence[Ints]) -> int:
    return sum(int((one >= 0).sum()) for one in found)


def _find(keys: pa.Array, known: pa.Array) -> Ints:
    at = pc.index_in(keys, value_set=known)
    return at.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
