"""What holds for the whole project, checked over all of its files."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path

import pytest
from project_files import PACKAGES, PLUGINS, ROOT, SOURCES

from lama_core.cli import make_app
from lama_core.plugins import OWN, find_plugins, missing
from pages.ui.serve import BASE
from tools.documentation.site import commands_of

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


# What the library and the pages know of plug-ins is what their rows say.
CORE = [path for path in SOURCES if path.is_relative_to(ROOT / "lama_core")]
CORE += [*ROOT.glob("pages/**/*.py"), ROOT / "app.py"]


@pytest.mark.parametrize("name", PLUGINS)
def test_nothing_in_the_core_names_a_plugin(name: str) -> None:
    naming = [path for path in CORE if re.search(rf"\b{name}\b", path.read_text("utf-8"))]
    assert naming == []


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


def test_the_installed_plugins_are_those_of_the_project_file() -> None:
    found = {
        one.plugin.name for one in find_plugins()[0] if one.package == PROJECT["project"]["name"]
    }
    assert found == PROJECT["project"]["entry-points"]["lama_explorer.plugins"].keys(), (
        "install the project again: `.venv/bin/pip install --no-deps --no-build-isolation -e .`"
    )


def test_a_missing_plugin_is_named_for_each_of_its_rows() -> None:
    rows = {
        one.plugin.name: {name for table in one.plugin.rows().values() for name in table}
        for one in find_plugins()[0]
    }
    assert {name: set(own) for name, own in OWN.items()} == {name: rows[name] for name in OWN}
    assert missing("elmo") == ""


# Contract -> the wrong imports that it names.
WRONG_IMPORTS = {
    "pages and tools stand on the library, and not on each other": (
        "lama_core.paths -> tools.starter.build",
        "tools.starter.build -> pages.ui.shared.links",
    ),
    "a plug-in imports the library and its pages, and no other plug-in": (
        "tools.starter.build -> lama_older_systems",
    ),
    "a room of the library imports only rooms below it": (
        "lama_core.datasets.dataset -> lama_core.runs.info",
    ),
    "no circles, at any depth": ("lama_core.models.protocols -> lama_core.models.cache",),
    "only the room of models knows torch": ("lama_core.metrics.relation_figures -> torch",),
    "pages and commands draw what functions return": (
        "lama_core.cli.output -> lama_core.scoring.batches",
        "pages.ui.shared.links -> lama_core.models.hf.masked",
    ),
    "the library knows nothing of its pages, and draws with Vega-Lite alone": (
        "lama_core.paths -> streamlit",
        "lama_core.papers.report -> plotly",
    ),
}


def test_a_wrong_import_breaks_its_contract(tmp_path: Path) -> None:
    for name, folder in PACKAGES.items():
        shutil.copytree(folder, tmp_path / name, ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for folder in (tmp_path / "pages").glob("**/"):  # or an installed checkout's pages are linted
        (folder / "__init__.py").touch()

    def lint() -> tuple[int, str]:
        command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        return done.returncode, done.stdout

    status, said = lint()
    assert status == 0 and "BROKEN" not in said, said
    for wrong in chain(*WRONG_IMPORTS.values()):
        where, _, name = wrong.partition(" -> ")
        with (tmp_path / f"{where.replace('.', '/')}.py").open("a", encoding="utf-8") as file:
            file.write(f"\nimport {name}\n")
    status, said = lint()
    assert status == 1, said
    for contract, wrong_ones in WRONG_IMPORTS.items():
        assert re.search(rf"^{contract} BROKEN", said, re.M), said
        _, _, why = said.partition(f"\n{contract}\n---")
        for wrong in wrong_ones:  # a circle is named by the last parts of its modules
            short = "- .protocols -> .cache" if contract.startswith("no circles") else wrong
            assert re.sub(" +", " ", why.split("\n---")[0]).count(short) == 1, said


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_a_private_name_stays_in_its_module() -> None:
    taken = [
        f"{path}: {name}" for path in SOURCES for name in private_names_of_others(parsed(path))
    ]
    assert taken == []


def private_names_of_others(tree: ast.Module) -> Iterator[str]:
    """What a module imports from the project's others, or reads of them, and is private there."""
    ours = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}".split(".")[0] in PACKAGES:
            ours |= {alias.asname or alias.name for alias in node.names}
            yield from (alias.name for alias in node.names if re.match("_[^_]", alias.name))
    for node in ast.walk(tree):
        of_ours = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if of_ours and node.value.id in ours and re.match("_[^_]", node.attr):
            yield node.attr


def test_a_class_name_has_one_meaning() -> None:
    """A search for a name finds one class; the modules' private classes may share names."""
    files: dict[str, list[Path]] = {}
    for path in SOURCES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files.setdefault(node.name, []).append(path)
    assert {name: paths for name, paths in files.items() if len(paths) > 1} == {}


def test_every_requirement_is_pinned() -> None:
    for name in ("requirements.txt", "tests/requirements.txt"):
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith(("#", "-r ")):
                assert re.fullmatch(r"[\w\[\]-]+==[\w.]+( *;.*)?", line), line


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


def test_every_extra_is_locked() -> None:
    installed = locked_versions("requirements.lock")
    for extra, requirements in PROJECT["project"]["optional-dependencies"].items():
        own = ROOT / f"requirements-{extra}.lock"
        more = locked_versions(own.name) if own.exists() else {}
        assert not installed.keys() & more.keys()
        for requirement in requirements:
            package = re.split(r"[<>=~]", requirement)[0].lower()
            assert extra == "twin" or package in installed | more, requirement


def test_every_command_shows_an_example() -> None:
    without = [
        " ".join(words)
        for words, one in commands_of(make_app())
        if (one.help_epilogue or len(words) > 1)
        and not (
            one.help and f"Example: lama-explorer {' '.join(words)}" in (one.help_epilogue or "")
        )
    ]
    assert without == []


def test_no_further_file_is_large() -> None:
    """A large file stays in the repository's history: weights and new results replace the old."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    paths = [
        path for path in map(Path, filter(None, listed.split("\0"))) if (ROOT / path).is_file()
    ]
    large = [path for path in paths if (ROOT / path).stat().st_size > 1_000_000]
    outside = [path.parent.name for path in large if path.parts[:2] != ("assets", "models")]
    # The run of each model that has one; another one of the same name replaces its folder.
    assert sorted(name.rpartition("-")[0] for name in outside) == [
        "starter-minilm_mlm-manual",
        "starter-minilm_mlm-study",
        "starter-minilm_mlm_twin-manual",
        "starter-smollm2_135m-manual",
        "starter-smollm2_135m-study",
    ]


def test_the_policy_of_nginx_allows_the_script_that_index_pages_get() -> None:
    script = BASE.removeprefix(b"<script>").removesuffix(b"</script>")
    digest = b64encode(sha256(script).digest()).decode()
    assert f"'sha256-{digest}'" in (ROOT / "deploy" / "nginx.conf").read_text("utf-8")
