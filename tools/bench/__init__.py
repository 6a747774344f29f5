"""Benchmarks: every claim of speed, measured beside its alternative and its limit in one run.

Machines are shared and noisy, so the ratios count, not the seconds. Each module has
`run(**options) -> list[BenchRow]`.
"""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One measurement.

    what: the thing measured. unit: of all three figures, such as `queries/s` or `s`.
    ours: this library. peer: an alternative. limit: what can't be beaten, such as the bare
    forward passes. All measured in the same run; None where there is none.
    """

    what: str
    unit: str
    ours: float
    peer: float | None = None
    peer_name: str = ""
    limit: float | None = None
    limit_name: str = ""

    def to_json(self) -> dict[str, Any]:
        """The row with its two ratios, null where there is nothing to compare."""
        ratios = {
            "ours_to_peer": self.ours / self.peer if self.peer else None,
            "ours_to_limit": self.ours / self.limit if self.limit else None,
        }
        return asdict(self) | ratios
