"""What `probe` and `statements` choose and refuse alike, before a model is asked."""

import json
from pathlib import Path

import pytest
from probe_fakes import HashFiller
from written_statements import hashed

from lama_core.probes import plan
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.statements import plan as stating
from lama_core.probes.statements.request import StatementsRequest


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """ParaRel's layout, in which relations can have patterns and no facts: here P98 and P99."""
    folder = tmp_path / "toy"
    for name, row in (
        *((f"pattern_data/P{n}", {"pattern": "[X] is in [Y] ."}) for n in (19, 98, 99)),
        ("trex_lms_vocab/P19", {"uuid": "a", "sub_label": "Peru", "obj_label": "Lima"}),
    ):
        file = folder / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    return folder


def relations_of_runs(command: str, data: Path, *named: str) -> tuple[str, ...]:
    if command == "probe":
        asked = ProbeRequest(str(data), ("m",), named, candidates="full")
        planned = plan.plan(asked, load=lambda *_, **__: HashFiller(("Lima",)))
    else:
        stated = StatementsRequest(str(data), ("m",), named)
        planned = stating.plan(stated, load=lambda *_, **__: hashed())
    return planned[0].relations


@pytest.mark.parametrize("command", ["probe", "statements"])
def test_relations_without_facts_are_left_out_where_none_is_named(command: str, data: Path) -> None:
    assert relations_of_runs(command, data) == relations_of_runs(command, data, "P19") == ("P19",)
