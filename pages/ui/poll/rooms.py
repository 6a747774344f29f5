"""Class polls: a lecturer opens a room, and participants answer one question in it.

Everything is in memory only, and is deleted when a poll ends: by the lecturer, or after
`MAX_SECONDS`. A room has a short code, which opens it for participants, and a secret, without which
no one sees the answers before they are revealed. Addresses of clients are only counted, as hashes
with a key that changes at each start.
"""

import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from lama_core.errors import UserError
from lama_core.tables import FirstAnswer, FirstAnswers
from lama_core.texts import answer_key, written_key

MAX_SECONDS = 2 * 60 * 60
MAX_ROOMS = 50
MAX_ROOMS_OF_ADDRESS = 5
MAX_PARTICIPANTS = 300
MAX_WRONG_CODES = 60  # of one address in a minute
MAX_LETTERS = 60  # of an answer
MAX_SENTENCE = 1000  # characters
LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"  # of a code, without 0, O, 1, I and L
N_LETTERS = 5
_SALT = secrets.token_bytes(16)


@dataclass(frozen=True, slots=True, kw_only=True)
class PollQuestion:
    """The question of a poll.

    Attributes:
        text: The sentence with a blank.
        options: The answers to choose from; () if participants type theirs.
        gold: The right answer, or empty.
        asks: The question in words; or empty, for what fills the blank.
        query: The query to the models, for the page.
        back: Where the poll was opened, for the page.
    """

    text: str
    options: tuple[str, ...] = ()
    gold: str = ""
    asks: str = ""
    query: Any = None
    back: Any = None

    def key(self, answer: str) -> str:
        """The key of equal answers: that of an option as written, else of one equal as an answer.

        Without options, typed answers are compared as answers.
        """
        keys = [written_key(one) for one in self.options]
        written, typed = written_key(answer), answer_key(answer)
        loosely = (key for key in keys if answer_key(key) == typed)
        return written if written in keys else next(loosely, typed)

    def is_gold(self, answer: str) -> bool:
        """Whether this is the right answer; never without one."""
        return bool(self.gold) and self.key(answer) == self.key(self.gold)


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """A model's first answers, best first, and a line on the gold one.

    number: What their numbers are, `probability` or `share`.
    """

    name: str
    rows: FirstAnswers
    note: str
    number: str = "probability"

    @property
    def first(self) -> FirstAnswer:
        """The first answer that is ranked."""
        return next((one for one in self.rows if one.rank), self.rows[0])


class Room:
    """An open poll.

    Attributes:
        code: What participants type.
        secret: What the lecturer's link has.
        question: The question.
        models: The models' answers; None until they are revealed.
        n_asked: The number of questions that were asked so far, with this one.
        has_ended: Whether the poll has ended.
    """

    def __init__(self, code: str, question: PollQuestion, opened: float, by: str) -> None:
        self.code, self.question = code, question
        self.secret = secrets.token_urlsafe(24)
        self.opened, self.by = opened, by
        self.models: tuple[ModelAnswers, ...] | None = None
        self.n_asked = 1
        self.has_ended = False
        self._lock = threading.Lock()
        self._answers: dict[str, str] = {}  # participant -> answer; empty before the first one
        self._from: Counter[str] = Counter()

    def is_lecturer(self, secret: str) -> bool:
        """Whether this is the room's secret."""
        return secrets.compare_digest(secret.encode(errors="replace"), self.secret.encode())

    def knows(self, participant: str, secret: str) -> bool:
        """Whether one of these is a participant's id in this room, or the room's secret."""
        return participant in self._answers or self.is_lecturer(secret)

    def join(self, participant: str, address: str, most: int = 0) -> str:
        """Return the participant's id: `participant` if it is one of this room, else a new one.

        Args:
            participant: The id that the browser sent, or empty.
            address: The client's address.
            most: The largest number of participants with one address; 0: no limit.

        Raises:
            UserError: If the room is full.
        """
        mark = _mark(address)
        with self._lock:
            if participant in self._answers or self.has_ended:
                return participant
            if len(self._answers) >= MAX_PARTICIPANTS:
                raise UserError(f"This poll has {MAX_PARTICIPANTS} participants, the maximum.")
            if most and self._from[mark] >= most:
                raise UserError(f"This poll has {most} participants of your network, the maximum.")
            participant = secrets.token_urlsafe(8)
            self._answers[participant] = ""
            self._from[mark] += 1
        return participant

    def answer(self, participant: str, text: str) -> None:
        """Set a participant's answer, until the answers are revealed.

        Raises:
            UserError: If the answer is empty or none of the options.
        """
        options, key = self.question.options, self.question.key
        shown = "".join(
            letter if letter.isprintable() else " " for letter in text[: 4 * MAX_LETTERS]
        )
        answer = next(
            (one for one in options if key(one) == key(text)),
            written_key(shown)[:MAX_LETTERS].strip(),
        )
        if not answer:
            raise UserError("Give an answer first; a guess is enough.")
        if options and answer not in options:
            raise UserError("This answer is none of the options.")
        with self._lock:
            if participant in self._answers and self.models is None and not self.has_ended:
                self._answers[participant] = answer

    def answer_of(self, participant: str) -> str:
        """A participant's answer; empty if there is none."""
        return self._answers.get(participant, "")

    def n_participants(self) -> int:
        """The number of participants, with and without an answer."""
        return len(self._answers)

    def tally(self) -> tuple[tuple[str, int], ...]:
        """Each answer and its number, most frequent first, in its most frequent spelling."""
        with self._lock:
            given = [answer for answer in self._answers.values() if answer]
            key, options = self.question.key, self.question.options
        spelled = {key(one): Counter({one: 0}) for one in options}
        for answer in given:
            spelled.setdefault(key(answer), Counter())[answer] += 1
        counts = [(each.most_common(1)[0][0], each.total()) for each in spelled.values()]
        return tuple(sorted(counts, key=lambda count: -count[1]))

    def ask(self, question: PollQuestion) -> None:
        """Ask the same participants another question, and delete the answers to the last one.

        Raises:
            UserError: If the sentence is long.
        """
        _check(question)
        with self._lock:
            self.question, self.models = question, None
            self.n_asked += 1
            self._answers = dict.fromkeys(self._answers, "")

    def reveal(self, models: tuple[ModelAnswers, ...]) -> None:
        """Show everyone the class's and the models' answers."""
        with self._lock:
            self.models = models

    def end(self) -> None:
        """Delete all answers."""
        with self._lock:
            self.has_ended = True
            self._answers.clear()
            self._from.clear()


class Rooms:
    """All open polls. clock: seconds that never decrease."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._rooms: dict[str, Room] = {}
        self._ended: deque[str] = deque(maxlen=4 * MAX_ROOMS)
        self._minute, self._wrong = 0, Counter[str]()

    def open(self, question: PollQuestion, address: str) -> Room:
        """Open a poll.

        Raises:
            UserError: If too many polls are open, here or by this address, or the sentence is long.
        """
        _check(question)
        mark = _mark(address)
        with self._lock:
            self.end_old()
            if len(self._rooms) >= MAX_ROOMS:
                raise UserError(f"{MAX_ROOMS} polls are open, the maximum. Try again later.")
            if sum(room.by == mark for room in self._rooms.values()) >= MAX_ROOMS_OF_ADDRESS:
                raise UserError(
                    f"You have {MAX_ROOMS_OF_ADDRESS} open polls, the maximum. End one first."
                )
            room = Room(self._free_code(), question, self._clock(), mark)
            self._rooms[room.code] = room
        return room

    def find(
        self, code: str, address: str, *, participant: str = "", secret: str = ""
    ) -> Room | None:
        """The open poll with this code, in upper or lower case; None if there is none.

        Args:
            code: The code.
            address: The client's address.
            participant: The id that the browser sent, or empty.
            secret: The secret that it sent, or empty.

        Raises:
            UserError: If this address tried too many wrong codes in this minute, and neither id
                nor secret belongs to the poll.
        """
        code, mark = code.strip().upper(), _mark(address)
        with self._lock:
            self.end_old()
            room = self._rooms.get(code)
            if room and room.knows(participant, secret):
                return room
            minute = int(self._clock() // 60)
            if minute != self._minute:
                self._minute, self._wrong = minute, Counter()
            if self._wrong[mark] >= MAX_WRONG_CODES:
                raise UserError("Too many wrong room codes. Try again in a minute.")
            if room is None and code not in self._ended:
                self._wrong[mark] += 1
            return room

    def has_ended(self, code: str) -> bool:
        """Whether a poll with this code ended not long ago."""
        return code.strip().upper() in self._ended

    def end(self, room: Room) -> None:
        """End a poll."""
        with self._lock:
            room.end()
            if self._rooms.pop(room.code, None):
                self._ended.append(room.code)

    def end_old(self) -> None:
        """End the polls that are open for too long."""
        with self._lock:
            for room in list(self._rooms.values()):
                if self._clock() - room.opened >= MAX_SECONDS:
                    self.end(room)

    def _free_code(self) -> str:
        while True:
            code = "".join(secrets.choice(LETTERS) for _ in range(N_LETTERS))
            if code not in self._rooms and code not in self._ended:
                return code


def _check(question: PollQuestion) -> None:
    if len(question.text) > MAX_SENTENCE:
        raise UserError(f"A poll's sentence has at most {MAX_SENTENCE:,} characters.")


def _mark(address: str) -> str:
    return blake2b(address.encode(), key=_SALT, digest_size=8).hexdigest()


ROOMS = Rooms()
