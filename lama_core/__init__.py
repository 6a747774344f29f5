"""A library that measures what language models know: cloze queries, analogies, probing runs.

For notebooks: `import lama_core as lama`, then for example `lama.fill("Dante was born in ___.")`.
The functions are in `lama_core.api`, which is imported when one of them is first used.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lama_core.api.data import get_data, import_data, list_datasets, load_dataset
    from lama_core.api.generation import ask, generate
    from lama_core.api.models import get_model, list_models, open_model, use_device
    from lama_core.api.papers import reproduce
    from lama_core.api.prompts import (
        analyse_prompts,
        both_ways,
        list_prompts,
        mine_prompts,
        paraphrase_prompt,
        select_prompts,
        study,
    )
    from lama_core.api.queries import (
        analogy,
        batch,
        fill,
        inspect,
        rank,
        relation,
        score_analogies,
        sentences,
    )
    from lama_core.api.results import compare, results
    from lama_core.api.runs import (
        analogy_probe,
        extract,
        list_runs,
        load_run,
        probe,
        read,
        statements,
        trace,
    )

__version__ = "0.2.0"
_MODULES = {
    "queries": (
        "fill",
        "relation",
        "rank",
        "inspect",
        "batch",
        "sentences",
        "analogy",
        "score_analogies",
    ),
    "runs": (
        "probe",
        "statements",
        "analogy_probe",
        "extract",
        "read",
        "load_run",
        "list_runs",
        "trace",
    ),
    "generation": ("ask", "generate"),
    "results": ("results", "compare"),
    "prompts": (
        "list_prompts",
        "mine_prompts",
        "paraphrase_prompt",
        "select_prompts",
        "study",
        "analyse_prompts",
        "both_ways",
    ),
    "data": ("list_datasets", "load_dataset", "get_data", "import_data"),
    "models": ("list_models", "get_model", "open_model", "use_device"),
    "papers": ("reproduce",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
__all__ = [
    "__version__",
    "analogy",
    "analogy_probe",
    "analyse_prompts",
    "ask",
    "batch",
    "both_ways",
    "compare",
    "extract",
    "fill",
    "generate",
    "get_data",
    "get_model",
    "import_data",
    "inspect",
    "list_datasets",
    "list_models",
    "list_prompts",
    "list_runs",
    "load_dataset",
    "load_run",
    "mine_prompts",
    "open_model",
    "paraphrase_prompt",
    "probe",
    "rank",
    "read",
    "relation",
    "reproduce",
    "results",
    "score_analogies",
    "select_prompts",
    "sentences",
    "statements",
    "study",
    "trace",
    "use_device",
]


def __getattr__(name: str) -> Any:
    """Return a function of `lama_core.api`, or the subpackage `models`."""
    if name in _MODULE_OF:
        return getattr(import_module(f"lama_core.api.{_MODULE_OF[name]}"), name)
    if name == "models":
        return import_module("lama_core.models")
    raise AttributeError(f"module 'lama_core' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return all names, including those that aren't imported yet."""
    return sorted({*globals(), *__all__})


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
