"""Check the documents: run their commands, and find the numbers of their texts in the output.

    python -m tools.documents [FILE ...]

Documents are README, CONTRIBUTING, docs/, the pages of plug-ins, the cards of models and data, the
lessons, and the model catalogue. Their commands are lines of shell blocks, blocks of Python, inline
code that begins with a program, and `source = "Command: ..."` of lessons. All run in this process,
one after another in the order of the documents, in one temporary LAMA_HOME, as a reader would run
them. What isn't run is listed with its reason.

Numbers are checked in a lesson's step with a command as its source, and in the paragraph or table
below `<!-- numbers: COMMAND -->`; several commands are separated by semicolons. Each number must be
in what the commands print for the bundled runs. Sentences whose numbers no command prints are in
`tests/second/test_sentences_about_runs.py`.
"""

import contextlib
import io
import json
import os
import re
import runpy
import shlex
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lama_core import cli
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.paths import ASSETS, ROOT, cache_dir, plugin_pages
from lama_core.runs.find import bundled_dir

CATALOGUE = ROOT / "assets" / "models" / "catalog.json"
LIMIT, MOST = 60, 900  # seconds of CPU time, and of time, for one command
PROGRAMS = ("lama-explorer ", "python -m ", "python3 -m ", "pip ", "vllm ", ".venv/bin/")
# What can't be run here -> why; the first that is found in the command.
REASONS = {
    r"server:|chat:|ollama:|^vllm|llama_cpp": "needs a server",
    r"models get|data get|reproduce|^pip|/pip |\.ci/install": "downloads or installs",
    r"owner/name|EleutherAI/": "needs a model of the hub",
    r"training\.corpus|find-cooccurring|--open-book|--text|extract ": "needs the training text",
    r"tools\.training": "trains on a GPU, or for hours",
    r"tools\.lesson_answers": "needs a model that is downloaded",
    r"tools\.(bench|mutants)": "measures speed, or takes hours",
    r"lama-explorer app": "opens the app; .ci/run does it",
    r"\.venv/bin/(ruff|mypy|lint-imports)": ".ci/run runs it",
    r"pytest|mkdocs|tools\.(starter|document)|^docs/example-plugin": "a test runs it",
    r"executor ray": "needs a cluster",
    r"glove\.6B|popqa|samples_|results/ |bear |QA_|~/elmo|/elmo$": "needs others' data or weights",
    r"^python -m lama_core$": "is a name only",
}
# Names that the reader replaces -> what is used here.
PLACEHOLDERS = {
    "RUN_OF_PROBE": "starter-smollm2_135m-manual",
    "RUN_OF_STATEMENTS": "starter-smollm2_135m-statements",
    "RUN_OF_GENERATE": "starter-smollm2_135m-questions_0_shot",
    "RUN_A": "starter-minilm_mlm_twin-manual",
    "RUN_B": "starter-minilm_mlm-manual",
    "RUN": "starter-minilm_mlm-manual",
}
# Files that documents name without their content.
FILES = {
    "cities.csv": "Country,City\nFrance,Paris\nItaly,Rome\n",
    "results.csv": "subject,object,relation,rank,gold_position\nItaly,Rome,capital,3,3\n",
    "sat.jsonl": '{"stem": ["ostrich", "bird"], "choice": [["cat", "animal"], ["dog", "car"]], '
    '"answer": 0, "prefix": "sat"}\n',
    "answers.txt": "Oslo\nParis\nRome\n",
}
SMALL_MODEL = "smollm2-135m"
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
NO_NUMBER = re.compile(r"`[^`]*`|P@\d+|\b[A-Z]\d+|95 %|\]\([^)]*\)|SmolLM2|et al\. \d+")


@dataclass(frozen=True)
class Command:
    """A command of a document.

    text: of a shell, or of Python. file: the text block above, which is the content of the file
    that the command reads. numbers: of the text about the command.
    """

    place: str
    text: str
    is_python: bool = False
    file: str = ""
    numbers: tuple[str, ...] = ()


def documents() -> list[Path]:
    """Return the documents that are checked, in the order of reading."""
    folders = ("docs/*.md", "assets/*/README.md", "assets/*/*/README.md", "assets/lessons/*.toml")
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    found += [path for folder in folders for path in sorted(ROOT.glob(folder))]
    return [*found, *plugin_pages(), CATALOGUE]


def commands_of(path: Path) -> Iterator[Command]:
    """Yield the commands of a document, in order."""
    text, name = path.read_text("utf-8"), os.path.relpath(path, ROOT)
    if path.suffix == ".toml":
        for number, step in enumerate(tomllib.loads(text)["steps"], 1):
            source = str(step.get("source", ""))
            if source.startswith("Command: "):
                command = f"lama-explorer {source.removeprefix('Command: ')}"
                yield Command(f"{name} step {number}", command, numbers=numbers_in(step["text"]))
        return
    if path.suffix == ".json":
        text = "\n".join(map(str, _strings(json.loads(text))))
    block: list[str] = []
    language = above = file = ""
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{name}:{number}"
        if line.startswith("```"):
            if language == "python":
                of_example = "](example-plugin/" in above
                code = f"docs/example-plugin: {block[0]}" if of_example else "\n".join(block)
                yield Command(place, code, is_python=True)
            elif language == "text":
                file = "\n".join(block)
            language, block = "" if language else line.strip("` ") or "other", []
        elif language in ("python", "text"):
            block.append(line)
        elif language == "sh" or (not language and (block or re.match(r" {4}(?! )", line))):
            block.append(line.strip().removesuffix("\\"))
            if not line.endswith("\\"):
                command = " ".join(block)
                block = []
                if re.match(rf"(\w+=\S+ )*({'|'.join(map(re.escape, PROGRAMS))})", command):
                    yield Command(place, command, file=file)
        elif not language:
            above = line or above
            for inline in re.findall(r"`([^`]+)`", line):
                if inline.startswith(PROGRAMS):
                    yield Command(place, inline)
    for found in re.finditer(r"<!-- numbers: (.+?) -->\n(.+?)(?:\n\n|\Z)", text, re.S):
        place = f"{name}:{text.count(chr(10), 0, found.start()) + 1}"
        shell = "; ".join(f"lama-explorer {one}" for one in found[1].split("; "))
        yield Command(place, shell, numbers=numbers_in(found[2]))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)
    elif isinstance(value, str):
        yield value


def numbers_in(text: str) -> tuple[str, ...]:
    """Return the numbers of a text, without those that belong to names and code."""
    return tuple(NUMBER.findall(NO_NUMBER.sub(" ", text)))


def run(command: Command) -> str:
    """Run a command in this process, and return what it prints. Raises what it raises."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        if command.is_python:
            block = Path("block.py")
            block.write_text(command.text, "utf-8")
            runpy.run_path(str(block), {"runs": bundled_dir()})
            return out.getvalue()
        for one in command.text.split("; "):
            words = shlex.split(one, comments=True)
            for word in words if command.file else ():
                if re.fullmatch(r"\w+\.csv", word) and not os.path.exists(word):
                    Path(word).write_text(command.file, "utf-8")
            words = words[words.index("-m") + 2 :] if words[0] == "python" else words[1:]
            try:
                cli.call(*(PLACEHOLDERS.get(word, word) for word in words))
            except SystemExit as end:
                if end.code:
                    raise
    return out.getvalue()


@contextlib.contextmanager
def readers_place() -> Iterator[bool]:
    """Change to the folder of a reader with an empty LAMA_HOME; yield whether SmolLM2 is there.

    The reader has the project's `assets`, without the finished runs, which are found without a
    folder, and the files that documents name.
    """
    has_small_model = is_here(find_model(SMALL_MODEL))
    converted = cache_dir() / "models" / "converted"
    with tempfile.TemporaryDirectory(prefix="lama-documents-") as folder:
        work, models = Path(folder) / "work", Path(folder) / "lama" / "cache" / "models"
        for path in (work / "assets", work / "models", work / "training" / "history", models):
            path.mkdir(parents=True)
        for name in ("datasets", "models", "prompts"):
            (work / "assets" / name).symlink_to(ASSETS / name)
        for name in ("models/mine", "training/history/step1", "training/history/step2"):
            (work / name).symlink_to(ASSETS / "models" / "minilm-mlm")
        if has_small_model:
            (models / "converted").symlink_to(converted)
        for name, text in FILES.items():
            (work / name).write_text(text, "utf-8")
        os.environ |= {"LAMA_HOME": str(models.parents[1]), "HOME": str(work), "COLUMNS": "200"}
        with contextlib.chdir(work):
            yield has_small_model


def _out_of_time(*_: object) -> None:
    raise TimeoutError(f"takes more than {LIMIT} s of CPU time, or {MOST} s")


def check(paths: Sequence[Path]) -> int:
    """Check documents, print a line for each command, and return how many fail."""
    if sys.platform == "win32":
        sys.exit("Limits of time need the signals of Linux or macOS.")
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, _out_of_time)
    n = dict.fromkeys(("right", "not run", "WRONG"), 0)
    with readers_place() as has_small_model:
        for command in (one for path in paths for one in commands_of(path)):
            began, state, fault = time.monotonic(), "right", ""
            reasons = [why for one, why in REASONS.items() if re.search(one, command.text)]
            if SMALL_MODEL in command.text and not has_small_model:
                reasons.append("needs SmolLM2, which isn't installed")
            if reasons:
                state, fault = "not run", reasons[0]
            else:
                signal.setitimer(signal.ITIMER_PROF, LIMIT)
                signal.alarm(MOST)
                try:
                    printed = {one.rstrip(",") for one in NUMBER.findall(run(command))}
                    missing = [one for one in command.numbers if one.rstrip(",") not in printed]
                    fault = f"doesn't print {', '.join(missing)}" * bool(missing)
                except (Exception, SystemExit) as error:  # noqa: BLE001 - any is the document's fault
                    fault = f"{type(error).__name__}: {error}"
                finally:
                    signal.setitimer(signal.ITIMER_PROF, 0)
                    signal.alarm(0)
                state = "WRONG" if fault else "right"
            n[state] += 1
            seconds = f"{time.monotonic() - began:.1f} s" if state != "not run" else ""
            about = " ".join(command.text.split())[:150]
            print(f"{state:8}{command.place}: {about}  {fault or seconds}", flush=True)
    print(", ".join(f"{count} {state}" for state, count in n.items()))
    return n["WRONG"]


if __name__ == "__main__":
    sys.exit(check([Path(name).resolve() for name in sys.argv[1:]] or documents()) > 0)
