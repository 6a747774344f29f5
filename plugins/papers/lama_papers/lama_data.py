"""Data, models and runs for the tables of LAMA (Petroni et al. 2019).

Runs use the published data and vocabulary, raw ranking (as in the released code) and left context
for causal models. The models are those of the paper that are available, and the user's, by default
the embedded ones. If LAMA is unavailable, the starter facts replace it.

Departure: Raw ranking of the reproduction
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lama_core import plugins
from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import COMMON, named_candidates
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.library.installed import STARTER, lama_vocabulary_path
from lama_core.datasets.passages import load_corpus
from lama_core.errors import UserError
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.papers.differences import differing
from lama_core.paths import corpus_files
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.cloze.spec import ClozeSpec
from lama_core.probes.plan import plan
from lama_core.probes.prompts.plan import VOCABULARY_FILE
from lama_core.published import LAMA_MODELS
from lama_core.runs.execute import execute
from lama_core.runs.info import Run
from lama_core.scoring.ranking import Ranking
from lama_core.scoring.retrieval import open_index
from lama_papers.framework import EMBEDDED, Data, PaperInputs
from lama_papers.tables import UnavailableItem

# The released code does not remove the other valid objects, so its numbers are raw.
RANKING: Ranking = "raw"
TREX = "TREx"
MANUAL, TEN_SENTENCES = "manual", "ten-sentences"
EXTRACTORS = ("RE_n", "RE_o")  # models of the runs of `extract`
TEXT = "starter"  # corpus that trains the extractor and provides open-book context
BUILD_TEXT = "python -m tools.training.corpus"
BOOK = "models with open-book context"
NO_MODEL = "no model could be run, so no facts were selected"
SPREAD_LIMIT = 20  # facts per relation for Figure 4 on the starter facts; ten queries each


@dataclass
class Lama(PaperInputs):
    """The data, models and runs for LAMA's tables."""

    own = "lama"
    instead = Data(STARTER, "starter facts")
    _runs: dict[str, Run] = field(default_factory=dict)

    @cached_property
    def data(self) -> Data:
        """The data; the starter facts are marked as other data even if the user chose them."""
        return self.instead if self.options.dataset == STARTER else super().data

    @cached_property
    def dataset(self) -> Dataset:
        """The loaded data; raises UserError if it can't be read."""
        return load_dataset(self.data.name)

    @cached_property
    def candidates(self) -> str:
        """The published vocabulary, from the data's folder or fetched; else the common words."""
        path = Path(self.data.name).expanduser() / VOCABULARY_FILE
        if path.is_file():
            return f"file:{path}"
        return "lama" if lama_vocabulary_path() and not self.data.other else COMMON

    @cached_property
    def models(self) -> dict[str, str]:
        """Column of the tables -> the model's name: the paper's models, then the others."""
        named = self.options.models or EMBEDDED
        return LAMA_MODELS | {name: name for name in named if name not in LAMA_MODELS.values()}

    @property
    def notes(self) -> tuple[str, ...]:
        words = "the words that all models share" if self.own_words else "the published vocabulary"
        notes = [
            f"Data: {self.data.other or self.dataset.name}. Ranking: {RANKING}, as in the released "
            f"code. Candidates: {words}. Causal models see only the text to the left of the blank."
        ]
        if self.data.other:
            notes.append("These are not LAMA's facts, so our values differ from the paper's.")
        if self.options.limit is not None:
            notes.append(f"Only the first {self.options.limit:,} facts of each relation.")
        return tuple(notes)

    @property
    def own_words(self) -> bool:
        """Whether the candidates are the models' common words instead of the published ones."""
        return self.candidates == COMMON

    @cached_property
    def trex(self) -> tuple[str, ...]:
        """T-REx's relations with facts; raises UserError if there are none."""
        found = dict.fromkeys(one.relation for one in self.dataset.facts if one.source == TREX)
        if not found:
            raise UserError("This dataset has no facts of T-REx. Choose another one.")
        return tuple(one.name for one in self.dataset.relations if one.name in found)

    @cached_property
    def usable(self) -> dict[str, str]:
        """Column -> name of each available model; records the others in `missing`, with the reason.

        Fetches the paper's models only for the paper's data.
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
        """Return the candidates for a model that is queried without a run."""
        names = self.usable.values() if self.own_words else ()
        others = [self.load(reference).vocabulary for reference in names]
        return named_candidates(self.candidates, others or [model.vocabulary])

    def runs(
        self, prompts: str = MANUAL, open_book: str | None = None
    ) -> Iterator[tuple[str, Run]]:
        """Yield each model and its run; record a model whose run fails in `missing`.

        Args:
            prompts: Set of prompts; `ten-sentences` uses T-REx only.
            open_book: Corpus to retrieve open-book context from.

        Raises:
            UserError: If the data has nothing to query.
        """
        # With common words, one request for all models; with published words, one for each model.
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
            yield from self._made(zip(group, plan(request, load=self.load), strict=True))

    def read_runs(self) -> Iterator[tuple[str, Run]]:
        """Yield each model's run with open-book context; record a missing corpus in `missing`."""
        with self.noting(BOOK, BUILD_TEXT):
            open_index(load_corpus(TEXT), self.options.on_progress)
        if BOOK not in self.missing:
            yield from self.runs(open_book=TEXT)

    def extracted(self) -> Iterator[tuple[str, Run]]:
        """Yield the runs of RE_n and RE_o; if they can't be made, add both to `missing`."""
        try:
            extract = plugins.find("probes", "extract")
            if extract is None:
                raise UserError(plugins.missing("extract"))
            if self.own_words and not self.usable:
                raise UserError(NO_MODEL)
            request = extract.request(
                dataset=self.data.name,
                corpus=TEXT,
                candidates=self.candidates,
                models=tuple(self.usable.values()),
                ranking=RANKING,
                limit=self.options.limit,
                on_progress=self.options.on_progress,
            )
            specs = extract.plan(request, load=self.load)
        except UserError as error:
            command = "" if corpus_files() else BUILD_TEXT
            self.missing |= {
                name: UnavailableItem(name, str(error), command) for name in EXTRACTORS
            }
            return
        yield from self._made((spec.model_name, spec) for spec in specs)

    def _made(self, specs: Iterable[tuple[str, ClozeSpec]]) -> Iterator[tuple[str, Run]]:
        """Yield the run of each specification, made only once; record failures in `missing`."""
        for column, spec in specs:
            if spec.run_id not in self._runs:
                with self.noting(column):
                    self._runs[spec.run_id] = execute(
                        spec, on_progress=self.options.on_progress, on_note=self.options.on_note
                    )
            if spec.run_id in self._runs:
                yield column, self._runs[spec.run_id]

    def differs(
        self,
        *,
        relations: tuple[int, int] | None = None,
        facts: tuple[int, int] | None = None,
    ) -> str:
        """Describe how data, candidates and limit differ from the paper's; see `differing`."""
        other = self.data.other or ("other candidates" if self.own_words else "")
        return differing(data=other, relations=relations, facts=facts, limit=self.options.limit)
