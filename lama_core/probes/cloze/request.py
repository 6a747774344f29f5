"""The request of a run of cloze queries."""

from dataclasses import dataclass
from typing import Annotated

from lama_core.candidates.lists import COMMON
from lama_core.requests import option
from lama_core.scoring import shared_fields
from lama_core.scoring.prompt_choice import LPAQA_SETS, PROMPT_SETS


@dataclass(frozen=True)
class ProbeRequest(shared_fields.RunSettings, command="probe", python="probe"):
    """The fields of `probe`: a dataset to probe models with, and options.

    With relations () all relations with facts are used. With context None it is that of the paper:
    `left` for causal models and `both` for all others.
    """

    dataset: shared_fields.Dataset
    models: shared_fields.Models
    relations: shared_fields.Relations = ()
    prompts: Annotated[
        str,
        option(
            f"{', '.join(PROMPT_SETS)}; LPAQA's {', '.join(LPAQA_SETS)}, if its prompts are "
            "installed; or a folder with prompts in LPAQA's layout."
        ),
    ] = "manual"
    candidates: shared_fields.AnyCandidates = COMMON
    ranking: shared_fields.Ranking = "filtered"
    context: shared_fields.Context = None
    precision: shared_fields.Precision = "auto"
    limit: shared_fields.Limit = None
    open_book: shared_fields.OpenBook = None
    segments: shared_fields.Segments = False
    revisions: shared_fields.Revisions = ()
