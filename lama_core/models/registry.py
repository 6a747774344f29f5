"""The model backends, one row each, and loading a model folder with one of them.

To add a backend, write its module and add a row to `BACKENDS`, or to the table `backends` of a
plug-in; for a new kind of model, also add a name to `protocols.Kind` and a row to
`protocols.KINDS`.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from lama_core import plugins
from lama_core.errors import UserError
from lama_core.models.conversion.convert import OLD_FORMAT, release_in
from lama_core.models.cpu import NO_BF16, ROUNDED, has_bf16
from lama_core.models.devices import chosen_device, one_device
from lama_core.models.model_folder import (
    ADAPTER,
    CONFIG,
    LIBRARY_ERRORS,
    read_json,
    stored_tensors,
)
from lama_core.models.protocols import KINDS, BlankFiller, Kind, Scorer
from lama_core.models.sources.catalog import known_digests
from lama_core.models.sources.locations import LocatedModel

if TYPE_CHECKING:
    from lama_core.models.hf.causal import CausalModel
    from lama_core.models.hf.masked import MaskedModel
    from lama_core.models.hf.seq2seq import Seq2SeqModel

    Model = MaskedModel | CausalModel | Seq2SeqModel


@dataclass(frozen=True, slots=True)
class Backend:
    """Code that loads a model folder and scores with it.

    scorer: a name that is part of a model's identity, because the scores of two backends differ in
        the last digits.
    kind: the kind of model that it reads.
    open: (name, folder, precision, identity) -> the model, or None to leave the folder to the next
        row. Raises UserError for a folder that no backend can read.
    architectures: name of transformers' list of the architectures that it reads; "" in a plug-in,
        whose backend reads the `model_type` that its row names.
    readings: ways to read a text, chosen behind a model's name, such as `+passes=10`: option -> its
        values, the usual one first. `open` takes the others as keyword arguments.
    known: whether it reads only the models whose digests the catalogue has: one of this project's
        networks, which was compared with transformers on those models.
    """

    scorer: str
    kind: Kind
    open: Callable[..., Any]
    architectures: str = ""
    readings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    known: bool = False


def _open_bert(name: str, folder: Path, precision: str, identity: str) -> "Model":
    from lama_core.models.hf.bert import OWN_NAMES, BertMaskedLM
    from lama_core.models.hf.layers import read_network
    from lama_core.models.hf.masked import MaskedModel

    model, tokenizer = read_network(
        BertMaskedLM, folder, dtype_of(precision), own_names=OWN_NAMES, copy=True
    )
    return MaskedModel(name, model.to(one_device()), tokenizer, identity=identity)


def _open_llama(name: str, folder: Path, precision: str, identity: str) -> "Model | None":
    from lama_core.models.hf.causal import CausalModel
    from lama_core.models.hf.layers import read_network
    from lama_core.models.hf.llama import OWN_NAMES, LlamaCausalLM
    from lama_core.models.hf.self_checks import use_fast_paths

    device = chosen_device()
    if device == "spread":  # transformers distributes a model over several devices
        return None
    read = read_network(
        LlamaCausalLM, folder, dtype_of(precision), own_names=OWN_NAMES, device=device
    )
    return use_fast_paths(CausalModel(name, *read, identity=identity))


def _open_checked(
    module: str, model: str, auto: str, name: str, folder: Path, precision: str, identity: str
) -> "Model":
    """Load a folder with transformers' class `auto` for the class `model` of a module in `hf/`."""
    import transformers

    from lama_core.models.hf.passed_checks import checks_file, find_passed, store_passed
    from lama_core.models.hf.self_checks import self_checked, use_fast_paths

    backend = getattr(import_module(f"lama_core.models.hf.{module}"), model)
    checks = checks_file(folder, backend.kind, precision)
    rows = find_passed(checks)
    read = load_with_transformers(
        name, folder, getattr(transformers, auto), backend.kind, precision, rows
    )
    opened = backend(name, *read, identity=identity)
    if rows:
        return use_fast_paths(opened)
    opened, passed = self_checked(opened)
    if passed:
        store_passed(checks, opened.model.get_input_embeddings().weight.shape[0])
    return opened


MASKED, CAUSAL = "MODEL_FOR_MASKED_LM_MAPPING_NAMES", "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES"
# Families of encoder-decoder models that were trained with sentinels. LongT5 was trained in another
# way, and a Switch transformer's answers depend on the other texts in the batch.
SPAN_FILLERS = ("t5", "mt5", "umt5", "t5gemma", "t5gemma2")
# Tried in this order; the first backend that accepts a folder is used.
BACKENDS = (
    Backend("bert", "masked", _open_bert, MASKED, known=True),
    Backend(
        "transformers",
        "masked",
        partial(_open_checked, "masked", "MaskedModel", "AutoModelForMaskedLM"),
        MASKED,
    ),
    # The same operations as in transformers, so the scores are equal to the last digit.
    Backend("transformers", "causal", _open_llama, CAUSAL, known=True),
    Backend(
        "transformers",
        "causal",
        partial(_open_checked, "causal", "CausalModel", "AutoModelForCausalLM"),
        CAUSAL,
    ),
    Backend(
        "transformers",
        "seq2seq",
        partial(_open_checked, "seq2seq", "Seq2SeqModel", "AutoModelForSeq2SeqLM"),
        "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    ),
)


def open_model(
    name: str,
    located: LocatedModel,
    kind: Kind,
    precision: str,
    reading: str = "",
    *,
    known: Collection[str] | None = None,
) -> "Model":
    """Load a model folder with the first backend that reads it.

    Args:
        name: The model's name.
        located: Its files.
        kind: Its kind.
        precision: `fp32`, `bf16` or `bf16-weights`.
        reading: A non-default way to read a text, such as `passes=10`.
        known: Digests of the models that this project's own networks read; None for the
            catalogue's.

    Raises:
        UserError: If weights are missing (transformers would fill them with random numbers), the
            tokenizer isn't a fast one, or the model doesn't support the reading.
    """
    option, _, value = reading.partition("=")
    family = read_json(located.folder / CONFIG).get("model_type")
    is_known = located.identity in (known_digests() if known is None else known)
    # A plug-in's backend comes first, except for models that this project's own networks read.
    added = None if is_known else _find_added(located.folder, family)
    for backend in (added, *BACKENDS) if added else BACKENDS:
        if backend.kind != kind or (backend.known and not is_known):
            continue
        if option and option not in backend.readings:
            raise UserError(
                f"{name}: this model has no option {reading}. Remove it from the model's name."
            )
        identity = f"{located.identity}/{backend.scorer}/{precision}"
        identity += f"/{reading}" if reading else ""
        options = {option: value} if option else {}
        model = backend.open(name, located.folder, precision, identity, **options)
        if model is not None:
            if backend is added:
                check_added(name, model)
            return round_weights(model) if precision == ROUNDED else model
    raise UserError(f"{name}: no backend reads {kind} models.")


def check_added(name: str, model: object) -> None:
    """Raise UserError if a plug-in's model lacks attributes that every model has."""
    members = {
        one for kind in (Scorer, BlankFiller) for one in (*kind.__annotations__, *vars(kind))
    }
    lacks = sorted(one for one in members if not one.startswith("_") and not hasattr(model, one))
    if lacks:
        raise UserError(
            f"{name}: the plug-in's model, a {type(model).__name__}, lacks {', '.join(lacks)}. "
            "Every model has the attributes of lama_core.models.protocols.BlankFiller."
        )


def _find_added(folder: Path, family: object) -> Backend | None:
    """Return a plug-in's backend for a `model_type`; None if no plug-in has one.

    Raises UserError if the project's plug-in that has one isn't installed.
    """
    added: Backend | None = plugins.find("backends", str(family))
    if added is None and (why := plugins.missing(str(family))):
        raise UserError(f"{folder}: {why}")
    return added


def find_kind(folder: Path) -> Kind:
    """Return the kind of model in a folder, by its architecture or else by its family.

    Raises UserError if no backend reads it.
    """
    family = read_json(folder / CONFIG).get("model_type")
    if added := _find_added(folder, family):
        return added.kind

    from transformers import CONFIG_MAPPING, AutoConfig
    from transformers.models.auto import modeling_auto

    if str(family) not in CONFIG_MAPPING and release_in(folder):
        raise UserError(f"{folder} {OLD_FORMAT}")
    config = read_folder(
        folder, lambda: AutoConfig.from_pretrained(folder, trust_remote_code=False)
    )
    known = {backend.kind: getattr(modeling_auto, backend.architectures) for backend in BACKENDS}
    named = config.architectures if isinstance(config.architectures, list) else ()
    found = [kind for one in named for kind, names in known.items() if one in names.values()]
    found += [kind for kind, names in known.items() if config.model_type in names]
    if not found:
        raise UserError(
            f"{folder}: a {config.model_type} model is neither a {' nor a '.join(known)} model."
        )
    if found[0] == "seq2seq" and config.model_type not in SPAN_FILLERS:
        raise UserError(
            f"{folder}: {config.model_type} models are not supported. Of encoder-decoder models, "
            "only T5, mT5 and UMT5 were trained to fill a marked blank."
        )
    return found[0]


def read_folder(folder: Path, read: Callable[[], Any]) -> Any:
    """Return `read()`; turn the libraries' exceptions for bad files into one UserError."""
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    try:
        return read()
    except Exception as error:
        known = (*LIBRARY_ERRORS, SafetensorError, StrictDataclassError)
        if not isinstance(error, known) and type(error) is not Exception:  # as tokenizers raise
            raise
        lines = str(error).strip().splitlines()[:2]
        said = [line.strip() for line in lines if lines[0].endswith(":") or line == lines[0]]
        if isinstance(error, LookupError) or not said:  # the message alone is only a key
            said = [type(error).__name__, *said]
        raise UserError(f"Can't load a model from {folder}: {' '.join(said)[:300]}") from error


def round_weights(model: "Model") -> "Model":
    """Round an fp32 model's weights to bf16, so that its answers are near those in bf16."""
    import torch

    for parameter in model.model.parameters():
        if parameter.is_floating_point() and not hasattr(parameter, "__tensor_flatten__"):
            parameter.data = parameter.data.to(torch.bfloat16).float()
    model.precision = ROUNDED
    model.notes.append(
        "Its weights are rounded to bf16, and it computes in fp32." if has_bf16() else NO_BF16
    )
    return model


def dtype_of(precision: str) -> Any:
    """Return torch's type of the weights in a precision."""
    import torch

    return torch.bfloat16 if precision == "bf16" else torch.float32


# Stored weights that the model doesn't need: other heads of the same body, copies of tied weights,
# and tables that follow from the configuration.
HARMLESS = re.compile(
    r"(^|\.)(pooler|seq_relationship|sop_classifier|classifier|score|qa_outputs|"
    r"discriminator_predictions|mask_predictions|lm_predictions)\.|"
    r"(decoder|lm_head)\.(weight|bias)$|position_ids$|attn\.(masked_)?bias$|inv_freq$"
)
# Parts of weights' names that a training wrapper or an adapter leaves, and what to save instead.
WRAPPED = {
    r"(^|\.)_orig_mod\.": "torch.compile wrapped the model: save `model._orig_mod`",
    r"(^|\.)_fsdp_wrapped_module\.": "FSDP wrapped the model: save its full state dict",
    r"\blora_|\.base_layer\.|^base_model\.model\.": "it has the parts of a LoRA adapter: save "
    "`model.merge_and_unload()`",
    r"^module\.": "DataParallel or DeepSpeed wrapped the model: save `model.module`",
}
LOCAL = {"local_files_only": True, "trust_remote_code": False}  # options of `from_pretrained`


def load_with_transformers(
    name: str,
    folder: Path,
    auto: Any,
    kind: str,
    precision: str,
    rows: int | None = None,
) -> tuple[Any, Any]:
    """Return a folder's model and tokenizer; check everything else before reading the weights.

    Args:
        name: The model's name.
        folder: The folder.
        auto: transformers' class that loads the model.
        kind: The kind of language model, such as `masked`, or another sort of model.
        precision: `fp32` or `bf16`.
        rows: Number of rows of the embedding table if the model's sizes were checked earlier; None
            checks them.

    Raises:
        UserError: If the folder isn't a complete model of this kind.
    """
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    dtype = dtype_of(precision)
    rows = rows or int(read_folder(folder, lambda: _check_shapes(folder, auto)))
    tokenizer = read_folder(folder, lambda: AutoTokenizer.from_pretrained(folder, **LOCAL))
    _check_tokenizer(name, tokenizer, kind, rows)
    device = chosen_device()
    with _without_adapter(folder) as whole:
        model, report = read_folder(
            folder,
            lambda: auto.from_pretrained(
                whole,
                dtype=dtype,
                device_map={"cpu": None, "spread": "auto"}.get(device, {"": device}),
                use_safetensors=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # reported by `_check_weights`, by name
                **LOCAL,
            ),
        )
    _check_weights(name, report, kind, model.config.model_type)
    if getattr(model.config, "quantization_config", None) is None:
        for parameter in model.parameters():  # DeBERTa's query bias keeps 32 bits in any precision
            parameter.data = parameter.data.to(dtype)
    return model, tokenizer


def _check_tokenizer(name: str, tokenizer: Any, kind: str, n_rows: int) -> None:
    """Raise UserError if a tokenizer doesn't fit the model or can't mark its blanks.

    n_rows: Number of rows of the model's embedding table.
    """
    from lama_core.models.vocabulary import TokenVocabulary

    if not getattr(tokenizer, "is_fast", False):
        raise UserError(f"{name} has no fast tokenizer: tokenizer.json is missing.")
    if kind == "masked" and tokenizer.mask_token_id is None:
        raise UserError(f"{name} can't fill blanks: its tokenizer has no mask token.")
    if kind == "seq2seq" and not TokenVocabulary(tokenizer, n_rows).sentinels:
        raise UserError(
            f"{name} can't fill blanks: its tokenizer has no <extra_id_0>, the token that marks a "
            "blank in the training texts of T5, mT5 and UMT5."
        )
    token_ids = tokenizer.get_vocab()
    unknown = [token for token in tokenizer.all_special_tokens if token not in token_ids]
    if unknown:
        raise UserError(f"{name}: special token {unknown[0][:40]!r} is not in its vocabulary.")
    # A padding token may lack a row, unless the tokenizer writes it into texts.
    beyond = [
        token
        for token in TokenVocabulary(tokenizer, n_rows).lacking
        if token != tokenizer.pad_token or token_ids[token] in tokenizer("a")["input_ids"]
    ]
    if beyond:
        raise UserError(
            f"{name}: its tokenizer's vocabulary is larger than the model's embedding matrix "
            f"({n_rows:,} rows); {min(beyond)[:40]!r} is one of the extra tokens."
        )


def _check_weights(name: str, report: Any, kind: str, model_type: str) -> None:
    """Raise UserError if the stored weights aren't exactly those of the configured model.

    report: What transformers returns with `output_loading_info`.
    """
    for key, stored, wanted in sorted(report["mismatched_keys"]):
        raise UserError(
            f"{name}: {key} has shape {tuple(stored)} in the weights; config.json "
            f"requires {tuple(wanted)}. One of the two files belongs to another model."
        )
    others = sorted(key for key in report["unexpected_keys"] if not HARMLESS.search(key))
    for part, reason in WRAPPED.items():
        if wrapped := [key for key in others if re.search(part, key)]:
            raise UserError(
                f"{name} has {len(wrapped)} weights with names such as {wrapped[0][:80]}, because "
                f"{reason} with save_pretrained."
            )
    if report["missing_keys"]:
        what = f"{kind} language model" if kind in KINDS else kind
        raise UserError(
            f"{name} is not a complete {what}: {len(report['missing_keys'])} weights are missing, "
            f"such as {sorted(report['missing_keys'])[0]}."
        )
    if others:
        raise UserError(
            f"{name} has {len(others)} weights that a {model_type} model doesn't "
            f"have, such as {others[0][:80]}: config.json belongs to another model."
        )


@contextmanager
def _without_adapter(folder: Path) -> Iterator[Path]:
    """Make a folder of links to a merged model's files without a leftover adapter_config.json.

    With peft installed, transformers would look for the adapter's weights.
    """
    if not (folder / ADAPTER).exists():
        yield folder
        return
    with TemporaryDirectory() as view:
        for file in folder.iterdir():
            if file.name != ADAPTER:
                (Path(view) / file.name).symlink_to(file.resolve())
        yield Path(view)


def _check_shapes(folder: Path, auto: Any) -> int:
    """Return the number of rows in the embedding table, without allocating the weights.

    Raises UserError if the configured model is larger than the stored weights.
    """
    import torch
    from transformers import AutoConfig
    from transformers.initialization import no_init_weights

    config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    # Initial values on `meta` need torch's decompositions, whose import is slow.
    with torch.device("meta"), no_init_weights():
        model = auto.from_config(config, trust_remote_code=False)
    model.tie_weights()  # usually done with the initial values, which are skipped here
    n_wanted = sum(value.numel() for value in (*model.parameters(), *model.buffers()))
    n_stored = sum(tensor.n_elements for tensor in stored_tensors(folder).values())
    # A model may have many values that aren't stored: positions, masks.
    if n_wanted > n_stored + (1 << 24):
        raise UserError(
            f"{folder}: config.json describes a model with {n_wanted:,} weights, but the files "
            f"hold {n_stored:,}."
        )
    table = getattr(model.get_input_embeddings(), "weight", None)
    if table is None:
        raise UserError(f"{folder}: {config.model_type} models have no token embeddings.")
    return int(table.shape[0])
