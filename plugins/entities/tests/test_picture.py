"""The picture of a crawl: what is drawn, what is counted, and names as text."""

import itertools
from pathlib import Path
from xml.etree import ElementTree

import pytest
from small_world import Believer, crawl_world, write_world

from lama_core.runs.info import Run
from lama_entities.picture import WIDTHS, make_graph, svg, wide

pytestmark = pytest.mark.usefixtures("home")
SVG = "{http://www.w3.org/2000/svg}"
NAMES = ("believer",)


@pytest.fixture
def crawl(tmp_path: Path) -> Run:
    return crawl_world(write_world(tmp_path), Believer(), depth=4)


def test_columns_are_depths_and_lines_are_beliefs(crawl: Run) -> None:
    graph = make_graph([crawl], NAMES)
    names = [{node.name for node in column} for column in graph.columns]
    assert names == [
        {"Norway"},
        {"Oslo", "Sweden", "France"},
        {"Paris", "Lyon", "Italy"},
        {"Rome"},
    ]
    assert len(graph.lines) == 17
    assert graph.title == "What believer believes, from Norway: 8 things and 17 beliefs"


def test_what_has_no_room_is_counted_and_parents_come_first(crawl: Run) -> None:
    few = make_graph([crawl], NAMES, most=5)
    assert [len(column) for column in few.columns] == [1, 3, 1]
    assert few.columns[2][0].name == "Paris"  # 0.9, Italy has 0.8
    assert few.title.endswith("; 3 further things not drawn")
    narrow = make_graph([crawl], NAMES, columns=2)
    assert [len(column) for column in narrow.columns] == [1, 3]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True])
def test_names_are_inside_and_below_each_other(crawl: Run, width: int, dark: bool) -> None:
    graph = make_graph([crawl], NAMES, columns=width // 118)
    root = ElementTree.fromstring(svg(graph, lambda _: "/card", width=width, dark=dark))
    places = []
    for link in root.iter(f"{SVG}a"):
        (text,) = link.iter(f"{SVG}text")
        x, y = float(text.attrib["x"]), float(text.attrib["y"])
        (label,) = text.iter(f"{SVG}tspan") if len(text) else [None]
        name, relation = (
            wide(text.text or ""),
            wide(label.text or "", 10) if label is not None else 0,
        )
        is_below = label is not None and "dy" in label.attrib
        assert x + (max(name, relation) if is_below else name + relation + 6) <= width + 1
        places.append((round(x), y))
    assert len(places) == len(set(places)) == graph.n_drawn
    labels = [one for one in root.iter(f"{SVG}tspan") if one.text]
    assert len(labels) == graph.n_drawn - 1  # of all but the seed, at every width
    for x in {x for x, _ in places}:
        column = sorted(y for at, y in places if at == x)
        assert all(b - a >= 18 for a, b in itertools.pairwise(column))


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", 'a "b" & c', "\x00\x1b[31m", "東京 " * 20, "]]>", "&lt;"]
)
def test_any_name_is_text_in_valid_xml(tmp_path: Path, name: str) -> None:
    data = write_world(tmp_path, {"P36": [("Norway", "Oslo")]})
    model = Believer(changed={("Norway", "P36"): {name: 0.9}})
    crawl = crawl_world(data, model, depth=1)
    graph = make_graph([crawl], NAMES)
    for address in (None, lambda node: f"/?entity={node.name}"):
        root = ElementTree.fromstring(svg(graph, address, width=WIDTHS[0], dark=False))
        assert not list(root.iter(f"{SVG}script"))
        said = "".join(root.itertext())
        visible = name.replace("\x00", "\ufffd").replace("\x1b", "\ufffd")
        assert visible in said  # whole in the title of its line


def test_two_crawls_show_what_only_one_believes(tmp_path: Path) -> None:
    data = write_world(tmp_path)
    first = crawl_world(data, Believer(), depth=2)
    other = Believer("other", changed={("Norway", "P36"): {"Rome": 0.9}})
    second = crawl_world(data, other, depth=2)
    graph = make_graph([first, second], ["believer", "other"])
    by = {(one.subject, one.relation, one.object): {*one.by} for one in graph.lines}
    assert by["Norway", "capital", "Oslo"] == {0}
    assert by["Norway", "capital", "Rome"] == {1}
    assert by["France", "capital", "Paris"] == {0, 1}
    assert all(node.first in graph.lines for column in graph.columns[1:] for node in column)
    drawn = svg(graph, None, width=WIDTHS[0], dark=False)
    for words in ("only believer", "only other", "both"):
        assert f">{words}</text>" in drawn
    assert "Norway – capital: Rome (only other: 90.0 %, wrong)" in drawn


def test_what_both_believe_has_both_probabilities_and_is_a_strong_line(tmp_path: Path) -> None:
    other = Believer("other", changed={("Norway", "P36"): {"Oslo": 0.2}})
    crawls = [crawl_world(write_world(tmp_path), one, depth=1) for one in (Believer(), other)]
    root = ElementTree.fromstring(
        svg(make_graph(crawls, ["A", "B"]), None, width=WIDTHS[0], dark=True)
    )
    (line,) = (
        one
        for one in root.iter(f"{SVG}g")
        if one.findtext(f"{SVG}title")
        == "Norway – capital: Oslo (A: 90.0 %, right; B: 20.0 %, right)"
        and "opacity" in one.attrib
    )
    assert line.attrib["opacity"] == "1"


def test_two_beliefs_on_one_line_are_both_read(tmp_path: Path) -> None:
    model = Believer(changed={("Norway", "P47"): {"Oslo": 0.9}})
    graph = make_graph([crawl_world(write_world(tmp_path), model, depth=1)], NAMES)
    drawn = svg(graph, None, width=WIDTHS[0], dark=False)
    both = "capital: Oslo (90.0 %, right)\nNorway – shares border with: Oslo (90.0 %, wrong)"
    assert both in drawn


def test_answers_that_repeat_the_thing_are_counted_not_drawn(tmp_path: Path) -> None:
    model = Believer(changed={("Norway", "P36"): {"Norway": 0.6, "Oslo": 0.3}})
    graph = make_graph([crawl_world(write_world(tmp_path), model, depth=1)], NAMES)
    assert all(line.subject != line.object for line in graph.lines)
    assert graph.title.endswith("3 beliefs; 1 answer that repeats the thing (1 wrong) not drawn")


def test_a_start_that_is_an_answer_too_stays_a_start(tmp_path: Path) -> None:
    seeds = ("Norway", "Sweden", "France")
    run = crawl_world(write_world(tmp_path), Believer(), depth=2, seeds=seeds)
    graph = make_graph([run], NAMES)
    assert {node.name for node in graph.columns[0]} == {*seeds}
    assert "from Norway, Sweden, France:" in graph.title
    assert ("Norway", "Sweden") in {(line.subject, line.object) for line in graph.lines}
