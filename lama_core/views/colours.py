"""One colour per model, the same on every page, chart and file.

The palette is that of Okabe and Ito (2008), which colour-blind people can tell apart. It excludes
their yellow and replaces black by grey, because these are hard to see on a light or a dark page.
Blue and vermilion are lighter, to be visible on both.
"""

from collections.abc import Sequence

from lama_core.models.sources.catalog import known_models
from lama_core.runs.info import RunInfo

GREY = "#8a8f98"
PALETTE = (
    "#2c86c7",  # blue
    "#e0913a",  # orange
    "#1aa179",  # bluish green
    "#c76aa5",  # reddish purple
    "#dd5b33",  # vermilion
    "#62b5e8",  # sky blue
    GREY,
    "#9a7b4f",  # brown
)
PUBLISHED = GREY


def model_colours(names: Sequence[str]) -> dict[str, str]:
    """Model name -> colour.

    The colour follows from the model's place in the catalogue. If two models in `names` have the
    same colour, the later one gets the next free colour.
    """
    places = {entry.name: place for place, entry in enumerate(known_models())}
    colours: dict[str, str] = {}
    for name in names:
        start = places.get(name, sum(name.encode()))
        choices = [PALETTE[(start + step) % len(PALETTE)] for step in range(len(PALETTE))]
        free = [colour for colour in choices if colour not in colours.values()]
        colours.setdefault(name, (free or choices)[0])
    return colours


def run_colours(runs: Sequence[RunInfo], known: Sequence[str] = ()) -> dict[str, str]:
    """Run id -> the model's colour; a model's second run gets a free colour.

    known: further models with a run, so that a model's colour doesn't depend on the choice of runs.
    """
    of_model = model_colours([*known, *(run.model for run in runs)])
    colours: dict[str, str] = {}
    for run in runs:
        colour = of_model[run.model]
        free = [one for one in PALETTE if one not in colours.values()]
        free.sort(key=lambda one: one in of_model.values())  # not another model's, if possible
        colours[run.id] = free[0] if colour in colours.values() and free else colour
    return colours
