"""The tool that measures what the tests catch."""

from pathlib import Path

import pytest

from tools.mutants import Checkout, draw_mutants, mutants_of

CODE = """def bigger(a: int, b: int = 3) -> bool:
    return a >= b


def total(numbers: list[int]) -> int:
    return sum(number for number in numbers if number)
"""


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("x = a and b", {"x = (a or b)"}),
        ("x = (a <\n  b)", {"x = ((a < b))".replace("<", "<=")}),
        ("x = é in b", {"x = (é not in b)"}),
        ("x = y(2)", {"x = y((3))"}),
        ("x = [y for y in z if y]", {"x = [y for y in z if (not (y))]"}),
        ("def f():\n    return y", {"def f():\n    return (None)"}),
        ("x = a * b if c else d", {"x = (a / b) if c else d", "x = a * b if (not (c)) else d"}),
        ("def f() -> 'a':\n    return None", set()),
        ("if TYPE_CHECKING: import a", set()),
    ],
)
def test_a_mutant_changes_one_place(code: str, changes: set[str]) -> None:
    given = code.encode()
    made = {
        (given[: one.start] + one.after.encode() + given[one.end :]).decode()
        for one in mutants_of("a.py", given)
    }
    assert made == changes


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A project with one tested and one untested function."""
    files = {
        "pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = ['tests/first']\n",
        "lama_core/__init__.py": "",
        "lama_core/metrics/__init__.py": "",
        "lama_core/metrics/sums.py": CODE,
        "tests/first/metrics/test_sums.py": "from lama_core.metrics.sums import bigger\n\n"
        "def test_bigger():\n    assert bigger(3, 3) and bigger(3)\n",
    }
    for name, text in files.items():
        file = tmp_path / "project" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Checkout(tmp_path / "project", tmp_path)


def test_a_tested_line_is_caught_and_an_untested_one_survives(checkout: Checkout) -> None:
    ends = {
        (one.line, one.after): checkout.catches(one, ["first"], 60).rpartition("::")[2]
        for one in draw_mutants(checkout.root, 0, 9)
    }
    assert {line for line, _ in ends} == {1, 2, 6}  # one mutant a line
    assert {line: test for (line, _), test in ends.items()} == {
        1: "test_bigger",
        2: "test_bigger",
        6: "",
    }
    assert (checkout.root / "lama_core/metrics/sums.py").read_text(encoding="utf-8") == CODE
