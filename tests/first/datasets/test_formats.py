"""For each format: what was written is read again, and a broken row is excluded with its reason."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_formats import (
    CAMPAIGN,
    ENDS,
    NO_JSON,
    NO_PAIR,
    WORDS,
    Form,
    analogies_of,
    check_imported,
    check_rows,
    check_twice,
    line,
    pair,
    templates_of,
)


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


@pytest.mark.parametrize("name", FORMS)
@CAMPAIGN
@given(data=st.data(), end=st.sampled_from(ENDS))
def test_whole_rows_are_read_as_written_and_each_broken_one_is_excluded_with_its_reason(
    name: str, data: st.DataObject, end: str
) -> None:
    check_rows(FORMS[name], data, end)


@pytest.mark.parametrize("name", [name for name, form in FORMS.items() if form.twice])
def test_a_row_that_stands_twice_counts_once(name: str, tmp_path: Path) -> None:
    check_twice(FORMS[name], tmp_path)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("name", FORMS)
def test_what_is_imported_is_what_is_read_where_it_lies(name: str, tmp_path: Path) -> None:
    check_imported(FORMS[name], tmp_path)
