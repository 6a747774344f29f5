"""Servers as people have them: each one's answers, refusals and addresses, from a known model.

The refusals have the status and the fields of each server's, with words such as theirs.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from completions_server import NAME, QUICK, Server, serve
from every_kind import plan_runs
from probe_fakes import write_dataset

from lama_core.errors import TextRefusedError, UserError
from lama_core.models.protocols import Chat, Message
from lama_core.models.server.backend import ServerModel, open_server
from lama_core.models.server.chat import open_chat
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.generation import plan as generation
from lama_core.probes.statements.request import StatementsRequest
from lama_core.runs.execute import execute

pytestmark = pytest.mark.usefixtures("home")
Error = tuple[int, Any]


def said(text: str, **fields: Any) -> dict[str, Any]:
    """An error in OpenAI's form."""
    return {"error": {"message": text, "type": "invalid_request_error", "param": None, **fields}}


WINDOW = "maximum context length is 64 tokens. However, you requested 75 tokens"
REFUSALS: dict[str, Error] = {
    "vLLM": (400, {"object": "error", "message": f"This model's {WINDOW}", "code": 400}),
    "vLLM, newer": (400, said("The decoder prompt is longer than the maximum model length of 64.")),
    "SGLang": (
        400,
        {"message": "The input (75 tokens) is longer than the model's context length (64 tokens)."},
    ),
    "llama-server": (
        400,
        said("the request exceeds the available size", type="exceed_context_size_error", code=400),
    ),
    "llama-cpp-python 0.3.36": (
        500,
        {
            "error": {
                "message": "could not broadcast input array from shape (64,) into shape (61,))",
                "type": "internal_server_error",
            }
        },
    ),
    "LM Studio": (
        400,
        {"error": "the model is loaded with context length of only 64 tokens, which is too small"},
    ),
    "OpenAI": (400, said("Your input is over the limit", code="context_length_exceeded")),
    "Azure": (400, said("The response was filtered", code="content_filter", param="prompt")),
    "OpenRouter": (403, said("Your input was flagged", metadata={"reasons": ["violence"]})),
    "TGI": (422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 64. Given: 75"}),
    "a proxy": (413, b"<html><h1>413 Request Entity Too Large</h1></html>"),
    "a limit per minute": (429, said("Request too large for m on tokens per min: Limit 64")),
}
OTHER_ERRORS: dict[str, Error] = {
    "no right": (403, said("your plan lacks this model")),
    "a parameter": (400, said("logprobs must be at most 20", param="logprobs")),
    "a field": (422, {"detail": [{"msg": "Input should be at most 5", "input": "too long"}]}),
    "a rate": (429, said("Rate limit reached: too many tokens per minute", code="rate_limit")),
    "a fault": (500, said("out of memory")),
}


def opened(stack: ExitStack, server: Server) -> ServerModel:
    stack.enter_context(serve(server))
    return open_server(server.reference, QUICK)


def loading(model: Any) -> Callable[..., Any]:
    return lambda *_, **__: model


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refused_text_is_told_from_a_refused_request(stack: ExitStack, name: str) -> None:
    server = Server(refused="Zanzibar", refusal=REFUSALS[name])
    model = opened(stack, server)
    n_before = len(server.asked)
    with pytest.raises(TextRefusedError, match=f"refuses the text .HTTP {REFUSALS[name][0]}: "):
        model.token_log_probs(["Zanzibar is here."])
    assert len(server.asked) == n_before + 1, "it isn't tried again"


@pytest.mark.parametrize("name", OTHER_ERRORS)
def test_another_error_is_not_about_the_text(stack: ExitStack, name: str) -> None:
    model = opened(stack, Server(refused="Zanzibar", refusal=OTHER_ERRORS[name]))
    with pytest.raises(UserError) as error:
        model.token_log_probs(["Zanzibar is here."])
    assert not isinstance(error.value, TextRefusedError)


RANKS = ("rank_raw", "rank_filtered", "first")
RUNS: dict[str, tuple[Callable[[str, str], Any], tuple[str, ...]]] = {
    "left": (lambda data, name: ProbeRequest(data, (name,), candidates="relation"), RANKS),
    "both": (
        lambda data, name: ProbeRequest(data, (name,), candidates="relation", context="both"),
        RANKS,
    ),
    "statements": (lambda data, name: StatementsRequest(data, (name,)), ("margin",)),
}


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_excludes_refused_facts_and_scores_the_others(
    stack: ExitStack, tmp_path: Path, kind: str
) -> None:
    server = Server(family="llama")
    model = opened(stack, server)
    request, columns = RUNS[kind]
    data = str(write_dataset(tmp_path / "toy", n_facts=4))
    (spec,) = plan_runs(request(data, server.reference), loading(model))
    whole = execute(spec, folder=tmp_path / "whole", load=loading(model)).facts
    subject = whole["subject"][3]
    server.refused, server.refusal = f"{subject} ", REFUSALS["vLLM"]
    run = execute(spec, folder=tmp_path / "cut", load=loading(model))
    is_refused = run.facts["excluded"].notna()
    assert 0 < is_refused.sum() == run.info.n_excluded < len(run.facts)
    assert is_refused.tolist() == [f"{subject} " in text for text in whole["query"]]
    assert "refused by the server (HTTP 400: This model's maximum" in run.facts["excluded"][3]
    for name in columns:
        assert run.facts[name][~is_refused].tolist() == whole[name][~is_refused].tolist(), name
        assert run.facts[name][is_refused].isna().all()


def test_generated_answers_exclude_refused_questions(stack: ExitStack, tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "toy", n_facts=4)
    server = stack.enter_context(serve(Server()))
    name = f"chat:{server.address}#{NAME}"
    model = open_chat(name, QUICK)
    (spec,) = generation.plan(generation.GenerateRequest(str(data), (name,)), load=loading(model))
    query = spec.load_data().facts_of(spec.relations[0])[2].subject
    server.refused, server.refusal = query, REFUSALS["OpenAI"]
    facts = execute(spec, folder=tmp_path / "cut", load=loading(model)).facts
    is_refused = facts["excluded"].notna()
    assert is_refused[2] and not is_refused.all()
    assert (facts["answer"][~is_refused] == "Paris").all() and facts["answer"][
        is_refused
    ].isna().all()
    server.refused = "content"  # every request
    with pytest.raises(UserError, match=r"All facts are excluded .*refused by the server"):
        another = replace(spec, request=replace(spec.request, seed=1, shots=1))
        execute(another, folder=tmp_path / "none", load=loading(model))


@pytest.mark.parametrize("form", ["llama-server", "ollama"])
def test_a_server_without_log_probabilities_of_prompts_is_named_as_such(
    stack: ExitStack, form: str
) -> None:
    server = stack.enter_context(serve(Server(form=form)))
    with pytest.raises(UserError, match="can't score texts: it doesn't return") as error:
        open_server(server.reference, QUICK)
    assert f"write chat:{server.address}#{NAME}." in str(error.value)


@pytest.mark.parametrize(("prefix", "end"), [("", "/chat/completions"), ("/v1beta/openai", "")])
def test_an_address_is_taken_with_its_endpoint_and_without_v1(
    stack: ExitStack, prefix: str, end: str
) -> None:
    server = stack.enter_context(serve(Server(prefix=prefix)))
    model = open_server(f"server:{server.address}{prefix}{end}#{NAME}", QUICK)
    assert np.isfinite(model.token_log_probs(["Anna is here."])[0].log_probs[1:]).all()
    chat = open_chat(f"chat:{server.address}{prefix}{end}#{NAME}", QUICK)
    assert chat.generate([Chat((Message("user", "In France?"),))], 7)[0].text == "Paris"


def test_the_variable_of_a_proxy_is_named_and_its_password_isnt(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stack.enter_context(serve(Server()))
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:9")
    with pytest.raises(
        UserError, match=r"doesn't answer .* proxy in HTTP_PROXY: .* NO_PROXY"
    ) as error:
        open_server(server.reference, QUICK)
    assert "secret" not in str(error.value) and not server.keys
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert open_server(server.reference, QUICK).n_list
