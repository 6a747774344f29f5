"""Rooms of class polls: who may answer, how often, for how long, and who sees the answers."""

import threading
from contextlib import suppress

import pytest

from lama_core.errors import UserError
from lama_core.tables import FirstAnswer
from pages.ui.poll import rooms
from pages.ui.poll.rooms import ModelAnswers, PollQuestion, Room, Rooms

QUESTION = PollQuestion(text="The capital of France is ___.")


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def polls(clock: Clock) -> Rooms:
    return Rooms(clock)


def give(room: Room, *answers: str) -> list[str]:
    """A new participant for each answer."""
    here = [room.join("", "10.0.0.1") for _ in answers]
    for participant, answer in zip(here, answers, strict=True):
        room.answer(participant, answer)
    return here


def test_typed_answers_are_grouped_and_judged_as_equal_texts(polls: Rooms) -> None:
    room = polls.open(PollQuestion(text="___.", gold="e\u0301toile"), "")
    give(room, "Berlin", " étoile", "L'étoile", "ÉTOILE ", "étoile", "the étoile.", "étoile")
    assert room.tally() == (("étoile", 5), ("Berlin", 1), ("L'étoile", 1))
    assert [room.question.is_gold(word) for word, _ in room.tally()] == [True, False, False]
    signs = polls.open(PollQuestion(text="___.", gold="C++"), "")
    give(signs, "c++", "C", "C#", "C++")
    assert signs.tally() == (("c++", 2), ("C", 1), ("C#", 1))
    assert not polls.open(QUESTION, "").question.is_gold(""), "there is no right answer"


def test_options_are_the_only_answers_and_counted_as_the_lecturer_wrote_them(polls: Rooms) -> None:
    options = ("Turkey", "turkey", "Bogota\u0301", "Rome")
    room = polls.open(PollQuestion(text="___.", options=options, gold="turkey"), "")
    (me, *_) = give(room, "Turkey", "turkey", "turkey", "Bogotá")
    with pytest.raises(UserError, match="none of the options"):
        room.answer(me, "Oslo")
    assert room.tally() == (("turkey", 2), ("Turkey", 1), ("Bogota\u0301", 1), ("Rome", 0))
    assert [room.question.is_gold(word) for word, _ in room.tally()] == [True, *[False] * 3]
    question = PollQuestion(text="___.", options=("Rome", "Paris"), gold="Paris")
    found = [question.is_gold(word) for word in ("paris", "rome", "oslo")]
    assert found == [True, False, False], "a model's word is the option in lower case"


def test_an_answer_is_one_short_line_and_changes_until_the_reveal(polls: Rooms) -> None:
    room = polls.open(QUESTION, "")
    (me,) = give(room, "\u202eRome\n \x00 now" + "!" * 500)
    assert room.answer_of(me) == ("Rome now" + "!" * 500)[: rooms.MAX_LETTERS]
    room.answer(me, "Paris")
    assert room.tally() == (("Paris", 1),)
    with pytest.raises(UserError, match="Give an answer"):
        room.answer(me, " \n")
    room.reveal((ModelAnswers("minilm-mlm", (FirstAnswer(1, "paris", -0.1),), ""),))
    room.answer(me, "Oslo")
    room.answer("somebody else", "Oslo")
    assert room.tally() == (("Paris", 1),)


def test_a_room_has_300_participants_and_so_many_of_one_address(polls: Rooms) -> None:
    room = polls.open(QUESTION, "")
    first = room.join("", "10.0.0.1", most=2)
    room.join("", "10.0.0.1", most=2)
    with pytest.raises(UserError, match="2 participants of your network"):
        room.join("", "10.0.0.1", most=2)
    for number in range(rooms.MAX_PARTICIPANTS - 2):
        room.join("invented", f"10.0.1.{number}", most=2)
    with pytest.raises(UserError, match="300 participants, the maximum"):
        room.join("", "10.0.0.2")
    assert room.join(first, "10.0.0.3") == first, "the same participant, whatever the network"
    assert "10.0." not in repr((vars(polls), vars(room))), "no address is kept"
    assert room.n_participants() == rooms.MAX_PARTICIPANTS


def test_polls_are_limited_for_everyone_and_for_an_address(
    polls: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = [polls.open(QUESTION, "10.0.0.1") for _ in range(rooms.MAX_ROOMS_OF_ADDRESS)]
    with pytest.raises(UserError, match="5 open polls"):
        polls.open(QUESTION, "10.0.0.1")
    polls.end(mine[0])
    polls.open(QUESTION, "10.0.0.1")
    monkeypatch.setattr(rooms, "MAX_ROOMS", 6)
    polls.open(QUESTION, "10.0.0.2")
    with pytest.raises(UserError, match="6 polls are open"):
        polls.open(QUESTION, "10.0.0.3")
    with pytest.raises(UserError, match="at most 1,000 characters"):
        polls.open(PollQuestion(text="x" * 1001), "10.0.0.4")


def test_a_poll_ends_after_two_hours_and_its_answers_are_gone(polls: Rooms, clock: Clock) -> None:
    room = polls.open(QUESTION, "")
    give(room, "Paris")
    clock.now = 2 * 3600 - 1
    assert polls.find(room.code.lower(), "") is room
    clock.now = 2 * 3600
    assert polls.find(room.code, "") is None
    assert room.has_ended and room.tally() == () and room.n_participants() == 0


def test_only_the_secret_opens_the_lecturers_page(polls: Rooms) -> None:
    first, second = (polls.open(QUESTION, "") for _ in range(2))
    assert first.is_lecturer(first.secret)
    for secret in ("", second.secret, first.code, first.secret[:-1], "é\udc80"):
        assert not first.is_lecturer(secret)
    assert len(first.secret) >= 32 and first.code != second.code


def test_an_address_tries_few_wrong_codes_a_minute(polls: Rooms, clock: Clock) -> None:
    room, ended = (polls.open(QUESTION, "") for _ in range(2))
    polls.end(ended)
    for _ in range(2 * rooms.MAX_WRONG_CODES):
        assert polls.find(ended.code, "10.0.0.1") is None, "it was right before"
    for _ in range(rooms.MAX_WRONG_CODES):
        assert polls.find("?", "10.0.0.1") is None
    with pytest.raises(UserError, match="Too many wrong room codes"):
        polls.find(room.code, "10.0.0.1")
    assert polls.find(room.code, "10.0.0.2") is room
    clock.now = 60
    assert polls.find(room.code, "10.0.0.1") is room


def test_wrong_codes_of_others_lock_out_nobody_of_the_room(polls: Rooms) -> None:
    room, other = (polls.open(QUESTION, "") for _ in range(2))
    me, stranger = room.join("", "10.0.0.1"), other.join("", "10.0.0.1")
    for _ in range(2 * rooms.MAX_WRONG_CODES):
        with suppress(UserError):
            polls.find("?", "10.0.0.1")
    assert polls.find(room.code, "10.0.0.1", participant=me) is room
    assert polls.find(room.code.lower(), "10.0.0.1", secret=room.secret) is room
    room.answer(me, "Paris")
    assert room.answer_of(me) == "Paris"
    for wrong in ({}, {"participant": stranger}, {"secret": other.secret}, {"participant": "x"}):
        with pytest.raises(UserError, match="Too many wrong room codes"):
            polls.find(room.code, "10.0.0.1", **wrong)


def test_answers_at_the_same_time_are_all_counted(polls: Rooms) -> None:
    room = polls.open(QUESTION, "")

    def answer_ten() -> None:
        give(room, *["Paris"] * 10)

    threads = [threading.Thread(target=answer_ten) for _ in range(20)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert room.tally() == (("Paris", 200),) and room.n_participants() == 200
