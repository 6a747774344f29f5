"""Data for LPAQA's tables: facts, prompts and training pairs, and the studies made from them.

Uses LAMA's T-REx facts with LPAQA's prompts and training pairs. If these are unavailable, it uses
the starter facts with prompts mined for them, and half of the facts for training. Some tables need
other data (facts that can't be guessed from names, Google-RE's facts, subsets of the prompts).
These data are written into the cache in the same layout, and studied in the same way.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from lama_core.candidates.lists import COMMON
from lama_core.datasets import Dataset, lama_writer, load_dataset
from lama_core.datasets.dataset import make_dataset
from lama_core.datasets.library.installed import STARTER, installed_dir
from lama_core.datasets.lpaqa import TRAINING_FOLDER
from lama_core.datasets.prompt_sets import FOLDERS, load_pool, relations_in
from lama_core.errors import UserError
from lama_core.files import replace_folder, work_folder
from lama_core.papers.differences import differing
from lama_core.paths import ASSETS, cache_dir, data_dir
from lama_core.probes.prompts.plan import VOCABULARY_FILE, plan
from lama_core.probes.prompts.published_scores import BERTS, N_FACTS, N_RELATIONS, PAPER
from lama_core.probes.prompts.request import COMBINATIONS, StudyRequest
from lama_core.probes.prompts.spec import Study, load_split
from lama_core.probes.prompts.study import RelationStudy
from lama_core.probes.prompts.training_pairs import Split
from lama_core.progress import OnProgress
from lama_core.runs.execute import execute
from lama_papers.framework import Data, PaperInputs, find_data
from lama_papers.tables import UnavailableItem

DEFAULT_MODEL = "minilm-mlm"
# For the starter facts: the settings of the bundled study, so that it is reused.
STARTER_LIMIT = 100
STARTER_SEED = 2020
STARTER_SETS = ("manual", "mine", "mine+man", "man+para", "all")
# For other studies of the starter facts: fewer facts, so that they take minutes.
STARTER_FEWER = 30
ENTITIES = "needs texts with linked entities, which no backend supports"
WITH_ENTITIES = {
    "ERNIE": f"{ENTITIES}; without entities it is a BERT (`models convert`), and the paper doesn't "
    "describe how it was queried",
    "KnowBert": ENTITIES,
}
# Google-RE's relations -> T-REx's relations whose prompts and training pairs they use.
GOOGLE_RE = {"place_of_birth": "P19", "date_of_birth": "P569", "place_of_death": "P20"}


@dataclass(frozen=True, slots=True)
class StudyData(Data):
    """Facts, prompts and training pairs.

    prompts: folder; None uses the prompts of the facts' relations. training: folder; None uses half
    of the facts. other: description of the data if they aren't LAMA's and LPAQA's.
    """

    prompts: Path | None = None
    training: Path | None = None

    @property
    def is_starter(self) -> bool:
        """Whether the facts are the starter facts."""
        return self.name == STARTER


def find_study_data(asked: str | None, on_progress: OnProgress) -> StudyData:
    """Return the data that the user chose; else LAMA and LPAQA, fetched; else the starter facts.

    Args:
        asked: A folder that contains `lama` and `lpaqa`, or other facts with their own prompts.
        on_progress: Called with the progress of downloads.

    Raises:
        UserError: If the folder contains only one of `lama` and `lpaqa`.
    """
    starter = StudyData(STARTER, "starter facts and prompts", prompts=ASSETS / "prompts" / STARTER)
    if asked == STARTER:
        return starter
    if asked is not None:
        folder = Path(asked).expanduser()
        lacking = [name for name in ("lama", "lpaqa") if not (folder / name).is_dir()]
        if len(lacking) == 2:
            return StudyData(asked, f"facts of {asked}")
        if lacking:
            raise UserError(
                f"{asked} has no folder {lacking[0]!r}. Choose a folder that contains `lama` and "
                "`lpaqa`."
            )
        return _lpaqa_data(str(folder / "lama"), folder / "lpaqa")
    for name in ("lama", "lpaqa"):
        found = find_data(None, own=name, instead=starter, on_progress=on_progress)
        if found.absent:
            return replace(starter, absent=found.absent)
    return _lpaqa_data("lama", installed_dir("lpaqa"))


def _lpaqa_data(facts: str, lpaqa: Path) -> StudyData:
    return StudyData(facts, prompts=lpaqa, training=lpaqa / TRAINING_FOLDER)


@dataclass
class Studies(PaperInputs):
    """The studies for the tables; each is made once, when a table needs it."""

    _studied: dict[StudyRequest, Study | UserError] = field(default_factory=dict)

    @cached_property
    def data(self) -> StudyData:
        """The data; see `find_study_data`."""
        return find_study_data(self.options.dataset, self.options.on_progress)

    @property
    def asked(self) -> tuple[str, ...]:
        """Names of the user's models, by default the embedded one."""
        return tuple(self.options.models) or (DEFAULT_MODEL,)

    @property
    def limit(self) -> int | None:
        """Maximum number of training and of test facts per relation."""
        if self.options.limit is None and self.data.is_starter:
            return STARTER_LIMIT
        return self.options.limit

    @property
    def notes(self) -> tuple[str, ...]:
        data = self.data
        setup = ["LAMA's T-REx facts with LPAQA's prompts and training pairs"]
        if data.other:
            setup = [f"On {data.other}"]
        if data.training is None:
            setup.append("half of the facts for training, the other half for testing")
        if self.limit is not None:
            setup.append(f"at most {self.limit:,} facts per relation for training and for testing")
        return (
            f"{'; '.join(setup)}. Raw ranking, as in the paper.",
            f"Published values are shown only for the paper's models, {' and '.join(BERTS)}.",
            *(f"{one.what}: {one.reason}" for one in data.absent),
        )

    @cached_property
    def dataset(self) -> Dataset:
        """The facts."""
        return load_dataset(self.data.name)

    @cached_property
    def relation_names(self) -> tuple[str, ...]:
        """Relations with facts, prompts, and (if the data has a training folder) training pairs."""
        data = self.data
        named = None if data.prompts is None else relations_in(data.prompts)
        return tuple(
            one.name
            for one in self.dataset.relations
            if one.prompts
            and self.dataset.facts_of(one.name)
            and (named is None or one.name in named)
            and (data.training is None or (data.training / f"{one.name}.jsonl").is_file())
        )

    @cached_property
    def mined_prompts(self) -> dict[str, tuple[str, ...]]:
        """Relation -> its mined prompts, in the file's order; only relations with mined prompts."""
        found = {}
        for name in self.relation_names:
            pool = load_pool(self.dataset.relation(name), folder=self.data.prompts)
            if members := pool.members("mine"):
                found[name] = tuple(pool.templates[number] for number in members)
        return found

    def split(self, relation: str) -> Split:
        """Return a relation's training pairs and test facts, before sampling."""
        return load_split(self.data.training, self.dataset, relation)

    def request(self, model: str) -> StudyRequest:
        """Return the request of the study that most tables use."""
        data = self.data
        return StudyRequest(
            dataset=data.name,
            model=model,
            prompts=data.prompts,
            training=data.training,
            candidates=COMMON if data.is_starter else None,
            combinations=STARTER_SETS if data.is_starter else COMBINATIONS,
            recipes=("released",) if data.is_starter else ("released", "paper"),
            limit=self.limit,
            train_limit=self.limit,
            seed=STARTER_SEED if data.is_starter else None,
            drop_overlap=data.training is not None,
        )

    def fewer(self, model: str) -> StudyRequest:
        """Return the request for studies of single tables: one recipe, and fewer starter facts."""
        request = replace(self.request(model), recipes=("released",), curves=False)
        if not self.data.is_starter or self.options.limit is not None:
            return request
        return replace(request, limit=STARTER_FEWER, train_limit=STARTER_FEWER)

    def study(self, model: str, request: StudyRequest | None = None) -> Study:
        """Return a model's study; if it can't be made, raises the same UserError each time."""
        request = request or self.request(model)
        if request not in self._studied:
            self._studied[request] = self._study(request)
        found = self._studied[request]
        if isinstance(found, UserError):
            raise found
        return found

    def relations(self, model: str, request: StudyRequest | None = None) -> list[RelationStudy]:
        """Return the relations of a model's study, or raise UserError as `study` does."""
        study = self.study(model, request)
        return [study.relation(name) for name in study.relations]

    def absent(self) -> tuple[UnavailableItem, ...]:
        """Return the paper's models that weren't requested."""
        return tuple(
            UnavailableItem(
                title, "not requested", f"lama-explorer reproduce {PAPER} --model {name}"
            )
            for name, title in BERTS.items()
            if name not in self.asked
        )

    def differs(
        self,
        n_relations: int,
        n_facts: int,
        *,
        limit: int | None = None,
        of: tuple[int, int | None] = (N_RELATIONS, N_FACTS),
    ) -> str:
        """Describe how the test facts differ from the paper's.

        of: the paper's numbers of relations and of facts; None if unknown.
        """
        return differing(
            data=self.data.other,
            relations=(n_relations, of[0]),
            facts=None if of[1] is None else (n_facts, of[1]),
            limit=limit or self.limit,
        )

    def uhn(self, model: str) -> StudyRequest:
        """Return the request for a study without facts whose subject contains the object."""
        folder = self._kept(
            "uhn", self.dataset.digest, lambda to: lama_writer.write_uhn(self.dataset, to)
        )
        return replace(self.fewer(model), dataset=str(folder), candidates=self._candidates)

    def google_re(self, model: str) -> StudyRequest:
        """Return the request for a study of Google-RE's facts with T-REx's prompts.

        Raises:
            UserError: If the data has no facts of Google-RE.
        """
        if not any(map(self.dataset.facts_of, GOOGLE_RE)):
            raise UserError("This dataset has no facts of Google-RE. Choose another one.")
        folder = self._kept(
            "google-re", self.dataset.digest, lambda to: lama_writer.write(self._renamed(), to)
        )
        return replace(self.fewer(model), dataset=str(folder), candidates=self._candidates)

    def with_prompts(self, model: str, pools: Mapping[str, Sequence[str]]) -> StudyRequest:
        """Return the request for a study of only these prompts, by relation, as mined prompts."""

        def write(folder: Path) -> None:
            mined = folder / FOLDERS["mined"]
            mined.mkdir(parents=True)
            for name, texts in pools.items():
                lines = (json.dumps({"template": text}, ensure_ascii=False) for text in texts)
                (mined / f"{name}.jsonl").write_text("".join(f"{x}\n" for x in lines), "utf-8")

        folder = self._kept(
            "prompts", json.dumps({name: list(texts) for name, texts in pools.items()}), write
        )
        return replace(
            self.fewer(model), relations=tuple(pools), prompts=folder, combinations=("mine",)
        )

    def _study(self, request: StudyRequest) -> Study | UserError:
        # Studies for single tables are stored in a separate folder, so that pages don't list them.
        separate = request != self.request(request.model)
        try:
            (spec,) = plan(replace(request, on_note=self.options.on_note), load=self.load)
            return Study(
                execute(
                    spec,
                    folder=data_dir() / "reproductions" / "runs" if separate else None,
                    load=self.load,
                    on_progress=self.options.on_progress,
                    on_note=self.options.on_note,
                )
            )
        except UserError as error:
            return error

    @property
    def _candidates(self) -> str | None:
        """Candidates for facts in the cache: the vocabulary file of the data's folder, if any."""
        path = Path(self.data.name).expanduser() / VOCABULARY_FILE
        return f"file:{path}" if path.is_file() else self.request("").candidates

    def _renamed(self) -> Dataset:
        """Return Google-RE's facts and templates, with the names of T-REx's relations."""
        relations, facts = [], []
        for name, known in GOOGLE_RE.items():
            if own := self.dataset.facts_of(name):
                relations.append(replace(self.dataset.relation(name), name=known, source="TREx"))
                facts += [
                    replace(one, relation=known, source="TREx", id=f"{known}:{one.id}")
                    for one in own
                ]
        return make_dataset("google-re", relations, facts, self.dataset.report)

    def _kept(self, what: str, of: str, write: Callable[[Path], object]) -> Path:
        """Return the cache folder of data identified by `what` and `of`; write it if missing."""
        digest = hashlib.sha256(json.dumps([what, of]).encode()).hexdigest()[:16]
        place = cache_dir() / "reproductions" / f"{what}-{digest}"
        if not place.is_dir():
            with work_folder(place.parent) as work:
                write(work / what)
                replace_folder(work / what, place)
        return place
