"""The table of all views of finished runs."""

from typing import Any

from lama_core.views.analogies import analogies
from lama_core.views.curves import curves
from lama_core.views.known_by import known_by
from lama_core.views.mentions import mentions
from lama_core.views.relation_types import relation_types
from lama_core.views.scores import scores
from lama_core.views.slices import slices
from lama_core.views.totals import totals
from lama_core.views.training import training
from lama_core.views.view import ViewFunction
from lama_core.views.ways import ways
from lama_core.views.wording import wording

# To add a view, add a row. Its command and the test of all views follow from this table.
VIEWS: tuple[ViewFunction[..., Any, Any], ...] = (
    scores,
    curves,
    slices,
    known_by,
    totals,
    mentions,
    wording,
    relation_types,
    analogies,
    ways,
    training,
)
