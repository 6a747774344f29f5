"""Fields that several requests share, checked; and the models made ready for a request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from lama_core.candidates.columns import Candidates as CandidateColumns
from lama_core.candidates.lists import COMMON, list_names, named_candidates
from lama_core.errors import UserError
from lama_core.models.cache import Precision as PrecisionName
from lama_core.models.cache import load_model
from lama_core.models.protocols import RESCORED, Kind
from lama_core.models.protocols import Context as ContextName
from lama_core.models.protocols import Hiding as HidingName
from lama_core.progress import OnProgress, silent
from lama_core.requests import Request, option
from lama_core.scoring.ranking import Ranking as RankingName

if TYPE_CHECKING:
    from lama_core.models.registry import Model

DEFAULT_MODEL = "minilm-mlm"
MAX_MODELS = 8
MAX_TOP_K = 100
CORPUS = "starter (MiniLM-MLM's training text), a folder of texts, or a JSONL file"

MODEL = "A model's name, folder or hub name (owner/name)"
ModelName = Annotated[str, option(f"{MODEL}.")]
Models = Annotated[Sequence[str], option(f"{MODEL}; repeat for several.", name="--model")]
Precision = Annotated[
    PrecisionName,
    option("fp32, bf16, or auto: fp32 on a CPU; on a GPU bf16 if the weights are stored in bf16."),
]
Context = Annotated[
    ContextName | None,
    option(
        "What a causal model sees: left, or both sides of the blank. Default: for a typed text "
        "both unless only punctuation follows the blank; in runs left."
    ),
]
Rescored = Annotated[
    int,
    option(
        "With context both: how many words of the left context a causal model rescores.",
        name="--rescored",
        ge=2,
    ),
]
Candidates = Annotated[
    str,
    option(f"The words that are ranked: {', '.join(list_names(of_relations=False))} or file:PATH."),
]
AnyCandidates = Annotated[
    str,
    option(f"The words that are ranked: {', '.join(list_names(of_relations=True))} or file:PATH."),
]
Renormalise = Annotated[
    bool, option("Show probabilities over the candidates, not over the whole vocabulary.")
]
TopK = Annotated[int, option("Number of predictions to show.", ge=1, le=MAX_TOP_K)]
Gold = Annotated[str | None, option("The gold (right) answer: its rank is shown.")]
OpenBook = Annotated[
    str | None, option(f"Put the nearest passage of this corpus before each query: {CORPUS}.")
]
Segments = Annotated[
    bool,
    option(
        "With --open-book, for BERT and models like it: encode passage and query as two segments "
        "divided by [SEP], as LAMA's released code encodes two sentences. Default: one text."
    ),
]
Hiding = Annotated[
    HidingName,
    option(
        "For models that see both sides, what is hidden with a token: within-word hides the later "
        "subword tokens of its word (Kauf and Ivanova 2023); original hides nothing else (Salazar "
        "et al. 2020); rest-of-sentence hides all later tokens; rest-of-answer hides the answer's "
        "later tokens, and outside the answer those of the word."
    ),
]

Dataset = Annotated[str, option("A dataset's name, or a folder in LAMA's layout.")]
Relations = Annotated[
    Sequence[str], option("Only this relation; repeat for several.", name="--relation")
]
Limit = Annotated[int | None, option("The first N facts of each relation, in file order.", ge=1)]
Ranking = Annotated[
    RankingName,
    option("filtered (other valid objects excluded) or raw; runs keep both, this one is shown."),
]
Out = Annotated[Path | None, option("Folder of the runs. Default: the user's own.")]
ExecutorName = Annotated[
    Literal["local", "ray"], option("Where queries are scored: local, or ray for a Ray cluster.")
]


def _default_models() -> tuple[str, ...]:
    """The default, made by a function so that exported commands name it."""
    return (DEFAULT_MODEL,)


@dataclass(frozen=True, kw_only=True)
class ModelSettings(Request):
    """Which models are queried side by side, and in which precision."""

    models: Models = field(default_factory=_default_models)
    precision: Precision = "auto"

    def check(self) -> None:
        """Raise UserError for no model, too many models, or one model twice."""
        super().check()
        check_models(self.models)


@dataclass(frozen=True, kw_only=True)
class ClozeSettings(ModelSettings):
    """The settings of a cloze query. context: None leaves it to `scoring.choose_context`."""

    candidates: Candidates = COMMON
    context: Context = None
    n_rescored: Rescored = RESCORED


@dataclass(frozen=True, kw_only=True)
class OutSettings(Request):
    """Where runs are kept; a run's numbers and identity don't depend on it."""

    out: Out = None


@dataclass(frozen=True, kw_only=True)
class RunSettings(OutSettings):
    """Where runs are kept and computed; a run's numbers and identity don't depend on it."""

    executor: ExecutorName = "local"


def check_models(models: Sequence[str]) -> None:
    """Raise UserError for no model, too many models, or one model twice."""
    if not models:
        raise UserError("No model is chosen: choose at least one.")
    if len(models) > MAX_MODELS:
        raise UserError(f"{len(models)} models are chosen; the maximum is {MAX_MODELS}.")
    doubles = {name for name in models if models.count(name) > 1}
    if doubles:
        raise UserError(f"The model {sorted(doubles)[0]!r} is chosen twice: leave one out.")


def check_segments(asked: bool, open_book: str | None, kinds: Mapping[str, Kind]) -> None:
    """Raise UserError where there are no two segments, or for a model that can't tell them apart.

    kinds: Of each model by its name.
    """
    if not asked:
        return
    if open_book is None:
        raise UserError("Two segments are a passage and a query: give --open-book with --segments.")
    for name, kind in kinds.items():
        if kind != "masked":
            raise UserError(
                f"{name} reads a text as one segment: leave out --segments, or choose masked "
                "models."
            )


def load_models(settings: ModelSettings, on_progress: OnProgress = silent) -> tuple["Model", ...]:
    """Return the chosen models, fetched and loaded where necessary.

    Raises UserError for what `check` and `load_model` refuse.
    """
    settings.check()
    return tuple(
        load_model(name, precision=settings.precision, on_progress=on_progress)
        for name in settings.models
    )


def choose_candidates(settings: ClozeSettings, models: Sequence["Model"]) -> CandidateColumns:
    """Return the candidates that fit all the models."""
    return named_candidates(settings.candidates, [model.vocabulary for model in models])
