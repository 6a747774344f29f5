"""A broken or hostile chat template is one sentence; questions without it are answered."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from calling import call
from data_files import change_json
from systems import ON_WINDOWS
from tiny_models import save_model_folder

from lama_core.errors import UserError
from lama_core.models.cache import CACHE, load_model
from lama_core.models.hf import chat_templates
from lama_core.models.hf.chat_templates import RENDERER, render_chat
from lama_core.models.protocols import Chat, Message
from lama_core.probes.generation.plan import plan
from lama_core.probes.generation.request import GenerateRequest
from lama_core.runs.spec import RunSpec

GOOD = "{% for m in messages %}{{ eos_token + m['role'] }}: {{ m['content'] }}\n{% endfor %}"
QUESTION = "What is the capital of France?"
TRIAL = Chat((Message("user", QUESTION),))
LOOP = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"
BROKEN = {
    # syntax
    "{{": "TemplateSyntaxError",
    "{{ " + "(" * 5000 + ")" * 5000 + " }}": "RecursionError",
    # undefined names and wrong types
    "{{ missing.name }}": "UndefinedError",
    # its own refusals
    "{{ raise_exception('only system messages') }}": "only system messages",
    # other templates
    "{% include 'other' %}": "no loader",
    # the sandbox
    "{{ ''.__class__.__mro__ }}": "SecurityError",
    "{{ '{0.__class__.__mro__}'.format(7) }}": "SecurityError",
    "{{ range(10000000000) | list }}": "Range too big",
    # recursion
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}": "RecursionError",
    # nothing
    " \n\t ": "empty",
    # no text
    "{{ '\\ud800' }}": "half of a character",
    # too much; LOOP is tried below
    "{% for a in range(100000) %}{% set b = (a ~ 'x') * 10000000 %}{% endfor %}": "takes more than",
    "{{ 'a' * 10 ** 10 }}": "GB of memory",
    "{{ 'a' * 2000000 }}": "2,000,000 characters",
    "{% for a in range(100000) %}{{ 'a' * 100 }}{% endfor %}": "10,000,000 characters",
}


def reason(template: object) -> str:
    """Why a template can't be used."""
    with pytest.raises(ValueError) as caught:
        RENDERER.render(template, TRIAL, {"eos_token": "</s>"})
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300
    return str(caught.value)


@pytest.mark.parametrize(("template", "why"), BROKEN.items(), ids=lambda text: text[:40])
def test_a_template_that_cant_be_used_has_a_reason(template: str, why: str) -> None:
    if ON_WINDOWS and "memory" in why:
        pytest.skip("Windows doesn't limit the memory of a process")
    assert why in reason(template)
    # The next chat isn't affected.
    assert RENDERER.render(GOOD, TRIAL, {"eos_token": "#"}) == f"#user: {QUESTION}\n"


def test_a_process_that_was_ended_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert RENDERER.render("before", TRIAL, {}) == "before"
    child = RENDERER._child
    assert child is not None
    child.kill()
    child.wait()
    assert RENDERER.render("after", TRIAL, {}) == "after"
    monkeypatch.setattr(chat_templates, "SECONDS", 0.0)  # as where CPU time has no limit
    assert reason(LOOP).startswith(("it takes more than", "the process that renders it ended"))
    monkeypatch.undo()
    assert RENDERER.render("again", TRIAL, {}) == "again"


def test_a_chat_is_rendered_as_in_transformers(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    folder = with_template(tmp_path, GOOD)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    chat = [{"role": "user", "content": "Where is Zürich?"}]
    wanted = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    found = render_chat("tiny", tokenizer, Chat((Message("user", "Where is Zürich?"),)))
    assert found == wanted == "<|im_end|>user: Where is Zürich?\n"


# Folders


def with_template(tmp_path: Path, template: object) -> Path:
    """A tiny SmolLM2's folder with a template in its tokenizer's configuration."""
    folder = save_model_folder("smollm2", tmp_path / "tiny")
    change_json(folder / "tokenizer_config.json", chat_template=template)
    return folder


@pytest.fixture
def home(home: Path) -> Iterator[Path]:
    """A home of the test's own; the models that it loads are dropped after it."""
    yield home
    for model in CACHE.held():
        CACHE.drop(model.name, model.precision, model.device)


def test_commands_say_in_a_sentence_that_a_template_cant_be_used(
    home: Path, tmp_path: Path
) -> None:
    folder, why = str(with_template(tmp_path, 7)), "not a text"
    for words in (
        ("ask", "Where is Paris?", "--max-tokens", "3"),
        ("generate", "--dataset", "starter", "--relation", "P36", "--limit", "2"),
    ):
        status, _, errors = call(*words, "--model", folder)
        lines = errors.strip().splitlines()
        assert status == 2 and lines[-1].startswith("Error: ")
        assert why in lines[-1] and "Ask with --plain" in lines[-1]
        assert call(*words, "--model", folder, "--plain")[0] == 0


def test_a_models_template_is_part_of_its_runs_identity(home: Path, tmp_path: Path) -> None:
    folder = with_template(tmp_path, GOOD)
    request = GenerateRequest("starter", models=(str(folder),), relations=("P36",), limit=2)

    def planned(request: GenerateRequest) -> RunSpec:
        for model in CACHE.held():
            CACHE.drop(model.name, model.precision, model.device)
        return plan(request)[0]

    first = planned(request)
    (folder / "chat_template.jinja").write_text(GOOD, encoding="utf-8")
    same = planned(request)
    (folder / "chat_template.jinja").write_text(f"{GOOD}Be brief.", encoding="utf-8")
    second = planned(request)
    assert first.model_identity == second.model_identity
    assert first.digest == same.digest != second.digest
    with pytest.raises(UserError, match="has changed since this run was planned"):
        first.unchanged(load_model(str(folder)))
    assert "template" not in planned(replace(request, plain=True)).options()
