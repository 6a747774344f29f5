"""Causal traces of a relation's facts: token roles, averages, excluded facts, resuming."""

import pytest
from scipy.stats import t

import lama_core as lama
from lama_core.errors import UserError
from lama_core.probes.tracing.plan import plan
from lama_core.probes.tracing.request import TraceRequest
from lama_core.probes.tracing.roles import ROLES, average_effects, roles_of
from lama_core.probes.tracing.spec import NOT_FIRST, TraceSpec
from lama_core.runs.execute import execute
from lama_core.runs.facts_table import read_columns
from lama_core.runs.info import FACTS_FILE, Run

MODEL, N_FACTS = "minilm-mlm", 5


def planned(**options: int | str) -> TraceSpec:
    request = TraceRequest(
        "starter", (MODEL,), ("P36",), limit=N_FACTS, draws=1, precision="fp32", **options
    )  # type: ignore[arg-type]
    return plan(request)[0]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return execute(planned(), folder=tmp_path_factory.mktemp("runs"))


def test_every_token_has_a_role_and_a_single_subject_token_is_first_and_last() -> None:
    assert roles_of(9, (2, 3, 4, 5), 7) == {
        "earlier tokens": [0, 1],
        "first subject token": [2],
        "middle subject tokens": [3, 4],
        "last subject token": [5],
        "later tokens": [6, 8],
        "blank": [7],
    }
    assert roles_of(4, (3,), 3) == {
        "earlier tokens": [0, 1, 2],
        "first subject token": [3],
        "last subject token": [3],
        "blank": [3],
    }
    assert roles_of(4, (2, 3), 1)["earlier tokens"] == [0], "a blank before the subject"


def test_averages_are_over_facts_with_students_interval() -> None:
    rows = [
        {"relation": "P1", "layer": 1, "role": "blank", "effect": effect}
        for effect in (0.1, 0.3, None)
    ] + [{"relation": "P1", "layer": 1, "role": "later tokens", "effect": 0.5}]
    single, pair = average_effects(rows, model="m", restore="mlp")
    assert (single.role, single.n, single.effect, single.low) == ("later tokens", 1, 0.5, None)
    assert (pair.role, pair.n, pair.effect) == ("blank", 2, pytest.approx(0.2))
    # The standard deviation of two values is their difference over the root of 2.
    half = float(t.ppf(0.975, 1)) * (0.2 / 2**0.5) / 2**0.5
    assert pair.low == pytest.approx(max(-1, 0.2 - half))
    assert pair.high == pytest.approx(min(1, 0.2 + half))


def test_a_run_has_the_effects_that_inspect_shows(run: Run) -> None:
    rows = read_columns(run.info.folder / FACTS_FILE).to_pylist()
    assert len({row["fact_id"] for row in rows}) == N_FACTS
    assert run.info.n + run.info.n_excluded == N_FACTS
    first = next(row for row in rows if row["excluded"] is None)
    found = lama.inspect(
        f"The capital of {first['subject']} is [MASK].",
        models=[MODEL], lens="trace", subject=first["subject"], answer=first["object"], draws=1,
        precision="fp32",
    )  # fmt: skip
    mine = [row for row in rows if row["fact_id"] == first["fact_id"]]
    assert {row["role"] for row in mine} <= {*ROLES}
    n_layers = found["layer"].max()
    assert {row["layer"] for row in mine} == {*range(1, n_layers + 1)}
    at_subject = found[found["subject"]]
    for row in mine:
        if row["role"] == "last subject token":
            cell = at_subject[at_subject["layer"] == row["layer"]].iloc[-1]
            assert row["effect"] == pytest.approx(cell["effect"], abs=1e-4)
            assert row["prob"] == pytest.approx(cell["clean"], abs=1e-4)
    for row in rows:
        assert row["excluded"] in (None, NOT_FIRST) or "candidate" in row["excluded"]


def test_the_identity_depends_on_what_is_restored_and_on_the_noise() -> None:
    plain = planned()
    assert plain.digest == planned().digest
    others = [planned(restore="mlp"), planned(restore="mlp", window=2), planned(seed=2)]
    assert len({plain.digest, *(other.digest for other in others)}) == 4
    with pytest.raises(UserError, match="--window needs --restore"):
        planned(window=2)


def test_the_python_function_returns_the_averages(run: Run) -> None:
    frame = lama.trace(
        "starter", models=[MODEL], relations=["P36"], limit=N_FACTS, draws=1, precision="fp32",
        out=run.info.folder.parent,
    )  # fmt: skip
    assert list(frame.columns) == [
        "model", "relation", "restore", "layer", "role", "n", "effect", "low", "high",
    ]  # fmt: skip
    assert set(frame["n"]) <= {*range(1, run.info.n + 1)}
    last = frame[(frame["layer"] == frame["layer"].max()) & (frame["role"] == "blank")].iloc[0]
    rows = [row for row in read_columns(run.info.folder / FACTS_FILE).to_pylist() if row["layer"]]
    lost = {row["fact_id"]: row["prob"] - row["corrupted"] for row in rows}
    # The last layer's state at the blank restores the whole answer.
    assert last["effect"] == pytest.approx(sum(lost.values()) / len(lost), abs=1e-4)
