"""The readers of LPAQA, ParaRel, BATS, the Google analogies and a user's table."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from project_files import SHARED

from lama_core.datasets import bats, formats, lpaqa, user_table
from lama_core.datasets.column_guess import guess_columns
from lama_core.errors import UserError

needs_shared = pytest.mark.skipif(
    not (SHARED / "lpaqa").is_dir(), reason=f"the reference data is not at {SHARED}"
)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


@needs_shared
def test_the_reference_prompts_and_pairs_are_read_whole() -> None:
    dataset = lpaqa.load(SHARED / "lpaqa")
    assert dataset.report.dropped == ()
    assert len(dataset.relations) == 20
    assert len(dataset.facts_of("P19")) == 1_000
    mined = dataset.relation("P19").prompts[0]
    assert (mined.template, mined.origin) == ("[X] was born in [Y] .", "mined")
    assert mined.weight == pytest.approx(0.003614419372752309)
    prompts = dataset.relation("P19").prompts
    manual = [prompt for prompt in prompts if prompt.origin == "manual paraphrase"]
    assert manual and all(prompt.weight is None for prompt in manual)


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
    dataset = user_table.load(write(tmp_path / "mine.csv", text))
    assert [fact.templates for fact in dataset.facts] == [
        ("The capital of [X] is [Y].",),
        ("[Y] governs [X].",),
    ]
    assert dataset.facts[1].sentences == ("Chile's capital is [MASK].",)
    assert dataset.name == "mine"


def test_a_table_in_another_encoding_is_refused_with_its_words_in_some(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("subject,object\nPerú,Lima\nEspaña,Madrid\n", encoding="cp1252")
    with pytest.raises(UserError, match=r"--encoding.*cp1252 \('Perú'\)"):
        user_table.load(path)


COUNTRIES = "Country,Label,Kind\nPeru,Lima,capital\nChile,Peso,currency\nPeru,,capital\n"
MAPPED = user_table.ColumnRoles(subject="country", object="Label", relation="Kind")


def test_columns_of_other_names_and_a_template_for_each_relation(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.csv", COUNTRIES)
    templates = {"capital": "The capital of [X] is [Y] .", "": "[X] has the [Y] ."}
    dataset = user_table.load(path, columns=replace(MAPPED, templates=templates))
    assert [(one.subject, one.relation, one.object) for one in dataset.facts] == [
        ("Peru", "capital", "Lima"),
        ("Chile", "currency", "Peso"),
    ]
    assert [one.prompts[0].template for one in dataset.relations] == [
        "The capital of [X] is [Y] .",
        "[X] has the [Y] .",
    ]
    assert [one.label for one in dataset.relations] == ["", ""]  # Label is the object here
    assert [dropped.line for dropped in dataset.report.dropped] == [4]


def test_a_template_of_a_row_comes_before_the_one_for_all(tmp_path: Path) -> None:
    text = "subject,object,template\nPeru,Lima,[Y] governs [X].\nChile,Santiago,\n"
    path = write(tmp_path / "mine.csv", text)
    given = user_table.ColumnRoles(templates={"": "[X]: [Y]"})
    facts = user_table.load(path, columns=given).facts
    assert [fact.templates for fact in facts] == [("[Y] governs [X].",), ("[X]: [Y]",)]


@pytest.mark.parametrize(
    ("given", "templates"),
    [
        (["[X] is [Y]"], {"": "[X] is [Y]"}),
        (["P1=[X]=[Y]", "[X]: [Y]"], {"P1": "[X]=[Y]", "": "[X]: [Y]"}),
    ],
)
def test_a_template_is_for_all_relations_or_for_one(
    given: list[str], templates: dict[str, str]
) -> None:
    names = {"subject": "", "object": "", "relation": "", "template": ""}
    assert user_table.ColumnRoles.given(**names, templates=given).templates == templates
    with pytest.raises(UserError, match="Two templates"):
        user_table.ColumnRoles.given(**names, templates=[given[0]] * 2)
    with pytest.raises(UserError, match=r"no \[Y\]"):
        user_table.ColumnRoles.given(**names, templates=["P1=[X] is it"])


def test_files_of_bats_with_one_title_are_two_relations(tmp_path: Path) -> None:
    for name, pair in (("E01 [capital].txt", "Oslo\tNorway"), ("E02 [capital].txt", "Rome\tItaly")):
        write(tmp_path / "3_Encyclopedic_semantics" / name, f"{pair}\n")
    analogies = bats.load(tmp_path)
    assert [(one.name, one.pairs[0][0]) for one in analogies.relations] == [
        ("E01 [capital]", "Oslo"),
        ("E02 [capital]", "Rome"),
    ]


def mlama(folder: Path, template: str) -> None:
    write(folder / "templates.jsonl", json.dumps({"relation": "P36", "template": template}))
    row = {"obj_label": "Paris", "sub_label": "France", "uuid": "1", "lineid": 0}
    write(folder / "P36.jsonl", json.dumps(row))
    write(folder / "place_of_birth.jsonl", json.dumps(row))


def test_each_language_of_mlama_is_a_dataset(tmp_path: Path) -> None:
    mlama(tmp_path / "mlama" / "de", "Die Hauptstadt von [X] ist [Y] .")
    mlama(tmp_path / "mlama" / "en", "The capital of [X] is [Y] .")
    dataset = formats.load_facts(tmp_path / "mlama" / "de")
    assert dataset.relation("P36").prompts[0].template == "Die Hauptstadt von [X] ist [Y] ."
    assert dataset.sources() == ("Google_RE", "TREx")
    with pytest.raises(
        UserError, match=r"each of 2 languages \(de, en\): import the folder of one"
    ):
        formats.load(tmp_path)


def test_lama_and_its_variant_in_one_folder_are_two_datasets(tmp_path: Path) -> None:
    row = json.dumps({"obj_label": "Paris", "sub_label": "France", "masked_sentences": ["[MASK]"]})
    for name in ("TREx", "TREx_UHN"):
        write(tmp_path / name / "P36.jsonl", row)
    with pytest.raises(UserError, match="both TREx and TREx_UHN, datasets with the same facts"):
        formats.load(tmp_path)
    assert len(formats.load_facts(tmp_path / "TREx_UHN").facts) == 1


def trex_document(text: str, subject: str, obj: str) -> dict[str, object]:
    """A document of T-REx with one sentence and one triple."""

    def part(number: str, form: str) -> dict[str, object]:
        start = text.index(form)
        uri = f"http://www.wikidata.org/entity/{number}"
        return {"uri": uri, "surfaceform": form, "boundaries": [start, start + len(form)]}

    predicate = {"uri": "http://www.wikidata.org/prop/direct/P19", "boundaries": None}
    triple = {"subject": part("Q1", subject), "predicate": predicate, "object": part("Q2", obj)}
    return {
        "docid": "x",
        "title": "Ada Lovelace",
        "text": text,
        "sentences_boundaries": [[0, len(text)]],
        "triples": [triple | {"sentence_id": 0}],
    }


def test_trex_gives_facts_with_their_sentences(tmp_path: Path) -> None:
    texts = ("She was born in London.", "Ada Lovelace came from London.")
    documents = [trex_document(texts[0], "She", "London"), trex_document(texts[1], "Ada", "London")]
    documents[0]["triples"] = [*documents[0]["triples"], {"subject": 3}]  # type: ignore[misc]
    write(tmp_path / "re-nlg_0-10000.json", json.dumps(documents))
    dataset = formats.load_facts(tmp_path)
    (fact,) = dataset.facts
    assert (fact.subject, fact.relation, fact.object) == ("Ada Lovelace", "P19", "London")
    assert fact.sentences == ("She was born in [MASK].", "Ada Lovelace came from [MASK].")
    (dropped,) = dataset.report.dropped
    assert dropped.reason == "item 1: expected a JSON object, not a int"


UNKNOWN = dict.fromkeys(("subject", "object", "relation", "template"), "")


@pytest.mark.parametrize(
    ("rows", "guessed"),
    [
        ([["country", "capital"], ["Peru", "Lima"]], {"subject": "country", "object": "capital"}),
        (
            [["what", "who", "of"], ["capital", "Lima", "Peru"], ["capital", "Oslo", "Norway"]],
            {"relation": "what", "subject": "who", "object": "of"},
        ),
        (
            [["answer", "text", "entity", "id"], ["Lima", "[X] has [Y] .", "Peru", "3"]],
            {"object": "answer", "template": "text", "subject": "entity"},
        ),
        ([["n", "m"], ["1", "2"]], {}),
    ],
    ids=["order", "repeated values", "names and contents", "numbers"],
)
def test_columns_are_guessed_from_names_and_first_rows(
    rows: list[list[str]], guessed: dict[str, str]
) -> None:
    header, *cells = rows
    table = [dict(zip(header, row, strict=True)) for row in cells]
    assert guess_columns(header, table, UNKNOWN) == guessed
