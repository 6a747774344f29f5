"""`bench`: say where the benchmarks are."""

from typing import Annotated

from cyclopts import Parameter

from lama_core.cli import commands
from lama_core.errors import UserError


def run(*words: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)]) -> None:
    """Say where the benchmarks are: not in the package, but in a checkout of the project.

    Raises:
        UserError: Always.
    """
    raise UserError(
        "The benchmarks are in a checkout of the project. Run there: python -m tools.bench "
        f"{' '.join(words)}".rstrip()
    )


bench = commands.make_group("bench", run)
