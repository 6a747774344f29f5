"""Models behind a server: what their lists leave open, and every fault is one sentence.

The reference is the same tiny model, opened by the library from its folder.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from completions_server import NAME, QUICK, Server, serve
from first.models.test_server_numbers import Models, single
from probe_fakes import write_dataset

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import named_candidates
from lama_core.errors import UserError
from lama_core.models.server import completions
from lama_core.models.server.addresses import read_address
from lama_core.models.server.backend import ServerModel, open_server
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.plan import plan
from lama_core.queries.blank_answers import query_model
from lama_core.scoring.blanks import parse_query

Serve = Callable[[Server], ServerModel]


@pytest.fixture
def served() -> Iterator[Serve]:
    """`served(server)`: the server is started, and the model behind it opened."""
    with ExitStack() as stack:

        def start(server: Server) -> ServerModel:
            server = stack.enter_context(serve(server))
            return open_server(server.reference, QUICK)

        yield start


def test_a_folded_list_sums_the_ways_to_write_a_word(served: Serve, tiny_model: Models) -> None:
    model = served(Server())
    columns = Candidates("file", ("poet", "oslo"), True).columns(model.vocabulary)
    query = parse_query("Anna, the [MASK].")
    found = model.blank_log_probs([model.encode(query, "left")], columns).log_probs[0]
    for word, value in zip(("poet", "oslo"), found, strict=True):
        forms = (word, word.title(), word.upper())
        values = [model.word_log_prob(query, 0, form, "left").log_prob for form in forms]
        assert value == pytest.approx(np.logaddexp.reduce(values), abs=1e-4)


def test_beyond_the_servers_list_only_the_gold_is_known_and_that_is_said(
    served: Serve, tiny_model: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lama_core.models.server.backend.SCORED_ALL", 10)
    there, here = served(Server(max_list=20)), tiny_model("smollm2")
    words = single(here, 1000)
    assert len(words) > 50
    query, candidates = parse_query("Oslo is the capital of [MASK]."), Candidates("file", words)
    expected = query_model(here, query, candidates, context="left", top_k=100)
    worst = expected.blanks[0].predictions[-1].token
    answer = query_model(there, query, candidates, context="left", top_k=100, gold=worst).blanks[0]
    n = len(answer.predictions)
    assert 0 < n <= 20
    known = {item.token: item.log_prob for item in expected.blanks[0].predictions}
    for item in answer.predictions:
        assert item.log_prob == pytest.approx(known[item.token], abs=1e-4)
    assert answer.gold is not None and answer.gold.log_prob == pytest.approx(known[worst], abs=1e-4)
    assert (
        answer.gold.rank == n + 1
        and not answer.gold.proposed
        and answer.gold_beyond
        and answer.n_listed in range(15, 21)
    )
    assert "Shortened list: the server returns only its" in answer.notes()[0]
    best = query_model(there, query, candidates, context="left", gold=answer.predictions[0].token)
    assert best.blanks[0].gold is not None and best.blanks[0].gold.rank == 1
    assert not best.blanks[0].gold_beyond


def test_an_open_vocabulary_is_what_the_server_lists(served: Serve, tiny_model: Models) -> None:
    there, here = served(Server()), tiny_model("smollm2")
    query = parse_query("Oslo is the capital of [MASK].")
    candidates = named_candidates("common", [there.vocabulary])
    found = query_model(there, query, candidates, top_k=50, gold="Zanzibar").blanks[0]
    expected = query_model(here, query, Candidates("full", None), top_k=50, gold="Zanzibar").blanks[
        0
    ]
    names = [
        [item.token for item in one.predictions if item.token.isalpha()]
        for one in (found, expected)
    ]
    n = min(map(len, names))  # special tokens, and parts of characters, are in one of the two
    assert n > 5 and names[0][:n] == names[1][:n]
    assert found.gold is not None and expected.gold is not None
    assert found.gold.log_prob == pytest.approx(expected.gold.log_prob, abs=1e-4)


FAULTS = {
    "of another model": (Server(models=("other",)), "It has: other"),
    "a web page": (Server(page=True), "it returns a web page"),
    "deep": (Server(body=b"[" * 100_000), "its response is not JSON"),
    "a key is wanted": (Server(key="s3cret"), "needs a key: set LAMA_SERVER_KEY"),
    "not of the prompt": (Server(no_prompt=True), "doesn't return log-probabilities of the prompt"),
    "wrong ones": (Server(wrong=-1.0), "don't match its next-token log-probabilities"),
    "shifted, with short lists": (Server(shift=True), "too short to correct that"),
    "it sends on": (
        Server(moved="http://u:secret@127.0.0.1:9/x/v1/models?key=a"),
        "redirects to http://127.0.0.1:9/x: use that address",
    ),
    "always busy": (Server(status=503, n_faults=99), "doesn't answer (it answered 503, 3 times)"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_server_that_cant_be_scored_with_is_refused_in_one_sentence(
    name: str, served: Serve
) -> None:
    server, said = FAULTS[name]
    with pytest.raises(UserError) as error:
        served(replace(server, asked=[], keys=[]))
    assert said in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "reference",
    ["server:ftp://a#b", "server:http://a", "server:http://u:p@a#m", "server:http://a:99999#m",
     "server:http://a?x=1#m", "server:http://[::1#m", "server:http://a#m\n"],
)  # fmt: skip
def test_what_is_no_address_is_refused_before_anything_is_called(reference: str) -> None:
    with pytest.raises(UserError):
        read_address(reference)


def test_an_address_has_one_way_to_be_written() -> None:
    endpoints = ("", "/", "/v1", "/v1/", "/v1/completions", "/v1/chat/completions", "/v1/models/")
    for written in ("http://Host:80", *(f"http://host:80{end}" for end in endpoints)):
        assert read_address(f"server:{written}#a/b").reference == "server:http://host:80#a/b"


def test_the_key_is_sent_and_nowhere_else_to_be_found(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMA_SERVER_KEY", "s3cret")
    server = Server(key="s3cret", says={"root": "x"})
    model = served(server)
    assert set(server.keys) == {"Bearer s3cret"}
    assert "s3cret" not in repr(vars(model)) + model.identity + " ".join(model.notes)
    server.status, server.n_faults = 400, 1  # it says the key in its error
    with pytest.raises(UserError, match="no place for Bearer …") as error:
        model.token_log_probs(["Anna is."])
    assert "s3cret" not in str(error.value)
    monkeypatch.setenv("LAMA_SERVER_KEY", "other")
    with pytest.raises(UserError, match="doesn't accept the key in LAMA_SERVER_KEY"):
        model.token_log_probs(["Anna is."])


def test_what_may_pass_is_tried_again_and_what_may_not_isnt(served: Serve) -> None:
    server = Server()
    model = served(server)
    expected = model.token_log_probs(["Anna is here."])[0].log_probs
    for status in (500, 429):
        server.status, server.n_faults = status, 2
        found = model.token_log_probs(["Anna is here."])[0].log_probs
        np.testing.assert_array_equal(found, expected)
    server.asked.clear()
    server.status, server.n_faults = 400, 2
    with pytest.raises(UserError, match="answered HTTP 400"):
        model.token_log_probs(["Anna is here."])
    assert len(server.asked) == 1


def test_no_more_requests_are_under_way_than_the_environment_says(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMA_SERVER_THREADS", "2")
    server = Server()
    model = served(server)
    server.seconds = (
        0.05  # so that the second comes while the first waits, however busy the machine
    )
    model.token_log_probs([f"Anna was born in {number}." for number in range(20)])
    assert server.most_at_once == 2
    monkeypatch.setenv("LAMA_SERVER_THREADS", "many")
    with pytest.raises(UserError, match="LAMA_SERVER_THREADS is 'many'"):
        served(Server())


def test_an_answer_without_end_is_given_up(served: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    model = served(server)
    monkeypatch.setattr(completions, "MAX_BYTES", 1000)
    server.body = b'{"choices": [' + b" " * 5000
    with pytest.raises(UserError, match="exceeds 1,000 bytes"):
        model.token_log_probs(["Anna is here."])


@pytest.mark.parametrize(
    "part",
    [{"tokens": ["Anna"], "token_logprobs": []}, {"tokens": ["Anna"], "token_logprobs": [3.0]},
     {"tokens": ["Anna"], "token_logprobs": [-1.0], "top_logprobs": [5]}, 7,
     {"tokens": ["Otto", " is"], "token_logprobs": [None, -1.0]}],
)  # fmt: skip
def test_an_answer_of_another_form_is_one_sentence(part: Any, served: Serve) -> None:
    server = Server()
    model = served(server)
    server.body = json.dumps({"choices": [{"logprobs": part}]}).encode()
    with pytest.raises(UserError, match="can't be used for completions"):
        model.token_log_probs(["Anna is"])


def test_what_a_server_says_of_a_model_makes_its_identity(served: Serve) -> None:
    plain = [served(Server()) for _ in range(2)]
    assert plain[0].identity.startswith(f"server:{NAME}/")
    assert "127.0.0.1" not in plain[0].identity
    server = Server(says={"created": 1, "root": "a"})
    with serve(server):
        first = open_server(server.reference, QUICK).identity
        server.says["created"] = 2  # of vLLM, the time at which it is asked
        assert open_server(server.reference, QUICK).identity == first
        server.says["root"] = "b"
        assert open_server(server.reference, QUICK).identity != first


def test_a_run_needs_its_words_before_it_begins(served: Serve, tmp_path: Path) -> None:
    model = served(Server())
    data = str(write_dataset(tmp_path / "toy", n_facts=4))
    for candidates in ("common", "full"):
        request = ProbeRequest(data, ("server:x",), candidates=candidates)
        with pytest.raises(UserError, match="choose relation, lama or file:PATH"):
            plan(request, load=lambda *_args, **_options: model)
