"""Tokenizers read without transformers: a tokenizer.json needs only the library tokenizers."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lama_core.files import read_file
from lama_core.models.model_folder import CHAT_TEMPLATE, TOKENIZER_CONFIG, read_json

SPECIAL = (
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token",
)  # fmt: skip


class Encoding(dict[str, Any]):
    """A tokenizer's output. words: for each text, the number of the word that each token is in."""

    words: list[list[int | None]]

    def word_ids(self, number: int = 0) -> list[int | None]:
        """Return the number of the word that each token is in; None for special tokens."""
        return self.words[number]


class FastTokenizer:
    """A tokenizer with the names and methods of transformers' that backends use.

    Each name of SPECIAL, such as `eos_token`, is an attribute with the token as text, or None;
    `eos_token_id` is its id. special_tokens_map: these tokens by name. all_special_tokens: these,
    each once. chat_template: Jinja text, or None.
    """

    is_fast = True

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without the lock, which can't be sent to another process."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def __init__(
        self, backend: Any, config: Mapping[str, Any], chat_template: str | None = None
    ) -> None:
        """Wrap a `tokenizers.Tokenizer`. config: the content of tokenizer_config.json."""
        backend.no_truncation()
        backend.no_padding()
        self.backend_tokenizer = backend
        self.chat_template = chat_template
        self.model_max_length = config["model_max_length"]
        self.special_tokens_map: dict[str, str] = {}
        for name in SPECIAL:
            setattr(self, name, config.get(name))
            setattr(self, f"{name}_id", None)
            if (token := config.get(name)) is not None:
                setattr(self, f"{name}_id", backend.token_to_id(token))
                self.special_tokens_map[name] = token
        self.all_special_tokens = list(dict.fromkeys(self.special_tokens_map.values()))
        self.all_special_ids = [backend.token_to_id(token) for token in self.all_special_tokens]
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self.backend_tokenizer.get_vocab_size(with_added_tokens=True)

    def __call__(
        self,
        text: str | Sequence[str],
        *,
        add_special_tokens: bool = True,
        split_special_tokens: bool = False,
        return_offsets_mapping: bool = False,
        verbose: bool = True,
    ) -> Encoding:
        """Return `input_ids` and optionally `offset_mapping`; for several texts, lists of them."""
        texts = [text] if isinstance(text, str) else list(text)
        backend = self.backend_tokenizer
        with self._lock:  # the backend's setting is shared by sessions
            backend.encode_special_tokens = split_special_tokens
            # Without offsets, the tokens are the same in three quarters of the time.
            encode = backend.encode_batch if return_offsets_mapping else backend.encode_batch_fast
            encoded = encode(texts, add_special_tokens=add_special_tokens)
        result = Encoding(input_ids=[encoding.ids for encoding in encoded])
        if return_offsets_mapping:
            result["offset_mapping"] = [encoding.offsets for encoding in encoded]
        if isinstance(text, str):
            result = Encoding({name: values[0] for name, values in result.items()})
        result.words = [encoding.word_ids for encoding in encoded]
        return result

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """Return the text of tokens."""
        return self.backend_tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens)

    def convert_ids_to_tokens(self, ids: int | Sequence[int]) -> Any:
        """Return the token of an id, or a list of tokens."""
        if isinstance(ids, int):
            return self.backend_tokenizer.id_to_token(ids)
        return [self.backend_tokenizer.id_to_token(number) for number in ids]

    def get_vocab(self) -> dict[str, int]:
        """Return the id of each token."""
        return dict(self.backend_tokenizer.get_vocab(with_added_tokens=True))


def read_tokenizer(folder: Path) -> FastTokenizer:
    """Return the tokenizer of a folder whose digest the catalogue has."""
    from tokenizers import Tokenizer

    text = read_file(folder / "tokenizer.json").decode()
    template = folder / CHAT_TEMPLATE
    chat_template = read_file(template).decode() if template.exists() else None
    return FastTokenizer(
        Tokenizer.from_str(text), read_json(folder / TOKENIZER_CONFIG), chat_template
    )
