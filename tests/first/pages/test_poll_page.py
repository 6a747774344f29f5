"""The pages of a class poll: the lecturer's with the secret, and a participant's."""

from collections.abc import Iterator

import pytest
from opening import html, open_page, press, said
from streamlit.testing.v1 import AppTest

from lama_core.queries.cloze import ClozeRequest, fill
from lama_core.tables import FirstAnswer
from pages.ui.poll.lecturer import N_SHOWN
from pages.ui.poll.rooms import ROOMS, ModelAnswers, PollQuestion, Room
from pages.ui.shared import screens, share, visitors

pytestmark = pytest.mark.usefixtures("home")
MODEL = "minilm-mlm"
TEXT = "The capital of France is ___."


@pytest.fixture(autouse=True)
def no_polls() -> Iterator[None]:
    """Every poll ends with its test."""
    yield
    for room in list(ROOMS._rooms.values()):
        ROOMS.end(room)


def opened(**more: object) -> Room:
    query = (fill.kind, ClozeRequest(TEXT, models=(MODEL,), gold="Paris", top_k=2))
    given = {"text": TEXT, "gold": "Paris", "query": query, "back": (screens.ASK, {})}
    return ROOMS.open(PollQuestion(**given | more), "")  # type: ignore[arg-type]


def button(app: AppTest, label: str) -> bool:
    return any(one.label == label for one in app.button)


def answer(room: Room, text: str) -> AppTest:
    phone = open_page("poll", room=room.code)
    phone.text_input(key="poll 1").set_value(text)
    press(phone, "Send")
    return phone


def open_rooms() -> list[Room]:
    return list(ROOMS._rooms.values())


def test_a_poll_is_opened_from_the_query_on_the_screen() -> None:
    app = open_page("cloze", text="Oslo is in ___.", gold="Norway", models=MODEL)
    app.button(key="cloze poll").click().run()
    app = open_page("cloze", score="Only these answers", models=MODEL)
    app.button(key="answers poll").click().run()
    typed, chosen = open_rooms()
    assert (typed.question.text, typed.question.gold) == ("Oslo is in ___.", "Norway")
    assert typed.question.options == () and len(chosen.question.options) == 4
    assert typed.question.query[1].models == (MODEL,)
    app = open_page("cloze", text="___ is in ___.", models=MODEL)
    assert not button(app, "Class poll"), "an answer fills one blank"


def test_a_poll_is_opened_before_a_lessons_step() -> None:
    app = open_page("lessons", lesson="1-cloze-queries", step="2", large="true")
    press(app, "Class poll")
    (room,) = open_rooms()
    page, params = room.question.back
    assert page == screens.LESSONS and params["step"] == ["2"]
    # The question is what the model says, so the fact isn't its answer.
    assert room.question.gold == "" and "Which word does" in room.question.asks
    assert MODEL in room.question.query[1].models
    assert room.question.asks in said(open_page("poll", room=room.code)).replace("\\", "")
    assert len(room.question.options) == 4
    app = open_page("lessons", lesson="1-cloze-queries", step="3", large="true")
    assert not button(app, "Class poll") and "<table" in html(app), "a class that sees the answers"
    app = open_page("lessons", lesson="1-cloze-queries", step="2")
    assert not button(app, "Class poll"), "a reader alone has no class"


def test_a_class_answers_and_sees_the_models_after_the_reveal() -> None:
    room = opened()
    lecturer = open_page("poll", room=room.code, key=room.secret)
    phones = [answer(room, text) for text in ("Paris", " paris", "<b>*Rome*</b>")]
    assert "You can change it" in said(phones[0])
    for phone in phones:
        assert "minilm" not in html(phone).lower() and "<table" not in html(phone)
    lecturer.run()
    assert "3 answers of 3 participants" in [one.value for one in lecturer.subheader]
    assert "Paris" not in html(lecturer), "late answers would follow the majority"
    next(one for one in lecturer.toggle if one.label == "Show answers as they come").set_value(True)
    lecturer.run()
    assert "2 (67 %)" in html(lecturer) and "&lt;b&gt;*Rome*" in html(lecturer)
    assert 'class="gold"' not in html(lecturer) and "right" not in html(lecturer)
    press(lecturer, "Reveal")
    assert room.models and [len(one.rows) for one in room.models] == [N_SHOWN]
    for app in (lecturer, phones[2].run()):
        assert "67 % right" in html(app).replace("\N{NO-BREAK SPACE}", " ")
        assert "MiniLM-MLM" in html(app)
        assert html(app).count('class="gold"') == 2
        assert "Right answer: <b>Paris</b> · Class: <b>Paris</b> (correct)" in html(app)
    assert "Your answer: **<b>*Rome*</b>** (wrong)" in said(phones[2])
    assert not button(phones[2], "Send") and not button(lecturer, "Reveal")
    press(lecturer, "End the poll")
    assert room.has_ended and room.tally() == ()
    assert "This poll has ended. Thank you." in said(phones[1].run())


def test_the_next_question_is_answered_by_the_same_participants() -> None:
    app = open_page("cloze", text="Oslo is in ___.", gold="Norway", models=MODEL)
    app.button(key="cloze poll").click().run()
    (room,) = open_rooms()
    phone = answer(room, "Norway")
    room.reveal(())
    assert "Your answer: **Norway** (correct)" in said(phone.run())
    app = open_page("cloze", text="Rome is in ___.", models=MODEL)
    app.session_state["my poll"] = room
    assert f"Room {room.code} is open" in app.run().info[0].value
    assert button(app, "Back to the poll") and "<table" not in html(app), "the class looks on"
    press(app, "Show the models' answers")
    assert "<table" in html(app)
    app.button(key="cloze poll").click().run()
    assert open_rooms() == [room] and room.question.text == "Rome is in ___."
    assert "Rome is in" in html(phone.run()) and not phone.success
    phone.text_input(key="poll 2").set_value("Italy")
    press(phone, "Send")
    assert room.tally() == (("Italy", 1),) and room.n_participants() == 1


def test_equally_frequent_answers_are_tied() -> None:
    for tied, answers in (("tied", ("Rome", "Lyon")), ("tied, one right", ("Lyon", "paris"))):
        room = opened()
        phone = [answer(room, one) for one in answers][-1]
        room.reveal(())
        assert f"Class, {tied}: <b>{', '.join(answers)}</b><" in html(phone.run())


def test_a_class_chooses_among_the_lecturers_options() -> None:
    room = opened(options=("Rome", ":red[Paris]"))
    phone = open_page("poll", room=room.code)
    press(phone, "Send")
    assert "Give an answer first" in said(phone)
    phone.radio(key="poll 1").set_value(":red[Paris]")
    press(phone, "Send")
    assert room.tally() == ((":red[Paris]", 1), ("Rome", 0))
    assert "\\:red\\[Paris\\]" in phone.success[0].value


def test_without_its_secret_nobody_reads_or_ends_a_poll() -> None:
    room, other = opened(), opened()
    answer(room, "Rome")
    app = open_page("poll", room=room.code, key=other.secret)
    assert "doesn't open this poll for its lecturer" in said(app)
    assert not app.button and "Rome" not in html(app)
    assert not room.has_ended and room.models is None


def test_a_wrong_code_leads_to_the_door_and_a_full_room_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_page("poll", room="<b>")
    assert "its room code is wrong" in said(app) and button(app, "Join")
    assert button(open_page("poll"), "Join") and not app.error
    monkeypatch.setenv("LAMA_ADDRESS_CONNECTIONS", "1")
    room = opened()
    open_page("poll", room=room.code)
    assert "1 participants of your network" in said(open_page("poll", room=room.code))


def test_a_public_app_has_polls_and_shows_participants_the_link_that_they_can_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(visitors, "is_public", lambda: True)
    monkeypatch.setattr(share, "address_for_others", lambda _: "http://192.168.1.7:8501/poll")
    seen: list[str] = []
    monkeypatch.setattr(share, "qr_code", lambda text: seen.append(text) or "")
    monkeypatch.setattr(share, "whole_address", lambda query: f"http://localhost:8501/poll?{query}")
    app = open_page("cloze", text=TEXT, models=MODEL)
    app.button(key="cloze poll").click().run()
    (room,) = open_rooms()
    seen.clear()
    lecturer = open_page("poll", room=room.code, key=room.secret)
    codes = [one.value for one in lecturer.code]
    assert codes == [f"http://localhost:8501/poll?room={room.code}", "http://192.168.1.7:8501/poll"]
    assert seen == ["http://192.168.1.7:8501/poll"]
    assert "Works on this computer only. Others in the network open:" in said(lecturer)
    assert not any("Share" in str(one.proto) for one in lecturer.get("popover")), "it has the key"


def test_a_model_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    room = opened(query=(fill.kind, ClozeRequest(TEXT, models=("gpt2",))))
    room.join("", "")
    app = open_page("poll", room=room.code, key=room.secret)
    assert len(app.error) == 1
    press(app, "Reveal")
    assert room.models == () and "Class" in html(app)


def test_many_other_answers_are_summed_up() -> None:
    room = opened()
    for number in range(14):
        room.answer(room.join("", ""), f"town {number}")
    room.reveal((ModelAnswers(MODEL, (FirstAnswer(1, "paris", -0.1),), ""),))
    app = open_page("poll", room=room.code)
    assert "and 4 other answers of 4 participants" in html(app)
    assert "Class, tied: <b>town 0, town 1, town 2</b>" in html(app)
