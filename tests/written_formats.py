"""Data in the layouts of published formats, and what readers do with them."""

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from lama_core.datasets import formats, load_analogies, load_dataset
from lama_core.datasets.dataset import AnalogyDataset, Dataset
from lama_core.datasets.library import download

Pair = tuple[str, str]  # subject and object
Broken = tuple[tuple[str | bytes, str], ...]  # a row, and how its reason begins

# What files contain that readers may stumble over. A name has no space at its ends, and none of the
# marks to which a format gives a meaning: `_` and `/` (BATS), `{}` (CounterFact), `[SEP]` (zsRE).
MARKS = "aZé北ا '\",;|\\:#@?!.-()“«0¿‘…\u00a0\u200b\u200d"
LETTERS = st.one_of(
    st.sampled_from(MARKS), st.characters(min_codepoint=0xA1, max_codepoint=0x2FFF, categories="L")
)
NAMES = st.text(LETTERS, min_size=1, max_size=8).filter(
    lambda text: text == text.strip() and any(map(str.isalnum, text))
)
WORDS = NAMES.filter(lambda text: len(text.split()) == 1 and not text.startswith(":"))
ENDS = ("\n", "\r\n", "\n\n", "")

NO_JSON: Broken = (
    ("{", "not valid JSON"),
    ("\x00", "not valid JSON"),
    ('{"sub_label": "x", "obj_label": "y"} trailing', "not valid JSON"),
    ('{"sub_label": "\\ud800", "obj_label": "y"}', "not valid JSON"),
    (b'{"sub_label": "\xff", "obj_label": "y"}', "not valid UTF-8"),
    ("[]", "expected a JSON object, not a list"),
    ("null", "expected a JSON object, not a NoneType"),
    ('"text"', "expected a JSON object, not a str"),
)
NO_PAIR: Broken = (
    *NO_JSON,
    ("{}", "no field 'sub_label'"),
    ('{"sub_label": "x"}', "no field 'obj_label'"),
    ('{"sub_label": "", "obj_label": "y"}', "'sub_label' is empty"),
    ('{"sub_label": "x", "obj_label": " "}', "'obj_label' is empty"),
    ('{"sub_label": 1.5, "obj_label": "y"}', "'sub_label' is a float"),
    ('{"sub_label": {"a": 1}, "obj_label": "y"}', "'sub_label' is a dict"),
)


def line(row: object) -> str:
    return json.dumps(row, ensure_ascii=False)


def pair(n: int, a: str, b: str) -> str:
    return line({"sub_label": a, "obj_label": b})


def pairs_of(dataset: Any) -> list[Pair]:
    assert isinstance(dataset, Dataset)
    return [(fact.subject, fact.object) for fact in dataset.facts]


def analogies_of(dataset: Any) -> list[Pair]:
    assert isinstance(dataset, AnalogyDataset)
    (relation,) = dataset.relations
    return [(head, *tails) for head, tails in relation.pairs]


def templates_of(dataset: Any) -> list[Pair]:
    texts = [prompt.template.removeprefix("[X] is ") for prompt in dataset.relations[0].prompts]
    return [(text.split(" of [Y]")[0], text.split(" of [Y]")[1]) for text in texts]


@dataclass(frozen=True, slots=True)
class Form:
    """How a format is written.

    file: where its rows stand. row: of a fact by its number. head: before the rows, in the same
    file. beside: other files that it needs. twice: how the reason of a second row for the same fact
    begins; of some formats it is another fact. as_list: the rows are the items of a JSON list.
    """

    file: str
    row: Callable[[int, str, str], str]
    broken: Broken = NO_PAIR
    twice: str = ""
    head: str = ""
    beside: tuple[tuple[str, str], ...] = ()
    names: st.SearchStrategy[str] = NAMES
    read: Callable[[Any], list[Pair]] = pairs_of
    as_list: bool = False

    def write(self, folder: Path, rows: Sequence[str | bytes], end: str) -> None:
        """Write the rows; lines end with `end`, and without it with a line feed after a BOM."""
        raw = [row.encode() if isinstance(row, str) else row for row in rows]
        for name, text in self.beside:
            put(folder / name, text.encode())
        if self.as_list:
            put(folder / self.file, b"[" + b",\n".join(raw) + b"]")
            return
        mark = b"" if end else "\ufeff".encode()
        between = (end or "\n").encode()
        lines = [self.head.encode(), *raw] if self.head else raw
        put(folder / self.file, mark + b"".join(one + between for one in lines))

    def number(self, place: int, end: str) -> int:
        """The line of the row at a place, from 0; 0 in a list."""
        step = 2 if end == "\n\n" else 1
        return 0 if self.as_list else 1 + step * (place + bool(self.head))


def put(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


CAMPAIGN = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def check_rows(form: Form, data: st.DataObject, end: str) -> None:
    """Whole rows are read as written, and each broken one is excluded with its reason."""
    some = st.lists(
        st.tuples(form.names, form.names), min_size=1, max_size=5, unique_by=lambda one: one[0]
    )
    pairs = data.draw(some)
    rows: list[tuple[str | bytes, str | None]] = [
        (form.row(n, *one), None) for n, one in enumerate(pairs)
    ]
    for one in data.draw(st.lists(st.sampled_from(form.broken), max_size=3)):
        rows.insert(data.draw(st.integers(1, len(rows))), one)  # a form is known by its first row
    with tempfile.TemporaryDirectory() as folder:
        form.write(Path(folder), [row for row, _ in rows], end)
        dataset = formats.load(Path(folder))
    assert form.read(dataset) == pairs
    said = [(one.line, one.reason) for one in dataset.report.dropped]
    wanted = [(place, reason) for place, (_, reason) in enumerate(rows) if reason is not None]
    assert [at for at, _ in said] == [form.number(place, end) for place, _ in wanted]
    for (_, found), (place, reason) in zip(said, wanted, strict=True):
        assert found.startswith(f"item {place + 1}: " * form.as_list + reason)


def check_twice(form: Form, folder: Path) -> None:
    form.write(folder, [form.row(0, "Peru", "Lima"), form.row(0, "Peru", "Lima")], "\n")
    dataset = formats.load(folder)
    assert form.read(dataset) == [("Peru", "Lima")]
    (dropped,) = dataset.report.dropped
    assert form.twice in dropped.reason


def check_imported(form: Form, folder: Path) -> None:
    form.write(folder / "mine", [form.row(0, "Peru", "Lima"), form.row(1, "Italy", "Rome")], "\n")
    there = formats.load(folder / "mine")
    imported = download.import_dataset(folder / "mine").dataset
    load = load_dataset if isinstance(there, Dataset) else load_analogies
    again = load("mine")
    assert again.digest == there.digest == imported.digest
    assert form.read(again) == form.read(there) == [("Peru", "Lima"), ("Italy", "Rome")]
