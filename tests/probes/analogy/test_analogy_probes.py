"""Probe sets have the paper's counts, and negatives that are what they are called."""

from collections import Counter

import pytest
from analogy_fakes import CAPITALS, dataset, relation
from hypothesis import given, settings
from hypothesis import strategies as st

from lama_core.datasets.base import AnalogyRelation
from lama_core.errors import UserError
from lama_core.probes.analogy.probes import (
    PROBES,
    ProbeImpossible,
    distinct_pairs,
    make_probe,
    split_pairs,
)
from lama_core.probes.analogy.probing import AnalogyRequest, plan

HEADS = {head for head, _ in CAPITALS}
TAILS = {tail for _, tail in CAPITALS}


@pytest.mark.parametrize("probe", PROBES)
def test_n_pairs_give_n_times_n_minus_one_instances(probe: str) -> None:
    n = len(CAPITALS)
    instances = make_probe(relation(), probe)
    assert len(instances) == n * (n - 1)
    assert len({one.id for one in instances}) == n * (n - 1)
    assert {(one.query, one.positive) for one in instances} == {
        (a, b) for a in CAPITALS for b in CAPITALS if a != b
    }
    assert all(one.negative for one in instances)


def test_negatives_are_made_of_a_third_pair() -> None:
    for one in make_probe(relation(), "random-head"):
        assert one.negative is not None
        assert one.negative[1] == one.positive[1]
        assert one.negative[0] in HEADS - {one.positive[0], one.query[0]}
    for one in make_probe(relation(), "random-tail"):
        assert one.negative is not None
        assert one.negative[0] == one.positive[0]
        assert one.negative[1] in TAILS - {one.positive[1], one.query[1]}


def test_reverse_turns_the_positive_round() -> None:
    for one in make_probe(relation(), "reverse"):
        assert one.negative == one.positive[::-1]


def test_type_pairs_two_heads_or_two_tails_about_equally_often() -> None:
    counts: Counter[str] = Counter()
    for one in make_probe(relation(), "type"):
        assert one.negative is not None
        kind = "heads" if one.negative[0] in HEADS else "tails"
        assert set(one.negative) <= (HEADS if kind == "heads" else TAILS)
        assert len(set(one.negative)) == 2
        assert not set(one.negative) & set(one.query)
        counts[kind] += 1
    assert 18 <= counts["heads"] <= 38  # of 56 fair coins


@pytest.mark.parametrize("probe", PROBES)
def test_the_seed_decides_alone(probe: str) -> None:
    assert make_probe(relation(), probe, seed=3) == make_probe(relation(), probe, seed=3)
    if probe != "reverse":
        assert make_probe(relation(), probe, seed=3) != make_probe(relation(), probe, seed=4)


def test_a_limit_takes_the_same_queries_and_positives_of_every_probe() -> None:
    chosen = [
        [(one.query, one.positive) for one in make_probe(relation(), probe, limit=10)]
        for probe in PROBES
    ]
    assert len(chosen[0]) == 10
    assert all(other == chosen[0] for other in chosen)


@pytest.mark.parametrize("probe", PROBES)
def test_a_limit_leaves_the_chosen_instances_as_they_were(probe: str) -> None:
    whole = {one.id: one for one in make_probe(relation(), probe)}
    assert all(whole[one.id] == one for one in make_probe(relation(), probe, limit=9))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_fewer_than_three_pairs_make_no_probe(n: int) -> None:
    with pytest.raises(ProbeImpossible, match=f"no probe is possible with {n} pair"):
        make_probe(relation(pairs=CAPITALS[:n]), "random-head")


def test_strict_never_draws_a_negative_that_is_true() -> None:
    # Two languages of one country each: (de, Austria) is as right as (de, Germany).
    pairs = (("de", ("Germany", "Austria")), ("fr", ("France",)), ("bar", ("Austria",)))
    languages = AnalogyRelation("language", "encyclopedic", pairs, one_to_many=True)
    found = make_probe(languages, "random-tail", strict=True)
    assert ("de", "Austria") not in {one.negative for one in found}
    assert ("de", "Austria") in {one.negative for one in make_probe(languages, "random-tail")}
    # With the query (fr, France) only Austria would be left for de: nothing remains.
    (without,) = [one for one in found if one.query[0] == "fr" and one.positive[0] == "de"]
    assert without.negative is None
    assert without.excluded == "no pair to make a negative of"


def test_pairs_that_stand_twice_count_once() -> None:
    assert distinct_pairs(relation(pairs=(*CAPITALS, CAPITALS[0]))) == CAPITALS


def test_halves_share_no_pair_and_together_are_all() -> None:
    train, test = split_pairs(CAPITALS, seed=0, name="capital")
    assert len(train) == len(CAPITALS) // 2
    assert not set(train) & set(test)
    assert set(train) | set(test) == set(CAPITALS)
    assert split_pairs(CAPITALS, seed=0, name="capital") == (train, test)


words = st.text("abc", min_size=1, max_size=2)


@given(
    st.lists(st.tuples(words, words), min_size=3, max_size=8, unique=True),
    st.sampled_from(sorted(PROBES)),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_a_negative_never_is_its_positive(
    pairs: list[tuple[str, str]], probe: str, strict: bool
) -> None:
    made = make_probe(relation(pairs=tuple(pairs)), probe, strict=strict)
    assert len(made) == len(pairs) * (len(pairs) - 1)
    for one in made:
        assert one.negative != one.positive
        assert (one.negative is None) == (one.excluded is not None)
        if strict:
            assert one.negative not in pairs


def test_an_unknown_probe_is_named() -> None:
    with pytest.raises(UserError, match="did you mean 'random-head'"):
        plan(AnalogyRequest(dataset="starter-analogies", probes=("random-haed",)))


def test_relations_do_not_depend_on_each_other() -> None:
    both = dataset().relations
    assert make_probe(both[0], "type") == make_probe(relation(), "type")
