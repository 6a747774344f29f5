"""Causal language models: any architecture of `AutoModelForCausalLM` with a fast tokenizer.

Context `left`: the distribution of the next word after what stands left of the blank
(Petroni et al. 2019, section 4.2). Context `both`: the best words by the left context are
rescored by the log-probability of the whole sentence, log P(left) dropped because it is common to
all, and normalised over them. The gold is rescored whatever its place.
Departure: A left-to-right model that sees both sides
"""

import copy
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import Place, place_of
from lama_core.models.devices import fitting, host, in_parts, once_each
from lama_core.models.hf.inspection import Inspected
from lama_core.models.hf.prefix_tree import MASKS_PER_PASS, Tree, padded, plan_trees
from lama_core.models.hf.transformer import (
    chosen_log_probs,
    first_place,
    log_normalisers,
    pack,
)
from lama_core.models.protocols import (
    Context,
    Encoded,
    Hiding,
    Kind,
    Scored,
    Scores,
    Statement,
    StatementScores,
    TokenScores,
    WordScore,
)
from lama_core.types import Query

ROWS_PER_PASS = 25
# Words rescored together: each pass reads all weights, and its logits are kept to 128 MB.
WORDS_PER_PASS = 100
FEWEST_WORDS = 10
LOGITS_PER_PASS = 1 << 25
# Of whole texts every token's are asked for, which a card must hold twice: 4 GB each in fp32.
LOGITS_OF_TEXTS = 1 << 30
# Tokens that a word is continued by.
MAX_PIECES = 8
T = TypeVar("T")


class CausalModel(Inspected):
    """Fills blanks with what stands left of them, and optionally right of them too.

    caches: whether what it keeps of a beginning can be gone on from; else all is computed anew.
    tree_reach: tokens of a tree of texts that it may be given at once; 0 if it can't read trees.
    logits_of_texts: how many are held of whole texts. masks_of_trees: how many cells the masks of
    trees hold that go through it together.
    """

    kind: Kind = "causal"
    caches = True
    tree_reach = 0
    logits_of_texts = LOGITS_OF_TEXTS
    masks_of_trees = MASKS_PER_PASS

    def framed(self, text: str) -> list[int]:
        """Token ids of a text as the model is given it: nothing stands behind it."""
        return [*self.vocabulary.frame[0], *self.text_ids(text)]

    def _left_ids(self, left: str) -> list[int]:
        ids = self.framed(left)
        if ids:
            return ids
        for token in (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id):
            if token is not None:
                return [token]
        raise ValueError(f"{self.name}: the tokenizer has no token to begin a text with")

    def text_range(self, encoded: Encoded) -> range:
        """What stands left of the blank, and the blank; it alone, where a text begins with it."""
        ids = encoded.token_ids
        empty = list(ids) == self._left_ids("")
        return range(len(ids) if empty else len(self.vocabulary.frame[0]), len(ids) + 1)

    def without(self, encoded: Encoded, at: int) -> Encoded:
        left = super().without(encoded, at)
        return left if left.token_ids else replace(left, token_ids=tuple(self._left_ids("")))

    def encode(self, query: Query, context: Context = "left") -> Encoded:
        if query.n_blanks != 1:
            raise ValueError("a causal model is asked one blank at a time")
        left, right = query.parts
        ids = self._left_ids(left.rstrip())
        suffix = right.rstrip() if context == "both" else ""
        n_suffix = len(self.vocabulary.encode_after(suffix)) if suffix else 0
        self.check_window(len(ids) + (1 + n_suffix if suffix else 0))
        return Encoded(tuple(ids), (len(ids) - 1,), (place_of(left),), suffix, n_suffix=n_suffix)

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        places: list[Place] = [query.places[0] for query in batch]
        logits = self.logits(*pack(batch))
        picked = self.pick(logits, places, columns)
        if not any(query.suffix for query in batch):
            return picked
        left = picked.log_probs
        log_probs = np.full_like(left, -np.inf)
        normalisers = np.zeros(len(batch), np.float32)
        suffixes = [
            self.vocabulary.encode_after(query.suffix) if query.suffix else [] for query in batch
        ]
        scored: dict[int, np.ndarray] = {}
        for row in sorted(range(len(batch)), key=lambda row: -len(suffixes[row])):
            query, suffix = batch[row], suffixes[row]
            if not suffix:
                log_probs[row] = left[row]
                continue
            best = np.argsort(-left[row], kind="stable")[: query.n_rescored]
            more = np.setdiff1d(np.array(query.rescored, dtype=best.dtype), best)
            best = np.concatenate([best, more])
            longer = next((n for n in scored if _goes_on_from(batch, suffixes, n, row)), None)
            if longer is None:
                forms = self._best_forms(logits[row], columns, places[row], best)
                scored[row] = self.suffix_log_probs(
                    list(query.token_ids),
                    [[form] for form in forms],
                    suffix,
                    n_last=len(more),
                    until=query.until,
                )
            of_tokens = scored[row if longer is None else longer]
            joint = left[row][best] + of_tokens[:, : len(suffix)].sum(1)
            done = ~np.isnan(joint)
            normalisers[row] = np.logaddexp.reduce(joint[done])
            log_probs[row, best[done]] = joint[done] - normalisers[row]
        return replace(picked, log_probs=log_probs, order=left, normaliser=normalisers)

    def continue_words(
        self, encoded: Sequence[Encoded], firsts: Sequence[Sequence[int]]
    ) -> list[str | None]:
        """The words that the model's own likeliest next tokens make of first tokens.

        They are taken as long as they go on with the word, or, after a capitalised word, are
        another one that is more likely than not: `New York`; none once the time is over.
        """
        if self.vocabulary.marks_ends:
            return [None] * len(firsts)  # its tokens say where a word ends
        several = {one.token_ids for one, forms in zip(encoded, firsts, strict=True) if forms[1:]}
        after = dict(zip(several, map(host, self._next(list(several))), strict=True))
        tokens = [
            forms[int(after[one.token_ids][list(forms)].argmax())] if forms[1:] else forms[0]
            for one, forms in zip(encoded, firsts, strict=True)
        ]
        begun = [self.vocabulary.entry(token)[0] for token in tokens]
        rows = [(*one.token_ids, token) for one, token in zip(encoded, tokens, strict=True)]
        words = list(begun)
        going = [number for number, word in enumerate(words) if word.strip()]
        until = min((one.until for one in encoded), default=math.inf)
        for _ in range(MAX_PIECES):
            if going and time.monotonic() > until:
                return [None] * len(firsts)
            going = [number for number in going if len(rows[number]) < self.max_tokens]
            nexts = [logits.softmax(0).max(0) for logits in self._next([rows[n] for n in going])]
            still = []
            for number, best in zip(going, nexts, strict=True):
                token, prob = int(host(best.indices)), float(host(best.values))
                more = self._goes_on(words[number], token, prob)
                if more:
                    words[number] += more
                    rows[number] = (*rows[number], token)
                    still.append(number)
            going = still
        words = [word.rstrip("-") for word in words]
        return [word if word != one else None for word, one in zip(words, begun, strict=True)]

    def _next(self, rows: Sequence[tuple[int, ...]]) -> Iterator[torch.Tensor]:
        """Logits of what comes after each row, float32 [vocabulary], a few rows at a time."""
        longest = max(map(len, rows), default=1)
        size = max(1, min(ROWS_PER_PASS, self.tokens_per_pass // longest))
        for first in range(0, len(rows), size):
            chunk = rows[first : first + size]
            yield from self.logits(chunk, [[len(row) - 1] for row in chunk])

    def _goes_on(self, word: str, token: int, prob: float) -> str:
        """What a next token adds to a word that is begun; nothing where it doesn't belong to it."""
        text, begins = self.vocabulary.entry(token)
        if not text.isprintable() or not text.strip():
            return ""
        if not begins:
            return text if text[0].isalnum() or text == "-" else ""
        name = word[:1].isupper() and text[0].isupper() and prob >= 0.5
        return f" {text}" if name else ""

    @staticmethod
    def _best_forms(
        logits: torch.Tensor, columns: Columns, place: Place, chosen: np.ndarray
    ) -> list[int]:
        """The likeliest token of each chosen candidate."""
        ids = torch.from_numpy(columns.token_ids[place][chosen]).to(logits.device)
        values = logits[ids.clamp(min=0)].masked_fill(ids < 0, -torch.inf)
        return host(ids.gather(1, values.argmax(1, keepdim=True))[:, 0]).tolist()

    def suffix_log_probs(
        self,
        left: list[int],
        words: Sequence[Sequence[int]],
        suffix: list[int],
        *,
        n_last: int = 0,
        until: float = math.inf,
    ) -> np.ndarray:
        """Log-probability of each token of the suffix behind each word, float32 [word, token].

        The left is computed once. words: token ids of each word, all of the same number of pieces.
        until: after this time (`time.monotonic`) no more are begun but the `n_last` last ones, and
        some first ones where none was; the others are NaN.
        """
        cache = self._beginning(left)
        found = np.full((len(words), len(suffix)), np.nan, np.float32)
        size = max(1, min(WORDS_PER_PASS, LOGITS_PER_PASS // self.vocabulary.size // len(suffix)))
        if time.monotonic() > until:
            size = min(size, FEWEST_WORDS)
        first = 0
        while first < len(words):
            parts = in_parts(
                lambda some: host(self._continue(left, cache, some, suffix)).numpy(),
                words[first : first + size],
            )
            found[first : first + size] = np.concatenate(parts)
            first += size
            if time.monotonic() > until:
                first = max(first, len(words) - n_last)
        return found

    def _beginning(self, left: list[int]) -> Any:
        """What the model keeps of a beginning, None if it can't be gone on from."""
        if not self.caches:
            return None
        where = (torch.tensor([0]), torch.tensor([len(left) - 1]))
        ids = torch.tensor([left])
        _, output = fitting(lambda: self.forward(where, input_ids=ids, use_cache=True))
        cache = getattr(output, "past_key_values", None)
        return cache if hasattr(cache, "batch_repeat_interleave") else None

    def _continue(
        self, left: list[int], cache: Any, words: Sequence[Sequence[int]], suffix: list[int]
    ) -> torch.Tensor:
        # What would come behind the last token isn't asked for.
        rows = torch.tensor([[*word, *suffix[:-1]] for word in words])
        n_word, n_suffix = len(words[0]), len(suffix)
        offset = 0
        inputs: dict[str, Any] = {}
        if cache is None:
            rows = torch.cat([torch.tensor([left]).expand(len(words), -1), rows], dim=1)
            offset = len(left)
        else:
            shared = copy.deepcopy(cache)
            shared.batch_repeat_interleave(len(words))
            inputs = {"past_key_values": shared, "use_cache": True}
        at = torch.arange(offset + n_word - 1, offset + n_word + n_suffix - 1)
        where = (
            torch.arange(len(words)).repeat_interleave(n_suffix),
            at.repeat(len(words)),
        )
        logits, _ = self.forward(where, input_ids=rows, **inputs)
        targets = torch.tensor(suffix).repeat(len(words))
        return chosen_log_probs(logits, targets).reshape(len(words), n_suffix)

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        """By the chain rule; with context `both`, over the rescored words and this one."""
        encoded = self.encode(query, context)
        pieces = list(self.vocabulary.pieces(word, encoded.places[0]))
        if self.tokenizer.unk_token_id in pieces:
            return self.word_score(pieces, -np.inf)
        ids = [*encoded.token_ids, *pieces]
        self.check_window(len(ids))
        start = len(encoded.token_ids)
        logits = self.logits([ids], [range(start - 1, len(ids) - 1)])
        total = float(host(chosen_log_probs(logits, torch.tensor(pieces)).sum()))
        if encoded.suffix:
            suffix = self.vocabulary.encode_after(encoded.suffix)
            joint = total + float(
                self.suffix_log_probs(list(encoded.token_ids), [pieces], suffix).sum()
            )
            total = joint - float(np.logaddexp(joint, normaliser))
        return self.word_score(pieces, total)

    def token_log_probs(self, texts: Sequence[str]) -> list[TokenScores]:
        bodies = [self.text_ids(text) for text in texts]
        start = self.vocabulary.frame[0]
        values = once_each(self.chain_log_probs, [(*start, *body) for body in bodies])
        return [
            TokenScores(self.vocabulary.show_text(body), found[len(start) :])
            for body, found in zip(bodies, values, strict=True)
        ]

    @property
    def scores_first(self) -> bool:
        return bool(self._start())

    def statement_log_probs(
        self,
        statements: Sequence[Statement],
        *,
        hiding: Hiding = "within-word",
        scored: Scored = "statement",
    ) -> list[StatementScores]:
        read = self.vocabulary.read(statements)
        start = self._start()
        values = once_each(self.chain_log_probs, [(*start, *one.ids) for one in read])
        return [
            self.scored_statement(one, found[len(start) :], scored)
            for one, found in zip(read, values, strict=True)
        ]

    def _start(self) -> list[int]:
        """What a text begins with: as the tokenizer has it, else the token of its beginning."""
        framed = self.vocabulary.frame[0]
        begin = self.tokenizer.bos_token_id
        return framed or ([] if begin is None else [begin])

    def chain_log_probs(self, rows: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Log-probability of each token of each row given those before it, float32 [token].

        The first is NaN. What rows share at the beginning is computed once (`trees`).
        Raises UserError for a row that doesn't fit the window.
        """
        for row in rows:
            self.check_window(len(row))
        most = min(self.tokens_per_pass, max(1, self.logits_of_texts // self.vocabulary.size))
        reach = min(self.tree_reach, math.isqrt(self.masks_of_trees))
        values: dict[int, np.ndarray] = {}
        in_trees = [number for number, row in enumerate(rows) if 1 < len(row) <= reach]
        trees = plan_trees([rows[number] for number in in_trees], min(most, reach))
        trees.sort(key=lambda tree: -len(tree.tokens))
        widths = [len(tree.tokens) for tree in trees]
        for batch in _batches(trees, widths, most, self.masks_of_trees):
            for part in in_parts(lambda some: self._of_trees(rows, in_trees, some), batch):
                values |= part
        whole = sorted(values.keys() ^ set(range(len(rows))), key=lambda number: -len(rows[number]))
        for some in _batches(whole, [len(rows[number]) for number in whole], most):
            for found in in_parts(lambda part: self._of_whole(rows, part), some):
                values |= found
        return [values[number] for number in range(len(rows))]

    @cached_property
    def first_place(self) -> int:
        """The number that a text's first place has in the model's table."""
        return first_place(self.model)

    def _of_trees(
        self, rows: Sequence[Sequence[int]], numbers: Sequence[int], trees: Sequence[Tree]
    ) -> dict[int, np.ndarray]:
        """The values of the rows in some trees; numbers: which row the trees' own numbers mean."""
        width = len(trees[0].tokens)
        ids = torch.tensor([padded(tree.tokens, width) for tree in trees])
        places = torch.tensor([padded(tree.depths, width) for tree in trees]) + self.first_place
        sees = torch.from_numpy(np.stack([tree.sees(width) for tree in trees]))[:, None]
        dtype = self.model.dtype
        mask = torch.zeros(sees.shape, dtype=dtype).masked_fill_(~sees, torch.finfo(dtype).min)
        where = (
            torch.tensor([n for n, tree in enumerate(trees) for _ in tree.tokens]),
            torch.tensor([node for tree in trees for node in range(len(tree.tokens))]),
        )
        logits, _ = self.raw_forward(
            where, input_ids=ids, position_ids=places, attention_mask=mask, use_cache=False
        )
        normalisers = log_normalisers(logits)
        first = 0
        at: list[int] = []
        lengths: dict[int, int] = {}
        for tree in trees:
            for number, path in tree.paths:
                at += [first + node for node in path]
                lengths[numbers[number]] = len(path)
            first += len(tree.tokens)
        targets = torch.tensor([token for number in lengths for token in rows[number][1:]])
        index = torch.tensor(at).to(logits.device)
        chosen = logits[index, targets.to(logits.device)].float() - normalisers[index]
        parts = host(chosen).split(list(lengths.values()))
        return {n: _with_first(part.numpy()) for n, part in zip(lengths, parts, strict=True)}

    def _of_whole(
        self, rows: Sequence[Sequence[int]], numbers: Sequence[int]
    ) -> dict[int, np.ndarray]:
        """The values of some rows, each computed by itself."""
        longer = [number for number in numbers if len(rows[number]) > 1]
        found = {number: np.full(len(rows[number]), np.nan, np.float32) for number in numbers}
        if longer:
            logits = self.logits(
                [rows[number] for number in longer],
                [range(len(rows[number]) - 1) for number in longer],
            )
            targets = torch.tensor([token for number in longer for token in rows[number][1:]])
            values = host(chosen_log_probs(logits, targets))
            parts = values.split([len(rows[number]) - 1 for number in longer])
            found |= {n: _with_first(part.numpy()) for n, part in zip(longer, parts, strict=True)}
        return found


def _with_first(later: np.ndarray) -> np.ndarray:
    """The values of a row's later tokens behind that of its first, which is unknown."""
    return np.concatenate([np.full(1, np.nan, np.float32), later])


def _batches(
    items: Sequence[T], lengths: Sequence[int], max_tokens: int, max_masks: float = math.inf
) -> Iterator[Sequence[T]]:
    """Items that go through the model together, padding included; the longest come first.

    max_masks: of all their lengths squared.
    """
    first = 0
    while first < len(items):
        length = max(1, lengths[first])
        size = max(1, int(min(max_tokens // length, max_masks // length**2)))
        yield items[first : first + size]
        first += size


def _goes_on_from(
    batch: Sequence[Encoded], suffixes: Sequence[list[int]], longer: int, row: int
) -> bool:
    """Whether one query is another with more on its right: `in Rome` and `in Rome.`"""
    one, other = batch[longer], batch[row]
    return (
        replace(one, suffix=other.suffix, n_suffix=other.n_suffix) == other
        and suffixes[longer][: len(suffixes[row])] == suffixes[row]
    )
