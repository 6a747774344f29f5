"""Every kind of query and of run that asks a model, asked of one model."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from asking import ask_loaded
from data_files import write_lama
from tiny_models import CITIES, COUNTRIES

from lama_core.errors import UserError
from lama_core.probes.analogy.request import AnalogyRequest
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.generation.request import GenerateRequest
from lama_core.probes.kinds import KINDS
from lama_core.probes.prompts.request import SelectRequest, StudyRequest
from lama_core.probes.statements.request import StatementsRequest
from lama_core.probes.tracing.request import TraceRequest
from lama_core.queries.lenses.table import LENSES
from lama_core.queries.table import QUERIES
from lama_core.requests import Request
from lama_core.runs.execute import execute_all
from lama_core.runs.spec import Load, RunSpec, load_by_name

PLANS = {function.request: function.plan for kind in KINDS.values() for function in kind.functions}
TEXT, QUESTION = "The capital of Norway is ___.", "The capital of Norway is"
SENTENCES = ("paris.", "Ann is in Oslo", "Ann is in Rome, said Anna.")
ANSWERS = ("Oslo", "Rome", "Madrid in Spain")
PAIRS = tuple(zip(COUNTRIES[:6], CITIES[6:], strict=True))
RELATION = {
    "relation": "P36", "label": "capital", "type": "1-1",
    "template": "The capital of [X] is [Y] .",
    "template_negated": "The capital of [X] is not [Y] .",
}  # fmt: skip


def plan_runs(request: Request, load: Load = load_by_name) -> tuple[RunSpec, ...]:
    request.check()
    return PLANS[type(request)](request, load=load)


def write_facts(folder: Path) -> str:
    return str(write_lama(folder / "facts", [RELATION], {"P36": PAIRS}))


def queries(folder: Path) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Name, kind and fields of the queries: of each kind at least one, of `inspect` each lens."""
    file = folder / "texts.txt"
    file.write_text("\n".join([TEXT, "Ann was born in ___."]), encoding="utf-8")
    fields: dict[str, dict[str, Any]] = {
        "fill": {"text": TEXT, "gold": "Oslo"},
        "fill both": {"text": TEXT, "gold": "Oslo", "context": "both"},
        "relation": {"relation": "P36", "subject": "France", "dataset": write_facts(folder)},
        "rank": {"text": TEXT, "answers": ANSWERS, "gold": "Oslo"},
        "sentences": {"texts": SENTENCES},
        "ask": {"question": QUESTION, "golds": ("Oslo",), "plain": True, "max_tokens": 5},
        "analogy": {"text": ("Paris", "France", "Rome", "___"), "gold": "Italy"},
        "score_analogies": {"query": "Paris:France", "pairs": ("Rome:Italy", "Italy:Rome")},
        "grid": {"texts": ("{Paris|Rome} is the capital of ___.",), "n_groups": 2},
        "batch": {"file": str(file)},
    }
    fields |= {
        f"inspect {lens}": {"text": TEXT, "lens": lens}
        | {"layers": {"gold": "Oslo"}, "trace": {"subject": "Norway"}}.get(lens, {})
        for lens in LENSES
    }
    by_name = {query.request.python: query for query in QUERIES}
    assert by_name.keys() == {name.partition(" ")[0] for name in fields}
    for name, values in fields.items():
        yield name, by_name[name.partition(" ")[0]], values


def requests(folder: Path) -> dict[str, Request]:
    """Requests for runs by name: one of each kind that asks a language model."""
    facts: dict[str, Any] = {"dataset": write_facts(folder), "models": ("it",), "limit": 2}
    found: dict[str, Request] = {
        "cloze": ProbeRequest(**facts, candidates="full"),
        "contrast": ProbeRequest(**facts, candidates="full", prompts="negated"),
        "statements": StatementsRequest(**facts),
        "generation": GenerateRequest(**facts, plain=True, shots=1),
        "tracing": TraceRequest(**facts, candidates="full", draws=1),
        "analogy": AnalogyRequest(
            models=("it",), relations=("country - capital",), limit=2, probes=("reverse",)
        ),
        "study": StudyRequest(
            dataset=facts["dataset"], model="it", relations=("P36",), candidates="full",
            own=("[X] has [Y] .",), curves=False, save_runs=False,
        ),
    }  # fmt: skip
    # Selecting prompts is part of a study.
    assert {type(request) for request in found.values()} == PLANS.keys() - {SelectRequest}
    return found


def ask_every_kind(model: Any, folder: Path) -> dict[str, Any]:
    """By name, the answer to each query and the runs of each request, or the UserError's text."""

    def load(*_: Any, **__: Any) -> Any:
        return model

    def run(request: Request) -> Any:
        return execute_all(plan_runs(request, load), folder=folder / "runs", load=load)

    asked: dict[str, Callable[[], Any]] = {
        name: partial(ask_loaded, query, [model], **fields)
        for name, query, fields in queries(folder)
    }
    asked |= {name: partial(run, request) for name, request in requests(folder).items()}
    found: dict[str, Any] = {}
    for name, ask in asked.items():
        try:
            found[name] = ask()
        except UserError as error:
            found[name] = str(error)
    return found
