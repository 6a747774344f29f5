"""Probe sets have the paper's counts, and negatives that are what they are called."""

from collections import Counter

import pytest
from analogy_fakes import CAPITALS, relation
from hypothesis import given, settings
from hypothesis import strategies as st

from lama_core.datasets.dataset import AnalogyRelation
from lama_core.probes.analogy.decisions import make_plan
from lama_core.probes.analogy.instances import (
    MOST_PAIRS,
    PROBES,
    Instance,
    ProbeOptions,
    distinct_pairs,
    make_probe,
    split_pairs,
    words_of,
)

Pairs = tuple[tuple[str, str], ...]
NO_OPTIONS = ProbeOptions()


def made_of(
    probe: str, options: ProbeOptions = NO_OPTIONS, pairs: Pairs = CAPITALS
) -> list[Instance]:
    """The instances of some pairs, as if they were a half."""
    return make_probe(relation(pairs=pairs), probe, options, pairs=pairs, part="all")


HEADS = {head for head, _ in CAPITALS}
TAILS = {tail for _, tail in CAPITALS}


@pytest.mark.parametrize("probe", PROBES)
def test_n_pairs_give_n_times_n_minus_one_instances(probe: str) -> None:
    n = len(CAPITALS)
    instances = made_of(probe)
    assert len(instances) == n * (n - 1)
    assert len({one.id for one in instances}) == n * (n - 1)
    assert {(one.query, one.positive) for one in instances} == {
        (a, b) for a in CAPITALS for b in CAPITALS if a != b
    }
    assert all(one.negative for one in instances)


def test_negatives_are_made_of_a_third_pair() -> None:
    for one in made_of("random-head"):
        assert one.negative is not None
        assert one.negative[1] == one.positive[1]
        assert one.negative[0] in HEADS - {one.positive[0], one.query[0]}
    for one in made_of("random-tail"):
        assert one.negative is not None
        assert one.negative[0] == one.positive[0]
        assert one.negative[1] in TAILS - {one.positive[1], one.query[1]}


def test_reverse_turns_any_pair_but_the_query_round() -> None:
    drawn = made_of("reverse")
    turned = [one.negative[::-1] for one in drawn if one.negative]
    assert len(turned) == 56 and set(turned) == set(CAPITALS)
    assert all(pair != one.query for pair, one in zip(turned, drawn, strict=True))
    # One of the seven pairs that may be drawn is the positive itself: about 8 of 56.
    same = sum(pair == one.positive for pair, one in zip(turned, drawn, strict=True))
    assert 2 <= same <= 16


def test_type_pairs_two_heads_or_two_tails_about_equally_often() -> None:
    counts: Counter[str] = Counter()
    for one in made_of("type"):
        assert one.negative is not None
        kind = "heads" if one.negative[0] in HEADS else "tails"
        assert set(one.negative) <= (HEADS if kind == "heads" else TAILS)
        assert len(set(one.negative)) == 2
        assert not set(one.negative) & set(one.query)
        counts[kind] += 1
    assert 18 <= counts["heads"] <= 38  # of 56 fair coins


def test_type_draws_its_words_whatever_the_positive_is() -> None:
    """Of the 7 words that are not the query's two are drawn: the positive's in 2/7 of the cases."""
    drawn = [one for seed in range(10) for one in made_of("type", ProbeOptions(seed=seed))]
    places = Counter(
        [word in one.positive for word in one.negative] == [True, False]
        for one in drawn
        if one.negative and set(one.negative) & set(one.positive)
    )
    n_shared = places.total()
    assert 0.25 <= n_shared / len(drawn) <= 0.32  # 2 / 7 = 0.286, of 560
    assert 0.4 <= places[True] / n_shared <= 0.6  # first or second place, alike
    of_one_query = {one.negative for one in drawn if one.query == CAPITALS[0]}
    assert len(of_one_query) > 40  # of 2 x 7 x 6 = 84


@pytest.mark.parametrize("probe", PROBES)
def test_the_seed_decides_alone(probe: str) -> None:
    third, fourth = ProbeOptions(seed=3), ProbeOptions(seed=4)
    assert made_of(probe, third) == made_of(probe, third)
    assert made_of(probe, third) != made_of(probe, fourth)


def test_a_limit_takes_the_same_queries_and_positives_of_every_probe() -> None:
    chosen = [
        [(one.query, one.positive) for one in made_of(probe, ProbeOptions(limit=10))]
        for probe in PROBES
    ]
    assert len(chosen[0]) == 10
    assert all(other == chosen[0] for other in chosen)


def test_strict_never_draws_a_negative_that_is_true() -> None:
    # German in two countries: (de, Austria) is as right as (de, Germany).
    pairs = (("de", ("Germany", "Austria")), ("fr", ("France",)), ("bar", ("Austria",)))
    languages = AnalogyRelation("language", "encyclopedic", pairs, one_to_many=True)
    firsts = tuple((head, tails[0]) for head, tails in pairs)
    loose, found = (
        make_probe(languages, "random-tail", options, pairs=firsts, part="all")
        for options in (NO_OPTIONS, ProbeOptions(strict=True))
    )
    assert ("de", "Austria") not in {one.negative for one in found}
    assert ("de", "Austria") in {one.negative for one in loose}
    # With the query (fr, France) only Austria would be left for de: nothing remains.
    (without,) = [one for one in found if one.query[0] == "fr" and one.positive[0] == "de"]
    assert without.negative is None
    assert without.excluded == "no pair to make a negative of"


def test_several_tails_make_several_pairs_the_first_tails_first() -> None:
    pairs = (("cat", ("mew", "purr")), ("dog", ("bark", "growl", "howl")), ("cow", ("moo",)))
    sounds = AnalogyRelation("animal - sound", "encyclopedic", pairs, one_to_many=True)
    several = distinct_pairs(sounds)
    assert several == (
        ("cat", "mew"), ("dog", "bark"), ("cow", "moo"),
        ("cat", "purr"), ("dog", "growl"),
        ("dog", "howl"),
    )  # fmt: skip
    assert set(words_of([sounds])) == {word for pair in several for word in pair}


def test_further_tails_are_taken_up_to_a_hundred_pairs_and_first_ones_all() -> None:
    pairs = tuple((f"head {n}", (f"a {n}", f"b {n}", f"c {n}")) for n in range(40))
    wide = AnalogyRelation("wide", "lexicographic", pairs)
    found = distinct_pairs(wide)
    assert len(found) == MOST_PAIRS == 100
    assert found[39:41] == (("head 39", "a 39"), ("head 0", "b 0"))
    assert found[-1] == ("head 19", "c 19")  # 40 first tails, 40 second ones, 20 third ones
    # Half of 100 pairs: 50 x 49 true analogies and as many false ones, the paper's 1/4900.
    _, test = split_pairs(found, seed=0, name="wide")
    assert len(test) * (len(test) - 1) * 2 == 4900
    many = tuple((f"head {n}", (f"a {n}", f"b {n}")) for n in range(130))
    assert len(distinct_pairs(AnalogyRelation("many", "lexicographic", many))) == 130


@pytest.mark.parametrize(
    ("limit", "n_train", "n_test"), [(None, 6, 12), (5, 2, 3), (16, 6, 10), (99, 6, 12), (1, 0, 1)]
)
def test_unsupervised_instances_are_within_halves_and_share_the_limit(
    limit: int | None, n_train: int, n_test: int
) -> None:
    seven = relation(pairs=CAPITALS[:7])  # halves of 3 and 4 pairs: 3 x 2 + 4 x 3 instances
    train, test = split_pairs(CAPITALS[:7], seed=0, name="capital")
    options = ProbeOptions(limit=limit)
    made = make_plan(seven, "unsupervised", "random-tail", options, reads_sentences=True)
    assert made.train is None and made.n_pairs == 7
    places = [next(half for half in (train, test) if one.query in half) for one in made.test]
    assert [len([p for p in places if p is half]) for half in (train, test)] == [n_train, n_test]
    for one, half in zip(made.test, places, strict=True):
        assert one.positive in half
        assert one.negative and one.negative[1] in {tail for _, tail in half}
    if limit is None:
        supervised = make_plan(seven, "supervised", "random-tail", options, reads_sentences=True)
        assert (*(supervised.train or ()), *supervised.test) == made.test


def test_pairs_that_stand_twice_count_once() -> None:
    assert distinct_pairs(relation(pairs=(*CAPITALS, CAPITALS[0]))) == CAPITALS


words = st.text("abc", min_size=1, max_size=2)


@given(
    st.lists(st.tuples(words, words), min_size=3, max_size=8, unique=True),
    st.sampled_from(sorted(PROBES)),
    st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_a_negative_never_is_its_positive(
    pairs: list[tuple[str, str]], probe: str, strict: bool
) -> None:
    made = made_of(probe, ProbeOptions(strict=strict), tuple(pairs))
    assert len(made) == len(pairs) * (len(pairs) - 1)
    for one in made:
        assert one.negative != one.positive
        assert (one.negative is None) == (one.excluded is not None)
        if strict:
            assert one.negative not in pairs
