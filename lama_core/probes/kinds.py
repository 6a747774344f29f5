"""The kinds of probe: what each is called, what its runs are, and how they are looked at.

A new kind is a folder here with a `RunSpec` of its own, a row in this table, and a page.
"""

from dataclasses import dataclass

from lama_core.probes.analogy.spec import AnalogySpec
from lama_core.probes.cloze.spec import ClozeSpec
from lama_core.probes.contrast.spec import ContrastSpec
from lama_core.probes.generation.spec import GenerationSpec
from lama_core.probes.prompts.spec import EnsembleSpec, StudySpec
from lama_core.probes.statements.spec import StatementSpec
from lama_core.runs.spec import RunSpec


@dataclass(frozen=True, slots=True)
class ProbeKind:
    """A kind of probe. title: for people. rows_are_facts: Results and Facts can show its rows."""

    spec: type[RunSpec]
    title: str
    rows_are_facts: bool

    @property
    def name(self) -> str:
        """As in `run.json`."""
        return self.spec.kind


KINDS: dict[str, ProbeKind] = {
    one.name: one
    for one in (
        ProbeKind(ClozeSpec, "cloze queries", True),
        ProbeKind(ContrastSpec, "negated or misprimed queries beside plain ones", True),
        ProbeKind(EnsembleSpec, "an ensemble of prompts", True),
        ProbeKind(StatementSpec, "statements with whole answers", True),
        ProbeKind(GenerationSpec, "generated answers", True),
        ProbeKind(AnalogySpec, "analogies", False),
        ProbeKind(StudySpec, "a study of prompts", False),
    )
}
FACT_KINDS = tuple(one.name for one in KINDS.values() if one.rows_are_facts)
