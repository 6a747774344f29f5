"""Queries of imported results are paired by their templates, whatever their numbers and order."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from data_files import write_lines
from imported_runs import imported

from lama_core.metrics.comparison import pair_rows
from lama_core.runs.alignment import align, number_rows
from lama_core.runs.info import Run

CAPITALS = {"Peru": "Lima", "Chile": "Santiago", "Ghana": "Accra", "Latvia": "Riga"}
TEMPLATES = (
    "The capital of [X] is [Y].",
    "[Y] is the capital of [X].",
    "[X], whose capital is [Y]",
    "In [X], they govern from [Y]",
)


def as_table(path: Path, templates: Sequence[str], shuffle: random.Random | None = None) -> Run:
    """Import a table with the ranks of each fact's query with each template."""
    rows = [
        {
            "subject": country,
            "relation": "seat",
            "object": capital,
            "query": one.replace("[X]", country).replace("[Y]", "[MASK]"),
            "rank": 1 + (len(one) + len(country)) % 3,
        }
        for country, capital in CAPITALS.items()
        for one in templates
    ]
    if shuffle:
        shuffle.shuffle(rows)
    return imported(write_lines(path, rows), model=path.stem)


def as_quiz(folder: Path, used: Sequence[int]) -> Run:
    """Import a folder of lm-pub-quiz with the scores of each fact's query with some templates."""
    folder.mkdir()
    labels = list(CAPITALS.values())
    about = {
        "templates": list(TEMPLATES),
        "template_index": list(used),
        "model_name_or_path": folder.name,
        "lm_pub_quiz_version": "0.6.0",
        "dataset_name": "own",
        "answer_space_labels": labels,
        "answer_space_ids": labels,
    }
    rows = [
        {
            "sub_label": country,
            "answer_idx": at,
            "template_index": number,
            "pll_scores": [-1.0 if other == at else -2.0 for other in range(len(labels))],
        }
        for at, country in enumerate(CAPITALS)
        for number in used
    ]
    (folder / "metadata_results.json").write_text(json.dumps({"seat": about}), encoding="utf-8")
    write_lines(folder / "seat_results.jsonl", rows)
    return imported(folder, model=folder.stem)


def paired(a: Run, b: Run) -> set[tuple[str, str]]:
    """The queries of each two rows that are compared, as both runs have them."""
    aligned = align([a, b])
    pairs, _ = pair_rows(*aligned, ranking="raw")
    if not len(pairs):
        return set()
    assert len(pairs) == aligned[0].info.n == aligned[1].info.n
    keys = number_rows(aligned)
    at = {key: row for row, key in enumerate(keys[1].tolist())}
    texts = [list(run.column("query")) for run in aligned]
    return {(texts[0][row], texts[1][at[keys[0][row]]]) for row in pairs["row"].tolist()}


def queries(templates: Sequence[str]) -> set[str]:
    return {
        one.replace("[X]", country).replace("[Y]", "[MASK]")
        for country in CAPITALS
        for one in templates
    }


@pytest.mark.parametrize("seed", range(3))
def test_files_with_other_sets_of_templates_share_the_queries_that_both_have(
    home: Path, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    some, others = (chance.sample(TEMPLATES, chance.randint(2, 4)) for _ in range(2))
    a = as_table(tmp_path / "a.jsonl", some, chance)
    b = as_table(tmp_path / "b.jsonl", others, chance)
    both = {one for one in some if one in others}
    assert {left for left, right in paired(a, b) if left == right} == queries(sorted(both))
    assert len(paired(a, b)) == len(CAPITALS) * len(both)


@pytest.mark.parametrize("used", [(0,), (2,), (0, 2), (3, 1, 2)])
def test_lm_pub_quiz_is_paired_by_the_templates_it_used(
    home: Path, tmp_path: Path, used: tuple[int, ...]
) -> None:
    every, some = as_quiz(tmp_path / "every", range(4)), as_quiz(tmp_path / "some", used)
    assert some.info.relations[0].n_templates == len(used)
    assert paired(every, some) == {(one, one) for one in queries([TEMPLATES[at] for at in used])}


def test_runs_that_ask_each_fact_once_are_paired_by_the_fact(home: Path, tmp_path: Path) -> None:
    one, other = as_quiz(tmp_path / "one", [2]), as_quiz(tmp_path / "other", [0])
    assert len(paired(one, other)) == len(CAPITALS)
    a = as_table(tmp_path / "a.jsonl", TEMPLATES[:1])
    b = as_table(tmp_path / "b.jsonl", TEMPLATES[1:2])
    assert len(paired(a, b)) == len(CAPITALS)
