"""Chat servers: answers are asked for once, and every fault is one sentence."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from completions_server import NAME, QUICK, Server, opened_chat, serve
from probe_fakes import write_dataset

import lama_core as lama
from lama_core.errors import UserError
from lama_core.models.protocols import Chat, Message
from lama_core.models.server.chat import ChatModel, open_chat
from lama_core.probes.generation.plan import plan
from lama_core.probes.generation.request import GenerateRequest
from lama_core.queries.batch_lines import read_lines
from lama_core.queries.batch_texts import generate_lines
from lama_core.queries.question_prompts import BRIEFLY, COMPLETE
from lama_core.runs.execute import execute

pytestmark = pytest.mark.usefixtures("home")


def chat(text: str) -> Chat:
    return Chat((Message("user", text),))


def reference(server: Server) -> str:
    return f"chat:{server.address}#{NAME}"


def test_answers_end_at_the_line_and_have_their_tokens(stack: ExitStack) -> None:
    server = Server(chats={"Norway": "Oslo.\nIt is a city.", "Peru": ""})
    model = opened_chat(stack, server)
    norway, peru, france = model.generate([chat("Norway?"), chat("Peru?"), chat("France?")], 7)
    assert (norway.text, peru.text, france.text) == ("Oslo.", "", "Paris")
    assert norway.tokens == tuple("Oslo.")
    assert norway.log_probs.sum() == pytest.approx(5 * -0.5)
    body = server.asked[-1]
    assert (body["max_tokens"], body["temperature"]) == (7, 0) and "stop" not in body


def test_an_answer_is_asked_for_once(stack: ExitStack) -> None:
    server = Server()
    model = opened_chat(stack, server)
    prompts = [chat("Norway?"), chat("Norway?"), chat("Peru?")]
    assert model.n_waiting(prompts, 7) == 2
    first = model.generate(prompts, 7)
    assert len(server.asked) == 2 and model.n_waiting(prompts, 7) == 0
    again = open_chat(reference(server), QUICK).generate(prompts, 7)
    assert len(server.asked) == 2
    assert [one.text for one in first] == [one.text for one in again]
    model.generate(prompts[:1], 8)  # another request
    assert len(server.asked) == 3


def test_a_stored_answer_that_is_damaged_is_asked_for_again(stack: ExitStack, home: Path) -> None:
    server = Server()
    model = opened_chat(stack, server)
    model.generate([chat("Norway?")], 7)
    (stored,) = home.rglob("chats/*/*.json")
    stored.write_text(stored.read_text()[:-5])
    assert model.generate([chat("Norway?")], 7)[0].text == "Paris"
    assert len(server.asked) == 2 and json.loads(stored.read_text())["text"] == "Paris"


def test_a_batch_is_completed_and_its_questions_are_answered(stack: ExitStack) -> None:
    server = Server(chats={"Norway": "It is Oslo.", "Peru": "I don't know."})
    model = opened_chat(stack, server)
    text = (
        "Oslo is in ___. | Norway\nThe capital of Norway is ___. | Oslo\nIn Peru? | Lima\n_ ___ ___"
    )
    lines = read_lines(text, models=[reference(server)])
    found = generate_lines(model, lines)
    assert [one.word for one in found.answers] == ["Paris", "It is Oslo.", "I don't know.", None]
    assert [one.is_right for one in found.answers] == [False, True, False, None]
    assert "has 2 blanks" in found.answers[3].fault
    assert found.summary() == (
        "P@1 33.3 %: 1 of 3 texts contain the right answer; 3 of 4 sentences answered"
    )
    asked = {body["messages"][0]["content"] for body in server.asked}
    assert asked == {
        f"{question} {BRIEFLY}"
        for question in (
            f"{COMPLETE}Oslo is in ___.",
            "In Peru?",
            f"{COMPLETE}The capital of Norway is ___.",
        )
    }


def test_a_plain_text_is_refused(stack: ExitStack) -> None:
    with pytest.raises(UserError, match="is a chat server: ask without --plain"):
        opened_chat(stack, Server()).generate(["The capital of Norway is"], 7)


@pytest.mark.parametrize("choice", [{}, {"message": {"content": 3}}, {"message": "Paris"}])
def test_an_answer_of_another_form_is_one_sentence(
    stack: ExitStack, choice: dict[str, object]
) -> None:
    model = opened_chat(stack, Server(chats={"": lambda _: choice}))
    with pytest.raises(UserError, match=r"can't be used as a chat server: its response"):
        model.generate([chat("Norway?")], 7)


@pytest.mark.parametrize(
    "ask",
    [
        lambda name: lama.fill("Paris is in ___.", models=(name,)),
        lambda name: lama.rank("Paris is in ___.", answers=("France", "Peru"), models=(name,)),
        lambda name: lama.sentences(("Paris is big.", "Paris is small."), models=(name,)),
        lambda name: lama.score_analogies("a:b", ["c:d", "e:f"], models=(name,)),
        lambda name: lama.probe(dataset="starter", relations=("P36",), models=(name,)),
        lambda name: lama.statements(dataset="starter", relations=("P36",), models=(name,)),
        lambda name: lama.select_prompts(dataset="starter", model=name),
    ],
)
def test_scores_are_refused(stack: ExitStack, ask: Callable[[str], object]) -> None:
    server = Server()
    stack.enter_context(serve(server))
    with pytest.raises(UserError, match="is a chat server, which generates text"):
        ask(reference(server))
    assert not server.asked


def test_a_run_resumes_without_paying_twice(stack: ExitStack, tmp_path: Path) -> None:
    server = stack.enter_context(serve(Server()))
    data = write_dataset(tmp_path / "data")
    said: list[str] = []

    def load(name: str, **_: object) -> ChatModel:
        return open_chat(name, QUICK)

    def run(folder: str, **options: object) -> str:
        request = GenerateRequest(str(data), (reference(server),), **options)  # type: ignore[arg-type]
        (spec,) = plan(request, load=load)
        made = execute(spec, folder=tmp_path / folder, load=load, on_note=said.append)
        return (made.info.folder / "facts.parquet").read_bytes().hex()

    with pytest.raises(UserError, match=r"needs \d+ requests, but --max-requests is 1: raise"):
        run("first", max_requests=1)
    server.dies_after = 2
    with pytest.raises(UserError, match="doesn't answer"):
        run("first")
    n_before = len({json.dumps(one) for one in server.asked})
    server.dies_after = 1 << 30
    first = run("first", price_in=1.0, price_out=2.0)
    costs = [one for one in said if "at the given prices" in one]
    assert costs and "are stored already" in costs[-1]
    n_all = len(server.asked)
    assert n_before >= 2
    assert run("second") == first and len(server.asked) == n_all
