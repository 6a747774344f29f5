"""A model whose modules can be read and replaced during a pass.

Threads share models. The hooks on the modules are permanent, but act only on the passes of a thread
that is in a block of `watching` or `embedding`.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from lama_core.models.hf.transformer import Transformer
from lama_core.models.protocols import Encoded, Kind

Watch = Callable[[nn.Module, Any, Any, Any], Any]
_HOOKING = threading.Lock()


class HookedModel(Transformer):
    """A model whose modules, and the embeddings of its text, can be read and replaced."""

    kind: Kind
    # Whether rows that are equal up to a layer may be computed as one row, and copied after it.
    copies_rows = True

    def __init__(self, name: str, model: Any, tokenizer: Any, *, identity: str) -> None:
        super().__init__(name, model, tokenizer, identity=identity)
        self._stacks: dict[nn.Module, int] = {
            module: number for number, stack in enumerate(_stacks(self.model)) for module in stack
        }
        self._hooked: set[nn.Module] = set()
        self._hook(self._stacks)
        self.text_embeddings.register_forward_hook(self._embedded)

    @property
    def text_embeddings(self) -> Any:
        """The module that embeds the text's tokens."""
        return self.model.get_input_embeddings()

    def _hook(self, modules: Iterable[nn.Module]) -> None:
        """Put hooks on these modules, so that `watching` can see them."""
        with _HOOKING:
            for module in set(modules) - self._hooked:
                module.register_forward_hook(self._watched, with_kwargs=True)
                self._hooked.add(module)

    def inputs_of(self, ids: torch.Tensor) -> dict[str, Any]:
        """Return the inputs of a pass over texts of one length. ids: int64 [row, token]."""
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def logits_of_ids(self, ids: torch.Tensor, at: int, *, slopes: bool = False) -> torch.Tensor:
        """Logits at one position of texts of one length, float32 [row, vocabulary].

        ids: int64 [row, token]. slopes: whether the pass needs gradients.
        """
        return self.forward(
            (torch.arange(len(ids)), torch.full((len(ids),), at)),
            slopes=slopes,
            **self.inputs_of(ids),
        )[0]

    def read_at(self, encoded: Encoded) -> int:
        """Return the position in the layers' output that the first blank is predicted from."""
        return encoded.positions[0]

    @contextmanager
    def watching(self, watch: Watch, modules: Iterable[nn.Module] | None = None) -> Iterator[None]:
        """Call `watch` (module, input, options, output) for this thread's passes in the block.

        A value that `watch` returns, unless None, replaces the module's output.

        Args:
            watch: What to call.
            modules: The modules to call it for; None for the layers.
        """
        watched = frozenset(self._stacks if modules is None else modules)
        self._hook(watched)
        self._here.watch = watch, watched
        try:
            yield
        finally:
            self._here.watch = None

    def _watched(self, module: nn.Module, given: Any, named: Any, output: Any) -> Any:
        here: tuple[Watch, frozenset[nn.Module]] | None = getattr(self._here, "watch", None)
        return here[0](module, given, named, output) if here and module in here[1] else None

    @contextmanager
    def embedding(self, embeddings: torch.Tensor) -> Iterator[None]:
        """Use these embeddings instead of the text's in this thread's next pass in the block."""
        self._here.embeddings = embeddings
        try:
            yield
        finally:
            self._here.embeddings = None

    def _embedded(self, _module: nn.Module, _given: Any, output: Any) -> Any:
        embeddings: torch.Tensor | None = getattr(self._here, "embeddings", None)
        if embeddings is None or embeddings.shape != output.shape:
            return None
        self._here.embeddings = None  # the text is embedded first, the decoder's input after it
        return embeddings.clone()  # some families modify it in place


def _stacks(model: nn.Module) -> list[nn.ModuleList]:
    """Return the module lists that are in no other list; one of them holds the layers."""
    found: dict[str, nn.ModuleList] = {}
    for name, module in model.named_modules():
        inside = any(name.startswith(f"{outer}.") for outer in found)
        if isinstance(module, nn.ModuleList) and not inside:
            found[name] = module
    return list(found.values())
