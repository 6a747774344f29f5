"""A chat's answers as servers give them: reasoning and empty lines aren't part of the answer."""

import math
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from asking import ask_loaded
from completions_server import NAME, QUICK, Choice, Server, choice, opened_chat
from probe_fakes import write_dataset

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

pytestmark = pytest.mark.usefixtures("home")
QUESTION = [Chat((Message("user", "What is the capital of France?"),))]


def reopened(server: Server) -> ChatModel:
    return open_chat(f"chat:{server.address}#{NAME}", QUICK)


# Forms of a block: how a mark of this name opens and closes it.
FORMS: dict[str, tuple[str, str]] = {
    "xml": ("<{}>", "</{}>"),
    "with attributes": ('<{} type="x" done="true">', "</{}>"),
    "square": ("[{}]", "[/{}]"),
    "bars": ("<|{}>", "<{}|>"),
    "start and end": ("<|start_{}|>", "<|end_{}|>"),
    "begin of and end of": ("<|begin_of_{}|>", "<|end_of_{}|>"),
    "words after": ("<|{}_start|>", "<|{}_end|>"),
    "prefix and suffix": ("<|{}_prefix|>", "<|{}_suffix|>"),
    "wide": ("<｜{}▁begin｜>", "<｜{}▁end｜>"),
    "triangles": ("◁{}▷", "◁/{}▷"),
    "channel": ("<|channel>{}\n", "<channel|>"),
    "harmony": ("<|channel|>{}<|message|>", "<|end|>"),
}
REASONING = (
    "Maybe Lyon?",
    "\nMaybe Lyon?\nOr <answer>Nice</answer>?\n\n",
    "a < b, [1] and <b>",
    "",
)


def written(form: str, name: str, text: str) -> str:
    opens, closes = FORMS[form]
    return f"{opens.format(name)}{text}{closes.format(name)}"


def answer_in(text: str) -> str:
    found = find_answer(text)
    return text[found.start : found.end].strip()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["think", "THOUGHT", "Pondering", "inner_monologue"])
def test_a_block_of_any_name_and_form_is_not_the_answer(form: str, name: str) -> None:
    for text, between in product(REASONING, ("", " ", "\n", "\n\n")):
        block = written(form, name, text)
        for after in ("Paris", "Paris\nIt is", "Paris<|im_end|>", "<answer>Paris</answer>"):
            assert answer_in(f"{block}{between}{after}") == "Paris", (block, after)
        assert answer_in(f"{between}{block}{block}Paris") == "Paris"
        assert answer_in(block) == ""
    cut = written(form, name, "Maybe").partition("Maybe")[0] + "Maybe\nLyon"
    found = find_answer(cut)
    assert found.in_reasoning and found.start == found.end == len(cut)
    assert find_answer(f"{cut}<|end|>" if form == "harmony" else cut).has_reasoning


@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("channel", "harmony")])
@pytest.mark.parametrize("name", ["answer", "FINAL_ANSWER", "Response", "solution"])
def test_an_answers_marks_are_not_part_of_it(form: str, name: str) -> None:
    opens, closes = (mark.format(name) for mark in FORMS[form])
    for text in (f"{opens}Paris{closes}", f"{opens}\nParis\n{closes}", f"{opens}\nParis"):
        assert answer_in(text) == "Paris", text
        assert answer_in(f"<think>Lyon?</think>\n{text}") == "Paris", text
        assert answer_in(f"Hm. Lyon?\nWell.\n</think>\n{text}") == "Paris", text
    assert find_answer(opens).in_reasoning is False and answer_in(opens) == ""


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Paris", "Paris"),
        (" \n\t\nParis", "Paris"),
        ("Hm.\nWell.\n</think>\n\nParis", "Paris"),
        ("Maybe Lyon?<channel|>Paris", "Paris"),
        ("Okay.\n<think>Lyon?</think>\nParis", "Paris"),
        ("", ""),
        # marks of turns
        ("<|im_start|>assistant\nParis<|im_end|>\n<|im_start|>user\nAnd?", "Paris"),
        ("<|start_header_id|>assistant<|end_header_id|>\n\nParis<|eot_id|>", "Paris"),
        ("<|turn>model\n<|channel>thought\nLyon?\n<channel|>Paris<turn|>", "Paris"),
        ("<｜Assistant｜>Paris<｜end▁of▁sentence｜>", "Paris"),
        ("<start_of_turn>model\nParis<end_of_turn>", "Paris"),
        ("<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>Paris<|END_OF_TURN_TOKEN|>", "Paris"),
        ("<s> [INST]\nParis</s>", "Paris"),
        ("[/INST] Paris<|endoftext|>", "Paris"),
        # harmony
        ("<|channel|>final<|message|>Paris<|return|>", "Paris"),
        ("<|channel|>analysis<|message|>Hm.<|start|>assistant<|channel|>final<|message|>Paris",
         "Paris"),
        ("analysisWe need Lyon.assistantfinalParis", "Paris"),
        # without a closing mark
        ("[Reasoning]\nMaybe Lyon?\n[Answer]\nParis", "Paris"),
        ("My steps:\nLyon\n[BEGIN FINAL RESPONSE]\nParis\n[END FINAL RESPONSE]", "Paris"),
        # other texts
        ("<b>Paris</b> is the capital", "<b>Paris</b> is the capital"),
        ("<br>\nParis", "Paris"),
        ("Use <title> and </title>.", "Use <title> and </title>."),
        ("[B] Paris", "[B] Paris"),
        ("a < b and c > d", "a < b and c > d"),
        ("See <https://example.org/a>", "See <https://example.org/a>"),
        ("analysis of it", "analysis of it"),
    ],
)  # fmt: skip
def test_an_answer_is_the_first_line_with_text_that_is_not_a_mark(text: str, answer: str) -> None:
    assert answer_in(text) == answer


@pytest.mark.parametrize("piece", ["<x>\n", '<a="', "<|channel|>"])
def test_a_hostile_text_is_read_in_linear_time(piece: str) -> None:
    assert find_answer(piece * 20_000).start >= 0  # quadratic: a minute


@pytest.mark.parametrize(
    ("given", "answer", "ending"),
    [
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
    model = opened_chat(stack, Server(chats={"": given}))
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
    model = opened_chat(stack, server)
    assert model.generate(QUESTION, 7)[0].text == "Paris"
    assert [body["max_tokens"] for body in server.asked] == [7, 7 + REASONING_TOKENS]
    model.generate([Chat((Message("user", "Once more?"),))], 7)
    assert len(server.asked) == 3, "it is known to reason"


def test_the_tokens_of_an_answer_are_those_after_the_reasoning(stack: ExitStack) -> None:
    text = "<think>Hm</think>\n\nParis\nIt"
    tokens = ["<think>", "Hm", "</think>", "\n\n", "Par", "is", "\n", "It"]
    given = [{"token": token, "logprob": -0.5 * at} for at, token in enumerate(tokens)]

    def answer(_: dict[str, Any]) -> dict[str, Any]:
        return {"message": {"content": text}, "logprobs": {"content": given}}

    (found,) = opened_chat(stack, Server(chats={"": answer})).generate(QUESTION, 7)
    assert found.tokens == ("Par", "is") and found.log_probs.tolist() == [-2.0, -2.5]


def test_fields_that_a_server_refuses_are_renamed_or_left_out(stack: ExitStack) -> None:
    lacks = {
        "max_tokens": "is not supported with this model. Use 'max_completion_tokens' instead.",
        "temperature": "does not support 0 with this model.",
        "logprobs": "are not supported with reasoning.",
    }
    server = Server(lacks=lacks)
    (found,) = opened_chat(stack, server).generate(QUESTION, 7)
    assert found.text == "Paris" and math.isnan(found.log_probs.sum())
    assert server.asked[-1].keys() == {"model", "messages", "max_completion_tokens"}


def test_a_filtered_answer_and_a_cut_prompt_are_refused_texts(stack: ExitStack) -> None:
    model = opened_chat(stack, Server(chats={"": choice("", "content_filter")}))
    with pytest.raises(TextRefusedError, match="its content filter stopped the answer"):
        model.generate(QUESTION, 7)
    model = opened_chat(stack, Server(counts=5))  # as Ollama, which cuts a prompt without a word
    with pytest.raises(TextRefusedError, match="it read only 5 tokens of 6 words"):
        model.generate(QUESTION, 7)


def test_another_model_behind_the_name_is_asked_again(stack: ExitStack) -> None:
    server = Server(says={"created": 1_700_000_000, "meta": {"n_params": 1}})
    first = opened_chat(stack, server)
    first.generate(QUESTION, 7)
    assert reopened(server).generate(QUESTION, 7)[0].is_stored
    server.says = {"created": 1_800_000_000, "meta": {"n_params": 1}}  # a newer file
    for model in (first, reopened(server)):
        assert model.identity == first.identity, "a run can be resumed"
    assert not first.generate(QUESTION, 7)[0].is_stored, "also of a model that is open"
    server.says = {"created": 1_800_000_000, "meta": {"n_params": 2}}
    assert reopened(server).identity != first.identity
    assert not reopened(server).generate(QUESTION, 7)[0].is_stored


def test_a_stored_answer_says_its_date_and_can_be_asked_for_again(stack: ExitStack) -> None:
    server = Server()
    model = opened_chat(stack, server)
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
        (choice("<think>Hm", "length"), "answers 0 are cut at 32 tokens, 8 end within"),
        (choice(""), "0 end within the model's reasoning, and 8 are empty for another reason."),
        (choice("Paris"), ""),
    ],
)
def test_a_run_says_that_most_answers_are_empty_or_cut(
    stack: ExitStack, tmp_path: Path, given: Choice, said: str
) -> None:
    model = opened_chat(stack, Server(chats={"": given}))
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
