"""A library that measures what language models know: cloze queries, analogies, probing runs.

For notebooks: `import lama_core as lama`, then for example `lama.fill("Dante was born in ___.")`.
A function's module is imported when it is first used.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lama_core.datasets.library.download import get_data as get_data
    from lama_core.datasets.library.download import import_data as import_data
    from lama_core.datasets.library.installed import list_datasets as list_datasets
    from lama_core.datasets.library.installed import load_dataset as load_dataset
    from lama_core.models.cache import load_model as open_model  # noqa: F401
    from lama_core.models.devices import use_device as use_device
    from lama_core.models.listing import get_model as get_model
    from lama_core.models.listing import list_models as list_models
    from lama_core.probes.analogy.multiple_choice import analogy_questions as analogy_questions
    from lama_core.probes.analogy.plan import analogy_probe as analogy_probe
    from lama_core.probes.generation.plan import generate as generate
    from lama_core.probes.plan import probe as probe
    from lama_core.probes.prompts.analysing import analyse_prompts as analyse_prompts
    from lama_core.probes.prompts.backward import both_ways as both_ways
    from lama_core.probes.prompts.collecting import list_prompts as list_prompts
    from lama_core.probes.prompts.collecting import mine_prompts as mine_prompts
    from lama_core.probes.prompts.collecting import paraphrase_prompt as paraphrase_prompt
    from lama_core.probes.prompts.fitting import select_prompts as select_prompts
    from lama_core.probes.prompts.fitting import study as study
    from lama_core.probes.statements.plan import statements as statements
    from lama_core.probes.tracing.traces import trace as trace
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
    from lama_core.runs.manage import list_runs as list_runs
    from lama_core.runs.manage import load_run as load_run
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
    from lama_core.views.scores import results as results
    from lama_core.views.scores import scores as scores
    from lama_core.views.slices import slices as slices
    from lama_core.views.table import figure as figure
    from lama_core.views.totals import totals as totals
    from lama_core.views.training import training as training
    from lama_core.views.ways import ways as ways
    from lama_core.views.wording import wording as wording

__version__ = "0.2.0"
# Module -> the public names in it, the same as in the imports above, which only type checkers read;
# `open_model=load_model` is another name.
_MODULES = {
    "datasets.library.download": "get_data import_data",
    "datasets.library.installed": "list_datasets load_dataset",
    "models.cache": "open_model=load_model",
    "models.devices": "use_device",
    "models.listing": "get_model list_models",
    "probes.analogy.multiple_choice": "analogy_questions",
    "probes.analogy.plan": "analogy_probe",
    "probes.generation.plan": "generate",
    "probes.plan": "probe",
    "probes.prompts.analysing": "analyse_prompts",
    "probes.prompts.backward": "both_ways",
    "probes.prompts.collecting": "list_prompts mine_prompts paraphrase_prompt",
    "probes.prompts.fitting": "select_prompts study",
    "probes.statements.plan": "statements",
    "probes.tracing.traces": "trace",
    "queries.analogy": "analogy",
    "queries.answers": "rank",
    "queries.batch": "batch",
    "queries.cloze": "fill",
    "queries.grid": "grid",
    "queries.inspect": "inspect",
    "queries.pairs": "score_analogies",
    "queries.question": "ask",
    "queries.sentences": "sentences",
    "queries.wordings": "relation",
    "runs.manage": "list_runs load_run",
    "views.analogies": "analogies",
    "views.calibration": "calibration",
    "views.compare": "compare",
    "views.correlations": "correlations",
    "views.curves": "curves",
    "views.known_by": "known_by",
    "views.margins": "margins",
    "views.mentions": "mentions",
    "views.quartiles": "quartiles",
    "views.ranks": "ranks",
    "views.relation_types": "relation_types",
    "views.scores": "results scores",
    "views.slices": "slices",
    "views.table": "figure",
    "views.totals": "totals",
    "views.training": "training",
    "views.ways": "ways",
    "views.wording": "wording",
}
_NAMES = {
    name.partition("=")[0]: (f"lama_core.{module}", name.rpartition("=")[2])
    for module, names in _MODULES.items()
    for name in names.split()
}
__all__ = ["__version__", *sorted(_NAMES)]


def __getattr__(name: str) -> Any:
    """Return a function of the library or of a plug-in."""
    if name in _NAMES:
        module, there = _NAMES[name]
        return getattr(import_module(module), there)
    why = ""
    place = os.path.join(__path__[0], name)  # Python asks for a module before it imports it
    if not (name.startswith("_") or os.path.isdir(place) or os.path.isfile(f"{place}.py")):
        plugins = import_module("lama_core.plugins")
        if (function := plugins.find_function(name)) is not None:
            return function
        why = plugins.missing(name)
    raise AttributeError(why or f"module 'lama_core' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return all names, including those that aren't imported yet and those of plug-ins."""
    plugins = import_module("lama_core.plugins")
    added = (name for table in plugins.FUNCTIONS for name in plugins.names(table))
    return sorted({*globals(), *__all__, *added})
