"""Any mix of valid and broken lines gives the valid facts and one report a broken line."""

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from lama_core.datasets import bats, bear, lama, lpaqa, user_table
from lama_core.errors import UserError

# Printable, not blank at either end, nothing that a format gives a meaning of its own.
WORDS = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FFF, exclude_characters="\t/_[],;\"'"),
    min_size=1,
    max_size=12,
).filter(lambda word: word == word.strip() and word.isprintable() and not word.startswith("\ufeff"))

BROKEN_JSON = st.sampled_from(
    [
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"{}",
        b'{"sub_label": "x"}',
        b'{"sub_label": "", "obj_label": "y"}',
        b'{"sub_label": 1.5, "obj_label": "y"}',
        b'{"sub_label": "\\ud800", "obj_label": "y"}',
        b'{"sub_label": "\xff", "obj_label": "y"}',
        b"\x00",
        b'{"sub_label": "x", "obj_label": "y"} trailing',
        b'{"sub_label": {"a": 1}, "obj_label": "y"}',
    ]
)


def valid_json(pair: tuple[str, str]) -> bytes:
    return json.dumps({"sub_label": pair[0], "obj_label": pair[1]}).encode()


LINES = st.lists(
    st.one_of(
        st.tuples(st.just(True), st.tuples(WORDS, WORDS)), st.tuples(st.just(False), BROKEN_JSON)
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(LINES, st.sampled_from([b"\n", b"\r\n", b"\n\n", b" \n"]))
def test_lama_keeps_the_valid_lines_and_reports_each_broken_one(
    lines: list[tuple[bool, tuple[str, str] | bytes]], end: bytes
) -> None:
    raw = [line if isinstance(line, bytes) else valid_json(line) for _, line in lines]
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "TREx").mkdir()
        (root / "relations.jsonl").write_text('{"relation": "P1", "template": "[X] is [Y]."}\n')
        (root / "TREx" / "P1.jsonl").write_bytes(b"".join(line + end for line in raw))
        valid = [line for ok, line in lines if ok]
        if not valid:
            try:
                lama.load(root)
            except UserError as error:
                assert "no usable fact" in str(error)
                return
            raise AssertionError("a folder without a fact was accepted")
        dataset = lama.load(root)
    assert [(fact.subject, fact.object) for fact in dataset.facts] == valid
    assert len({fact.id for fact in dataset.facts}) == len(valid)
    step = 2 if end == b"\n\n" else 1
    broken_at = [1 + step * at for at, (ok, _) in enumerate(lines) if not ok]
    assert [dropped.line for dropped in dataset.report.dropped] == broken_at


@settings(max_examples=100, deadline=None)
@given(LINES, st.booleans())
def test_bear_keeps_the_valid_lines_and_reports_each_broken_or_repeated_one(
    lines: list[tuple[bool, tuple[str, str] | bytes]], has_answers: bool
) -> None:
    raw = [line if isinstance(line, bytes) else valid_json(line) for _, line in lines]
    pairs = [line for _, line in lines if not isinstance(line, bytes)]
    described: dict[str, object] = {"templates": ["[X] is [Y]."]}
    if has_answers:
        described["answer_space_labels"] = list(dict.fromkeys(obj for _, obj in pairs))
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "metadata_relations.json").write_text(json.dumps({"P1": described}), "utf-8")
        (root / "P1.jsonl").write_bytes(b"".join(line + b"\n" for line in raw))
        if not pairs:
            return
        dataset = bear.load(root)
    assert [(fact.subject, fact.object) for fact in dataset.facts] == list(dict.fromkeys(pairs))
    seen: set[object] = set()
    left_out = []
    for number, (ok, line) in enumerate(lines, start=1):
        if not ok or line in seen:
            left_out.append(number)
        seen.add(line)
    assert [dropped.line for dropped in dataset.report.dropped] == left_out


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just(True), st.tuples(WORDS, WORDS)),
            st.tuples(
                st.just(False),
                st.sampled_from([b"alone", b'"open,x,t', b"a,b,c,d", b"\xff,x,[X] [Y]", b"a,,"]),
            ),
        ),
        min_size=1,
        max_size=10,
        unique_by=lambda item: item[1],
    )
)
def test_a_table_keeps_the_valid_rows_and_reports_each_broken_one(
    lines: list[tuple[bool, tuple[str, str] | bytes]],
) -> None:
    raw = [
        line if isinstance(line, bytes) else f"{line[0]},{line[1]},[X] is [Y].".encode()
        for _, line in lines
    ]
    valid = [line for ok, line in lines if ok]
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "mine.csv"
        path.write_bytes(b"subject,object,template\n" + b"\n".join(raw) + b"\n")
        if not valid:
            return
        dataset = user_table.load(path)
    assert [(fact.subject, fact.object) for fact in dataset.facts] == valid
    broken_at = [2 + at for at, (ok, _) in enumerate(lines) if not ok]
    assert [dropped.line for dropped in dataset.report.dropped] == broken_at


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just(True), st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=3))),
            st.tuples(
                st.just(False), st.sampled_from([b"alone", b"\xff\tx", b"a\tb\tc", b"a\t//"])
            ),
        ),
        min_size=1,
        max_size=10,
        unique_by=lambda item: str(item[1][0]),
    )
)
def test_bats_keeps_the_valid_pairs_and_reports_each_broken_line(
    lines: list[tuple[bool, tuple[str, list[str]] | bytes]],
) -> None:
    raw = [
        line if isinstance(line, bytes) else f"{line[0]}\t{'/'.join(line[1])}".encode()
        for _, line in lines
    ]
    valid = [line for ok, line in lines if ok and not isinstance(line, bytes)]
    if not valid:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "4_Lexicographic_semantics"
        folder.mkdir()
        (folder / "L01 [a - b].txt").write_bytes(b"\n".join(raw) + b"\n")
        analogies = bats.load(Path(name))
    pairs = analogies.relations[0].pairs
    assert list(pairs) == [(head, tuple(dict.fromkeys(tails))) for head, tails in valid]
    broken_at = [1 + at for at, (ok, _) in enumerate(lines) if not ok]
    assert [dropped.line for dropped in analogies.report.dropped] == broken_at


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just(True), WORDS),
            st.tuples(st.just(False), st.sampled_from(["[X] is", "is [Y]", "[X] [X] [Y]", "no"])),
        ),
        max_size=8,
    )
)
def test_lpaqa_keeps_the_usable_templates_and_reports_the_others(
    lines: list[tuple[bool, str]],
) -> None:
    templates = [f"[X] {text} [Y]" if ok else text for ok, text in lines]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "prompt" / "manual_paraphrase"
        folder.mkdir(parents=True)
        (folder / "P1.txt").write_text("".join(t + "\n" for t in templates), "utf-8")
        dataset = lpaqa.load(Path(name))
    expected = [t for (ok, _), t in zip(lines, templates, strict=True) if ok]
    assert [prompt.template for prompt in dataset.relation("P1").prompts] == expected
    assert len(dataset.report.dropped) == len(lines) - len(expected)
