"""What a person chooses before models are asked, checked; and the models made ready for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import COMMON, named_candidates
from lama_core.errors import UserError
from lama_core.models.base import RESCORED, Context
from lama_core.models.loader import Precision, load_model
from lama_core.progress import OnProgress, silent
from lama_core.requests import option

if TYPE_CHECKING:
    from lama_core.models.backends import Model

DEFAULT_MODEL = "minilm-mlm"
MAX_MODELS = 8


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Which models are asked side by side, and in which precision."""

    models: tuple[str, ...] = option("--model")
    precision: Precision = "auto"

    def check(self) -> None:
        """Raise UserError if the choice can't be asked: no model, too many, or one twice."""
        if not self.models:
            raise UserError("No model is chosen: choose at least one.")
        if len(self.models) > MAX_MODELS:
            raise UserError(f"{len(self.models)} models are chosen; at most {MAX_MODELS} fit.")
        doubles = {name for name in self.models if self.models.count(name) > 1}
        if doubles:
            raise UserError(f"The model {sorted(doubles)[0]!r} is chosen twice: leave one out.")


@dataclass(frozen=True, kw_only=True)
class ClozeSettings(ModelSettings):
    """The settings that a cloze query is asked with.

    context: None leaves it to `scoring.choose_context`. n_rescored: how many words of the left
    context a causal model rescores with context `both`.
    """

    candidates: str = COMMON
    context: Context | None = None
    n_rescored: int = option("--rescored", default=RESCORED)

    def check(self) -> None:
        """Raise UserError if the choice can't be asked, or too few words are to be rescored."""
        super().check()
        if self.n_rescored < 2:
            raise UserError(f"{self.n_rescored} words to rescore are too few: choose at least 2.")


def load_models(settings: ModelSettings, on_progress: OnProgress = silent) -> tuple["Model", ...]:
    """The chosen models, fetched and loaded where they must be.

    Raises UserError for what `ModelSettings.check` and `load_model` refuse.
    """
    settings.check()
    return tuple(
        load_model(name, precision=settings.precision, on_progress=on_progress)
        for name in settings.models
    )


def choose_candidates(settings: ClozeSettings, models: Sequence["Model"]) -> Candidates:
    """The candidates that fit all the models."""
    return named_candidates(settings.candidates, [model.vocabulary for model in models])
