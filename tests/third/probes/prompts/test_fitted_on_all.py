"""What fitting on a sample of the candidates changes: the numbers of `docs/departures.md`."""

from pathlib import Path

import numpy as np
import pytest

from lama_core.paths import ASSETS
from lama_core.probes.prompts.distributions import DistributionStore
from lama_core.probes.prompts.ensemble import RELEASED, combine_log_linear, fit_weights
from lama_core.probes.prompts.plan import plan
from lama_core.probes.prompts.request import StudyRequest
from lama_core.probes.prompts.shortlist import make_shortlist
from lama_core.runs.spec import load_by_name

# Studies keep log-probabilities in half precision, where other last digits of fp32 move the
# objective by about 4e-4 (`tests/first/golden/test_golden.py`).
BOUND = 1e-3


def test_weights_fitted_on_a_sample_are_as_good_as_those_fitted_on_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMA_HOME", str(tmp_path / "home"))
    request = StudyRequest(
        prompts=ASSETS / "prompts" / "starter",
        model="minilm-mlm",
        relations=("P36",),
        candidates="common",
        combinations=("all",),
    )
    model = load_by_name("minilm-mlm", precision="auto")
    (pending,) = plan(request)[0].prepare(model, print).work.pending
    assert pending.train and pending.test
    train, test = (
        DistributionStore(tmp_path, model, asked, pending.pool.prompts, "both")
        for asked in (pending.train, pending.test)
    )
    for store in (train, test):
        store.score()
    assert (train.shape, test.shape) == ((19, 65, 22426), (19, 88, 22426))
    short = make_shortlist(train)
    on_all, held_out = (
        np.concatenate([chunk for _, chunk in store.chunks()], axis=1) for store in (train, test)
    )
    fits = (
        fit_weights(short.log_probs, short.gold, offsets=short.offsets, recipe=RELEASED),
        fit_weights(on_all, train.asked.gold, recipe=RELEASED),
    )
    for fit, expected in zip(fits, (-1.2664, -1.2671), strict=True):
        reached = combine_log_linear(on_all, fit.weights)
        assert reached[np.arange(65), train.asked.gold].mean() == pytest.approx(expected, abs=BOUND)
        first = combine_log_linear(held_out, fit.weights).argmax(axis=1)
        assert (first == test.asked.gold).sum() == 65  # 73.9 %
