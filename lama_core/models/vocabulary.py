"""A tokenizer's tokens as words, for WordPiece, byte-level BPE and SentencePiece alike.

A token begins a word if it has no `##` prefix (WordPiece), or if a space (`Ġ`, byte-level BPE) or
`▁` (SentencePiece) is in front. All other tokens continue the word on their left and are shown with
a leading hyphen (`CONTINUATION`).
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.spelling import AFTER_SPACE, START, Place
from lama_core.grouping import grouped
from lama_core.models.protocols import Statement

CONTINUATION = "‑"  # a non-breaking hyphen, as dictionaries mark a suffix
METASPACE = "▁"
# A text with a space in front is tokenized after this word, because a text begins with a space
# nowhere else.
ANCHOR = "a"
# Number of words that are tokenized as one text.
WORDS_PER_TEXT = 256
# The sentinel, which replaces a hidden span in T5's family; in mT5 it is an ordinary token.
SENTINEL = re.compile(rf"{METASPACE}?<extra_id_(\d+)>")


@dataclass(frozen=True, slots=True)
class TextTokens:
    """A text as tokens, without special tokens.

    words: int64 [token], the number of the word that each token is in; -1 for none. marked: bool
    [token], whether the token contains a character of the answer (or of another given span).
    """

    ids: tuple[int, ...]
    words: NDArray[np.int64]
    marked: NDArray[np.bool_]

    @classmethod
    def of(
        cls, ids: list[int], words: Sequence[int | None], spans: Any, start: int, end: int
    ) -> "TextTokens":
        """Make one from a tokenizer's output; mark tokens with a character in [start, end)."""
        places = np.array(spans, dtype=np.int64).reshape(-1, 2)
        marked = (places[:, 0] < end) & (places[:, 1] > start)
        numbers = [-1 if word is None else word for word in words]
        return cls(tuple(ids), np.array(numbers, dtype=np.int64), marked)


class TokenVocabulary:
    """The words that are single tokens of a Hugging Face fast tokenizer.

    tokenizer: a `PreTrainedTokenizerFast`. size: width of the model's output distribution, which
    may be larger (padding) or smaller than the tokenizer's vocabulary. style: how a token shows
    that it begins a word: `wordpiece`, `bytes`, `metaspace`, or `suffix` if tokens mark its end,
    as in OpenAI's first GPT.
    """

    def __init__(self, tokenizer: Any, size: int) -> None:
        self._tokenizer = tokenizer
        self.size = size
        self._backend = json.loads(tokenizer.backend_tokenizer.to_str())
        self._backend["model"].pop("vocab")  # megabytes that the tokenizer has already
        parts = json.dumps([self._backend.get("decoder"), self._backend.get("pre_tokenizer")])
        self.style = "bytes" if '"ByteLevel"' in parts else "metaspace"
        if self._backend["model"].get("end_of_word_suffix"):
            self.style = "suffix"
        if self._backend["model"]["type"] == "WordPiece":
            self.style = "wordpiece"
        self.columns: dict[Any, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for another process, without what was looked up so far."""
        return vars(self) | {"columns": {}}

    def entry(self, token_id: int) -> tuple[str, bool]:
        """Return a token's text and whether it begins a word; control tokens have no text."""
        return self._entries.get(token_id, ("", False))

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids of control tokens."""
        special = {
            entry["id"] for entry in self._backend.get("added_tokens", []) if entry["special"]
        }
        return frozenset(special.union(self._tokenizer.all_special_ids, self.sentinels))

    @cached_property
    def sentinels(self) -> tuple[int, ...]:
        """Ids of `<extra_id_0>`, `<extra_id_1>`, ...; empty for models without sentinels."""
        found = {
            int(match[1]): number
            for token, number in self._tokenizer.get_vocab().items()
            if (match := SENTINEL.fullmatch(token)) and number < self.size
        }
        return tuple(found[place] for place in sorted(found))

    @cached_property
    def lacking(self) -> tuple[str, ...]:
        """The tokenizer's tokens that the model's output doesn't have."""
        return tuple(
            token for token, number in self._tokenizer.get_vocab().items() if number >= self.size
        )

    @cached_property
    def frame(self) -> tuple[list[int], list[int]]:
        """Ids of the special tokens that the tokenizer puts before and after every text."""
        plain = self._tokenizer("a", add_special_tokens=False)["input_ids"]
        framed = self._tokenizer("a")["input_ids"]
        start = next(
            number for number in range(len(framed)) if framed[number : number + len(plain)] == plain
        )
        return framed[:start], framed[start + len(plain) :]

    @cached_property
    def special_texts(self) -> tuple[str, ...]:
        """Control tokens as text; `encode` escapes them in a user's text."""
        added = {entry["content"] for entry in self._backend.get("added_tokens", [])}
        written = {
            sentinel.removeprefix(METASPACE)
            for sentinel in self._tokenizer.convert_ids_to_tokens(list(self.sentinels))
        }
        return tuple(sorted(added | written | set(self._tokenizer.all_special_tokens)))

    @cached_property
    def _entries(self) -> dict[int, tuple[str, bool]]:
        """Token id -> (text, whether it begins a word), without special tokens."""
        from tokenizers.decoders import ByteLevel  # importing takes 0.2 s

        suffix = self._backend["model"].get("end_of_word_suffix") or ""
        added = {entry["id"]: entry for entry in self._backend.get("added_tokens", [])}
        prefix = self._backend["model"].get("continuing_subword_prefix") or "##"
        bytes_of_tokens = ByteLevel()
        entries: dict[int, tuple[str, bool]] = {}
        for token, number in sorted(
            self._tokenizer.get_vocab().items(), key=lambda entry: entry[1]
        ):
            if number >= self.size or number in self.special_ids:
                continue
            if number in added:  # written as text in every style
                begins = added[number]["lstrip"] or self.style in ("wordpiece", "suffix")
                begins, text = begins or token.startswith(" "), token.removeprefix(" ")
            elif self.style == "wordpiece":
                begins = not token.startswith(prefix)
                text = token if begins else token.removeprefix(prefix)
            elif self.style == "suffix":
                begins, text = token.endswith(suffix), token.removesuffix(suffix)
            elif self.style == "bytes":
                text = bytes_of_tokens.decode([token])
                begins, text = text.startswith(" "), text.removeprefix(" ")
            else:
                begins, text = token.startswith(METASPACE), token.removeprefix(METASPACE)
            entries[number] = (text, begins)
        return entries

    @cached_property
    def cased(self) -> bool:
        """Whether the tokenizer keeps capital letters; found by tokenizing a text."""
        ids = self._tokenizer("Paris A", add_special_tokens=False)["input_ids"]
        text = "".join(self._tokenizer.convert_ids_to_tokens(ids))
        return "P" in text or "A" in text

    def tokens(self) -> dict[int, str]:
        """Return all tokens except special ones, as displayed; continuations are marked."""
        return {number: self.show(number) for number in self._entries}

    def show(self, token_id: int) -> str:
        """Return a token as displayed; continuations are marked, control tokens unchanged.

        A token of only spaces or control characters is shown as Unicode escapes.
        """
        if token_id not in self._entries:
            return str(self._tokenizer.convert_ids_to_tokens(int(token_id)))
        return shown(*self._entries[token_id])

    def show_text(self, token_ids: Sequence[int]) -> tuple[str, ...]:
        """Return a text's tokens as displayed; the first isn't marked as a continuation."""
        found = [self.show(token) for token in token_ids]
        return (*(text.removeprefix(CONTINUATION) for text in found[:1]), *found[1:])

    def single_words(self) -> tuple[str, ...]:
        """Return the words that are one token after a space, in the order of their ids."""
        return self._single_words

    @cached_property
    def _single_words(self) -> tuple[str, ...]:
        words = list(self._spaced)
        return tuple(
            word
            for word, ids in zip(words, self.own_tokens(words, AFTER_SPACE), strict=True)
            if ids == self._spaced[word]
        )

    @cached_property
    def _spaced(self) -> dict[str, tuple[int, ...]]:
        """Text -> the first token that begins a word and has this text."""
        forms: dict[str, tuple[int, ...]] = {}
        for number, (text, begins) in self._entries.items():
            if begins and text and text.strip() == text:
                forms.setdefault(text, (number,))
        return forms

    def case_variants(self, word: str, place: Place) -> tuple[str, ...]:
        """Return the spellings among the tokens that are this word in lower case.

        After a space, only those of tokens that begin a word.
        """
        if not self.cased:
            return (word,)
        known = self._variants if place.left == " " else self._all_variants
        return known.get(word, ())

    @cached_property
    def _variants(self) -> dict[str, tuple[str, ...]]:
        return by_lower_case(self._spaced)

    @cached_property
    def _all_variants(self) -> dict[str, tuple[str, ...]]:
        texts = (text for text, _ in self._entries.values())
        return by_lower_case(text for text in texts if text and text.strip() == text)

    def own_tokens(self, words: Sequence[str], place: Place) -> list[tuple[int, ...]]:
        """Return each word's tokens at this place; () if a token is shared with a neighbour.

        The word is tokenized together with the text that touches it; the tokens of the text on its
        left and of the text on its right must be there, too.
        """
        if place.right:
            alone = self.own_tokens(words, Place(place.left))
            both = self._follow(place.left, [word + place.right for word in words])[0]
            after = tuple(self.encode_after(place.right))
            return [
                ids if longer == (*ids, *after) else ()
                for ids, longer in zip(alone, both, strict=True)
            ]
        known = self._checked(words) if place == AFTER_SPACE else {}
        others = [word for word in words if word not in known]
        followed, last = self._follow(place.left, others) if others else ([], None)
        if last == self._tokenizer.unk_token_id:  # it may cover the beginning of the word, too
            followed = [
                ids if self.can_write(word) else ()
                for word, ids in zip(others, followed, strict=True)
            ]
        found = known | dict(zip(others, followed, strict=True))
        return [found[word] for word in words]

    def _follow(self, left: str, texts: Sequence[str]) -> tuple[list[tuple[int, ...]], int | None]:
        """Return the tokens of each text after another, and the last token of the other.

        () for a text that shares a token with the other.
        """
        left = (ANCHOR if left.startswith(" ") else "") + left
        before = self.encode(left.rstrip())
        found = self._encode_all([left + text for text in texts])
        followed = [
            tuple(ids[len(before) :]) if ids[: len(before)] == before else () for ids in found
        ]
        return followed, before[-1] if before else None

    def _checked(self, words: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """Return the words after a space that the tokenizer writes with a token of their text.

        They are tokenized as long texts, which is faster than one by one; a text with another word
        in it gives none.
        """
        known = self._spaced
        likely = [word for word in words if word in known]
        parts = [likely[n : n + WORDS_PER_TEXT] for n in range(0, len(likely), WORDS_PER_TEXT)]
        texts = self._encode_all([" ".join((ANCHOR, *part)) for part in parts])
        before = self.encode(ANCHOR)
        return {
            word: known[word]
            for part, ids in zip(parts, texts, strict=True)
            if ids == [*before, *(known[word][0] for word in part)]
            for word in part
        }

    def _encode_all(self, texts: list[str]) -> list[list[int]]:
        """Return `encode` of each text."""
        ids = token_ids(self._tokenizer, texts, frame=False, split_special=True)
        return [
            found if self._control_ids.isdisjoint(found) else self._split(self._escaped(text))
            for text, found in zip(texts, ids, strict=True)
        ]

    def pieces(self, word: str, place: Place = AFTER_SPACE) -> tuple[int, ...]:
        """Return the token ids of a word at this place.

        If it shares a token with a neighbour, they are those that it has without the neighbour.
        """
        for at in dict.fromkeys((place, Place(place.left), START)):
            if own := self.own_tokens([word], at)[0]:
                return own
        return ()

    def can_predict(self, token_id: int) -> bool:
        """Whether a token is a word or a part of one, and in the model's output."""
        return token_id in self._entries and token_id != self._tokenizer.unk_token_id

    def can_write(self, word: str) -> bool:
        """Whether a word has tokens, and none of them is the unknown token."""
        pieces = self.pieces(word)
        return bool(pieces) and self._tokenizer.unk_token_id not in pieces

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, without special tokens; control tokens in it count as text."""
        ids = self._split(text)
        return ids if self._control_ids.isdisjoint(ids) else self._split(self._escaped(text))

    def _escaped(self, text: str) -> str:
        """Return the text with a space inside each control token, so that it is read as text.

        SentencePiece vocabularies need this: they list control tokens as ordinary tokens.
        """
        for special in self.special_texts:
            text = text.replace(special, f"{special[:1]} {special[1:]}")
        return text

    def read(self, statements: Sequence[Statement]) -> list[TextTokens]:
        """Return each statement's tokens, each with its word and whether it is in the answer.

        Words are the parts into which the tokenizer splits a text before it makes subword tokens.
        """
        read = []
        encodings = self._read([statement.text for statement in statements])
        for statement, encoding in zip(statements, encodings, strict=True):
            text, ends = statement.text, (statement.start, statement.end)
            if not self._control_ids.isdisjoint(encoding[0]):
                (encoding,) = self._read([self._escaped(text)])
                ends = len(self._escaped(text[: ends[0]])), len(self._escaped(text[: ends[1]]))
            read.append(TextTokens.of(*encoding, *ends))
        return read

    def _read(self, texts: Sequence[str]) -> Iterator[tuple[list[int], list[int | None], Any]]:
        """Yield the ids, words and character spans of each text's tokens."""
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
        """Like `encode`, for a text that follows a word without a space."""
        if not text:
            return []
        for anchor in self._anchors:
            whole, word = self.encode(anchor + text), self.encode(anchor)
            if whole[: len(word)] == word:
                return whole[len(word) :]
        return self.encode(text)

    @cached_property
    def _anchors(self) -> tuple[str, ...]:
        """Words that a text may follow: one of them shares no token with most texts."""
        return (ANCHOR, *sorted(filter(str.isalpha, self._spaced), key=len, reverse=True)[:8])

    def _split(self, text: str) -> list[int]:
        encoded = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True)
        return list(encoded["input_ids"])

    @cached_property
    def _control_ids(self) -> frozenset[int]:
        """Ids that `encode` must not return: control tokens except the unknown token."""
        return self.special_ids - {self._tokenizer.unk_token_id}


def shown(text: str, begins: bool) -> str:
    """Return the text of a token as displayed. begins: whether the token begins a word."""
    if not text.strip() or not text.isprintable():
        text = text.encode("unicode_escape").decode("ascii") if text else "␠"
        text = text.replace(" ", "␠")
    joins = not begins and any(character.isalnum() for character in text)
    return CONTINUATION + text if joins else text


def by_lower_case(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the distinct texts by their lower case."""
    found = grouped((text.lower(), text) for text in dict.fromkeys(texts))
    return {lower: tuple(variants) for lower, variants in found.items()}


def token_ids(
    tokenizer: Any, texts: list[str], *, frame: bool = True, split_special: bool = False
) -> list[list[int]]:
    """Return the token ids of texts; transformers' own call takes half as long again.

    It also makes lists of masks, types and positions.

    Args:
        tokenizer: A tokenizer of transformers, or one with its names.
        texts: The texts.
        frame: Whether to add the tokens with which the tokenizer frames a text.
        split_special: Whether control tokens in the texts are read as text.
    """
    backend: Any = getattr(tokenizer, "_tokenizer", None)
    if not hasattr(backend, "encode_batch_fast"):
        settings = {"add_special_tokens": frame, "split_special_tokens": split_special}
        return tokenizer(texts, verbose=False, **settings)["input_ids"]
    backend.no_truncation()
    backend.no_padding()
    backend.encode_special_tokens = split_special
    return [encoding.ids for encoding in backend.encode_batch_fast(texts, add_special_tokens=frame)]
