"""The backends that there are, one row each, and the model folders that they read.

A new backend is a file beside this one and a row in `BACKENDS`; of a new kind of model, also a row
in `base.KINDS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lama_core.errors import UserError
from lama_core.models.base import Kind
from lama_core.models.sources import Located

if TYPE_CHECKING:
    from lama_core.models.causal import CausalModel
    from lama_core.models.masked import MaskedModel

    Model = MaskedModel | CausalModel


@dataclass(frozen=True, slots=True)
class Backend:
    """Code that scores with a model folder.

    scorer: its name in a model's identity, since two pieces of code give two last digits.
    kind: of the models that it reads. architectures: the name of transformers' own list of them.
    open: (name, folder, precision, identity) -> the model, None for a folder that it leaves to the
    next row. Raises UserError for a folder that nobody can read.
    """

    scorer: str
    kind: Kind
    architectures: str
    open: Callable[[str, Path, str, str], "Model | None"]


def _open_bert(name: str, folder: Path, precision: str, identity: str) -> "Model | None":
    from lama_core.models.bert import read_bert
    from lama_core.models.masked import MaskedModel

    read = read_bert(folder, _dtype(precision))
    return MaskedModel(name, *read, identity=identity) if read else None


def _open_masked(name: str, folder: Path, precision: str, identity: str) -> "Model":
    from transformers import AutoModelForMaskedLM

    from lama_core.models.masked import MaskedModel

    model, tokenizer = _by_transformers(name, folder, AutoModelForMaskedLM, "masked", precision)
    if tokenizer.mask_token_id is None:
        raise UserError(f"{name}: its tokenizer has no mask token, so it can't fill blanks.")
    return MaskedModel(name, model, tokenizer, identity=identity)


def _open_causal(name: str, folder: Path, precision: str, identity: str) -> "Model":
    from transformers import AutoModelForCausalLM

    from lama_core.models.causal import CausalModel

    read = _by_transformers(name, folder, AutoModelForCausalLM, "causal", precision)
    return CausalModel(name, *read, identity=identity)


MASKED, CAUSAL = "MODEL_FOR_MASKED_LM_MAPPING_NAMES", "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES"
# Tried in this order; the first of a kind that takes a folder has it.
BACKENDS = (
    Backend("bert", "masked", MASKED, _open_bert),
    Backend("transformers", "masked", MASKED, _open_masked),
    Backend("transformers", "causal", CAUSAL, _open_causal),
)


def open_model(name: str, located: Located, kind: Kind, precision: str) -> "Model":
    """A model folder as a backend.

    Raises UserError if weights are missing (an encoder without a language-model head would
    otherwise be filled with random numbers), or the tokenizer is not a fast one.
    """
    for backend in BACKENDS:
        if backend.kind == kind:
            identity = f"{located.identity}/{backend.scorer}/{precision}"
            model = backend.open(name, located.folder, precision, identity)
            if model is not None:
                return model
    raise UserError(f"{name}: no backend reads {kind} models.")


def find_kind(folder: Path) -> Kind:
    """A folder's kind of model, by the architecture that it names, then by its family."""
    from transformers import AutoConfig
    from transformers.models.auto import modeling_auto

    config = read_folder(
        folder, lambda: AutoConfig.from_pretrained(folder, trust_remote_code=False)
    )
    known = {backend.kind: getattr(modeling_auto, backend.architectures) for backend in BACKENDS}
    for architecture in config.architectures or ():
        for kind, names in known.items():
            if architecture in names.values():
                return kind
    for kind, names in known.items():
        if config.model_type in names:
            return kind
    kinds = " nor a ".join(known)
    raise UserError(f"{folder}: {config.model_type} is neither a {kinds} model.")


def read_folder(folder: Path, read: Callable[[], Any]) -> Any:
    """What `read` returns; the library's many errors for bad files become one sentence."""
    from safetensors import SafetensorError

    faults = (OSError, ValueError, KeyError, ImportError, RuntimeError, TypeError, SafetensorError)
    try:
        return read()
    except faults as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{folder} can't be read as a model: {first}") from error


def _dtype(precision: str) -> Any:
    import torch

    return torch.bfloat16 if precision == "bf16" else torch.float32


def _by_transformers(
    name: str, folder: Path, auto: Any, kind: Kind, precision: str
) -> tuple[Any, Any]:
    """The model and tokenizer of a folder, checked."""
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    dtype = _dtype(precision)
    options = {"local_files_only": True, "trust_remote_code": False}
    model, report = read_folder(
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
    tokenizer = read_folder(folder, lambda: AutoTokenizer.from_pretrained(folder, **options))
    if not getattr(tokenizer, "is_fast", False):
        raise UserError(f"{name}: its tokenizer has no fast version (tokenizer.json).")
    return model, tokenizer
