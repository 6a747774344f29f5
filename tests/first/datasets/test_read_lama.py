"""LAMA's reader on small files made here, and on the reference copy where it is."""

import json
from pathlib import Path

import pytest
from project_files import SHARED

from lama_core.datasets import line_reader
from lama_core.datasets.lama import load

needs_shared = pytest.mark.skipif(
    not (SHARED / "lama").is_dir(), reason=f"the reference data is not at {SHARED}"
)

ROW = {"relation": "P19", "template": "[X] was born in [Y] .", "label": "birth", "type": "N-1"}


def write_lama(
    root: Path, lines: list[str | bytes], *, relations: list[dict[str, object]] | None = None
) -> Path:
    """A folder in LAMA's layout with one T-REx relation, P19."""
    (root / "TREx").mkdir(parents=True, exist_ok=True)
    rows = [ROW] if relations is None else relations
    (root / "relations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    encoded = [line if isinstance(line, bytes) else line.encode() for line in lines]
    (root / "TREx" / "P19.jsonl").write_bytes(b"".join(line + b"\n" for line in encoded))
    return root


def fact_line(subject: str, obj: str, **extra: object) -> str:
    return json.dumps({"sub_label": subject, "obj_label": obj, **extra})


def test_sub_and_obj_stand_in_for_the_labels(tmp_path: Path) -> None:
    line = json.dumps({"sub": "Dante", "obj": "Florence", "uuid": 7})
    (fact,) = load(write_lama(tmp_path, [line])).facts
    assert (fact.subject, fact.object, fact.id, fact.subject_id) == (
        "Dante",
        "Florence",
        "P19:7",
        "",
    )


def test_evidences_become_sentences_with_one_blank_each(tmp_path: Path) -> None:
    evidences = [
        {"masked_sentence": "Dante was born in [MASK]."},
        {"masked_sentence": "Dante was born in [MASK], yes, [MASK]."},
        {"masked_sentence": "no blank"},
    ]
    (fact,) = load(
        write_lama(tmp_path, [fact_line("Dante", "Florence", evidences=evidences)])
    ).facts
    assert fact.sentences == ("Dante was born in [MASK].",)


def test_of_many_evidences_the_same_ten_are_drawn_each_time(tmp_path: Path) -> None:
    evidences = [{"masked_sentence": f"{i} [MASK]"} for i in range(50)]
    root = write_lama(tmp_path, [fact_line("Dante", "Florence", evidences=evidences)])
    first, second = load(root), load(root)
    assert len(first.facts[0].sentences) == 10
    assert first.facts == second.facts
    assert len(load(root, max_sentences=50).facts[0].sentences) == 50


def test_judgments_count_yes_and_whatever_else_as_no(tmp_path: Path) -> None:
    given = ("yes", "no", "skip")
    votes = [{"rater": str(number), "judgment": vote} for number, vote in enumerate(given)]
    (fact,) = load(write_lama(tmp_path, [fact_line("Dante", "Florence", judgments=votes)])).facts
    assert fact.judgments == (1, 2)


def test_a_relation_without_facts_is_skipped_and_said(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [dict(ROW), {**ROW, "relation": "P20", "label": "death"}]
    dataset = load(write_lama(tmp_path, [fact_line("Dante", "Florence")], relations=rows))
    assert [relation.name for relation in dataset.relations] == ["P19"]
    assert "relations.jsonl, line 2: P20 (death) has no facts; skipped" in dataset.report.notes


def test_facts_without_template_or_sentence_are_left_out(tmp_path: Path) -> None:
    lines: list[str | bytes] = [
        fact_line("Dante", "Florence"),
        fact_line("Virgil", "Andes", masked_sentences=["Virgil was born in [MASK]."]),
    ]
    dataset = load(write_lama(tmp_path, lines, relations=[]))
    assert [fact.subject for fact in dataset.facts] == ["Virgil"]
    assert "P19 has no template" in dataset.report.dropped[0].reason


def test_a_line_without_end_is_skipped_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_reader, "MAX_LINE_BYTES", 100)
    path = tmp_path / "long.jsonl"
    path.write_bytes(b'{"a": 1}\n' + b"x" * 5000 + b'\n{"a": 2}\n' + b"y" * 5000)
    found = line_reader.Reading(tmp_path)
    assert list(found.objects(path)) == [(1, {"a": 1}), (3, {"a": 2})]
    assert [(d.line, d.reason) for d in found.dropped] == [
        (2, "longer than 100 bytes"),
        (4, "longer than 100 bytes"),
    ]


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("[X] was born", "has no [Y]: add it"),
        ("[X] in [Y] or [Y]", "has 2 [Y]: keep one"),
    ],
)
def test_a_template_that_cant_be_used_is_left_out_and_said(
    tmp_path: Path, template: str, reason: str
) -> None:
    rows: list[dict[str, object]] = [{**ROW, "template": template, "paraphrases": ["[X] of [Y]"]}]
    dataset = load(write_lama(tmp_path, [fact_line("Dante", "Florence")], relations=rows))
    (dropped,) = dataset.report.dropped
    assert (dropped.file, dropped.line) == ("relations.jsonl", 1)
    assert dropped.reason.startswith("P19: the template") and reason in dropped.reason
    # What is left of the relation still works.
    assert [prompt.template for prompt in dataset.relation("P19").prompts] == ["[X] of [Y]"]


def test_the_four_sources_and_uhns_folder_names(tmp_path: Path) -> None:
    (tmp_path / "TREx_UHN").mkdir()
    (tmp_path / "Google_RE_UHN").mkdir()
    (tmp_path / "ConceptNet").mkdir()
    (tmp_path / "Squad").mkdir()
    (tmp_path / "relations.jsonl").write_text(json.dumps(ROW))
    (tmp_path / "TREx_UHN" / "P19.jsonl").write_text(fact_line("a", "b"))
    (tmp_path / "Google_RE_UHN" / "date_of_birth_test.jsonl").write_text(fact_line("c", "1900"))
    concept = {"sub": "bird", "obj": "fly", "pred": "CapableOf", "masked_sentences": ["A [MASK]."]}
    (tmp_path / "ConceptNet" / "test.jsonl").write_text(json.dumps(concept))
    question = {"id": "q", "obj_label": "x", "masked_sentences": ["Is it so?", "It is [MASK]."]}
    (tmp_path / "Squad" / "test.jsonl").write_text(json.dumps(question))
    dataset = load(tmp_path)
    assert [(relation.name, relation.source) for relation in dataset.relations] == [
        ("date_of_birth", "Google_RE"),
        ("P19", "TREx"),
        ("CapableOf", "ConceptNet"),
        ("Squad", "Squad"),
    ]
    assert dataset.relation("date_of_birth").prompts[0].template == "[X] (born [Y])."
    # A query of several sentences is one text.
    assert dataset.facts_of("Squad")[0].sentences == ("Is it so? It is [MASK].",)


def test_the_digest_is_of_the_content_not_of_the_files(tmp_path: Path) -> None:
    line = fact_line("Dante", "Florence", uuid=1)
    plain = load(write_lama(tmp_path / "a", [line]))
    nested = load(write_lama(tmp_path / "b" / "data", ["", line + "\r", ""]).parent)
    other = load(write_lama(tmp_path / "c", [fact_line("Dante", "Firenze", uuid=1)]))
    assert plain.digest == nested.digest != other.digest


@needs_shared
def test_the_reference_copy_has_20_relations_and_12967_facts_of_trex() -> None:
    dataset = load(SHARED / "lama")
    by_source = dataset.n_facts_by_source()
    assert by_source == {"TREx": 12_967, "Google_RE": 386, "ConceptNet": 146, "Squad": 51}
    assert sum(relation.source == "TREx" for relation in dataset.relations) == 20
    # 46 rows of relations.jsonl, 20 of them with facts.
    assert sum("has no facts; skipped" in note for note in dataset.report.notes) == 46 - 20
    assert dataset.report.dropped == ()


@needs_shared
def test_the_negated_files_bring_their_statements() -> None:
    dataset = load(SHARED / "negated")
    first = dataset.facts_of("P36")[0]
    assert first.negated_sentences == ("The capital of Azerbaijan is not [MASK] .",)
    assert first.misprimed_sentences == ("Kidnapped? The capital of Azerbaijan is [MASK] .",)
