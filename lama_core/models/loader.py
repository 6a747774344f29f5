"""Loading models late, and keeping them in one cache that is bounded in bytes.

The model used longest ago is dropped first. Two sessions that ask for the same model get the same
object, loaded once.
"""

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import psutil

from lama_core.errors import UserError
from lama_core.models.base import Kind
from lama_core.models.catalog import Entry, find_model
from lama_core.models.sources import Located, OnProgress, fetch, silent

if TYPE_CHECKING:
    from lama_core.models.causal import CausalModel
    from lama_core.models.masked import MaskedModel

    Model = MaskedModel | CausalModel

Precision = Literal["auto", "fp32", "bf16"]


@dataclass(frozen=True, slots=True)
class Held:
    """A model in the cache. n_bytes: of its weights."""

    name: str
    precision: str
    n_bytes: int


class ModelCache:
    """Loaded models by name and precision, at most `max_bytes` of weights.

    A single model larger than the bound is loaded all the same, alone.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._models: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._lock = threading.Lock()
        self._loading: dict[tuple[str, str], threading.Lock] = {}

    def get(self, name: str, precision: str, load: Any) -> Any:
        """The model of that name and precision; `load()` makes it if it isn't here."""
        key = (name, precision)
        with self._lock:
            loading = self._loading.setdefault(key, threading.Lock())
        with loading:
            with self._lock:
                if key in self._models:
                    self._models.move_to_end(key)
                    return self._models[key]
            model = load()
            with self._lock:
                self._models[key] = model
                self._shrink()
            return model

    def _shrink(self) -> None:
        while len(self._models) > 1 and self.n_bytes > self.max_bytes:
            self._models.popitem(last=False)

    @property
    def n_bytes(self) -> int:
        """Bytes of all weights held."""
        return sum(model.n_bytes for model in self._models.values())

    def held(self) -> tuple[Held, ...]:
        """What is loaded, the longest unused first."""
        with self._lock:
            return tuple(
                Held(name, precision, model.n_bytes)
                for (name, precision), model in self._models.items()
            )

    def identity(self, name: str, precision: str) -> str | None:
        """The identity of a model that is loaded; None if it isn't."""
        with self._lock:
            model = self._models.get((name, precision))
            return model.identity if model is not None else None

    def drop(self, name: str) -> None:
        """Unload a model, in every precision."""
        with self._lock:
            for key in [key for key in self._models if key[0] == name]:
                del self._models[key]


def _default_bound() -> int:
    given = os.environ.get("LAMA_MODEL_BYTES")
    return int(given) if given else psutil.virtual_memory().total // 2


CACHE = ModelCache(_default_bound())


def load_model(
    reference: str, *, precision: Precision = "fp32", on_progress: OnProgress = silent
) -> "Model":
    """The model that a user means, fetched and loaded where it must be.

    precision: `auto` is bf16 where the processor computes in it, else fp32.
    Raises UserError for an unknown model, one that can't be had, or files that are no model.
    """
    entry = find_model(reference)
    used = chosen_precision(precision)
    return CACHE.get(entry.name, used, lambda: _load(entry, used, on_progress))


def chosen_precision(precision: Precision) -> Literal["fp32", "bf16"]:
    """fp32 or bf16; `auto` looks at the processor."""
    if precision == "auto":
        return "bf16" if has_bf16() else "fp32"
    return precision


def has_bf16() -> bool:
    """Whether the processor multiplies bf16 matrices itself (AVX-512 BF16 or AMX)."""
    import torch

    flags = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    if flags:
        return bool(flags.get("avx512_bf16") or flags.get("amx_bf16") or flags.get("bf16"))
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return "avx512_bf16" in text or "amx_bf16" in text


def _load(entry: Entry, precision: str, on_progress: OnProgress) -> "Model":
    located = fetch(entry, on_progress)
    on_progress(f"Loading {entry.title}", 0, None)
    kind = entry.kind or find_kind(located.folder)
    return open_model(entry.name, located, kind, precision)


def find_kind(folder: Path) -> Kind:
    """Masked or causal, by the architecture that the configuration names, then by its family."""
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    config = _reading(folder, lambda: AutoConfig.from_pretrained(folder, trust_remote_code=False))
    for architecture in config.architectures or ():
        if architecture in MODEL_FOR_MASKED_LM_MAPPING_NAMES.values():
            return "masked"
        if architecture in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
            return "causal"
    if config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return "masked"
    if config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return "causal"
    raise UserError(f"{folder}: {config.model_type} is neither a masked nor a causal model.")


def _reading(folder: Path, read: Any) -> Any:
    """What `read` returns; the library's many errors for bad files become one sentence."""
    from safetensors import SafetensorError

    faults = (OSError, ValueError, KeyError, ImportError, RuntimeError, TypeError, SafetensorError)
    try:
        return read()
    except faults as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{folder} can't be read as a model: {first}") from error


def open_model(name: str, located: Located, kind: Kind, precision: str) -> "Model":
    """A model folder as a backend.

    Raises UserError if weights are missing (an encoder without a language-model head would
    otherwise be filled with random numbers), or the tokenizer is not a fast one.
    """
    import torch

    from lama_core.models.bert import read_bert
    from lama_core.models.masked import MaskedModel

    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    identity = f"{located.identity}/{precision}"
    if kind == "masked" and (read := read_bert(located.folder, dtype)):
        return MaskedModel(name, *read, identity=identity)
    model, tokenizer = _by_transformers(name, located.folder, kind, dtype)
    if kind == "masked":
        return MaskedModel(name, model, tokenizer, identity=identity)
    from lama_core.models.causal import CausalModel

    return CausalModel(name, model, tokenizer, identity=identity)


def _by_transformers(name: str, folder: Path, kind: Kind, dtype: Any) -> tuple[Any, Any]:
    """The model and tokenizer of a folder, checked."""
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    auto = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
    options = {"local_files_only": True, "trust_remote_code": False}
    model, report = _reading(
        folder,
        lambda: auto.from_pretrained(
            folder, dtype=dtype, use_safetensors=True, output_loading_info=True, **options
        ),
    )
    if report["missing_keys"]:
        raise UserError(
            f"{name} has no complete {kind} language model: {len(report['missing_keys'])} weights "
            f"are missing, such as {sorted(report['missing_keys'])[0]}."
        )
    for parameter in model.parameters():  # DeBERTa's query bias keeps 32 bits whatever is asked
        parameter.data = parameter.data.to(dtype)
    tokenizer = _reading(folder, lambda: AutoTokenizer.from_pretrained(folder, **options))
    if not getattr(tokenizer, "is_fast", False):
        raise UserError(f"{name}: its tokenizer has no fast version (tokenizer.json).")
    if kind == "masked" and tokenizer.mask_token_id is None:
        raise UserError(f"{name}: its tokenizer has no mask token, so it can't fill blanks.")
    return model, tokenizer
