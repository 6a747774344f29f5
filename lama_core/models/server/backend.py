"""A causal model behind an OpenAI-compatible server, scored by the log-probabilities of prompts.

    log P(word | left) = sum of log P(token | what stands before it), over the word's tokens

in the text `left word`, which the server is sent and gives back token by token. The words that a
blank may hold are those that the server lists behind the left side, its likeliest tokens; the gold,
the other valid objects, and every candidate of a short list are scored whether listed or not.

What stands at a token is proved when the model is opened, against the server's own next-token
answers: the distribution that the token was drawn from, or the one after it (llama-cpp-python
0.3.36, for models without a start token), which is put right here; else the server is refused.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lama_core.candidates.columns import Columns, OpenColumns
from lama_core.candidates.spelling import OpenVocabulary, place_of
from lama_core.downloads.retry import Patience
from lama_core.errors import UserError
from lama_core.models.devices import once_each
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
from lama_core.models.server.addresses import read_address
from lama_core.models.server.completions import BROKEN, Completions, Done, Echo, Lists, Refused
from lama_core.models.vocabulary import CONTINUATION
from lama_core.types import Query

# How many tokens of a blank a server is asked for: the first number that it takes. A server whose
# lists are shifted is asked for all, because the values of a text's own tokens stand in them.
LISTS = (1000, 100, 20, 5)
WHOLE = 200_000
# A list of so many candidates is scored in full, each by itself.
SCORED_ALL = 200
AT_ONCE = 16
# Bytes for a token: about what one holds, for plans; a server doesn't say how it cuts a text.
BYTES = 4
# What a server says of a model that is the same every time it is asked.
LASTING = ("id", "root", "parent", "owned_by", "max_model_len")
# The proof: beginnings that are gone on with, in turn. Servers of half precision, or of quantised
# weights, differ from themselves by some hundredths; the wrong place is off by several units.
PROOF = (
    "The capital of France is",
    " and the river that runs through it is the",
    " in the north of the",
    " and the",
)
PROVED = 2  # of these places at least
TOLERANCE = 0.25


@dataclass(frozen=True, slots=True)
class _Asked:
    """A text to be scored from one of its places on. left: what stands before that place."""

    left: str
    rest: str

    @property
    def text(self) -> str:
        return self.left + self.rest


class ServerModel:
    """A model that a server holds. It can be asked by several threads at once.

    identity: of the address, the name and what the server says of the model: its weights can't be
    looked at. n_list: how many tokens it lists at a blank. is_shifted: see above.
    """

    kind: Kind = "causal"
    max_tokens = 1 << 20  # not known: the server says when a text is too long
    n_bytes = 0
    precision = "auto"  # the server chooses
    device = "server"

    def __init__(
        self, name: str, server: Completions, *, identity: str, n_list: int, is_shifted: bool
    ) -> None:
        self.name = name
        self.identity = identity
        self.n_list = n_list
        self.is_shifted = is_shifted
        self.vocabulary = OpenVocabulary()
        self._server = server

    @cached_property
    def notes(self) -> list[str]:
        return [
            "Its weights are behind a server and can't be looked at: runs tell it by the server's "
            "address, the model's name and what the server says of it.",
            "The server sets the log-probabilities of a text one token too early: put right."
            if self.is_shifted
            else f"The server gives at most the {self.n_list:,} likeliest tokens of a blank: among "
            f"more than {SCORED_ALL} candidates, a gold beyond them gets the best rank that it can "
            "have.",
        ]

    def encode(self, query: Query, context: Context = "left") -> Encoded:
        """What stands left of the single blank, as bytes: the server keeps its tokens to itself.

        Raises UserError where nothing stands there.
        """
        if query.n_blanks != 1:
            raise ValueError("a causal model is asked one blank at a time")
        left, right = query.parts
        if not left.strip():
            raise UserError(
                f"Nothing stands left of the blank, and {self.name} can only be asked what follows "
                "a text: put a word before it."
            )
        ids = _pack(left.rstrip())
        suffix = right.rstrip() if context == "both" else ""
        return Encoded(ids, (len(ids) - 1,), (place_of(left),), suffix, n_suffix=len(_pack(suffix)))

    def encode_all(self, queries: Sequence[Query], context: Context = "left") -> list[Encoded]:
        return [self.encode(query, context) for query in queries]

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        """Scores of the candidates, a row for each query: -inf for those that are not known.

        Known are the words that the server lists, and those that are scored by themselves.
        """
        lefts = [_unpack(query.token_ids) for query in batch]
        blanks = [
            _Blank(query, left, listed, columns)
            for query, left, listed in zip(batch, lefts, self._lists(lefts), strict=True)
        ]
        self._score_each(blanks)
        normalisers = np.zeros(len(batch), np.float32)
        for row, blank in enumerate(blanks):
            if blank.query.suffix:
                normalisers[row] = self._rescore(blank)
        log_probs = np.full((len(batch), len(columns.words)), -np.inf, np.float32)
        for row, blank in enumerate(blanks):
            for column, value in blank.values.items():
                log_probs[row, column] = value
        firsts = [max(blank.listed.items(), key=lambda item: item[1]) for blank in blanks]
        few = not isinstance(columns, OpenColumns) and len(columns.words) <= SCORED_ALL
        scores = Scores(
            log_probs,
            normaliser=normalisers if any(query.suffix for query in batch) else None,
            first=np.array([self.vocabulary.number(_shown(text)) for text, _ in firsts]),
            first_log_probs=np.array([value for _, value in firsts], np.float32),
        )
        if few or self.n_list == WHOLE:
            return scores
        n_listed = np.array([len(blank.listed) for blank in blanks], np.int64)
        floor = np.array([min(blank.listed.values()) for blank in blanks], np.float32)
        return replace(scores, n_listed=n_listed, floor=floor)

    def _lists(self, lefts: Sequence[str]) -> list[Lists]:
        """What may follow each text: token -> log-probability."""
        return self._once(self._next_tokens, lefts)

    def _once(self, work: Callable[[str], Done], texts: Sequence[str]) -> list[Done]:
        """`work` of each text, a few at a time, of equal ones once."""
        return once_each(lambda different: self._server.at_once(work, different), texts)

    def _next_tokens(self, left: str) -> Lists:
        found = self._server.next_tokens(left, self.n_list)
        if not found and self.is_shifted:  # the likeliest is the end, which isn't given
            found = self._server.echo(left, self.n_list).lists[-1]
        if not found:
            raise UserError(
                f"The server of {self.name} gives no list of what may follow {left[-60:]!r}."
            )
        return found

    def _score_each(self, blanks: Sequence["_Blank"]) -> None:
        """Score what the lists leave out and is wanted all the same, by the left side."""
        wanted = [
            (blank, column, _Asked(blank.left, blank.gap + form))
            for blank in blanks
            for column in blank.wanted()
            for form in blank.forms(column)
        ]
        values = self._totals([(asked, blank.listed) for blank, _, asked in wanted])
        for (blank, column, _), value in zip(wanted, values, strict=True):
            blank.add(column, value)

    def _rescore(self, blank: "_Blank") -> float:
        """The candidates' log-probabilities by the whole sentence, and what they are divided by.

        The likeliest by the left side are scored first, until the time is over; what is wanted in
        any case is scored whatever the time.
        """
        query = blank.query
        best = sorted(blank.values, key=lambda column: -blank.values[column])[: query.n_rescored]
        always = [column for column in query.rescored if column not in best]
        joint: dict[int, float] = {}
        for first in range(0, len(best), AT_ONCE):
            if first and time.monotonic() > query.until:
                always = [column for column in query.rescored if column not in joint]
                break
            joint |= self._joint(blank, best[first : first + AT_ONCE])
        joint |= self._joint(blank, always)
        normaliser = float(np.logaddexp.reduce(list(joint.values())))
        blank.values = {column: value - normaliser for column, value in joint.items()}
        return normaliser

    def _joint(self, blank: "_Blank", columns: Sequence[int]) -> dict[int, float]:
        """Log-probability of each word with what follows it."""
        asked = [
            (column, _Asked(blank.left, blank.gap + form + blank.query.suffix))
            for column in columns
            for form in blank.best_forms(column)
        ]
        values = self._totals([(one, blank.listed) for _, one in asked])
        found: dict[int, float] = {}
        for (column, _), value in zip(asked, values, strict=True):
            found[column] = float(np.logaddexp(found.get(column, -math.inf), value))
        return found

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        encoded = self.encode(query, context)
        left = _unpack(encoded.token_ids)
        gap = "" if encoded.places[0] == "open" else " "
        listed = self._next_tokens(left)
        alone = self._placed(_Asked(left, gap + word), listed)
        pieces = tuple(map(_shown, alone.rest))
        total = alone.total
        if encoded.suffix:
            joint = self._totals([(_Asked(left, gap + word + encoded.suffix), listed)])[0]
            total = joint - float(np.logaddexp(joint, normaliser))
        return WordScore((pieces[0].removeprefix(CONTINUATION), *pieces[1:]), total)

    def token_log_probs(self, texts: Sequence[str]) -> list[TokenScores]:
        return [
            TokenScores(one.shown, np.array(one.values, dtype=np.float32))
            for one in self._once(self._whole, texts)
        ]

    @cached_property
    def scores_first(self) -> bool:
        """Whether the server puts a start token before a text, found by asking it once."""
        return not math.isnan(self._whole(PROOF[0]).values[0])

    def statement_log_probs(
        self,
        statements: Sequence[Statement],
        *,
        hiding: Hiding = "within-word",
        scored: Scored = "statement",
    ) -> list[StatementScores]:
        found = self._once(self._whole, [one.text for one in statements])
        return [
            _statement_scores(one, placed, scored)
            for one, placed in zip(statements, found, strict=True)
        ]

    def _whole(self, text: str) -> "_Placed":
        """All tokens of a text."""
        return self._placed(_Asked("", text), {})

    def _totals(self, asked: Sequence[tuple[_Asked, Lists]]) -> list[float]:
        """Log-probability of the rest of each text behind its left side."""
        return self._server.at_once(lambda one: self._placed(*one).total, asked)

    def _placed(self, asked: _Asked, listed: Lists) -> "_Placed":
        """The tokens of a text's rest with their log-probabilities, from where they really stand.

        listed: what may follow the left side.
        """
        for n in (LISTS[0], WHOLE) if self.is_shifted else (1,):
            echo = self._server.echo(asked.text, n)
            start = _start(echo, asked)
            if start is None:
                parts = (_Asked("", asked.text), _Asked("", asked.left))
                whole, left = (self._placed(part, {}) for part in parts)
                return _Placed((asked.rest,), (whole.total - left.total,), (len(asked.left),))
            values = echo.log_probs[start:]
            if self.is_shifted and asked.left:
                values = shifted_back(echo, start, listed)
            elif self.is_shifted and len(echo.tokens) > 1:  # beside the first token stands nothing
                second = self._next_tokens(asked.text[: echo.offsets[1]])
                values = (math.nan, *shifted_back(echo, 1, second))
            known = values if asked.left else values[1:]
            if not any(map(math.isnan, known)):
                return _Placed(echo.tokens[start:], values, echo.offsets[start:])
        raise UserError(
            f"The server of {self.name} gives no log-probability of every token in "
            f"{asked.text[:80]!r}: leave that text out."
        )


@dataclass(frozen=True, slots=True)
class _Placed:
    """The tokens of a text, or of its rest, the log-probability of each, and where it begins."""

    rest: tuple[str, ...]
    values: tuple[float, ...]
    offsets: tuple[int, ...]

    @property
    def total(self) -> float:
        """Of all together; a first token with nothing before it counts for nothing."""
        return float(sum(value for value in self.values if not math.isnan(value)))

    @property
    def shown(self) -> tuple[str, ...]:
        """The tokens as a person reads them; the first begins a word in any case."""
        first, *others = map(_shown, self.rest)
        return first.removeprefix(CONTINUATION), *others


def _statement_scores(one: Statement, placed: _Placed, scored: Scored) -> StatementScores:
    """A statement's scores; each part of a character stands where the whole of it does."""
    starts = np.array(placed.offsets)
    places = np.append(np.unique(starts), len(one.text))
    ends = places[np.searchsorted(places, starts, side="right")]
    in_answer = (starts < one.end) & (ends > one.start)
    log_probs = np.array(placed.values, dtype=np.float32)
    if scored == "answer":
        log_probs[~in_answer] = np.nan
    return StatementScores(placed.shown, log_probs, in_answer, not in_answer.any())


class _Blank:
    """One query: what the server lists behind its left side, and what is known of the candidates.

    values: column -> log-probability.
    """

    def __init__(self, query: Encoded, left: str, listed: Lists, columns: Columns) -> None:
        self.query = query
        self.left = left
        self.listed = listed
        self.gap = "" if query.places[0] == "open" else " "
        self.values: dict[int, float] = {}
        self._columns = columns
        self._best: dict[int, str] = {}
        self._seen: dict[int, float] = {}
        for token, value in listed.items():
            self._take(token, value)

    def _take(self, token: str, value: float) -> None:
        """A listed token as the candidate that it writes, if there is one."""
        columns = self._columns
        column: int | str | None = None
        if isinstance(columns, OpenColumns):
            column = columns.find(_shown(token)) if token.strip() else None
        elif token.startswith(" ") or self.query.places[0] == "open":
            column = columns.index.get(columns.spelling.key(token.removeprefix(" ")))
        if not isinstance(column, int):
            return
        self.add(column, value)
        if value > self._seen.get(column, -math.inf):
            self._seen[column], self._best[column] = value, token.strip()

    def add(self, column: int, value: float) -> None:
        """One more way to write a candidate: probabilities are summed."""
        self.values[column] = float(np.logaddexp(self.values.get(column, -math.inf), value))

    def wanted(self) -> list[int]:
        """The candidates that are to be scored by themselves, not being listed."""
        columns: Sequence[int] = self.query.rescored
        if not isinstance(self._columns, OpenColumns) and len(self._columns.words) <= SCORED_ALL:
            columns = range(len(self._columns.words))
        return [column for column in columns if column not in self.values]

    def forms(self, column: int) -> tuple[str, ...]:
        """How a candidate may be written: in a folded list, in three ways."""
        word = self._columns.words[column]
        if not self._columns.spelling.folded:
            return (word,)
        return tuple(dict.fromkeys((word, word.title(), word.upper())))

    def best_forms(self, column: int) -> tuple[str, ...]:
        """The listed way to write a candidate, else all."""
        return (self._best[column],) if column in self._best else self.forms(column)


def _start(echo: Echo, asked: _Asked) -> int | None:
    """The first token of a text's rest; None where one is of both its parts."""
    gap = len(asked.rest) - len(asked.rest.lstrip())  # the space may end the token before it
    start = echo.first_from(len(asked.left))
    return echo.first_from(len(asked.left) + gap) if start is None else start


def shifted_back(echo: Echo, start: int, listed: Lists) -> tuple[float, ...]:
    """Log-probabilities of the tokens from `start` on, where each stands in the list before it.

    listed: what may follow the token before `start`. NaN for a token that its list leaves out, and
    for a part of a character: no list tells one from another.
    """
    lists = [listed, *echo.lists[start:]]
    return tuple(
        beside.get(token, math.nan) if token and BROKEN not in token else math.nan
        for token, beside in zip(echo.tokens[start:], lists, strict=False)
    )


def open_server(reference: str, patience: Patience | None = None) -> ServerModel:
    """The model that a reference means, once it is proved where its log-probabilities stand.

    Raises UserError, in one sentence, if the server can't be reached, has another model, or can't
    be scored with.
    """
    address = read_address(reference)
    server = Completions(address, patience)
    record = server.describe()
    n_list = _find_length(server)
    is_shifted = _find_shift(server, n_list)
    if is_shifted:
        n_list = _most(server)
    said = {name: record[name] for name in LASTING if name in record}
    content = json.dumps([address.url, address.model, said, n_list], sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()
    identity = f"server:{address.model}/{digest[:32]}"
    return ServerModel(
        address.reference, server, identity=identity, n_list=n_list, is_shifted=is_shifted
    )


def _find_length(server: Completions) -> int:
    """How many tokens a server lists: the first number that it doesn't refuse."""
    for n in LISTS[:-1]:
        try:
            server.next_tokens(PROOF[0], n)
        except Refused as error:
            if error.status not in (400, 422):
                raise
            continue
        return n
    return LISTS[-1]


def _most(server: Completions) -> int:
    """WHOLE. Raises UserError for a server that doesn't take such a number."""
    try:
        server.next_tokens(PROOF[0], WHOLE)
    except Refused as error:
        raise UserError(
            f"The server {server.address.url} sets log-probabilities one token too early, and its "
            f"lists are too short to put that right ({error})."
        ) from error
    return WHOLE


def _find_shift(server: Completions, n_list: int) -> bool:
    """Whether what stands at a token is the distribution after it; False: before it, as it should.

    A text is made of beginnings and the likeliest plain word behind each, as the server gives it
    for the next token; then it is sent back whole, and what stands at those words is compared.
    Raises UserError if neither fits.
    """
    text = ""
    truths: list[tuple[int, str, float]] = []
    for beginning in PROOF:
        text += beginning
        listed = server.next_tokens(text, n_list)
        words = [token for token in listed if token[:1] == " " and token[1:].isalpha()]
        if not words:
            raise UserError(
                f"The server {server.address.url} lists no word with the space before it, so its "
                "tokens can't be told from pieces of words."
            )
        best = max(words, key=lambda token: listed[token])
        truths.append((len(text), best, listed[best]))
        text += best
    echo = server.echo(text, n_list)
    right = shifted = True
    n_proved = 0
    for offset, token, value in truths:
        at = echo.first_from(offset)
        if not at or echo.tokens[at] != token:  # in a text it is cut in another way
            continue
        n_proved += 1
        right = right and abs(echo.log_probs[at] - value) <= TOLERANCE
        before = echo.lists[at - 1].get(token, math.nan)
        shifted = shifted and abs(before - value) <= TOLERANCE
    if n_proved < PROVED or not (right or shifted):
        raise UserError(
            f"The server {server.address.url} gives log-probabilities of a text that are not those "
            "of its own next tokens, neither in their place nor one beside it: it can't be scored "
            "with."
        )
    return not right


def _shown(token: str) -> str:
    """A token as a person reads it; a piece that goes on with a word is marked."""
    text = token.removeprefix(" ")
    if not text.strip() or not text.isprintable():
        text = text.encode("unicode_escape").decode("ascii") or "␠"
    joins = not token.startswith(" ") and any(sign.isalnum() for sign in text)
    return CONTINUATION + text if joins else text


def _pack(text: str) -> tuple[int, ...]:
    """A text's bytes, four to a number; `_unpack` is the way back."""
    data = text.encode(errors="surrogatepass")
    return tuple(
        int.from_bytes(data[first : first + BYTES].ljust(BYTES, b"\0"), "big")
        for first in range(0, len(data), BYTES)
    )


def _unpack(ids: Sequence[int]) -> str:
    data = b"".join(number.to_bytes(BYTES, "big") for number in ids)
    return data.rstrip(b"\0").decode(errors="surrogatepass")
