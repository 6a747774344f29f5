"""Small analogy sets and a word-vector file for the tests in this folder."""

from pathlib import Path

from lama_core.datasets.base import AnalogyDataset, AnalogyRelation, ReadReport, make_analogies

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
