"""Caches of the hub as people have them: each loads offline and through a hub on this machine."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hub_server import COMMIT, Hub, Repository, fresh_cache, point_to, serve
from tiny_models import save_model_folder

from lama_core.errors import UserError
from lama_core.models.cache import CACHE, check_and_add_model, load_model
from lama_core.models.listing import model_info
from lama_core.models.model_folder import LFS_POINTER
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import fault_of, fetch, locate

Files = dict[str, bytes]
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
POINTER = LFS_POINTER + b"oid sha256:" + b"0" * 64 + b"\nsize 1234\n"


@pytest.fixture(scope="module")
def files_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Files]:
    kept: dict[str, Files] = {}

    def files(family: str) -> Files:
        if family not in kept:
            folder = save_model_folder(family, tmp_path_factory.mktemp("hub") / family)
            kept[family] = {file.name: file.read_bytes() for file in folder.iterdir()}
        return dict(kept[family])

    return files


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMA_HOME", str(tmp_path / "home"))
    fresh_cache(tmp_path / "hub", monkeypatch)
    point_to("http://127.0.0.1:9", monkeypatch)
    return tmp_path


def save_cache(home: Path, files: Files) -> Path:
    """The hub's cache with one repository, `lab/tiny`, as the hub's library writes it."""
    repository = home / "hub" / "models--lab--tiny"
    snapshot = repository / "snapshots" / COMMIT
    for folder in (snapshot, repository / "blobs", repository / "refs"):
        folder.mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT, encoding="ascii")
    for number, (name, data) in enumerate(files.items()):
        blob = f"{number:064x}"
        (repository / "blobs" / blob).write_bytes(data)
        (snapshot / name).symlink_to(f"../../blobs/{blob}")
    return repository


def only_vocab(files: Files) -> Files:
    """A BERT model with the tokenizer of old releases."""
    tokens = json.loads(files.pop("tokenizer.json"))["model"]["vocab"]
    del files["tokenizer_config.json"]
    return files | {"vocab.txt": "\n".join(sorted(tokens, key=tokens.__getitem__)).encode()}


def sentence_pieces(files: Files) -> Files:
    """A T5 model with the tokenizer of old releases."""
    from sentencepiece import sentencepiece_model_pb2 as proto

    pieces = json.loads(files.pop("tokenizer.json"))["model"]["vocab"]
    files["tokenizer_config.json"] = b'{"extra_ids": 10}'
    model = proto.ModelProto()
    kinds = {"<unk>": "UNKNOWN", "<pad>": "CONTROL", "</s>": "CONTROL"}
    for piece, score in pieces:
        if not piece.startswith("<extra_id_"):
            kind = model.SentencePiece.Type.Value(kinds.get(piece, "NORMAL"))
            model.pieces.add(piece=piece, score=score, type=kind)
    model.trainer_spec.model_type = model.trainer_spec.UNIGRAM
    model.trainer_spec.pad_id, model.trainer_spec.eos_id, model.trainer_spec.unk_id = 0, 1, 2
    model.trainer_spec.bos_id = -1
    model.normalizer_spec.name = "identity"
    return files | {"spiece.model": model.SerializeToString()}


def sharded(files: dict[str, bytes]) -> dict[str, bytes]:
    import json

    import torch
    from safetensors.torch import load, save

    tensors: dict[str, torch.Tensor] = load(files["model.safetensors"])
    names = sorted(tensors)
    halves = (names[: len(names) // 2], names[len(names) // 2 :])
    weight_map = {name: shard for shard, half in zip(SHARDS, halves, strict=True) for name in half}
    index: dict[str, Any] = {"metadata": {}, "weight_map": weight_map}
    others = {name: data for name, data in files.items() if name != "model.safetensors"}
    return {
        **others,
        "model.safetensors.index.json": json.dumps(index).encode(),
        **{
            shard: save({name: tensors[name] for name in half}, metadata={"format": "pt"})
            for shard, half in zip(SHARDS, halves, strict=True)
        },
    }


def fp16_beside(files: Files) -> Files:
    """Weights in two parts, next to an fp16 variant in three."""
    whole = files["model.safetensors"]
    variant = {f"model.fp16-0000{part}-of-00003.safetensors": whole for part in (1, 2, 3)}
    return sharded(files) | variant


CASES = {
    "vocab.txt": ("bert-uncased", only_vocab),
    "spiece.model": ("t5", sentence_pieces),
    "fp16 shards": ("bert-cased", fp16_beside),
    "merged, adapter_config.json left": (
        "bert-cased",
        lambda files: files | {"adapter_config.json": b'{"base_model_name_or_path": "lab/base"}'},
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, files_of: Callable[[str], Files]) -> tuple[Files, Files]:
    """The files of a repository, and those of the same model as it is saved today."""
    family, change = CASES[request.param]
    return change(files_of(family)), files_of(family)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[Hub]:
    with serve({}) as server:
        point_to(server.address, monkeypatch)
        yield server


def log_probs(reference: str) -> np.ndarray:
    try:
        [scores] = load_model(reference).token_log_probs(["Paris is in France."])
    finally:
        CACHE.drop(reference, "fp32")
    return scores.log_probs


def check_loads(files: Files, home: Path) -> None:
    """Check that the repository is the model of these files."""
    folder = home / "same"
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    found = log_probs("lab/tiny")
    assert len(found) > 3
    np.testing.assert_allclose(found, log_probs(str(folder)), rtol=1e-5)


def test_a_complete_cache_loads_offline(home: Path, case: tuple[Files, Files]) -> None:
    save_cache(home, case[0])
    assert fault_of(find_model("lab/tiny")) == ""
    check_loads(case[1], home)


def test_blobs_may_be_a_link_to_another_disk_but_not_to_other_files(
    home: Path, files_of: Callable[[str], Files]
) -> None:
    repository = save_cache(home, files_of("bert-cased"))
    disk = home / "disk"
    shutil.move(repository / "blobs", disk)
    (repository / "blobs").symlink_to(disk)
    assert locate(find_model("lab/tiny")) is not None
    (disk / "passwd").write_text("secret", encoding="utf-8")
    (repository / "snapshots" / COMMIT / "merges.txt").symlink_to("../../blobs/passwd")
    assert "links out of the model's folder" in fault_of(find_model("lab/tiny"))


def test_an_incomplete_cache_is_explained_and_completed_by_the_hub(
    home: Path, files_of: Callable[[str], Files], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sharded(files_of("bert-cased"))
    lost = "model-00002-of-00002.safetensors"
    save_cache(home, {name: data for name, data in files.items() if name != lost})
    entry = find_model("lab/tiny")
    assert lost in model_info("lab/tiny")["why_not"] and lost in fault_of(entry)
    with pytest.raises(UserError, match=rf"{lost}.*the hub can't be reached"):
        fetch(entry)
    with serve({"lab/tiny": Repository(files)}) as hub:
        point_to(hub.address, monkeypatch)
        assert (fetch(entry).folder / lost).is_file()
    assert fault_of(entry) == ""


ADAPTER = {"adapter_config.json": b"{}", "adapter_model.safetensors": b"?", "tokenizer.json": b"{}"}


def test_an_adapter_is_named_and_says_what_to_do(hub: Hub, home: Path) -> None:
    hub.repositories["lab/adapter"] = Repository(dict(ADAPTER))
    save_cache(home, ADAPTER)
    snapshot = home / "hub" / "models--lab--tiny" / "snapshots" / COMMIT
    for reference in ("lab/adapter", "lab/tiny", str(snapshot)):
        with pytest.raises(UserError, match=r"is an adapter \(PEFT\).*merge_and_unload"):
            check_and_add_model(reference)
    assert "is an adapter" in fault_of(find_model("lab/tiny"))


def test_a_model_with_the_weights_of_an_adapter_is_not_guessed_to_be_merged(
    home: Path, files_of: Callable[[str], Files]
) -> None:
    save_cache(home, files_of("bert-cased") | ADAPTER)
    with pytest.raises(UserError, match="the weights of a model and of an adapter"):
        fetch(find_model("lab/tiny"))


def test_a_git_lfs_pointer_is_named(home: Path, files_of: Callable[[str], Files]) -> None:
    save_cache(home, files_of("bert-cased") | {"tokenizer.json": POINTER})
    with pytest.raises(UserError, match=r"tokenizer.json is a Git LFS pointer.*git lfs pull"):
        fetch(find_model("lab/tiny"))
