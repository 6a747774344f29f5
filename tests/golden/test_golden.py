"""What must not change: the goldens of `frozen.json` (made by `freeze.py` in this folder).

They were first frozen from version 0.1.0 of the project. Log-probabilities may differ in their last
digits from one processor to the next; ranks and words may not.
"""

import json
from typing import Any

import measured
import pytest

FROZEN = json.loads(measured.FROZEN.read_text(encoding="utf-8"))
TOLERANCE = 2e-5
TOLERANCES = {
    # A study keeps log-probabilities in half precision (`probes/prompts/store.py`): a last digit of
    # fp32 that differs between CPUs can round a value to its neighbour, 2**-10 away from -2 to -1.
    # What is fitted to them differs by as much: -1.62571 where it was frozen, -1.62540 on an EPYC
    # with bf16.
    **dict.fromkeys(("objective", "weights"), 2**-10),
    # The relative error of a perplexity is the absolute error of its logarithm, a sum over eleven
    # tokens: 2.3e-5 between MKL and oneDNN on an EPYC.
    "perplexity": 5 * TOLERANCE,
}
MOVED = (
    "the numbers of {kind} moved: raise its scoring version, say so in CHANGELOG.md, and freeze "
    "them anew (python tests/golden/freeze.py)"
)


def moved(kind: str) -> str:
    return MOVED.format(kind=kind)


def same(ours: Any, theirs: Any, tolerance: float = TOLERANCE) -> bool:
    """Equal, but for the last digits of numbers with a fraction."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return abs(ours - theirs) <= tolerance * max(1.0, abs(theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(
            same(ours[key], theirs[key], TOLERANCES.get(key, tolerance)) for key in ours
        )
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(
            same(our, their, tolerance) for our, their in zip(ours, theirs, strict=True)
        )
    return type(ours) is type(theirs) and ours == theirs


def test_a_scoring_version_is_frozen_with_its_numbers() -> None:
    assert FROZEN["versions"] == measured.VERSIONS, (
        "a scoring version was raised: freeze its numbers anew (python tests/golden/freeze.py)"
    )


def test_bundled_runs() -> None:
    assert measured.bundled_runs() == FROZEN["runs"], moved("cloze")


def test_bundled_probes() -> None:
    assert measured.bundled_probes() == FROZEN["probes"], moved("analogy")


def test_bundled_studies() -> None:
    assert measured.bundled_studies() == FROZEN["studies"], moved("study")


@pytest.mark.parametrize("name", measured.COMMANDS)
def test_what_a_command_prints(name: str) -> None:
    printed = measured.commands()[name]
    assert same(measured.kept(name, printed), FROZEN["commands"][name]), (
        f"{moved(measured.COMMANDS[name][0])}: {str(printed)[:2000]}"
    )


@pytest.mark.parametrize("name", measured.COMMANDS)
def test_the_form_of_what_a_command_prints(name: str) -> None:
    assert measured.shape(measured.commands()[name]) == FROZEN["shapes"][name]


def test_the_comparison_sees_a_moved_number() -> None:
    assert same({"a": [1, 0.5]}, {"a": [1, 0.50001]})
    for other in ({"a": [1, 0.5001]}, {"a": [2, 0.5]}, {"a": [1]}, {"b": [1, 0.5]}, {"a": None}):
        assert not same({"a": [1, 0.5]}, other)
