"""Free-form answers to questions about a dataset's facts."""

from lama_core.api.runs import run
from lama_core.models.server.addresses import is_chat as is_chat
from lama_core.probes.generation.request import GenerateRequest as GenerateRequest
from lama_core.requests import Function

generate = Function(
    GenerateRequest,
    run,
    lambda runs: runs,
    """Ask models questions about a dataset's facts, in free text; make a run for each model.

    A text is right if whole words of it are the right answer or one of its aliases.

    Returns:
        The runs; `.frame` has a row for each model and fact, with the text in `answer`.

    Raises:
        UserError: If a model can't generate text, or a relation has too few facts for the examples.
    """,
)
