"""Plug-ins: their rows follow as the project's own do, and their mistakes are theirs."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from calling import call
from opening import open_page
from pip_packages import path_with, pip_install
from project_files import ROOT
from streamlit.testing.v1 import AppTest

from lama_core import plugins
from lama_core.cli import exit_codes
from lama_core.errors import UserError
from lama_core.probes.kinds import read_request, title_of
from lama_core.requests import StoredRequest
from lama_core.views.table import all_views


def install(place: Path, package: str, code: str, entry: str, name: str = "it") -> None:
    """Lay a package out as pip does."""
    (place / package).mkdir(parents=True)
    (place / package / "__init__.py").write_text(code, encoding="utf-8")
    about = place / f"{package}-1.2.dist-info"
    about.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {package.replace('_', '-')}\nVersion: 1.2\n"
    (about / "METADATA").write_text(metadata)
    (about / "entry_points.txt").write_text(f"[{plugins.GROUP}]\n{name} = {entry}\n")


def forget() -> None:
    """Look for plug-ins again."""
    for kept in (plugins.find_plugins, plugins._warn, plugins.rows):
        kept.cache_clear()
    sys.modules.pop("lama_core.cli.results", None)  # which has the commands of plug-ins' views
    importlib.invalidate_caches()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that Python imports from, for packages with plug-ins."""
    before = {*sys.modules}
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    yield tmp_path
    monkeypatch.undo()
    for name in {*sys.modules} - before:
        if name.startswith("lama_test_"):
            del sys.modules[name]
    forget()


HEAD = "from lama_core.plugins import Plugin\n"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise RuntimeError('no luck')", "RuntimeError: no luck"),
        (f'{HEAD}PLUGIN = Plugin(name="it", views={{"a": "b"}})', "'b' is not of the form"),
        (f"{HEAD}PLUGIN = Plugin(name='it', queries={{'--help': 'a:b'}})", "'--help' can't be"),
        ("import lama_core; hasattr(lama_core, 'mine')", "looks for plug-ins while it is imported"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
    ],
)
def test_a_broken_plugin_is_one_note(place: Path, code: str, reason: str) -> None:
    install(place, "lama_test_bad", code, "lama_test_bad:PLUGIN")
    _, problems = plugins.find_plugins()
    assert len(problems) == 1
    assert problems[0].startswith("The plug-in it of the package lama-test-bad can't be used (")
    assert reason in problems[0]
    status, _, errors = call("plugins", "list")
    assert status == 0 and errors.count(reason) == 1


def test_a_package_that_cant_be_read_hides_no_other(place: Path) -> None:
    for package in ("lama_test_bytes", "lama_test_good"):
        code = f'{HEAD}PLUGIN = Plugin(name="{package}", functions={{"{package}": "os:getcwd"}})'
        install(place, package, code, f"{package}:PLUGIN", name=package)
    (place / "lama_test_bytes-1.2.dist-info" / "entry_points.txt").write_bytes(b"\xff")
    (place / "lama_test_good-1.2.dist-info" / "METADATA").unlink()
    found, problems = plugins.find_plugins()
    assert "lama_test_good" in {one.plugin.name for one in found}
    assert len(problems) == 1 and f"{place} can't be read (UnicodeDecodeError" in problems[0]


VIEW = (
    HEAD
    + '''
from dataclasses import dataclass
from lama_core.views.choice import RunsRequest
from lama_core.views.view import View, ViewFunction
PLUGIN = Plugin(name="it", views={"wrong": "lama_test_view:wrong"})
@dataclass(frozen=True)
class WrongRequest(RunsRequest, command="results wrong", python="wrong"):
    """Fields."""
class Wrong(View[WrongRequest, object]):
    """Wrong."""
    name = title = "wrong"
    question = "Why?"
    example = "results wrong"
    def compute(self, runs, request):
        return MISTAKE
    def tables(self, shown):
        yield ""
wrong = ViewFunction(WrongRequest, Wrong(), "Nothing.")
'''
)


def test_the_projects_commands_and_views_win(place: Path) -> None:
    code = VIEW.replace("MISTAKE", "1 / 0").replace("results wrong", "results ranks")
    install(place, "lama_test_view", code, "lama_test_view:PLUGIN")
    assert call("results", "ranks", "starter-minilm_mlm-manual")[0] == 0
    for package in ("lama_test_go", "lama_test_went"):
        code = f'{HEAD}PLUGIN = Plugin(name="{package}", queries={{"go": "a:b", "os": "a:b"}})'
        install(place, package, code, f"{package}:PLUGIN", name=package)
    forget()
    assert call("--help")[0] == 0
    status, _, errors = call("os")
    assert status == 2 and "lama-test-go can't be used (ModuleNotFoundError" in errors
    assert sum("lama_test_went isn't used" in one for one in plugins.find_plugins()[1]) == 2


def test_a_page_at_a_taken_path_leaves_the_app(place: Path) -> None:
    paths = ("cloze", "poll", "first", "help", "mine")
    rows = {path: "lama_test_pages.rows:draw" for path in paths}
    code = f'{HEAD}PLUGIN = Plugin(name="it", pages={rows})'
    install(place, "lama_test_pages", code, "lama_test_pages:PLUGIN")
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    app.switch_page("pages/help.py").run()
    assert not app.exception and app.header[0].value == "Help"
    linked = [one.proto.page for one in app.get("page_link")]
    assert linked.count("mine") == 1 and not {"poll", "cloze"} & {*linked}


FORM = (
    HEAD
    + """
PLUGIN = Plugin(name="it", file_forms={"poems": "lama_test_form.rows:FORM"})
"""
)


@pytest.mark.parametrize("mistake", ("draw_progress", "describe", "takes", "draw", None))
def test_a_form_for_files_is_offered_and_its_mistakes_leave_the_import_of_data(
    place: Path, mistake: str | None
) -> None:
    install(place, "lama_test_form", FORM, "lama_test_form:PLUGIN")
    (place / "lama_test_form" / "rows.py").write_text(
        "import streamlit as st\n"
        "from pages.ui.data.file_forms import FileForm\n"
        f"def fail(name, value):\n    return 1 / (name != {mistake!r}) and value\n"
        "FORM = FileForm(describe=lambda: fail('describe', '**Poems**: a text.'), help='A poem.',\n"
        "    example=('poem.csv', 'a'), takes=lambda path: fail('takes', 'perhaps'),\n"
        "    draw=lambda file: fail('draw', st.write('A poem!')),\n"
        "    draw_progress=lambda: fail('draw_progress', None))\n"
    )
    table = place / "table.csv"
    table.write_text("subject,object,template\nPeru,Lima,The capital of [X] is [Y] .\n")
    app = open_page("data", tab="Import")
    assert not app.exception
    app.text_input(key="import path 0").set_value(str(table)).run()
    shown = [one.value.replace("\\", "") for one in app.error]
    if mistake in ("draw_progress", "describe", "takes"):
        assert len(shown) == 1 and "lama-test-form failed (ZeroDivisionError" in shown[0]
        assert any(one.label == "Import" for one in app.button)
        return
    assert any("**Poems**: a text." in one.value for one in app.markdown)
    (choice,) = app.segmented_control
    assert choice.options == ["poems", "facts to ask"] and choice.value is None
    assert "Choose what the table has: poems, or facts to ask them." in app.info[0].value
    choice.set_value("poems").run()
    assert ("A poem!" in [one.value for one in app.markdown]) and bool(app.error) == bool(mistake)
    app.segmented_control[0].set_value("facts to ask").run()
    assert any(one.label == "Import" for one in app.button) and not app.error


def test_a_plugin_adds_a_command_to_the_group_of_runs(place: Path) -> None:
    code = (
        HEAD
        + """
from cyclopts import App
def hello():
    print("Hello from a group.")
HELLO, LIST = App(name="hello"), App(name="list")
HELLO.default(hello)
PLUGIN = Plugin(name="it", help={"runs hello": "Greet."}, commands={
    "runs hello": "lama_test_runs:HELLO", "runs list": "lama_test_runs:HELLO"})
"""
    )
    install(place, "lama_test_runs", code, "lama_test_runs:PLUGIN")
    sys.modules.pop("lama_core.cli.runs", None)  # which has the commands of plug-ins, too
    assert "Greet." in call("runs", "--help")[1]
    assert "Hello" in call("runs", "hello")[1] and "Hello" not in call("runs", "list")[1]
    sys.modules.pop("lama_core.cli.runs", None)


@pytest.mark.parametrize(
    ("mistake", "reason"),
    [
        ("runs[0].facts['no such column']", "KeyError"),
        ("runs[0].table(['no such column'])", "no run has a column 'no such column'"),
    ],
)
def test_a_mistake_in_a_plugin_is_its_authors(place: Path, mistake: str, reason: str) -> None:
    install(place, "lama_test_view", VIEW.replace("MISTAKE", mistake), "lama_test_view:PLUGIN")
    view = next(one for one in all_views() if one.request.command[-1] == "wrong")
    with pytest.raises(Exception) as raised:
        view.answer(view.request(("starter-minilm_mlm-manual",)))
    assert not isinstance(raised.value, UserError)
    message = exit_codes.bug_message(raised.value)
    assert message.startswith("The plug-in it of the package lama-test-view failed (")
    assert reason in message and "damaged" not in message and "Delete" not in message
    status, _, errors = call("results", "wrong", "starter-minilm_mlm-manual")
    assert status == 1 and "lama-test-view" in errors


def test_a_run_of_a_plugin_that_isnt_installed_names_its_package() -> None:
    with pytest.raises(UserError, match="pip install lama-toys"):
        read_request(StoredRequest("play", {}, package="lama-toys"))
    assert title_of("play") == "play"


def test_the_tests_of_a_new_plugin_a_copy_of_the_example_pass(tmp_path: Path) -> None:
    status, out, errors = call("plugins", "new", "mine", "--out", str(tmp_path / "new"))
    assert status == 0 and str(tmp_path / "new") in out, errors
    assert "example" not in (tmp_path / "new" / "lama_mine" / "__init__.py").read_text()
    pip_install(tmp_path / "new", tmp_path / "site")
    place = str(tmp_path / "new")
    words = ("-m", "pytest", "-q", "-c", os.devnull, "--rootdir", place, place)
    environment = {**os.environ, "PYTHONPATH": path_with(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("Mine", "mine-1", "", "../x", "mine\n"):
        assert call("plugins", "new", name, "--out", str(tmp_path / "other"))[0] == 2
    assert call("plugins", "new", "mine", "--out", place)[0] == 2
