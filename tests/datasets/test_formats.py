"""For each format: what was written is read again, and a broken row is excluded with its reason."""

import gzip
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_records import WRITERS

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


def zsre(n: int, a: str, b: str, **changed: Any) -> str:
    row = {
        "id": str(n),
        "input": f"{a} [SEP] P1",
        "output": [{"answer": b}],
        "meta": {"template_questions": ["Who?"]},
    }
    return line(row | changed)


def counterfact(n: int, a: str, b: str, prompt: Any = "{} is", **changed: Any) -> str:
    rewrite = {"prompt": prompt, "relation_id": "P1", "subject": a, "target_true": {"str": b}}
    row: dict[str, Any] = {"case_id": n, "requested_rewrite": rewrite}
    return line(row | {"paraphrase_prompts": [], "neighborhood_prompts": []} | changed)


def trex(n: int, a: str, b: str, **changed: Any) -> str:
    text = f"{a} is {b}"
    ends = [len(f"{a} is "), len(text)]
    triple = {
        "subject": {"uri": f"wiki/Q{n}", "surfaceform": a},
        "predicate": {"uri": "direct/P1"},
        "object": {"uri": "wiki/Q9", "surfaceform": b, "boundaries": ends},
        "sentence_id": 0,
    }
    row: dict[str, Any] = {"docid": str(n), "title": "", "text": text, "triples": [triple]}
    return line(row | {"sentences_boundaries": [[0, len(text)]]} | changed)


def popqa(n: int, a: str, b: str, **changed: Any) -> str:
    row = {"id": n, "subj": a, "prop": "P1", "obj": b, "question": "Who?", "s_pop": "1.0"}
    return line(row | {"possible_answers": line([b])} | changed)


TEMPLATE = '{"relation": "P1", "template": "[X] is [Y]."}'
FORMS: dict[str, Form] = {
    "lama": Form(
        "TREx/P1.jsonl",
        lambda n, a, b: line({"sub_label": a, "obj_label": b, "uuid": str(n)}),
        (
            *NO_PAIR,
            (line({"sub_label": "x", "obj_label": "y", "evidences": 3}), "'evidences' is not a li"),
            (line({"sub_label": "x", "obj_label": "y", "predicate_id": "P20"}), "predicate_id is"),
        ),
        "duplicate of line 1: the id '0'",
        beside=(("relations.jsonl", TEMPLATE),),
    ),
    "mlama": Form("P1.jsonl", pair, beside=(("templates.jsonl", TEMPLATE),)),
    "bear": Form(
        "P1.jsonl",
        pair,
        twice="duplicate of line 1: 'Peru' with 'Lima'",
        beside=(("metadata_relations.json", '{"P1": {"templates": ["[X] is [Y]."]}}'),),
    ),
    "pararel": Form("trex_lms_vocab/P1.jsonl", pair),
    "lpaqa": Form(
        "TREx_train/P1.jsonl",
        pair,
        beside=(("prompt/mine/P1.jsonl", '{"template": "[X] is [Y]."}'),),
    ),
    "lpaqa's templates": Form(
        "prompt/mine/P1.jsonl",
        lambda n, a, b: line({"template": f"[X] is {a} of [Y]{b}", "weight": n / 4}),
        (
            *NO_JSON,
            ('{"template": "[Y] of [X]", "weight": "half"}', "'weight' is a str, not a number"),
            ('{"template": "[X] is"}', "the template '[X] is' has no [Y]"),
            ('{"template": "is [Y]"}', "the template 'is [Y]' has no [X]"),
        ),
        read=templates_of,
        beside=(("TREx_train/P1.jsonl", pair(0, "Peru", "Lima")),),
    ),
    "pararel's patterns": Form(
        "data/pattern_data/graphs_json/P1.jsonl",
        lambda n, a, b: line({"pattern": f"[X] is {a} of [Y]{b}"}),
        (*NO_JSON, ('{"pattern": "[X] [X] [Y]"}', "the template '[X] [X] [Y]' has 2 [X]")),
        "duplicate pattern",
        read=templates_of,
        beside=(("data/trex_lms_vocab/P1.jsonl", pair(0, "Peru", "Lima")),),
    ),
    "kbc": Form(
        "kbc",
        lambda n, a, b: line({"SubjectEntity": a, "Relation": "P1", "ObjectEntities": [b]}),
        (*NO_JSON, ('{"SubjectEntity": "x", "Relation": "P1", "ObjectEntities": []}', "no object")),
    ),
    "zsre": Form("zsre.txt", zsre, (
        *NO_JSON,
        (zsre(7, "x", "y", output=[]), "no answer in 'output'"),
        (zsre(7, "x", "y", meta={}), "no question in 'meta.template_questions'"),
        (line({"input": "Ana [SEP] job"}), "no field 'output'"),
        (zsre(7, "x", "y", input="[SEP] job"), "'input' is '[SEP] job': a side of [SEP] is empty"),
    ), "duplicate of line 1: 'Peru' with 'Lima'"),
    "popqa": Form("popqa", popqa, (
        *NO_JSON,
        (popqa(7, "x", "y", possible_answers="y"), "'possible_answers' is not a list"),
        (popqa(7, "x", "y", possible_answers='{"a": 1}'), "'possible_answers' is not a list of te"),
        (popqa(7, "x", "y", s_pop="many"), "'s_pop' is 'many', not a whole number"),
        (popqa(7, "x", "y", question=" "), "no field 'question'"),
    ), "duplicate of line 1: the id 0"),
    "counterfact": Form("cases", counterfact, (
        ("{}", "expected a JSON object, not a NoneType"),
        (counterfact(7, "x", "y", "It is"), "the prompt 'It is' needs exactly one {} for the subj"),
        (counterfact(7, "x", "y", paraphrase_prompts=[1]), "'paraphrase_prompts' is not a list of"),
        ("[]", "expected a JSON object, not a list"),
    ), "the id 'P1:0' is that of item 1", as_list=True),
    "trex": Form("re-nlg.json", trex, (
        (trex(7, "x", "y", triples=3), "'triples' is not a list"),
        (trex(7, "x", "y", triples=[{"subject": 3}]), "expected a JSON object, not a int"),
        ("null", "expected a JSON object, not a NoneType"),
    ), as_list=True),
    "bats": Form(
        "3_Encyclopedic_semantics/E01 [x].TXT",
        lambda n, a, b: f"{a}\t{b}",
        (
            ("alone", "expected a head, a tab and its tails"),
            (b"\xff\tx", "not valid UTF-8"),
            ("a\tb\tc", "expected a head, a tab and its tails"),
            ("a\t//", "empty head or tails"),
        ),
        "duplicate pair of 'Peru'",
        read=analogies_of,
    ),
    "google": Form(
        "questions",
        lambda n, a, b: f"{a} {b} {a} {b}",
        (("only three words", "expected four words, not 3"), (b"\xff x x x", "not valid UTF-8")),
        head=": x",
        names=WORDS,
        read=analogies_of,
    ),
    "table": Form(
        "mine.csv",
        lambda n, a, b: ",".join('"' + cell.replace('"', '""') + '"' for cell in (a, b))
        + ",[X] is [Y]",
        (
            ("x,y,[X] is it", "mine: the template '[X] is it' has no [Y]"),
            ("x,y,it is [Y]", "mine: the template 'it is [Y]' has no [X]"),
            ("x,y,[X] or [X] is [Y]", "mine: the template '[X] or [X] is [Y]' has 2 [X]"),
            ("x,y,[X] is [Y] or [Y]", "mine: the template '[X] is [Y] or [Y]' has 2 [Y]"),
            ("x,,[X] is [Y]", "no object: 'object' is empty"),
            ("x,y", "2 cells, but the header has 3"),
            ("a,b,c,d", "4 cells, but the header has 3"),
            ("alone", "1 cells"),
            ('"a', "its quotes are wrong"),
            ('"a"b,c,d', "its quotes are wrong"),
            ('"a,"b,c', "its quotes are wrong"),
            (b"\xff,x,[X] [Y]", "not valid UTF-8"),
        ),
        "duplicate of line 2",
        head="subject,object,template",
    ),
}  # fmt: skip
CAMPAIGN = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("name", FORMS)
@CAMPAIGN
@given(data=st.data(), end=st.sampled_from(ENDS))
def test_whole_rows_are_read_as_written_and_each_broken_one_is_excluded_with_its_reason(
    name: str, data: st.DataObject, end: str
) -> None:
    form = FORMS[name]
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


@pytest.mark.parametrize("name", [name for name, form in FORMS.items() if form.twice])
def test_a_row_that_stands_twice_counts_once(name: str, tmp_path: Path) -> None:
    form = FORMS[name]
    form.write(tmp_path, [form.row(0, "Peru", "Lima"), form.row(0, "Peru", "Lima")], "\n")
    dataset = formats.load(tmp_path)
    assert form.read(dataset) == [("Peru", "Lima")]
    (dropped,) = dataset.report.dropped
    assert form.twice in dropped.reason


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("name", FORMS)
def test_what_is_imported_is_what_is_read_where_it_lies(name: str, tmp_path: Path) -> None:
    form = FORMS[name]
    form.write(tmp_path / "mine", [form.row(0, "Peru", "Lima"), form.row(1, "Italy", "Rome")], "\n")
    there = formats.load(tmp_path / "mine")
    imported = download.import_dataset(tmp_path / "mine").dataset
    load = load_dataset if isinstance(there, Dataset) else load_analogies
    again = load("mine")
    assert again.digest == there.digest == imported.digest
    assert form.read(again) == form.read(there) == [("Peru", "Lima"), ("Italy", "Rome")]


@pytest.mark.parametrize("form", ("csv", "quoted tsv", "parquet"))
@CAMPAIGN
@given(
    pairs=st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=5, unique=True),
    is_packed=st.booleans(),
)
def test_popqa_is_a_table_of_any_form(form: str, pairs: list[Pair], is_packed: bool) -> None:
    rows = [json.loads(popqa(n, *one)) for n, one in enumerate(pairs)]
    data = WRITERS[form]([list(rows[0]), *(list(map(str, row.values())) for row in rows)])
    with tempfile.TemporaryDirectory() as folder:
        put(Path(folder) / "popqa", gzip.compress(data) if is_packed else data)
        dataset = formats.load(Path(folder))
    assert pairs_of(dataset) == pairs and dataset.report.dropped == ()
