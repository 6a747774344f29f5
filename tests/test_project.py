"""What holds for the whole project, checked over all of its files."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("lama_core", "pages", "tools")
SOURCES = sorted([*(p for name in FOLDERS for p in ROOT.glob(f"{name}/**/*.py")), ROOT / "app.py"])
HEAVY = ("torch", "transformers", "sklearn")


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


WEIGHTS_ONLY = r"torch\.load\([^()]*\bweights_only=True\)"


def test_nothing_read_can_run() -> None:
    """Beside what ruff refuses: pickle, eval and exec."""
    loads = {}
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert text.count("torch.load(") == len(re.findall(WEIGHTS_ONLY, text)), path
        loads[path.name] = text.count("torch.load(")
        assert "trust_remote_code=True" not in text and "allow_pickle=True" not in text, path
    assert {name for name, n in loads.items() if n} == {"tensors.py"}  # of old releases' weights


@pytest.mark.parametrize(
    ("where", "line", "broken"),
    (
        ("lama_core/datasets/base.py", "import lama_core.runs.info", "only rooms below it"),
        ("lama_core/models/base.py", "import lama_core.models.loader", "no circles"),
        ("lama_core/metrics/figures.py", "import torch", "only the room of models knows torch"),
        ("lama_core/paths.py", "import tools.commands", "stand on the library"),
        ("lama_core/paths.py", "import streamlit", "knows nothing of its pages"),
        ("tools/commands.py", "import pages.ui.shared.links", "not on each other"),
        ("lama_core/paths.py", "", ""),
    ),
)
def test_a_wrong_import_breaks_the_contract(
    tmp_path: Path, where: str, line: str, broken: str
) -> None:
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / where).open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [lint, "--no-cache", "--no-logo"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == (1 if line else 0), done.stdout
    found = [text for text in done.stdout.splitlines() if "BROKEN" in text]
    assert any(broken in text for text in found) if line else not found


def test_a_private_name_stays_in_its_module() -> None:
    taken = [
        f"{path}: {name}"
        for path in SOURCES
        for name in private_names_of_others(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert taken == []


def private_names_of_others(tree: ast.Module) -> Iterator[str]:
    """What a module imports from the project's others, or reads of them, and is private there."""
    ours = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}".split(".")[0] in FOLDERS:
            ours |= {alias.asname or alias.name for alias in node.names}
            yield from (alias.name for alias in node.names if re.match("_[^_]", alias.name))
    for node in ast.walk(tree):
        of_ours = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if of_ours and node.value.id in ours and re.match("_[^_]", node.attr):
            yield node.attr


def test_every_requirement_is_pinned() -> None:
    for name in ("requirements.txt", "tests/requirements.txt"):
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith(("#", "-r ")):
                assert re.fullmatch(r"[\w\[\]-]+==[\w.]+( *;.*)?", line), line


@pytest.mark.parametrize("lock", ("requirements.lock", "requirements-cuda.lock"))
def test_the_lock_holds_every_pin_with_its_digests_and_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    lines = [line for line in text.replace("\\\n", "").splitlines() if line[:1] not in ("", "#")]
    assert [line for line in lines if line.startswith("-")] == ["--only-binary :all:"]
    locked: dict[str, set[str]] = {}
    for line in lines:
        if line.startswith("-"):
            continue
        found = re.fullmatch(
            r"([a-z0-9-]+)==([\w.]+)(\+cpu)? *(;[^#:/]*?)?( +--hash=sha256:[0-9a-f]{64})+", line
        )
        assert found, line
        locked.setdefault(found[1], set()).add(found[2])
    for name in ("requirements.txt", "tests/requirements.txt"):
        pins = re.findall(r"^([\w-]+)==(\S+)", (ROOT / name).read_text(encoding="utf-8"), re.M)
        assert pins
        for package, version in pins:
            assert locked[package.lower().replace("_", "-")] == {version}, package
    assert ("nvidia-cublas" in locked) == (lock == "requirements-cuda.lock")


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
