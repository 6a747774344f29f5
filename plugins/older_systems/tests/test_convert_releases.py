"""`models convert`: what is no whole release is refused in one sentence, and nothing is left."""

import json
import os
import pickle  # noqa: TID251 - to write what must not be read
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from calling import invoke, printed
from forked import look
from old_releases import WORDS, make_elmo, make_fconv, make_transformer_xl

from lama_core.errors import UserError
from lama_core.models.cache import check_and_add_model, load_model
from lama_core.models.conversion.convert import convert
from lama_core.models.registry import find_kind
from lama_core.models.sources.locations import check_folder
from lama_older_systems.conversion.fconv import parse_layers

h5py = pytest.importorskip("h5py")
FILE = Path("wiki103.pt")


def make_ernie(folder: Path) -> tuple[transformers.BertForMaskedLM, dict[str, torch.Tensor]]:
    """A small release of ERNIE; the BERT that it is without entities, and the stored weights."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    folder.mkdir()
    words += [word for word in dict.fromkeys(word.lower() for word in WORDS) if word != "--"]
    sizes = {
        "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 32, "max_position_embeddings": 20, "type_vocab_size": 2,
    }  # fmt: skip
    config = transformers.BertConfig(vocab_size=len(words), initializer_range=0.3, **sizes)
    torch.manual_seed(0)
    bert = transformers.BertForMaskedLM(config).eval()
    state = {name: value.clone() for name, value in bert.state_dict().items()}
    intermediate = "bert.encoder.layer.1.intermediate"
    share = torch.randn(32)
    state[f"{intermediate}.dense.bias"] -= share
    state[f"{intermediate}.dense_ent.bias"] = share
    state[f"{intermediate}.dense_ent.weight"] = torch.randn(32, 10)
    state["bert.encoder.layer.1.output.LayerNorm_ent.weight"] = torch.randn(10)
    torch.save(state, folder / "pytorch_model.bin")
    described = {**sizes, "vocab_size": len(words), "hidden_act": "gelu"}
    (folder / "ernie_config.json").write_text(json.dumps(described))
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    return bert, state


class Code:
    MARK = "made by code"

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.MARK,)


def refused(folder: Path) -> str:
    """What is said of a release that can't be converted; nothing of it is made."""
    before = sorted(folder.parent.iterdir())
    with pytest.raises(UserError) as caught:
        convert(folder, folder.parent / "out")
    assert sorted(folder.parent.iterdir()) == before
    said = str(caught.value)
    assert "\n" not in said and str(folder) in said
    return said


def cut(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: 2 * len(data) // 3])


def torch_file(change: Callable[[dict[str, Any]], Any], **options: Any) -> Callable[[Path], None]:
    """What writes the torch file anew; `change` gets what it holds."""

    def damage(file: Path) -> None:
        # The releases are this file's own.
        content = torch.load(file, weights_only=False)  # nosec
        torch.save(change(content), file, **options)

    return damage


def without(name: str) -> Callable[[Path], None]:
    return torch_file(lambda state: {one: state[one] for one in state if one != name})


def hdf5(change: Callable[[Any], object]) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        with h5py.File(file, "a") as opened:
            change(opened)

    return damage


def elsewhere(file: Path) -> None:
    """The softmax is a link to another file."""
    file.rename(file.with_name("aside"))
    with h5py.File(file, "w") as out:
        out["softmax"] = h5py.ExternalLink(str(file.with_name("aside")), "softmax")


def incomplete(opened: Any) -> None:
    shape = opened["softmax/W"].shape
    del opened["softmax/W"]
    opened.create_dataset("softmax/W", shape=shape, dtype="f4", chunks=(1, 1))


def another_bias(opened: Any) -> None:
    del opened["CNN_proj/b_proj"]
    opened["CNN_proj/b_proj"] = np.zeros(7, np.float32)


def one_more(line: str) -> Callable[[Path], object]:
    return lambda file: file.write_text(file.read_text() + line)


def pickled(protocol: int) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(pickle.dumps({"a": Code()}, protocol))


MAKERS: dict[str, Callable[[Path], Any]] = {
    "elmo": make_elmo, "xl": make_transformer_xl, "fconv": make_fconv, "ernie": make_ernie,
}  # fmt: skip
WEIGHTS = {
    "elmo": "elmo_weights.hdf5", "xl": "pytorch_model.bin", "fconv": "wiki103.pt",
    "ernie": "pytorch_model.bin", "softmax": "elmo_softmax_weights.hdf5",
}  # fmt: skip
ANOTHER = "of these files belongs to another release"
CODE = "posix.mkdir, which could run code"
PROJECTION = "RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/W_P_0"
QUERY = "bert.encoder.layer.1.attention.self.query.weight"


# Release, file, what is done to it, and words of the sentence that refuses it.
DAMAGES: tuple[tuple[str, str, Callable[[Path], object], str], ...] = (
    ("fconv", "", torch_file(lambda all: all | {"args": Code()}), CODE),
    ("xl", "", pickled(2), "could run code"),
    ("xl", "", cut, "not a torch file"),
    ("elmo", "vocab.txt", one_more("more\n"), ANOTHER),
    ("elmo", WEIGHTS["softmax"], elsewhere, "has no 'softmax/W'"),
    ("elmo", WEIGHTS["softmax"], hdf5(incomplete), "softmax/W is incomplete"),
    ("elmo", "", hdf5(another_bias),
     "CNN_proj/b_proj has shape (7,); the options and the vocabulary require (8,)"),
    ("elmo", "", hdf5(lambda all: all.pop(PROJECTION)), f"has no {PROJECTION}: incomplete"),
    ("fconv", "", torch_file(lambda all: all | {"args": Namespace(decoder_layers=16)}),
     "unsupported decoder_layers '16'"),
    ("xl", "", without("crit.cluster_bias"), "has no weight crit.cluster_bias"),
    ("ernie", "", without(QUERY), f"has no weight {QUERY}"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "file", "damage", "said"), DAMAGES)
def test_a_damaged_release_is_refused_in_a_sentence_and_nothing_runs(
    name: str,
    file: str,
    damage: Callable[[Path], object],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    MAKERS[name](tmp_path / name)
    damage(tmp_path / name / (file or WEIGHTS[name]))
    assert said in refused(tmp_path / name)
    assert not Path(Code.MARK).exists()


def test_layers_are_lists_added_and_repeated() -> None:
    assert parse_layers("[(850, 6)] * 2 + [(850, 1)] + [(9, 4, 2)] * 1", FILE) == [
        [850, 6, 1], [850, 6, 1], [850, 1, 1], [9, 4, 2],
    ]  # fmt: skip
    assert parse_layers("2 * [(3, 1)]", FILE) == [[3, 1, 1]] * 2


@pytest.mark.parametrize(
    "text",
    (
        "__import__('os').system('touch x')", "[(8, 3)] * 10**9", "[(8, 3)] * 0", "[(8,)]",
        "[(True, 3)]", "[(8, -3)]", "(8, 3)", "[" * 300, "[(8, 3)]" + " " * 10_000, "[(8, 3)] + 1",
    ),
)  # fmt: skip
def test_anything_else_is_no_layers(text: str) -> None:
    with pytest.raises(UserError, match="expected lists of"):
        parse_layers(text, FILE)


def test_the_command_says_what_it_made_and_what_it_refuses(tmp_path: Path) -> None:
    make_fconv(tmp_path / "fconv")
    words = ["models", "convert", str(tmp_path / "fconv"), "--out", str(tmp_path / "out"), "--json"]
    made = invoke(words)
    assert made.exit_code == 0
    assert json.loads(made.stdout) == {
        "release": "fairseq's fconv_lm", "folder": str(tmp_path / "out"),
    }  # fmt: skip
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names == ["config.json", "model.safetensors", "vocab.txt"]
    check_folder(tmp_path / "out")
    assert find_kind(tmp_path / "out") == "causal"
    before = look(tmp_path)
    with pytest.raises(UserError, match="exists already"):
        printed(*words)
    assert look(tmp_path) == before, "the folder isn't written to"


def test_safetensors_and_tied_weights_make_the_same_transformer_xl(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    make_transformer_xl(tmp_path / "xl")
    state = torch.load(tmp_path / "xl" / "pytorch_model.bin")
    convert(tmp_path / "xl", tmp_path / "whole")
    tied = [name for name in state if name.startswith("crit.out_layers") and "weight" in name]
    kept = {name: value.clone() for name, value in state.items() if name not in tied}
    (tmp_path / "xl" / "pytorch_model.bin").unlink()
    save_file(kept, tmp_path / "xl" / "model.safetensors")
    convert(tmp_path / "xl", tmp_path / "tied")
    for name in ("model.safetensors", "config.json", "vocab.txt"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "tied" / name).read_bytes()


@pytest.mark.parametrize("name", MAKERS)
def test_the_files_of_a_release_are_sent_to_convert(name: str, tmp_path: Path) -> None:
    MAKERS[name](tmp_path / name)
    with pytest.raises(UserError, match="Run `models convert` first"):
        check_and_add_model(str(tmp_path / name))


def test_ernie_is_a_bert_with_the_entities_biases_added(tmp_path: Path) -> None:
    folder = tmp_path / "ernie"
    bert, _ = make_ernie(folder)
    convert(folder, tmp_path / "out")
    model = load_model(str(tmp_path / "out"))
    assert model.identity.endswith("/transformers/fp32") and not model.vocabulary.cased
    ids = model.framed("The capital of France is Paris .")
    with torch.inference_mode():
        wanted = bert(torch.tensor([ids])).logits[0]
    assert (model.plain_logits(ids) - wanted).abs().max() <= 1e-4
