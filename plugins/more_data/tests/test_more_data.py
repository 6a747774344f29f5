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
    Form,
    check_imported,
    check_rows,
    check_twice,
    line,
    pair,
)


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


def popqa(n: int, a: str, b: str, **changed: Any) -> str:
    row = {"id": n, "subj": a, "prop": "P1", "obj": b, "question": "Who?", "s_pop": "1.0"}
    return line(row | {"possible_answers": line([b])} | changed)


FORMS: dict[str, Form] = {
    "bear": Form(
        "P1.jsonl",
        pair,
        twice="duplicate of line 1: 'Peru' with 'Lima'",
        beside=(("metadata_relations.json", '{"P1": {"templates": ["[X] is [Y]."]}}'),),
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
