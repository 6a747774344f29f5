"""Export of a trained model to a folder for `AutoModelForMaskedLM.from_pretrained`."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from lama_core.metrics.word_counts import COUNTS_FILE

WEIGHTS_FILE = "model.safetensors"
STORED_DTYPE = torch.float16
COMPUTED_DTYPE = "float32"
CALL_OPTIONS = (
    "is_local",
    "local_files_only",
    "max_length",
    "stride",
    "pad_to_multiple_of",
    "truncation_side",
    "truncation_strategy",
)


def export_model(model: Any, tokenizer: Any, folder: Path, *, counts: Path | None) -> Path:
    """Write weights (fp16), config, tokenizer and corpus counts; return the folder.

    Only the stored weights have half precision: the config has float32 as the dtype for loading.
    Files are moved to `folder` after all of them were written; other files there, such as a model
    card, are kept.
    """
    partial = folder.with_name(f".partial-{folder.name}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    weights = load_file(partial / WEIGHTS_FILE)
    halves = {name: value.to(STORED_DTYPE).contiguous() for name, value in weights.items()}
    save_file(halves, partial / WEIGHTS_FILE, metadata={"format": "pt"})
    config = json.loads((partial / "config.json").read_text(encoding="utf-8"))
    config["dtype"] = COMPUTED_DTYPE
    config.pop("_name_or_path", None)
    config["architectures"] = [type(model).__name__]
    (partial / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    _tidy_tokenizer(partial)
    if counts is not None:
        shutil.copyfile(counts, partial / COUNTS_FILE)
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(partial.iterdir()):
        path.chmod(0o644)
        path.replace(folder / path.name)
    partial.rmdir()
    return folder


def round_to_stored(model: torch.nn.Module) -> None:
    """Round the weights in place to the exported precision, to evaluate what is exported."""
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(value.to(STORED_DTYPE))


def _tidy_tokenizer(folder: Path) -> None:
    """Remove the encoder's `CALL_OPTIONS`, truncation and padding from the stored tokenizer."""
    config_file, file = folder / "tokenizer_config.json", folder / "tokenizer.json"
    config = json.loads(config_file.read_text(encoding="utf-8"))
    kept = {key: value for key, value in config.items() if key not in CALL_OPTIONS}
    config_file.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    tokenizer = json.loads(file.read_text(encoding="utf-8"))
    tokenizer["truncation"] = tokenizer["padding"] = None
    file.write_text(json.dumps(tokenizer, ensure_ascii=False) + "\n", encoding="utf-8")
