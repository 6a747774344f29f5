"""Search a corpus for a dataset's facts and probe sentences."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lama_core.datasets import load_dataset
from lama_core.datasets.dataset import Pair
from lama_core.datasets.library.installed import STARTER
from lama_core.datasets.passages import load_corpus, paragraphs_of
from lama_core.errors import UserError, choose
from lama_core.metrics import cooccurrence
from lama_core.metrics.cooccurrence import PairIndex
from lama_core.metrics.sentence_forms import (
    FORMS_FILE,
    SentenceForms,
    SentenceIndex,
    load_forms,
    query_template,
    template_form,
)
from lama_core.paths import model_dir
from lama_core.progress import OnProgress, Progress, ignore
from lama_core.scoring.prompt_choice import make_prompt_set
from lama_core.scoring.queries import make_questions

SENTENCES = "(sentences without the subject)"


@dataclass(frozen=True)
class SearchedSource:
    """Numbers of pairs and probe sentences found in one file of the corpus.

    The files of `starter` are the sources of the embedded model's training text.

    Attributes:
        n_pairs: Pairs whose subject and object co-occur in a passage.
        n_verbatim: Probe sentences that occur verbatim.
        n_almost: Probe sentences that occur, ignoring case, punctuation and articles.
        n_wordings: Wordings that share a sentence form with the source.
    """

    source: str
    n_passages: int
    n_pairs: int
    n_verbatim: int
    n_almost: int
    n_wordings: int


@dataclass(frozen=True)
class SearchedWording:
    """One wording of a relation and its occurrences in the passages of all sources.

    Attributes:
        template: The wording; `SENTENCES` for sentences that don't name the subject.
        form_in: Sources with the same sentence form.
        n_sentences: Probe sentences with this wording, one for each fact.
        n_verbatim: Probe sentences that occur verbatim.
        n_almost: Probe sentences that occur, ignoring case, punctuation and articles.
    """

    relation: str
    template: str
    form_in: tuple[str, ...]
    n_sentences: int
    n_verbatim: int
    n_almost: int


@dataclass(frozen=True)
class CorpusSearch:
    """A dataset's facts and probe sentences found in a training text.

    Attributes:
        n_pairs: Distinct pairs of a subject and an object in the dataset.
        n_stated: Pairs that co-occur in a passage.
        sources: Counts for each source, in the order of the corpus.
        wordings: Counts for each wording of each relation, in the order of the dataset.
    """

    n_pairs: int
    n_stated: int
    sources: tuple[SearchedSource, ...]
    wordings: tuple[SearchedWording, ...]

    def to_json(self) -> dict[str, Any]:
        """Return what `data find-cooccurring --json` prints."""
        return {
            "pairs": self.n_pairs,
            "stated": self.n_stated,
            "sentences": sum(wording.n_sentences for wording in self.wordings),
            "verbatim": sum(wording.n_verbatim for wording in self.wordings),
            "almost": sum(wording.n_almost for wording in self.wordings),
            "sources": [asdict(source) for source in self.sources],
            "wordings": [asdict(wording) for wording in self.wordings],
        }


Wording = tuple[str, str]
"""A relation and a template of it."""


def find_cooccurring(
    out: Path | None = None,
    *,
    corpus: str = STARTER,
    dataset: str = STARTER,
    prompts: str = "paraphrases",
    without: Sequence[str] = (),
    on_progress: OnProgress = ignore,
) -> CorpusSearch:
    """Search a corpus for a dataset's facts and probe sentences.

    A pair co-occurs if a passage contains its subject and its object. A probe sentence is a query
    with the gold answer in its blank. Passages are read one by one, so memory depends on the number
    of facts, not on the size of the text.

    Args:
        out: Write which pairs co-occur to this file, `STATED_FILE` in a model's folder.
        corpus: `starter`, the embedded model's training text, or a folder or file of texts.
        dataset: Name of a dataset, or a folder in LAMA's layout.
        prompts: A prompt set, or a folder of LPAQA's prompts.
        without: Names of the corpus's files that aren't searched, without `.txt` or `.jsonl`.
        on_progress: Called with a `Progress` for each file.

    Returns:
        The numbers of pairs and sentences found, by file and by wording.

    Raises:
        UserError: If the corpus, the dataset, the prompts or a file is unknown.
    """
    data = load_dataset(dataset)
    chosen = make_prompt_set(prompts, data.relations)
    names = [relation.name for relation in data.relations]
    sentences: defaultdict[Wording, list[str]] = defaultdict(list)
    for row in make_questions(data, names, chosen, None):
        if row.query is not None and row.query.n_blanks == 1 and row.excluded is None:
            named = chosen.of(row.relation.name)[row.prompt : row.prompt + 1]
            template = "".join(map(row.fact.template, named))
            template = template or query_template(row.query.text(), row.fact.subject) or SENTENCES
            sentences[row.relation.name, template].append(row.query.text(row.fact.object))
    files = {path.stem: path for path in load_corpus(corpus).files}
    excluded = {choose(name, list(files), "source") for name in without}
    if excluded == files.keys():
        raise UserError("--without excludes every source: keep at least one")
    files = {name: path for name, path in files.items() if name not in excluded}
    # Sentence forms are known only of the embedded model's text.
    known = load_forms(model_dir("minilm-mlm") / FORMS_FILE).by_source if corpus == STARTER else {}
    forms = SentenceForms({name: own for name, own in known.items() if name in files})
    form_in = {
        wording: () if wording[1] == SENTENCES else forms.sources_of(template_form(wording[1]))
        for wording in sentences
    }
    pairs = [(fact.subject, fact.object) for fact in data.facts]
    pair_index = PairIndex(pairs)
    sentence_index = SentenceIndex(text for texts in sentences.values() for text in texts)
    cooccurring: set[Pair] = set()
    verbatim: set[str] = set()
    almost: set[str] = set()
    searched = []
    for name, path in files.items():
        on_progress(Progress(f"searching: {name}"))
        found_pairs = pair_index.find(paragraphs_of(path))
        exact, similar = sentence_index.find(paragraphs_of(path))
        cooccurring |= found_pairs
        verbatim |= exact
        almost |= similar
        searched.append(
            SearchedSource(
                name,
                n_passages=sum(1 for _ in paragraphs_of(path)),
                n_pairs=len(found_pairs),
                n_verbatim=sum(text in exact for texts in sentences.values() for text in texts),
                n_almost=sum(text in similar for texts in sentences.values() for text in texts),
                n_wordings=sum(name in names for names in form_in.values()),
            )
        )
    if out is not None:
        cooccurrence.save_stated(pairs, frozenset(cooccurring), out)
    wordings = tuple(
        SearchedWording(
            *wording,
            form_in[wording],
            n_sentences=len(texts),
            n_verbatim=sum(text in verbatim for text in texts),
            n_almost=sum(text in almost for text in texts),
        )
        for wording, texts in sentences.items()
    )
    return CorpusSearch(len(set(pairs)), len(cooccurring), tuple(searched), wordings)
