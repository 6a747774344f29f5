"""Texts for users are plain: phrases that made readers stumble, each with its plain alternative."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from project_files import ROOT, SOURCES, of_values

CODE = [path for path in SOURCES if not path.is_relative_to(ROOT / "tools")]
PAGES = [
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
    *(*ROOT.glob("docs/*.md"), *ROOT.glob("plugins/*/README.md")),
]
LESSONS = sorted(ROOT.glob("assets/lessons/*.toml"))
PLAIN = {
    r"\banew\b": "again",
    r"\bwhoever\b": "the visitor who",
    r"\b(no|any|some|every)body\b": "no one, a visitor",
    r"(?<!there )\b(is|are|was|were) no (?!longer\b|more\b|such\b|one\b)\w+": "is not a ...",
    r"\b(is|are|was|were) told\b": "the app shows, the model gets",
    r"\b(goes|go|going|gone|went) on\b": "continue, resume",
    r"\btaken (in|out|up)\b": "included, removed",
    r"\bto be had\b": "available",
    r"\bstands? (behind|before|beside|left|right)\b": "follows, precedes",
    r"\bbeside\b": "next to, compared with",
    r"\bhangs? on\b": "depends on",
    r"\bleft[- ]to[- ]right models?\b": "causal model",
    r"\bgraphics cards?\b": "GPU",
    r"\bmend(s|ed)?\b": "fix",
    r"\bof its own\b": "its own ...",
    r"\bthe open book\b": "open-book context",
}  # fmt: skip


def of_code(path: Path) -> Iterator[str]:
    """Yield a module's texts of four or more words, without docstrings and lists of words."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    others = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    others |= {id(node.value) for node in nodes if getattr(node, "attr", "") == "split"}
    for node in nodes:
        text = node.value if isinstance(node, ast.Constant) and id(node) not in others else ""
        if isinstance(text, str) and len(text.split()) > 3:
            yield " ".join(text.split())


@cache
def texts(path: Path) -> list[str]:
    """The texts of a module, a page of documentation or a lesson."""
    if path.suffix == ".py":
        return list(of_code(path))
    content = path.read_text("utf-8")
    if path.suffix == ".toml":
        return list(of_values(tomllib.loads(content)))
    return re.split(r"\n\s*\n", re.sub(r"```.*?```|`[^`\n]*`", "", content, flags=re.S))


@pytest.mark.parametrize("phrase", PLAIN)
def test_no_text_has_the_phrase(phrase: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {text[:120]}"
        for path in (*CODE, *PAGES, *LESSONS)
        for text in texts(path)
        if re.search(phrase, text, re.I)
    ]
    assert not found, f"write {PLAIN[phrase]!r} instead in:\n" + "\n".join(found)


def test_texts_are_found_wherever_users_read_them(tmp_path: Path) -> None:
    module = tmp_path / "one.py"
    module.write_text(
        '"""Docstrings are read by developers only."""\nraise E("it is run anew now")\n'
    )
    lesson = tmp_path / "one.toml"
    lesson.write_text('[[steps]]\ntext = "Ask anew."\nchoices = ["Whoever"]\n')
    page = tmp_path / "one.md"
    page.write_text("`anew` in code is\n\nanew in text\n")
    assert texts(module) == ["it is run anew now"]
    assert texts(lesson) == ["Ask anew.", "Whoever"]
    assert [bool(re.search("anew", text)) for text in texts(page)] == [False, True]
