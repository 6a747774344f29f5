"""The tab Entities."""

import json
import re
from typing import Any
from urllib.parse import parse_qs

import pytest
from opening import html, open_page, said
from streamlit.testing.v1 import AppTest

from lama_entities.card import EntityRequest
from lama_entities.tab import ENTITIES
from pages.ui.queries.history import HistoryEntry

CARD = {"tab": "Entities", "models": "MiniLM-MLM"}


def cards(app: AppTest) -> list[list[dict[str, Any]]]:
    """The rows of each model's card."""
    protos = [one.proto for one in app.get("bidi_component")]
    return [json.loads(one.json)["rows"] for one in protos if one.component_name == "lama_card"]


def test_a_card_has_relations_with_a_right_answer_first() -> None:
    app = open_page("cloze", **CARD, entity="Norway")
    assert "**Norway**: country. The starter facts have right answers for 5 relations" in said(app)
    (rows,) = cards(app)
    heading = [one.get("heading", "") for one in rows].index("No right answer in the starter facts")
    assert heading == 5
    first = rows[0]
    assert (first["label"], first["words"][0]["verdict"]) == ("capital", "✓")
    assert first["words"][0]["opens"]["params"]["entity"] == "Oslo"
    alone = first["alone"]["params"]
    assert (alone["text"], alone["gold"]) == ("The capital of Norway is ___.", "Oslo")
    assert "tab" not in alone and "entity" not in alone


def test_of_several_right_answers_the_likeliest_is_opened_and_named_first_with_its_rank() -> None:
    (rows,) = cards(open_page("cloze", **CARD, entity="France"))
    (borders,) = (one for one in rows if one.get("label") == "shares border with")
    shown = {word["text"]: word["verdict"] for word in borders["words"]}
    right = [word for word, verdict in shown.items() if verdict == "✓"]
    assert right and borders["alone"]["params"]["gold"].casefold() == right[0]
    app = open_page("cloze", **CARD | {"models": "MiniLM-MLM twin"}, entity="France")
    (borders,) = (one for one in cards(app)[0] if one.get("label") == "shares border with")
    assert re.fullmatch(
        r"right: Italy \(rank 2\), Switzerland, \w+ and \d more", borders["right"]
    )  # Switzerland is the first in the data
    (second,) = (one for one in borders["words"] if one["verdict"] == "✓")
    assert second == borders["words"][1] and second["text"] == "italy"


def test_a_typed_name_begins_a_new_trail() -> None:
    app = open_page("cloze", **CARD, entity="Sweden", trail="P47:Norway")
    app.text_input(key="entity").set_value("Peru").run()
    assert "**Peru**: country." in said(app)
    assert not [one for one in app.button if one.key and one.key.startswith("trail")]


NAMES = ["<img src=x onerror=alert(1)>", "**b** [x](http://y.z) $a$", 'a\\ "b"', "C#_née_x&y=1"]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_shown_as_text_and_are_whole_in_addresses(name: str) -> None:
    app = open_page("cloze", **CARD, entity=name, entity_type="person", trail=f"P36:{name}")
    shown = f"**{name}**: person. The starter facts have nothing about it."
    assert shown.replace("\\", "") in said(app).replace("\u2060", "")
    assert not any(one.allow_html for one in app.markdown)
    (rows,) = cards(app)
    assert len(rows) == 19
    address = rows[0]["words"][0]["opens"]["address"]
    assert parse_qs(address[1:])["trail"] == [f"P36:{name}", f"P19:{name}"]


def test_a_misspelt_name_has_a_link_to_the_name_in_the_data(gone: list[dict[str, Any]]) -> None:
    app = open_page("cloze", **CARD, entity="Norwy")
    next(one for one in app.button if one.label == "Did you mean Norway?").click().run()
    assert gone[0]["entity"] == "Norway"


def test_the_history_opens_the_same_card() -> None:
    request = EntityRequest(name="Norway", type="region", models=("minilm-mlm",), top_k=2)
    params = HistoryEntry(request).params()
    assert ENTITIES.opens.items() <= params.items()
    app = open_page("cloze", **params)
    assert app.text_input(key="entity").value == "Norway"
    assert "**Norway**: region." in said(app)


def test_a_pin_of_an_address_names_no_folder() -> None:
    pin = {"kind": "entity", "models": ["minilm-mlm"], "name": "Norway", "dataset": "/etc"}
    app = open_page("cloze", **CARD, entity="Norway", pin=json.dumps(pin))
    (fault,) = (one.value.replace("\\", "") for one in app.error)
    assert "can't reference the data set '/etc'" in fault
    shown = open_page("cloze", **CARD, entity="Peru", pin=json.dumps(pin | {"dataset": "starter"}))
    assert "capital: oslo" in html(shown)


def test_the_line_names_the_models_and_says_which_relations_it_counts() -> None:
    models = ["MiniLM-MLM", "MiniLM-MLM twin"]
    line = html(open_page("cloze", tab="Entities", models=models, entity="Norway"))
    assert "MiniLM-MLM and MiniLM-MLM twin give the same first answer in" in line
    assert "6</b> relations.<" in line
    unknown = html(
        open_page("cloze", tab="Entities", models=models, entity="Blarg")
    )  # a city, a thing
    assert "2</b> relations that their cards share" in unknown
