"""Download a published knowledge source; a model may propose the words of misprimed queries."""

from lama_core.candidates.lists import named_candidates
from lama_core.datasets.library.download import (
    GetRequest,
    Installed,
    get_dataset,
    report_installed,
)
from lama_core.datasets.library.published import source
from lama_core.datasets.variants import Guess
from lama_core.errors import UserError
from lama_core.models.cache import load_model
from lama_core.models.protocols import KINDS
from lama_core.queries.blank_answers import query_model
from lama_core.requests import Function
from lama_core.scoring.blanks import parse_query


def _get(request: GetRequest) -> Installed:
    published = source(request.name)
    note = f"{published.title}; licence: {published.licence}; cite: {published.citation}"
    request.on_note(f"{note}; {published.note}" if published.note else note)
    guess: Guess | None = None
    if request.guesser:
        model = load_model(request.guesser, on_progress=request.on_progress)
        if not KINDS[model.kind].sees_both:
            raise UserError(
                f"{request.guesser} can't use the text after a blank. Choose a masked model."
            )
        candidates = named_candidates("full", [model.vocabulary])

        def guess(text: str, k: int) -> list[str]:
            answer = query_model(model, parse_query(text), candidates, top_k=k)
            return [prediction.token for prediction in answer.blanks[0].predictions]

    added = get_dataset(
        request.name,
        on_progress=request.on_progress,
        repin=request.repin,
        compute=request.compute,
        guess=guess,
    )
    report_installed(added, request)
    return added


get_data = Function(
    GetRequest,
    _get,
    lambda added: added.dataset,
    """Download a published source from its authors; an interrupted download resumes.

    Returns:
        The dataset.

    Raises:
        UserError: If the source is unknown, the download fails, or its checksum differs.
    """,
)
