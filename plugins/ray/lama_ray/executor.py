"""The row of the executor: Ray is imported when a run needs it."""

from typing import TYPE_CHECKING

from lama_core.errors import UserError

if TYPE_CHECKING:
    from lama_ray.cluster import RayExecutor


def make_executor() -> "RayExecutor":
    """Return the executor. Raises UserError if Ray isn't installed, or no cluster answers."""
    try:
        from lama_ray.cluster import RayExecutor
    except ModuleNotFoundError as error:
        raise UserError(
            "Ray is not installed: run `pip install ray`, or remove `--executor ray`."
        ) from error
    return RayExecutor()
