"""The request of a run that ranks whole answers."""

from dataclasses import dataclass, field
from typing import Annotated

from lama_core.requests import option
from lama_core.scoring import shared_fields
from lama_core.scoring.answer_spaces import RELATION
from lama_core.scoring.statement_scores import AggregateChoice, PartChoice


@dataclass(frozen=True)
class StatementsRequest(shared_fields.RunSettings, command="statements", python="statements"):
    """The fields of `statements`: a dataset whose facts' answers are ranked as statements.

    With relations () all relations with facts are used. For relations without templates, the
    sentences of their facts are used.
    """

    dataset: shared_fields.Dataset
    models: shared_fields.Models
    relations: shared_fields.Relations = ()
    template: Annotated[
        int, option("Number of the template of each relation, counted from 0.", ge=0)
    ] = 0
    answers: Annotated[
        str,
        option(
            "The answers to rank: relation (each relation's answers), or file:PATH (one per line)."
        ),
    ] = RELATION
    aggregate: AggregateChoice = "sum"
    part: PartChoice = "statement"
    hiding: shared_fields.Hiding = "within-word"
    # A factory, so that runs record the default: earlier runs are `always`.
    start_token: shared_fields.StartToken = field(default_factory=lambda: "needed")
    ranking: shared_fields.Ranking = "filtered"
    precision: shared_fields.Precision = "auto"
    limit: shared_fields.Limit = None
    revisions: shared_fields.Revisions = ()
