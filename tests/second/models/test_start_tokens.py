"""One rule for the tokens before a text, in every kind of query and of run.

smollm2 adds no token by itself and has a BOS token, llama adds it by itself, qwen2 has no BOS but
an EOS token, and `none` has neither.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from asking import ask_loaded
from every_kind import plan_runs
from written_statements import write_bear

import lama_core as lama
from lama_core.errors import UserError
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import locate
from lama_core.probes.analogy.request import AnalogyRequest
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.generation.request import GenerateRequest
from lama_core.probes.kinds import read_request
from lama_core.probes.statements.request import StatementsRequest
from lama_core.queries import answers
from lama_core.queries.table import QUERIES
from lama_core.requests import StoredRequest, record
from lama_core.runs.execute import execute
from lama_core.scoring.preparation import NoFactCounts
from lama_core.scoring.queries import NOTHING_BEFORE

FAMILIES = ("smollm2", "llama", "qwen2", "none")
WORDS = ("Oslo", "Kraków")  # several tokens each
INNER, FIRST = "Anna lives in ___.", "___ is where Anna lives."
TEMPLATES = {INNER: "[X] lives in [Y].", FIRST: "[Y] is where [X] lives."}
CASES = ("to-as", "[C] is to [D] as [A] is to [B]")

# Function -> the fields of a query, given a text and a folder with data.
ASKED: dict[str, Callable[[str, Path], dict[str, Any]]] = {
    "fill": lambda text, _: {"text": text, "gold": "Oslo", "candidates": "full"},
    "rank": lambda text, _: {"text": text, "answers": WORDS},
    "sentences": lambda text, _: {"texts": [text.replace("___", word) for word in WORDS]},
    "ask": lambda text, _: {"question": text.replace("___", "Oslo"), "plain": True},
    "relation": lambda text, data: {
        "relation": "P1", "subject": "Anna", "dataset": str(data), "candidates": "full",
    },
    "batch": lambda text, data: {"file": str(data / "batch.txt"), "candidates": "full"},
    "analogy": lambda text, _: {"text": (text,), "candidates": "full"},
    "score_analogies": lambda text, _: {
        "query": "Paris:France",
        "pairs": ("Rome:Italy", "Oslo:Peru"),
        "template": CASES[text == FIRST],
    },
    "inspect": lambda text, _: {"text": text, "gold": "Oslo", "candidates": "full"},
    "grid": lambda text, _: {"texts": (text.replace("Anna", "{Anna|Ben}"),), "candidates": "full"},
}  # fmt: skip
RUNS: dict[str, Callable[[str, Path], Any]] = {
    "probe": lambda _, data: ProbeRequest(str(data), ("tiny",), candidates="full"),
    "probe, both sides": lambda _, data: ProbeRequest(
        str(data), ("tiny",), candidates="full", context="both"
    ),
    "statements": lambda _, data: StatementsRequest(str(data), ("tiny",)),
    "generate": lambda _, data: GenerateRequest(str(data), ("tiny",), plain=True),
    "analogy_probe": lambda text, _: AnalogyRequest(
        models=("tiny",),
        template=CASES[text == FIRST],
        probes=("reverse",),
        relations=("adj - comparative",),
        limit=2,
    ),
}


@pytest.fixture(params=FAMILIES)
def model(
    request: Any, tiny_model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    found = tiny_model("qwen2" if request.param == "none" else request.param)
    monkeypatch.setattr(found, "max_tokens", 500)
    # Words are also proposed after a text that begins with the right context: another text.
    monkeypatch.setattr("lama_core.models.hf.causal.turned_text", lambda left, _: left.strip())
    end = found.tokenizer.eos_token
    if request.param == "none":
        found.tokenizer.eos_token = None
    yield found
    found.tokenizer.eos_token = end


@pytest.fixture(params=(INNER, FIRST))
def text(request: Any) -> str:
    return str(request.param)


@pytest.fixture
def data(text: str, tmp_path: Path) -> Path:
    folder = write_bear(tmp_path / "data", (("Anna", "Oslo"),), WORDS, (TEMPLATES[text],))
    (folder / "batch.txt").write_text(f"{text}\tOslo\n", "utf-8")
    return folder


def start_of(model: Any, *, begins: bool) -> tuple[int, ...]:
    """The start token that the rule puts before a text, or ()."""
    tokenizer = model.tokenizer
    own = len(tokenizer("a")["input_ids"]) > len(
        tokenizer("a", add_special_tokens=False)["input_ids"]
    )
    known = [one for one in (tokenizer.bos_token_id, tokenizer.eos_token_id) if one is not None]
    return tuple(known[:1]) if own or begins else ()


@contextmanager
def first_tokens(model: Any) -> Iterator[set[int]]:
    """The first token of each text that the network reads."""
    found: set[int] = set()

    def look(_: Any, __: Any, given: dict[str, Any]) -> None:
        ids, mask = given.get("input_ids"), given.get("attention_mask")
        if ids is None or given.get("past_key_values") is not None:
            return  # it continues a text
        if mask is None or mask.dim() == 4:  # a prefix tree begins with its root
            mask = torch.ones_like(ids)
        found.update(int(row[ones.bool()][0]) for row, ones in zip(ids, mask, strict=True))

    handle = model.model.register_forward_pre_hook(look, with_kwargs=True)
    try:
        yield found
    finally:
        handle.remove()


def check_firsts(model: Any, text: str, found: set[int], *, generates: bool) -> None:
    """Every text begins with the rule's start token, or no text with any."""
    start = start_of(model, begins=text == FIRST and not generates)
    special = {model.tokenizer.bos_token_id, model.tokenizer.eos_token_id} - {None}
    assert found
    assert found & special == set(start), model.tokenizer.convert_ids_to_tokens(list(found))
    assert not start or found == set(start)


@pytest.mark.parametrize("query", QUERIES, ids=lambda one: one.request.python)
def test_every_kind_of_query_puts_the_same_token_before_a_text(
    query: Any, model: Any, text: str, data: Path
) -> None:
    fields = ASKED[query.request.python](text, data)
    if text == FIRST and not start_of(model, begins=True) and query.request.python != "ask":
        refuses = query.request.python not in ("relation", "batch", "score_analogies", "sentences")
        if refuses:
            with pytest.raises(UserError, match="has no start token"):
                ask_loaded(query, [model], **fields)
        return
    with first_tokens(model) as found:
        ask_loaded(query, [model], **fields)
    check_firsts(model, text, found, generates=query.request.python == "ask")


@pytest.mark.parametrize("name", RUNS)
def test_every_kind_of_run_puts_the_same_token_before_a_text(
    name: str, model: Any, text: str, data: Path, tmp_path: Path
) -> None:
    def load(*_: Any, **__: Any) -> Any:
        return model

    (spec,) = plan_runs(RUNS[name](text, data), load)
    with first_tokens(model) as found:
        if (
            text == FIRST
            and not start_of(model, begins=True)
            and name not in ("generate", "analogy_probe")
        ):
            with pytest.raises(NoFactCounts, match=NOTHING_BEFORE):
                execute(spec, folder=tmp_path / "runs", load=load)
            return
        execute(spec, folder=tmp_path / "runs", load=load)
    check_firsts(model, text, found, generates=name == "generate")


def log_probs(model: Any, start: tuple[int, ...], text: str) -> np.ndarray:
    """The log-probability of each token of a text after its start tokens; NaN for a first token."""
    ids = [*start, *model.tokenizer(text, add_special_tokens=False)["input_ids"]]
    found = torch.log_softmax(model.plain_logits(ids)[:-1], 1)[torch.arange(len(ids) - 1), ids[1:]]
    return np.array([np.nan, *found.tolist()])[len(start) :]


def test_the_other_rule_puts_bos_before_every_sentence(model: Any, data: Path) -> None:
    begin = model.tokenizer.bos_token_id
    start = start_of(model, begins=False) or (() if begin is None else (begin,))
    expected = log_probs(model, start, INNER.replace("___", "Oslo"))
    request = {"text": INNER, "answers": ("Oslo",), "start_token": "always"}
    (found,) = ask_loaded(answers.rank, [model], **request).models
    assert found.answers[0].tokens.log_probs == pytest.approx(expected, abs=1e-4, nan_ok=True)


def test_runs_that_differ_by_the_rule_differ_in_name_and_identity(model: Any, data: Path) -> None:
    needed, always = (
        plan_runs(
            StatementsRequest(str(data), ("tiny",), start_token=rule), lambda *_, **__: model
        )[0]
        for rule in ("needed", "always")
    )
    matters = not start_of(model, begins=False) and bool(start_of(model, begins=True))
    assert (needed.digest != always.digest) is matters
    assert needed.prompt_name() == "statements template 0" + ", start token where needed" * matters
    assert always.prompt_name() == "statements template 0"


def test_a_run_without_the_option_had_a_start_token_before_every_sentence() -> None:
    request = StatementsRequest("starter", ("smollm2-135m",))
    stored = StoredRequest("statements", record(request))
    assert read_request(stored) == request
    earlier = {name: value for name, value in stored.fields.items() if name != "start_token"}
    assert read_request(replace(stored, fields=earlier)) == replace(request, start_token="always")


@pytest.mark.usefixtures("users_models")
def test_smollm2s_start_token_changes_the_share_of_an_answer() -> None:
    if locate(find_model("smollm2-135m")) is None:
        pytest.skip("the weights of SmolLM2 are not on this machine")
    cities = ("Rio de Janeiro", "Brasília", "São Paulo", "Buenos Aires")
    shares = {}
    for rule in ("needed", "always"):
        found = lama.rank(
            "The capital of Brazil is ___.", cities, models=["smollm2-135m"], start_token=rule
        )
        shares[rule] = found.set_index("answer")["prob"]["Brasília"]
    # As docs/departures.md says, less what the last digits of log-probabilities can change.
    assert shares == {
        "needed": pytest.approx(0.35, abs=0.01),
        "always": pytest.approx(0.04, abs=0.01),
    }
