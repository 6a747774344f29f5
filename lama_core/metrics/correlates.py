"""Figure 3: what correlates with a right first answer.

Pearson's correlation, over facts, of P@1 (1 if the gold answer is first) with

    SM    mentions of the subject in the training text
    OM    mentions of the object in the training text
    LPFP  log-probability of the first prediction, in the same ranking as P@1
    SOCS  cosine similarity of the subject's and the object's vectors
    ST    words of the subject (standard tokenisation)
    SWP   subword tokens of the subject (the model's tokenizer)

Source: Petroni et al. 2019, Figure 3, which uses T-REx. By default the facts are those of T-REx if
the run has any.

Departure: Vectors and mentions of Figure 3
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.errors import choose
from lama_core.metrics.relation_figures import FIRST_LOG_PROB
from lama_core.metrics.training_texts import read_cached
from lama_core.metrics.word_counts import COUNTS_FILE, load_corpus_counts
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import locate
from lama_core.runs.info import Run, RunInfo
from lama_core.scoring.ranking import Ranking

LABELS = {
    "SM": "mentions of the subject",
    "OM": "mentions of the object",
    "LPFP": "log-probability of the first answer",
    "SOCS": "cosine of subject and object vectors",
    "ST": "words of the subject",
    "SWP": "subword tokens of the subject",
    "P@1": "right first answer",
}

TREX = "TREx"  # the source of the paper's figure
ALL_SOURCES = "all"
PER_BILLION = "wordfreq (occurrences per billion words of English)"  # a source of mentions

EmbedWords = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True)
class Mentions:
    """A way of counting names in a text.

    source: what is counted, as a caption. count: returns the count of a name, NaN if unknown.
    """

    source: str
    count: Callable[[str], float]

    def of(self, names: pd.Series) -> NDArray[np.float64]:
        """Return the count of each name, float64 [row]."""
        codes, unique = pd.factorize(names)
        return np.array([self.count(name) for name in unique], dtype=np.float64)[codes]


@dataclass(frozen=True)
class Correlations:
    """Figure 3 as data.

    matrix: DataFrame [name, name] of correlations, NaN if a column is constant. mentions: what was
    counted. n: number of facts.
    """

    matrix: pd.DataFrame
    mentions: str
    n: int


def correlation_sources(info: RunInfo, relations: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the sources that Figure 3 can use, the default first: T-REx, else all sources.

    relations: limits the sources to those of these relations.
    """
    known = dict.fromkeys(
        one.source for one in info.relations if one.n and (not relations or one.name in relations)
    )
    first = [TREX] if TREX in known else []
    every = [ALL_SOURCES] if len(known) != 1 else []
    return tuple(dict.fromkeys([*first, *every, *known]))


def correlate(
    run: Run,
    mentions: Mentions,
    word_vectors: EmbedWords | None = None,
    *,
    ranking: Ranking = "filtered",
    relations: Sequence[str] | None = None,
    source: str | None = None,
) -> Correlations:
    """Compute Figure 3's matrix for one run.

    Args:
        run: A finished run.
        mentions: How to count names.
        word_vectors: Words -> float32 [word, dim], such as a model's `word_vectors`. If None, SOCS
            is NaN.
        ranking: Filtered or raw.
        relations: Names of the relations to include; None is all.
        source: One of `correlation_sources`; None is the first.

    Raises:
        UserError: If the run has no facts of this source.
    """
    sources = correlation_sources(run.info, relations)
    chosen = sources[0] if source is None else choose(source, sources, "source")
    facts = run.facts
    kept = facts["excluded"].isna()
    if relations is not None:
        kept &= facts["relation"].isin(relations)
    if chosen != ALL_SOURCES:
        names = [relation.name for relation in run.info.relations if relation.source == chosen]
        kept &= facts["relation"].isin(names)
    facts = facts[kept]
    subjects, objects = facts["subject"].astype(str), facts["object"].astype(str)
    table = pd.DataFrame(
        {
            "SM": mentions.of(subjects),
            "OM": mentions.of(objects),
            "LPFP": facts[FIRST_LOG_PROB[ranking]].to_numpy(dtype=np.float64),
            "SOCS": np.nan
            if word_vectors is None
            else cosines(word_vectors, list(subjects), list(objects)),
            "ST": facts["subject_tokens"].to_numpy(dtype=np.float64),
            "SWP": facts["subject_pieces"].to_numpy(dtype=np.float64),
            "P@1": (facts[f"rank_{ranking}"] == 1).to_numpy(dtype=np.float64),
        }
    )
    return Correlations(pearson_matrix(table), mentions.source, len(table))


def pearson_matrix(table: pd.DataFrame) -> pd.DataFrame:
    """Return Pearson's correlation of each pair of columns, over the rows where both are known.

    NaN if a column is constant.
    """
    return table.astype(np.float64).corr(method="pearson", min_periods=2)


def cosines(
    word_vectors: EmbedWords, subjects: Sequence[str], objects: Sequence[str]
) -> NDArray[np.float64]:
    """Return the cosine of each subject's and object's vectors, float64 [fact]; NaN if zero."""
    names = list(dict.fromkeys([*subjects, *objects]))
    vectors = np.asarray(word_vectors(names), dtype=np.float64)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        vectors = np.where(norms > 0, vectors / norms, np.nan)
    at = {name: number for number, name in enumerate(names)}
    left = vectors[[at[name] for name in subjects]]
    return np.einsum("ij,ij->i", left, vectors[[at[name] for name in objects]])


def wordfreq_mentions() -> Mentions:
    """Return occurrences per billion words of English, from the package wordfreq.

    For a name of several words, the package combines the words' frequencies.
    """
    from wordfreq import word_frequency

    return Mentions(PER_BILLION, lambda name: word_frequency(name, "en") * 1e9)


def mentions_of(model: str) -> Mentions:
    """Return the counts in a model's training text if they come with the model, else wordfreq's.

    Raises:
        UserError: If the model is unknown.
    """
    located = locate(find_model(model))
    if located is None or not (located.folder / COUNTS_FILE).is_file():
        return wordfreq_mentions()
    counts = read_cached(located.folder / COUNTS_FILE, load_corpus_counts)
    source = f"mentions in the text that {located.folder.name} was trained on"
    return Mentions(source, counts.mentions)
