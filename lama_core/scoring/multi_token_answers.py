"""The answers of a dataset that are more than one token of the embedded model."""

from dataclasses import dataclass

from lama_core.candidates.spelling import Spelling
from lama_core.datasets import Dataset
from lama_core.models.cache import load_model
from lama_core.models.sources.catalog import find_model
from lama_core.scoring.shared_fields import DEFAULT_MODEL


@dataclass(frozen=True)
class MultiTokenAnswers:
    """The objects of a dataset that a model can't predict at a single blank.

    Attributes:
        model: Title of the model.
        long: The distinct objects that aren't a single token of the model, in file order.
        n_objects: Number of distinct objects.
    """

    model: str
    long: tuple[str, ...]
    n_objects: int


def find_multi_token_answers(dataset: Dataset) -> MultiTokenAnswers:
    """Return the facts' objects that are several tokens of the embedded model.

    Cloze queries exclude their facts.
    """
    spelling = Spelling(load_model(DEFAULT_MODEL).vocabulary)
    objects = tuple(dict.fromkeys(fact.object for fact in dataset.facts))
    long = tuple(word for word in objects if not spelling.tokens(word))
    return MultiTokenAnswers(find_model(DEFAULT_MODEL).title, long, len(objects))
