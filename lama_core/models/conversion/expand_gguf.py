"""`python -m lama_core.models.conversion.expand_gguf FILE FOLDER`: a GGUF file as a model folder.

Each finished step is a line on standard output, so that the caller can show how far it is; so is
each expanded tensor, as `tensor 12 of 272`.
"""

import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# What a file may cost, for each of its bytes and beside them: weights of 2 bits grow sixteenfold
# and are held twice.
MEMORY = (40, 3 << 30)
PROCESSOR_SECONDS = (1 / 1_000_000, 60)
ALONE = "model.gguf"
STEPS = ("libraries loaded", "tokenizer read", "weights expanded", "files written")
TENSOR = re.compile(r"tensor (\d+) of (\d+)")


def expand(gguf: Path, folder: Path) -> None:
    """Write the weights of a GGUF file as 32-bit safetensors, with its tokenizer, to a folder.

    The file is read alone: what lies beside it is no part of it.
    """
    with tempfile.TemporaryDirectory() as alone:
        link = Path(alone, ALONE)
        link.symlink_to(gguf.resolve())
        _expand(link, folder)


def _expand(gguf: Path, folder: Path) -> None:
    import torch
    from safetensors.torch import save_model
    from transformers import AutoModelForCausalLM, AutoTokenizer, modeling_gguf_pytorch_utils

    _report(0)
    tokenizer = AutoTokenizer.from_pretrained(
        gguf.parent, gguf_file=gguf.name, trust_remote_code=False
    )
    _report(1)
    # The library shows a bar over the tensors, and has no other way to follow them.
    vars(modeling_gguf_pytorch_utils)["tqdm"] = _each_reported
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32, trust_remote_code=False
    )
    _report(2)
    # The library refuses to save what it read from GGUF, although it is plain 32-bit by now.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    tokenizer.save_pretrained(folder)
    model.config.save_pretrained(folder)
    save_model(model, str(folder / "model.safetensors"), metadata={"format": "pt"})
    _report(3)


def limit(n_bytes: int) -> None:
    """Bound this process to what a file of so many bytes can need, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for what, (each, least) in (
        (resource.RLIMIT_DATA, MEMORY),
        (resource.RLIMIT_CPU, PROCESSOR_SECONDS),
    ):
        resource.setrlimit(what, (int(each * n_bytes + least),) * 2)


def _each_reported(tensors: Sequence[Any], **_: object) -> Iterator[Any]:
    """The tensors one by one, each reported once it is expanded."""
    for number, tensor in enumerate(tensors, start=1):
        yield tensor
        print(f"tensor {number} of {len(tensors)}", flush=True)


def _report(step: int) -> None:
    print(STEPS[step], flush=True)


if __name__ == "__main__":
    limit(Path(sys.argv[1]).stat().st_size)
    expand(Path(sys.argv[1]), Path(sys.argv[2]))
