"""The kinds of probe: their specifications, and the functions that make their runs.

To add a kind, add a folder here with a request, a subclass of `RunSpec`, a plan and its
`RunFunction`, and a row to `KINDS`. If its rows are facts, add its name to `runs.info.FACT_KINDS`,
too. A plug-in adds a kind by its tables `kinds` and `probes`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lama_core import plugins
from lama_core.errors import UserError
from lama_core.probes.analogy.plan import analogy_probe
from lama_core.probes.analogy.spec import AnalogySpec
from lama_core.probes.cloze.spec import ClozeSpec
from lama_core.probes.contrast.spec import ContrastSpec
from lama_core.probes.generation.plan import generate
from lama_core.probes.generation.spec import GenerationSpec
from lama_core.probes.making_runs import RunFunction
from lama_core.probes.plan import probe
from lama_core.probes.prompts.fitting import select_prompts, study
from lama_core.probes.prompts.spec import EnsembleSpec, StudySpec
from lama_core.probes.statements.plan import statements
from lama_core.probes.statements.spec import StatementSpec
from lama_core.probes.tracing.spec import TraceSpec
from lama_core.probes.tracing.traces import trace
from lama_core.requests import Request, StoredRequest, from_record
from lama_core.runs import parts
from lama_core.runs.info import RunInfo
from lama_core.runs.manage import own_folder
from lama_core.runs.spec import RunSpec


@dataclass(frozen=True, slots=True)
class ProbeKind:
    """A kind of probe.

    Attributes:
        spec: The class of its run specifications.
        title: Its name for users.
        functions: The functions that make its runs; one that makes runs of several kinds is with
            the first of these.
        page: Path of a plug-in's page that shows such a run, whose name is its parameter `run`.
        unit: What such a run counts, in the singular.
    """

    spec: type[RunSpec]
    title: str
    functions: tuple[RunFunction[..., Any, Any], ...] = ()
    page: str = ""
    unit: str = "fact"

    @property
    def requests(self) -> tuple[type[Request], ...]:
        """The classes of the requests for its runs."""
        return tuple(function.request for function in self.functions)


KINDS: dict[str, ProbeKind] = {
    kind.spec.kind: kind
    for kind in (
        ProbeKind(ClozeSpec, "cloze queries", (probe,)),
        ProbeKind(ContrastSpec, "negated or misprimed"),
        ProbeKind(EnsembleSpec, "an ensemble of prompts"),
        ProbeKind(StatementSpec, "whole answers", (statements,)),
        ProbeKind(GenerationSpec, "generated answers", (generate,)),
        ProbeKind(TraceSpec, "causal traces", (trace,)),
        ProbeKind(AnalogySpec, "analogies", (analogy_probe,), unit="decision"),
        ProbeKind(StudySpec, "a study of prompts", (study, select_prompts)),
    )
}
REQUESTS: dict[str, type[Request]] = {
    request.python: request for kind in KINDS.values() for request in kind.requests
}
# Values of fields that requests of earlier versions don't record, by function.
BEFORE = {"statements": {"start_token": "always"}}


def find_kind(kind: str) -> ProbeKind | None:
    """Return a kind of run by its name in `run.json`; None if its plug-in isn't installed."""
    found: ProbeKind | None = KINDS.get(kind) or plugins.find("kinds", kind)
    return found


def title_of(kind: str) -> str:
    """Return the title of a kind of run, by its name in `run.json`."""
    known = find_kind(kind)
    return known.title if known else kind


def request_of(info: RunInfo) -> Request | None:
    """Return the request that made a run and perhaps others; None if it isn't stored.

    Runs of earlier versions don't store it.

    Raises:
        UserError: If it can't be read.
    """
    return None if info.request is None else read_request(info.request)


def read_request(stored: StoredRequest) -> Request:
    """Return a stored request.

    Raises:
        UserError: If its function doesn't make runs in this version, or a field is invalid.
    """
    request = REQUESTS.get(stored.function)
    if request is None:
        probe = plugins.find("probes", stored.function) or plugins.find("imports", stored.function)
        if probe is None and stored.package:
            raise UserError(
                f"Runs of {stored.function!r} need the package {stored.package}: install it with "
                f"`pip install {stored.package}`."
            )
        if probe is None:
            raise UserError(
                plugins.missing(stored.function)
                or f"This version can't make a run of {stored.function!r}. Start the run again."
            )
        request = probe.request
    return from_record(request, BEFORE.get(stored.function, {}) | stored.fields)


def saved_request(name: str) -> tuple[Request, Path]:
    """Return the request that started an unfinished run, and the working folder at that time.

    Args:
        name: Name of the run's folder, such as `starter-minilm_mlm-manual-0123456789.part`.

    Returns:
        The request, and the folder that its relative paths start from.

    Raises:
        UserError: If there is no such run, it is bundled, or its request wasn't saved.
    """
    stored = parts.read_started(own_folder(name))
    return read_request(stored), Path(stored.folder)
