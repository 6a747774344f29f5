"""Causal language models: any architecture of `AutoModelForCausalLM` with a fast tokenizer.

Context `left`: the distribution of the next word after the text left of the blank (Petroni et al.
2019, section 4.2). Context `both`: proposed words (see `proposals`) are rescored by the
log-probability of the whole sentence (without log P(left), which all share). Their scores are
normalised to sum to 1 over the proposed words. A gold answer that isn't proposed is scored next to
them, and changes nothing for them.
Departure: Context on both sides for causal models
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
from torch.nn.utils.rnn import pad_sequence

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import Place, place_of
from lama_core.errors import NoStartTokenError, TimeOverError
from lama_core.models.devices import map_distinct, run_in_parts, run_or_refuse, to_cpu
from lama_core.models.hf.continuation import CausalBatch, Prefix, batches_to_continue
from lama_core.models.hf.inspection import InspectableModel
from lama_core.models.hf.prefix_tree import Tree, plan_trees
from lama_core.models.hf.transformer import (
    chosen_log_probs,
    first_place,
    log_normalisers,
    pack,
    text_config,
)
from lama_core.models.proposals import merge, turned_text
from lama_core.models.protocols import (
    FIRST_RESCORED,
    Context,
    Encoded,
    Hiding,
    Kind,
    OnScores,
    ScoredPart,
    Scores,
    StartToken,
    Statement,
    StatementScores,
    TokenScores,
    WordScore,
)
from lama_core.progress import Progress, report_step
from lama_core.types import Query

# Words rescored together: each pass reads all weights, and its logits take at most 128 MB.
WORDS_PER_PASS = 100
LOGITS_PER_PASS = 1 << 25
# Maximum number of tokens that continue a word.
MAX_PIECES = 8
T = TypeVar("T")


class CausalModel(InspectableModel):
    """Fills blanks from the left context, and optionally also from the right one.

    caches: whether it can continue from a cached prefix; else the prefix is computed again.
    shares: whether prompts of different lengths can continue from the same cached prefix.
    tree_reach: maximum number of nodes of a prefix tree; 0 if it can't read trees.
    logits_of_texts: maximum number of logits that are held for whole texts.
    masks_of_trees: maximum number of attention mask cells in a pass, the sum of the prefix trees'
        squared widths. A row that is too long for a tree of that size is computed separately,
        without a mask.
    """

    kind: Kind = "causal"
    caches = True
    shares = False
    tree_reach = 0
    logits_of_texts = 1 << 30  # a GPU holds them twice, 4 GB each time in fp32
    masks_of_trees = 1 << 24  # 64 MB in fp32

    def __init__(self, name: str, model: Any, tokenizer: Any, *, identity: str) -> None:
        super().__init__(name, model, tokenizer, identity=identity)
        # Passes over whole texts need no cache, and BLT fails if it is to make one.
        text_config(model.config).use_cache = model.config.use_cache = False

    def framed(self, text: str) -> list[int]:
        """Token ids of a text with the special tokens before it, but not those after it."""
        return [*self.vocabulary.frame[0], *self.vocabulary.encode(text)]

    def start(self, *, begins: bool, start_token: StartToken = "needed") -> list[int]:
        """Return the tokens before a text: the tokenizer's own, or else the rule's start token.

        All kinds of queries and runs follow this rule. The token is BOS; for a text that begins
        with the scored word it is EOS if the model lacks a BOS.
        Departure: Start token of a statement

        begins: whether the text begins with the scored word.
        """
        if own := self.vocabulary.frame[0]:
            return own
        tokens = [self.tokenizer.bos_token_id] if begins or start_token == "always" else []
        tokens += [self.tokenizer.eos_token_id] if begins and start_token == "needed" else []
        return [token for token in tokens if token is not None][:1]

    @property
    def takes_start_token(self) -> bool:
        return not self.vocabulary.frame[0] and self.scores_first()

    def _left_ids(self, left: str) -> list[int]:
        """Return the tokens before a blank, or raise NoStartTokenError if there is none."""
        text = self.vocabulary.encode(left)
        ids = [*self.start(begins=not text), *text]
        if not ids:
            raise NoStartTokenError(self.name)
        return ids

    def text_range(self, encoded: Encoded) -> range:
        """Return the positions of the text left of the blank, and the position of the blank."""
        ids = encoded.token_ids
        empty = list(ids) == self.start(begins=True)
        return range(len(ids) if empty else len(self.vocabulary.frame[0]), len(ids) + 1)

    def without(self, encoded: Encoded, at: int) -> Encoded:
        left = super().without(encoded, at)
        return left if left.token_ids else replace(left, token_ids=tuple(self._left_ids("")))

    def encode(self, query: Query, context: Context = "left") -> Encoded:
        left, right = query.parts  # one blank at a time
        ids = self._left_ids(left.rstrip())
        suffix = right.rstrip() if context == "both" else ""
        n_suffix = len(self.vocabulary.encode_after(suffix))
        self.check_window(len(ids) + (1 + n_suffix if suffix else 0))
        turned = self._left_ids(turned_text(left, suffix))[: self.max_tokens] if suffix else ()
        return Encoded(
            tuple(ids),
            (len(ids) - 1,),
            (place_of(left),),
            suffix,
            n_suffix=n_suffix,
            turned=tuple(turned),
        )

    def rescored_log_probs(
        self, batch: Sequence[Encoded], columns: Columns, on_first: OnScores | None = None
    ) -> Scores:
        places: list[Place] = [query.places[0] for query in batch]
        prefix = None
        if len({query.token_ids for query in batch}) == 1:
            prefix = self._read(batch[0].token_ids)
            logits = prefix.logits.expand(len(batch), -1)
        else:
            logits = self.logits(*pack(batch))
        picked = replace(self.pick(logits, places, columns), prefix=prefix)
        if not any(query.suffix for query in batch):
            return picked
        left = picked.log_probs
        suffixes = [self.vocabulary.encode_after(query.suffix) for query in batch]
        # Row -> the columns of the proposed words, and of the gold answer if it isn't one, int64
        # [word]; the number of proposed words; and the log-probability of each token right of the
        # blank after each word, float32 [word, token], NaN if not computed yet.
        found: dict[int, tuple[np.ndarray, int, np.ndarray]] = {}
        gold = np.full(len(batch), np.nan, np.float32)

        def scores() -> Scores:
            log_probs = np.full_like(left, -np.inf)
            normalisers = np.full(len(batch), np.nan, np.float32)
            for row, suffix in enumerate(suffixes):
                same = next((n for n in found if _extends(batch, suffixes, n, row)), None)
                if not suffix:
                    log_probs[row] = left[row]
                elif same is not None:
                    words, n_proposed, of_tokens = found[same]
                    joint = left[row][words] + of_tokens[:, : len(suffix)].sum(1)
                    done = np.flatnonzero(~np.isnan(joint[:n_proposed]))
                    normalisers[row] = np.logaddexp.reduce(joint[done])
                    log_probs[row, words[done]] = joint[done] - normalisers[row]
                    if n_proposed < len(words):
                        gold[row] = joint[-1] - normalisers[row]
            return replace(
                picked, log_probs=log_probs, order=left, normaliser=normalisers, gold=gold
            )

        for row in sorted(range(len(batch)), key=lambda row: -len(suffixes[row])):
            query, suffix = batch[row], suffixes[row]
            if not suffix or any(_extends(batch, suffixes, n, row) for n in found):
                continue
            words = self.proposed_words(query, left[row], columns)
            n_proposed = len(words)
            if query.gold is not None and query.gold not in words:
                words = np.append(words, query.gold)
            forms = self.best_forms(logits[row], columns, places[row], words)
            for of_tokens in self._suffix_parts(
                list(query.token_ids),
                [[form] for form in forms],
                suffix,
                prefix=prefix,
                until=query.until,
            ):
                found[row] = words, n_proposed, of_tokens
                if on_first and np.isnan(of_tokens).any():
                    on_first(scores())
                on_first = None
        return scores()

    blank_log_probs = rescored_log_probs

    def proposed_words(self, query: Encoded, left: np.ndarray, columns: Columns) -> np.ndarray:
        """Return the columns of the words to rescore, the best proposals first, int64 [word].

        left: Log-probability of each candidate given the left context, float32 [candidate].
        """
        turned = self.logits([query.turned], [[len(query.turned) - 1]])
        by_turned = self.pick(turned, [query.places[0]], columns).log_probs[0]
        others = np.full_like(left, -np.inf)
        others[list(query.proposed)] = by_turned[list(query.proposed)]
        sources = []
        for values in (left, by_turned, others):
            best = np.argsort(-values, kind="stable")[: query.n_rescored]
            sources.append(best[np.isfinite(values[best])].tolist())  # others aren't one token here
        return np.array(merge(sources, query.n_rescored), dtype=np.int64)

    def continue_words(
        self,
        encoded: Sequence[Encoded],
        firsts: Sequence[Sequence[int]],
        prefix: Prefix | None = None,
    ) -> list[str | None]:
        """Return the word that begins with each first token, completed by the most likely tokens.

        Tokens are added while they continue the word. After a capitalised word, another capitalised
        word is added if its probability is at least 0.5: `New York`. None if the first token is the
        whole word.
        """
        if self.vocabulary.style == "suffix":
            return [None] * len(firsts)  # each token shows whether it ends its word
        texts = sorted({query.token_ids for query in encoded}, key=len, reverse=True)
        words: dict[int, str | None] = {}

        def run(some: Sequence[tuple[int, ...]]) -> dict[int, str | None]:
            batch = CausalBatch(self, some, read=prefix if len(texts) == 1 else None)
            numbers = [number for number, query in enumerate(encoded) if query.token_ids in some]
            after = batch.first()
            places = [some.index(encoded[number].token_ids) for number in numbers]
            tokens = [
                forms[int(to_cpu(after[place, list(forms)].argmax()))] if forms[1:] else forms[0]
                for place, forms in zip(places, (firsts[number] for number in numbers), strict=True)
            ]
            batch.choose(places)
            return dict(zip(numbers, self._completed(batch, tokens), strict=True))

        for some in batches_to_continue(self, texts, 1 + MAX_PIECES):
            for part in run_in_parts(run, some):
                words |= part
        return [words[number] for number in range(len(firsts))]

    def _completed(self, batch: CausalBatch, tokens: Sequence[int]) -> list[str | None]:
        """Return the completed word after each text of a batch; None if it is the first token.

        tokens: the first token of each word.
        """
        begun = [self.vocabulary.entry(token)[0] for token in tokens]
        words = list(begun)
        running = list(range(len(words)))  # the words of the batch's texts
        kept = [number for number, word in enumerate(words) if word.strip()]
        new = list(tokens)
        for _ in range(MAX_PIECES):
            kept = [place for place in kept if len(batch.rows[place]) + 1 < self.max_tokens]
            if not kept:
                break
            logits = batch.next(new, kept)
            running = [running[place] for place in kept]
            best = logits.softmax(1).max(1)
            new, probs = to_cpu(best.indices).tolist(), to_cpu(best.values).tolist()
            kept = []
            for place, number in enumerate(running):
                if more := self._continuation(words[number], new[place], probs[place]):
                    words[number] += more
                    kept.append(place)
        longer = [word.rstrip("-") for word in words]
        pairs = zip(longer, (start.rstrip("-") for start in begun), strict=True)
        return [word if word != start else None for word, start in pairs]

    def _continuation(self, word: str, token: int, prob: float) -> str:
        """Return the text that the next token adds to a word; empty if the word ends before it."""
        text, begins = self.vocabulary.entry(token)
        if not text.isprintable() or not text.strip():
            return ""
        if not begins:
            return text if text[0].isalnum() or text == "-" else ""
        is_name = word[:1].isupper() and text[0].isupper() and prob >= 0.5
        return f" {text}" if is_name else ""

    @staticmethod
    def best_forms(
        logits: torch.Tensor, columns: Columns, place: Place, chosen: np.ndarray
    ) -> list[int]:
        """Return the most likely token of each chosen candidate."""
        ids = torch.from_numpy(columns.table(place).ids[chosen]).to(logits.device)
        values = logits[ids.clamp(min=0)].masked_fill(ids < 0, -torch.inf)
        return to_cpu(ids.gather(1, values.argmax(1, keepdim=True))[:, 0]).tolist()

    def suffix_log_probs(
        self,
        left: list[int],
        words: Sequence[Sequence[int]],
        suffix: list[int],
    ) -> np.ndarray:
        """Log-probability of each token of the suffix after each word, float32 [word, token].

        The left context is computed once.

        Args:
            left: Token ids left of the word.
            words: Token ids of each word; all have the same number.
            suffix: Token ids right of the word.
        """
        *_, found = self._suffix_parts(left, words, suffix)
        return found

    def _suffix_parts(
        self,
        left: list[int],
        words: Sequence[Sequence[int]],
        suffix: list[int],
        *,
        prefix: Prefix | None = None,
        until: float = math.inf,
    ) -> Iterator[np.ndarray]:
        """Yield the values of `suffix_log_probs` after each pass; the array is the same.

        The first pass has `FIRST_RESCORED` words, the others as many as fit; words that aren't
        scored yet have NaN.

        prefix: the left context, if the model has read it. until: time (`time.monotonic`) after
        which no pass starts.

        Raises:
            TimeOverError: If the time is over before all words are scored.
        """
        cache = (prefix or self._read(left)).cache if self.caches else None
        found = np.full((len(words), len(suffix)), np.nan, np.float32)
        most = max(1, min(WORDS_PER_PASS, LOGITS_PER_PASS // self.vocabulary.size // len(suffix)))
        size = min(most, FIRST_RESCORED)
        first = 0
        while first < len(words):
            if time.monotonic() > until:
                raise TimeOverError(self.name, first, len(words))
            report_step(Progress("Ranking", first, len(words), "words"))
            parts = run_in_parts(
                lambda some: to_cpu(self._continue(left, cache, some, suffix)).numpy(),
                words[first : first + size],
            )
            found[first : first + size] = np.concatenate(parts)
            first, size = first + size, most
            yield found

    def _read(self, left: Sequence[int]) -> Prefix:
        """Return the logits after a text, and the cache to continue it from."""
        batch = CausalBatch(self, [left])
        return Prefix(run_or_refuse(batch.first), batch.cache)

    def _continue(
        self, left: list[int], cache: Any, words: Sequence[Sequence[int]], suffix: list[int]
    ) -> torch.Tensor:
        # The suffix's last token is predicted, but nothing after it is.
        before, n_suffix = left if cache is None else [], len(suffix)
        rows = torch.tensor([[*before, *word, *suffix[:-1]] for word in words])
        inputs: dict[str, Any] = {}
        if cache is not None:
            shared = copy.deepcopy(cache)
            shared.reorder_cache(torch.zeros(len(words), dtype=torch.int64, device=self.device))
            inputs = {"past_key_values": shared, "use_cache": True}
        at = torch.arange(rows.shape[1] - n_suffix, rows.shape[1])
        where = (torch.arange(len(words)).repeat_interleave(n_suffix), at.repeat(len(words)))
        logits, _ = self.forward(where, input_ids=rows, **inputs)
        targets = torch.tensor(suffix).repeat(len(words))
        return chosen_log_probs(logits, targets).reshape(len(words), n_suffix)

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        """Score by the chain rule; with `both`, normalise over the rescored words and this one."""
        encoded = self.encode(query, context)
        pieces = list(self.vocabulary.pieces(word, encoded.places[0]))
        if self.tokenizer.unk_token_id in pieces:
            return self.word_score(pieces, -np.inf)
        ids = [*encoded.token_ids, *pieces]
        self.check_window(len(ids))
        logits = self.logits([ids], [range(len(encoded.token_ids) - 1, len(ids) - 1)])
        total = float(to_cpu(chosen_log_probs(logits, torch.tensor(pieces)).sum()))
        if encoded.suffix:
            suffix = self.vocabulary.encode_after(encoded.suffix)
            joint = total + float(
                self.suffix_log_probs(list(encoded.token_ids), [pieces], suffix).sum()
            )
            total = joint - float(np.logaddexp(joint, normaliser))
        return self.word_score(pieces, total)

    def token_log_probs(self, texts: Sequence[str], *, begins: bool = False) -> list[TokenScores]:
        bodies = [self.vocabulary.encode(text) for text in texts]
        start = self.start(begins=begins)
        values = map_distinct(self.chain_log_probs, [(*start, *body) for body in bodies])
        return [
            TokenScores(self.vocabulary.show_text(body), found[len(start) :])
            for body, found in zip(bodies, values, strict=True)
        ]

    def scores_first(self, start_token: StartToken = "needed") -> bool:
        return bool(self.start(begins=True, start_token=start_token))

    def statement_log_probs(
        self,
        statements: Sequence[Statement],
        *,
        hiding: Hiding = "within-word",
        scored: ScoredPart = "statement",
        start_token: StartToken = "needed",
    ) -> list[StatementScores]:
        read = self.vocabulary.read(statements)
        lefts = [statement.text[: statement.start] for statement in statements]
        # Answers to one text are compared, so all have a start token if one needs it, such as an
        # answer that shares its first token with a quotation mark.
        begun = {left for left, tokens in zip(lefts, read, strict=True) if tokens.marked[:1].any()}
        starts = {
            left: self.start(begins=left in begun, start_token=start_token) for left in set(lefts)
        }
        rows = [(*starts[left], *tokens.ids) for left, tokens in zip(lefts, read, strict=True)]
        return [
            self.scored_statement(tokens, found[len(found) - len(tokens.ids) :], scored)
            for tokens, found in zip(read, map_distinct(self.chain_log_probs, rows), strict=True)
        ]

    def chain_log_probs(self, rows: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Log-probability of each token of each row given those before it, float32 [token].

        The first token has NaN. Shared prefixes are computed once (`prefix_tree`).
        Raises UserError for a row that doesn't fit the window.
        """
        for row in rows:
            self.check_window(len(row))
        most = min(self.tokens_per_pass, max(1, self.logits_of_texts // self.vocabulary.size))
        reach = min(self.tree_reach, math.isqrt(self.masks_of_trees))
        values = {
            number: np.full(len(row), np.nan, np.float32)
            for number, row in enumerate(rows)
            if len(row) < 2
        }
        in_trees = [number for number, row in enumerate(rows) if 1 < len(row) <= reach]
        trees = plan_trees([rows[number] for number in in_trees], min(most, reach))
        trees.sort(key=lambda tree: -len(tree.tokens))
        widths = [len(tree.tokens) for tree in trees]
        for batch in _batches(trees, widths, most, self.masks_of_trees):
            for part in run_in_parts(lambda some: self._score_trees(rows, in_trees, some), batch):
                values |= part
        whole = sorted(values.keys() ^ set(range(len(rows))), key=lambda number: -len(rows[number]))
        for some in _batches(whole, [len(rows[number]) for number in whole], most):
            for found in run_in_parts(lambda part: self._score_rows(rows, part), some):
                values |= found
        return [values[number] for number in range(len(rows))]

    @cached_property
    def first_place(self) -> int:
        """Position number of a text's first token in the model's position table."""
        return first_place(self.model)

    def _score_trees(
        self, rows: Sequence[Sequence[int]], numbers: Sequence[int], trees: Sequence[Tree]
    ) -> dict[int, np.ndarray]:
        """Return the log-probabilities of `chain_log_probs` for the rows in some trees, by index.

        numbers: the index in `rows` of each row number in the trees.
        """
        # No token attends to the zeros that pad a tree.
        ids, depths = (
            pad_sequence([torch.tensor(one) for one in rows_of_trees], batch_first=True)
            for rows_of_trees in zip(*((tree.tokens, tree.depths) for tree in trees), strict=True)
        )
        sees = torch.from_numpy(np.stack([tree.sees(ids.shape[1]) for tree in trees]))[:, None]
        dtype = self.model.dtype
        mask = torch.zeros(sees.shape, dtype=dtype).masked_fill_(~sees, torch.finfo(dtype).min)
        where = (
            torch.tensor([n for n, tree in enumerate(trees) for _ in tree.tokens]),
            torch.tensor([node for tree in trees for node in range(len(tree.tokens))]),
        )
        logits, _ = self.raw_forward(
            where,
            input_ids=ids,
            position_ids=depths + self.first_place,
            attention_mask=mask,
            use_cache=False,
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
        parts = to_cpu(chosen).split(list(lengths.values()))
        return {n: _with_first(part.numpy()) for n, part in zip(lengths, parts, strict=True)}

    def _score_rows(
        self, rows: Sequence[Sequence[int]], numbers: Sequence[int]
    ) -> dict[int, np.ndarray]:
        """Return the log-probabilities of `chain_log_probs` for rows without trees, by index."""
        logits = self.logits(
            [rows[number] for number in numbers],
            [range(len(rows[number]) - 1) for number in numbers],
        )
        targets = torch.tensor([token for number in numbers for token in rows[number][1:]])
        values = to_cpu(chosen_log_probs(logits, targets))
        parts = values.split([len(rows[number]) - 1 for number in numbers])
        return {n: _with_first(part.numpy()) for n, part in zip(numbers, parts, strict=True)}


def _with_first(later: np.ndarray) -> np.ndarray:
    """Return the values of a row: NaN for its first token, then those of the others."""
    return np.concatenate([np.full(1, np.nan, np.float32), later])


def _batches(
    items: Sequence[T], lengths: Sequence[int], max_tokens: int, max_masks: float = math.inf
) -> Iterator[Sequence[T]]:
    """Yield groups of items that share a pass and fit in it with padding.

    Args:
        items: The items, longest first.
        lengths: Number of tokens of each item.
        max_tokens: Maximum number of tokens of a pass, padding included.
        max_masks: Maximum sum of the squared lengths, padding included.
    """
    first = 0
    while first < len(items):
        length = max(1, lengths[first])
        size = max(1, int(min(max_tokens // length, max_masks // length**2)))
        yield items[first : first + size]
        first += size


def _extends(
    batch: Sequence[Encoded], suffixes: Sequence[list[int]], longer: int, row: int
) -> bool:
    """Whether query `longer` is query `row` with a longer text right of its blank."""
    one, other = batch[longer], batch[row]
    return (
        replace(one, suffix=other.suffix, n_suffix=other.n_suffix) == other
        and suffixes[longer][: len(suffixes[row])] == suffixes[row]
    )
