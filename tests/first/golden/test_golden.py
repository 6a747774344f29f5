"""What must not change: the goldens of `frozen.json` (made by `freeze.py` in this folder).

They were first frozen from version 0.1.0 of the project. Log-probabilities may differ in their last
digits from one CPU to the next, and so may what follows from them, within the bounds below; other
ranks, and words, may not.
"""

import json
from typing import Any

import measured

FROZEN = json.loads(measured.FROZEN.read_text(encoding="utf-8"))
TOLERANCE = 2e-5  # relative, of numbers with a fraction
RELATIVE = {
    # The relative error of a perplexity is the absolute error of its logarithm: a sum over eleven
    # tokens' log-probabilities, each of which differs by about 1e-4 at most between two CPUs. The
    # logarithm itself, 59, is compared as closely.
    "perplexity": 11 * 1e-4,
}
ABSOLUTE = {
    # A log-probability differs by up to 1e-4 between two CPUs; of a query without a clear answer
    # ("The Nile is a river in ___.") by 3e-5 with other last digits.
    "log_prob": 5e-5,
    # Studies keep log-probabilities in half precision (`probes/prompts/distributions.py`), where a
    # last digit of fp32 can move a value to its neighbour: by 2**-8 for a gold answer that is 4 to
    # 8 below the best candidate. The objective is the mean over ten facts, so it moves by about
    # 2**-8 / 10. Each of the 40 gold answers' values was moved to its neighbours: the objective
    # moves by 4.1e-4 at most, the weights by 1.1e-3, and Adam stops an epoch earlier or later.
    "objective": 2**-11,
    "weights": 1.2e-3,
    "n_epochs": 1,
}
# The log-probabilities of two CPUs differ by about 1e-4, so a rank can move by the number of
# candidates that are so close to the gold answer: over all facts of a run that is made here, there
# are at most two (of 22,426, around rank 1,500). Half precision is coarser, and moves few values:
# of the ensembles' facts, three candidates are within 1e-3. None is that close at a rank at which
# P@k or MRR would show it.
N_CLOSE = 3
MOVED = (
    "the numbers of {kind} moved: raise its scoring version, say so in CHANGELOG.md, and freeze "
    "them anew (python tests/golden/freeze.py)"
)


def moved(kind: str) -> str:
    return MOVED.format(kind=kind)


def same(ours: Any, theirs: Any, *, absolute: float = 0, relative: float = TOLERANCE) -> bool:
    """Equal, but for the last digits of numbers with a fraction and for what follows from them."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(
            same(
                ours[key],
                theirs[key],
                absolute=N_CLOSE / theirs["n"]
                if key == "mean_rank" and theirs["n"]
                else ABSOLUTE.get(key, absolute),
                relative=RELATIVE.get(key, relative),
            )
            for key in ours
        )
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(
            same(our, their, absolute=absolute, relative=relative)
            for our, their in zip(ours, theirs, strict=True)
        )
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, float):
        return abs(ours - theirs) <= absolute + relative * max(1.0, abs(theirs))
    if absolute and isinstance(ours, int):
        return abs(ours - theirs) <= absolute
    return bool(ours == theirs)


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


def test_what_commands_print() -> None:
    """One test, so that only one process runs the commands (30 s of CPU time)."""
    wrong = []
    for name, printed in measured.commands().items():
        if not same(measured.kept(name, printed), FROZEN["commands"][name]):
            wrong.append(f"{name}: {moved(measured.COMMANDS[name][0])}: {str(printed)[:2000]}")
        if measured.shape(printed) != FROZEN["shapes"][name]:
            wrong.append(f"{name}: its JSON has another form: {measured.shape(printed)}"[:2000])
    assert not wrong, "\n".join(wrong)


def test_the_comparison_sees_a_moved_number() -> None:
    assert same({"a": [1, 0.5]}, {"a": [1, 0.50001]})
    for other in ({"a": [1, 0.5001]}, {"a": [2, 0.5]}, {"a": [1]}, {"b": [1, 0.5]}, {"a": None}):
        assert not same({"a": [1, 0.5]}, other)
    fit = {"n_epochs": 146, "weights": {"a prompt": 0.95}}
    assert same(fit, {"n_epochs": 147, "weights": {"a prompt": 0.951}})
    assert not same(fit, {"n_epochs": 148, "weights": {"a prompt": 0.95}})
    assert not same(fit, {"n_epochs": 146, "weights": {"a prompt": 0.952}})
