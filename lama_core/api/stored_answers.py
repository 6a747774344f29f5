"""Answers from finished runs, for models that aren't installed."""

from lama_core.candidates.lists import COMMON, is_per_model
from lama_core.errors import UserError
from lama_core.lessons.stored_answers import Stored as Stored
from lama_core.lessons.stored_answers import find_stored as find_stored
from lama_core.models.protocols import KINDS
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.runs.find import list_runs
from lama_core.runs.info import RunInfo
from lama_core.scoring.shared_fields import ClozeSettings


def stored_runs(settings: ClozeSettings) -> dict[str, tuple[RunInfo, ...]]:
    """Return the finished cloze runs with the candidates and the context of some settings.

    No run ranks `own` words: runs on the words that its models share are the nearest.

    Returns:
        Model of the settings that is known but not installed -> its runs; without models that have
        none.
    """
    missing = [name for name in settings.models if _is_missing(name)]
    infos = list_runs(kinds=("cloze",)).intact().runs if missing else ()
    runs = {
        name: tuple(info for info in infos if info.model == name and _fits(info, settings))
        for name in missing
    }
    return {name: found for name, found in runs.items() if found}


def _is_missing(name: str) -> bool:
    try:
        return not is_here(find_model(name))
    except UserError:  # the model isn't known
        return False


def _fits(info: RunInfo, settings: ClozeSettings) -> bool:
    kind = find_model(info.model).kind
    usual = KINDS[kind].contexts[0] if kind else info.context
    listed = COMMON if is_per_model(settings.candidates) else settings.candidates
    return info.candidates == listed and info.context == (settings.context or usual)
