"""A library that measures what language models know: cloze queries, analogies, probing runs.

For notebooks: `import lama_core as lama`, then for example `lama.fill("Dante was born in ___.")`.
A function's module is imported when it is first used; so is a plug-in's.
"""

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lama_core.api.analogy_questions import analogy_questions as analogy_questions
    from lama_core.api.data import get_data as get_data
    from lama_core.api.data import import_data as import_data
    from lama_core.api.data import list_datasets as list_datasets
    from lama_core.api.data import load_dataset as load_dataset
    from lama_core.api.generation import generate as generate
    from lama_core.api.imported import import_run as import_run
    from lama_core.api.models import get_model as get_model
    from lama_core.api.models import list_models as list_models
    from lama_core.api.models import open_model as open_model
    from lama_core.api.models import use_device as use_device
    from lama_core.api.papers import reproduce as reproduce
    from lama_core.api.prompts import analyse_prompts as analyse_prompts
    from lama_core.api.prompts import both_ways as both_ways
    from lama_core.api.prompts import list_prompts as list_prompts
    from lama_core.api.prompts import mine_prompts as mine_prompts
    from lama_core.api.prompts import paraphrase_prompt as paraphrase_prompt
    from lama_core.api.prompts import select_prompts as select_prompts
    from lama_core.api.prompts import study as study
    from lama_core.api.results import results as results
    from lama_core.api.runs import analogy_probe as analogy_probe
    from lama_core.api.runs import export_run as export_run
    from lama_core.api.runs import extract as extract
    from lama_core.api.runs import list_runs as list_runs
    from lama_core.api.runs import load_run as load_run
    from lama_core.api.runs import probe as probe
    from lama_core.api.runs import read as read
    from lama_core.api.runs import statements as statements
    from lama_core.api.runs import trace as trace
    from lama_core.queries.analogy import analogy as analogy
    from lama_core.queries.answers import rank as rank
    from lama_core.queries.batch import batch as batch
    from lama_core.queries.cloze import fill as fill
    from lama_core.queries.grid import grid as grid
    from lama_core.queries.inspect import inspect as inspect
    from lama_core.queries.pairs import score_analogies as score_analogies
    from lama_core.queries.question import ask as ask
    from lama_core.queries.sentences import sentences as sentences
    from lama_core.queries.wordings import relation as relation
    from lama_core.views.analogies import analogies as analogies
    from lama_core.views.calibration import calibration as calibration
    from lama_core.views.compare import compare as compare
    from lama_core.views.correlations import correlations as correlations
    from lama_core.views.curves import curves as curves
    from lama_core.views.known_by import known_by as known_by
    from lama_core.views.margins import margins as margins
    from lama_core.views.mentions import mentions as mentions
    from lama_core.views.quartiles import quartiles as quartiles
    from lama_core.views.ranks import ranks as ranks
    from lama_core.views.relation_types import relation_types as relation_types
    from lama_core.views.scores import scores as scores
    from lama_core.views.slices import slices as slices
    from lama_core.views.totals import totals as totals
    from lama_core.views.training import training as training
    from lama_core.views.ways import ways as ways
    from lama_core.views.wording import wording as wording

__version__ = "0.2.0"
_MODULES = {
    "api.analogy_questions": "analogy_questions",
    "api.runs": "probe statements analogy_probe extract read load_run list_runs export_run trace",
    "api.imported": "import_run",
    "api.generation": "generate",
    "api.results": "results",
    "api.prompts": "list_prompts mine_prompts paraphrase_prompt select_prompts study "
    "analyse_prompts both_ways",
    "api.data": "list_datasets load_dataset get_data import_data",
    "api.models": "list_models get_model open_model use_device",
    "api.papers": "reproduce",
    "queries.batch": "batch",
    "queries.cloze": "fill",
    "queries.analogy": "analogy",
    "queries.answers": "rank",
    "queries.inspect": "inspect",
    "queries.grid": "grid",
    "queries.pairs": "score_analogies",
    "queries.question": "ask",
    "queries.sentences": "sentences",
    "queries.wordings": "relation",
    "views.analogies": "analogies",
    "views.calibration": "calibration",
    "views.correlations": "correlations",
    "views.compare": "compare",
    "views.curves": "curves",
    "views.known_by": "known_by",
    "views.mentions": "mentions",
    "views.relation_types": "relation_types",
    "views.margins": "margins",
    "views.quartiles": "quartiles",
    "views.ranks": "ranks",
    "views.scores": "scores",
    "views.slices": "slices",
    "views.totals": "totals",
    "views.training": "training",
    "views.ways": "ways",
    "views.wording": "wording",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = ["__version__", *sorted(_MODULE_OF)]


def __getattr__(name: str) -> Any:
    """Return a function of the library or of a plug-in, or the subpackage `models`."""
    if name in _MODULE_OF:
        return getattr(import_module(f"lama_core.{_MODULE_OF[name]}"), name)
    if name == "models":
        return import_module("lama_core.models")
    if not name.startswith("_") and not _is_module(name):
        function = import_module("lama_core.plugins").find_function(name)
        if function is not None:
            return function
    raise AttributeError(f"module 'lama_core' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return all names, including those that aren't imported yet and those of plug-ins."""
    plugins = import_module("lama_core.plugins")
    added = (name for table in plugins.FUNCTIONS for name in plugins.names(table))
    return sorted({*globals(), *__all__, *added})


def _is_module(name: str) -> bool:
    """Whether a module of the library has this name: Python asks for it before it imports it."""
    place = os.path.join(__path__[0], name)
    return os.path.isdir(place) or os.path.isfile(f"{place}.py")


class _Package(ModuleType):
    """This package; it makes its subpackage `models` callable, so that `lama.models()` works."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Make the subpackage `models` callable when it is imported."""
        if name == "models" and isinstance(value, ModuleType):
            value.__class__ = _CallablePackage
        super().__setattr__(name, value)


class _CallablePackage(ModuleType):
    """The subpackage `lama_core.models`; calling it calls `list_models`."""

    def __call__(self) -> Any:
        """Return the models as a DataFrame."""
        return import_module("lama_core.api.models").list_models()


sys.modules[__name__].__class__ = _Package
