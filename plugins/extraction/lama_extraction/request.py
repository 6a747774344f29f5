"""The requests of runs of systems that find answers in texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from lama_core.candidates.lists import list_names
from lama_core.datasets.passages import STARTER
from lama_core.requests import option
from lama_core.runs.info import OWN_WORDS
from lama_core.scoring import shared_fields


@dataclass(frozen=True, kw_only=True)
class FindRequest(shared_fields.OutSettings):
    """The fields that `extract` and `read` share."""

    dataset: shared_fields.Dataset
    relations: shared_fields.Relations = ()
    corpus: Annotated[str, option(f"The text to read: {shared_fields.CORPUS}.")] = STARTER
    candidates: Annotated[
        str,
        option(
            f"The words that are ranked: {', '.join(list_names(of_relations=True))} or file:PATH. "
            "common and full are the words of the models given with --model."
        ),
    ] = OWN_WORDS
    models: Annotated[
        Sequence[str],
        option(
            "A model whose words are ranked with common or full; repeat for several.",
            name="--model",
        ),
    ] = ()
    ranking: shared_fields.Ranking = "filtered"
    limit: shared_fields.Limit = None


@dataclass(frozen=True, kw_only=True)
class ExtractRequest(FindRequest, command="extract", python="extract"):
    """The fields of `extract`: a dataset, a text to read, and ways of linking names."""

    linking: Annotated[
        Sequence[str],
        option(
            "How names are linked: naive (by exact string, RE_n) or oracle (with the right answer, "
            "RE_o). Default: both.",
            selects=True,
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class ReadRequest(FindRequest, command="read", python="read"):
    """The fields of `read`: question-answering models, a dataset, and a text to read."""

    readers: Annotated[
        Sequence[str],
        option(
            "A question-answering model's folder or hub name; repeat for several.", name="--reader"
        ),
    ]
