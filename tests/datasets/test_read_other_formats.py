"""The readers of LPAQA, ParaRel, BEAR, BATS, the Google analogies and a user's table."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from lama_core.datasets import bats, bear, formats, lpaqa, pararel, user_table
from lama_core.datasets.dataset import ReadReport
from lama_core.errors import UserError

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
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


@needs_shared
def test_the_reference_patterns_are_read_without_facts() -> None:
    dataset = pararel.load(SHARED / "pararel")
    assert [relation.name for relation in dataset.relations] == ["P36", "P37"]
    assert dataset.relations[0].prompts[0].template == "The capital of [X] is [Y] ."
    assert dataset.report.notes == ("no trex_lms_vocab: patterns without facts",)


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


def test_a_row_that_asks_nothing_is_left_out(tmp_path: Path) -> None:
    text = "subject,object,relation,template\nPeru,Lima,a,\nChile,Santiago,b,[X] is [Y]\n"
    dataset = user_table.load(write(tmp_path / "mine.csv", text))
    assert [fact.subject for fact in dataset.facts] == ["Chile"]
    assert "nothing to query" in dataset.report.dropped[0].reason


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n", r"its columns are: a, b. Name the columns .*\(--subject, --object\)"),
        ("subject,object\n", "has no usable row: it has no rows"),
    ],
)
def test_a_table_without_facts_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        user_table.load(write(tmp_path / "mine.csv", text))


def test_a_table_of_triples_is_read_with_a_note(tmp_path: Path) -> None:
    dataset = user_table.load(write(tmp_path / "mine.csv", "subject,object\nPeru,Lima\n"))
    assert [fact.object for fact in dataset.facts] == ["Lima"]
    assert "give a template (--template)" in dataset.report.notes[0]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
def test_a_table_in_any_encoding_of_unicode_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("subject,object\nPerú,Lima\nČesko,北京\n", encoding=encoding)
    assert [fact.subject for fact in user_table.load(path).facts] == ["Perú", "Česko"]


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
    ("columns", "said"),
    [
        (replace(MAPPED, object="labels"), "no column 'labels' for the object (did you mean"),
        (user_table.ColumnRoles(object="Label"), "needs the columns subject and object"),
        (replace(MAPPED, templates={"capitol": "[X]: [Y]"}), "no relation 'capitol' for the templ"),
    ],
)
def test_a_column_or_relation_that_is_not_there_is_named(
    tmp_path: Path, columns: user_table.ColumnRoles, said: str
) -> None:
    with pytest.raises(UserError, match=re.escape(said)):
        user_table.load(write(tmp_path / "mine.csv", COUNTRIES), columns=columns)


def test_a_scan_finds_the_relations_that_lack_a_template(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.csv", COUNTRIES)
    found = user_table.scan(path, MAPPED)
    assert (found.relations, found.unasked) == (("capital", "currency"),) * 2
    assert found.n_facts == 0
    (dropped,) = found.dropped
    assert (dropped.line, dropped.reason) == (4, "no object: 'label' is empty")
    header, rows = user_table.first_rows(path, 1)
    assert (header, rows[0]["Country"]) == (("Country", "Label", "Kind"), "Peru")
    assert [user_table.named_column(header, role) for role in user_table.ROLES] == [""] * 4
    assert user_table.named_column(("Obj", "SUB_label"), "subject") == "SUB_label"


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


def bear_folder(folder: Path, facts: str, **described: object) -> Path:
    """BEAR's layout with one relation of three answers, unless `described` says otherwise."""
    row = {
        "templates": ["The capital of [X] is [Y].", "[Y] is [X]'s capital."],
        "answer_space_labels": ["Lima", "Rabat", "Saint John's"],
    }
    write(folder / "metadata_relations.json", json.dumps({"P36": row | described}))
    write(folder / "P36.jsonl", facts)
    return folder


def bear_fact(subject: str, obj: str | None, at: object = None) -> str:
    row = {"sub_label": subject, "obj_label": obj, "answer_idx": at}
    return json.dumps({name: value for name, value in row.items() if value is not None}) + "\n"


def test_bear_gives_templates_answers_domains_and_facts(tmp_path: Path) -> None:
    facts = bear_fact("Peru", "Lima", 0) + bear_fact("Antigua", None, 2)
    wrapped = bear_folder(tmp_path / "BEAR-725b" / "BEAR", facts, domains=["Geographic"])
    dataset = formats.load(tmp_path)
    assert formats.root_of(tmp_path) == wrapped
    (relation,) = dataset.relations
    assert [one.template for one in relation.prompts] == [
        "The capital of [X] is [Y].",
        "[Y] is [X]'s capital.",
    ]
    assert relation.answers == ("Lima", "Rabat", "Saint John's")
    assert (relation.source, relation.domains) == ("BEAR", ("Geographic",))
    assert [(one.subject, one.object) for one in dataset.facts] == [
        ("Peru", "Lima"),
        ("Antigua", "Saint John's"),
    ]
    assert dataset.report == ReadReport()


@pytest.mark.parametrize("above", [False, True])
def test_bears_domains_may_lie_in_a_file_of_their_own(tmp_path: Path, above: bool) -> None:
    folder = bear_folder(tmp_path / "BEAR", bear_fact("Peru", "Lima"))
    said = json.dumps({"P36": {"domains": ["Geographic", "Political"]}, "P1": 3})
    write((tmp_path if above else folder) / "relation_info.json", said)
    dataset = bear.load(folder)
    assert dataset.relations[0].domains == ("Geographic", "Political")
    assert [one.reason for one in dataset.report.dropped] == [
        "P1: expected a JSON object, not a int"
    ]


def test_a_template_that_bear_has_twice_keeps_its_number(tmp_path: Path) -> None:
    templates = ["[X] is [Y].", "It is [Y], [X].", "[X] is [Y]."]
    folder = bear_folder(tmp_path, bear_fact("Peru", "Lima"), templates=templates)
    assert [one.template for one in bear.load(folder).relations[0].prompts] == templates


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("{", "not valid JSON"),
        ("[]", "expected a JSON object, not a list"),
        (bear_fact("", "Lima", 0), "'sub_label' is empty"),
        (bear_fact("Peru", None), "no field 'obj_label'"),
        (bear_fact("Peru", "Quito"), "'Quito' is not among the 3 answers"),
        (bear_fact("Peru", "Lima", 1), "answer_idx 1 is 'Rabat', but obj_label is 'Lima'"),
        (bear_fact("Peru", "Lima", 3), "answer_idx is '3', but there are 3 answers"),
        (bear_fact("Peru", "Lima", -1), "answer_idx is '-1', but there are 3 answers"),
        (bear_fact("Peru", "Lima", True), "answer_idx is 'True', but there are 3 answers"),
        (bear_fact("Chile", "Lima", 0), "duplicate of line 1: 'Chile' with 'Lima'"),
    ],
)
def test_a_bad_row_of_bear_says_what_is_wrong(tmp_path: Path, row: str, reason: str) -> None:
    first = bear_fact("Chile", "Lima", 0)
    dataset = bear.load(bear_folder(tmp_path, first + row.strip() + "\n"))
    (dropped,) = dataset.report.dropped
    assert (dropped.file, dropped.line) == ("P36.jsonl", 2)
    assert reason in dropped.reason
    assert len(dataset.facts) == 1


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        ({"templates": ["[X] is it.", "[X] is [Y]."]}, "has no [Y]"),
        ({"answer_space_labels": ["Lima", "Rabat", "Lima"]}, "'Lima', is the same as answer 0"),
        ({"answer_space_labels": ["Lima", " "]}, "answer 1 is empty"),
        ({"answer_space_labels": ["Lima", "x" * 301]}, "answer 1 is longer than 300 letters"),
    ],
)
def test_what_is_wrong_with_a_relation_of_bear_costs_that_alone(
    tmp_path: Path, described: dict[str, object], reason: str
) -> None:
    dataset = bear.load(bear_folder(tmp_path, bear_fact("Peru", "Lima", 0), **described))
    (dropped,) = dataset.report.dropped
    assert (dropped.file, dropped.line) == ("metadata_relations.json", 0)
    assert dropped.reason.startswith("P36: ") and reason in dropped.reason
    assert len(dataset.facts) == 1


def test_an_answers_index_counts_those_that_are_left_out(tmp_path: Path) -> None:
    labels = ["Lima", "", "Rabat"]
    folder = bear_folder(tmp_path, bear_fact("Morocco", None, 2), answer_space_labels=labels)
    assert bear.load(folder).facts[0].object == "Rabat"


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        ({"templates": []}, "P36: no usable template"),
        ({"templates": "[X]"}, "has no [Y]"),
        ({"templates": [1]}, "'templates' is not a list of texts"),
        ({"answer_space_labels": "Lima"}, "'answer_space_labels' is not a list"),
        ({"answer_space_labels": [["Lima"]]}, "'answer_space_labels' is a list, not text"),
        ({"answer_space_labels": ["x"] * 100_001}, "100,001 answers: give at most"),
        ({"domains": 1}, "'domains' is not a list of texts"),
    ],
)
def test_a_folder_of_bear_without_a_usable_relation_is_refused(
    tmp_path: Path, described: dict[str, object], reason: str
) -> None:
    folder = bear_folder(tmp_path, bear_fact("Peru", "Lima", 0), **described)
    with pytest.raises(UserError, match="has no usable fact") as error:
        bear.load(folder)
    assert reason in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\ud800", "[" * 5000])
def test_a_description_of_bear_that_is_none_is_one_sentence(tmp_path: Path, text: str) -> None:
    folder = bear_folder(tmp_path, bear_fact("Peru", "Lima"))
    (folder / "metadata_relations.json").write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(UserError, match=r"metadata_relations\.json") as error:
        bear.load(folder)
    assert "\n" not in str(error.value)


def test_files_and_relations_without_each_other_are_named(tmp_path: Path) -> None:
    folder = bear_folder(tmp_path, bear_fact("Peru", "Lima"))
    row = {"templates": ["[X]: [Y]"]}
    described = json.loads((folder / "metadata_relations.json").read_text("utf-8"))
    outside = str(write(tmp_path.parent / "outside.jsonl", bear_fact("a", "b")))[: -len(".jsonl")]
    write(folder / "metadata_relations.json", json.dumps(described | {"P1": row, outside: row}))
    write(folder / "P9.jsonl", bear_fact("a", "b"))
    dataset = bear.load(folder)
    assert [one.name for one in dataset.relations] == ["P36"], "no file outside the folder is read"
    assert [str(one) for one in dataset.report.dropped] == [
        "P9.jsonl: P9 is not in metadata_relations.json: add its templates there"
    ]
    assert dataset.report.notes == ("P1 has no facts; skipped", f"{outside} has no facts; skipped")


@pytest.mark.skipif(not (SHARED / "bear").is_dir(), reason=f"BEAR is not at {SHARED}")
def test_the_reference_bear_is_read_whole() -> None:
    dataset = formats.load_facts(SHARED / "bear")
    assert dataset.report == ReadReport()
    assert (len(dataset.relations), len(dataset.facts)) == (30, 3_864)
    assert all(len(one.prompts) == 3 for one in dataset.relations)
    # 60 facts of 60 answers, or some 150 facts of 25 and fewer, each answer as often as the others.
    for relation in dataset.relations:
        counts = Counter(fact.object for fact in dataset.facts_of(relation.name))
        assert set(counts) == set(relation.answers)
        assert len(set(counts.values())) == 1, relation.name


def test_sections_of_one_name_are_one_relation(tmp_path: Path) -> None:
    text = ": a\nParis France Rome Italy\n: b\nrun ran go went\n: a\nOslo Norway Rome Italy\n"
    analogies = bats.load(write(tmp_path / "x.txt", text))
    assert [(one.name, len(one.pairs)) for one in analogies.relations] == [("a", 3), ("b", 2)]
    assert analogies.report.notes == ("x.txt, line 5: more pairs of 'a', the same relation",)


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


def test_files_that_lamas_layout_leaves_out_are_named(tmp_path: Path) -> None:
    row = {"sub": "fish", "obj": "swim", "pred": "CapableOf", "masked_sentences": ["Fish [MASK]."]}
    for name in ("test.jsonl", "train.jsonl"):
        write(tmp_path / "ConceptNet" / name, json.dumps(row))
    notes = formats.load(tmp_path).report.notes
    assert "ConceptNet/train.jsonl is not read: LAMA's layout doesn't have it" in notes


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
