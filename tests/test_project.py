"""What holds for the whole project, checked over all of its files."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from lama_core.cli import make_app

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted([*ROOT.glob("lama_core/**/*.py"), *ROOT.glob("pages/**/*.py"), ROOT / "app.py"])
HEAVY = ("torch", "transformers", "sklearn")


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def test_the_command_line_and_the_pages_start_without_torch() -> None:
    code = (
        "import sys; from lama_core.cli import make_app; make_app();"
        "from pages.ui.shared import cache, export, fetching, predictions;"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", SOURCES, ids=names(SOURCES))
def test_what_is_public_says_what_it_is(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path.name != "__init__.py" or tree.body:
        assert ast.get_docstring(tree), "the module has no docstring"
    missing = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert not missing


@pytest.mark.parametrize("path", SOURCES, ids=names(SOURCES))
def test_nothing_read_can_run(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for danger in ("import pickle", "torch.load(", "trust_remote_code=True", "allow_pickle=True"):
        assert danger not in text
    assert not re.search(r"(?<![.\w])(eval|exec)\(", text)


def test_the_library_knows_nothing_of_streamlit() -> None:
    knowing = [
        path
        for path in SOURCES
        if path.is_relative_to(ROOT / "lama_core")
        and re.search(r"^\s*(import|from) (streamlit|pages)\b", path.read_text("utf-8"), re.M)
    ]
    assert names(knowing) == []


def test_every_requirement_is_pinned() -> None:
    for name in ("requirements.txt", "tests/requirements.txt"):
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith(("#", "-r ")):
                assert re.fullmatch(r"[\w\[\]-]+==[\w.]+( *;.*)?", line), line


def commands() -> Iterator[tuple[str, ...]]:
    def walk(command: object, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        children = getattr(command, "commands", {})
        if not children:
            yield path
        for name, child in children.items():
            yield from walk(child, (*path, name))

    yield from walk(get_command(make_app()), ())


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_every_command_explains_itself_with_an_example(path: tuple[str, ...]) -> None:
    command = get_command(make_app())
    for name in path:
        command = command.commands[name]  # type: ignore[attr-defined]
    assert command.help
    assert "python -m lama_core" in (command.epilog or "")
