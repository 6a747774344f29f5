"""Knowledge sources: facts and analogies, read from the formats that the field publishes."""

from lama_core.datasets.dataset import (
    AnalogyDataset,
    Dataset,
    Dropped,
    ReadReport,
    relation_objects,
)
from lama_core.datasets.library.installed import (
    analogy_names,
    load_analogies,
    load_dataset,
)

__all__ = [
    "AnalogyDataset",
    "Dataset",
    "Dropped",
    "ReadReport",
    "analogy_names",
    "load_analogies",
    "load_dataset",
    "relation_objects",
]
