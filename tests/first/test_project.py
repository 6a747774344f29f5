"""What holds for the whole project, checked over all of its files."""

import re
import subprocess
import sys
import tomllib
from base64 import b64encode
from hashlib import sha256

import pytest
from project_files import PLUGINS, ROOT, SOURCES

from pages.ui.serve import BASE

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
HEAVY = ("torch", "transformers", "sklearn")


def test_the_command_line_and_the_pages_start_without_torch() -> None:
    code = (
        "import sys; from lama_core.cli import call; call('--help');"
        "assert not {'torch', 'numpy', 'pandas', 'lama_core.datasets'} & {*sys.modules};"
        "from pages.ui.shared import cache, export, fetching, predictions;"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


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


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_is_in_every_list_of_the_project_file(name: str) -> None:
    folder = PLUGINS[name].parent
    place, tools = folder.relative_to(ROOT).as_posix(), PROJECT["tool"]
    assert name == f"lama_{folder.name}"
    assert {path.name for path in folder.iterdir()} >= {"README.md", "tests"}
    entries = PROJECT["project"]["entry-points"]["lama_explorer.plugins"]
    assert entries[folder.name] == f"{name}:PLUGIN"
    assert place in tools["hatch"]["build"]["dev-mode-dirs"]
    assert f"{place}/{name}" in tools["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert f"$MYPY_CONFIG_FILE_DIR/{place}" in tools["mypy"]["mypy_path"]
    contracts = {one["name"]: one for one in tools["importlinter"]["contracts"]}
    assert name in tools["importlinter"]["root_packages"]
    assert name in contracts["no circles, at any depth"]["ancestors"]
    above = contracts["a plug-in imports the library and its pages, and no other plug-in"]
    assert name in above["layers"][0].split(" | ")


def locked_versions(lock: str) -> dict[str, set[str]]:
    """The versions of each package in a lock, whose lines must have digests and no address."""
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
    return locked


@pytest.mark.parametrize("lock", ("requirements.lock", "requirements-cuda.lock"))
def test_the_lock_holds_every_pin_with_its_digests_and_no_address(lock: str) -> None:
    locked = locked_versions(lock)
    for name in ("requirements.txt", "tests/requirements.txt"):
        pins = re.findall(r"^([\w-]+)==(\S+)", (ROOT / name).read_text(encoding="utf-8"), re.M)
        assert pins
        for package, version in pins:
            assert locked[package.lower().replace("_", "-")] == {version}, package
    assert ("nvidia-cublas" in locked) == (lock == "requirements-cuda.lock")


def test_the_policy_of_nginx_allows_the_script_that_index_pages_get() -> None:
    script = BASE.removeprefix(b"<script>").removesuffix(b"</script>")
    digest = b64encode(sha256(script).digest()).decode()
    assert f"'sha256-{digest}'" in (ROOT / "deploy" / "nginx.conf").read_text("utf-8")
