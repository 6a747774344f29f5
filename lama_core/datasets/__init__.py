"""Knowledge sources: facts and analogies, read from the formats that the field publishes."""

from lama_core.datasets.base import (
    AnalogyDataset,
    AnalogyRelation,
    Dataset,
    Dropped,
    ReadReport,
)
from lama_core.datasets.library import load_analogies, load_dataset

__all__ = [
    "AnalogyDataset",
    "AnalogyRelation",
    "Dataset",
    "Dropped",
    "ReadReport",
    "load_analogies",
    "load_dataset",
]
