"""A row's template, relation and type belong to its fact."""

from itertools import permutations
from pathlib import Path

import pytest

from lama_core.datasets import user_table
from lama_core.datasets.dataset import Dataset
from lama_core.errors import UserError

CAPITAL, LANGUAGE, TONGUE = "The capital of [X] is [Y].", "[X] speaks [Y].", "In [X]: [Y]."


def load(folder: Path, *rows: str, header: str = "subject,object,template") -> Dataset:
    path = folder / "facts.csv"
    path.write_text("\n".join((header, *rows)) + "\n")
    return user_table.load(path)


@pytest.mark.parametrize("order", list(permutations(range(4)))[::5])
def test_facts_with_the_same_templates_share_the_relations_prompts(
    order: tuple[int, ...], tmp_path: Path
) -> None:
    rows = [
        f"{pair},{text}" for pair in ("Peru,Lima", "Chile,Santiago") for text in (CAPITAL, TONGUE)
    ]
    found = load(tmp_path, *(rows[at] for at in order))
    assert {prompt.template for prompt in found.relations[0].prompts} == {CAPITAL, TONGUE}
    assert not any(fact.templates for fact in found.facts)
    assert not found.report.dropped


def test_further_rows_of_a_fact_add_templates_in_order(tmp_path: Path) -> None:
    found = load(
        tmp_path, f"Italy,Italian,{LANGUAGE}", f"Peru,Lima,{CAPITAL}", f"Italy,Italian,{TONGUE}"
    )
    assert [fact.templates for fact in found.facts] == [(LANGUAGE, TONGUE), (CAPITAL,)]
    assert found.relations[0].own_templates == 2


def test_a_row_without_a_template_takes_the_only_one_of_its_relation(tmp_path: Path) -> None:
    found = load(tmp_path, f"Peru,Lima,{CAPITAL}", "Chile,Santiago,")
    assert [prompt.template for prompt in found.relations[0].prompts] == [CAPITAL]
    assert len(found.facts) == 2


def test_a_row_without_a_template_is_left_out_where_templates_differ(tmp_path: Path) -> None:
    found = load(tmp_path, f"Peru,Lima,{CAPITAL}", f"Italy,Italian,{LANGUAGE}", "Chile,Santiago,")
    assert [fact.subject for fact in found.facts] == ["Peru", "Italy"]
    assert "has different templates, and the row no template" in found.report.dropped[0].reason


@pytest.mark.parametrize("role", ["relation", "type"])
def test_a_blank_cell_of_a_filled_column_is_refused_with_its_lines(
    role: str, tmp_path: Path
) -> None:
    rows = ["Peru,Lima,1-1", "Chile,Santiago,", "Norway,Oslo,1-1", "Italy,Rome, "]
    with pytest.raises(
        UserError, match=f"the {role} is blank in line 3, 5, and other rows have one"
    ):
        load(tmp_path, *rows, header=f"subject,object,{role}")


def test_a_list_in_a_cell_gives_a_fact_several_templates(tmp_path: Path) -> None:
    path = tmp_path / "facts.jsonl"
    path.write_text(
        f'{{"subject": "Peru", "object": "Lima", "template": ["{CAPITAL}", "{TONGUE}"]}}\n'
        f'{{"subject": "Italy", "object": "Italian", "template": "{LANGUAGE}"}}\n'
    )
    assert [fact.templates for fact in user_table.load(path).facts] == [
        (CAPITAL, TONGUE),
        (LANGUAGE,),
    ]
