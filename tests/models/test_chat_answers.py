"""A chat's answers as servers give them: reasoning and empty lines aren't part of the answer."""

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from asking import ask_loaded
from completions_server import NAME, Server, serve
from probe_fakes import write_dataset

from lama_core.downloads.retry import Patience
from lama_core.errors import TextRefusedError
from lama_core.models.answers import find_answer
from lama_core.models.protocols import Chat, Message
from lama_core.models.server.chat import REASONING_TOKENS, ChatModel, open_chat
from lama_core.probes.generation.plan import plan
from lama_core.probes.generation.request import GenerateRequest
from lama_core.queries.batch_lines import read_lines
from lama_core.queries.batch_texts import generate_lines
from lama_core.queries.question import ask
from lama_core.runs.execute import execute

QUICK = Patience(connect=5, read=20, whole=60, attempts=3, pause=0.01)
pytestmark = pytest.mark.usefixtures("home")
QUESTION = [Chat((Message("user", "What is the capital of France?"),))]
Choice = Callable[[dict[str, Any]], dict[str, Any]]


def opened(stack: ExitStack, server: Server) -> ChatModel:
    stack.enter_context(serve(server))
    return reopened(server)


def reopened(server: Server) -> ChatModel:
    return open_chat(f"chat:{server.address}#{NAME}", QUICK)


def choice(content: Any, ending: str = "stop", **fields: Any) -> Choice:
    """A choice with this content and these fields of its message."""
    return lambda _: {"message": {"content": content, **fields}, "finish_reason": ending}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Paris", "Paris"),
        (" Paris\nIt is", " Paris"),
        ("\n\n Paris\nIt is", " Paris"),
        (" \n\t\nParis", "Paris"),
        ("<think>\nHm.\n</think>\n\nParis\n", "Paris"),
        ("\n<think></think>Paris", "Paris"),
        ("Hm.\nWell.\n</think>\n\nParis", "Paris"),
        ("<think>a</think><think>b</think>Paris", "Paris"),
        ("[THINK]Hm.[/THINK]Paris", "Paris"),
        ("<|channel|>analysis<|message|>Hm.<|end|><|channel|>final<|message|>Paris", "Paris"),
        ("<think>\nHm.\nParis", ""),
        ("", ""),
        ("\n\n", ""),
    ],
)
def test_an_answer_is_the_first_line_with_text_after_the_reasoning(text: str, answer: str) -> None:
    found = find_answer(text)
    assert text[found.start : found.end].rstrip("\n") == answer
    assert found.in_reasoning == (text.startswith("<think>") and "</think>" not in text)


@pytest.mark.parametrize(
    ("given", "answer", "ending"),
    [
        (choice("\n\nParis"), "Paris", "whole"),
        (choice("<think>\nHm.\n</think>\n\nParis\nIt is"), "Paris", "whole"),
        (choice("\n\nParis", reasoning_content="Hm."), "Paris", "whole"),
        (choice(None, "length", reasoning_content="Hm."), "", "in reasoning"),
        (choice("", "length", reasoning="Hm."), "", "in reasoning"),
        (choice("<think>\nHm.", "length"), "", "in reasoning"),
        (choice([{"type": "text", "text": "Par"}, {"type": "text", "text": "is"}]),
         "Paris", "whole"),
        (choice([{"type": "thinking", "thinking": []}, {"type": "text", "text": "Paris"}]),
         "Paris", "whole"),
        (choice(None, refusal="I can't help."), "I can't help.", "whole"),
        (choice("Paris is", "length"), "Paris is", "cut"),
        (choice("Paris.\nIt is", "length"), "Paris.", "whole"),
    ],
)  # fmt: skip
def test_answers_are_whole_in_every_form(
    stack: ExitStack, given: Choice, answer: str, ending: str
) -> None:
    model = opened(stack, Server(chats={"": given}))
    (found,) = model.generate(QUESTION, 7)
    assert (found.text, found.ending) == (answer, ending)


@pytest.mark.parametrize(
    ("begun", "whole"),
    [
        ("<think>\nHm", "<think>\nHm.\n</think>\n\nParis"),
        ("Hm. The\ncapital", "Hm. The\ncapital.\n</think>\n\nParis"),
    ],
)
def test_reasoning_gets_enough_tokens(stack: ExitStack, begun: str, whole: str) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        is_cut = body["max_tokens"] < 1000
        return choice(begun if is_cut else whole, "length" if is_cut else "stop")(body)

    server = Server(chats={"": answer})
    model = opened(stack, server)
    assert model.generate(QUESTION, 7)[0].text == "Paris"
    assert [body["max_tokens"] for body in server.asked] == [7, 7 + REASONING_TOKENS]
    model.generate([Chat((Message("user", "Once more?"),))], 7)
    assert len(server.asked) == 3, "it is known to reason"


def test_a_long_answer_without_reasoning_is_asked_for_with_more_tokens_once(
    stack: ExitStack,
) -> None:
    server = Server(chats={"": choice("Well, the capital", "length")})
    model = opened(stack, server)
    for number in range(3):
        model.generate([Chat((Message("user", f"Question {number}?"),))], 7)
    assert len(server.asked) == 4


def test_a_window_without_room_for_reasoning_gives_the_answer_that_was_cut(
    stack: ExitStack,
) -> None:
    server = Server(
        chats={"": choice("Well, the", "length")},
        refused=f'"max_tokens": {7 + REASONING_TOKENS}',
        refusal=(400, {"error": {"message": "maximum context length is 64 tokens"}}),
    )
    (found,) = opened(stack, server).generate(QUESTION, 7)
    assert (found.text, found.ending) == ("Well, the", "cut")


def test_the_tokens_of_an_answer_are_those_after_the_reasoning(stack: ExitStack) -> None:
    text = "<think>Hm</think>\n\nParis\nIt"
    tokens = ["<think>", "Hm", "</think>", "\n\n", "Par", "is", "\n", "It"]
    given = [{"token": token, "logprob": -0.5 * at} for at, token in enumerate(tokens)]

    def answer(_: dict[str, Any]) -> dict[str, Any]:
        return {"message": {"content": text}, "logprobs": {"content": given}}

    (found,) = opened(stack, Server(chats={"": answer})).generate(QUESTION, 7)
    assert found.tokens == ("Par", "is") and found.log_probs.tolist() == [-2.0, -2.5]


def test_tokens_of_reasoning_beside_the_text_are_left_out(stack: ExitStack) -> None:
    given = [{"token": token, "logprob": -1.0} for token in ("Hm", ".", "Par", "is")]

    def answer(_: dict[str, Any]) -> dict[str, Any]:
        message = {"content": "Paris", "reasoning_content": "Hm."}
        return {"message": message, "logprobs": {"content": given}}

    (found,) = opened(stack, Server(chats={"": answer})).generate(QUESTION, 7)
    assert found.tokens == ("Par", "is")


def test_fields_that_a_server_refuses_are_renamed_or_left_out(stack: ExitStack) -> None:
    lacks = {
        "max_tokens": "is not supported with this model. Use 'max_completion_tokens' instead.",
        "temperature": "does not support 0 with this model.",
        "logprobs": "are not supported with reasoning.",
    }
    server = Server(lacks=lacks)
    (found,) = opened(stack, server).generate(QUESTION, 7)
    assert found.text == "Paris" and math.isnan(found.log_probs.sum())
    assert server.asked[-1].keys() == {"model", "messages", "max_completion_tokens"}


def test_a_filtered_answer_and_a_cut_prompt_are_refused_texts(stack: ExitStack) -> None:
    model = opened(stack, Server(chats={"": choice("", "content_filter")}))
    with pytest.raises(TextRefusedError, match="its content filter stopped the answer"):
        model.generate(QUESTION, 7)
    model = opened(stack, Server(counts=5))  # as Ollama, which cuts a prompt without a word
    with pytest.raises(TextRefusedError, match="it read only 5 tokens of 6 words"):
        model.generate(QUESTION, 7)


def test_another_model_behind_the_name_is_asked_again(stack: ExitStack) -> None:
    server = Server(says={"created": 1_700_000_000, "meta": {"n_params": 1}})
    first = opened(stack, server)
    first.generate(QUESTION, 7)
    assert reopened(server).generate(QUESTION, 7)[0].is_stored
    server.says = {"created": 1_800_000_000, "meta": {"n_params": 1}}  # a newer file
    for model in (first, reopened(server)):
        assert model.identity == first.identity, "a run can be resumed"
    assert not first.generate(QUESTION, 7)[0].is_stored, "also of a model that is open"
    server.says = {"created": 1_800_000_000, "meta": {"n_params": 2}}
    assert reopened(server).identity != first.identity
    assert not reopened(server).generate(QUESTION, 7)[0].is_stored


def test_the_time_of_a_request_is_not_part_of_the_record(stack: ExitStack) -> None:
    server = Server(says={"created": int(time.time())})  # of vLLM
    opened(stack, server).generate(QUESTION, 7)
    server.says["created"] -= 30
    assert reopened(server).generate(QUESTION, 7)[0].is_stored


def test_a_stored_answer_says_its_date_and_can_be_asked_for_again(stack: ExitStack) -> None:
    server = Server()
    model = opened(stack, server)
    question = "What is the capital of France?"

    def asked(*, again: bool = False) -> Any:
        return ask_loaded(ask, [model], question, again=again)

    assert asked().models[0].notes()[-1].startswith("Answer of 20")
    stored = asked().models[0]
    assert stored.notes() == (f"Stored answer of {stored.generated.made} UTC.",)
    server.chats = {"": "Lyon"}
    assert asked(again=True).models[0].generated.text == "Lyon"
    assert asked().models[0].generated.text == "Lyon", "it is the stored one now"
    assert asked().to_json()["models"][0]["stored"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (choice("Well, it is", "length"), "answers 8 are cut at 32 tokens, 0 end within"),
        (choice("<think>Hm", "length"), "answers 0 are cut at 32 tokens, 8 end within"),
        (choice(""), "0 end within the model's reasoning, and 8 are empty for another reason."),
        (choice("Paris"), ""),
    ],
)
def test_a_run_says_that_most_answers_are_empty_or_cut(
    stack: ExitStack, tmp_path: Path, given: Choice, said: str
) -> None:
    model = opened(stack, Server(chats={"": given}))
    notes: list[str] = []
    request = GenerateRequest(
        str(write_dataset(tmp_path / "toy", 4)), (model.name,), ("P19", "P47")
    )
    (spec,) = plan(request, load=lambda *_, **__: model)
    execute(spec, folder=tmp_path / "r", load=lambda *_, **__: model, on_note=notes.append)
    found = [note for note in notes if "answers" in note and "within" in note]
    assert len(found) == bool(said) and all(said in note for note in found)
    lines = read_lines("In Norway?\nIn Peru?", models=[model.name])
    summary = generate_lines(model, lines).summary()
    assert ("2 of 2 texts are empty or cut" in summary) == bool(said)
