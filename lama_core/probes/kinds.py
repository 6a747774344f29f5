"""The kinds of probe: their specifications and requests, and the plans that lead to them.

To add a kind, add a folder here with a request, a subclass of `RunSpec` and a plan, and a row to
`KINDS`. If its rows are facts, add its name to `runs.info.FACT_KINDS`, too. A plug-in adds a kind
by its tables `kinds` and `probes`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lama_core import plugins
from lama_core.errors import UserError
from lama_core.probes.analogy import plan as analogy
from lama_core.probes.analogy.request import AnalogyRequest
from lama_core.probes.analogy.spec import AnalogySpec
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.cloze.spec import ClozeSpec
from lama_core.probes.contrast.spec import ContrastSpec
from lama_core.probes.extraction import plan as extraction
from lama_core.probes.extraction.request import ExtractRequest, ReadRequest
from lama_core.probes.generation import plan as generation
from lama_core.probes.generation.request import GenerateRequest
from lama_core.probes.generation.spec import GenerationSpec
from lama_core.probes.plan import plan
from lama_core.probes.prompts import plan as prompts
from lama_core.probes.prompts.request import SelectRequest, StudyRequest
from lama_core.probes.prompts.spec import EnsembleSpec, StudySpec
from lama_core.probes.statements import plan as statements
from lama_core.probes.statements.request import StatementsRequest
from lama_core.probes.statements.spec import StatementSpec
from lama_core.probes.tracing import plan as tracing
from lama_core.probes.tracing.request import TraceRequest
from lama_core.probes.tracing.spec import TraceSpec
from lama_core.requests import Function, Request, StoredRequest, from_record
from lama_core.runs.importers.importing import ImportRunRequest
from lama_core.runs.importers.spec import ImportedSpec
from lama_core.runs.info import RunInfo
from lama_core.runs.spec import Load, RunSpec, load_by_name

Plan = Callable[..., tuple[RunSpec, ...]]  # (request, load=...) -> the specifications of its runs


@dataclass(frozen=True, slots=True)
class ProbeKind:
    """A kind of probe.

    Attributes:
        spec: The class of its run specifications.
        title: Its name for users.
        plans: Class of the requests for its runs -> the plan; requests whose runs are of several
            kinds are with the first of these.
    """

    spec: type[RunSpec]
    title: str
    plans: Mapping[type[Request], Plan] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the kind in `run.json`."""
        return self.spec.kind


@dataclass(frozen=True, slots=True)
class AddedProbe:
    """What makes the runs of a plug-in.

    Attributes:
        function: The Python function, whose command prints the scores of the runs.
        plan: Its request and `load` -> the specifications of the runs.
        example: A command, without the program's name.
    """

    function: Function[..., Any, Any, Any]
    plan: Plan
    example: str


CLOZE: dict[type[Request], Plan] = {
    ProbeRequest: plan,
    ExtractRequest: extraction.plan_extract,
    ReadRequest: extraction.plan_read,
}
STUDIES: dict[type[Request], Plan] = {StudyRequest: prompts.plan, SelectRequest: prompts.plan}
KINDS: dict[str, ProbeKind] = {
    kind.name: kind
    for kind in (
        ProbeKind(ClozeSpec, "cloze queries", CLOZE),
        ProbeKind(ContrastSpec, "negated or misprimed"),
        ProbeKind(EnsembleSpec, "an ensemble of prompts"),
        ProbeKind(StatementSpec, "whole answers", {StatementsRequest: statements.plan}),
        ProbeKind(GenerationSpec, "generated answers", {GenerateRequest: generation.plan}),
        ProbeKind(ImportedSpec, "imported results"),
        ProbeKind(TraceSpec, "causal traces", {TraceRequest: tracing.plan}),
        ProbeKind(AnalogySpec, "analogies", {AnalogyRequest: analogy.plan}),
        ProbeKind(StudySpec, "a study of prompts", STUDIES),
    )
}
PLANS: dict[type[Request], Plan] = {
    request: made for kind in KINDS.values() for request, made in kind.plans.items()
}
_KNOWN: list[type[Request]] = [*PLANS, ImportRunRequest]
REQUESTS = {request.python: request for request in _KNOWN}
# Values of fields that requests of earlier versions don't record, by function.
BEFORE = {"statements": {"start_token": "always"}}


def plan_runs(request: Request, load: Load = load_by_name) -> tuple[RunSpec, ...]:
    """Return the specifications of a request's runs.

    Raises:
        UserError: If the request is invalid, or its data or models can't be loaded.
    """
    request.check()
    probe = None if type(request) in PLANS else plugins.find("probes", request.python)
    return (probe.plan if probe else PLANS[type(request)])(request, load=load)


def title_of(kind: str) -> str:
    """Return the title of a kind of run, by its name in `run.json`."""
    known = KINDS.get(kind) or plugins.find("kinds", kind)
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
        probe = plugins.find("probes", stored.function)
        if probe is None and stored.package:
            raise UserError(
                f"Runs of {stored.function!r} need the package {stored.package}: install it with "
                f"`pip install {stored.package}`."
            )
        if probe is None:
            raise UserError(
                f"This version can't make a run of {stored.function!r}. Start the run again."
            )
        request = probe.function.request
    return from_record(request, BEFORE.get(stored.function, {}) | stored.fields)
