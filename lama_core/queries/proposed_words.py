"""Words that a masked model proposes for a blank, for a causal model to rescore.

The bundled masked model sees both sides of the blank in one pass. It is the same for every query,
so that a model's answers don't depend on the models that it is compared with.
"""

import numpy as np

from lama_core.candidates.columns import Columns, OpenColumns
from lama_core.candidates.lists import WORDS, named_candidates
from lama_core.candidates.spelling import places_of
from lama_core.errors import WindowError
from lama_core.models.cache import load_model
from lama_core.scoring.shared_fields import DEFAULT_MODEL
from lama_core.types import Query

N_PROPOSED = 100


def proposed_columns(query: Query, columns: Columns) -> tuple[int, ...]:
    """Return the columns of the masked model's best words at a query's blank, with each spelling.

    Empty if the text is longer than the model's window, or the candidates are what a server lists.
    """
    if isinstance(columns, OpenColumns):
        return ()
    model = load_model(DEFAULT_MODEL)
    try:
        encoded = model.encode(query, "both")
    except WindowError:
        return ()
    words = named_candidates(WORDS, [model.vocabulary]).columns(model.vocabulary)
    log_probs = model.blank_log_probs([encoded], words).log_probs[0]
    best = [words.words[column] for column in np.argsort(-log_probs, kind="stable")[:N_PROPOSED]]
    spellings = [form for word in best for form in (word, word.capitalize(), word.upper())]
    found = columns.find_all(list(dict.fromkeys(spellings)), places_of(query)[0])
    return tuple(dict.fromkeys(column for column in found if isinstance(column, int)))
