"""What is written into a table, in any form, is read again, or excluded with its line."""

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from lama_core.datasets import formats, user_table
from lama_core.datasets.dataset import AnalogyDataset
from lama_core.datasets.line_reader import Reading
from lama_core.datasets.records import read_records


def load(folder: Path, name: str, text: str, **columns: str) -> list[tuple[str, str, str]]:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    dataset = user_table.load(file, columns=user_table.ColumnRoles(**columns) if columns else None)
    return [(fact.subject, fact.relation, fact.object) for fact in dataset.facts]


def test_an_index_column_of_pandas_has_no_name(tmp_path: Path) -> None:
    text = "\tsubject\tobject\n0\tPeru\tLima\n1\tItaly\t\n"
    assert load(tmp_path, "a.tsv", text) == [("Peru", "a", "Lima")]


def test_one_column_gives_all_objects(tmp_path: Path) -> None:
    text = "subject,object,obj_label\nPeru,Lima,Cusco\nChile,,Santiago\n"
    assert load(tmp_path, "a.csv", text) == [("Peru", "a", "Lima")]


def test_each_object_of_a_list_is_a_fact_and_a_list_in_it_has_its_names(tmp_path: Path) -> None:
    rows = (
        '{"SubjectEntity": "Chile", "Relation": "borders", "ObjectEntities": ["Peru", "Peru"]}\n'
        '{"SubjectEntity": "Malta", "Relation": "borders", "ObjectEntities": []}\n'
        '{"SubjectEntity": "Spain", "Relation": "borders", '
        '"ObjectEntities": [["France", "French Republic"], ["Portugal"]]}\n'
    )
    file = tmp_path / "kbc.jsonl"
    file.write_text(rows)
    dataset = formats.load_facts(file)
    found = [(fact.subject, fact.object, fact.aliases) for fact in dataset.facts]
    assert found == [
        ("Chile", "Peru", ()),
        ("Spain", "France", ("French Republic",)),
        ("Spain", "Portugal", ()),
    ]
    assert [dropped.line for dropped in dataset.report.dropped] == [2]


@pytest.mark.parametrize(
    ("separator", "cell", "objects"),
    [
        (" / ", "Peru / Chile", ["Peru", "Chile"]),
        ("json", '"[""Peru"", ""Chile""]"', ["Peru", "Chile"]),
        ("", "Peru / Chile", ["Peru / Chile"]),
    ],
)
def test_a_cell_has_several_objects_only_with_a_separator(
    tmp_path: Path, separator: str, cell: str, objects: list[str]
) -> None:
    found = load(tmp_path, "a.csv", f"subject,object\nBolivia,{cell}\n", separator=separator)
    assert [obj for _, _, obj in found] == objects


@pytest.mark.parametrize(
    ("cell", "objects"),
    [
        ("\"['Peru', 'Côte d\u2019Ivoire']\"", ["Peru", "Côte d’Ivoire"]),
        ("\"['Peru' 'Chile']\"", ["Peru", "Chile"]),
        ("[Peru]", ["[Peru]"]),
    ],
)
def test_a_list_of_python_or_numpy_is_a_list(tmp_path: Path, cell: str, objects: list[str]) -> None:
    found = load(tmp_path, "a.csv", f"subject,object\nBolivia,{cell}\n")
    assert [obj for _, _, obj in found] == objects


@pytest.mark.parametrize(
    ("obj", "found"),
    [
        ("1879-03-14T00:00:00Z", "1879-03-14"),
        ("1879-03-14T07:30:00Z", "is a time"),
        ("http://www.wikidata.org/entity/Q90", "is not a name"),
    ],
)
def test_an_object_of_wikidata_is_a_date_or_a_name(tmp_path: Path, obj: str, found: str) -> None:
    text = f"subject,object\nPeru,Lima\nEinstein,{obj}\n"
    file = tmp_path / "a.csv"
    file.write_text(text)
    dataset = user_table.load(file)
    shown = [fact.object for fact in dataset.facts[1:]] + [
        one.reason for one in dataset.report.dropped
    ]
    assert found in shown[0]


SPARQL = {
    "head": {"vars": ["a", "b"]},
    "results": {
        "bindings": [
            {"a": {"type": "literal", "value": "Peru"}, "b": {"type": "uri", "value": "x"}},
            {"a": {"type": "literal", "value": "Chile"}},
        ]
    },
}


@pytest.mark.parametrize(
    "text",
    [
        '?a\t?b\n"Peru"@en\t<x>\n"Chile"@en-gb\t\n',
        '?a\t?b\n"Peru"^^<http://www.w3.org/2001/XMLSchema#string>\t"x"\n"Chile"\t\n',
        json.dumps(SPARQL),
        json.dumps(SPARQL, indent=1),
    ],
)
def test_results_of_sparql_are_plain_values(text: str) -> None:
    rows = [row for _, row in read_records(Reading(Path("x"), text.encode())).rows]
    assert rows == [{"a": "Peru", "b": "x"}, {"a": "Chile"}]


@pytest.mark.parametrize("name", ["facts", "facts.json", "facts.csv.gz"])
def test_a_table_may_have_any_name_alone_or_in_a_folder(tmp_path: Path, name: str) -> None:
    data = b"subject,object,template\nPeru,Lima,[X] [Y]\n"
    file = tmp_path / "folder" / name
    file.parent.mkdir()
    file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    for path in (file, file.parent):
        dataset = formats.load(path)
        assert not isinstance(dataset, AnalogyDataset)
        assert [fact.object for fact in dataset.facts] == ["Lima"]


def test_numbers_and_dates_of_parquet_and_excel_are_texts(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"subject": ["Peru"], "object": [1821.0], "origin": [pd.Timestamp("2020-01-02")]}
    )
    frame.to_parquet(tmp_path / "a.parquet")
    (fact,) = user_table.load(tmp_path / "a.parquet").facts
    assert (fact.object, fact.origin) == ("1821", "2020-01-02")


@pytest.mark.parametrize(
    ("text", "rows", "dropped"),
    [
        ('a,b\n"x \\"y\\" z",1\n', [{"a": 'x "y" z', "b": "1"}], []),
        ('a,b\np,q\nx, "y, z"\n', [{"a": "p", "b": "q"}, {"a": "x", "b": "y, z"}], []),
        ('a\tb\n"x ""y"""\t"z\n', [{"a": 'x "y"', "b": '"z'}], []),
        ('a,b\nx,"1\ny,2"\n', [], [2, 3]),  # the quotes enclose a whole row
        ('a,b\n"x,1\ny,2\nz,3\n', [{"a": "y", "b": "2"}, {"a": "z", "b": "3"}], [2]),
    ],
)
def test_quotes_are_read_as_people_write_them(
    text: str, rows: list[dict[str, str]], dropped: list[int]
) -> None:
    reading = Reading(Path("table"), text.encode())
    assert [row for _, row in read_records(reading).rows] == rows
    assert [one.line for one in reading.dropped] == dropped
