"""`python -m lama_core.models.expand_gguf FILE FOLDER`: a GGUF file as a model folder.

Each finished step is a line on standard output, so that the caller can show how far it is.
"""

import sys
from pathlib import Path

STEPS = ("libraries loaded", "tokenizer read", "weights expanded", "files written")


def expand(gguf: Path, folder: Path) -> None:
    """Write the weights of a GGUF file as 32-bit safetensors, with its tokenizer, to a folder."""
    import torch
    from safetensors.torch import save_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    _report(0)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    _report(1)
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


def _report(step: int) -> None:
    print(STEPS[step], flush=True)


if __name__ == "__main__":
    expand(Path(sys.argv[1]), Path(sys.argv[2]))
