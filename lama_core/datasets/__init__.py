"""Knowledge sources: facts and analogies, read from the formats that the field publishes."""

from lama_core.datasets.dataset import (
    AnalogyDataset,
    AnalogyRelation,
    Dataset,
    Dropped,
    ReadReport,
    relation_objects,
)
from lama_core.datasets.library.installed import (
    analogy_names,
    dataset_names,
    lama_vocabulary_path,
    listing,
    load_analogies,
    load_dataset,
)

__all__ = [
    "AnalogyDataset",
    "AnalogyRelation",
    "Dataset",
    "Dropped",
    "ReadReport",
    "analogy_names",
    "dataset_names",
    "lama_vocabulary_path",
    "listing",
    "load_analogies",
    "load_dataset",
    "relation_objects",
]
