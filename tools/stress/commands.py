"""The campaign of the command line: commands drawn over its whole grammar, in odd surroundings.

The grammar is walked, so that a new command or option is tried by itself. Each command is forked
from a process that has the command line, PyTorch and a model loaded. Nothing is fetched (every
address leads to a closed port), nothing is trained and nothing of the project is built again.
"""

import contextlib
import gc
import io
import json
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lama_core.paths import ASSETS
from tools.stress.campaign import MAX_BYTES, MAX_SECONDS, Fault, Outcome, bundled

WORKERS = 2
# A command that told how far it is so lately is at work.
SILENT_SECONDS = 5.0
FRESH = 40  # commands, after which a worker's home is made anew
HERE = "@HERE@"  # stands for the sandbox in what is drawn
CLOSED = "http://127.0.0.1:9"
NOWHERE = {
    "HF_ENDPOINT": CLOSED,
    **{f"{kind}_proxy": CLOSED for kind in ("http", "https", "all")},
    **{f"{kind}_PROXY": CLOSED for kind in ("HTTP", "HTTPS", "ALL")},
    "NO_PROXY": "",
    "no_proxy": "",
}
# What keeps a command small, or harmless, whatever else is drawn.
ALWAYS = {
    ("probe",): "--relation P36 --limit 2 --model minilm-mlm",
    ("analogy", "probe"): "--limit 2 --probe type --seeds 1 --hidden 4 --relation male_-_female",
    ("prompts", "select"): "--relation P36 --limit 2 --train-limit 2",
    ("prompts", "fit"): "--relation P36 --limit 2 --train-limit 2",
    ("prompts", "both-ways"): "--relation P36 --facts 2 --objects 2",
    ("prompts", "mine"): f"--text {HERE}/work/text.txt",
    ("prompts", "paraphrase"): "--relation P36 --keep 2 --beams 2",
    ("extract",): f"--relation P36 --limit 2 --corpus {HERE}/work/text.txt",
    ("read",): f"--relation P36 --limit 2 --corpus {HERE}/work/text.txt",
    ("reproduce",): "--dataset toy --limit 2",
    ("train-mlm",): "--encoder /dev/null/none --steps 1",
    ("data", "build-starter"): "--folder /dev/null/none",
}
FETCHES = ("data", "build-corpus")  # the sources of a text, whatever else is drawn: left out
REFUSED_ONLY = ("bench", "stress")  # they measure: only names that there aren't

ABSURD = (
    "", " ", "\n", "a:", "a:b", "-", "--", "-1", "0", "1e9", "nan", "inf", "-inf", "10" + "0" * 29,
    "9" * 19, "0x10", "１", "é", "日本語", "😀", "\u202e\u200b", "\ud800", "\udcff", "caf\udce9",
    "x" * 300, "x" * 5000, "é" * 200, "/".join(["y" * 100] * 60), "../" * 40, "/", ".", "..",
    "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/proc/self/mem", "/proc/kmsg",
    "/etc/passwd", "~", "~nobody/x", "~no-such-user/x", "$HOME", "%s%n", "[red]x[/red]", "\x1b[31m",
    "[MASK]", "[MASK]" * 40, "___ " * 200, "[X] [Y]", "[Y]", "file:", "file:/dev/zero",
    f"{HERE}/work/pipe", f"{HERE}/work/loop", f"{HERE}/work/none", f"{HERE}/work/empty",
    f"file:{HERE}/work/pipe", f"file:{HERE}/work/binary", f"{HERE}/work/binary", f"{HERE}/work",
    "archive.zip!inner", "package:os/x", "owner/name", "owner/name/more", "http://127.0.0.1:9/x",
    "C:\\x", "CON", "null", "{}", "[]", "True", "P36", "minilm-mlm", "starter", "None",
)  # fmt: skip
HOMES = (
    "", " ", "/dev/null", "/etc/passwd", "~nobody/x", "~", "relative", "/proc/none", "z" * 300,
    f"{HERE}/work/pipe", f"{HERE}/work/loop", f"{HERE}/work/\udcff", f"{HERE}/new/deep/home",
    "/dev/full", "é" * 100,
)  # fmt: skip


def made() -> tuple[str, ...]:
    """What every sandbox holds before the first command is thrown; it loads what commands need."""
    return (
        "probe --dataset starter --relation P36 --model minilm-mlm --limit 3",
        "probe --dataset starter --relation P36 --model minilm-mlm --limit 3 --prompts paraphrases",
        "prompts select --relation P36 --limit 3 --train-limit 3",
        "analogy probe --probe type --relation animal_-_young --limit 3",
        "data import toy --name toy",
        "models list",
        "data list",
        "runs list",
        "results --by type",
        "prompts list --relation P36",
        f"prompts analyse {bundled('starter-minilm_mlm-study')}",
    )


@cache
def valid() -> dict[str, Sequence[str]]:
    """What fits an option or argument, by its name."""
    return {
        "text": ("Paris is the capital of [MASK] .", "A ___ barks.", "tokyo japan paris ___"),
        "models": ("minilm-mlm",),
        "model": ("minilm-mlm",),
        "relation": ("P36", "P19"),
        "relations": ("P36",),
        "subject": ("France",),
        "dataset": ("starter", "toy", f"{HERE}/work/toy", "starter-analogies"),
        "top_k": ("1", "5", "100"),
        "candidates": ("common", "full", "lama", "relation", f"file:{HERE}/work/words.txt"),
        "gold": ("Paris", "New York"),
        "context": ("left", "both"),
        "rescored": ("2", "20"),
        "precision": ("fp32", "auto"),
        "device": ("cpu", "auto"),
        "ranking": ("raw", "filtered"),
        "prompts": ("manual", "paraphrases", "negated", f"{HERE}/work/toy"),
        "by": ("relation", "source", "type", "kind", "refill"),
        "run": (bundled("starter-minilm_mlm-manual"), "starter-minilm"),
        "run_a": (bundled("starter-minilm_mlm-manual"),),
        "run_b": (bundled("starter-smollm2_135m-manual"),),
        "study": (bundled("starter-minilm_mlm-study"),),
        "other": (bundled("starter-smollm2_135m-study"),),
        "paper": ("petroni2019", "jiang2020", "rezaee2022", "wiland2024"),
        "executor": ("local",),
        "template": ("what-to", "[X] is in [Y] .", "[A] is to [B] as [C] is to [D]"),
        "own": ("[X] is in [Y] .",),
        "name": ("starter", "lama", "toy", "minilm-mlm", "bert-base-cased", f"{HERE}/work/toy"),
        "new": ("toys",),
        "title": ("The first", ""),
        "path": (f"{HERE}/work/toy", f"{HERE}/work/facts.csv", f"{HERE}/work/text.txt"),
        "out": (f"{HERE}/work/out",),
        "folder": ("/dev/null/none",),
        "pairs": (f"{HERE}/work/toy/TREx/P36.jsonl", "Paris:France"),
        "setting": ("unsupervised",),
        "probes": ("type", "random_head"),
        "normalise": ("sum", "mean"),
        "method": ("middle",),
        "limit": ("1", "2"),
        "k": ("1", "10"),
    }


@dataclass(frozen=True, slots=True)
class Thrown:
    """A command and its surroundings.

    home: LAMA_HOME, or None for the sandbox's own. closed: numbers of the streams that are closed.
    full: standard output leads to a full device. file_bytes, files: the limits of the system.
    killed_after: seconds after which it is killed.
    """

    words: list[str]
    home: str | None = None
    progress: str = ""
    closed: list[int] = field(default_factory=list)
    full: bool = False
    encoding: str = "utf-8"
    file_bytes: int | None = None
    files: int | None = None
    killed_after: float | None = None

    def given(self) -> str:
        """The command, to be thrown again."""
        unusual = {key: value for key, value in asdict(self).items()
                   if key != "words" and value not in (None, "", [], False, "utf-8")}  # fmt: skip
        return json.dumps({"words": self.words, **unusual})


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. status: negative for a signal. wrote: what it wrote out of bounds.

    hung: it was ended, for it took too long and said nothing; at_work: it was ended while it told
    how far it was, for what it was asked to do is long.
    """

    status: int
    out: str
    said: str
    seconds: float
    peak: int
    hung: bool
    at_work: bool
    wrote: list[str]


def run(n: int, seed: int, folder: Path, tell: Callable[[int], None]) -> Outcome:
    """Throw n commands; a fault is whatever isn't an answer or one line about a mistake."""
    outcome = Outcome("commands")
    began = time.monotonic()
    thrown = list(draw(n, seed))
    workers = [Worker(folder / f"worker-{number}") for number in range(min(WORKERS, n))]
    waiting = iter(thrown)
    busy = {worker: one for worker, one in zip(workers, waiting, strict=False)}
    try:
        for worker, one in busy.items():
            worker.send(one)
        while busy:
            ready, _, _ = select.select(list(busy), [], [])
            for worker in ready:
                one, ended = busy.pop(worker), worker.receive()
                outcome.count(_ending(ended), ended.seconds, ended.peak)
                outcome.faults += judge(one, ended)
                tell(outcome.n)
                if following := next(waiting, None):
                    busy[worker] = following
                    worker.send(following)
    finally:
        for worker in workers:
            worker.stop()
    outcome.seconds = time.monotonic() - began
    return outcome


def judge(thrown: Thrown, ended: Ended) -> list[Fault]:
    """What should not have happened."""
    given, tail = thrown.given(), ended.said.strip()[-600:]
    faults = [Fault("outside", given, path) for path in ended.wrote]
    if ended.hung:
        return [*faults, Fault("hang", given, tail)]
    if ended.at_work:
        return faults
    if ended.peak > MAX_BYTES:
        faults.append(Fault("memory", given, f"{ended.peak:,} bytes"))
    if "Traceback (most recent call last)" in ended.said:
        return [*faults, Fault("traceback", given, tail)]
    if ended.status not in (0, 2) or "A fault of ours" in ended.said:
        return [*faults, Fault("error", given, f"exit status {ended.status}: {tail}")]
    heard = not (thrown.full or thrown.closed or thrown.file_bytes is not None)
    if ended.status == 0 and heard and "--json" in thrown.words and "--help" not in thrown.words:
        problem = _json_problem(ended.out)
        if problem:
            faults.append(Fault("error", given, f"--json: {problem}"))
    if ended.status == 2 and heard:
        lines = [line for line in ended.said.splitlines() if line.strip()]
        wrong = [line for line in lines if line.startswith(("Error:", '{"error"'))]
        shows_help = "Commands:" in ended.said + ended.out
        if not shows_help and (len(wrong) != 1 or lines[-1] != wrong[0]):
            faults.append(Fault("error", given, f"not one line: {tail}"))
    return faults


def draw(n: int, seed: int) -> Iterator[Thrown]:
    """Commands drawn by a seed: a third valid, the others with something wrong in them."""
    chance = random.Random(seed)
    leaves = [leaf for leaf in _leaves() if leaf[0] != FETCHES]
    rare = [leaf for leaf in leaves if leaf[0][0] in REFUSED_ONLY or "build-starter" in leaf[0]]
    often = [leaf for leaf in leaves if leaf not in rare]
    for _ in range(n):
        path, command = chance.choice(often if chance.random() < 0.99 else rare)
        words = _words(path, command, chance)
        yield Thrown(words, **_surroundings(chance))


def _surroundings(chance: random.Random) -> dict[str, Any]:
    odd = chance.random()
    given: dict[str, Any] = {"progress": "json" if chance.random() < 0.15 else ""}
    if odd < 0.12:
        given["home"] = chance.choice(HOMES)
    elif odd < 0.17:
        given["closed"] = chance.choice([[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]])
    elif odd < 0.20:
        given["full"] = True
    elif odd < 0.23:
        given["encoding"] = chance.choice(["ascii", "latin-1"])
    elif odd < 0.27:
        given["file_bytes"] = chance.choice([0, 100, 4096, 100_000])
    elif odd < 0.30:
        given["files"] = chance.choice([3, 5, 8, 16, 40])
    return given


def _leaves() -> Iterator[tuple[tuple[str, ...], Any]]:
    from typer.main import get_command

    from lama_core.__main__ import add_tools
    from lama_core.cli import make_app

    def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
        children = getattr(command, "commands", {})
        if path and (not children or getattr(command, "invoke_without_command", False)):
            yield path, command
        for name, child in children.items():
            yield from walk(child, (*path, name))

    yield from walk(get_command(make_app(add_tools)), ())


def _words(path: tuple[str, ...], command: Any, chance: random.Random) -> list[str]:
    absurd = chance.choice([0.0, 0.0, 0.15, 0.4])
    if path[0] in REFUSED_ONLY:
        return [*path, "no-" + chance.choice(ABSURD).replace("\0", "")]
    options, arguments = [], []
    for one in command.params:
        if one.name == "help" or one.param_type_name == "argument":
            if one.name != "help" and (one.required or chance.random() < 0.6):
                many = chance.randint(1, 4) if one.nargs == -1 else 1
                arguments += [_value(path, one.name, absurd, chance) for _ in range(many)]
            continue
        if not one.required and chance.random() < 0.75:
            continue
        for _ in range(2 if chance.random() < 0.08 else 1):
            options.append(one.opts[0])
            if not getattr(one, "is_flag", False):
                options.append(_value(path, one.name, absurd, chance))
    if "--json" in {name for one in command.params for name in one.opts} and chance.random() < 0.4:
        options.append("--json")
    small = ALWAYS.get(path, "").split()
    for name, value in zip(small[::2], small[1::2], strict=True):
        if name not in options or path[0] == "train-mlm" or "build-starter" in path:
            options += [name, value.replace("_-_", " - ")]
    if absurd:
        _break(options, arguments, chance)
    marked = ["--", *arguments] if any(one.startswith("-") for one in arguments) else arguments
    words = [*path, *options, *(marked if chance.random() < 0.9 else arguments)]
    return [word.replace("\0", "") for word in words]


def _break(options: list[str], arguments: list[str], chance: random.Random) -> None:
    """Break the grammar now and then; what keeps a command small stays."""
    broken = chance.random()
    if broken < 0.06:
        options.append("--" + chance.choice(["no-such", "Json", "modle", "é", "x" * 300]))
    elif broken < 0.1:
        arguments.append(chance.choice(ABSURD))
    elif broken < 0.14 and arguments:
        arguments.pop()
    elif broken < 0.16:
        options.append("--help")


def _value(path: tuple[str, ...], name: str, absurd: float, chance: random.Random) -> str:
    if chance.random() < absurd:
        return chance.choice(ABSURD)
    if name == "name" and path[0] == "runs":
        name = "run"
    value = chance.choice(valid().get(name, ("1", "2", "minilm-mlm")))
    if absurd and chance.random() < 0.2:  # nearly right
        place = chance.randrange(len(value) + 1)
        value = value[:place] + chance.choice("xé -_'\"/") + value[place + 1 :]
    return value


def _ending(ended: Ended) -> str:
    if ended.hung:
        return "hung"
    if ended.at_work:
        return "at work"
    return {0: "answered", 2: "refused", 1: "failed"}.get(ended.status, f"status {ended.status}")


def _json_problem(text: str) -> str:
    def refuse(sign: str) -> None:
        raise ValueError(f"{sign} is no JSON")

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError as error:
        return f"{error}: {text[-200:]}"
    return ""


class Worker:
    """A process that forks commands, in a sandbox of its own."""

    def __init__(self, sandbox: Path) -> None:
        sandbox.mkdir(parents=True)
        surroundings = {**os.environ, **NOWHERE, "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
        surroundings |= {"HOME": str(sandbox / "user"), "TMPDIR": str(sandbox / "tmp")}
        surroundings.pop("LAMA_PROGRESS", None)
        surroundings["LAMA_HOME"] = str(sandbox / "home")
        surroundings["PYTHONPATH"] = str(ASSETS.parent)
        command = [sys.executable, "-m", "tools.stress.commands", str(sandbox)]
        self._log = (sandbox.parent / f"{sandbox.name}.log").open("w+")
        self._process = subprocess.Popen(
            command, env=surroundings, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
        )  # fmt: skip

    def fileno(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def send(self, thrown: Thrown) -> None:
        """Have a command forked."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(thrown)) + "\n")

    def receive(self) -> Ended:
        """How the command that was sent ended."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise RuntimeError(f"a worker of the campaign ended: {self._log.read()[-2000:]}")
        return Ended(**json.loads(line))

    def throw(self, thrown: Thrown) -> Ended:
        """Have a command forked, and wait for its end."""
        self.send(thrown)
        return self.receive()

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            assert stream is not None
            stream.close()


def serve(sandbox: Path) -> None:
    """A worker's loop: a command a line from standard input, how it ended a line to output."""
    for name in ("user", "tmp", "first", "home", "work"):
        (sandbox / name).mkdir()
    _furnish(sandbox)
    os.chdir(sandbox / "work")
    for words in made():
        _make([word.replace("_-_", " - ") for word in words.split()])
    gc.freeze()  # what is loaded stays shared with the forks
    shutil.copytree(sandbox / "home", sandbox / "first", dirs_exist_ok=True)
    for number, line in enumerate(sys.stdin, start=1):
        print(json.dumps(asdict(throw(Thrown(**json.loads(line)), sandbox))), flush=True)
        if number % FRESH == 0:
            for name in ("home", "work"):
                shutil.rmtree(sandbox / name)
                (sandbox / name).mkdir()
            shutil.copytree(sandbox / "first", sandbox / "home", dirs_exist_ok=True)
            _furnish(sandbox)


def _make(words: list[str]) -> None:
    """Run a command here, not in a fork: what it imports and loads, the forks have."""
    from lama_core.__main__ import add_tools
    from lama_core.cli import main

    sys.argv = ["lama_core", *words]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            main(add_tools)
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"{words} ended with status {end.code}") from end


def throw(thrown: Thrown, sandbox: Path) -> Ended:
    """Fork a command in the sandbox, wait for it, and look at what it left."""
    before = _listing(sandbox)
    out, said = sandbox.parent / f"{sandbox.name}.out", sandbox.parent / f"{sandbox.name}.said"
    began = time.monotonic()
    child = os.fork()
    if not child:
        _be(thrown, sandbox, out, said)
    hung = at_work = False
    while True:
        pid, status, used = os.wait4(child, os.WNOHANG)
        if pid:
            break
        passed = time.monotonic() - began
        if passed > MAX_SECONDS and not (hung or at_work):
            at_work = time.time() - said.stat().st_mtime < SILENT_SECONDS
            hung = not at_work
        if hung or at_work or (thrown.killed_after is not None and passed > thrown.killed_after):
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    seconds = time.monotonic() - began
    after = _listing(sandbox)
    wrote = sorted(
        path
        for path, state in after.items()
        if before.get(path) != state and not _is_torchs(sandbox / path)
    )
    wrote += sorted(f"gone: {path}" for path in before.keys() - after.keys())
    for path in (sandbox / "tmp").iterdir():
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
    return Ended(
        os.waitstatus_to_exitcode(status),
        out.read_text(thrown.encoding, "backslashreplace"),
        said.read_text("utf-8", "backslashreplace"),
        seconds,
        used.ru_maxrss * 1024,
        hung,
        at_work,
        wrote,
    )


def _is_torchs(path: Path) -> bool:
    """Whether it is the empty folder that PyTorch makes among the temporary ones when imported."""
    return path.name.startswith("torchinductor_") and path.is_dir() and not any(path.iterdir())


def _be(thrown: Thrown, sandbox: Path, out: Path, said: Path) -> None:
    """What the forked process does: it never returns."""
    status = 1
    try:
        streams = (
            os.open(os.devnull, os.O_RDONLY),
            os.open("/dev/full" if thrown.full else out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        )
        out.write_bytes(b"")
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        names = ("stdin", "stdout", "stderr")
        for number in thrown.closed:
            os.close(number)
        for number, name in enumerate(names):
            mode, errors = ("r", "strict") if not number else ("w", "backslashreplace")
            shut = number in thrown.closed
            errors = "strict" if number == 1 else errors
            setattr(sys, name, None if shut else open(  # noqa: SIM115
                number, mode, encoding=thrown.encoding, errors=errors, closefd=False,
                buffering=1 if number == 2 else -1,
            ))  # fmt: skip
        os.chdir(sandbox / "work")
        sys.argv = ["lama_core", *(word.replace(HERE, str(sandbox)) for word in thrown.words)]
        if thrown.home is not None:
            os.environ["LAMA_HOME"] = thrown.home.replace(HERE, str(sandbox))
        if thrown.progress:
            os.environ["LAMA_PROGRESS"] = thrown.progress
        for limit, value in (
            (resource.RLIMIT_FSIZE, thrown.file_bytes),
            (resource.RLIMIT_NOFILE, thrown.files),
        ):
            if value is not None:
                resource.setrlimit(limit, (value, value))
        from lama_core.__main__ import add_tools
        from lama_core.cli import main

        main(add_tools)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
    except BaseException:  # noqa: BLE001 - what the interpreter would do: it must not go on
        if sys.stderr is not None:
            traceback.print_exc()
            sys.stderr.flush()
    finally:
        os._exit(status)


def _furnish(sandbox: Path) -> None:
    """Files for the commands: small ones that are right, and such as nobody should open."""
    work = sandbox / "work"
    toy = work / "toy"
    (toy / "TREx").mkdir(parents=True)
    relation = {"relation": "P36", "label": "capital", "type": "1-1",
                "template": "The capital of [X] is [Y] ."}  # fmt: skip
    (toy / "relations.jsonl").write_text(json.dumps(relation) + "\n")
    pairs = [("France", "Paris"), ("Italy", "Rome"), ("Japan", "Tokyo"), ("Spain", "Madrid")]
    facts = [{"uuid": name, "sub_label": name, "obj_label": city, "predicate_id": "P36",
              "sub_uri": name, "obj_uri": city} for name, city in pairs]  # fmt: skip
    (toy / "TREx" / "P36.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    (work / "facts.csv").write_text(
        "subject,relation,object\n" + "".join(f"{name},capital,{city}\n" for name, city in pairs)
    )
    (work / "text.txt").write_text(
        "".join(f"{city} is the capital of {name}.\n\n" for name, city in pairs)
    )
    (work / "words.txt").write_text("paris\nrome\nlondon\n")
    (work / "binary").write_bytes(bytes(range(256)) * 40)
    (work / "empty").write_bytes(b"")
    (work / "loop").symlink_to("loop")
    os.mkfifo(work / "pipe")


def _listing(sandbox: Path) -> dict[str, tuple[int, int]]:
    """What is where nothing may be written: size and time by path."""
    found = {}
    for place in (sandbox / "user", sandbox / "tmp", sandbox / "first", ASSETS):
        for parent, folders, names in os.walk(place):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in (*folders, *names):
                state = os.lstat(os.path.join(parent, name))
                found[os.path.join(parent, name)] = (
                    (state.st_size, state.st_mtime_ns) if name in names else (0, 0)
                )
    return found


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
