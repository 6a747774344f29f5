"""Export of a trained model to a folder for `AutoModelForMaskedLM.from_pretrained`."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

CALL_OPTIONS = (
    "is_local",
    "local_files_only",
    "max_length",
    "stride",
    "pad_to_multiple_of",
    "truncation_side",
    "truncation_strategy",
)


def export_model(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write weights (fp16), config and tokenizer.

    Only the stored weights have half precision: the config has float32 as the dtype for loading.
    The tokenizer is stored without the encoder's `CALL_OPTIONS`, truncation and padding.
    """
    deepcopy(model).half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    options = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    stored = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    written = {
        "config.json": config | {"dtype": "float32"},
        "tokenizer_config.json": {k: v for k, v in options.items() if k not in CALL_OPTIONS},
    }
    for name, content in written.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    text = json.dumps(stored | {"truncation": None, "padding": None}, ensure_ascii=False)
    (folder / "tokenizer.json").write_text(text + "\n", encoding="utf-8")
