"""LPAQA's published tables: every cell there, and in agreement with one another."""

import pytest

from lama_core.published import load_published, published_table

# By table: cells that are there, and cells that the paper leaves empty or that can't be read.
CELLS = {
    "table1": (4 * 3, 0),
    "table2": (2 * 4 * 5 + 2, 2 * 4),
    "table3": (2 * 4 * 5 + 2, 2 * 4),
    "table4": (6 * 3, 0),
    "table5": (3 * 7, 0),
    "table6": (5 * 3, 0),
    "table7": (2 * 5, 0),
    "table8": (3 * 5, 0),
    "table9": (2 * 1, 2 * 4),
    "table10": (2 * 3, 2 * 2),
    "table11": (6, 0),
    "table12": (4 * 4, 0),
    "table13": (4 * 4, 0),
    "table14": (2 * 5, 0),
    "table15": (2 * 4, 0),
    "figure1": (3 * 5 * 2, 0),
    "figure3": (1, 0),
    "edit-distances": (2, 0),
    "majority": (2, 0),
    "figures": (3 * 2, 0),
}
SETS = ("Mine", "Mine+Man", "Mine+Para", "Man+Para")


def test_every_cell_of_the_paper_is_there() -> None:
    found = {}
    for table in load_published("jiang2020"):
        cells = [value for row in table.rows for value in row.values]
        n_empty = sum(value is None for value in cells)
        found[table.id] = (len(cells) - n_empty, n_empty)
    assert found == CELLS


def test_a_table_with_unread_cells_says_so() -> None:
    for name in ("table9", "table10", "figure1"):
        assert "copy" in published_table("jiang2020", name).note


@pytest.mark.parametrize(
    ("table", "models"),
    [
        ("table12", {"BERT-base": "BERT-base", "BERT-large": "BERT-large"}),
        ("table13", {"BERT": "BERT-base"}),
    ],
)
def test_a_models_own_weights_give_its_optimised_ensemble(
    table: str, models: dict[str, str]
) -> None:
    for printed, model in models.items():
        for prompts in SETS:
            own = published_table("jiang2020", table).value(
                f"{printed}, weights of {printed}", prompts=prompts
            )
            assert own == published_table("jiang2020", "table2").value(
                "Opti.", model=model, prompts=prompts
            )


def test_ernies_own_weights_give_its_line_of_table_8() -> None:
    for prompts in SETS:
        own = published_table("jiang2020", "table13").value(
            "ERNIE, weights of ERNIE", prompts=prompts
        )
        assert own == published_table("jiang2020", "table8").value(prompts, model="ERNIE")


def test_middle_and_dependency_prompts_together_are_the_mined_ones() -> None:
    ablation = published_table("jiang2020", "table7")
    for column in ablation.columns:
        both = ablation.value(column, model="BERT-base", prompts="Mid+Dep")
        mine = published_table("jiang2020", "table2").value(
            column, model="BERT-base", prompts="Mine"
        )
        assert both == mine


def test_the_oracle_is_never_below_an_ensemble() -> None:
    for name in ("table2", "table3", "table7", "table14"):
        table = published_table("jiang2020", name)
        for row in table.rows:
            numbers = [float(value) for value in row.values if value is not None]
            assert len(numbers) == 1 or max(numbers) == numbers[-1], (name, row.labels)


def test_the_mean_number_of_facts_times_the_relations_is_lamas_total() -> None:
    total = published_table("petroni2019", "table2")
    (facts,) = {
        row.labels[3]
        for row in total.rows
        if row.labels[0] == "TREx" and row.labels[2] is None
    }  # fmt: skip
    mean = published_table("jiang2020", "table1").value("T-REx", property="subject-object pairs")
    assert mean is not None
    assert mean == pytest.approx(float(str(facts)) / 41, abs=0.05)


def test_weights_are_sorted_and_sum_to_at_most_one() -> None:
    for row in published_table("jiang2020", "table5").rows:
        weights = [float(str(value)) for value in row.values[1:6:2]]
        assert weights == sorted(weights, reverse=True) and sum(weights) <= 1


def test_answers_of_figure_1_come_best_first() -> None:
    rows = published_table("jiang2020", "figure1").rows
    for prompts in ("manual", "mined", "paraphrased"):
        values = [float(str(row.values[1])) for row in rows if row.labels[0] == prompts]
        assert len(values) == 5 and values == sorted(values, reverse=True)


def test_table_15_heads_micro_as_macro() -> None:
    backward = published_table("jiang2020", "table15")
    for heading, table in (("macro", "table2"), ("micro", "table3")):
        printed = backward.value(f"Paraphrase {heading}", features="forward")
        assert printed == published_table("jiang2020", table).value(
            "Opti.", model="BERT-base", prompts="Man+Para"
        )
    assert "interchanged" in backward.note
