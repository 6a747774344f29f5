"""This plug-in's backends, and the releases that `models convert` reads.

torch is imported when a model is opened.
"""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from lama_core.models.conversion.convert import Release
from lama_core.models.registry import Backend
from lama_older_systems.conversion import elmo, ernie, fconv, tensors, transformer_xl


def _open(module: str, name: str, folder: Path, *others: str, **reading: str) -> Any:
    """Open a converted release with the function `open_MODULE` of a module of this package."""
    opener = getattr(import_module(f"lama_older_systems.{module}"), f"open_{module}")
    return opener(name, folder, *others, **reading)


ELMO = Backend(
    "elmo",
    "bidirectional",
    partial(_open, "elmo"),
    readings={"passes": tuple(map(str, range(1, 21)))},  # how often each text is read
)
TRANSFORMER_XL = Backend(
    "transformer-xl",
    "causal",
    partial(_open, "transformer_xl"),
    readings={"memory": ("zero", "none")},  # whether zero vectors come before a text
)
FCONV = Backend("fconv", "causal", partial(_open, "fconv"))

ELMO_RELEASE = Release(
    "ELMo",
    elmo.FILES,
    elmo.is_elmo,
    elmo.convert_elmo,
    partial(tensors.check_h5py, "ELMo's release"),
)
ERNIE_RELEASE = Release(
    "ERNIE (Tsinghua)",
    "ernie_config.json, pytorch_model.bin and vocab.txt",
    ernie.is_ernie,
    ernie.convert_ernie,
)
FCONV_RELEASE = Release(
    "fairseq's fconv_lm", "dict.txt and a checkpoint *.pt", fconv.is_fconv, fconv.convert_fconv
)
TRANSFORMER_XL_RELEASE = Release(
    "Transformer-XL",
    "config.json, vocab.json or vocab.bin, and pytorch_model.bin or model.safetensors",
    transformer_xl.is_transformer_xl,
    transformer_xl.convert_transformer_xl,
)
