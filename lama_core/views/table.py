"""The table of all views of finished runs."""

from typing import TYPE_CHECKING, Any

from lama_core import plugins
from lama_core.errors import choose
from lama_core.views.analogies import analogies
from lama_core.views.calibration import calibration
from lama_core.views.compare import compare
from lama_core.views.correlations import correlations
from lama_core.views.curves import curves
from lama_core.views.known_by import known_by
from lama_core.views.margins import margins
from lama_core.views.mentions import mentions
from lama_core.views.quartiles import quartiles
from lama_core.views.ranks import ranks
from lama_core.views.relation_types import relation_types
from lama_core.views.scores import scores
from lama_core.views.slices import slices
from lama_core.views.totals import totals
from lama_core.views.training import training
from lama_core.views.view import EDITED_WIDTH, ViewFunction
from lama_core.views.ways import ways
from lama_core.views.wording import wording

if TYPE_CHECKING:
    import altair

# To add a view, add a row, here or to the table `views` of a plug-in. Its command and the test of
# all views follow.
VIEWS: tuple[ViewFunction[..., Any, Any], ...] = (
    scores,
    curves,
    ranks,
    quartiles,
    calibration,
    margins,
    correlations,
    slices,
    known_by,
    totals,
    mentions,
    wording,
    relation_types,
    analogies,
    ways,
    training,
    compare,
)


def all_views() -> tuple[ViewFunction[..., Any, Any], ...]:
    """Return the views, those of plug-ins last."""
    return (*VIEWS, *plugins.rows("views").values())


def figure(view: str, *, width: float = EDITED_WIDTH, **fields: Any) -> "altair.LayerChart":
    """Return the chart of a view of finished runs, for notebooks.

    Args:
        view: The name of the view's function, such as `curves`.
        width: The width in pixels, from 200 to 4,000.
        **fields: The arguments of that function, such as `runs`.

    Returns:
        An Altair chart: a notebook shows it, and `save("curves.svg")` writes it.

    Raises:
        UserError: If the view is unknown or has no chart, and as the function does.
    """
    charted = {one.__name__: one for one in all_views() if one.view.has_figure}
    function = charted[choose(view, charted, "chart")]
    return function.answer(function.asked(**fields)).chart(width)
