"""The readers of LPAQA, ParaRel, BATS, the Google analogies and a user's table."""

from pathlib import Path

import pytest

from lama_core.datasets import bats, formats, lpaqa, pararel, table
from lama_core.errors import UserError

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_shared = pytest.mark.skipif(
    not (SHARED / "lpaqa").is_dir(), reason=f"the reference data is not at {SHARED}"
)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_a_weight_that_is_no_number_costs_its_line(tmp_path: Path) -> None:
    lines = (
        '{"template": "[X] in [Y]", "weight": 0.5}\n'
        '{"template": "[Y] of [X]", "weight": "half"}\n'
        '{"template": "[X] at [Y]"}\n'
    )
    write(tmp_path / "prompt" / "mine" / "P1.jsonl", lines)
    prompts, report = lpaqa.load_prompts(tmp_path, "mine")
    assert [(p.template, p.weight, p.origin) for p in prompts["P1"]] == [
        ("[X] in [Y]", 0.5, "mined"),
        ("[X] at [Y]", None, "mined"),
    ]
    assert str(report.dropped[0]) == (
        "prompt/mine/P1.jsonl, line 2: 'weight' is a str, not a number"
    )


@needs_shared
def test_the_reference_prompts_and_pairs_are_read_whole() -> None:
    dataset = lpaqa.load(SHARED / "lpaqa")
    assert dataset.report.dropped == ()
    assert len(dataset.relations) == 20
    assert len(dataset.facts_of("P19")) == 1_000
    mined, _ = lpaqa.load_prompts(SHARED / "lpaqa", "mine")
    assert mined["P19"][0].template == "[X] was born in [Y] ."
    assert mined["P19"][0].weight == pytest.approx(0.003614419372752309)
    manual, _ = lpaqa.load_prompts(SHARED / "lpaqa", "manual_paraphrase")
    assert all(prompt.weight is None for prompt in manual["P19"])


@needs_shared
def test_the_reference_patterns_are_read_without_facts() -> None:
    dataset = pararel.load(SHARED / "pararel")
    assert [relation.name for relation in dataset.relations] == ["P36", "P37"]
    assert dataset.relations[0].prompts[0].template == "The capital of [X] is [Y] ."
    assert dataset.report.notes == ("no trex_lms_vocab: patterns without facts",)


def test_pararel_in_its_own_repository_layout(tmp_path: Path) -> None:
    data = tmp_path / "pararel-1234" / "data"
    write(data / "pattern_data" / "graphs_json" / "P36.jsonl", '{"pattern": "[X]: [Y]"}\n' * 2)
    write(data / "trex_lms_vocab" / "P36.jsonl", '{"sub_label": "Peru", "obj_label": "Lima"}\n')
    dataset = pararel.load(tmp_path)
    assert [(f.subject, f.object) for f in dataset.facts_of("P36")] == [("Peru", "Lima")]
    assert len(dataset.relations[0].prompts) == 1
    assert "was there already" in dataset.report.dropped[0].reason


def test_bats_reads_kinds_tails_and_marks(tmp_path: Path) -> None:
    root = tmp_path / "BATS_3.0"
    write(root / "3_Encyclopedic_semantics" / "E01 [country - capital].txt", "peru\tlima\n")
    write(
        root / "4_Lexicographic_semantics" / "L10 [antonyms - binary].txt",
        "up\tdown/below\nnew_york\told_york\n",
    )
    capital, antonyms = bats.load(tmp_path).relations
    assert (capital.name, capital.kind, capital.one_to_many) == (
        "country - capital",
        "encyclopedic",
        False,
    )
    assert antonyms.pairs == (("up", ("down", "below")), ("new york", ("old york",)))
    assert antonyms.one_to_many and antonyms.bidirectional


def test_bats_joins_the_tails_of_a_repeated_head(tmp_path: Path) -> None:
    write(tmp_path / "1_Inflectional_morphology" / "I01.txt", "a\tb\na\tc\na\tb\n")
    analogies = bats.load(tmp_path)
    assert analogies.relations[0].pairs == (("a", ("b", "c")),)
    assert [dropped.line for dropped in analogies.report.dropped] == [3]


def test_google_analogies_become_pairs_in_order_of_first_appearance(tmp_path: Path) -> None:
    text = (
        ": capital-world\nAthens Greece Baghdad Iraq\nAthens Greece Cairo Egypt\nonly three words\n"
        ": gram7-past-tense\nrun ran go went\n"
    )
    analogies = bats.load(write(tmp_path / "questions-words.txt", text))
    capital, past = analogies.relations
    assert [head for head, _ in capital.pairs] == ["Athens", "Baghdad", "Cairo"]
    assert (capital.kind, past.kind) == ("encyclopedic", "inflectional")
    assert [dropped.line for dropped in analogies.report.dropped] == [4]


def test_a_table_gives_facts_prompts_and_sentences(tmp_path: Path) -> None:
    text = (
        "Subject;Object;Relation;Template;Sentence\n"
        "Peru;Lima;capital;The capital of [X] is [Y].;\n"
        "Chile;Santiago;capital;[Y] governs [X].;Chile's capital is [MASK].\n"
    )
    dataset = table.load(write(tmp_path / "mine.csv", text))
    (relation,) = dataset.relations
    assert [prompt.template for prompt in relation.prompts] == [
        "The capital of [X] is [Y].",
        "[Y] governs [X].",
    ]
    assert dataset.facts[1].sentences == ("Chile's capital is [MASK].",)
    assert dataset.name == "mine"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("Peru,Lima,[X] is it", "has no [Y]"),
        ("Peru,Lima,it is [Y]", "has no [X]"),
        ("Peru,Lima,[X] or [X] is [Y]", "has 2 [X]"),
        ("Peru,Lima,[X] is [Y] or [Y]", "has 2 [Y]"),
        ("Peru,,[X] is [Y]", "no field 'object'"),
        ("Chile,Santiago,[X] is [Y]", "was already on line 2"),
        ("Peru,Lima", "2 cells were found where the header has 3"),
    ],
)
def test_a_bad_row_says_what_is_wrong(tmp_path: Path, row: str, reason: str) -> None:
    text = f"subject,object,template\nChile,Santiago,[X] is [Y]\n{row}\n"
    dataset = table.load(write(tmp_path / "mine.csv", text))
    (dropped,) = dataset.report.dropped
    assert dropped.line == 3
    assert reason in dropped.reason


def test_a_row_that_asks_nothing_is_left_out(tmp_path: Path) -> None:
    text = "subject,object,relation,template\nPeru,Lima,a,\nChile,Santiago,b,[X] is [Y]\n"
    dataset = table.load(write(tmp_path / "mine.csv", text))
    assert [fact.subject for fact in dataset.facts] == ["Chile"]
    assert "nothing to ask" in dataset.report.dropped[0].reason


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "subject,object\n"])
def test_a_table_without_facts_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError):
        table.load(write(tmp_path / "mine.csv", text))


def test_an_unknown_format_names_those_that_are_known(tmp_path: Path) -> None:
    write(tmp_path / "notes.md", "hello")
    with pytest.raises(UserError, match="in no known format: expected LAMA's"):
        formats.detect(tmp_path)
