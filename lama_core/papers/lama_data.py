"""What LAMA's tables are made from: the data, the models that can be queried, and their runs.

The published data with the published vocabulary, raw ranking (what the released code does) and left
context for causal models. The paper's models are queried where they can be had, and with them those
that the user names, else the embedded ones. Without LAMA, the same on the starter facts.

Departure: Raw ranking of the reproduction
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import COMMON, named_candidates
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.library.installed import STARTER, lama_vocabulary_path
from lama_core.datasets.passages import load_corpus
from lama_core.errors import UserError
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.papers.framework import EMBEDDED, Data, Prepared, differing
from lama_core.papers.published import LAMA_MODELS
from lama_core.paths import corpus_files
from lama_core.probes.cloze.spec import ClozeSpec
from lama_core.probes.extraction.extractor import NAMES, extractable
from lama_core.probes.extraction.plan import extractor_specs
from lama_core.probes.plan import ProbeRequest, plan
from lama_core.reports.tables import UnavailableItem
from lama_core.runs.execute import execute
from lama_core.runs.info import Run
from lama_core.scoring.ranking import Ranking
from lama_core.scoring.retrieval import open_index

# The released code does not remove the other valid objects, so its numbers are raw.
RANKING: Ranking = "raw"
PUBLISHED_LIST = "lama"
VOCABULARY_FILE = "common_vocab_cased.txt"
TREX = "TREx"
MANUAL, TEN_SENTENCES = "manual", "ten-sentences"
TEXT = "starter"  # what the extractor learns from, and the open-book context is retrieved from
BUILD_TEXT = "lama-explorer data build-corpus"
BOOK = "models with the open book"
NO_PAIRS = "the data that is here has no relation between two names"
NO_MODEL = "no model could be run, so no facts were selected"
SPREAD_LIMIT = 20  # facts a relation of Figure 4 on the starter facts: ten queries each


@dataclass
class Lama(Prepared):
    """The data, the models and the runs that were made of them."""

    own = "lama"
    instead = Data(STARTER, "starter facts")
    _runs: dict[str, Run] = field(default_factory=dict)

    @cached_property
    def data(self) -> Data:
        """The starter facts count as other data than LAMA, also where they are named."""
        return self.instead if self.options.dataset == STARTER else super().data

    @cached_property
    def dataset(self) -> Dataset:
        """The facts. Raises UserError for data that can't be read."""
        return load_dataset(self.data.name)

    @cached_property
    def candidates(self) -> str:
        """The published vocabulary, in the data's folder or fetched; else the models' words."""
        beside = Path(self.data.name).expanduser() / VOCABULARY_FILE
        if beside.is_file():
            return f"file:{beside}"
        return PUBLISHED_LIST if lama_vocabulary_path() and not self.data.other else COMMON

    @cached_property
    def models(self) -> dict[str, str]:
        """Column of the tables -> the model's name; the paper's models, then the others."""
        named = self.options.models or EMBEDDED
        return LAMA_MODELS | {name: name for name in named if name not in LAMA_MODELS.values()}

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
        found = dict.fromkeys(one.relation for one in self.dataset.facts if one.source == TREX)
        if not found:
            raise UserError("The data that is here has no fact of T-REx.")
        return tuple(one.name for one in self.dataset.relations if one.name in found)

    @cached_property
    def usable(self) -> dict[str, str]:
        """The models that can be queried here; the others go to `missing`, with the reason.

        On other data than the paper's, none of its models is fetched.
        """
        found = {}
        for column, reference in self.models.items():
            command = f"lama-explorer models get {reference}"
            try:
                entry = find_model(reference)
                if entry.source.how == "none":
                    command = ""
                elif self.data.other and column in LAMA_MODELS and not is_here(entry):
                    raise UserError(f"{reference} is not on this machine.")
                self.load(reference)
                found[column] = reference
            except UserError as error:
                self.missing[column] = UnavailableItem(column, str(error), command)
        return found

    def words(self, model: Any) -> Candidates:
        """The candidates of a model that is queried alone."""
        names = self.usable.values() if self.own_words else ()
        others = [self.load(reference).vocabulary for reference in names]
        return named_candidates(self.candidates, others or [model.vocabulary])

    def runs(
        self, prompts: str = MANUAL, open_book: str | None = None
    ) -> Iterator[tuple[str, Run]]:
        """Each model's run, made when it is reached. A model whose run fails goes to `missing`.

        Ten sentences are of T-REx alone. open_book: the corpus of the retrieved context. Raises
        UserError where the data has nothing to query.
        """
        # The published words are each model's own to rank; the common ones are those of all.
        columns = list(self.usable)
        groups = [columns] if self.own_words and columns else [[one] for one in columns]
        several = prompts == TEN_SENTENCES
        limit = self.options.limit
        if several and self.data.other and limit is None:
            limit = SPREAD_LIMIT
        for group in groups:
            request = ProbeRequest(
                self.data.name,
                tuple(self.usable[column] for column in group),
                relations=self.trex if several else (),
                prompts=prompts,
                candidates=self.candidates,
                ranking=RANKING,
                context="left",
                limit=limit,
                open_book=open_book,
            )
            specs = plan(request, load=self.load).specs
            yield from self._made(zip(group, specs, strict=True))

    def read_runs(self) -> Iterator[tuple[str, Run]]:
        """Each model's run with open-book context; none, and so in `missing`, without a text."""
        with self.noting(BOOK, BUILD_TEXT):
            open_index(load_corpus(TEXT), self.on_progress)
        if BOOK not in self.missing:
            yield from self.runs(open_book=TEXT)

    def extracted(self) -> Iterator[tuple[str, Run]]:
        """The runs of RE_n and RE_o; in `missing` where no text to train them is here."""
        names = extractable(self.dataset)
        try:
            vocabularies = [self.load(one).vocabulary for one in self.usable.values()]
            if not names:
                raise UserError(NO_PAIRS)
            if self.own_words and not vocabularies:
                raise UserError(NO_MODEL)
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
            self.missing |= {
                name: UnavailableItem(name, str(error), command) for name in NAMES.values()
            }
            return
        yield from self._made((spec.model_name, spec) for spec in specs)

    def _made(self, specs: Iterable[tuple[str, ClozeSpec]]) -> Iterator[tuple[str, Run]]:
        """The run of each specification, made once; one that fails goes to `missing`."""
        for column, spec in specs:
            if spec.run_id not in self._runs:
                with self.noting(column):
                    self._runs[spec.run_id] = execute(
                        spec, on_progress=self.on_progress, on_note=self.options.on_note
                    )
            if spec.run_id in self._runs:
                yield column, self._runs[spec.run_id]

    def differs(
        self,
        *,
        relations: tuple[int, int] | None = None,
        facts: tuple[int, int] | None = None,
    ) -> str:
        """What isn't the paper's, of data, words and limit; see `framework.differing`."""
        other = self.data.other or ("other candidates" if self.own_words else "")
        return differing(data=other, relations=relations, facts=facts, limit=self.options.limit)
