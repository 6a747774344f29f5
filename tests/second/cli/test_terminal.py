"""Texts from files, models and servers never control the terminal."""

import io
import json
from functools import partial

import pytest
from calling import call
from completions_server import NAME, Server, serve
from rich.console import Console

from lama_core.cli import output
from lama_core.progress import Progress

# Colour, title of the window, clipboard, link, C1, backspace, return, bell, direction of the text.
HOSTILE = (
    "\x1b[31mred", "\x1b]0;title\x07", "\x1b]52;c;aGk=\x07", "\x1b]8;;http://x\x1b\\x", "\x9b2Jx",
    "ab\x08\x08cd", "shown\rhidden", "a\x00b\x7f", "left\u202eright\u2066x", "line\u2028line\x85x",
)  # fmt: skip
BAD = set(map(chr, (*range(9), *range(11, 32), *range(127, 160), 0x202E, 0x2028, 0x2066)))


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_every_kind_of_output_shows_escapes(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output.print_table([text, "n"], [[text, 1], ["[red]x[/]", None]], title=text)
    output.print_line(text)
    output.print_parts([text])
    output.print_note(text)
    output.print_error(text)
    output.print_json({text: [text]})
    monkeypatch.setenv("LAMA_PROGRESS", "json")
    output.print_note(text)
    with output.progress() as report:
        report(Progress(text))
    out, errors = capsys.readouterr()
    assert not BAD & set(out + errors), "none of these is printed"
    assert "[red]x[/]" in out and "\\u" in out
    assert json.loads(errors.splitlines()[-1])["progress"]["stage"] == text
    assert json.loads(out[out.index("{") :]) == {text: [text]}


def test_the_progress_bar_shows_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    terminal = partial(Console, file=shown, force_terminal=True, color_system=None)
    monkeypatch.setattr(output, "Console", lambda **_: terminal())
    with output.progress() as report:
        report(Progress("bad \x1b]0;title\x07 name\nsecond line"))
    assert "bad \\u001b]0;title\\u0007 name second line" in shown.getvalue()
    assert "\x1b]0" not in shown.getvalue()


@pytest.mark.usefixtures("home")
def test_a_servers_text_cannot_control_the_terminal() -> None:
    with serve(Server(chats={"": "\x1b[2JParis\x1b]0;x\x07"})) as server:
        check_terminal(server)


def check_terminal(server: Server) -> None:
    words = ("ask", "Where?", "--model", f"chat:{server.address}#{NAME}")
    status, out, errors = call(*words)
    assert status == 0 and "\\u001b[2JParis" in out and "\x1b" not in out + errors
    status, out, _ = call(*words, "--json")
    assert json.loads(out)["models"][0]["text"] == "\x1b[2JParis\x1b]0;x\x07"
    server.body = b'{"error": {"message": "\\u001b[31mno\\u009bmodel"}}'
    status, out, errors = call(*words, "--again")
    assert status == 2 and "with an error: [31mno model." in errors and not BAD & set(errors)
