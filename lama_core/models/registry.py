"""The backends that there are, one row each, and the model folders that they read.

A new backend is a file beside this one and a row in `BACKENDS`; of a new kind of model, also a
name in `base.Kind` and a row in `base.KINDS`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lama_core.errors import UserError
from lama_core.models.classic.converted import ELMO, FCONV, TRANSFORMER_XL
from lama_core.models.devices import chosen_device, one_device
from lama_core.models.model_folder import CONFIG, FAULTS, read_json, stored_tensors
from lama_core.models.protocols import Kind
from lama_core.models.sources.locations import Located

if TYPE_CHECKING:
    from lama_core.models.classic.elmo import ElmoModel
    from lama_core.models.hf.causal import CausalModel
    from lama_core.models.hf.masked import MaskedModel
    from lama_core.models.hf.seq2seq import Seq2SeqModel

    Model = MaskedModel | CausalModel | Seq2SeqModel | ElmoModel


@dataclass(frozen=True, slots=True)
class Backend:
    """Code that scores with a model folder.

    scorer: its name in a model's identity, since two pieces of code give two last digits.
    kind: of the models that it reads. architectures: the name of transformers' own list of them;
    family: the only `model_type` of what it reads by itself, where transformers doesn't know it.
    open: (name, folder, precision, identity) -> the model, None for a folder that it leaves to the
    next row. Raises UserError for a folder that nobody can read. readings: ways to read a text that
    may be chosen (`catalog.READINGS`), which are given to `open` by name.
    """

    scorer: str
    kind: Kind
    architectures: str
    open: Callable[..., "Model | None"]
    family: str = ""
    readings: tuple[str, ...] = ()


def _open_bert(name: str, folder: Path, precision: str, identity: str) -> "Model | None":
    from lama_core.models.hf.bert import read_bert
    from lama_core.models.hf.masked import MaskedModel

    read = read_bert(folder, _dtype(precision))
    if read is None:
        return None
    model, tokenizer = read
    return MaskedModel(name, model.to(one_device()), tokenizer, identity=identity)


def _open_masked(*asked: Any) -> "Model":
    from transformers import AutoModelForMaskedLM

    from lama_core.models.hf.masked import MaskedModel

    return _open_proved(MaskedModel, AutoModelForMaskedLM, *asked)


def _open_causal(*asked: Any) -> "Model":
    from transformers import AutoModelForCausalLM

    from lama_core.models.hf.causal import CausalModel

    return _open_proved(CausalModel, AutoModelForCausalLM, *asked)


def _open_seq2seq(*asked: Any) -> "Model":
    from transformers import AutoModelForSeq2SeqLM

    from lama_core.models.hf.seq2seq import Seq2SeqModel

    return _open_proved(Seq2SeqModel, AutoModelForSeq2SeqLM, *asked)


def _open_proved(
    backend: Any, auto: Any, name: str, folder: Path, precision: str, identity: str
) -> "Model":
    from lama_core.models.hf.self_checks import proved

    read = by_transformers(name, folder, auto, backend.kind, precision)
    return proved(backend(name, *read, identity=identity))


def _open_elmo(name: str, folder: Path, precision: str, *more: str, **reading: str) -> "Model":
    from lama_core.models.classic.elmo import open_elmo

    return open_elmo(name, folder, _dtype(precision), one_device(), *more, **reading)


def _open_transformer_xl(
    name: str, folder: Path, precision: str, *more: str, **reading: str
) -> "Model":
    from lama_core.models.classic.transformer_xl import open_transformer_xl

    return open_transformer_xl(name, folder, _dtype(precision), one_device(), *more, **reading)


def _open_fconv(name: str, folder: Path, precision: str, *more: str) -> "Model":
    from lama_core.models.classic.fconv import open_fconv

    return open_fconv(name, folder, _dtype(precision), one_device(), *more)


MASKED, CAUSAL = "MODEL_FOR_MASKED_LM_MAPPING_NAMES", "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES"
SEQ2SEQ = "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES"
# Families of encoder-decoder models that were trained with sentinels. LongT5 was trained otherwise,
# and what a Switch transformer answers depends on what else is in the batch.
SPAN_FILLERS = ("t5", "mt5", "umt5", "t5gemma", "t5gemma2")
# The model_type of a release that is to be converted first.
OLD = ("transfo-xl",)
# Tried in this order; the first of a kind that takes a folder has it.
BACKENDS = (
    Backend("elmo", "bidirectional", "", _open_elmo, ELMO, ("passes",)),
    Backend("transformer-xl", "causal", "", _open_transformer_xl, TRANSFORMER_XL, ("memory",)),
    Backend("fconv", "causal", "", _open_fconv, FCONV),
    Backend("bert", "masked", MASKED, _open_bert),
    Backend("transformers", "masked", MASKED, _open_masked),
    Backend("transformers", "causal", CAUSAL, _open_causal),
    Backend("transformers", "seq2seq", SEQ2SEQ, _open_seq2seq),
)


def open_model(
    name: str, located: Located, kind: Kind, precision: str, reading: str = ""
) -> "Model":
    """A model folder as a backend. reading: another way to read a text, such as `passes=10`.

    Raises UserError if weights are missing (an encoder without a language-model head would
    otherwise be filled with random numbers), the tokenizer is not a fast one, or texts can't be
    read in that way.
    """
    option, _, value = reading.partition("=")
    family = read_json(located.folder / CONFIG).get("model_type")
    for backend in BACKENDS:
        if backend.kind != kind or (backend.family and backend.family != family):
            continue
        if option and option not in backend.readings:
            raise UserError(
                f"{name}: {reading} is no way to read a text with this model: leave it out."
            )
        identity = f"{located.identity}/{backend.scorer}/{precision}"
        identity += f"/{reading}" if reading else ""
        options = {option: value} if option else {}
        model = backend.open(name, located.folder, precision, identity, **options)
        if model is not None:
            return model
    raise UserError(f"{name}: no backend reads {kind} models.")


def find_kind(folder: Path) -> Kind:
    """A folder's kind of model, by the architecture that it names, then by its family.

    Raises UserError for one that no backend reads.
    """
    family = read_json(folder / CONFIG).get("model_type")
    for backend in BACKENDS:
        if backend.family and backend.family == family:
            return backend.kind
    if family in OLD:
        raise UserError(f"{folder} is a release in its old form: `models convert` it first.")

    from transformers import AutoConfig
    from transformers.models.auto import modeling_auto

    config = read_folder(
        folder, lambda: AutoConfig.from_pretrained(folder, trust_remote_code=False)
    )
    known = {
        backend.kind: getattr(modeling_auto, backend.architectures)
        for backend in BACKENDS
        if backend.architectures
    }
    named = config.architectures or ()
    found = [kind for one in named for kind, names in known.items() if one in names.values()]
    found += [kind for kind, names in known.items() if config.model_type in names]
    if not found:
        kinds = " nor a ".join(known)
        raise UserError(f"{folder}: {config.model_type} is neither a {kinds} model.")
    if found[0] == "seq2seq" and config.model_type not in SPAN_FILLERS:
        raise UserError(
            f"{folder}: a {config.model_type} model can't be asked: of models with an encoder and "
            "a decoder, T5, mT5 and UMT5 are known to have learnt to fill a marked blank."
        )
    return found[0]


def read_folder(folder: Path, read: Callable[[], Any]) -> Any:
    """What `read` returns; the library's many errors for bad files become one sentence."""
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    try:
        return read()
    except Exception as error:
        expected = (*FAULTS, SafetensorError, StrictDataclassError)
        if not isinstance(error, expected) and type(error) is not Exception:
            raise  # the tokenizers library raises Exception itself
        reason = error
    lines = str(reason).strip().splitlines()[:2]
    said = " ".join(line.strip() for line in lines if lines[0].endswith(":") or line == lines[0])
    if isinstance(reason, LookupError) or not said:  # of itself, it says nothing but a key
        said = f"{type(reason).__name__} {said}"
    raise UserError(f"{folder} can't be read as a model: {said[:300]}") from reason


def _dtype(precision: str) -> Any:
    import torch

    return torch.bfloat16 if precision == "bf16" else torch.float32


# Weights that a language model can be without: other heads of the same body, copies of what is
# tied, and tables that follow from the configuration.
HARMLESS = re.compile(
    r"(^|\.)(pooler|seq_relationship|sop_classifier|classifier|score|qa_outputs|"
    r"discriminator_predictions|mask_predictions|lm_predictions)\.|"
    r"(decoder|lm_head)\.(weight|bias)$|position_ids$|attn\.(masked_)?bias$|inv_freq$"
)
SPARE = 1 << 24  # numbers beside the weights: positions, masks


def by_transformers(
    name: str, folder: Path, auto: Any, kind: Kind | Literal["reader"], precision: str
) -> tuple[Any, Any]:
    """The model and tokenizer of a folder, checked: the weights are read last."""
    from transformers import AutoTokenizer
    from transformers.utils import logging

    from lama_core.models.vocabulary import TokenVocabulary

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    dtype = _dtype(precision)
    options = {"local_files_only": True, "trust_remote_code": False}
    rows = read_folder(folder, lambda: _check_shapes(folder, auto))
    tokenizer = read_folder(folder, lambda: AutoTokenizer.from_pretrained(folder, **options))
    if not getattr(tokenizer, "is_fast", False):
        raise UserError(f"{name}: its tokenizer has no fast version (tokenizer.json).")
    if kind == "masked" and tokenizer.mask_token_id is None:
        raise UserError(f"{name}: its tokenizer has no mask token, so it can't fill blanks.")
    if kind == "seq2seq" and not TokenVocabulary(tokenizer, rows).sentinels:
        raise UserError(
            f"{name}: its tokenizer has no <extra_id_0>, the sign of a blank in the texts that T5, "
            "mT5 and UMT5 were trained on: how to show it a blank is not known."
        )
    vocabulary = tokenizer.get_vocab()
    unknown = [token for token in tokenizer.all_special_tokens if token not in vocabulary]
    if unknown:
        raise UserError(f"{name}: its tokenizer knows no {unknown[0][:40]!r}, its special token.")
    beyond = [token for token, number in vocabulary.items() if number >= rows]
    if beyond:
        raise UserError(
            f"{name}: its tokenizer has tokens that the model has none for, such as "
            f"{min(beyond)[:40]!r}; the model knows {rows:,}."
        )
    device = chosen_device()
    places = {"cpu": None, "spread": "auto"}.get(device, {"": device})
    model, report = read_folder(
        folder,
        lambda: auto.from_pretrained(
            folder,
            dtype=dtype,
            device_map=places,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # said below, by name
            **options,
        ),
    )
    for key, stored, wanted in sorted(report["mismatched_keys"]):
        raise UserError(
            f"{name}: {key} has the shape {tuple(stored)} in its file, and {tuple(wanted)} by its "
            "config.json: one of the two is another model's."
        )
    if report["missing_keys"]:
        what = "question-answering model" if kind == "reader" else f"{kind} language model"
        raise UserError(
            f"{name} has no complete {what}: {len(report['missing_keys'])} weights "
            f"are missing, such as {sorted(report['missing_keys'])[0]}."
        )
    strange = sorted(key for key in report["unexpected_keys"] if not HARMLESS.search(key))
    if strange:
        raise UserError(
            f"{name} holds {len(strange)} weights that a {model.config.model_type} model doesn't "
            f"have, such as {strange[0][:80]}: its config.json is another model's."
        )
    if getattr(model.config, "quantization_config", None) is None:
        for parameter in model.parameters():  # DeBERTa's query bias keeps 32 bits in any precision
            parameter.data = parameter.data.to(dtype)
    return model, tokenizer


def _check_shapes(folder: Path, auto: Any) -> int:
    """How many tokens the model of a folder's configuration knows, found without its memory.

    Raises UserError if that model is larger than the weights that are there.
    """
    import torch
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    with torch.device("meta"):
        model = auto.from_config(config, trust_remote_code=False)
    n_wanted = sum(value.numel() for value in (*model.parameters(), *model.buffers()))
    n_stored = sum(tensor.n_elements for tensor in stored_tensors(folder).values())
    if n_wanted > n_stored + SPARE:
        raise UserError(
            f"{folder}: its config.json is of a model with {n_wanted:,} weights, and the files "
            f"hold {n_stored:,}."
        )
    table = getattr(model.get_input_embeddings(), "weight", None)
    if table is None:
        raise UserError(f"{folder}: a {config.model_type} model has no table of tokens.")
    return int(table.shape[0])
