"""Look inside, under the answers of the Cloze page: layers, words that mattered, what if."""

import pytest
from chart_marks import charts
from opening import html, open_page
from streamlit.testing.v1 import AppTest

from pages.ui.shared.messages import plain

pytestmark = pytest.mark.usefixtures("home")
MODEL = "minilm-mlm"
TEXT = "The capital of Norway is ___."


def opened(**params: str) -> AppTest:
    return open_page("cloze", **{"models": MODEL, "text": TEXT, "gold": "Oslo", **params})


def test_the_last_layer_stands_first_in_the_table_and_ranks_as_above() -> None:
    app = opened(look="Layers", k="3")
    table = app.dataframe[0].value
    assert list(table["layer"]) == ["6", "5", "4", "3", "2", "1", "embeddings"]
    above = html(app)
    rank = above.split("Right answer <b>Oslo</b>: rank <b>")[1].split("<")[0]
    first = above.split('<td class="word">')[1].split("<")[0]
    assert table["Oslo ✓: rank"][0] == rank
    assert table["first answer"][0] == first
    (ranks,) = charts(app)
    assert (
        ranks.title
        == "MiniLM-MLM: ranks of words (columns) after each layer (rows, with its first answer)"
    )
    assert [name.split(" · ")[0] for name in ranks.parameter("names")] == list(table["layer"])
    assert ranks.parameter("words")[0] == "Oslo ✓"
    cells = ranks.marks("text")
    assert [cell["text"] for cell in cells if cell["column"] == 0] == list(table["Oslo ✓: rank"])
    assert f"rank {rank} of 22,426" in ranks.marks("rect")[0]["said"]


def test_tokens_are_coloured_by_what_they_add_and_the_sum_is_checked() -> None:
    app = opened(look="Which words mattered")
    strip = html(app).split('class="lx-strip"')[1]
    assert strip.count("lx-token") == 7 and "___" in strip
    table = app.dataframe[0].value
    assert list(table["token"]) == ["the", "capital", "of", "norway", "is", "___", "."]
    assert table["adds"][1].startswith("+") and table["adds"][5] == ""
    assert not any("with every token hidden" in one.value for one in app.caption)
    app = opened(look="Which words mattered", by_method="gradients", explain="<b>Rome")
    assert "Log-prob. of <b>&lt;b&gt;Rome</b>" in html(app)
    assert any(plain("only the first, “<”, counts") in one.value for one in app.caption)
    app = opened(look="Which words mattered", by_method="gradients", explain="Rome", steps="50")
    assert not app.error
    said = [one.value for one in app.caption if plain("with every token hidden") in one.value]
    assert any(plain("Completeness error: ") in one for one in said)
    assert any(plain("with 50 steps, the tokens' values sum to") in one for one in said)
    assert "Log-prob. of <b>Rome</b>" in html(app)


def test_a_trace_starts_with_a_click_and_restores_the_answer() -> None:
    app = opened(look="Causal trace")
    assert app.text_input(key="subject").value == "Norway"
    assert not charts(app)
    assert any("Press Trace" in one.value for one in app.caption)
    next(one for one in app.button if one.label == "Trace").click().run(timeout=120)
    assert not app.error
    (chart,) = charts(app)
    assert chart.parameter("names")[4] == "norway *" and len(chart.marks("rect")) == 9 * 6
    assert "mean over 10 draws of noise; *: token of the subject" in chart.caption
    assert "Noise on <b>Norway</b> takes the probability of" in html(app)
    assert "brings it back most, to" in html(app)
    table = app.dataframe[0].value
    assert list(table["layer"]) == [6, 5, 4, 3, 2, 1]
    assert table.columns[5].endswith("norway *")
    app.text_input(key="subject").set_value("Sweden").run()
    assert not charts(app), "another trace needs another click"
    next(one for one in app.button if one.label == "Trace").click().run(timeout=120)
    assert "doesn't contain the subject" in app.error[0].value.replace("\\", "")


def test_parts_of_the_logit_are_bars_with_the_strongest_neurons() -> None:
    app = opened(look="Parts of the logit", explain="Oslo", against="Paris")
    assert not app.error
    (chart,) = charts(app)
    assert list(chart.keys) == ["attention", "MLP", "other"]
    assert chart.parameter("words") == ["emb.", *map(str, range(1, 7)), "rest", "bias"]
    others = [
        mark["ahead"] + mark["behind"] for mark in chart.marks("rect") if mark["name"] == "other"
    ]
    assert others == [0, 2 * 7, 2 * 8], "parts that aren't in a layer are centred"
    assert "adds most to the logit of <b>Oslo</b> minus that of <b>Paris</b>" in html(app)
    neurons, heads = (one.value for one in app.dataframe[:2])
    assert len(neurons) == 10 and all(neurons["promotes"])
    assert list(heads) == ["head", "adds"] and len(heads) == 10
