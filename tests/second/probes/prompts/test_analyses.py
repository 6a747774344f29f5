"""Divergence, patterns, transfer, and the backward probability."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np
import pytest

from lama_core.candidates.columns import Candidates, Columns
from lama_core.candidates.spelling import AFTER_SPACE
from lama_core.datasets.prompt_sets import PooledPrompt, PromptPool
from lama_core.models.protocols import WordScore
from lama_core.probes.prompts import backward
from lama_core.probes.prompts.analyses import (
    PromptPair,
    find_patterns,
    measure_divergence,
    normalised_distances,
    rank_patterns,
)
from lama_core.probes.prompts.backward import (
    BothWays,
    best_objects,
    measure_both_ways,
    right_both_ways,
    score_both_ways,
)
from lama_core.probes.prompts.fact_queries import PreparedFacts, make_prepared_facts
from lama_core.probes.prompts.mining import ParsedWord
from lama_core.probes.prompts.study import RelationStudy
from lama_core.types import Fact, Prompt, Query, Relation


def test_distances_are_brought_into_one_range_by_the_relations_pairs() -> None:
    pairs = [
        ("[X] is in [Y] .", "[X] was in [Y] ."),  # 1 edit, 5 words
        ("[X] in [Y]", "[X] is born in [Y]"),  # 2 edits, 5 words
        ("[X] in [Y]", "[Y] is the home of [X]"),  # 6 edits, 6 words
    ]
    assert normalised_distances(pairs).tolist() == [0, 0.2, 1]
    assert normalised_distances(pairs[:1]).tolist() == [0]
    assert normalised_distances([]).tolist() == []


def test_divergence_is_binned_by_distance_and_correlated() -> None:
    pairs = [
        PromptPair("P1", "a", "b", distance, divergence)
        for distance, divergence in ((0.0, 0.1), (0.2, 0.1), (0.3, 0.2), (1.0, 0.5))
    ]
    found = measure_divergence(pairs)
    assert [one.n_pairs for one in found.bins] == [2, 1, 0, 0, 1]
    assert found.bins[0].mean == pytest.approx(0.1)
    expected = np.corrcoef([0, 0.2, 0.3, 1], [0.1, 0.1, 0.2, 0.5])[0, 1]
    assert found.correlation == pytest.approx(expected)


class TagParser:
    """Parts of speech from a list."""

    tags: ClassVar = {
        "was": "VBD", "born": "VBN", "is": "VBZ", "loves": "VBZ", "gave": "VBD", "wants": "VBZ",
        "up": "RP", "to": "TO", "in": "IN", "of": "IN", "the": "DT", "capital": "NN", "often": "RB",
        "visit": "VB", ".": ".", ",": ",", "and": "CC", "'s": "POS", "3": "CD", "which": "WDT",
    }  # fmt: skip

    def parse(self, words: Sequence[str]) -> tuple[ParsedWord, ...]:
        return tuple(ParsedWord(word, 0, self.tags.get(word, "NNP")) for word in words)


@pytest.mark.parametrize(
    ("template", "patterns"),
    [
        ("[X] loves [Y] .", ["V"]),
        ("[X] was born in [Y] .", ["V", "V P", "V W* P"]),  # "born in"; W* may be nothing
        ("[X] is the capital of [Y] .", ["V", "V W* P"]),
        ("[X] often visit in [Y] .", ["V", "V P", "V W* P"]),
        ("[X] visit often in [Y] .", ["V", "V P", "V W* P"]),
        ("[X] is the born capital of [Y] .", ["V", "V W* P"]),  # a participle among the words
        ("[X] is Rome 's capital of [Y] .", ["V", "V W* P"]),  # a genitive
        ("[X] is 3 capital of [Y] .", ["V", "V W* P"]),  # a number
        ("[X] is Rome's capital of [Y] .", ["V", "V W* P"]),
        ("[X] wants to [Y] .", ["V", "V P", "V W* P"]),  # the infinitive's marker
        ("[X] gave up [Y] .", ["V", "V P", "V W* P"]),  # a particle ends a pattern
        ("[X] is and in [Y] .", ["V"]),  # "and" is none of W
        ("[X] is [Y] of .", ["V"]),  # a placeholder is part of no pattern
        ("the capital of [X] , [Y] .", ["other"]),
    ],
)
def test_prompts_hold_all_of_reverbs_patterns_that_are_found_anywhere(
    template: str, patterns: list[str]
) -> None:
    assert list(find_patterns(template, TagParser())) == patterns


class FourPrompts:
    """A study of two mined prompts between two others; all facts but the second's are wrong."""

    relation = Relation("P1", "TREx")
    pool = PromptPool(
        "P1",
        tuple(
            PooledPrompt(Prompt(template), frozenset({origin}))
            for template, origin in (
                ("[X] is the capital of [Y] .", "manual"),
                ("[X] , [Y] .", "mined"),
                ("[X] loves [Y] .", "mined"),
                ("[X] gave up [Y] .", "manual-paraphrased"),
            )
        ),
    )
    test_accuracies = np.array([0.9, 0.1, 0.5, 0.8])


def test_patterns_are_ranked_among_the_mined_prompts_alone() -> None:
    found = rank_patterns(cast(RelationStudy, FourPrompts()), TagParser())
    assert [(one.template, one.patterns, one.rank) for one in found] == [
        ("[X] loves [Y] .", ("V",), 1),
        ("[X] , [Y] .", ("other",), 2),
    ]


def test_a_gold_that_is_not_among_the_objects_is_wrong() -> None:
    log_probs = np.zeros((2, 2, 2), np.float32)
    log_probs[:, :, 0] = 1
    features = BothWays(log_probs, np.array([0, -1]))
    assert right_both_ways(features, np.array([0.5, 0.5], np.float32)).tolist() == [True, False]


def test_the_best_objects_hold_the_gold_in_place_of_the_last_where_it_is_asked() -> None:
    scores = np.array([[-1.0, -2.0, -3.0, -4.0], [-4.0, -3.0, -2.0, -1.0]], np.float32)
    assert best_objects(scores, 2).tolist() == [[0, 1], [3, 2]]
    assert best_objects(scores, 2, np.array([3, 3])).tolist() == [[0, 3], [3, 2]]


def _asked_of(model: Any, subject: str = "France") -> tuple[PreparedFacts, tuple[Prompt, ...]]:
    prompts = (Prompt("The capital of [X] is [Y]."),)
    relation = Relation("P36", "TREx", prompts=prompts)
    facts = [Fact("1", subject, "P36", "Paris", "TREx")]
    words = Candidates("file:x", ("paris", "rome"), fold_case=True)
    return make_prepared_facts(
        relation, facts, words, model, "both", template=prompts[0].template
    ), prompts


def test_a_subject_together_is_the_mean_of_its_pieces_all_masked(
    tiny_model: Callable[..., Any],
) -> None:
    """By the model itself: as many masks as pieces, one pass, the mean of their log-softmax."""
    import torch

    model = tiny_model("bert-uncased")
    subject = "Franceland"
    asked, prompts = _asked_of(model, subject)
    pieces = model.vocabulary.pieces(subject, AFTER_SPACE)
    assert len(pieces) > 1
    best, forward = np.array([[0, 1]]), np.zeros((1, 1, 2), np.float32)
    found = score_both_ways(model, asked, prompts, best, forward)
    masks = " ".join([model.tokenizer.mask_token] * len(pieces))
    ids = model.tokenizer(f"The capital of {masks} is rome.")["input_ids"]
    at = [number for number, one in enumerate(ids) if one == model.tokenizer.mask_token_id]
    log_probs = torch.log_softmax(model.logits([ids], [at]), dim=1)
    expected = np.mean([float(log_probs[row, piece]) for row, piece in enumerate(pieces)])
    assert found.gold.tolist() == [0]
    assert found.log_probs[1, 0, 1] == pytest.approx(expected, abs=1e-5)


def test_a_subject_that_cannot_be_written_tells_nothing_of_its_objects(
    tiny_model: Callable[..., Any],
) -> None:
    model = tiny_model("bert-uncased")
    asked, prompts = _asked_of(model, "🙂")
    best, forward = np.array([[0, 1]]), np.zeros((1, 1, 2), np.float32)
    found = score_both_ways(model, asked, prompts, best, forward)
    assert found.log_probs[1].tolist() == [[0, 0]]


class AnsweringModel:
    """Forward it says what `FORWARD` says; backward, what `BACKWARD` says of the object."""

    name = "answers"
    FORWARD: ClassVar = np.log([[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.5, 0.2, 0.3]])
    BACKWARD: ClassVar = {"Paris": -9.0, "Rome": -1.0, "Oslo": -2.0}

    def masked_word_log_probs(self, asked: Sequence[tuple[Query, str]]) -> list[WordScore]:
        return [
            WordScore(("a", "b"), 2 * self.BACKWARD[query.parts[1].split()[-1]])
            for query, _ in asked
        ]


def test_the_likeliest_objects_alone_are_asked_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the two likeliest the backward half prefers Rome; Oslo, third, is never asked."""
    monkeypatch.setattr(
        backward, "_forward", lambda *_: AnsweringModel.FORWARD[None, :2].astype("f")
    )
    words = ("Paris", "Rome", "Oslo")
    facts = tuple(Fact(str(n), "Ann", "P1", "Rome", "TREx") for n in range(2))
    columns = cast(Columns, SimpleNamespace(words=words))
    ones = np.ones(2, np.int64)
    asked = PreparedFacts(Relation("P1", "TREx"), facts, columns, ones, ones[:, None], ())
    found = measure_both_ways(
        cast(Any, AnsweringModel()), asked, asked, [Prompt("[X] lives in [Y]")], n_objects=2
    )
    assert (found.forward, found.both) == (0, 1)
    assert found.n_train == found.n_test == 2
