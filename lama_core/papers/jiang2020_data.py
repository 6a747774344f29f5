"""What LPAQA's tables are made from: facts, prompts and training pairs, and the studies of them.

LAMA's T-REx facts with LPAQA's prompts and training pairs; without them the starter facts with the
prompts that were mined for them, and half of the facts to train. What one table needs that others
don't (facts without those that names give away, Google-RE's facts, some of the prompts) is written
into the cache in the same layout, and studied in the same way.
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
from lama_core.datasets.library.derived import write_uhn
from lama_core.datasets.library.installed import STARTER, installed_dir, installed_names
from lama_core.datasets.lpaqa import TRAINING_FOLDER
from lama_core.datasets.prompt_sets import FOLDERS, load_pool, relations_in
from lama_core.errors import UserError
from lama_core.files import replace_folder, work_folder
from lama_core.papers.framework import Data, Prepared, differing, find_data
from lama_core.papers.jiang2020_scores import BERTS, PAPER
from lama_core.paths import ASSETS, cache_dir, data_dir
from lama_core.probes.prompts.plan import (
    COMBINATIONS,
    VOCABULARY_FILE,
    StudyRequest,
    plan_study,
)
from lama_core.probes.prompts.spec import Study, load_split
from lama_core.probes.prompts.study import RelationStudy
from lama_core.probes.prompts.training_pairs import Split
from lama_core.progress import OnProgress
from lama_core.reports.tables import UnavailableItem
from lama_core.runs.execute import execute

DEFAULT_MODEL = "minilm-mlm"
N_RELATIONS, N_FACTS = 41, 34_039  # of T-REx in the paper
# Of the starter facts: what the study that comes with the project has, so that it is found.
STARTER_LIMIT = 100
STARTER_SEED = 2020
STARTER_SETS = ("manual", "mine", "mine+man", "man+para", "all")
# Of what the starter's tables need besides that study: fewer facts, so that they end in minutes.
STARTER_FEWER = 30
ENTITIES = "it reads texts with linked entities, which no backend here does"
WITH_ENTITIES = {
    "ERNIE": f"{ENTITIES}; without entities it is a BERT (`models convert`), and the paper doesn't "
    "say how it was asked",
    "KnowBert": ENTITIES,
}
# Google-RE's relations and T-REx's, whose prompts and training pairs they are asked with.
GOOGLE_RE = {"place_of_birth": "P19", "date_of_birth": "P569", "place_of_death": "P20"}


@dataclass(frozen=True, slots=True)
class Source(Data):
    """Facts, prompts and training pairs.

    prompts: None is the relations' own. training: None is half of the facts. other: what the data
    are where they are not LAMA's and LPAQA's.
    """

    prompts: Path | None = None
    training: Path | None = None

    @property
    def is_starter(self) -> bool:
        """Whether it is the facts that come with the project."""
        return self.name == STARTER


def find_source(asked: str | None, on_progress: OnProgress) -> Source:
    """The data that a user named; else LAMA and LPAQA, fetched; else the starter facts.

    asked: a folder with `lama` and `lpaqa` in it, or other facts, which are queried with their own
    prompts. Raises UserError for a folder that has only one of the two.
    """
    starter = Source(STARTER, "starter facts and prompts", prompts=ASSETS / "prompts" / STARTER)
    if asked == STARTER:
        return starter
    if asked is not None:
        folder = Path(asked).expanduser()
        lacking = [name for name in ("lama", "lpaqa") if not (folder / name).is_dir()]
        if len(lacking) == 2:
            return Source(asked, f"facts of {asked}")
        if lacking:
            raise UserError(
                f"{asked} has no folder {lacking[0]!r}: "
                "give a folder with `lama` and `lpaqa` in it."
            )
        return _with_pairs(str(folder / "lama"), folder / "lpaqa")
    for name in ("lama", "lpaqa"):
        found = find_data(
            None, own=name, installed=installed_names(), instead=starter, on_progress=on_progress
        )
        if found.absent:
            return replace(starter, absent=found.absent)
    return _with_pairs("lama", installed_dir("lpaqa"))


def _with_pairs(facts: str, lpaqa: Path) -> Source:
    return Source(facts, prompts=lpaqa, training=lpaqa / TRAINING_FOLDER)


@dataclass
class Studies(Prepared):
    """The studies that the tables are made from, each made when a table needs it, and once."""

    _studied: dict[StudyRequest, Study | UserError] = field(default_factory=dict)

    @cached_property
    def data(self) -> Source:
        """See `find_source`."""
        return find_source(self.options.dataset, self.on_progress)

    @property
    def asked(self) -> tuple[str, ...]:
        """Names of the user's models, by default the embedded one."""
        return tuple(self.options.models) or (DEFAULT_MODEL,)

    @property
    def limit(self) -> int | None:
        """Training and test facts of each relation, at most."""
        if self.options.limit is None and self.data.is_starter:
            return STARTER_LIMIT
        return self.options.limit

    @property
    def notes(self) -> tuple[str, ...]:
        """What is so of all tables."""
        source = self.data
        said = ["LAMA's T-REx facts with LPAQA's prompts and training pairs"]
        if source.other:
            said = [f"On {source.other}"]
        if source.training is None:
            said.append("half of the facts train, the other half tests")
        if self.limit is not None:
            said.append(f"at most {self.limit:,} facts of each relation to train and to test")
        return (
            f"{'; '.join(said)}. Raw ranking, as in the paper.",
            "The paper's values stand only beside a model of the paper: "
            f"{' and '.join(BERTS)}. Others have no published value.",
            *(f"{one.what}: {one.reason}" for one in source.absent),
        )

    @cached_property
    def dataset(self) -> Dataset:
        """The facts."""
        return load_dataset(self.data.name)

    @cached_property
    def relation_names(self) -> tuple[str, ...]:
        """The relations that have facts and prompts, and training pairs where those are given."""
        source, data = self.data, self.dataset
        named = None if source.prompts is None else relations_in(source.prompts)
        return tuple(
            one.name
            for one in data.relations
            if one.prompts
            and data.facts_of(one.name)
            and (named is None or one.name in named)
            and (source.training is None or (source.training / f"{one.name}.jsonl").is_file())
        )

    @cached_property
    def mined_prompts(self) -> dict[str, tuple[str, ...]]:
        """The mined prompts of every relation that has some, in the order of their file."""
        found = {}
        for name in self.relation_names:
            pool = load_pool(self.dataset.relation(name), folder=self.data.prompts)
            if members := pool.members("mine"):
                found[name] = tuple(pool.templates[number] for number in members)
        return found

    def split(self, relation: str) -> Split:
        """A relation's training pairs and test facts, before any are drawn."""
        return load_split(self.data.training, self.dataset, relation)

    def request(self, model: str) -> StudyRequest:
        """The study that most tables are of."""
        source = self.data
        return StudyRequest(
            dataset=source.name,
            model=model,
            prompts=source.prompts,
            training=source.training,
            candidates=COMMON if source.is_starter else None,
            combinations=STARTER_SETS if source.is_starter else COMBINATIONS,
            recipes=("released",) if source.is_starter else ("released", "paper"),
            limit=self.limit,
            train_limit=self.limit,
            seed=STARTER_SEED if source.is_starter else None,
            drop_overlap=source.training is not None,
        )

    def fewer(self, model: str) -> StudyRequest:
        """As `request`, of fewer of the starter's facts and by one recipe, for single tables."""
        asked = replace(self.request(model), recipes=("released",), curves=False)
        if not self.data.is_starter or self.options.limit is not None:
            return asked
        return replace(asked, limit=STARTER_FEWER, train_limit=STARTER_FEWER)

    def study(self, model: str, request: StudyRequest | None = None) -> Study:
        """A model's study. Raises UserError, each time the same, where it can't be made."""
        asked = request or self.request(model)
        if asked not in self._studied:
            self._studied[asked] = self._study(asked)
        found = self._studied[asked]
        if isinstance(found, UserError):
            raise found
        return found

    def relations(self, model: str, request: StudyRequest | None = None) -> list[RelationStudy]:
        """The relations of a model's study. Raises UserError as `study`."""
        study = self.study(model, request)
        return [study.relation(name) for name in study.relations]

    def absent(self) -> tuple[UnavailableItem, ...]:
        """The paper's models that weren't requested."""
        command = f"lama-explorer reproduce {PAPER} --model "
        return tuple(
            UnavailableItem(title, "nothing of it is shown: it wasn't asked for", command + name)
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
        """What of some test facts isn't the paper's. of: its relations and facts, if known."""
        return differing(
            data=self.data.other,
            relations=(n_relations, of[0]),
            facts=None if of[1] is None else (n_facts, of[1]),
            limit=limit or self.limit,
        )

    def uhn(self, model: str) -> StudyRequest:
        """The study without facts whose object stands in the subject."""
        folder = self._kept("uhn", self.dataset.digest, lambda to: write_uhn(self.dataset, to))
        return replace(self.fewer(model), dataset=str(folder), candidates=self._candidates)

    def google_re(self, model: str) -> StudyRequest:
        """The study of Google-RE's facts, asked with T-REx's prompts of the same relations.

        Raises UserError if none of them are here.
        """
        if not any(map(self.dataset.facts_of, GOOGLE_RE)):
            raise UserError("None of Google-RE's facts are in the data that is here.")
        folder = self._kept(
            "google-re", self.dataset.digest, lambda to: lama_writer.write(self._renamed(), to)
        )
        return replace(self.fewer(model), dataset=str(folder), candidates=self._candidates)

    def with_prompts(self, model: str, pools: Mapping[str, Sequence[str]]) -> StudyRequest:
        """The study of these prompts alone, by relation: they count as mined ones."""
        content = json.dumps({name: list(texts) for name, texts in pools.items()})
        folder = self._kept("prompts", content, lambda to: _write_prompts(to, pools))
        return replace(
            self.fewer(model), relations=tuple(pools), prompts=folder, combinations=("mine",)
        )

    def _study(self, asked: StudyRequest) -> Study | UserError:
        # Studies of one table alone are kept aside, away from those that the pages list.
        aside = asked != self.request(asked.model)
        try:
            planned = plan_study(asked, load=self.load)
            for note in planned.notes:
                self.options.on_note(note)
            run = execute(
                planned.spec,
                folder=data_dir() / "reproductions" / "runs" if aside else None,
                load=self.load,
                on_progress=self.on_progress,
                on_note=self.options.on_note,
            )
            return Study(run)
        except UserError as error:
            return error

    @property
    def _candidates(self) -> str | None:
        """The published vocabulary for facts that lie in the cache, away from it."""
        beside = Path(self.data.name).expanduser() / VOCABULARY_FILE
        return f"file:{beside}" if beside.is_file() else self.request("").candidates

    def _renamed(self) -> Dataset:
        """Google-RE's facts under the names of T-REx's relations, with Google-RE's templates."""
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
        """A folder of the cache, written when it isn't there; another for other content."""
        digest = hashlib.sha256(json.dumps([what, of]).encode()).hexdigest()[:16]
        place = cache_dir() / "reproductions" / f"{what}-{digest}"
        if not place.is_dir():
            with work_folder(place.parent) as work:
                write(work / what)
                replace_folder(work / what, place)
        return place


def _write_prompts(folder: Path, pools: Mapping[str, Sequence[str]]) -> None:
    mined = folder / FOLDERS["mined"]
    mined.mkdir(parents=True)
    for name, templates in pools.items():
        lines = [json.dumps({"template": text}, ensure_ascii=False) + "\n" for text in templates]
        (mined / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
