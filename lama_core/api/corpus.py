"""The embedded model's training text: built, and searched for facts and probe sentences."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lama_core.corpus import build
from lama_core.corpus.build import Corpus
from lama_core.corpus.source_forms import corpus_forms
from lama_core.corpus.source_list import all_but
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.library.installed import STARTER
from lama_core.datasets.passages import read_lines
from lama_core.metrics import cooccurrence
from lama_core.metrics.cooccurrence import STATED_FILE, Pair, PairIndex
from lama_core.metrics.sentence_forms import (
    FORMS_FILE,
    SentenceForms,
    SentenceIndex,
    query_template,
    save_forms,
    template_form,
)
from lama_core.paths import training_dir
from lama_core.progress import OnProgress, Progress, silent
from lama_core.scoring.prompt_choice import make_prompt_set
from lama_core.scoring.queries import make_questions

SENTENCES = "(sentences without the subject)"


@dataclass(frozen=True)
class SearchedSource:
    """What the passages of one source hold of the facts.

    Attributes:
        n_pairs: Pairs whose subject and object co-occur in a passage.
        n_verbatim: Probe sentences that occur letter by letter.
        n_almost: Probe sentences that occur apart from case, punctuation and articles.
        n_wordings: Wordings with a sentence form of the source.
    """

    source: str
    n_passages: int
    n_pairs: int
    n_verbatim: int
    n_almost: int
    n_wordings: int


@dataclass(frozen=True)
class SearchedWording:
    """One wording of a relation and what the passages of all sources hold of it.

    Attributes:
        template: The wording; `SENTENCES` for sentences that don't name the subject.
        form_in: Sources with the same sentence form.
        n_sentences: Facts with this wording.
    """

    relation: str
    template: str
    form_in: tuple[str, ...]
    n_sentences: int
    n_verbatim: int
    n_almost: int


@dataclass(frozen=True)
class Stated:
    """What a training text holds of a dataset's facts.

    Attributes:
        n_pairs: Pairs of a subject and an object.
        n_stated: Pairs that co-occur in a passage.
        sources: One for each source, in the order of the corpus.
        wordings: One for each wording of each relation, in the order of the data.
    """

    n_pairs: int
    n_stated: int
    sources: tuple[SearchedSource, ...]
    wordings: tuple[SearchedWording, ...]

    def to_json(self) -> dict[str, Any]:
        """Return what `data find-stated --json` prints."""
        return {
            "pairs": self.n_pairs,
            "stated": self.n_stated,
            "sentences": sum(one.n_sentences for one in self.wordings),
            "verbatim": sum(one.n_verbatim for one in self.wordings),
            "almost": sum(one.n_almost for one in self.wordings),
            "sources": [asdict(one) for one in self.sources],
            "wordings": [asdict(one) for one in self.wordings],
        }


def build_corpus(*, on_progress: OnProgress = silent) -> Corpus:
    """Return the corpus, built in the cache from fetched sources where it isn't there yet."""
    return build.build_corpus(corpus_dir(), report=lambda stage: on_progress(Progress(stage)))


def corpus_dir() -> Path:
    """Return the folder of the corpus."""
    return training_dir() / "corpus"


Wording = tuple[str, str]
"""A relation and a template of it."""


def find_stated(
    out: Path | None = None,
    *,
    dataset: str = STARTER,
    prompts: str = "paraphrases",
    without: Sequence[str] = (),
    forms: Path | None = None,
    on_progress: OnProgress = silent,
) -> Stated:
    """Search a training text for a dataset's facts and probe sentences, source by source.

    A probe sentence is a query with the gold answer in its blank. Passages are read one by one, so
    memory depends on the facts and not on the text.

    Args:
        out: Write which pairs co-occur to this file, in the model's folder.
        prompts: A prompt set, or a folder of LPAQA's prompts.
        without: Sources that the model hasn't read.
        forms: Write the sources' sentence forms to this file, in the model's folder.
    """
    data = load_dataset(dataset)
    sentences = _probe_sentences(data, prompts)
    kept = {source.name: source for source in all_but(without)}
    written = corpus_forms(tuple(kept.values()))
    having = {wording: _sources_of(wording, written) for wording in sentences}
    pairs = [(fact.subject, fact.object) for fact in data.facts]
    pair_index = PairIndex(pairs)
    index = SentenceIndex(text for texts in sentences.values() for text in texts)
    co_occurring: set[Pair] = set()
    verbatim: set[str] = set()
    almost: set[str] = set()
    searched = []
    for name, _, path in build_corpus(on_progress=on_progress).train:
        if name not in kept:
            continue
        on_progress(Progress(f"searching: {kept[name].title}"))
        here = pair_index.find(read_lines(path))
        found = index.find(read_lines(path))
        co_occurring |= here
        verbatim |= found.verbatim
        almost |= found.almost
        n_passages = sum(1 for _ in read_lines(path))
        n_wordings = sum(name in sources for sources in having.values())
        searched.append(
            SearchedSource(
                name,
                n_passages,
                len(here),
                _count(sentences, found.verbatim),
                _count(sentences, found.almost),
                n_wordings,
            )
        )
    if out is not None:
        cooccurrence.save_stated(pairs, frozenset(co_occurring), out)
    if forms is not None:
        save_forms(written, forms)
    rows = tuple(
        SearchedWording(
            relation,
            template,
            having[relation, template],
            len(texts),
            sum(text in verbatim for text in texts),
            sum(text in almost for text in texts),
        )
        for (relation, template), texts in sentences.items()
    )
    return Stated(len(set(pairs)), len(co_occurring), tuple(searched), rows)


def _probe_sentences(data: Dataset, prompts: str) -> dict[Wording, list[str]]:
    """The sentences of each wording: the queries that count, with the gold answer filled in."""
    chosen = make_prompt_set(prompts, data.relations)
    names = [relation.name for relation in data.relations]
    found: defaultdict[Wording, list[str]] = defaultdict(list)
    for row in make_questions(data, names, chosen, None):
        if row.query is not None and row.query.n_blanks == 1 and row.excluded is None:
            templates = chosen.of(row.relation.name)
            by_template = row.prompt < len(templates)
            wording = (
                templates[row.prompt]
                if by_template
                else query_template(row.query.text(), row.fact.subject) or SENTENCES
            )
            found[row.relation.name, wording].append(row.query.text(row.fact.object))
    return found


def _sources_of(wording: Wording, forms: SentenceForms) -> tuple[str, ...]:
    template = wording[1]
    return () if template == SENTENCES else forms.sources_of(template_form(template))


def _count(sentences: Mapping[Wording, Sequence[str]], found: AbstractSet[str]) -> int:
    return sum(text in found for texts in sentences.values() for text in texts)


__all__ = [
    "FORMS_FILE",
    "STARTER",
    "STATED_FILE",
    "Corpus",
    "SearchedSource",
    "SearchedWording",
    "Stated",
    "build_corpus",
    "corpus_dir",
    "find_stated",
]
