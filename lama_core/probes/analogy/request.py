"""The request of runs of analogy probes."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Literal

from lama_core.datasets.library.installed import STARTER_ANALOGIES
from lama_core.models.protocols import Pooling
from lama_core.probes.analogy.instances import (
    HIDDEN,
    N_SEEDS,
    PROBES,
    SETTINGS,
    ProbeOptions,
    Setting,
)
from lama_core.probes.analogy.scorers import PairScorerKind
from lama_core.queries.analogy_templates import DEFAULT_TEMPLATE, TemplateChoice, template_name
from lama_core.queries.pairs import NormaliseChoice
from lama_core.requests import option
from lama_core.scoring import shared_fields

SettingChoice = Literal["unsupervised", "supervised", "both"]


@dataclass(frozen=True)
class AnalogyRequest(shared_fields.OutSettings, command="analogy probe", python="analogy_probe"):
    """Analogies to probe models and baselines with: the fields of `analogy probe`.

    `models`, `vectors` and `relbert` name the scorers. For most other fields see `ProbeOptions`.
    """

    dataset: Annotated[str, option("Name of an analogy dataset, or a folder in BATS's layout.")] = (
        STARTER_ANALOGIES
    )
    models: shared_fields.Models = ()
    vectors: Annotated[
        Sequence[str],
        option(
            "Static word vectors as a baseline: a word2vec, fastText or GloVe text file, "
            "archive!file, or package:name/file."
        ),
    ] = ()
    relbert: Annotated[
        Sequence[str], option("A RelBERT model (hub name or folder) as a baseline.")
    ] = ()
    relations: shared_fields.Relations = ()
    probes: Annotated[
        Sequence[str],
        option(f"Probe: {', '.join(PROBES)}. Default: all.", name="--probe", selects=True),
    ] = ()
    setting: Annotated[SettingChoice, option("unsupervised, supervised, or both.")] = "unsupervised"
    template: TemplateChoice = DEFAULT_TEMPLATE
    normalise: NormaliseChoice = "sum"
    seed: Annotated[
        int, option("Seed for the negatives, the limit, and the training and test halves.")
    ] = 0
    limit: Annotated[
        int | None, option("Number of instances per relation, drawn at random. Default: all.", ge=1)
    ] = None
    strict: Annotated[bool, option("Exclude negatives that are true by chance.")] = False
    layer: Annotated[
        int,
        option(
            "Supervised: layer of the embeddings; 0 is the input embeddings, -1 the last layer."
        ),
    ] = -1
    pooling: Annotated[
        Pooling, option("Supervised: use the mean, first or last of a word's subword tokens.")
    ] = "mean"
    hidden: Annotated[int, option("Supervised: hidden units.", ge=1)] = HIDDEN
    n_seeds: Annotated[
        int, option("Supervised: number of classifiers to train.", name="--seeds", ge=1)
    ] = N_SEEDS
    precision: shared_fields.Precision = "auto"
    by: Annotated[
        Literal["relation", "kind"], option("Show one row per relation, or per kind of relation.")
    ] = "kind"

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The chosen setting, or both."""
        return SETTINGS if self.setting == "both" else (self.setting,)

    @property
    def options(self) -> ProbeOptions:
        """The options as `ProbeOptions`. Raises UserError for an invalid template."""
        options = {field.name: getattr(self, field.name) for field in fields(ProbeOptions)}
        return ProbeOptions(**options | {"template": template_name(self.template)})

    @property
    def scorers(self) -> tuple[tuple[PairScorerKind, str], ...]:
        """The scorers as distinct (method, name)."""
        named: tuple[tuple[PairScorerKind, Sequence[str]], ...] = (
            ("model", self.models),
            ("vectors", self.vectors),
            ("relbert", self.relbert),
        )
        return tuple(dict.fromkeys((method, name) for method, names in named for name in names))
