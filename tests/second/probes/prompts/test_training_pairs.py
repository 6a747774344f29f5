"""Training pairs: apart from the test facts, or refused."""

from pathlib import Path

import pytest

from lama_core.datasets.lpaqa import read_prompts
from lama_core.errors import UserError
from lama_core.probes.prompts.training_pairs import (
    RELEASED_SHARE,
    halve,
    limited_positions,
    make_split,
    overlapping_facts,
    share_of,
)
from lama_core.types import Fact


def _facts(*pairs: tuple[str, str]) -> list[Fact]:
    return [Fact(f"{n}", subject, "P1", obj, "TREx") for n, (subject, obj) in enumerate(pairs)]


TEST = _facts(("Paris", "France"), ("Rome", "Italy"))


def test_training_pairs_that_are_test_facts_are_refused_by_name() -> None:
    train = _facts(("Oslo", "Norway"), ("rome", "ITALY"))
    with pytest.raises(UserError, match=r"1 training pair.*rome - ITALY"):
        make_split("P1", train, TEST)


def test_a_subject_with_another_object_is_no_overlap() -> None:
    assert overlapping_facts(_facts(("Paris", "Texas")), TEST) == ()


def test_the_halves_are_disjoint_and_whole_and_do_not_depend_on_other_facts() -> None:
    facts = _facts(*((f"s{n}", f"o{n % 7}") for n in range(200)), ("s0", "o0"))
    train, test = halve(facts)
    assert overlapping_facts(train, test) == ()
    assert len(train) + len(test) == len(facts)
    assert 70 < len(train) < 130
    fewer, _ = halve(facts[:50])
    assert set(fewer) <= set(train)


def test_a_share_is_drawn_by_pair_and_keeps_its_order() -> None:
    facts = _facts(*((f"s{n}", f"o{n % 7}") for n in range(36)))
    train = share_of(facts, RELEASED_SHARE)
    assert len(train) == int(36 * 0.8) == 28  # as in the released `split_dev`
    assert set(train) < set(facts)
    assert [*train] == sorted(train, key=facts.index)
    turned = share_of(facts[::-1], RELEASED_SHARE)
    assert set(turned) == set(train)
    assert train != tuple(facts[:28])


def test_a_share_of_one_pair_is_that_pair_and_of_all_is_all() -> None:
    assert share_of(TEST[:1], 0.8) == (TEST[0],)
    assert share_of(TEST, 1.0) == tuple(TEST)
    for share in (0.0, 1.2):
        with pytest.raises(UserError, match="share of training pairs"):
            share_of(TEST, share)


def test_a_limit_takes_the_first_and_with_a_seed_the_same_random_ones() -> None:
    facts = _facts(*((f"s{n}", "o") for n in range(50)))
    assert limited_positions(facts, 3, None) == (0, 1, 2)
    assert (
        limited_positions(facts, 3, 5)
        == limited_positions(facts, 3, 5)
        != limited_positions(facts, 3, 6)
    )
    assert limited_positions(facts, 99, 5) == tuple(range(50))
    split = make_split("P1", _facts(("Oslo", "Norway")), facts, limit=3, seed=5)
    assert split.test == tuple(facts[number] for number in limited_positions(facts, 3, 5))


def test_prompt_files_of_both_kinds_are_read(tmp_path: Path) -> None:
    (tmp_path / "P1.txt").write_text("[X] a [Y] .\n\n[X] b [Y] .\n", encoding="utf-8")
    (tmp_path / "P2.jsonl").write_text(
        '{"template": "[X] c [Y]", "weight": 0.5}\n{"weight": 1}\n', encoding="utf-8"
    )
    lines, _ = read_prompts(tmp_path, "P1")
    objects, report = read_prompts(tmp_path, "P2")
    assert [prompt.template for prompt in lines] == ["[X] a [Y] .", "[X] b [Y] ."]
    assert [(prompt.template, prompt.weight) for prompt in objects] == [("[X] c [Y]", 0.5)]
    assert report.dropped[0].line == 2
