"""`python -m lama_core.models.conversion.expand_gguf FILE FOLDER`: expand a GGUF file.

Prints a line for each expanded tensor (`tensor 12 of 272`), so that the caller can show the
progress.
"""

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lama_core.errors import UserError
from lama_core.models.conversion.gguf_tokenizer import read_tokenizer
from lama_core.models.model_folder import WEIGHTS
from lama_core.process_limits import limit_cpu, limit_memory

# Limits of memory in bytes and of CPU time in seconds, as (per byte of the file, constant). 2-bit
# weights grow sixteenfold, and memory holds them twice.
MEMORY = (40, 3 << 30)
CPU_SECONDS = (1 / 1_000_000, 60)
ALONE = "model.gguf"
EXPANSION = 2  # raised when a file's expansion changes, so that it is expanded again
TENSOR = re.compile(r"tensor (\d+) of (\d+)")


def expand(gguf: Path, folder: Path) -> None:
    """Write a GGUF file's weights as float32 safetensors, with its tokenizer, to a folder.

    The file is linked into an empty folder first, so that no other file in its folder is read.
    """
    import torch
    from safetensors.torch import save_model
    from transformers import (
        AutoModelForCausalLM,
        PreTrainedTokenizerFast,
        modeling_gguf_pytorch_utils,
    )

    with tempfile.TemporaryDirectory() as alone:
        link = Path(alone, ALONE)
        link.symlink_to(gguf.resolve())
        # transformers' own reader of these tokenizers splits some texts in another way.
        tokenizer, settings = read_tokenizer(link)
        # transformers shows a progress bar of the tensors: replace it with lines.
        vars(modeling_gguf_pytorch_utils)["tqdm"] = _each_reported
        model = AutoModelForCausalLM.from_pretrained(
            alone, gguf_file=ALONE, dtype=torch.float32, trust_remote_code=False
        )
        # transformers refuses to save weights from GGUF, although they are plain float32 now.
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, **settings).save_pretrained(folder)
        model.config.save_pretrained(folder)
        save_model(model, str(folder / WEIGHTS), metadata={"format": "pt"})
        _sort_metadata(folder / WEIGHTS)


def _sort_metadata(path: Path) -> None:
    """Sort the metadata in the header of a safetensors file.

    safetensors writes them in an order that changes from process to process. A model's identity is
    a digest of its files.
    """
    with path.open("r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode().ljust(size)
        if len(text) != size:
            raise ValueError(f"The header of {path} has another form than safetensors writes.")
        file.seek(8)
        file.write(text)


def _each_reported(tensors: Sequence[Any], **_: object) -> Iterator[Any]:
    """Yield the tensors and print a line after each is expanded."""
    for number, tensor in enumerate(tensors, start=1):
        yield tensor
        print(f"tensor {number} of {len(tensors)}", flush=True)


if __name__ == "__main__":
    # Limited by the file's size, if the system supports it.
    for limit, (each, least) in ((limit_memory, MEMORY), (limit_cpu, CPU_SECONDS)):
        limit(int(each * Path(sys.argv[1]).stat().st_size + least))
    try:
        expand(Path(sys.argv[1]), Path(sys.argv[2]))
    except UserError as error:
        sys.exit(str(error))
