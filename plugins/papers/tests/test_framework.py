"""A paper's tables are made one by one, compared only where they can be, and written as HTML."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from lama_core.errors import UserError
from lama_core.papers.differences import differing
from lama_core.published import TableSpec, published_paper
from lama_core.views.figure import Axis, Figure
from lama_papers import framework
from lama_papers.charts import boxes, chart, compared
from lama_papers.framework import (
    Data,
    Paper,
    PaperInputs,
    ReproduceOptions,
    find_data,
)
from lama_papers.report import as_html
from lama_papers.tables import (
    Item,
    ReproducedRow,
    ReproducedTable,
    Reproduction,
    TableContents,
    UnavailableItem,
)

NASTY = """</script><b>x</b>'">&"""
GONE = UnavailableItem("BERT-large", "its weights aren't here", "lama-explorer models get bert")


def curve(title: str, **points: Mapping[float, float]) -> Figure:
    """Curves: series -> k -> value."""
    rows = [
        {"series": name, "k": k, "value": value}
        for name, of_name in points.items()
        for k, value in of_name.items()
    ]
    return chart("lines", title, rows, Axis(column="k", title="k <u>"), "P@k")


class Ready(PaperInputs):
    notes = ("Ranking raw.",)
    asked = ("tiny", "broken")
    data = Data("")


def first(ready: Ready) -> Iterator[Item]:
    yield ReproducedRow("BERT", "total", 10, 33.5, 32.3)
    yield ReproducedRow("BERT", "N-1", 5, 40.0, 34.2, differs="20 of 41 relations")
    yield ReproducedRow("BERT", "<b>Dante</b>", 1, "Florence", "Rome")
    yield ReproducedRow("BERT-large", "total", 0, None, 32.3, reason=GONE.reason)
    yield curve("a <i>", **{NASTY: {1.0: 0.1, 2.0: 0.2}})
    yield GONE


def second(ready: Ready) -> Iterator[Item]:
    raise UserError("The counts of the training text aren't here.")


def of_model(ready: Ready, model: str) -> Iterator[Item]:
    yield ReproducedRow(model, "begun", 1, 1.0, None)
    if model == "broken":
        raise UserError("It can't be had.")
    yield ReproducedRow(model, "done", 1, 2.0, None)


PAPER = Paper("petroni2019", Ready, {"table2": first, "figure3": second, "table3": of_model})
SPECS = (
    TableSpec("table2", "Means"),
    TableSpec("figure3", "Correlations", "correlation", digits=2),
    TableSpec("table3", "Examples", "number", "", 0, by_model=True, notes=("Once.",)),
)


@pytest.fixture(autouse=True)
def specified(monkeypatch: pytest.MonkeyPatch) -> None:
    paper = replace(published_paper("petroni2019"), reproduced=SPECS)
    monkeypatch.setattr("lama_papers.framework.published_paper", lambda name: paper)


def test_a_difference_is_given_only_where_all_is_the_same() -> None:
    table, *_ = PAPER.reproduce(ReproduceOptions()).tables
    same, other, words, none = table.made.rows
    assert same.difference == pytest.approx(33.5 - 32.3)
    assert (other.difference, words.difference, none.difference) == (None, None, None)
    assert table.remarks() == (
        ("20 of 41 relations", "its weights aren't here"), [None, 0, None, 1],
    )  # fmt: skip


def test_a_table_that_cannot_be_made_says_why_and_the_others_are_made() -> None:
    found = PAPER.reproduce(ReproduceOptions())
    assert [table.name for table in found.tables] == ["Table 2", "Figure 3", "Table 3"]
    said = "The counts of the training text aren't here."
    assert found.absent == (GONE, UnavailableItem("Figure 3", said))


def test_of_a_model_that_fails_the_reason_is_a_row() -> None:
    (table,) = PAPER.reproduce(ReproduceOptions(tables=("3",))).tables
    assert (table.title, table.made.notes) == ("Examples", ("Once.",))
    said = [(row.model, row.what, row.reason) for row in table.made.rows]
    assert said == [
        ("tiny", "begun", ""),
        ("tiny", "done", ""),
        ("broken", "begun", ""),
        ("broken", "", "It can't be had."),
    ]


def test_a_table_that_the_paper_does_not_have_is_refused() -> None:
    with pytest.raises(UserError, match=r"table 'figure4'.*figure3"):
        PAPER.reproduce(ReproduceOptions(tables=("Figure 4",)))


def test_what_is_not_the_papers_is_said_in_a_word() -> None:
    assert differing(relations=(41, 41), facts=(34039, 34039)) == ""
    assert differing(relations=(20, 41), limit=5, model="BERT-base") == (
        "20 of 41 relations; at most 5 a relation; not BERT-base"
    )
    assert differing(data="starter facts", relations=(20, 41)) == "starter facts"


@pytest.mark.usefixtures("offline")
def test_without_the_papers_data_the_others_stand_in_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instead = Data("starter", "starter facts")
    found = find_data(None, own="lama", instead=instead)
    assert (found.name, found.other) == ("starter", "starter facts")
    assert found.absent == (
        UnavailableItem("lama", "lama can't be reached.", "lama-explorer data get lama"),
    )
    assert find_data("mine", own="lama", instead=instead) == Data("mine")
    monkeypatch.setattr(framework, "installed_names", lambda: ("lama",))
    assert find_data(None, own="lama", instead=instead) == Data("lama")


class Tags(HTMLParser):
    """The elements and attributes of a page, and the words that a reader sees."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_file_has_every_text_as_a_text() -> None:
    page = as_html(PAPER.reproduce(ReproduceOptions()), "reproduce '<script>'")
    assert "+1.2" in page and "20 of 41 relations" in page
    assert "lama-explorer models get bert" in page
    read = Tags(page)
    assert {"script", "b", "i", "u"}.isdisjoint(read.tags) and read.tags.count("svg") == 1
    for text in ("<b>Dante</b>", "reproduce '<script>'", NASTY, "a <i>", "k <u>"):
        assert text in read.words, text
    assert f"{NASTY}\n1.0: 0.1" in read.words, "a browser shows it under the mouse"


def test_the_file_runs_no_code_and_fetches_nothing() -> None:
    read = Tags(as_html(PAPER.reproduce(ReproduceOptions()), "reproduce"))
    names = {name for name, _ in read.attributes}
    assert {"src", "href", "xlink:href"}.isdisjoint(names)
    assert not [name for name in names if name.startswith("on")]
    assert "default-src 'none'; style-src 'unsafe-inline'" in dict(read.attributes)["content"]
    assert not [value for name, value in read.attributes if "url(" in value]


def test_a_chart_of_each_shape_is_drawn_with_its_numbers() -> None:
    row = ReproducedRow("BERT", "total", 1, 32.34, 32.3, interval=(31.0, 33.0))
    (points,) = compared("Points", [row, replace(row, what="N-1", published=None)], y_title="%")
    drawn = (
        (points, ["BERT\ntotal: 32.34", "BERT, in the paper\ntotal: 32.3", "BERT\nN-1: 32.34"]),
        (curve("Curves", ours={1.0: 0.5, 10.0: 1.0}), ["ours\n1.0: 0.5", "ours\n10.0: 1"]),
        (
            boxes("Boxes", [("BERT", "prefix", [1.0, 2.0, 6.0])], "", "rank", log=True),
            ["prefix\n3 values\nmean 3, median 2"],
        ),
    )
    for figure, texts in drawn:
        table = ReproducedTable("table2", made=TableContents((), (figure,)))
        read = Tags(as_html(Reproduction("lama", "Petroni", (), (table,)), "reproduce"))
        assert {*texts} <= {*read.words}, figure.title


def test_points_are_ours_and_the_papers_even_where_both_are_the_same() -> None:
    rows = [
        ReproducedRow("BERT", "total", 1, 32.3, 32.3),
        ReproducedRow("ELMo", "total", 0, None, 7.1, "It can't be had."),
    ]
    (figure,) = compared("P@1", rows, y_title="P@1, %")
    found = figure.frame[["series", "value", "paper"]].to_numpy().tolist()
    assert found == [["BERT", 32.3, False], ["BERT", 32.3, True], ["ELMo", 7.1, True]]
    assert not list(compared("P@1", [], y_title="P@1, %"))
