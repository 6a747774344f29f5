"""The requests of studies of prompts."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from lama_core.datasets.library.installed import STARTER
from lama_core.probes.prompts.ensemble import RELEASED
from lama_core.probes.prompts.training_pairs import RELEASED_SHARE
from lama_core.requests import option
from lama_core.scoring import shared_fields

COMBINATIONS = ("manual", "mine", "mine+man", "mine+para", "man+para")


PromptFolder = Annotated[
    Path | None,
    option(
        "Name of an imported prompt set, or a folder in LPAQA's layout. Default: the dataset's "
        "prompts."
    ),
]


@dataclass(frozen=True, kw_only=True)
class SelectRequest(shared_fields.OutSettings, command="prompts select", python="select_prompts"):
    """Prompts to evaluate one by one: the fields of `prompts select`."""

    dataset: shared_fields.Dataset = STARTER
    model: shared_fields.ModelName = shared_fields.DEFAULT_MODEL
    relations: shared_fields.Relations = ()
    prompts: PromptFolder = None
    own: Annotated[
        Sequence[str],
        option("Your own prompt with [X] and [Y]; repeat for several.", name="--template"),
    ] = ()
    training: Annotated[
        Path | None,
        option(
            "Name of an imported set with training pairs, or a folder of them (one P*.jsonl per "
            "relation). Default: half of the facts are used for training."
        ),
    ] = None
    training_share: Annotated[
        float | None,
        option(
            "Share of the training pairs on which prompts are selected and weighted; the others "
            "are not used. Default: 0.8 with --training, as in LPAQA's released code; else 1.",
            gt=0,
            le=1,
        ),
    ] = None
    candidates: Annotated[
        str | None,
        option(
            "full, common, lama or file:PATH. Default: the dataset's or LAMA's published list if "
            "installed, else common."
        ),
    ] = None
    context: shared_fields.Context = None
    ranking: shared_fields.Ranking = "raw"
    precision: shared_fields.Precision = "auto"
    limit: shared_fields.Limit = None
    train_limit: Annotated[
        int | None, option("Maximum number of training facts of each relation.", ge=1)
    ] = None
    seed: Annotated[
        int | None,
        option(
            "Seed for choosing the facts of --limit and --train-limit at random. Default: choose "
            "the first facts."
        ),
    ] = None
    drop_overlap: Annotated[
        bool, option("Exclude training pairs that are test facts, instead of refusing them.")
    ] = False
    blind: Annotated[
        bool,
        option(
            "Include subject-blind prompts in ensembles: their blank comes before the subject, "
            "so a causal model can't see the subject.",
            name="--include-subject-blind",
        ),
    ] = False

    @property
    def study(self) -> "StudyRequest":
        """The request as a StudyRequest: without ensembles, unless it is one."""
        return StudyRequest(**vars(self), combinations=("all",), recipes=(), curves=False)

    @property
    def selection(self) -> "SelectRequest":
        """The request that evaluates the same prompts one by one."""
        return SelectRequest(**{one.name: getattr(self, one.name) for one in fields(SelectRequest)})

    @property
    def used_share(self) -> float:
        """The share of the training pairs on which prompts are selected and weighted."""
        if self.training_share is not None:
            return self.training_share
        return RELEASED_SHARE if self.training is not None else 1.0


@dataclass(frozen=True, kw_only=True)
class StudyRequest(SelectRequest, command="prompts fit", python="study"):
    """Prompts to evaluate, select and weight: the fields of `prompts fit`."""

    combinations: Annotated[
        Sequence[str],
        option(
            "Combination of prompt sets: manual, mine, mine+man, mine+para, man+para, user or all; "
            "repeat for several. Default: the paper's combinations, and user with --template.",
            name="--set",
            selects=True,
        ),
    ] = ()
    recipes: Annotated[
        Sequence[str],
        option(
            "Optimiser recipe; repeat for several. released: as in the released scripts (learning "
            "rate 0.1, batch size 128, at most 500 epochs, stop after 30 epochs without a gain of "
            "1e-3). paper: Adam's defaults, batch size 32; the paper gives no number of epochs and "
            "no patience, so we use at most 500 and stop after 50 without a gain of 1e-4.",
            name="--recipe",
        ),
    ] = (RELEASED.name,)
    curves: Annotated[
        bool, option("Compute the accuracy of Top-K for every K, log-linear and linear.")
    ] = True
    keep: Annotated[
        bool, option("Keep the answer distributions on disk, to fit other weights later.")
    ] = False
    save_runs: Annotated[bool, option("Save Top-1 and the optimised ensembles as runs.")] = True

    def __post_init__(self) -> None:
        """Set the default combinations: the paper's, and `user` if the user has added prompts."""
        super().__post_init__()
        if not self.combinations:
            object.__setattr__(
                self, "combinations", (*COMBINATIONS, *(["user"] if self.own else []))
            )

    @property
    def study(self) -> "StudyRequest":
        """The request itself."""
        return self
