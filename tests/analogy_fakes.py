"""Small analogy sets and a word-vector file for the tests in this folder."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lama_core.datasets.dataset import AnalogyDataset, AnalogyRelation, ReadReport, make_analogies
from lama_core.models.protocols import TokenScores
from lama_core.probes.analogy.instances import PROBES, SETTINGS, ProbeOptions, Setting
from lama_core.probes.analogy.request import AnalogyRequest
from lama_core.probes.analogy.scorers import ModelPairScorer, PairScorer
from lama_core.probes.analogy.spec import AnalogySpec, ProbeRun
from lama_core.queries.analogy_templates import TEMPLATES
from lama_core.runs.execute import execute_all

CAPITALS = (
    ("Paris", "France"), ("Rome", "Italy"), ("Berlin", "Germany"), ("Madrid", "Spain"),
    ("Oslo", "Norway"), ("Cairo", "Egypt"), ("Lima", "Peru"), ("Tokyo", "Japan"),
)  # fmt: skip
PLURALS = (
    ("painter", "painters"), ("singer", "singers"), ("teacher", "teachers"), ("poet", "poets"),
    ("lawyer", "lawyers"), ("actor", "actors"),
)  # fmt: skip


def relation(
    name: str = "capital", pairs: tuple[tuple[str, str], ...] = CAPITALS, **options: object
) -> AnalogyRelation:
    """A relation of these pairs; options: kind, one_to_many, bidirectional."""
    kind = options.pop("kind", "encyclopedic")
    return AnalogyRelation(name, kind, tuple((a, (b,)) for a, b in pairs), **options)  # type: ignore[arg-type]


def dataset(*relations: AnalogyRelation) -> AnalogyDataset:
    """A set of these relations, by default capitals and plurals."""
    chosen = relations or (
        relation(),
        relation("plural", PLURALS, kind="inflectional", bidirectional=True),
    )
    return make_analogies("small", chosen, ReadReport())


def write_vectors(path: Path, words: tuple[str, ...], *, header: bool = False) -> Path:
    """Vectors in which every capital lies at its country plus one and the same step."""
    lines = [f"{len(words)} 4"] if header else []
    for number, word in enumerate(words):
        heads = [head for head, _ in CAPITALS]
        tails = [tail for _, tail in CAPITALS]
        at = heads.index(word) if word in heads else tails.index(word) if word in tails else number
        step = 1.0 if word in tails else 0.0
        lines.append(f"{word} {at / 7:.4f} {(at * at % 5) / 3:.4f} {step} {0.5 * step + at / 50}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@dataclass(frozen=True)
class Work:
    """What is to be probed, and how; relations: () is all."""

    dataset: AnalogyDataset
    relations: tuple[str, ...] = ()
    probes: tuple[str, ...] = tuple(PROBES)
    settings: tuple[Setting, ...] = SETTINGS
    options: ProbeOptions = field(default_factory=ProbeOptions)


@dataclass(frozen=True, kw_only=True)
class MadeUpSpec(AnalogySpec):
    """A run on analogies and with a judge that are in memory."""

    data: AnalogyDataset
    judge: PairScorer

    def load_data(self) -> AnalogyDataset:
        return self.data

    def open(self, load: Any) -> PairScorer:
        return self.judge


def made_up_specs(judge: PairScorer, work: Work) -> list[MadeUpSpec]:
    names = work.relations or tuple(one.name for one in work.dataset.relations)
    return [
        MadeUpSpec(
            request=AnalogyRequest(**asdict(work.options)),
            dataset_name=work.dataset.name,
            data_digest=work.dataset.digest,
            relations=names,
            model=judge.name,
            model_name=judge.name,
            model_identity=judge.identity,
            model_kind="masked" if judge.method == "model" else judge.method,
            setting=setting,
            probe=probe,
            method=judge.method,
            data=work.dataset,
            judge=judge,
        )
        for setting in work.settings
        for probe in work.probes
    ]


def run_probes(judge: PairScorer, work: Work, **options: Any) -> tuple[ProbeRun, ...]:
    return tuple(ProbeRun(run) for run in execute_all(made_up_specs(judge, work), **options))


class Knowing:
    """A model that finds a sentence likelier for every pair in it that is a true one."""

    name = "knowing"
    identity = "knowing-1"
    device = "cpu"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def token_log_probs(self, texts: Sequence[str], *, begins: bool = False) -> list[TokenScores]:
        self.asked += texts
        right = {*CAPITALS, *PLURALS}
        found = []
        for text in texts:
            words = text.removesuffix(".").replace(",", "").split()
            a, b, c, d = words[1], words[4], words[5], words[8]
            value = -9.0 + ((a, b) in right) + ((c, d) in right)
            found.append(TokenScores((text,), np.array([value], np.float32)))
        return found


def embed(texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> NDArray[np.float32]:
    """Two numbers a word: whether it is a head, and whether a tail."""
    heads, tails = zip(*CAPITALS, *PLURALS, strict=True)
    rows = np.zeros((len(texts), 4, 2), np.float32)
    for number, (text, places) in enumerate(zip(texts, spans, strict=True)):
        for slot, (start, end) in enumerate(places):
            word = text[start:end]
            rows[number, slot] = [word in heads, word in tails]
    return rows


def knowing() -> tuple[Knowing, ModelPairScorer]:
    model = Knowing()
    return model, ModelPairScorer(model, embed, template=TEMPLATES["what-to"], normalise="sum")
