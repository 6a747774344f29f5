"""Model folders: what is read, and what is refused in one sentence before anything is allocated."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
import transformers
from data_files import change_json
from safetensors.torch import load_file, save_file
from test_hub_caches import sharded
from tiny_models import FAMILIES, make_model, save_model_folder, tiny_tokenizer

from lama_core.errors import UserError
from lama_core.models import model_folder
from lama_core.models.cache import CACHE, load_model
from lama_core.models.model_folder import MAX_ADDED, check_files, folder_digest, read_header
from lama_core.models.sources.catalog import add_model, added_models, find_model, forget_model
from lama_core.models.sources.locations import locate

pytestmark = pytest.mark.usefixtures("home")
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
Spoil = Callable[[Path], object]


def refused(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        load_model(str(folder))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def in_parts(folder: Path) -> Path:
    """The folder with its weights in two files, and an index."""
    parts = sharded({file.name: file.read_bytes() for file in folder.iterdir()})
    (folder / WEIGHTS).unlink()
    for name, data in parts.items():
        (folder / name).write_bytes(data)
    return folder


# What spoils a folder


def text(file: str, content: str | bytes) -> Spoil:
    """A file has another content."""
    data = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / file).write_bytes(data)


def moved(file: str, to: str) -> Spoil:
    return lambda folder: (folder / file).rename(folder / to)


def gone(file: str) -> Spoil:
    return lambda folder: (folder / file).unlink()


def values(file: str, **changed: Any) -> Spoil:
    """Values of a JSON file are others."""
    return lambda folder: change_json(folder / file, **changed)


def config(**changed: Any) -> Spoil:
    return values("config.json", **changed)


def cut(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-1])


def with_tensor(folder: Path, name: str) -> None:
    """A weight more."""
    tensors = load_file(folder / WEIGHTS) | {name: torch.zeros(3)}
    save_file(tensors, folder / WEIGHTS, {"format": "pt"})


def renamed(form: str) -> Spoil:
    """All weights have other names."""

    def spoil(folder: Path) -> None:
        tensors = {form.format(name): value for name, value in load_file(folder / WEIGHTS).items()}
        save_file(tensors, folder / WEIGHTS, {"format": "pt"})

    return spoil


def with_word(folder: Path) -> None:
    """The tokenizer knows a word that the model doesn't."""
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    content["model"]["vocab"]["quokka"] = 10**6
    text("tokenizer.json", json.dumps(content))(folder)


def place_of_a_tensor(place: object) -> Spoil:
    """The index of weights in parts says that one is in another file."""

    def spoil(folder: Path) -> None:
        places = json.loads((in_parts(folder) / INDEX).read_text(encoding="utf-8"))["weight_map"]
        text("pytorch_model.bin", b"cos\nabort\n(tR.")(folder)
        change_json(folder / INDEX, weight_map={**places, sorted(places)[-1]: place})

    return spoil


def without_head(folder: Path) -> None:
    """BERT as it encodes alone."""
    make_model("bert-cased")[0].bert.save_pretrained(folder)


def of_pictures(folder: Path) -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    configuration = transformers.ViTConfig(**sizes, intermediate_size=8)
    transformers.ViTModel(configuration).save_pretrained(folder)


def without_mask(folder: Path) -> None:
    for file in folder.glob("*token*"):
        file.unlink()
    tiny_tokenizer("smollm2").save_pretrained(folder)


def empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def pipe(file: Path) -> None:
    os.mkfifo(file)


def instead(file: str, put: Callable[[Path], object]) -> Spoil:
    """Something else stands where a file did."""

    def spoil(folder: Path) -> None:
        (folder / file).unlink(missing_ok=True)
        put(folder / file)

    return spoil


SIZES: tuple[tuple[str, object], ...] = (
    ("vocab_size", 10**9), ("vocab_size", -1), ("hidden_size", 64), ("num_hidden_layers", 10**9),
    ("num_hidden_layers", 0), ("num_attention_heads", "12"), ("max_position_embeddings", 10**12),
)  # fmt: skip
# What is seen at first sight, and what shows once the model is loaded.
AT_SIGHT: tuple[tuple[str, Spoil, str], ...] = (
    ("gpt2", text("config.json", "{}"), "has no model_type"),
    ("gpt2", text("config.json", '{"model_type": "vit"}'), "is neither"),
    ("gpt2", text("config.json", '{"model_type": "led"}'), "are not supported"),
    ("gpt2", gone("config.json"), "Not a model folder"),
    ("gpt2", gone("tokenizer.json"), "has no tokenizer"),
    ("gpt2", shutil.rmtree, "Neither a model folder"),
    ("gpt2", empty, r"config.json and \*.safetensors, or a GGUF file"),
    ("gpt2", cut, "Damaged safetensors file"),
    ("gpt2", moved(WEIGHTS, "model.bin"), "only pickled weights"),
    ("gpt2", moved(WEIGHTS, "model-00001-of-00002.safetensors"), "is incomplete"),
    ("gpt2", instead("config.json", pipe), "Not a regular file"),
    ("gpt2", instead("notes", pipe), "Not a regular file"),
    ("gpt2", instead("tokenizer.json", Path.mkdir), "has no tokenizer"),
    ("gpt2", instead("config.json", lambda file: file.symlink_to(file.name)), "Can't read"),
    ("gpt2", text("config.json", "[" * 200_000), "Can't read .*config.json: "),
    ("gpt2", text("config.json", b'{"\xff": 1}'), "Can't read .*config.json: "),
)
SPOILT = (
    *AT_SIGHT,
    ("gpt2", lambda folder: with_tensor(folder, "transformer.secret.weight"), "r.secret.weight"),
    ("gpt2", lambda folder: with_tensor(folder, "transformer.ln_f.weight"), r"ln_f.weight.*\(3,\)"),
    ("gpt2", renamed("_orig_mod.{}"), "_orig_mod.* because torch.compile wrapped the model"),
    ("llama", renamed("base_model.model.{}"), r"parts of a LoRA adapter: save .model.merge_and"),
    ("llama", lambda folder: with_tensor(folder, "model.layers.0.mlp.up_proj.lora_A.weight"),
     "has 1 weights with names such as model.layers.0.mlp.up_proj.lora_A.weight, because it has"),
    ("gpt2", place_of_a_tensor("pytorch_model.bin"), "only safetensors weights are supported"),
    ("gpt2", place_of_a_tensor("../other/model.safetensors"), "not a file name"),
    ("gpt2", place_of_a_tensor("model-00003-of-00002.safetensors"), "references missing file"),
    ("gpt2", place_of_a_tensor(7), "not a file name"),
    ("gpt2", place_of_a_tensor("model-00001-of-00002.safetensors"), "doesn't contain"),
    *(("bert-cased", config(**{name: size}), f"config.json: {name} is {size}")
      for name, size in SIZES),
    ("bert-cased", config(num_attention_heads=5), r"multiple of the number of attention heads .5."),
    ("bert-cased", config(transformers_weights={"quant_method": "x"}), "transformers_weights"),
    ("bert-cased", config(quantization_config={"quant_method": "x"}), "quantization_config"),
    ("bert-cased", without_head, "not a complete masked language model.*cls.predictions"),
    ("bert-cased", of_pictures, "neither a masked nor a causal nor a seq2seq model"),
    ("bert-cased", without_mask, "no mask token"),
    *((family, with_word, "'quokka'") for family in ("bert-cased", "gpt2")),
    ("gpt2", config(use_cache=7), "Validation error for field 'use_cache': TypeError"),
    ("gpt2", values("tokenizer_config.json", unk_token=""), "token '' is not in its vocabulary"),
    ("bert-cased", values("tokenizer.json", model={"type": "WordPiece", "vocab": {"a": -1}}),
     "Can't load a model"),
)  # fmt: skip


@pytest.mark.parametrize(("family", "spoil", "said"), SPOILT)
def test_a_spoilt_folder_is_refused_in_a_sentence(
    family: str, spoil: Spoil, said: str, tmp_path: Path
) -> None:
    folder = save_model_folder(family, tmp_path / "mine")
    spoil(folder)
    assert re.search(said, refused(folder))


@pytest.mark.parametrize("family", ("roberta", "gpt2", "llama"))
def test_a_configuration_of_a_larger_model_than_the_weights_reads_none(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_model_folder(family, tmp_path / family)
    name = {"roberta": "max_position_embeddings", "gpt2": "n_inner", "llama": "head_dim"}[family]
    change_json(folder / "config.json", **{name: 1 << 24})
    monkeypatch.setattr(
        getattr(__import__("transformers"), FAMILIES[family].model),
        "from_pretrained",
        lambda *_arguments, **_options: pytest.fail("the weights were read"),
    )
    assert "weights, but the files hold" in refused(folder)


def test_neither_pickles_nor_code_of_a_folder_are_run(tmp_path: Path) -> None:
    folder, mark = save_model_folder("gpt2", tmp_path / "mine"), tmp_path / "was-run"
    # A global, its argument, the call, the end.
    pickle = f"cos\nmknod\n(V{mark}\ntR.".encode()
    for name in ("pytorch_model.bin", "adapter_model.bin", "training_args.bin"):
        (folder / name).write_bytes(pickle)
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')", encoding="utf-8")
    auto = dict.fromkeys(("AutoConfig", "AutoModelForCausalLM"), "evil.X")
    for name in ("config.json", "tokenizer_config.json"):
        change_json(folder / name, auto_map=auto | {"AutoTokenizer": ["evil.X", None]})
    assert load_model(str(folder)).kind == "causal"
    CACHE.drop(str(folder), "fp32")
    assert not mark.exists()
    with pytest.raises(RuntimeError):  # by then it has run
        torch.load(folder / "pytorch_model.bin", weights_only=False)
    assert mark.exists()


@pytest.mark.parametrize(
    ("family", "name"),
    (
        ("bert-cased", "bert.pooler.dense.weight"),
        ("distilbert", "classifier.weight"),
        ("llama", "model.layers.0.self_attn.rotary_emb.inv_freq"),
    ),
)
def test_heads_and_tables_beside_a_language_model_are_left_alone(
    family: str, name: str, tmp_path: Path
) -> None:
    folder = save_model_folder(family, tmp_path / family)
    tensors = load_file(folder / WEIGHTS) | {name: torch.zeros(3)}
    save_file(tensors, folder / WEIGHTS, {"format": "pt"})
    assert load_model(str(folder)).kind == FAMILIES[family].kind
    CACHE.drop(str(folder), "fp32")


def header_of(file: Path) -> dict[str, Any]:
    data = file.read_bytes()
    return dict(json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]))


def write_header(file: Path, header: dict[str, Any], *, padding: int = 0) -> None:
    data = file.read_bytes()
    body = data[8 + int.from_bytes(data[:8], "little") :]
    text = json.dumps(header).encode() + b" " * padding
    file.write_bytes(len(text).to_bytes(8, "little") + text + body)


LIES: tuple[Callable[[dict[str, Any]], object], ...] = (
    lambda header: header["b"].update(data_offsets=[0, 24]),  # over another
    lambda header: header["b"].update(shape=[2**40]),
    lambda header: header["b"].update(shape=[-2, -3]),
    lambda header: header["b"].update(dtype="pickle"),
    lambda header: header.update(b=None),
    lambda header: header.pop("b"),  # bytes that belong to nothing
)


@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_lies_is_no_header(
    lie: Callable[[dict[str, Any]], object], tmp_path: Path
) -> None:
    file = tmp_path / WEIGHTS
    save_file({"a": torch.zeros(2, 3), "b": torch.zeros(6)}, file)
    assert {name: tensor.n_elements for name, tensor in read_header(file).items()} == {
        "a": 2 * 3,
        "b": 6,
    }
    header = header_of(file)
    lie(header)
    write_header(file, header)
    with pytest.raises(UserError, match="Damaged safetensors file"):
        read_header(file)


@pytest.mark.parametrize("target", ("/dev/zero", "../secret.json"))
def test_a_link_out_of_the_folder_is_not_followed(target: str, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}", encoding="utf-8")
    folder = save_model_folder("bert-cased", tmp_path / "bert")
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "generation_config.json").symlink_to(target)
    assert locate(find_model(str(folder))) is None
    assert "links out of the model's folder" in refused(folder)


def test_texts_weights_and_folders_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_model_folder("bert-cased", tmp_path / "bert")
    with monkeypatch.context() as small:
        small.setattr(model_folder, "MAX_ENTRIES", 2)
        assert "has more than 2 files" in refused(folder)
    with monkeypatch.context() as small:
        small.setattr(model_folder, "MAX_FILE", 100)
        assert "is too large: the limit is 100 B" in refused(folder)
    with (folder / WEIGHTS).open("r+b") as file:
        file.truncate(psutil.virtual_memory().total + 1)  # a hole: it takes no disk
    assert "of memory. Choose a smaller model" in refused(folder)


def test_a_gguf_file_is_expanded_alone_and_within_bounds(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "tokenizer.json").write_text("not even JSON", encoding="utf-8")
    counts = (2**60).to_bytes(8, "little") * 2
    (tmp_path / "mine" / "x.gguf").write_bytes(b"GGUF" + (3).to_bytes(4, "little") + counts)
    said = refused(tmp_path / "mine" / "x.gguf")
    assert "Can't expand x.gguf" in said
    assert "tokenizer.json" not in said
    (tmp_path / "mine" / "x.gguf").write_bytes(b"GGUF" + (99).to_bytes(4, "little") + counts)
    assert "/" not in refused(tmp_path / "mine" / "x.gguf")  # no path of our own


def test_the_identity_of_a_folder_changes_with_its_weights(tmp_path: Path) -> None:
    one = save_model_folder("bert-cased", tmp_path / "one", seed=1)
    two = save_model_folder("bert-cased", tmp_path / "two", seed=2)
    before = folder_digest(one)
    assert before != folder_digest(two)
    assert before == folder_digest(one)
    (one / "model.safetensors").write_bytes((two / "model.safetensors").read_bytes())
    (one / "README.md").write_text("says nothing of the weights", encoding="utf-8")
    assert folder_digest(one) == folder_digest(two)
    for name in ("spiece.model", "merges.txt", "added_tokens.json", "spm.spm"):
        before = folder_digest(two)
        (two / name).write_bytes(b"{}")
        assert folder_digest(two) != before, name


def test_a_folder_is_added_once_and_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_model_folder("bert-cased", tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    for name in (str(folder), "mine"):
        entry = add_model(name)
    assert find_model("mine").name == entry.name == str(folder)
    assert [model.name for model in added_models()] == [entry.name]
    assert locate(find_model(entry.name)) is not None
    forget_model(entry.name)
    assert added_models() == ()
    assert folder.exists()


@pytest.mark.parametrize(
    "name",
    ("a/../b", "https://x/y", "a b/c", "", *(f"lab/tiny@{one}" for one in ("/x", "../x", "a//b"))),
)
def test_what_is_no_name_at_all_is_refused(name: str) -> None:
    with pytest.raises(UserError):
        find_model(name)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"added_tokens": [{"id": 1}] * (MAX_ADDED + 1)}, "adds 100,001 words; the limit is"),
        ({"model": {"vocab": {"a": 0, "b": 2**31}}}, "numbers a token 2,147,483,648; the limit"),
    ],
)
def test_a_tokenizer_that_would_take_much_memory_is_refused(
    content: Any, said: str, tmp_path: Path
) -> None:
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_text(json.dumps(content))
    with pytest.raises(UserError, match=said):
        check_files(tmp_path)
    for text in ("{", "[1]", '{"added_tokens": 5}', '{"model": {"vocab": [["a", -1.5]]}}'):
        tokenizer.write_text(text)
        check_files(tmp_path)
