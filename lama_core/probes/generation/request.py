"""The request of a run of generated answers."""

from dataclasses import dataclass
from typing import Annotated

from lama_core.requests import option
from lama_core.scoring import shared_fields


@dataclass(frozen=True)
class GenerateRequest(shared_fields.RunSettings, command="generate", python="generate"):
    """Questions to ask about a dataset's facts: the fields of `generate`."""

    dataset: shared_fields.Dataset
    models: shared_fields.Models
    relations: shared_fields.Relations = ()
    shots: Annotated[
        int,
        option("Examples from the same relation before each question.", ge=0, le=10),
    ] = 0
    seed: Annotated[int, option("Seed for drawing the examples.", ge=0)] = 0
    plain: Annotated[
        bool, option("Don't use the chat template: ask with `Question:` and `Answer:`.")
    ] = False
    precision: shared_fields.Precision = "auto"
    limit: shared_fields.Limit = None
    max_requests: Annotated[
        int, option("Maximum requests to a chat server; a run that needs more is refused.", ge=1)
    ] = 10_000
    price_in: Annotated[
        float | None, option("Price of a million input tokens of a chat server.", ge=0)
    ] = None
    price_out: Annotated[
        float | None, option("Price of a million output tokens of a chat server.", ge=0)
    ] = None
    revisions: shared_fields.Revisions = ()
