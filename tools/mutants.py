"""`python -m tools.mutants`: change the code in one place at a time and count what the tests catch.

A mutant changes one operator, constant, comparison, return value or condition. Mutants are drawn by
a digest of the seed, the file and the line's text: a change elsewhere in the code draws the same.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
CODE = ("lama_core/**/*.py", "pages/**/*.py", "plugins/*/lama_*/**/*.py")
# What each tier runs, in this order; `all` runs every tier.
TIERS = {"first": (), "second": ("tests/second", "plugins"), "third": ("tests/third",)}
NOT_COPIED = (".git", ".venv", "node_modules", "__pycache__", ".*_cache", "site", "dist")
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr, ast.And: ast.Or, ast.Or: ast.And,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
NO_TESTS = 5  # pytest's exit status


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of a file's bytes `start` to `end`."""

    path: str
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        before, after = (re.sub(r"\s+", " ", text)[:90] for text in (self.before, self.after))
        return f"{self.path}:{self.line}: {before} -> {after}"


def changed(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """The expressions of a node that a mutant replaces, and what by."""
    match node:
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OPERATORS:
            yield node, ast.unparse(_with(node, op=OPERATORS[type(op)]()))
        case ast.Compare(ops=[op, *others]) if type(op) in OPERATORS:
            yield node, ast.unparse(_with(node, ops=[OPERATORS[type(op)](), *others]))
        case ast.Constant(value=bool() | int() | float() as value):
            yield node, str(not value if isinstance(value, bool) else value + 1)
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield value, "None"
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            if ast.unparse(test) not in ("TYPE_CHECKING", "__name__ == '__main__'"):
                yield test, f"not ({ast.unparse(test)})"
        case ast.comprehension(ifs=[test, *_]):
            yield test, f"not ({ast.unparse(test)})"


def _with(node: ast.expr, **fields: object) -> ast.expr:
    values = dict(ast.iter_fields(node)) | fields
    return type(node)(**values)


def _visited(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those inside, without types, patterns and f-strings, whose places differ."""
    yield node
    for name, value in ast.iter_fields(node):
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, ast.AST) and not (
                name in ("annotation", "returns") or isinstance(inner, ast.JoinedStr | ast.pattern)
            ):
                yield from _visited(inner)


def mutants_of(path: str, code: bytes) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of its lines."""
    starts = [0]
    for line in code.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _visited(ast.parse(code)):
        for old, new in changed(node):
            start = starts[old.lineno - 1] + old.col_offset
            end = starts[(old.end_lineno or 0) - 1] + (old.end_col_offset or 0)
            yield Mutant(path, old.lineno, start, end, code[start:end].decode(), f"({new})")


def draw_mutants(root: Path, seed: int, number: int) -> list[Mutant]:
    """Return a number of mutants, each of another line."""
    drawn: dict[str, Mutant] = {}
    for file in sorted(file for pattern in CODE for file in root.glob(pattern)):
        path, code = file.relative_to(root).as_posix(), file.read_bytes()
        lines = code.splitlines()
        for mutant in mutants_of(path, code):
            of_line = sha256(f"{seed} {path} ".encode() + lines[mutant.line - 1]).hexdigest()
            among = sha256(f"{seed} {mutant.before} {mutant.after}".encode()).hexdigest()
            drawn.setdefault(f"{of_line} {among} {mutant.line:6}", mutant)
    lines_seen: dict[str, Mutant] = {}
    for key in sorted(drawn):
        lines_seen.setdefault(key.partition(" ")[0], drawn[key])
    return list(islice(lines_seen.values(), number))


def commands_for(root: Path, path: str, tiers: Iterable[str]) -> Iterator[list[str]]:
    """Arguments of pytest for a changed file: the tests of its room in each tier, then all."""
    parts = Path(path).parts
    room = parts[1] if parts[0] == "lama_core" else parts[0]
    for tier in tiers:
        near = root / "tests" / tier / room
        if room == "plugins" and tier == "second":
            near = root / "plugins" / parts[1] / "tests"
        if near.is_dir():
            yield [near.relative_to(root).as_posix()]
        yield [*TIERS[tier]]


class Checkout:
    """A copy of the checkout, in which mutants are made and tests run."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder / "checkout"
        shutil.copytree(root, self.root, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
        modules = "tests/browser/node_modules"
        if (root / modules).exists():
            (self.root / modules).symlink_to((root / modules).resolve())
        places = [self.root, *self.root.glob("plugins/*")]
        self.environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places))}

    def fails(self, arguments: Iterable[str], seconds: float | None) -> str:
        """Return what failed, `time` if the tests took too long, or nothing."""
        command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *arguments]
        running = subprocess.Popen(
            command, cwd=self.root, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            said, _ = running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            whole = psutil.Process(running.pid)
            for one in (*whole.children(recursive=True), whole):
                one.kill()
            running.communicate()
            return "time"
        if running.returncode in (0, NO_TESTS):
            return ""
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said, re.M)
        return failed[1] if failed else said.strip()[-300:]

    def catches(self, mutant: Mutant, tiers: Iterable[str], seconds: float | None) -> str:
        """Return the first test that a mutant breaks, or nothing."""
        file = self.root / mutant.path
        code = file.read_bytes()
        before = os.stat(file)
        file.write_bytes(code[: mutant.start] + mutant.after.encode() + code[mutant.end :])
        try:
            tried = (
                self.fails(one, seconds) for one in commands_for(self.root, mutant.path, tiers)
            )
            return next(filter(None, tried), "")
        finally:
            file.write_bytes(code)
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def main() -> None:
    """Run the command."""
    options = argparse.ArgumentParser("python -m tools.mutants", description=__doc__)
    options.add_argument("--seed", type=int, default=0, help="Another seed draws other mutants.")
    options.add_argument("--number", type=int, default=40, help="Number of mutants.")
    options.add_argument("--only", type=int, nargs="+", help="Numbers of mutants to try.")
    options.add_argument("--list", action="store_true", help="Print the mutants; run no tests.")
    options.add_argument("--tier", choices=(*TIERS, "all"), default="first")
    chosen = options.parse_args()
    mutants = dict(enumerate(draw_mutants(ROOT, chosen.seed, chosen.number), 1))
    if chosen.only:
        mutants = {number: mutants[number] for number in chosen.only}
    if chosen.list:
        print(*(f"{number:3} {mutant}" for number, mutant in mutants.items()), sep="\n")
        return
    tiers = tuple(TIERS) if chosen.tier == "all" else (chosen.tier,)
    n_caught = 0
    with tempfile.TemporaryDirectory(prefix="lama-mutants-") as folder:
        checkout = Checkout(ROOT, Path(folder))
        began = time.monotonic()
        if failed := next(filter(None, (checkout.fails(TIERS[tier], None) for tier in tiers)), ""):
            sys.exit(f"The tests fail without a mutant: {failed}")
        seconds = 60 + 3 * (time.monotonic() - began)
        for number, mutant in mutants.items():
            began = time.monotonic()
            caught = checkout.catches(mutant, tiers, seconds)
            n_caught += bool(caught)
            verdict = f"caught by {caught}" if caught else "SURVIVED"
            print(f"{number:3} {mutant}: {verdict} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{n_caught} of {len(mutants)} mutants were caught")


if __name__ == "__main__":
    main()
