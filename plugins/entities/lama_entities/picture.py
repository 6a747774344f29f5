"""A picture of a crawl: things as nodes in columns by depth, beliefs as lines between them.

The seeds are at the left, and each thing is in the column of the depth at which it was first an
answer. A column is ordered as its things were found, so that a thing is near the one from which it
was found, and lines to it don't cross. The belief by which it was found is a strong line, and its
relation is next to the name, or below it where the width is too small; further beliefs are thin
lines, with an arrow unless they go to the right. Of many things, those of the smallest depth are
drawn, then those of the highest probability; the others are counted.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, pairwise

from lama_core.grouping import grouped
from lama_core.rounding import counted, percent
from lama_core.runs.info import Run
from lama_entities.triples import asked_queries, believed_rows
from lama_entities.types import name_key, relation_types

MOST = 100  # things
LETTER, SMALL = 12.0, 10.0  # height of the letters of names and of relations, in pixels
ROW, TWO_LINES = 19, 30  # height of a row; if the relation is below the name
GAP, MOST_GAP = 36.0, 400.0  # between columns
LEAST_COLUMN = 160  # pixels; columns that don't fit are only counted
WIDTHS = (1236, 980, 730, 540, 358)  # of pictures for pages of different widths, in pixels
FONT = "Source Sans, Liberation Sans, Arial, Helvetica, sans-serif"
# What a line says -> its colour on light and on dark pages, and its dashes.
TRUTHS = {
    "right": (("#1f6aa5", "#62b5e8"), ""),
    "wrong": (("#b4431b", "#f0885f"), "6 3"),
    "unknown": (("#6b7480", "#a9b4c1"), "1.5 3"),
}
# What only the first or the second believes; no colours of TRUTHS.
ONLY = (("#7a4fb0", "#b795e6"), ("#157a63", "#4fc3a1"))
INK, PAGE = ("#1b2430", "#ffffff"), ("#ffffff", "#10151b")
MUTED = ("#535e6b", "#a9b4c1")
UNASKED = ("#8c98a5", "#74818e")  # beliefs about what the other crawl didn't ask
_INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML


@dataclass(frozen=True, slots=True)
class Line:
    """A belief in the picture.

    subject, object: names of nodes. by: number of each crawl that believes it -> the probability,
    and right, wrong or unknown. asked: numbers of the crawls that asked the query.
    """

    subject: str
    object: str
    relation: str
    by: Mapping[int, tuple[float, str]]
    asked: frozenset[int]

    @property
    def truth(self) -> str:
        """Whether it is right, wrong or unknown."""
        return next(truth for _, truth in self.by.values())


@dataclass(frozen=True, slots=True)
class Node:
    """A thing in the picture.

    kind: its type. first: The belief from which it was found; None for a seed.
    """

    name: str
    kind: str
    depth: int
    first: Line | None


@dataclass(frozen=True)
class Graph:
    """What is drawn. n_things, n_same (answers that repeat the thing, some wrong): of all crawls.

    note: a line below the legend; or empty.
    """

    models: tuple[str, ...]
    columns: tuple[tuple[Node, ...], ...]
    lines: tuple[Line, ...]
    n_things: int
    n_same: int = 0
    n_same_wrong: int = 0
    note: str = ""

    @property
    def n_drawn(self) -> int:
        """The number of things that are drawn."""
        return sum(map(len, self.columns))

    @property
    def title(self) -> str:
        """What the picture shows, in a sentence."""
        seeds = ", ".join(node.name for node in self.columns[0][:3])
        who = " and ".join(self.models) + (" believes" if len(self.models) == 1 else " believe")
        said = f"{counted(self.n_drawn, 'thing')} and {counted(len(self.lines), 'belief')}"
        left = self.n_things - self.n_drawn
        more = f"; {counted(left, 'further thing')} not drawn" * bool(left)
        same = f"{counted(self.n_same, 'answer')} that repeat{'s' * (self.n_same == 1)} the thing"
        more += f"; {same} ({self.n_same_wrong:,} wrong) not drawn" * bool(self.n_same)
        return f"What {who}, from {seeds}: {said}{more}"


def make_graph(
    crawls: Sequence[Run], models: Sequence[str], *, most: int = MOST, columns: int = 9
) -> Graph:
    """Return the graph of one crawl, or of two to compare.

    Args:
        crawls: The crawls.
        models: The crawls' names for readers.
        most: The most nodes.
        columns: The most columns, of which the first has the seeds.
    """
    rows = [
        (number, row)
        for number, crawl in enumerate(crawls)
        for row in believed_rows(crawl).astype({"subject": str, "object": str}).to_dict("records")
    ]
    names: dict[str, str] = {}  # key of a thing -> its first spelling
    places: dict[str, tuple[str, int, tuple[str, str, str] | None]] = {}
    found: dict[tuple[str, str, str], dict[int, tuple[float, str]]] = {}
    queries = [asked_queries(crawl) for crawl in crawls]
    asked_by: dict[tuple[str, str, str], frozenset[int]] = {}

    def node(thing: str) -> str:
        return names.setdefault(name_key(thing), thing)

    rows.sort(key=lambda one: int(one[1]["depth"]))
    for _, row in rows:
        if int(row["depth"]) == 1:  # a seed, also where it is an answer, too
            places.setdefault(node(row["subject"]), (row["subject_type"], 0, None))
    for number, row in rows:
        subject, obj = node(row["subject"]), node(row["object"])
        key = subject, relation_types()[row["relation"]].label, obj
        found.setdefault(key, {})[number] = float(row["probability"]), str(row["truth"])
        query = name_key(row["subject"]), row["relation"]
        asked_by[key] = frozenset(at for at, one in enumerate(queries) if query in one)
        places.setdefault(obj, (row["object_type"], int(row["depth"]), key))
    lines = {
        key: Line(key[0], key[2], key[1], beliefs, asked_by[key]) for key, beliefs in found.items()
    }
    nodes = [
        Node(name, kind, depth, lines[key] if key else None)
        for name, (kind, depth, key) in places.items()
    ]

    def order(one: Node) -> tuple[int, float]:
        return one.depth, -max(value for value, _ in one.first.by.values()) if one.first else 0.0

    kept = {one.name for one in sorted(nodes, key=order)[:most] if one.depth < columns}
    by_depth = grouped((one.depth, one) for one in nodes if one.name in kept)
    drawn = [by_depth.get(depth, []) for depth in range(max(by_depth) + 1)]
    for before, here in pairwise(drawn):
        place = {one.name: at for at, one in enumerate(before)}
        here.sort(key=lambda one: place.get(one.first.subject, 0) if one.first else 0)
    return Graph(
        tuple(models),
        tuple(map(tuple, drawn)),
        tuple(
            one
            for one in lines.values()
            if one.subject in kept and one.object in kept - {one.subject}
        ),
        len(names),
        sum(one.subject == one.object for one in lines.values()),
        sum(one.subject == one.object and one.truth == "wrong" for one in lines.values()),
    )


def _found_by(node: Node) -> str:
    """Return the relation by which a thing was found, as it is shown."""
    return f"← {node.first.relation}" if node.first else ""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node is. end: where its text ends, in pixels. name, relation: as they fit."""

    column: int
    x: float
    y: float
    end: float
    name: str
    relation: str


@dataclass(frozen=True)
class _Layout:
    """Where everything is. lefts, rights: of the text of each column. below: of relations."""

    at: Mapping[str, _Place]
    lefts: Sequence[float]
    rights: Sequence[float]
    sizes: Sequence[int]
    top: float
    height: float
    below: bool

    @classmethod
    def of(cls, graph: Graph, width: int, top: float) -> "_Layout":
        """Return the layout of a width; relations are below the names where they don't fit."""

        def need(node: Node, below: bool) -> float:
            name, relation = wide(node.name), wide(_found_by(node), SMALL)
            return 16 + (max(name, relation) if below else name + relation + 8)

        def needs_of(below: bool) -> list[float]:
            return [max((need(one, below) for one in nodes), default=0) for nodes in graph.columns]

        n_gaps = len(graph.columns) - 1
        room = width - 8 - GAP * n_gaps
        below = sum(needs_of(False)) > room
        needs = needs_of(below)
        most = max(needs)
        while sum(min(one, most) for one in needs) > room:
            most -= 1
        needs = [min(one, most) for one in needs]
        gap = min(MOST_GAP, (width - 8 - sum(needs)) / n_gaps) if n_gaps else 0
        lefts = [8 + sum(needs[:at]) + gap * at for at in range(len(needs))]
        rights = [left + one for left, one in zip(lefts, needs, strict=True)]
        sizes = [*map(len, graph.columns)]
        height = max(160.0, (TWO_LINES if below else ROW) * max(sizes))
        at = {}
        for column, nodes in enumerate(graph.columns):
            for number, node in enumerate(nodes):
                own, named = needs[column] - 15, _found_by(node)
                name = cut(node.name, own)
                relation = cut(named, own if below else own - wide(name) - 6, SMALL)
                ends = wide(name), wide(relation, SMALL) + (0 if below else wide(name) + 6)
                x, y = lefts[column], top + (number + 0.5) * height / len(nodes)
                at[node.name] = _Place(column, x, y, x + 11 + max(ends), name, relation)
        return cls(at, lefts, rights, sizes, top, height, below)

    def path(self, line: Line) -> tuple[str, str]:
        """Return the path of a line, and its arrow unless it goes to the right."""
        start, end = self.at[line.subject], self.at[line.object]
        if start.column == end.column:
            x, bend = start.x - 6, min(GAP - 8, 14 + 0.1 * abs(end.y - start.y))
            path = f"M{x:.0f},{start.y:.1f}C{x - bend:.0f},{start.y:.1f} "
            path += f"{x - bend:.0f},{end.y:.1f} {x:.0f},{end.y:.1f}"
            return path, f"M{x:.0f},{end.y:.1f}l-5,-3v6z"
        is_back = end.column < start.column
        left, right = (end, start) if is_back else (start, end)
        y = left.y + 3 * is_back  # apart from a line to the right
        begin = f"M{left.end + 3:.0f},{y:.1f}"
        path = begin
        for column in range(left.column + 1, right.column + 1):
            size, next_y = self.sizes[column], right.y
            if column < right.column:  # between the names of the columns on its way
                row = round((next_y - self.top) / self.height * size)
                next_y = self.top + row * self.height / size
            edge, x = self.rights[column - 1], self.lefts[column] - 6
            path += f"L{edge:.0f},{y:.1f}C{(edge + x) / 2:.0f},{y:.1f} "
            path += f"{(edge + x) / 2:.0f},{next_y:.1f} {x:.0f},{next_y:.1f}"
            y = next_y
        return path, f"{begin}l5,-3v6z" if is_back else ""


def svg(graph: Graph, address: Callable[[Node], str] | None, *, width: int, dark: bool) -> str:
    """Return the picture as SVG.

    Args:
        graph: The graph.
        address: Returns the URL that a click on a thing opens; None for a file.
        width: In pixels.
        dark: Whether it is on a dark page.
    """
    legend, top = _drawn_legend(graph, width, dark=dark)
    note = ""
    if graph.note:
        note = f'<text x="8" y="{top + 4:.0f}" fill="{MUTED[dark]}">{clean(graph.note)}</text>'
        top += ROW
    layout = _Layout.of(graph, width, top)
    height = top + layout.height
    firsts = {id(node.first) for nodes in graph.columns for node in nodes}
    told = grouped(((one.subject, one.object), _said(graph, one)) for one in graph.lines)
    numbers = {node.name: at for at, node in enumerate(chain(*graph.columns))}
    lines = []
    for line in sorted(graph.lines, key=lambda one: id(one) in firsts):  # the strong ones on top
        colour, dash = _ink(graph, line, dark=dark)
        path, arrow = layout.path(line)
        thick, opacity = (1.6, 1) if id(line) in firsts else (1, 0.5)
        said = "\n".join(told[line.subject, line.object])  # all that are at this place
        head = f'<path d="{arrow}" fill="{colour}" stroke="none"/>' * bool(arrow)
        lines.append(
            f'<g data-ends="{numbers[line.subject]} {numbers[line.object]}" fill="none" '
            f'stroke="{colour}" stroke-width="{thick}" opacity="{opacity}">'
            f'<title>{said}</title><path d="{path}" stroke-dasharray="{dash}"/>'
            f'{head}<path d="{path}" stroke-width="7" stroke-opacity="0"/></g>'  # to point at
        )
    texts = [
        _name(graph, node, numbers[node.name], layout, address, dark=dark)
        for node in chain(*graph.columns)
    ]
    title = clean(graph.title)
    back = f'<rect width="100%" height="100%" fill="{PAGE[dark]}"/>' if address is None else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
        f'width="{width}" height="{height:.0f}" font-family="{FONT}" font-size="{LETTER}" '
        f'fill="{INK[dark]}" role="group" aria-label="{title}"><title>{title}</title>{back}'
        f"{legend}{note}{''.join(lines)}{''.join(texts)}</svg>"
    )


def _name(
    graph: Graph,
    node: Node,
    number: int,
    layout: _Layout,
    address: Callable[[Node], str] | None,
    *,
    dark: bool,
) -> str:
    """Return a thing's dot, and its name and relation, which open its card."""
    place = layout.at[node.name]
    x, y = place.x, place.y
    there = f'x="{x + 9:.0f}" dy="12"' if layout.below else 'dx="6"'
    of = f'<tspan font-size="{SMALL}" fill="{MUTED[dark]}" {there}>{clean(place.relation)}</tspan>'
    said = _said(graph, node.first) if node.first else f"{clean(node.name)}: start of the crawl"
    tall, lift = (TWO_LINES, 6) if layout.below else (ROW, 0)
    mark = (
        f"<title>{said}</title>"
        f'<rect x="{x - 6:.0f}" y="{y - tall / 2:.1f}" width="{place.end - x + 6:.0f}" '
        f'height="{tall}" fill="transparent"/>'  # to click
        f'<circle cx="{x:.0f}" cy="{y:.1f}" r="4"/>'
        f'<text x="{x + 9:.0f}" y="{y + 4 - lift:.1f}" stroke="{PAGE[dark]}" stroke-width="3" '
        f'paint-order="stroke">{clean(place.name)}{of * bool(place.relation)}</text>'
    )
    if address is None:
        return f"<g>{mark}</g>"
    there = f'href="{clean(address(node))}" target="_self" aria-label="{clean(node.name)}"'
    return f'<a data-node="{number}" {there}>{mark}</a>'


def _ink(graph: Graph, line: Line, *, dark: bool) -> tuple[str, str]:
    """Return the colour of a belief, and the dashes of its truth."""
    colours, dash = TRUTHS[line.truth]
    if len(graph.models) > 1:
        colours = ONLY[min(line.by)] if len(line.by) == 1 else INK
        if len(line.asked) == 1:
            colours = UNASKED
    return colours[dark], dash


def _drawn_legend(graph: Graph, width: int, *, dark: bool) -> tuple[str, float]:
    """Return the legend, and its height."""
    keys = [(name, colours[dark], dash) for name, (colours, dash) in TRUTHS.items()]
    if len(graph.models) > 1:
        only = [(f"only {one}", ONLY[at][dark], "") for at, one in enumerate(graph.models)]
        truths = [(name, MUTED[dark], dash) for name, _, dash in keys]
        shared = [("both", INK[dark], ""), ("not asked of both", UNASKED[dark], "")]
        keys = [*only, *shared, *truths]
    drawn, x, y = [], 8.0, 0.7 * ROW
    for words, colour, dash in keys:
        if x > 8 and x + 32 + wide(words) > width:
            x, y = 8.0, y + ROW
        drawn.append(
            f'<line x1="{x:.0f}" y1="{y:.0f}" x2="{x + 26:.0f}" y2="{y:.0f}" stroke="{colour}" '
            f'stroke-width="2" stroke-dasharray="{dash}"/>'
            f'<text x="{x + 32:.0f}" y="{y + 4:.0f}">{clean(words)}</text>'
        )
        x += 52 + wide(words)
    return "".join(drawn), y + ROW


def _said(graph: Graph, line: Line) -> str:
    """Return a belief as a line of text, escaped, with the probability of each crawl."""
    each = [
        f"{graph.models[number]}: " * (len(graph.models) > 1) + f"{percent(value)} %, {truth}"
        for number, (value, truth) in line.by.items()
    ]
    lacking = [one for at, one in enumerate(graph.models) if at not in line.asked]
    only = "only " * (len(each) < len(graph.models) and not lacking)
    each += [f"{one}: not asked" for one in lacking]
    return clean(f"{line.subject} – {line.relation}: {line.object} ({only}{'; '.join(each)})")


def clean(text: str) -> str:
    """Return a text for SVG: escaped, without characters that XML forbids."""
    return escape(_INVALID.sub("\N{REPLACEMENT CHARACTER}", text))


def wide(text: str, size: float = LETTER) -> float:
    """Return about how wide a text is, in pixels."""
    full = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return size * (0.52 * (len(text) - full) + full)


def cut(text: str, room: float, size: float = LETTER) -> str:
    """Return a text that fits, cut with an ellipsis; empty without room for three letters."""
    text = " ".join(text.split())
    if wide(text, size) <= room:
        return text
    kept = text
    while kept and wide(kept + "…", size) > room:
        kept = kept[:-1]
    return f"{kept.rstrip()}…" if len(kept) > 2 else ""
