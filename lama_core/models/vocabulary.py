"""A tokenizer's tokens as words, for WordPiece, byte-level BPE and SentencePiece alike.

A token writes a word when it can stand where a word begins: no `##` before it in WordPiece, a
space (`Ġ`) before it in byte-level BPE, a `▁` before it in SentencePiece. Anything else continues
the word on its left and is shown with a leading `CONTINUATION` sign.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.spelling import Place
from lama_core.models.protocols import Statement

CONTINUATION = "‑"  # a non-breaking hyphen, as dictionaries mark a suffix
METASPACE = "▁"
ANCHORS = (":", ".", "a")
# What stands for a span that is left out, in T5's family; mT5's is a piece of its vocabulary.
SENTINEL = re.compile(rf"{METASPACE}?<extra_id_(\d+)>")


@dataclass(frozen=True, slots=True)
class TextTokens:
    """A text as tokens, without special ones. words: int64 [token], which word each belongs to.

    marked: bool [token], whether it has a character of the part that was marked.
    """

    ids: tuple[int, ...]
    words: NDArray[np.int64]
    marked: NDArray[np.bool_]

    @classmethod
    def of(
        cls, ids: list[int], words: list[int | None], spans: Any, start: int, end: int
    ) -> "TextTokens":
        """What a tokenizer gives of a text whose characters start..end are marked."""
        places = np.array(spans, dtype=np.int64).reshape(-1, 2)
        marked = (places[:, 0] < end) & (places[:, 1] > start)
        numbers = [-1 if one is None else one for one in words]
        return cls(tuple(ids), np.array(numbers, dtype=np.int64), marked)


class TokenVocabulary:
    """The words that a Hugging Face fast tokenizer has as tokens.

    tokenizer: a `PreTrainedTokenizerFast`. size: the width of the model's output distribution,
    which may be larger than the tokenizer's vocabulary (padding) or smaller.
    """

    def __init__(self, tokenizer: Any, size: int) -> None:
        self._tokenizer = tokenizer
        self.size = size
        self._backend = json.loads(tokenizer.backend_tokenizer.to_str())
        self._backend["model"].pop("vocab")  # the tokenizer has it; a copy takes megabytes
        self._style = self._find_style()

    def _find_style(self) -> str:
        model = self._backend["model"]
        decoders = json.dumps([self._backend.get("decoder"), self._backend.get("pre_tokenizer")])
        if model["type"] == "WordPiece":
            return "wordpiece"
        if model.get("end_of_word_suffix"):
            return "suffix"
        if '"ByteLevel"' in decoders:
            return "bytes"
        return "metaspace"

    @property
    def marks_ends(self) -> bool:
        """Whether a token says that a word ends with it, as those of OpenAI's first GPT do."""
        return self._style == "suffix"

    def entry(self, token_id: int) -> tuple[str, bool]:
        """A token's text and whether it begins a word; no text for a control token."""
        return self._entries.get(token_id, ("", False))

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids that stand for control, not for text."""
        special = {
            entry["id"] for entry in self._backend.get("added_tokens", []) if entry["special"]
        }
        return frozenset(special.union(self._tokenizer.all_special_ids, self.sentinels))

    @cached_property
    def sentinels(self) -> tuple[int, ...]:
        """Ids of `<extra_id_0>`, `<extra_id_1>` and on; none of a model that wasn't trained so."""
        found = {
            int(match[1]): number
            for token, number in self._tokenizer.get_vocab().items()
            if (match := SENTINEL.fullmatch(token)) and number < self.size
        }
        return tuple(found[place] for place in sorted(found))

    @cached_property
    def frame(self) -> tuple[list[int], list[int]]:
        """The special tokens that the tokenizer puts before and after every text."""
        plain = self._tokenizer("a", add_special_tokens=False)["input_ids"]
        framed = self._tokenizer("a")["input_ids"]
        start = next(
            number for number in range(len(framed)) if framed[number : number + len(plain)] == plain
        )
        return framed[:start], framed[start + len(plain) :]

    @cached_property
    def special_texts(self) -> tuple[str, ...]:
        """How the control tokens are written; a user's text that holds one is escaped."""
        added = {entry["content"] for entry in self._backend.get("added_tokens", [])}
        sentinels = self._tokenizer.convert_ids_to_tokens(list(self.sentinels))
        written = {sentinel.removeprefix(METASPACE) for sentinel in sentinels}
        return tuple(sorted(added | written | set(self._tokenizer.all_special_tokens)))

    @cached_property
    def _entries(self) -> dict[int, tuple[str, bool]]:
        """Token id -> (text, whether it begins a word), special tokens and lone bytes left out."""
        from tokenizers.decoders import ByteLevel  # a fifth of a second: only for a model

        suffix = self._backend["model"].get("end_of_word_suffix") or ""
        prefix = self._backend["model"].get("continuing_subword_prefix") or "##"
        bytes_of_tokens = ByteLevel()
        entries: dict[int, tuple[str, bool]] = {}
        for token, number in sorted(
            self._tokenizer.get_vocab().items(), key=lambda entry: entry[1]
        ):
            if number >= self.size or number in self.special_ids:
                continue
            if self._style == "wordpiece":
                begins = not token.startswith(prefix)
                text = token if begins else token.removeprefix(prefix)
            elif self._style == "suffix":
                begins, text = token.endswith(suffix), token.removesuffix(suffix)
            elif self._style == "bytes":
                text = bytes_of_tokens.decode([token])
                begins, text = text.startswith(" "), text.removeprefix(" ")
            else:
                begins, text = token.startswith(METASPACE), token.removeprefix(METASPACE)
            entries[number] = (text, begins)
        return entries

    @cached_property
    def cased(self) -> bool:
        """Whether capital letters survive: read off the normaliser by trying it."""
        ids = self._tokenizer("Paris A", add_special_tokens=False)["input_ids"]
        text = "".join(self._tokenizer.convert_ids_to_tokens(ids))
        return "P" in text or "A" in text

    def tokens(self) -> dict[int, str]:
        """Every token but the special ones, as it is shown; a continuation piece is marked."""
        return {number: self.show(number) for number in self._entries}

    def show(self, token_id: int) -> str:
        """One token as a person reads it, a continuation piece marked, control tokens as written.

        A token of nothing but spaces or control characters is shown by its Unicode escapes.
        """
        if token_id not in self._entries:
            return str(self._tokenizer.convert_ids_to_tokens(int(token_id)))
        text, begins = self._entries[token_id]
        if not text.strip() or not text.isprintable():
            text = text.encode("unicode_escape").decode("ascii") if text else "␠"
            text = text.replace(" ", "␠")
        joins = not begins and any(character.isalnum() for character in text)
        return CONTINUATION + text if joins else text

    def show_text(self, token_ids: Sequence[int]) -> tuple[str, ...]:
        """The tokens of a text as a person reads them; the first continues nothing."""
        shown = [self.show(token) for token in token_ids]
        if shown:
            shown[0] = shown[0].removeprefix(CONTINUATION)
        return tuple(shown)

    def forms(self, place: Place) -> dict[str, tuple[int, ...]]:
        """Every word that is one token in this place, with the ids of the tokens that write it."""
        return self._spaced if place == "after space" else self._open

    @cached_property
    def _spaced(self) -> dict[str, tuple[int, ...]]:
        forms: dict[str, tuple[int, ...]] = {}
        for number, (text, begins) in self._entries.items():
            if begins and text and text.strip() == text:
                forms.setdefault(text, (number,))  # an id that repeats a word is never produced
        return forms

    @cached_property
    def _open(self) -> dict[str, tuple[int, ...]]:
        if self._style not in ("bytes", "metaspace"):
            return self._spaced
        forms: dict[str, tuple[int, ...]] = {}
        for number, (text, _) in self._entries.items():
            if text and text.strip() == text:
                forms[text] = (*forms.get(text, ()), number)
        return forms

    def pieces(self, word: str, place: Place = "after space") -> tuple[int, ...]:
        """The ids of the tokens that the tokenizer makes of a word in running text.

        The word is tokenised behind an anchor that is then cut off, so that the tokenizer sees it
        where it will stand. Raises ValueError if no anchor can be cut off.
        """
        known = self.forms(place).get(word)
        if known:
            return known[:1]
        if place == "open" and self._style == "bytes":
            return tuple(self.encode(word))
        for anchor in ANCHORS:
            before = self.encode(anchor)
            whole = self.encode(f"{anchor} {word}")
            if whole[: len(before)] == before:
                return tuple(whole[len(before) :])
        raise ValueError(f"no anchor can be cut off before {word!r}")

    def can_write(self, word: str) -> bool:
        """Whether its pieces say the whole word: there are any, and none is the unknown token."""
        pieces = self.pieces(word)
        return bool(pieces) and self._tokenizer.unk_token_id not in pieces

    def encode(self, text: str) -> list[int]:
        """Token ids of a plain text, without special tokens; control tokens in it are text."""
        ids = self._split(text)
        return ids if self._control_ids.isdisjoint(ids) else self._split(self._escaped(text))

    def _escaped(self, text: str) -> str:
        """A text whose control tokens are text.

        A SentencePiece vocabulary lists its control tokens among the pieces, so that splitting
        them is not enough: a space inside makes them text.
        """
        for special in self.special_texts:
            text = text.replace(special, f"{special[:1]} {special[1:]}")
        return text

    def read(self, statements: Sequence[Statement]) -> list[TextTokens]:
        """Texts as `encode` gives them, their words, and which tokens hold the answer's characters.

        Words are the tokenizer's: what it splits a text into before it looks for pieces.
        """
        found = self._read([one.text for one in statements])
        return [
            self._escaped_tokens(one)
            if any(number in self._control_ids for number in ids)
            else TextTokens.of(ids, words, spans, one.start, one.end)
            for one, (ids, words, spans) in zip(statements, found, strict=True)
        ]

    def _escaped_tokens(self, one: Statement) -> TextTokens:
        """What is read of a text that holds control tokens."""
        ((ids, words, spans),) = self._read([self._escaped(one.text)])
        start, end = (len(self._escaped(one.text[:place])) for place in (one.start, one.end))
        return TextTokens.of(ids, words, spans, start, end)

    def _read(self, texts: Sequence[str]) -> Iterator[tuple[list[int], list[int | None], Any]]:
        """Ids, words and characters of each text's tokens."""
        if not texts:
            return
        found = self._tokenizer(
            list(texts),
            add_special_tokens=False,
            split_special_tokens=True,
            return_offsets_mapping=True,
        )
        for number, (ids, spans) in enumerate(
            zip(found["input_ids"], found["offset_mapping"], strict=True)
        ):
            yield ids, found.word_ids(number), spans

    def encode_after(self, text: str) -> list[int]:
        """Token ids of a text that follows a word without a break, as `encode` gives them."""
        if not text:
            return []
        whole, word = self.encode("a" + text), self.encode("a")
        return whole[len(word) :] if whole[: len(word)] == word else self.encode(text)

    def _split(self, text: str) -> list[int]:
        encoded = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True)
        return list(encoded["input_ids"])

    @cached_property
    def _control_ids(self) -> frozenset[int]:
        """Ids that no text may give; the unknown token stands for text."""
        return self.special_ids - {self._tokenizer.unk_token_id}
