"""The description of an imported run, in the place of a specification: it is never made again.

The rows have the columns of every run (`facts_table`). Tools store one rank, so that the raw and
the filtered rank are equal. A run whose tool says only what is right has rank 1 or `UNRANKED`, like
generated answers. If the scores of all answers are known, the ranks, the margin and the
log-probabilities over the answers follow from them as in runs of statements.

Departure: Ranks of imported results
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lama_core.errors import UserError
from lama_core.probes.kinds import ProbeKind
from lama_core.runs.info import IMPORTED
from lama_core.runs.spec import RunSpec, ScoringJob


@dataclass(frozen=True, kw_only=True)
class ImportedSpec(RunSpec, kind=IMPORTED, version=3):
    """An imported run.

    answers: Name and digest of the ranked answers, empty if they aren't known.
    rows: Digest of the results; the file alone doesn't identify them, because its columns can be
        chosen.
    """

    answers: tuple[str, str] = ("", "")
    rows: str = ""

    def options(self) -> dict[str, Any]:
        """Return the digest of the rows."""
        return {"rows": self.rows}

    def prompt_name(self) -> str:
        """Return `imported`: the prompts are the tool's own."""
        return IMPORTED

    def candidate_list(self) -> tuple[str, str, bool]:
        """Return name and digest of the answers; case counts."""
        return (*self.answers, False)

    def prepare(self, scorer: Any, on_note: Callable[[str], None]) -> ScoringJob:
        """Refuse: only the tool that made the results can make them again."""
        raise UserError("An imported run can't be made again here: import its files again.")


IMPORTED_RUNS = ProbeKind(ImportedSpec, "imported results")
