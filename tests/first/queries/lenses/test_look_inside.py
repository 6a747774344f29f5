"""Looking inside: which words are followed, what is attributed, and what is said of it."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lama_core.candidates.columns import Candidates, Columns
from lama_core.errors import UserError
from lama_core.models.protocols import BLANK
from lama_core.queries.blank_answers import query_model
from lama_core.queries.lenses.layers import ModelLayers
from lama_core.queries.lenses.table import LENSES, InspectRequest, inspect_model
from lama_core.queries.lenses.tokens import ModelAttribution
from lama_core.queries.lenses.trace import ModelTrace
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.types import Query

Models = Callable[..., Any]
WORDS = Candidates("file:x", ("Paris", "Rome", "Oslo", "Vienna", "Berlin", "painter"))
QUERY = parse_query("The capital of France is [MASK].")


def read_layers(*asked: Any, limits: Limits = UNLIMITED, **options: Any) -> ModelLayers:
    return cast(ModelLayers, inspect_model(*asked, InspectRequest("", **options), limits))


def attribute(
    model: Any,
    query: Query,
    columns: Columns,
    method: Any,
    limits: Limits = UNLIMITED,
    **options: Any,
) -> ModelAttribution:
    request = InspectRequest("", lens="tokens", method=method, **options)
    return cast(ModelAttribution, inspect_model(model, query, columns, request, limits))


@pytest.mark.parametrize("family", ("bert-cased", "smollm2", "t5"))
def test_the_last_layer_ranks_as_the_question_itself_does(family: str, tiny_model: Models) -> None:
    model = tiny_model(family)
    columns = WORDS.columns(model.vocabulary)
    found = read_layers(model, QUERY, columns, top_k=3, gold="painter")
    asked = query_model(model, QUERY, WORDS, top_k=6, gold="painter", columns=columns).blanks[0]
    assert [one.title for one in found.layers] == ["embeddings", "1", "2"]
    assert found.layers[-1].first == asked.predictions[0].token
    best = [one.token for one in asked.predictions[:3]]
    assert [one.word for one in found.words][:3] == best
    for word in found.words:
        same = next(one for one in asked.predictions if one.token == word.word)
        assert word.ranks[-1] == same.rank
        assert word.log_probs[-1] == pytest.approx(same.log_prob, abs=1e-4)
    assert [one.word for one in found.words if one.is_gold] == ["painter"]
    assert len({one.word for one in found.words}) == len(found.words) in (3, 4)
    for layer in found.layers:
        assert layer.first in WORDS.words  # type: ignore[operator]
        ranked = {one.ranks[layer.number]: one for one in found.words}
        if 1 in ranked:
            assert ranked[1].word == layer.first
            assert ranked[1].log_probs[layer.number] == pytest.approx(layer.log_prob)


def test_a_gold_outside_the_candidates_has_the_rank_that_it_would_have(tiny_model: Models) -> None:
    model = tiny_model("bert-cased")
    columns = WORDS.columns(model.vocabulary)
    found = read_layers(model, QUERY, columns, gold="singer")
    asked = query_model(model, QUERY, WORDS, gold="singer", columns=columns).blanks[0].gold
    assert asked is not None
    assert found.words[-1].is_gold and found.words[-1].ranks[-1] == asked.rank
    assert found.words[-1].log_probs[-1] == pytest.approx(asked.log_prob, abs=1e-4)
    assert found.notes == ()


def test_of_a_word_of_several_tokens_the_first_counts_and_it_is_said(tiny_model: Models) -> None:
    model = tiny_model("bert-cased")
    columns = WORDS.columns(model.vocabulary)
    pieces = model.vocabulary.pieces("physicistry")
    found = attribute(model, QUERY, columns, "erasure", answer="physicistry")
    begun = model.vocabulary.show_text(pieces[:1])[0]
    assert found.notes == (
        f"“physicistry” is {len(pieces)} tokens of the model: only the first, “{begun}”, counts.",
    )
    full = model.layer_log_probs(model.encode(QUERY), columns, [pieces[:1]]).words[-1, 0]
    assert found.log_prob == pytest.approx(full, abs=1e-4)
    with pytest.raises(UserError, match="can't write '日本'"):
        attribute(model, QUERY, columns, "erasure", answer="日本")


def test_without_a_word_the_models_first_answer_is_attributed(tiny_model: Models) -> None:
    for family in ("bert-cased", "smollm2", "t5"):
        model = tiny_model(family)
        columns = WORDS.columns(model.vocabulary)
        first = query_model(model, QUERY, WORDS, columns=columns).blanks[0].predictions[0]
        found = attribute(model, QUERY, columns, "erasure")
        assert found.word == first.token
        assert found.log_prob == pytest.approx(first.log_prob, abs=1e-4)
        assert found.tokens.count(BLANK) == 1
        assert [value is None for value in found.values] == [
            token == BLANK for token in found.tokens
        ]
        assert found.gap is None and found.completeness() == ""


def test_what_a_model_isnt_shown_is_said(tiny_model: Models) -> None:
    query = parse_query("Paris is in [MASK], said [MASK] in Rome.")
    for family, said in (
        ("bert-cased", ("Only the first blank",)),
        ("smollm2", ("Only the first blank", "The model sees only the text to the left")),
        ("t5", ("Only the first blank",)),
    ):
        model = tiny_model(family)
        columns = WORDS.columns(model.vocabulary)
        found = attribute(model, query, columns, "erasure", answer="Oslo")
        assert len(found.notes) == len(said)
        assert all(note.startswith(one) for note, one in zip(found.notes, said, strict=True))
        assert found.tokens.count(BLANK) == (1 if family == "smollm2" else 2)
        assert read_layers(model, query, columns).notes == found.notes


def test_the_check_of_gradients_says_its_numbers(tiny_model: Models) -> None:
    model = tiny_model("bert-cased")
    columns = WORDS.columns(model.vocabulary)
    found = attribute(model, QUERY, columns, "gradients", answer="Paris", steps=400)
    assert found.baseline is not None and found.gap is not None
    values = [value for value in found.values if value is not None]
    assert found.gap == pytest.approx(sum(values) - (found.log_prob - found.baseline))
    error = abs(found.gap) / abs(found.log_prob - found.baseline)
    assert found.completeness_error == pytest.approx(error)
    assert f"off by {abs(found.gap):.3f} ({100 * error:.1f} %)." in found.completeness()
    assert "with 400 steps, the tokens' values sum to" in found.completeness()
    rough = attribute(tiny_model("qwen2"), QUERY, WORDS.columns(tiny_model("qwen2").vocabulary),
                      "gradients", answer="Paris", steps=8)  # fmt: skip
    assert rough.completeness_error and rough.completeness_error > 0.05
    assert rough.completeness().endswith("More steps reduce the error.")
    assert "More steps" not in found.completeness()
    bounded = replace(rough, steps=2000, asked=False).completeness()
    assert bounded.endswith("stayed above 1% at the limit of steps or time.")
    told = found.to_json()["attribution"]
    assert told["sum"] == pytest.approx(sum(values)) and told["gap"] == found.gap
    assert (told["steps"], told["completeness_error"]) == (400, found.completeness_error)
    assert [one["token"] for one in told["tokens"]] == list(found.tokens)
    free = attribute(model, QUERY, columns, "gradients", answer="Paris").completeness_error
    assert free is not None and free <= 0.01, "as many steps as that needs"
    same = replace(found, baseline=found.log_prob)
    assert same.completeness_error == math.inf and "%)" not in same.completeness()
    assert same.to_json()["attribution"]["completeness_error"] is None


def test_limits_hold(tiny_model: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model("bert-cased")
    columns = WORDS.columns(model.vocabulary)
    for look in (read_layers, lambda *a, **k: attribute(*a, "erasure", **k)):
        with pytest.raises(UserError, match=r"tokens for .*; the maximum here is 5"):
            look(model, QUERY, columns, limits=Limits(tokens=5))
    monkeypatch.setattr(type(model), "tokens_per_pass", 1)
    started = time.monotonic()
    found = attribute(model, QUERY, columns, "erasure", limits=Limits(seconds=0))
    assert sum(value is not None for value in found.values) == 1
    assert time.monotonic() - started < 60
    n = sum(token != BLANK for token in found.tokens)
    assert found.notes == (f"Time limit reached: 1 of {n} tokens were tested.",)


def test_a_choice_that_cant_be_asked_and_a_model_that_gives_answers_alone_are_refused(
    tiny_model: Models,
) -> None:
    long = "a" * 1001
    choice: Any
    for choice, fault in (
        ({"steps": 10_000}, "steps can't be 10000: expected an integer <= 5000"),
        ({"steps": 9}, "--steps needs --lens tokens"),
        ({"lens": "tokens", "answer": long}, "has 1,001 characters; the maximum is 1,000"),
    ):
        with pytest.raises(UserError, match=fault):
            InspectRequest(text="Paris is in ___.", **choice).check()
    columns = WORDS.columns(tiny_model("bert-cased").vocabulary)
    silent: Any = SimpleNamespace(name="silent", kind="causal")
    for lens in LENSES:
        with pytest.raises(UserError, match="silent can't be inspected"):
            inspect_model(silent, QUERY, columns, InspectRequest("", lens=lens))


def test_a_trace_shows_the_blank_the_subject_and_the_models_first_answer(
    tiny_model: Models,
) -> None:
    for family in ("bert-cased", "smollm2"):
        model = tiny_model(family)
        columns = WORDS.columns(model.vocabulary)
        first = query_model(model, QUERY, WORDS, columns=columns).blanks[0].predictions[0]
        request = InspectRequest("", lens="trace", subject="France", draws=2)
        found = cast(ModelTrace, inspect_model(model, QUERY, columns, request))
        assert found.answer == first.token
        assert found.prob == pytest.approx(first.prob, rel=1e-3)
        assert found.tokens.count(BLANK) == (model.kind == "masked")
        written = [
            token for token, inside in zip(found.tokens, found.in_subject, strict=True) if inside
        ]
        assert "".join(written).replace("\u2011", "") == "France"
        best = found.best()
        assert best and found.restored[best[1] - 1][best[2]] == best[0]
        assert found.restored[-1][found.read_at] == pytest.approx(found.prob, rel=1e-3)
        assert best[2] != found.read_at, "the last layer there always restores the answer"
