"""However a model's folder is spoilt, it answers or is refused in one sentence.

Each folder is tried in a process of its own. No hang, no traceback, no memory over the bound, and
none of the folder's code is run: its pickles and modules would leave a mark.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from forked import check, forked
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tiny_models import save_model_folder

from lama_core.paths import ASSETS

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
FAMILIES = ("bert-cased", "distilbert", "gpt2", "llama", "smollm2")
NO_MODELS_FILES = (
    "README.md",
    "corpus_counts.tsv.gz",
    "stated_facts.tsv.gz",
    "sentence_forms.tsv.gz",
    "evaluation.json",
)
VALUES = st.sampled_from([
    -1, 0, 1, 3, 7, 100, 10**5, 10**9, 2**31, 2**40, 10**30, -(2**63), 0.5, float("nan"), True,
    None, "", "x" * 300, "../../etc/passwd", "\ud800", [], {}, [[0]], {"x": 1},
])  # fmt: skip
PLACES = st.sampled_from([
    "pytorch_model.bin", "../bert-cased/model.safetensors", "/etc/passwd", "none", "", 7, None,
    "\0", "a/b.safetensors", ".", "x" * 300 + ".safetensors",
])  # fmt: skip


def ask_folder(folder: Path, home: Path) -> None:
    from lama_core.models.cache import check_and_add_model, load_model
    from lama_core.models.hf.generation import generate
    from lama_core.queries.blank_answers import query_model
    from lama_core.scoring.blanks import parse_query
    from lama_core.scoring.shared_fields import ClozeSettings, choose_candidates

    os.environ["LAMA_HOME"] = str(home)
    check_and_add_model(str(folder))
    model = load_model(str(folder))
    words = choose_candidates(ClozeSettings(models=(model.name,)), (model,))
    assert query_model(model, parse_query("Tokyo is in [MASK]."), words).blanks[0].predictions
    if model.kind == "causal":  # it reads more of the folder
        generate(model, ["Where is Tokyo?"], 3)


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Folders of whole models: the embedded one, and tiny random ones of other families."""
    made = [save_model_folder(name, tmp_path_factory.mktemp("tiny") / name) for name in FAMILIES]
    return (*made, ASSETS / "models" / "minilm-mlm")


def parsed(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError):
        return None


def spoil_json(folder: Path, data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(sorted(folder.glob("*.json"))))
    inner = content = parsed(file)
    assume(content)
    while True:
        keys = sorted(inner) if isinstance(inner, dict) else range(len(inner))
        key = data.draw(st.sampled_from(keys))
        below = inner[key]
        if not (isinstance(below, dict | list) and below) or data.draw(st.booleans()):
            break
        inner = below
    if data.draw(st.integers(0, 4)):
        inner[key] = data.draw(VALUES)
    else:
        del inner[key]
    file.write_text(json.dumps(content), encoding="utf-8")


def spoil_size(folder: Path, data: st.DataObject) -> None:
    content = parsed(folder / "config.json")
    assume(isinstance(content, dict))
    names = [name for name, value in content.items() if type(value) is int]
    assume(names)
    content[data.draw(st.sampled_from(names))] = data.draw(VALUES)
    (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")


def spoil_bytes(folder: Path, data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(sorted(path for path in folder.iterdir() if path.is_file())))
    content = file.read_bytes()
    at = data.draw(st.integers(0, min(len(content), 5000)))
    new = data.draw(st.binary(max_size=50))
    ways = [content[:at], content * 2, content[:at] + new + content[at + len(new) :], new]
    file.write_bytes(data.draw(st.sampled_from([*ways, b"[" * 200_000, b'{"\xff": 1}'])))


def spoil_tensors(folder: Path, data: st.DataObject) -> None:
    """Weights taken out, put in, renamed, of another shape or type, or that are no numbers."""
    import torch

    try:
        tensors = load_file(folder / WEIGHTS)
    except (SafetensorError, OSError):
        tensors = {}
    assume(tensors)
    name = data.draw(st.sampled_from(sorted(tensors)))
    value = tensors.pop(name)
    ways: dict[str, dict[str, Any]] = {
        "out": {},
        "in": {name: value, "transformer.secret.weight": torch.zeros(3)},
        "renamed": {f"x.{name}": value},
        "turned": {name: (value.T if value.ndim == 2 else value[None]).contiguous()},
        "wider": {name: torch.cat([value, value])},
        "half": {name: value.half()},
        "integers": {name: value.int()},
        "NaN": {name: value * float("nan")},
    }
    tensors |= ways[data.draw(st.sampled_from(sorted(ways)))]
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def spoil_index(folder: Path, data: st.DataObject) -> None:
    """An index that names pickles, files outside, or files that aren't there."""
    (folder / INDEX).write_text(
        json.dumps({"weight_map": {"x.weight": data.draw(PLACES)}}), encoding="utf-8"
    )
    if data.draw(st.booleans()):
        (folder / WEIGHTS).unlink(missing_ok=True)


def spoil_tokens(folder: Path, data: st.DataObject) -> None:
    """A token with another number, or text to be cut or filled up to absurd lengths."""
    content = parsed(folder / "tokenizer.json")
    assume(isinstance(content, dict) and isinstance(content.get("model"), dict))
    vocabulary = content["model"].get("vocab")
    assume(isinstance(vocabulary, dict) and vocabulary)
    token = data.draw(st.sampled_from(sorted(vocabulary)))
    vocabulary[token] = data.draw(st.sampled_from([-1, 0, 10**6, 2**31, 2**32 - 1, 2**40, 1.5]))
    if data.draw(st.booleans()):
        content["padding"] = {
            "strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
        }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")


def spoil_special(folder: Path, data: st.DataObject) -> None:
    """Something that Not a regular file, instead of one or next to the others."""
    named = ("chat_template.jinja", "generation_config.json", "merges.txt", "spiece.model", "notes")
    path = folder / data.draw(st.sampled_from([*named, *sorted(p.name for p in folder.iterdir())]))
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    how = data.draw(st.sampled_from(["pipe", "folder", "large", "endless", "outside", "loop"]))
    if how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    elif how == "large":
        path.touch()
        os.truncate(path, data.draw(st.sampled_from([65 << 20, 1 << 40])))
    else:
        targets = {"endless": "/dev/zero", "outside": "/etc/passwd", "loop": path.name}
        path.symlink_to(targets[how])


SPOILERS = (
    spoil_json, spoil_json, spoil_size, spoil_size, spoil_bytes, spoil_tensors, spoil_index,
    spoil_tokens, spoil_special,
)  # fmt: skip


def add_code(folder: Path, mark: Path) -> None:
    """A pickle and a module that leave a mark when they are run, and settings that ask for it."""
    code = f"cos\nmknod\n(V{mark}\ntR.".encode()  # a global, its argument, the call, the end
    for name in ("pytorch_model.bin", "adapter_model.bin", "training_args.bin"):
        (folder / name).write_bytes(code)
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')", encoding="utf-8")
    for name in ("config.json", "tokenizer_config.json"):
        content = parsed(folder / name)
        if isinstance(content, dict):
            classes = ("AutoConfig", "AutoModelForMaskedLM", "AutoModelForCausalLM")
            auto = dict.fromkeys(classes, "evil.X") | {"AutoTokenizer": ["evil.X", None]}
            (folder / name).write_text(json.dumps(content | {"auto_map": auto}), encoding="utf-8")


def test_the_whole_folders_answer(families: tuple[Path, ...], tmp_path: Path) -> None:
    for family in families:
        ended = forked(lambda family=family: ask_folder(family, tmp_path / "home"))  # type: ignore[misc]
        assert ended.status == 0, ended.said


def test_any_spoilt_folder_answers_or_is_refused(
    families: tuple[Path, ...], tmp_path: Path
) -> None:
    folder, home, mark = tmp_path / "model", tmp_path / "home", tmp_path / "was-run"

    @settings(max_examples=60, suppress_health_check=list(HealthCheck))
    @given(family=st.integers(0, 16), times=st.sampled_from([1, 1, 1, 2, 3]), data=st.data())
    def holds(family: int, times: int, data: st.DataObject) -> None:
        for made in (folder, home):
            shutil.rmtree(made, ignore_errors=True)
        ignored = shutil.ignore_patterns(*NO_MODELS_FILES)
        shutil.copytree(families[family // 4], folder, ignore=ignored)
        if data.draw(st.booleans()):
            add_code(folder, mark)
        for _ in range(times):
            data.draw(st.sampled_from(SPOILERS))(folder, data)
        check(forked(lambda: ask_folder(folder, home)), folder)
        assert not mark.exists(), "the folder's code was run"

    holds()


def test_a_pickle_of_these_would_leave_its_mark(tmp_path: Path) -> None:
    import torch

    add_code(tmp_path, tmp_path / "mark")
    with pytest.raises(RuntimeError):  # by then it has run
        torch.load(tmp_path / "pytorch_model.bin", weights_only=False)
    assert (tmp_path / "mark").exists()
