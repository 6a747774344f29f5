"""Models compute where they are told to, and nothing of theirs lies elsewhere.

No graphics card is needed: weights are put on PyTorch's `meta` device, which has shapes and no
numbers, and every operation on tensors of two devices is refused, as a card would refuse it.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import CITIES, FAMILIES, JOBS, make_model, open_family, save_model_folder
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lama_core.candidates.columns import Candidates, Columns
from lama_core.errors import UserError
from lama_core.models import devices
from lama_core.models.auxiliary.word_embeddings import hidden_states
from lama_core.models.cache import CACHE, load_model
from lama_core.models.devices import available_devices, find_device, requested_device, use_device
from lama_core.models.hf.causal import CausalModel
from lama_core.models.hf.masked import MaskedModel
from lama_core.models.hf.seq2seq import Seq2SeqModel
from lama_core.models.hf.transformer import Transformer
from lama_core.models.protocols import Scores
from lama_core.scoring.blanks import parse_query

Models = Callable[..., Any]
FULL = Candidates("full", None)
FOLDED = Candidates("folded", ("poet", "singer", "it", "us"), fold_case=True)  # of several forms
FEW = Candidates("few", (*CITIES, *JOBS))  # for a rescoring, which has a text for each of them
TEXTS = ("The capital of France is [MASK].", "[MASK] is a city in Germany, said Ann.")
SENTENCES = (
    "The capital of France is Paris.",
    "The capital of France is a city in Germany, said Ann.",
    "The capital of France is a poet.",
    "Rome",
)
SPANS = [[(0, 3), (4, 11)]] * 3
LONG_WORD = "Kraków Wien"


READS = (
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.item.default,
    torch.ops.aten.is_nonzero.default,
)


class Mixed(AssertionError):
    """An operation on tensors of several devices."""


class OneDevice(TorchDispatchMode):
    """Refuses an operation on tensors of several devices, as a graphics card does.

    A single number may come from anywhere, and an index of a card's tensor from the processor.
    What a model's own code reads of its tensors (is all of the mask 1?) is no: that is allowed,
    and slow.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        tensors = [
            one
            for one in tree_leaves((args, kwargs))
            if isinstance(one, torch.Tensor) and one.dim()
        ]
        places = [one.device.type for one in tensors]
        if func is torch.ops.aten.index.Tensor and places[0] == "meta":
            places = places[:1]
        if len(set(places)) > 1:
            raise Mixed(f"{func} of tensors on {', '.join(places)}")
        if func in READS and args[0].is_meta:
            return False
        return func(*args, **(kwargs or {}))


@pytest.fixture
def no_card(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Operations on two devices are refused; what leaves the device is zero. Where it was from."""
    seen: list[str] = []

    def zeros(tensor: torch.Tensor) -> torch.Tensor:
        seen.append(tensor.device.type)
        return torch.zeros(tensor.shape, dtype=tensor.dtype)

    host = devices.to_cpu
    for module in list(sys.modules.values()):
        if module.__name__.startswith("lama_core.models") and vars(module).get("to_cpu") is host:
            monkeypatch.setattr(module, "to_cpu", zeros)
    with OneDevice():
        yield seen


def plain_on_meta(family: str) -> Any:
    """A family's model in the backend of transformers' models."""
    kinds = {"masked": MaskedModel, "causal": CausalModel, "seq2seq": Seq2SeqModel}
    model, tokenizer = make_model(family)
    return kinds[FAMILIES[family].kind](family, model.to("meta"), tokenizer, identity="meta")


def blanks_of(
    model: Any, context: Any, texts: Sequence[str] = TEXTS, words: Candidates = FULL
) -> tuple[Scores, Columns]:
    """Scores at the blanks of texts of several lengths, and the columns."""
    columns = words.columns(model.vocabulary)
    encoded = model.encode_all([parse_query(text) for text in texts], context)
    return model.blank_log_probs(encoded, columns), columns


def blanks_asked(model: Any) -> tuple[tuple[Any, Candidates], ...]:
    """The contexts of a model, and candidates: a word that is rescored is a text of its own."""
    return (("left", FULL), ("both", FEW)) if model.kind == "causal" else (("both", FULL),)


def ask_everything(model: Any) -> None:
    """Call all that a model can do, for shapes."""
    n_words = 0
    for context, candidates in blanks_asked(model):
        scores, columns = blanks_of(model, context, words=candidates)
        n_words = len(columns.words)
        assert scores.log_probs.shape == (len(TEXTS), n_words)
        blanks_of(model, context, words=FOLDED)
        score = model.word_log_prob(parse_query(TEXTS[1]), 0, LONG_WORD, context)
        assert len(score.pieces) > 1
    tokens = model.token_log_probs(SENTENCES)
    assert [len(one.tokens) for one in tokens] == [len(one.log_probs) for one in tokens]
    width = model.word_vectors(["Paris", LONG_WORD]).shape[1]
    assert model.word_matrix(columns).shape == (n_words, width)
    for layer in (0, -1):
        states = hidden_states(model, SENTENCES[:3], SPANS, layer=layer, pooling="mean")
        assert states.shape[:2] == (3, 2)
    if model.kind == "causal":
        encoded = model.encode_all([parse_query(text) for text in TEXTS[:1]], "left")
        model.continue_words(encoded * 2, [[5], [6, 7]])


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_of_a_model_stays_behind(family: str, no_card: list[str]) -> None:
    model = plain_on_meta(family)
    ask_everything(model)
    assert set(no_card) == {model.device} == {"meta"}


def test_nothing_of_our_own_bert_stays_behind(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    model = open_family("bert-uncased", tmp_path / "bert")
    model.model.to("meta")
    no_card = request.getfixturevalue("no_card")
    assert type(model.model).__module__ == "lama_core.models.hf.bert"
    ask_everything(model)
    assert set(no_card) == {"meta"}


# A batch that doesn't fit.


def shrink_to(n_rows: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From now on the device has room for that many rows; how many each pass had that fitted."""
    sizes: list[int] = []
    there = Transformer._on_device

    def refuse(self: Transformer, inputs: dict[str, Any]) -> dict[str, Any]:
        if len(inputs["input_ids"]) > n_rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        sizes.append(len(inputs["input_ids"]))
        return there(self, inputs)

    monkeypatch.setattr(Transformer, "_on_device", refuse)
    return sizes


MANY = tuple(f"{city} is the [MASK] of {job}." for city in ("Rome", "Oslo", "Bern")
             for job in ("a poet", "all the singers", "France"))  # fmt: skip


def all_numbers(model: Any) -> list[np.ndarray]:
    """What a model says of some texts, of several lengths."""
    found = [
        blanks_of(model, context, MANY, words)[0].log_probs
        for context, words in blanks_asked(model)
    ]
    tokens = model.token_log_probs([text.replace("[MASK]", "king") for text in MANY])
    found += [one.log_probs for one in tokens]
    found.append(hidden_states(model, SENTENCES[:3], SPANS))
    return found


@pytest.mark.parametrize("n_rows", [1, 3])
@pytest.mark.parametrize("family", ["bert-cased", "roberta", "llama", "t5"])
def test_a_batch_that_does_not_fit_gives_the_same_numbers(
    family: str, n_rows: int, tiny_model: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = all_numbers(tiny_model(family))
    sizes = shrink_to(n_rows, monkeypatch)
    for ours, theirs in zip(all_numbers(tiny_model(family)), wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
    assert max(sizes) == n_rows


# Which device.


def cards(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    """As many graphics cards as that, which nothing is computed on."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: n > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: n)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


def test_auto_takes_the_first_card(monkeypatch: pytest.MonkeyPatch) -> None:
    cards(monkeypatch, 2)
    assert available_devices() == ("cuda:0", "cuda:1", "cpu", "spread")
    assert [find_device(name) for name in ("auto", "cuda", "cuda:1", "cpu", "spread")] == [
        "cuda:0", "cuda:0", "cuda:1", "cpu", "spread",
    ]  # fmt: skip
    cards(monkeypatch, 0)
    assert available_devices() == ("cpu",)
    assert find_device("auto") == "cpu"


@pytest.mark.parametrize("name", ["cuda:-1", "", "x" * 300])
def test_an_unknown_device_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(devices.VARIABLE, "cpu")
    with pytest.raises(UserError, match="Choose auto, cpu, cuda, cuda:N") as said:
        use_device(name)
    assert len(str(said.value)) < 250
    assert requested_device() == "cpu"


@pytest.mark.parametrize("name", ["cuda:2", "mps"])
def test_a_card_that_is_not_here_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cards(monkeypatch, 2)
    monkeypatch.setenv(devices.VARIABLE, "cpu")
    with pytest.raises(UserError) as said:
        use_device(name)
    assert str(said.value) == (
        f"Device {name} is not available. This machine has cuda:0, cuda:1, cpu, spread; "
        "`--device auto` selects cuda:0."
    )
    assert requested_device() == "cpu"


def test_a_model_without_room_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_model_folder("gpt2", tmp_path / "model")
    monkeypatch.setattr(devices, "free_bytes", lambda _: 12_000)
    monkeypatch.setattr("lama_core.models.cache.open_model", lambda *_: pytest.fail("it is read"))
    with pytest.raises(UserError, match=r"needs 0\.0 GB, but 0\.0 GB are free on cpu: choose a sm"):
        load_model(str(folder))
    assert str(folder) not in {held.name for held in CACHE.held()}
