"""A causal model behind an OpenAI-compatible server, scored by the log-probabilities of prompts.

    log P(word | left) = sum over the word's tokens of log P(token | text before it)

The server echoes the text `left word` token by token with log-probabilities. The candidates at a
blank are the most likely next tokens that the server lists after the left context, and every
candidate of a short list. A gold answer that the server doesn't list is scored next to them.

When a model is opened, its echoed log-probabilities are compared with the server's own next-token
predictions. Some servers shift them by one token (llama-cpp-python 0.3.36, for models without a
start token); this module corrects that. A server is refused if its values match neither in
place nor shifted.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from lama_core.candidates.columns import Columns, OpenColumns
from lama_core.candidates.spelling import place_of
from lama_core.downloads.retry import Patience
from lama_core.errors import TimeOverError, UserError
from lama_core.models.devices import map_distinct
from lama_core.models.proposals import merge, turned_text
from lama_core.models.protocols import (
    Context,
    Encoded,
    Hiding,
    ScoredPart,
    Scores,
    StartToken,
    Statement,
    StatementScores,
    TokenScores,
    WordScore,
)
from lama_core.models.server.addresses import read_address
from lama_core.models.server.completions import (
    BROKEN,
    Completions,
    Done,
    Echo,
    Lists,
    RequestRefused,
)
from lama_core.models.server.served import ServedModel
from lama_core.models.vocabulary import CONTINUATION, shown
from lama_core.types import Query

# How many tokens to request per blank: the first number that the server accepts. A shifted server
# must return its full vocabulary, because the scores of a text's tokens are taken from its lists.
LIST_LENGTHS = (1000, 100, 20, 5)
FULL_LIST = 200_000
# A list of at most this many candidates is scored in full, one request for each unlisted word.
SCORED_ALL = 200
AT_ONCE = 16
# Bytes per token, an estimate for planning: a server doesn't report how it tokenizes a text.
BYTES_PER_TOKEN = 4
# The fields of a server's model record that don't change between requests.
IDENTITY_FIELDS = ("id", "root", "parent", "owned_by", "max_model_len")
# The alignment check builds a text from these. With half-precision or quantised weights, a server's
# values vary by some hundredths; misaligned values differ by several units.
CHECK_TEXTS = (
    "The capital of France is",
    " and the river that runs through it is the",
    " in the north of the",
    " and the",
)
TOLERANCE = 0.25


class ServerModel(ServedModel):
    """A model that scores words and texts.

    n_list: number of tokens to request per blank. is_shifted: whether the server's
    log-probabilities are one token too early (module docstring).
    """

    def __init__(
        self, name: str, server: Completions, *, identity: str, n_list: int, is_shifted: bool
    ) -> None:
        super().__init__(name, server, identity=identity)
        self.n_list = n_list
        self.is_shifted = is_shifted
        self.notes = [
            "Remote weights can't be hashed: runs identify this model by the server's URL, the "
            "model's name and the server's record of it.",
            "The server's log-probabilities are one token too early; this is corrected."
            if self.is_shifted
            else f"The server lists at most the {self.n_list:,} most likely tokens of a blank: "
            f"among more than {SCORED_ALL} candidates, the rank of an unlisted gold answer is the "
            "best that it can have.",
        ]

    def encode(self, query: Query, context: Context = "left") -> Encoded:
        """Encode the text left of the single blank as bytes, because the tokenizer is unknown.

        Raises UserError if no text is left of the blank.
        """
        left, right = query.parts
        if not left.strip():
            raise UserError(
                f"No text left of the blank, and {self.name} only predicts what follows a text: "
                "put a word before the blank."
            )
        ids = _pack(left.rstrip())
        suffix = right.rstrip() if context == "both" else ""
        turned = _pack(turned_text(left, suffix)) if suffix else ()
        return Encoded(
            ids,
            (len(ids) - 1,),
            (place_of(left),),
            suffix,
            turned=turned,
            n_suffix=len(_pack(suffix)),
        )

    def encode_all(self, queries: Sequence[Query], context: Context = "left") -> list[Encoded]:
        return [self.encode(query, context) for query in queries]

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        """Score the candidates, one row per query; -inf for candidates without a score.

        Words have a score if the server lists them, or if they are scored individually.
        """
        lefts = [_unpack(query.token_ids) for query in batch]
        blanks = [
            _Blank(query, left, listed, columns)
            for query, left, listed in zip(
                batch, lefts, self._map_distinct(self._next_tokens, lefts), strict=True
            )
        ]
        # The unlisted candidates of a short list, and the gold answers, given the left context.
        wanted = [
            (blank, column, blank.gap + form)
            for blank in blanks
            for column in blank.wanted()
            for form in blank.forms(column)
        ]
        values = self._totals([(blank.left, rest, blank.listed) for blank, _, rest in wanted])
        for (blank, column, _), value in zip(wanted, values, strict=True):
            if blank.is_short:
                blank.add(column, value)
            else:
                blank.gold = float(np.logaddexp(blank.gold, value))
        normalisers = np.full(len(batch), np.nan, np.float32)
        log_probs = np.full((len(batch), len(columns.words)), -np.inf, np.float32)
        for row, blank in enumerate(blanks):
            if blank.query.suffix:
                normalisers[row] = self._rescore(blank, columns)
            for column, value in blank.values.items():
                log_probs[row, column] = value
        gold = np.array([blank.gold for blank in blanks], np.float32)
        firsts = [max(blank.listed.items(), key=lambda item: item[1]) for blank in blanks]
        scores = Scores(
            log_probs,
            gold=np.where(np.isneginf(gold), np.float32(np.nan), gold),
            normaliser=normalisers if any(query.suffix for query in batch) else None,
            first=np.array([self.vocabulary.number(_shown(text)) for text, _ in firsts]),
            first_log_probs=np.array([value for _, value in firsts], np.float32),
        )
        if self.n_list == FULL_LIST or any(blank.is_short for blank in blanks):
            return scores
        n_listed = np.array([len(blank.listed) for blank in blanks], np.int64)
        floor = np.array([min(blank.listed.values()) for blank in blanks], np.float32)
        return replace(scores, n_listed=n_listed, floor=floor)

    def _map_distinct(self, work: Callable[[str], Done], texts: Sequence[str]) -> list[Done]:
        """Apply `work` to each distinct text, a few at a time."""
        return map_distinct(lambda different: self._server.at_once(work, different), texts)

    def _next_tokens(self, left: str) -> Lists:
        """Return the next-token list of a text: token -> log-probability."""
        found = self._server.next_tokens(left, self.n_list)
        if not found and self.is_shifted:  # the most likely next token is the unlisted end token
            found = self._server.echo(left, self.n_list).lists[-1]
        if not found:
            raise UserError(
                f"The server of {self.name} returns no next-token list for {left[-60:]!r}."
            )
        return found

    def _rescore(self, blank: "_Blank", columns: Columns) -> float:
        """Score the proposed words by the whole sentence, so that their probabilities sum to 1.

        Returns:
            The log of the sum of the probabilities before normalisation.

        Raises:
            TimeOverError: If the time is over before all words are scored.
        """
        query = blank.query
        turned = _Blank(query, blank.left, self._next_tokens(_unpack(query.turned)), columns)
        blank.best = turned.best | blank.best  # its own spellings first
        others = {
            column: turned.values[column] for column in query.proposed if column in turned.values
        }
        sources = [
            sorted(values, key=lambda column: -values[column])
            for values in (blank.values, turned.values, others)
        ]
        words = merge(sources, query.n_rescored)
        joint: dict[int, float] = {}
        for first in range(0, len(words), AT_ONCE):
            if first and time.monotonic() > query.until:
                raise TimeOverError(self.name, first, len(words))
            joint |= self._joint(blank, words[first : first + AT_ONCE])
        normaliser = float(np.logaddexp.reduce(list(joint.values())))
        blank.values = {column: value - normaliser for column, value in joint.items()}
        if query.gold is not None and query.gold not in joint:
            blank.gold = self._joint(blank, [query.gold])[query.gold] - normaliser
        return normaliser

    def _joint(self, blank: "_Blank", columns: Sequence[int]) -> dict[int, float]:
        """Return the log-probability of each column's word together with the text after it."""
        texts = [
            (column, blank.gap + form + blank.query.suffix)
            for column in columns
            for form in blank.best_forms(column)
        ]
        values = self._totals([(blank.left, rest, blank.listed) for _, rest in texts])
        found: dict[int, float] = {}
        for (column, _), value in zip(texts, values, strict=True):
            found[column] = float(np.logaddexp(found.get(column, -math.inf), value))
        return found

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        encoded = self.encode(query, context)
        left = _unpack(encoded.token_ids)
        gap = " " if encoded.places[0].left == " " else ""
        listed = self._next_tokens(left)
        alone = self._score_rest(left, gap + word, listed)
        total = alone.total
        if encoded.suffix:
            joint = self._score_rest(left, gap + word + encoded.suffix, listed).total
            total = joint - float(np.logaddexp(joint, normaliser))
        return WordScore(_shown_text(alone.tokens), total)

    def token_log_probs(self, texts: Sequence[str], *, begins: bool = False) -> list[TokenScores]:
        return [
            TokenScores(_shown_text(scored.tokens), np.array(scored.log_probs, dtype=np.float32))
            for scored in self._map_distinct(self._score_text, texts)
        ]

    takes_start_token = False  # the server adds one to every text, or none

    def scores_first(self, _start_token: StartToken = "needed") -> bool:
        return self._scores_first

    @cached_property
    def _scores_first(self) -> bool:
        """Whether a text's first token has a score, because the server puts a start token first.

        Sends one request.
        """
        return not math.isnan(self._score_text(CHECK_TEXTS[0]).log_probs[0])

    def statement_log_probs(
        self,
        statements: Sequence[Statement],
        *,
        hiding: Hiding = "within-word",
        scored: ScoredPart = "statement",
        start_token: StartToken = "needed",
    ) -> list[StatementScores]:
        found = self._map_distinct(self._score_text, [statement.text for statement in statements])
        scores = []
        for statement, tokens in zip(statements, found, strict=True):
            # A token that is part of a character spans all of it.
            starts = np.array(tokens.offsets)
            places = np.append(np.unique(starts), len(statement.text))
            ends = places[np.searchsorted(places, starts, side="right")]
            inside = (starts < statement.end) & (ends > statement.start)
            log_probs = np.array(tokens.log_probs, dtype=np.float32)
            log_probs[~inside & (scored == "answer")] = np.nan
            scores.append(
                StatementScores(_shown_text(tokens.tokens), log_probs, inside, not inside.any())
            )
        return scores

    def _score_text(self, text: str) -> Echo:
        """Score all tokens of a text."""
        return self._score_rest("", text, {})

    def _totals(self, texts: Sequence[tuple[str, str, Lists]]) -> list[float]:
        """Return the total of `_score_rest` for each text."""
        return self._server.at_once(lambda part: self._score_rest(*part).total, texts)

    def _score_rest(self, left: str, rest: str, listed: Lists) -> Echo:
        """Score the tokens of the text `rest` given `left`, corrected for a shifted server.

        listed: the next-token list of `left`.
        """
        for n in (LIST_LENGTHS[0], FULL_LIST) if self.is_shifted else (1,):
            echo = self._server.echo(left + rest, n)
            gap = len(rest) - len(rest.lstrip())  # the space may belong to the token before
            start = echo.first_from(len(left))
            start = echo.first_from(len(left) + gap) if start is None else start
            if start is None:
                difference = self._score_text(left + rest).total - self._score_text(left).total
                return Echo((rest,), (len(left),), (difference,))
            values = echo.log_probs[start:]
            if self.is_shifted and left:
                values = shifted_back(echo, start, listed)
            elif self.is_shifted and len(echo.tokens) > 1:  # the first token has no list before it
                second = self._next_tokens(rest[: echo.offsets[1]])
                values = (math.nan, *shifted_back(echo, 1, second))
            known = values if left else values[1:]
            if not any(map(math.isnan, known)):
                return Echo(echo.tokens[start:], echo.offsets[start:], values)
        raise UserError(
            f"The server of {self.name} doesn't return a log-probability for every token of "
            f"{(left + rest)[:80]!r}: remove that text."
        )


class _Blank:
    """The server's list for one query's left context, and the candidates' scores so far.

    values: column -> log-probability, of the candidates that are ranked. gold: the gold answer's
    score, on the same scale, if it isn't among them; else -inf. best: column -> the most likely
    listed spelling.
    """

    def __init__(self, query: Encoded, left: str, listed: Lists, columns: Columns) -> None:
        self.query = query
        self.left = left
        self.listed = listed
        self.gap = " " if query.places[0].left == " " else ""
        self.values: dict[int, float] = {}
        self.gold = -math.inf
        self._columns = columns
        self.best: dict[int, str] = {}
        seen: dict[int, float] = {}
        for token, value in listed.items():  # each adds to the candidate that it writes, if any
            column: int | str | None = None
            if isinstance(columns, OpenColumns):
                column = columns.find(_shown(token)) if token.strip() else None
            elif token.startswith(" ") == (self.gap == " "):
                column = columns.index.get(columns.spelling.key(token.removeprefix(" ")))
            if isinstance(column, int):
                self.add(column, value)
                if value > seen.get(column, -math.inf):
                    seen[column], self.best[column] = value, token.strip()

    def add(self, column: int, value: float) -> None:
        """Add the score of one spelling of a candidate: spellings' probabilities are summed."""
        self.values[column] = float(np.logaddexp(self.values.get(column, -math.inf), value))

    @property
    def is_short(self) -> bool:
        """Whether all candidates are ranked, because their list is short."""
        return not isinstance(self._columns, OpenColumns) and len(self._columns.words) <= SCORED_ALL

    def wanted(self) -> list[int]:
        """Return the candidates to score individually: not listed, but of a short list or gold."""
        columns: list[int] = list(range(len(self._columns.words))) if self.is_short else []
        if self.query.gold is not None and not self.is_short and not self.query.suffix:
            columns.append(self.query.gold)
        return [column for column in columns if column not in self.values]

    def forms(self, column: int) -> tuple[str, ...]:
        """Return a candidate's spellings: three in a case-folded list, else one."""
        word = self._columns.words[column]
        is_folded = self._columns.spelling.folded
        return tuple(dict.fromkeys((word, word.title(), word.upper()))) if is_folded else (word,)

    def best_forms(self, column: int) -> tuple[str, ...]:
        """Return a candidate's most likely listed spelling; all spellings if none is listed."""
        return (self.best[column],) if column in self.best else self.forms(column)


def shifted_back(echo: Echo, start: int, listed: Lists) -> tuple[float, ...]:
    """Return the log-probabilities of the tokens from `start` on, from a shifted server's lists.

    Each token is looked up in the list for the position before it; `listed` is the list for the
    position before `start`. The result is NaN for a token that isn't in its list, and for a part of
    a character, because all such parts look alike in a list.
    """
    return tuple(
        likely.get(token, math.nan) if token and BROKEN not in token else math.nan
        for token, likely in zip(echo.tokens[start:], [listed, *echo.lists[start:]], strict=False)
    )


def open_server(reference: str, patience: Patience | None = None) -> ServerModel:
    """Open the model that a reference names, after checking its log-probabilities.

    Raises:
        UserError: If the server can't be reached, doesn't have the model, or returns
            log-probabilities that don't match its own next-token predictions.
    """
    address = read_address(reference)
    server = Completions(address, patience)
    record = server.describe()
    n_list = _find_length(server)
    is_shifted = _find_shift(server, n_list)
    if is_shifted:
        try:
            server.next_tokens(CHECK_TEXTS[0], FULL_LIST)
        except RequestRefused as error:
            raise UserError(
                f"The server {server.address.url} returns log-probabilities one token too early, "
                f"and its lists are too short to correct that ({error}). Use another server."
            ) from error
        n_list = FULL_LIST
    return ServerModel(
        address.reference,
        server,
        identity=f"server:{server.digest_of(record, IDENTITY_FIELDS, n_list)}",
        n_list=n_list,
        is_shifted=is_shifted,
    )


def _find_length(server: Completions) -> int:
    """Return how many tokens to request from the server: the first number that it accepts."""
    for n in LIST_LENGTHS[:-1]:
        try:
            server.next_tokens(CHECK_TEXTS[0], n)
            return n
        except RequestRefused as error:
            if error.status not in (400, 422):
                raise
    return LIST_LENGTHS[-1]


def _find_shift(server: Completions, n_list: int) -> bool:
    """Whether the echoed log-probabilities are one token too early.

    Build a text from CHECK_TEXTS and, after each, the server's most likely next word. Then let the
    server echo the text, and compare the echoed values of those words with the next-token values.
    Raises UserError if they match neither in place nor one token earlier.
    """
    text = ""
    truths: list[tuple[int, str, float]] = []
    for beginning in CHECK_TEXTS:
        text += beginning
        listed = server.next_tokens(text, n_list)
        words = [token for token in listed if token[:1] == " " and token[1:].isalpha()]
        if not words:
            raise UserError(
                f"The server {server.address.url} lists no word with a leading space, so whole "
                "words can't be told from subword tokens. Use another server."
            )
        best = max(words, key=lambda token: listed[token])
        truths.append((len(text), best, listed[best]))
        text += best
    echo = server.echo(text, n_list)
    right = shifted = True
    n_checked = 0
    for offset, token, value in truths:
        at = echo.first_from(offset)
        if not at or echo.tokens[at] != token:  # tokenized differently within the text
            continue
        n_checked += 1
        right = right and abs(echo.log_probs[at] - value) <= TOLERANCE
        shifted = shifted and abs(echo.lists[at - 1].get(token, math.nan) - value) <= TOLERANCE
    if n_checked < 2 or not (right or shifted):
        raise UserError(
            f"The server {server.address.url} can't be used: its echoed log-probabilities don't "
            "match its next-token log-probabilities (offset 0 or 1)."
        )
    return not right


def _shown(token: str) -> str:
    """Return a token as displayed; a token that continues a word gets a hyphen in front."""
    return shown(token.removeprefix(" "), token.startswith(" "))


def _shown_text(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return a text's tokens as displayed; the first one is shown as the start of a word."""
    first, *others = map(_shown, tokens)
    return first.removeprefix(CONTINUATION), *others


def _pack(text: str) -> tuple[int, ...]:
    """Encode a text's bytes as integers of four bytes each; `_unpack` reverses it."""
    data = text.encode(errors="surrogatepass")
    return tuple(
        int.from_bytes(data[first : first + BYTES_PER_TOKEN].ljust(BYTES_PER_TOKEN, b"\0"), "big")
        for first in range(0, len(data), BYTES_PER_TOKEN)
    )


def _unpack(ids: Sequence[int]) -> str:
    data = b"".join(number.to_bytes(BYTES_PER_TOKEN, "big") for number in ids)
    return data.rstrip(b"\0").decode(errors="surrogatepass")
