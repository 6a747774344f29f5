"""Multiple-choice questions: what is read is what was written, or excluded with its line."""

import gzip
import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lama_core.datasets import formats, load_analogies, load_dataset
from lama_core.datasets import load_questions as load_installed
from lama_core.datasets.dataset import ChoiceQuestion, QuestionDataset
from lama_core.datasets.library import download, installed
from lama_core.errors import UserError
from lama_more_data import analogy_questions

BAKER = (("potter", "clay"), ("sculptor", "statue"), ("sailor", "wind"))
PUPPY = (("wolf", "pack"), ("kitten", "cat"), ("ice cream", "cone"))
QUESTIONS = (
    ChoiceQuestion(("baker", "bread"), BAKER, 1, "FROM TESTS"),
    ChoiceQuestion(("puppy", "dog"), PUPPY, 0, "FROM TESTS"),
    ChoiceQuestion(("up", "down"), BAKER, 2, "FROM BOOKS"),
)


def as_text(questions: tuple[ChoiceQuestion, ...], end: str = "\n", gap: str = "") -> str:
    """Turney's text, with a note about the file at the top."""
    lines = ["PLEASE CONTACT SOMEONE", ""]
    for one in questions:
        pairs = [" ".join(w.replace(" ", "_") for w in pair) for pair in (one.stem, *one.choices)]
        lines += [one.group, *(f"{pair} n:v" for pair in pairs), "abc"[one.answer]]
        lines += [gap] if gap else []
    return end.join([*lines, ""]).replace("BLANK", "")


def as_rows(questions: tuple[ChoiceQuestion, ...]) -> list[dict[str, object]]:
    """The rows of Ushio et al., with the parts of speech that some of their files have."""
    return [
        {
            "stem": list(one.stem),
            "answer": one.answer,
            "choice": [list(pair) for pair in one.choices],
            "prefix": one.group,
            "pos": ["n:v"],
        }
        for one in questions
    ]


def as_lines(questions: tuple[ChoiceQuestion, ...]) -> str:
    return "".join(json.dumps(row) + "\n" for row in as_rows(questions))


def load(path: Path, text: str) -> QuestionDataset:
    path.write_text(text, encoding="utf-8", newline="")
    found = formats.load(path)
    assert isinstance(found, QuestionDataset)
    return found


def reasons(dataset: QuestionDataset) -> list[str]:
    return [str(one) for one in dataset.report.dropped]


@pytest.mark.parametrize("name", ["SAT-package-V3.txt", "q.csv"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(("gap", "mark"), [("", ""), ("BLANK", "\ufeff")])
def test_turneys_text_is_read_under_any_name(
    name: str, end: str, gap: str, mark: str, tmp_path: Path
) -> None:
    text = mark + as_text(QUESTIONS, end, gap)
    assert load(tmp_path / name, text).questions == QUESTIONS
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    found = analogy_questions.load(tmp_path / name)
    assert (found.questions, reasons(found)) == (QUESTIONS, [])
    assert found.groups == ("FROM TESTS", "FROM BOOKS")


@pytest.mark.parametrize("name", ["test.jsonl", "u4"])
def test_objects_are_read_as_lines_list_and_parquet_under_any_name(
    name: str, tmp_path: Path
) -> None:
    assert load(tmp_path / name, as_lines(QUESTIONS)).questions == QUESTIONS
    assert load(tmp_path / name, json.dumps(as_rows(QUESTIONS))).questions == QUESTIONS
    pq.write_table(pa.Table.from_pylist(as_rows(QUESTIONS)), tmp_path / name)
    assert analogy_questions.load(tmp_path / name).questions == QUESTIONS


DAMAGE = ("", "potter clay", "potter clay nn", "clay n:n", "a line of some words", "\x00", "\xff")


@settings(max_examples=80, deadline=None)
@given(
    st.integers(2, len(as_text(QUESTIONS).splitlines()) - 1),
    st.sampled_from(DAMAGE),
    st.sampled_from(["", "BLANK"]),
)
def test_a_damaged_line_of_a_text_never_changes_the_answer_of_a_question(
    at: int, damage: str, gap: str
) -> None:
    lines = as_text(QUESTIONS, gap=gap).splitlines()
    was, lines[at] = lines[at], damage
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sat.txt")
        path.write_bytes("\n".join(lines).encode("latin-1"))
        found = analogy_questions.load(path)
    known = {one.stem: (one.choices, one.answer) for one in QUESTIONS}
    assert all(known[one.stem] == (one.choices, one.answer) for one in found.questions)
    is_header = was in ("", *(one.group for one in QUESTIONS))
    assert is_header or (len(found.questions) < 3 and reasons(found))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"answer": 3}, "the right choice is number 4 of 3"),
        ({"answer": -1}, "the right choice is number 0 of 3"),
        ({"answer": True}, "'answer' is not the index of a choice, counted from 0"),
        ({"choice": [["a", "b"]]}, "1 choices; expected 2 to 100"),
        ({"choice": [["a", "b"], ["c", 1]]}, "an item of 'choice' is not two words: ['c', 1]"),
        ({"stem": ["x" * 101, "b"]}, "'stem' has a word of 101 characters; at most 100"),
    ],
)
def test_a_damaged_object_is_excluded_with_its_line_and_reason(
    change: dict[str, object], reason: str, tmp_path: Path
) -> None:
    rows = as_rows(QUESTIONS)
    rows[1] |= change
    found = load(tmp_path / "u2.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert found.questions == (QUESTIONS[0], QUESTIONS[2])
    assert reasons(found) == [f"u2.jsonl, line 2: {reason}"]


def test_the_files_of_a_folder_are_groups(tmp_path: Path) -> None:
    for name, questions in (("u2/test", QUESTIONS[:1]), ("u4/test", QUESTIONS[1:])):
        path = tmp_path / "sets" / f"{name}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text(as_lines(questions) + "{}\n")
    (tmp_path / "sets" / "more.jsonl").write_text('{"a": 1}\n')
    found = formats.load(tmp_path / "sets")
    assert isinstance(found, QuestionDataset)
    assert found.report.notes == ("more.jsonl is not read: it has no analogy questions",)
    assert found.groups == ("u2/test: FROM TESTS", "u4/test: FROM TESTS", "u4/test: FROM BOOKS")
    assert [one.file for one in found.report.dropped] == ["u2/test.jsonl", "u4/test.jsonl"]


@pytest.mark.usefixtures("home")
def test_questions_are_installed_as_such(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is called 'sat': install one with `data import`"):
        load_installed("sat")
    path = tmp_path / "sat.txt"
    path.write_text(as_text(QUESTIONS))
    download.import_dataset(path)
    assert load_installed("sat").questions == QUESTIONS
    assert installed.question_set_names() == ("sat",)
    assert (installed.dataset_names(), installed.describe("sat")) == (
        ("starter",), "sat (3 questions)"
    )  # fmt: skip
    with pytest.raises(UserError, match="has analogy questions, not facts"):
        load_dataset("sat")
    with pytest.raises(UserError, match="has no analogies"):
        load_analogies("sat")
    with pytest.raises(UserError, match="has no multiple-choice analogy questions"):
        load_installed(str(installed.starter_analogies_dir()))
