"""Names and identifiers in exports of Wikidata."""

from pathlib import Path

import pytest

from lama_core.datasets import user_table
from lama_core.datasets.wikidata import label_of


@pytest.mark.parametrize(
    "text",
    [
        *("Q90", "wd:Q142", "wdt:P36", "P36", "Property:P36", "L1234", "L42-S1", "L42-F1"),
        *("_:b12", "M12345678", "https://www.wikidata.org/wiki/Property:P36", "entity/Q90"),
        *("<http://www.wikidata.org/entity/Q90>", "www.wikidata.org/wiki/Q90", "_:genid3"),
        *("wds:Q42-F078E5B3-F9A8-480E-B7AC-D97778CBBEF9", '"Q90"@en'),
        "Q42$F078E5B3-F9A8-480E-B7AC-D97778CBBEF9",
    ],
)
def test_an_identifier_is_not_a_name(text: str) -> None:
    assert label_of(text) == ""


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ('"Oslo"@en', "Oslo"),
        ("Oslo@en", "Oslo"),
        ("'Oslo'@nb-NO", "Oslo"),
        ('"São Paulo"@pt-br', "São Paulo"),
        ('"3"^^xsd:integer', "3"),
        ('"3"^^<http://www.w3.org/2001/XMLSchema#integer>', "3"),
        ('"the \\"Q\\""@en', 'the "Q"'),
    ],
)
def test_a_literal_is_its_label(text: str, label: str) -> None:
    assert label_of(text) == label


@pytest.mark.parametrize(
    "text",
    ["M31", "M1", "P", "Q", "Q-tip", "P-51", "P51-D", "L.A.", "Q0", "bob@example.org", "@en", "C#"],
)
def test_a_name_of_a_similar_form_is_kept(text: str) -> None:
    assert label_of(text) == text


def test_an_identifier_among_the_names_of_an_object_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "facts.jsonl"
    path.write_text(
        '{"subject": "Norway", "object": [["Q585", "Oslo@en", "Christiania"], "_:b1x"]}\n'
        '{"subject": "Peru", "object": ["Lima"], "template": "[X]: [Y]"}\n'
        '{"subject": "Italy", "object": "Rome", "aliases": ["Q220", "Roma"]}\n'
    )
    found = user_table.load(path)
    assert [(fact.object, fact.aliases) for fact in found.facts] == [
        ("Lima", ()),
        ("Rome", ("Roma",)),
    ]
    assert "'_:b1x' is not a name" in found.report.dropped[0].reason
