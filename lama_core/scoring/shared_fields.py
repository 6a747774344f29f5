"""Fields and checks that several requests share, and the loading of a request's models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from lama_core.candidates.columns import Candidates as CandidateColumns
from lama_core.candidates.lists import COMMON, list_names, named_candidates
from lama_core.errors import UserError
from lama_core.models.cache import Precision as PrecisionName
from lama_core.models.cache import load_model
from lama_core.models.protocols import RESCORED, Kind
from lama_core.models.protocols import Context as ContextName
from lama_core.models.protocols import Hiding as HidingName
from lama_core.models.protocols import StartToken as StartTokenName
from lama_core.models.sources.catalog import known_models
from lama_core.requests import Request, option
from lama_core.scoring.ranking import Ranking as RankingName

if TYPE_CHECKING:
    from lama_core.models.registry import Model

DEFAULT_MODEL = "minilm-mlm"
MAX_MODELS = 8
MAX_TOP_K = 100
CORPUS = "starter (MiniLM-MLM's training text), a folder of texts, or a JSONL file"

MODEL = "A model's name, folder or hub name (owner/name or owner/name@revision)"
ModelName = Annotated[str, option(f"{MODEL}.")]
Models = Annotated[Sequence[str], option(f"{MODEL}; repeat for several.", name="--model")]
Revisions = Annotated[
    Sequence[str],
    option(
        "Checkpoints, separated by commas; each is one run: revisions of a hub model, or folders "
        "in a folder of checkpoints. Default: all checkpoints of such a folder.",
        selects=True,
    ),
]
Precision = Annotated[
    PrecisionName,
    option(
        "fp32, bf16, bf16-weights (weights rounded to bf16, computed in fp32; this is also what "
        "bf16 means on a CPU without instructions for bf16), or auto: fp32 on a CPU; on a GPU bf16 "
        "if the weights are stored in bf16."
    ),
]
Context = Annotated[
    ContextName | None,
    option(
        "What a causal model sees: left, or both sides of the blank. Default: for a typed text "
        "both unless only punctuation follows the blank; in runs left."
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
        "separated by [SEP], as LAMA's released code encodes two sentences. Default: one segment."
    ),
]
Hiding = Annotated[
    HidingName,
    option(
        "Which tokens a masked model hides together with the token that it scores. within-word: "
        "the later subword tokens of its word (Kauf and Ivanova 2023). original: none (Salazar et "
        "al. 2020). rest-of-sentence: all later tokens. rest-of-answer: in the answer its later "
        "tokens, elsewhere those of the word."
    ),
]
StartToken = Annotated[
    StartTokenName,
    option(
        "When a causal model whose tokenizer adds no start token by itself gets one. needed: only "
        "where the text would begin with the answer, as in cloze queries. always: before every "
        "sentence, which lm-pub-quiz's numbers need (Wiland et al. 2024)."
    ),
]

Dataset = Annotated[str, option("A dataset's name, or a folder in LAMA's layout.")]
Relations = Annotated[
    Sequence[str],
    option("Only this relation; repeat for several.", name="--relation", selects=True),
]
Facts = Annotated[
    str,
    option(
        "Only these facts: a file with an id on each line, or what `only` is in a link of the app. "
        "Default: all."
    ),
]
Limit = Annotated[
    int | None, option("Only the first N facts of each relation, in file order.", ge=1)
]
Ranking = Annotated[
    RankingName,
    option("Ranking to show: filtered (other valid objects excluded) or raw. Runs keep both."),
]


@dataclass(frozen=True, kw_only=True)
class ModelSettings(Request):
    """The models of a request, and their precision."""

    # A factory, because exported commands then name the model.
    models: Models = field(default_factory=lambda: (DEFAULT_MODEL,))
    precision: Precision = "auto"

    def check(self) -> None:
        """Raise UserError for no model, too many models, or one model twice."""
        super().check()
        if not self.models:
            raise UserError("No model is chosen: choose at least one.")
        if len(self.models) > MAX_MODELS:
            raise UserError(f"{len(self.models)} models are chosen; the maximum is {MAX_MODELS}.")
        doubles = {name for name in self.models if self.models.count(name) > 1}
        if doubles:
            raise UserError(f"The model {min(doubles)!r} is chosen twice: remove one.")


@dataclass(frozen=True, kw_only=True)
class CandidateSettings(ModelSettings):
    """The models of a request, and the words that they rank."""

    candidates: Candidates = COMMON

    @property
    def ranked(self) -> "CandidateSettings":
        """The fields that determine the ranked words, without those of the kind of query."""
        return CandidateSettings(
            models=self.models, precision=self.precision, candidates=self.candidates
        )


@dataclass(frozen=True, kw_only=True)
class ClozeSettings(CandidateSettings):
    """The settings of a cloze query; if context is None, `batches.choose_context` chooses it."""

    context: Context = None
    n_rescored: Annotated[
        int,
        option(
            "With context both: how many proposed words a causal model scores in the whole "
            "sentence.",
            name="--rescored",
            ge=2,
        ),
    ] = RESCORED


@dataclass(frozen=True, kw_only=True)
class OutSettings(Request):
    """The folder where runs are saved; a run's numbers and identity don't depend on it."""

    out: Annotated[
        Path | None, option("Folder of the runs. Default: `runs` in the data folder.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class RunSettings(OutSettings):
    """Where runs are saved and computed; a run's numbers and identity don't depend on it."""

    executor: Annotated[
        str, option("Where queries are scored: local, or ray for a Ray cluster.")
    ] = "local"
    parts_at: Annotated[
        str,
        option(
            "With --executor ray: where workers that share no disk store finished parts, such as "
            "s3://bucket/folder (any address that fsspec knows). Default: in the folder of the "
            "runs."
        ),
    ] = ""


def check_segments(segments: bool, open_book: str | None, kinds: Mapping[str, Kind]) -> None:
    """Check that passage and query can be encoded as two segments.

    Args:
        segments: Whether two segments are wanted; if not, every model is accepted.
        open_book: Name of the corpus; None without open-book context.
        kinds: Model name -> kind of model.

    Raises:
        UserError: If the open-book context is missing, or a model reads a text as one segment.
    """
    if not segments:
        return
    if open_book is None:
        raise UserError("--segments separates a passage from the query: add --open-book.")
    for name, kind in kinds.items():
        if kind != "masked":
            raise UserError(
                f"{name} reads a text as one segment: remove --segments, or choose masked models."
            )


def load_models(settings: ModelSettings) -> tuple["Model", ...]:
    """Return the chosen models, and report their notes; download and load them where necessary.

    Raises:
        UserError: If the settings are invalid, or a model can't be loaded.
    """
    settings.check()
    models = tuple(
        load_model(name, precision=settings.precision, on_progress=settings.on_progress)
        for name in settings.models
    )
    for model in models:
        for note in model.notes:
            settings.on_note(f"{model.name}: {note}")
    return models


def choose_candidates(settings: CandidateSettings, models: Sequence["Model"]) -> CandidateColumns:
    """Return the candidates of a query to these models."""
    known = {entry.name: entry.title for entry in known_models()}
    titles = [known.get(model.name, model.name) for model in models]
    return named_candidates(
        settings.candidates, [model.vocabulary for model in models], models=titles
    )
