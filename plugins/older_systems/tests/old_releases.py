"""Tiny releases of the papers' older systems in `releases`, in the released files' form.

The weights are random; `expected.json` is what the systems' original code answers to some texts:
pytorch-pretrained-bert 0.6.2 for Transformer-XL, fairseq 0.12 for fconv, and for ELMo an
implementation that equals TensorFlow's to 1e-6. Left context; of ELMo, a text read `passes` times.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

RELEASES = Path(__file__).with_name("releases")
WORDS = tuple((RELEASES / "elmo" / "vocab.txt").read_text(encoding="utf-8").split()[3:])


def make_release(name: str, folder: Path, **changed: Any) -> None:
    """Write a release. changed: of Transformer-XL's configuration."""
    shutil.copytree(RELEASES / name, folder)
    if changed:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps(config | changed), encoding="utf-8")


def _maker(name: str) -> Callable[..., None]:
    return lambda folder, **changed: make_release(name, folder, **changed)


make_elmo, make_transformer_xl, make_fconv = map(_maker, ("elmo", "transformer-xl", "fconv"))
