"""The kinds of probe, with their run specifications and titles.

To add a kind, add a folder here with a subclass of `RunSpec`, a row to `KINDS`, and a page.
"""

from dataclasses import dataclass

from lama_core.probes.analogy.spec import AnalogySpec
from lama_core.probes.cloze.spec import ClozeSpec
from lama_core.probes.contrast.spec import ContrastSpec
from lama_core.probes.generation.spec import GenerationSpec
from lama_core.probes.prompts.spec import EnsembleSpec, StudySpec
from lama_core.probes.statements.spec import StatementSpec
from lama_core.probes.tracing.spec import TraceSpec
from lama_core.runs.importers.spec import ImportedSpec
from lama_core.runs.spec import RunSpec


@dataclass(frozen=True, slots=True)
class ProbeKind:
    """A kind of probe.

    Attributes:
        spec: The class of its run specifications.
        title: Its name for users.
        rows_are_facts: Whether its rows are facts, so that Results and Facts can show them.
    """

    spec: type[RunSpec]
    title: str
    rows_are_facts: bool

    @property
    def name(self) -> str:
        """The name of the kind in `run.json`."""
        return self.spec.kind


KINDS: dict[str, ProbeKind] = {
    kind.name: kind
    for kind in (
        ProbeKind(ClozeSpec, "cloze queries", True),
        ProbeKind(ContrastSpec, "negated or misprimed", True),
        ProbeKind(EnsembleSpec, "an ensemble of prompts", True),
        ProbeKind(StatementSpec, "whole answers", True),
        ProbeKind(GenerationSpec, "generated answers", True),
        ProbeKind(ImportedSpec, "imported results", True),
        ProbeKind(TraceSpec, "causal traces", False),
        ProbeKind(AnalogySpec, "analogies", False),
        ProbeKind(StudySpec, "a study of prompts", False),
    )
}
FACT_KINDS = tuple(name for name, kind in KINDS.items() if kind.rows_are_facts)
