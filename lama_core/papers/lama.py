"""What LAMA's tables are made from: the data, the models that can be asked, and their runs.

The published data with the published vocabulary, raw ranking (what the released code does) and left
context for causal models. The paper's models are asked where they can be had, and beside them those
that the user names, else the embedded ones. Without LAMA, the same on the starter facts.

Departure: Raw ranking of the reproduction
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from lama_core.asking.ranking import Ranking
from lama_core.asking.retrieval import open_index
from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import COMMON, named_candidates
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.corpus import load_corpus
from lama_core.datasets.library.installed import STARTER, installed_names, lama_vocabulary_path
from lama_core.errors import UserError
from lama_core.models.catalog import find_model
from lama_core.models.sources import is_here
from lama_core.papers.framework import Absent, Data, ReproduceOptions, differing, find_data
from lama_core.papers.published import LAMA_MODELS
from lama_core.paths import corpus_files
from lama_core.probes.cloze.runs import ClozeSpec
from lama_core.probes.extraction.extractor import NAMES, extractable
from lama_core.probes.extraction.probing import extractor_specs
from lama_core.probes.probing import ProbeRequest, plan
from lama_core.progress import OnNote, OnProgress, silent
from lama_core.runs.execute import execute
from lama_core.runs.info import Run
from lama_core.runs.spec import load_by_name

# The released code does not remove the other valid objects, so its numbers are raw.
RANKING: Ranking = "raw"
PUBLISHED_LIST = "lama"
VOCABULARY_FILE = "common_vocab_cased.txt"
EMBEDDED = ("minilm-mlm", "smollm2-135m")
TREX = "TREx"
MANUAL, TEN_SENTENCES = "manual", "ten-sentences"
TEXT = "starter"  # what the extractor learns from, and what is read with the open book
BUILD_TEXT = "python -m lama_core data build-corpus"
BOOK = "models with the open book"
NO_PAIRS = "the data that is here has no relation between two names"
SPREAD_LIMIT = 20  # facts a relation of Figure 4 on the starter facts: ten queries each


@dataclass
class Lama:
    """The data, the models and the runs that were made of them.

    candidates: a name of `candidates.lists`. models: column of the tables -> how the model is named
    here; those of the paper first, then the others. missing: the models that can't be had.
    """

    options: ReproduceOptions
    data: Data
    dataset: Dataset
    candidates: str
    models: dict[str, str]
    on_progress: OnProgress = silent
    on_note: OnNote = silent
    missing: dict[str, Absent] = field(default_factory=dict)
    _runs: dict[str, Run] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """The data, the ranking, the candidates, what left-to-right models see."""
        words = (
            "the words that all models here have" if self.own_words else "the published vocabulary"
        )
        said = [
            f"Data: {self.data.other or self.dataset.name}. Ranking {RANKING}, as in the released "
            f"code; candidates: {words}; left-to-right models see what stands left of the blank."
        ]
        if self.data.other:
            said.append("These are not LAMA's facts: no number of ours is one of the paper's.")
        if self.options.limit is not None:
            said.append(f"Only the first {self.options.limit:,} facts of each relation.")
        return tuple(said)

    @property
    def own_words(self) -> bool:
        """Whether other words than the published ones are ranked."""
        return self.candidates == COMMON

    @cached_property
    def trex(self) -> tuple[str, ...]:
        """T-REx's relations that have facts. Raises UserError if there are none."""
        found = [
            relation.name
            for relation in self.dataset.relations
            if any(fact.source == TREX for fact in self.dataset.facts_of(relation.name))
        ]
        if not found:
            raise UserError("The data that is here has no fact of T-REx.")
        return tuple(found)

    @cached_property
    def usable(self) -> dict[str, str]:
        """The models that can be asked here; the others go to `missing`, with the reason.

        On other data than the paper's, none of its models is fetched.
        """
        found = {}
        for column, reference in self.models.items():
            command = f"python -m lama_core models get {reference}"
            try:
                entry = find_model(reference)
                if entry.source.how == "none":
                    command = ""
                elif self.data.other and column in LAMA_MODELS and not is_here(entry):
                    raise UserError(f"{reference} is not on this machine.")
                self.load(reference)
            except UserError as error:
                self.missing[column] = Absent(column, str(error), command)
            else:
                found[column] = reference
        return found

    def load(self, reference: str) -> Any:
        """A model, fetched where it must be. Raises UserError if it can't be had."""
        return load_by_name(reference, precision="auto", on_progress=self.on_progress)

    def words(self, model: Any) -> Candidates:
        """What a model ranks where it is asked alone."""
        names = self.usable.values() if self.own_words else ()
        others = [self.load(reference).vocabulary for reference in names]
        return named_candidates(self.candidates, others or [model.vocabulary])

    def runs(
        self, prompts: str = MANUAL, open_book: str | None = None
    ) -> Iterator[tuple[str, Run]]:
        """Each model's run, made when it is asked for. A model whose run fails goes to `missing`.

        Ten sentences are asked of T-REx alone. open_book: the corpus that models read from.
        Raises UserError where the data has nothing to ask.
        """
        # The published words are each model's own to rank; the common ones are those of all.
        columns = list(self.usable)
        groups = [columns] if self.own_words and columns else [[one] for one in columns]
        for group in groups:
            request = self._request(group, prompts, open_book)
            load = partial(load_by_name, on_progress=self.on_progress)
            specs = plan(request, load=load).specs
            for column, spec in zip(group, specs, strict=True):
                run = self._run(column, spec)
                if run is not None:
                    yield column, run

    def read_runs(self) -> Iterator[tuple[str, Run]]:
        """Each model's run with the open book; none, and so in `missing`, where no text is here."""
        try:
            open_index(load_corpus(TEXT), self.on_progress)
        except UserError as error:
            self.missing[BOOK] = Absent(BOOK, str(error), BUILD_TEXT)
            return
        yield from self.runs(open_book=TEXT)

    def extracted(self) -> Iterator[tuple[str, Run]]:
        """The runs of RE_n and RE_o; in `missing` where no text to train them is here."""
        names = extractable(self.dataset)
        try:
            vocabularies = [self.load(one).vocabulary for one in self.usable.values()]
            if not names:
                raise UserError(NO_PAIRS)
            if self.own_words and not vocabularies:
                raise UserError("no model could be run, so no facts were selected")
            specs = extractor_specs(
                self.dataset,
                names,
                named_candidates(self.candidates, vocabularies),
                corpus=TEXT,
                reference=self.data.name,
                ranking=RANKING,
                limit=self.options.limit,
                on_progress=self.on_progress,
            ).specs
        except UserError as error:
            command = "" if corpus_files() else BUILD_TEXT
            self.missing |= {name: Absent(name, str(error), command) for name in NAMES.values()}
            return
        for spec in specs:
            run = self._run(spec.model_name, spec)
            if run is not None:
                yield spec.model_name, run

    def _request(
        self, columns: list[str], prompts: str, open_book: str | None = None
    ) -> ProbeRequest:
        several = prompts == TEN_SENTENCES
        limit = self.options.limit
        if several and self.data.other and limit is None:
            limit = SPREAD_LIMIT
        return ProbeRequest(
            self.data.name,
            tuple(self.usable[column] for column in columns),
            relations=self.trex if several else (),
            prompts=prompts,
            candidates=self.candidates,
            ranking=RANKING,
            context="left",
            limit=limit,
            open_book=open_book,
        )

    def _run(self, column: str, spec: ClozeSpec) -> Run | None:
        if spec.run_id not in self._runs:
            try:
                self._runs[spec.run_id] = execute(
                    spec, on_progress=self.on_progress, on_note=self.on_note
                )
            except UserError as error:
                self.missing[column] = Absent(column, str(error))
        return self._runs.get(spec.run_id)

    def differs(
        self,
        *,
        relations: tuple[int, int] | None = None,
        facts: tuple[int, int] | None = None,
    ) -> str:
        """What isn't the paper's, of data, words and limit; see `framework.differing`."""
        other = self.data.other or ("other candidates" if self.own_words else "")
        return differing(data=other, relations=relations, facts=facts, limit=self.options.limit)

    def absent(self) -> tuple[Absent, ...]:
        """The data and the models that can't be had."""
        return (*self.data.absent, *self.missing.values())


def prepare(
    options: ReproduceOptions,
    on_progress: OnProgress = silent,
    on_note: OnNote = silent,
) -> Lama:
    """The data and the models. Raises UserError for data that can't be read."""
    data = find_data(
        options.dataset,
        own="lama",
        installed=installed_names(),
        instead=Data(STARTER, "starter facts"),
        on_progress=on_progress,
    )
    if data.name == STARTER:
        data = Data(STARTER, "starter facts", data.absent)
    named = options.models or EMBEDDED
    models = LAMA_MODELS | {name: name for name in named if name not in LAMA_MODELS.values()}
    words = _vocabulary(data)
    return Lama(options, data, load_dataset(data.name), words, models, on_progress, on_note)


def _vocabulary(data: Data) -> str:
    """The published vocabulary, fetched or beside the data; else the words that all models have."""
    beside = Path(data.name).expanduser() / VOCABULARY_FILE
    if beside.is_file():
        return f"file:{beside}"
    return PUBLISHED_LIST if lama_vocabulary_path() and not data.other else COMMON
