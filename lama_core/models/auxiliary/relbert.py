"""RelBERT: one vector for a pair of words; pairs with similar relations have similar vectors.

A RelBERT model's configuration contains its prompt, such as "... the relation between <subj> and
<obj> : <subj> is the <mask> of <obj>", and how the last layer's states are pooled: `average` is
their mean over all tokens except padding (special tokens included), `average_no_mask` the mean
without the mask token, `mask` the mask token's state. Source: Ushio et al. 2021, Distilling
Relation Embeddings from Pre-trained Language Models, and its released code.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.models.cache import load_auxiliary
from lama_core.models.devices import HasDevice, device_of, one_device, run_in_passes, to_cpu
from lama_core.models.registry import LOCAL, read_folder
from lama_core.models.sources.catalog import Entry
from lama_core.models.sources.locations import LocatedModel
from lama_core.progress import OnProgress, ignore

ROWS_PER_BATCH = 64
MAX_TOKENS = 64  # as in the training of the released models
MODES = ("average", "average_no_mask", "mask")


class RelBert(HasDevice):
    """Relation embeddings of word pairs.

    name: the user's name for the model. identity: digest of the weights. template: the prompt, with
    <subj>, <obj> and <mask>.
    """

    def __init__(self, name: str, model: Any, tokenizer: Any, *, identity: str) -> None:
        settings = getattr(model.config, "relbert_config", None)
        if not isinstance(settings, dict) or "template" not in settings:
            raise UserError(
                f"Not a RelBERT model: the config.json of {name} has no prompt (relbert_config)."
            )
        self.mode = str(settings.get("mode", settings.get("aggregation_mode", "average_no_mask")))
        if self.mode not in MODES:
            raise UserError(
                f"{name}: unsupported pooling {self.mode!r}. Supported: {', '.join(MODES)}."
            )
        self.name = name
        self.identity = identity
        self.template = str(settings["template"])
        self.model = model.eval()
        self.tokenizer = tokenizer

    def missing(self, words: Iterable[str]) -> tuple[str, ...]:
        """Return an empty tuple: RelBERT accepts any word."""
        return ()

    def pair_vectors(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Relation embeddings, float32 [pair, dim]."""
        chunks = run_in_passes(self._embed, pairs, ROWS_PER_BATCH)
        return torch.cat(chunks).numpy() if chunks else np.zeros((0, 0), np.float32)

    def _embed(self, pairs: Sequence[tuple[str, str]]) -> torch.Tensor:
        encoded = self.tokenizer(
            [self._prompt(head, tail) for head, tail in pairs],
            padding=True,
            truncation=True,
            max_length=MAX_TOKENS,
            return_tensors="pt",
        )
        ids, attention = encoded["input_ids"], encoded["attention_mask"]
        is_mask = ids == self.tokenizer.mask_token_id
        weights = attention.bool()
        if self.mode == "average_no_mask":
            weights = weights & ~is_mask
        elif self.mode == "mask":
            weights = is_mask
        device = device_of(self.model)
        with torch.inference_mode():
            output = self.model(input_ids=ids.to(device), attention_mask=attention.to(device))
        states = to_cpu(output.last_hidden_state.float())
        shares = weights.float().unsqueeze(2)
        return (states * shares).sum(1) / shares.sum(1)

    def _prompt(self, head: str, tail: str) -> str:
        """Return the prompt for a pair, with all slots filled in one pass.

        A word such as "<obj>" is therefore never read as a slot.
        """
        words = {"<subj>": head, "<obj>": tail, "<mask>": str(self.tokenizer.mask_token)}
        return re.sub("<(subj|obj|mask)>", lambda slot: words[slot[0]], self.template)


def load_relbert(reference: str, *, on_progress: OnProgress = ignore) -> RelBert:
    """Return a RelBERT model by hub name or folder; load it unless it is cached.

    Raises UserError if it is unavailable, not an encoder, or has no prompt.
    """
    return load_auxiliary(reference, "RelBERT", partial(_read, reference), on_progress)


def _read(name: str, _entry: Entry, located: LocatedModel) -> RelBert:
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = (
        read_folder(located.folder, partial(auto.from_pretrained, located.folder, **LOCAL))
        for auto in (AutoModel, AutoTokenizer)
    )
    if tokenizer.mask_token_id is None:
        raise UserError(f"{name}: its tokenizer has no mask token, which the prompt needs.")
    return RelBert(name, model.to(one_device()), tokenizer, identity=located.identity)
