"""Model folders that lie: one sentence before anything is allocated, and nothing read outside."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import FAMILIES, save_model_folder

from lama_core.errors import UserError
from lama_core.models import model_folder
from lama_core.models.cache import CACHE, load_model
from lama_core.models.model_folder import folder_digest, read_header
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import fetch, locate

pytestmark = pytest.mark.usefixtures("home")
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"


def refused(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        load_model(str(folder))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def change(file: Path, **values: Any) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(content | values), encoding="utf-8")


def in_parts(folder: Path) -> Path:
    """The folder with its weights in two files, and an index."""
    tensors = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    places = {}
    for number, names in enumerate((sorted(tensors)[:3], sorted(tensors)[3:]), start=1):
        part = f"model-0000{number}-of-00002.safetensors"
        save_file({name: tensors[name] for name in names}, folder / part, {"format": "pt"})
        places |= dict.fromkeys(names, part)
    (folder / INDEX).write_text(
        json.dumps({"metadata": {}, "weight_map": places}), encoding="utf-8"
    )
    return folder


@pytest.mark.parametrize(
    ("place", "said"),
    (
        ("pytorch_model.bin", "only safetensors weights are supported"),
        ("../other/model.safetensors", "not a file name"),
        ("/etc/passwd", "not a file name"),
        ("model-00003-of-00002.safetensors", "references missing file"),
        (7, "not a file name"),
        ("model-00001-of-00002.safetensors", "doesn't contain"),
    ),
)
def test_an_index_names_safetensors_of_its_own_folder(
    tmp_path: Path, place: object, said: str
) -> None:
    folder = in_parts(save_model_folder("gpt2", tmp_path / "parts"))
    places = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"]
    (folder / "pytorch_model.bin").write_bytes(b"cos\nabort\n(tR.")
    change(folder / INDEX, weight_map={**places, sorted(places)[-1]: place})
    assert said in refused(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    (
        ("vocab_size", 10**9),
        ("vocab_size", -1),
        ("hidden_size", 2**40),
        ("hidden_size", 64),
        ("num_hidden_layers", 10**9),
        ("num_hidden_layers", 0),
        ("num_attention_heads", -4),
        ("num_attention_heads", "12"),
        ("intermediate_size", 10**12),
        ("max_position_embeddings", 10**12),
    ),
)
def test_a_size_that_the_weights_do_not_have_is_named(
    tmp_path: Path, name: str, value: object
) -> None:
    folder = save_model_folder("bert-cased", tmp_path / "bert")
    change(folder / "config.json", **{name: value})
    said = refused(folder)
    assert f"config.json: {name} is {value}" in said
    assert value != 64 or said.endswith("hidden_size is 64, but no weight has that dimension.")


@pytest.mark.parametrize("family", ("roberta", "gpt2", "llama"))
def test_a_configuration_of_a_larger_model_than_the_weights_reads_none(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_model_folder(family, tmp_path / family)
    name = {"roberta": "max_position_embeddings", "gpt2": "n_inner", "llama": "head_dim"}[family]
    change(folder / "config.json", **{name: 1 << 24})
    monkeypatch.setattr(
        getattr(__import__("transformers"), FAMILIES[family].model),
        "from_pretrained",
        lambda *_arguments, **_options: pytest.fail("the weights were read"),
    )
    assert "weights, but the files hold" in refused(folder)


def test_heads_that_do_not_divide_the_width_are_refused(tmp_path: Path) -> None:
    folder = save_model_folder("bert-cased", tmp_path / "bert")
    change(folder / "config.json", num_attention_heads=5)
    assert "not a multiple of the number of attention heads (5)" in refused(folder)


def test_weights_that_a_model_does_not_have_are_named(tmp_path: Path) -> None:
    folder = save_model_folder("gpt2", tmp_path / "gpt2")
    tensors = load_file(folder / WEIGHTS) | {"transformer.secret.weight": torch.zeros(3)}
    save_file(tensors, folder / WEIGHTS, {"format": "pt"})
    assert "transformer.secret.weight" in refused(folder)


@pytest.mark.parametrize("family", ("bert-cased", "gpt2"))
def test_a_weight_of_another_shape_is_named_with_both(family: str, tmp_path: Path) -> None:
    folder = save_model_folder(family, tmp_path / family)
    tensors = load_file(folder / WEIGHTS)
    name = sorted(name for name, value in tensors.items() if value.ndim == 1)[0]
    (width,) = tensors[name].shape
    save_file(tensors | {name: torch.zeros(width + 1)}, folder / WEIGHTS, {"format": "pt"})
    said = refused(folder)
    assert f"({width + 1},)" in said and f"({width},)" in said
    assert name in said


@pytest.mark.parametrize(
    ("family", "name"),
    (
        ("bert-cased", "bert.pooler.dense.weight"),
        ("bert-cased", "bert.embeddings.position_ids"),
        ("distilbert", "classifier.weight"),
        ("gpt2", "transformer.h.0.attn.masked_bias"),
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


@pytest.mark.parametrize("family", ("bert-cased", "roberta", "gpt2"))
def test_a_tokenizer_that_knows_more_than_the_model_is_refused(family: str, tmp_path: Path) -> None:
    folder = save_model_folder(family, tmp_path / family)
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    content["model"]["vocab"]["quokka"] = 10**6
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    assert "'quokka'" in refused(folder)


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
    lambda header: header["b"].update(data_offsets=[0, 2**60]),
    lambda header: header["b"].update(shape=[2**40]),
    lambda header: header["b"].update(shape=[-2, -3]),
    lambda header: header["b"].update(dtype="F64"),
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


def test_a_header_longer_than_the_format_has_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / WEIGHTS
    save_file({"a": torch.zeros(6)}, file)
    write_header(file, header_of(file), padding=100 << 20)
    with pytest.raises(UserError, match="Damaged safetensors file"):
        read_header(file)


@pytest.mark.parametrize("name", ("chat_template.jinja", "merges.txt", WEIGHTS, "more/x.jinja"))
def test_a_pipe_in_the_folder_is_not_waited_for(name: str, tmp_path: Path) -> None:
    folder = save_model_folder("bert-cased", tmp_path / "bert")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    assert locate(find_model(str(folder))) is None
    assert "Not a regular file" in refused(folder)


@pytest.mark.parametrize("target", ("/etc/passwd", "/dev/zero", "../secret.json"))
def test_a_link_out_of_the_folder_is_not_followed(target: str, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}", encoding="utf-8")
    folder = save_model_folder("bert-cased", tmp_path / "bert")
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "generation_config.json").symlink_to(target)
    assert locate(find_model(str(folder))) is None
    assert "links out of the model's folder" in refused(folder)


def test_links_within_the_folder_are_followed(tmp_path: Path) -> None:
    folder = save_model_folder("bert-cased", tmp_path / "bert")
    (folder / WEIGHTS).rename(folder / "weights")
    (folder / WEIGHTS).symlink_to("weights")
    assert fetch(find_model(str(folder))).folder == folder


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


@pytest.mark.parametrize("key", ("transformers_weights", "quantization_config"))
def test_weights_of_another_kind_are_refused(key: str, tmp_path: Path) -> None:
    folder = save_model_folder("bert-cased", tmp_path / "bert")
    change(folder / "config.json", **{key: {"quant_method": "x"}})
    assert key in refused(folder)


@pytest.mark.parametrize("name", ("spiece.model", "merges.txt", "added_tokens.json", "spm.spm"))
def test_the_digest_covers_what_can_change_a_number(name: str, tmp_path: Path) -> None:
    folder = save_model_folder("bert-cased", tmp_path / "bert")
    before = folder_digest(folder)
    (folder / name).write_bytes(b"{}")
    assert folder_digest(folder) != before


@pytest.mark.parametrize("family", ("bert-cased", "gpt2"))
@pytest.mark.parametrize(
    ("file", "values", "said"),
    (
        ("config.json", {"use_cache": 7}, "Validation error for field 'use_cache': TypeError"),
        ("tokenizer_config.json", {"unk_token": ""}, "special token '' is not in its vocabulary"),
        (
            "tokenizer.json",
            {"model": {"type": "WordPiece", "vocab": {"a": -1}}},
            "Can't load a model",
        ),
    ),
)
def test_settings_that_the_libraries_choke_on_are_one_sentence(
    family: str, file: str, values: dict[str, Any], said: str, tmp_path: Path
) -> None:
    folder = save_model_folder(family, tmp_path / family)
    change(folder / file, **values)
    assert said in refused(folder)


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
