"""Judges made ready: a model, word vectors or RelBERT, loaded by what a user typed."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lama_core.models.base import Kind
from lama_core.models.loader import Precision, load_model
from lama_core.models.sources import OnProgress, silent
from lama_core.probes.analogy.judges import Judge, ModelJudge, VectorJudge
from lama_core.probes.analogy.records import ProbeOptions
from lama_core.probes.analogy.run import Work
from lama_core.probes.analogy.templates import resolve_template
from lama_core.probes.analogy.vectors import load_vectors


def open_model(
    reference: str,
    options: ProbeOptions,
    *,
    precision: Precision = "fp32",
    on_progress: OnProgress = silent,
) -> tuple[ModelJudge, Kind]:
    """A language model as a judge, and its kind.

    Raises UserError for an unknown model, or one that can't be had.
    """
    from lama_core.models.hidden import hidden_states

    model = load_model(reference, precision=precision, on_progress=on_progress)

    def embed(
        texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]
    ) -> NDArray[np.float32]:
        return hidden_states(model, texts, spans, layer=options.layer, pooling=options.pooling)

    template = resolve_template(options.template)
    judge = ModelJudge(model, embed, template=template, normalise=options.normalise)
    return judge, model.kind


def open_vectors(source: str, words: Iterable[str]) -> VectorJudge:
    """Static word vectors as a judge. Raises UserError if the file can't be read."""
    return VectorJudge(load_vectors(source, words), "vectors")


def open_relbert(reference: str, *, on_progress: OnProgress = silent) -> VectorJudge:
    """A RelBERT model as a judge. Raises UserError if it can't be had or is none."""
    from lama_core.models.relbert import load_relbert

    return VectorJudge(load_relbert(reference, on_progress=on_progress), "relbert")


def open_judge(
    method: str,
    name: str,
    work: Work,
    *,
    precision: Precision = "fp32",
    on_progress: OnProgress = silent,
) -> tuple[Judge, Work]:
    """A judge of any method (`model`, `vectors`, `relbert`), and the work as it is for this one."""
    if method == "model":
        judge, kind = open_model(name, work.options, precision=precision, on_progress=on_progress)
        return judge, replace(work, kind=kind, precision=precision)
    if method == "vectors":
        return open_vectors(name, work.words()), work
    return open_relbert(name, on_progress=on_progress), work
