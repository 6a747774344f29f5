"""What tests share: tiny models of every family, opened once; and one thread for each process.

A process that computes on as many threads as there are cores waits for the slowest of them: beside
others it takes ten times as long. With one, the last digits are the same on every machine, too, as
long as no graphics card computes.
"""

import gc
import os
import re
import runpy
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported, here or in a command
os.environ.setdefault("LAMA_DEVICE", "cpu")  # a graphics card has other last digits

TESTS = Path(__file__).parent / "tests"
FIRST, SECOND = TESTS / "first", TESTS / "second"
# Families of the first tier. The tests of that folder run with the others in the second tier.
FIRST_FAMILIES = ("bert-cased", "gpt2", "t5")
OF_FIRST = "LAMA_TESTS_OF_FIRST"  # which of its tests run, also for the processes of xdist
OTHER_CPU = TESTS / "other_cpu" / "sitecustomize.py"
WITHOUT_POSIX = TESTS / "without_posix" / "sitecustomize.py"
# The browser tests lock their gates with `fcntl`.
collect_ignore_glob = ["tests/*/browser"] if sys.platform == "win32" else []
CPUINFO = Path("/proc/cpuinfo")
HIDDEN = re.compile(r" (avx512|avx_vnni|amx_|bf16|svebf16)\w*")
USERS_HOME = "LAMA_TESTS_USERS_HOME"  # LAMA_HOME before the tests; xdist's processes inherit it
UNDIVIDED = ("test_exports.py", "test_documentation.py", "test_ray_executor.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--last-digits",
        type=int,
        metavar="SEED",
        help="compute as on another CPU: with other last digits, without AVX-512 and bf16",
    )
    parser.addoption(
        "--without-posix",
        action="store_true",
        help="take away what Python lacks on Windows; skip the tests that need it",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Set LAMA_HOME to a folder of this session, so that no test sees the user's models or data.

    With `--last-digits`, also compute as another CPU. The processes of `-n` inherit both, and keep
    what they compile: without it, each new process takes 0.4 s of CPU time more.
    """
    if hasattr(config, "workerinput"):
        return
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    places = [Path(place.partition("::")[0]).resolve() for place in config.args]
    usual = any(place in (TESTS, FIRST) or FIRST in place.parents for place in places)
    others = "::" in "".join(config.args) or any(place in (TESTS, SECOND) for place in places)
    os.environ[OF_FIRST] = "usual " * usual + "other" * others
    if others and not usual:
        config.args.append(str(FIRST))
    os.environ[USERS_HOME] = os.environ.get("LAMA_HOME", "")
    home = os.environ["LAMA_HOME"] = tempfile.mkdtemp(prefix="lama-tests-")

    def restore() -> None:
        shutil.rmtree(home, ignore_errors=True)
        users_home = os.environ.pop(USERS_HOME)
        if users_home:
            os.environ["LAMA_HOME"] = users_home
        else:
            del os.environ["LAMA_HOME"]

    config.add_cleanup(restore)
    if (seed := config.getoption("--last-digits")) is not None:
        _compute_as_another_cpu(config, seed)
    if config.getoption("--without-posix"):
        _put_first(WITHOUT_POSIX)
        os.environ |= {
            "LAMA_TEST_WITHOUT_POSIX": "1",
            "PYTHONIOENCODING": "cp1252",
            "PYTHONWARNDEFAULTENCODING": "1",
        }
        runpy.run_path(str(WITHOUT_POSIX))


def _put_first(sitecustomize: Path) -> None:
    """Let every Python process that a test starts run this file."""
    found = filter(None, (str(sitecustomize.parent), os.environ.get("PYTHONPATH")))
    os.environ["PYTHONPATH"] = os.pathsep.join(found)


def _compute_as_another_cpu(config: pytest.Config, seed: int) -> None:
    """Make this process and those that it starts compute as another CPU would."""
    _put_first(OTHER_CPU)
    os.environ |= {
        "LAMA_TEST_LAST_DIGITS": str(seed),
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    }
    if CPUINFO.is_file():
        folder = tempfile.TemporaryDirectory()
        config.add_cleanup(folder.cleanup)
        without = Path(folder.name) / "cpuinfo"
        without.write_text(HIDDEN.sub("", CPUINFO.read_text(encoding="utf-8")), encoding="utf-8")
        os.environ["LAMA_TEST_CPUINFO"] = str(without)
    runpy.run_path(str(OTHER_CPU))


def _skip_without_posix() -> Iterator[None]:
    """Skip a test that itself needs what this system's Python lacks, such as `os.mkfifo`."""
    try:
        return (yield)
    except AttributeError as error:
        where = traceback.extract_tb(error.__traceback__)[-1].filename
        if error.obj not in (os, signal, socket) or "tests" not in Path(where).parts:
            raise
        pytest.skip(f"this system has no {error.obj.__name__}.{error.name}")


pytest_runtest_setup = pytest.hookimpl(wrapper=True)(_skip_without_posix)
pytest_runtest_call = pytest.hookimpl(wrapper=True)(_skip_without_posix)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the families of the other tier out, and sort the tests.

    Those that fork come first: a fork takes 10 ms in a new process, and 100 ms once it has loaded
    many models. Then files whose fixture takes long, so that no process takes
    half of such a file from the other.
    """
    families: dict[str, list[str]] = {}
    for item in items:
        if FIRST in item.path.parents and (family := _family(item)):
            families.setdefault(item.nodeid.partition("[")[0], []).append(family)
    kept: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in items:
        named = families.get(item.nodeid.partition("[")[0], [""])
        usual = {*FIRST_FAMILIES} & {*named} or named[:1]
        which = "usual" if _family(item) in usual else "other"
        kept[FIRST not in item.path.parents or which in os.environ[OF_FIRST]].append(item)
    if kept[False]:
        config.hook.pytest_deselected(items=kept[False])
    items[:] = kept[True]
    items.sort(key=_place)


def _family(item: Any) -> str:
    return item.callspec.params.get("family", "") if hasattr(item, "callspec") else ""


def _place(item: Any) -> int:
    if "sandbox" in item.fixturenames:
        return 2
    if {"forked", "kill_often"} & vars(item.module).keys():
        return 1
    return 3 if item.path.name in UNDIVIDED else 4


def pytest_collection_finish() -> None:
    """Take what is imported and collected out of garbage collection, which would go through it."""
    gc.collect()
    gc.freeze()


# No deadline, because machines are busy, and the same examples in every run.
# `--hypothesis-profile campaign` draws others each time.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("campaign", deadline=None)
settings.load_profile("repeatable")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """LAMA_HOME: a folder of the test's own, which is not there yet."""
    folder = tmp_path / "home"
    monkeypatch.setenv("LAMA_HOME", str(folder))
    return folder


@pytest.fixture
def users_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's LAMA_HOME, for tests of a downloaded model that skip where it isn't installed."""
    if os.environ[USERS_HOME]:
        monkeypatch.setenv("LAMA_HOME", os.environ[USERS_HOME])
    else:
        monkeypatch.delenv("LAMA_HOME")


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """`tiny_model(family, precision="fp32")`: a random model as the library opens it, made once."""
    from tiny_models import open_family

    @cache
    def opened(name: str, precision: str = "fp32") -> Any:
        folder = tmp_path_factory.mktemp("tiny") / name
        return open_family(name, folder, precision=precision)

    return opened


@pytest.fixture(scope="session")
def plain_model() -> Callable[[str], tuple[Any, Any]]:
    """`plain_model(family)`: the same random model and tokenizer as `transformers` has them."""
    from tiny_models import make_model

    return cache(make_model)
