"""What a person chooses before models are asked, checked; and the models made ready for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, get_args

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import named_candidates
from lama_core.errors import UserError, did_you_mean
from lama_core.models.base import RESCORED, Context
from lama_core.models.loader import Precision, load_model
from lama_core.models.sources import OnProgress, silent

if TYPE_CHECKING:
    from lama_core.models.loader import Model

DEFAULT_MODEL = "minilm-mlm"
MAX_MODELS = 8


@dataclass(frozen=True, slots=True)
class ClozeSettings:
    """The settings that a cloze query is asked with.

    context: None leaves it to `scoring.choose_context`. n_rescored: how many words of the left
    context a causal model rescores with context `both`.
    """

    models: tuple[str, ...]
    candidates: str = "common"
    context: Context | None = None
    precision: Precision = "fp32"
    n_rescored: int = RESCORED


def parse_context(text: str | None) -> Context | None:
    """`left`, `both`, or None. Raises UserError for anything else."""
    return cast(Context | None, _one_of(text, get_args(Context), "context")) if text else None


def parse_precision(text: str) -> Precision:
    """`auto`, `fp32` or `bf16`. Raises UserError for anything else."""
    return cast(Precision, _one_of(text, get_args(Precision), "precision"))


def _one_of(text: str, choices: Sequence[str], what: str) -> str:
    if text not in choices:
        near = did_you_mean(text, choices)
        raise UserError(f"Unknown {what} {text!r}{near or '.'} Choose {' or '.join(choices)}.")
    return text


def check_choice(settings: ClozeSettings) -> None:
    """Raise UserError if the choice can't be asked: no model, too many, or one twice."""
    if not settings.models:
        raise UserError("No model is chosen: choose at least one.")
    if len(settings.models) > MAX_MODELS:
        raise UserError(f"{len(settings.models)} models are chosen; at most {MAX_MODELS} fit.")
    doubles = {name for name in settings.models if settings.models.count(name) > 1}
    if doubles:
        raise UserError(f"The model {sorted(doubles)[0]!r} is chosen twice: leave one out.")
    if settings.n_rescored < 2:
        raise UserError(f"{settings.n_rescored} words to rescore are too few: choose at least 2.")


def load_models(settings: ClozeSettings, on_progress: OnProgress = silent) -> tuple["Model", ...]:
    """The chosen models, fetched and loaded where they must be.

    Raises UserError for what `check_choice` and `load_model` refuse.
    """
    check_choice(settings)
    return tuple(
        load_model(name, precision=settings.precision, on_progress=on_progress)
        for name in settings.models
    )


def choose_candidates(settings: ClozeSettings, models: Sequence["Model"]) -> Candidates:
    """The candidates that fit all the models."""
    return named_candidates(settings.candidates, [model.vocabulary for model in models])
