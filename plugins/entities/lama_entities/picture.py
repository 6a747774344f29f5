"""A picture of a crawl: things as nodes in columns by depth, beliefs as lines between them.

The seeds are at the left, and each thing is in the column of the depth at which it was first an
answer. A column is ordered as its things were found, so that a thing is near the one from which it
was found, and lines to it don't cross. The belief by which it was found is a strong line, and its
relation is next to the name; further beliefs are thin lines. Of many things, those of the smallest
depth are drawn, then those of the highest probability; the others are counted.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise

from lama_core.grouping import grouped
from lama_core.rounding import counted, percent
from lama_core.runs.info import Run
from lama_core.texts import word_key
from lama_entities.triples import believed_rows

MOST = 100  # things
ROW, LETTER = 19, 12.0  # height of a row and of letters, in pixels
BEND = 30  # width of a line's bend before a column, in pixels
LEAST_RELATION = 9  # letters of a cut relation
LEAST_COLUMN = 118  # pixels; columns that don't fit are only counted
WIDTHS = (1236, 760, 358)  # of pictures for pages of different widths, in pixels
FONT = "Source Sans, Liberation Sans, Arial, Helvetica, sans-serif"
# What a line says -> its colour on light and on dark pages, and its dashes.
TRUTHS = {
    "right": (("#1f6aa5", "#62b5e8"), ""),
    "wrong": (("#b4431b", "#f0885f"), "6 3"),
    "unknown": (("#6b7480", "#a9b4c1"), "1.5 3"),
}
ONLY = (
    ("#2c86c7", "#62b5e8"),
    ("#a85d00", "#e0913a"),
)  # what only the first or the second believes
INK, PAGE = ("#1b2430", "#ffffff"), ("#ffffff", "#10151b")
MUTED = ("#535e6b", "#a9b4c1")
_INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML


@dataclass(frozen=True, slots=True)
class Line:
    """A belief in the picture. by: which of the crawls believe it, by number."""

    subject: str
    object: str
    relation: str
    truth: str
    probability: float
    by: frozenset[int]


@dataclass(frozen=True, slots=True)
class Node:
    """A thing in the picture.

    first: The belief from which it was found; None for a seed. by: which of the crawls have it.
    """

    name: str
    kind: str
    depth: int
    first: Line | None
    by: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Graph:
    """What is drawn. n_things, n_beliefs, n_same (answers that repeat the thing): of all crawls."""

    models: tuple[str, ...]
    columns: tuple[tuple[Node, ...], ...]
    lines: tuple[Line, ...]
    n_things: int
    n_beliefs: int
    n_same: int = 0

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
        more += f"; {same} not drawn" * bool(self.n_same)
        return f"What {who}, from {seeds}: {said}{more}"


def make_graph(
    crawls: Sequence[Run],
    labels: Mapping[str, str],
    models: Sequence[str] = (),
    *,
    most: int = MOST,
    columns: int = 9,
) -> Graph:
    """Return the graph of one crawl, or of two to compare.

    Args:
        crawls: The crawls.
        labels: Relation -> its name for readers.
        models: The crawls' names for readers.
        most: The most things.
        columns: The most columns, of which the first has the seeds.
    """
    found: dict[tuple[str, str, str], Line] = {}
    nodes: dict[str, Node] = {}
    by_thing: dict[str, set[int]] = {}
    for number, crawl in enumerate(crawls):
        for row in believed_rows(crawl).to_dict("records"):
            subject, obj, relation = (str(row[name]) for name in ("subject", "object", "relation"))
            key = word_key(subject), relation, word_key(obj)
            by = found[key].by if key in found else frozenset[int]()
            line = found[key] = Line(
                subject,
                obj,
                labels.get(relation, relation),
                str(row["truth"]),
                float(row["probability"]),
                by | {number},
            )
            depth = int(row["depth"])
            for name in (subject, obj):
                by_thing.setdefault(word_key(name), set()).add(number)
            if word_key(subject) not in nodes:  # a seed
                nodes[word_key(subject)] = Node(subject, str(row["subject_type"]), 0, None)
            known = nodes.get(word_key(obj))
            if known is None or known.depth > depth:
                nodes[word_key(obj)] = Node(obj, str(row["object_type"]), depth, line)
    nodes = {key: replace(one, by=frozenset(by_thing[key])) for key, one in nodes.items()}
    chosen = sorted(
        nodes.values(), key=lambda one: (one.depth, -one.first.probability if one.first else 0)
    )
    kept = {word_key(one.name) for one in chosen[:most] if one.depth < columns}
    by_depth = grouped((one.depth, one) for key, one in nodes.items() if key in kept)
    drawn = [by_depth.get(depth, []) for depth in range(max(by_depth) + 1)]
    for before, here in pairwise(drawn):
        place = {word_key(one.name): at for at, one in enumerate(before)}
        here.sort(key=lambda one: place.get(word_key(one.first.subject), 0) if one.first else 0)
    lines = [
        line
        for line in found.values()
        if word_key(line.subject) in kept
        and word_key(line.object) in kept - {word_key(line.subject)}
    ]
    return Graph(
        tuple(models) or tuple(crawl.info.model for crawl in crawls),
        tuple(map(tuple, drawn)),
        tuple(lines),
        len(nodes),
        len(found),
        sum(subject == obj for subject, _, obj in found),
    )


def svg(graph: Graph, address: Callable[[Node], str] | None, *, width: int, dark: bool) -> str:
    """Return the picture as SVG.

    Args:
        graph: The graph.
        address: Returns the URL that a click on a thing opens; None for a file.
        width: In pixels.
        dark: Whether it is on a dark page.
    """
    step = width / len(graph.columns)
    legend, top = _drawn_legend(graph, width, dark=dark)
    height = max(160.0, ROW * max(map(len, graph.columns))) + top
    at: dict[str, tuple[float, float]] = {}
    ends: dict[str, float] = {}  # where the name ends
    firsts = {node.first for nodes in graph.columns for node in nodes}
    texts, lines = [], []
    for depth, nodes in enumerate(graph.columns):
        for number, node in enumerate(nodes):
            x, y = depth * step + 8, top + (number + 0.5) * (height - top) / len(nodes)
            key, room = word_key(node.name), step - BEND - 14
            name = cut(node.name, room)
            relation = cut(node.first.relation, room - wide(name) - 8) if node.first else ""
            relation = relation if len(relation) >= LEAST_RELATION or "…" not in relation else ""
            at[key] = x, y
            ends[key] = x + 14 + wide(name) + (wide(relation, 10) + 6 if relation else 0)
            texts.append(_name(graph, node, (x, y), (name, relation), address, dark=dark))
    for line in graph.lines:
        (x, y), (to_x, to_y) = at[word_key(line.subject)], at[word_key(line.object)]
        if to_x > x:
            path = f"M{ends[word_key(line.subject)] + 2:.0f},{y:.1f}"
            first, last = round((x - 8) / step) + 1, round((to_x - 8) / step)
            for column in range(first, last + 1):  # between the names of the columns on its way
                n, next_y = len(graph.columns[column]), to_y
                if column < last:
                    next_y = top + round((to_y - top) / (height - top) * n) * (height - top) / n
                right = column * step + 2
                middle = right - BEND / 2
                path += f"L{right - BEND:.0f},{y:.1f}C{middle:.0f},{y:.1f} "
                path += f"{middle:.0f},{next_y:.1f} {right:.0f},{next_y:.1f}"
                y = next_y
        else:  # to a thing that was known already, perhaps the same
            left, to_left = (max(1.0, at_x - max(26.0, 0.35 * step)) for at_x in (x, to_x))
            path = f"M{x - 4:.0f},{y:.1f}C{left:.0f},{y:.1f} "
            path += f"{to_left:.0f},{to_y:.1f} {to_x - 5:.0f},{to_y:.1f}"
        colour, dash = _ink(graph, line, line.by, dark=dark)
        strong = (1.5, 0.9) if line in firsts else (1.0, 0.3)
        lines.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{strong[0]}" '
            f'stroke-opacity="{strong[1]}" stroke-dasharray="{dash}">'
            f"<title>{_said(graph, line)}</title></path>"
        )
    title = clean(graph.title)
    back = f'<rect width="100%" height="100%" fill="{PAGE[dark]}"/>' if address is None else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
        f'width="{width}" height="{height:.0f}" font-family="{FONT}" font-size="{LETTER}" '
        f'fill="{INK[dark]}" role="group" aria-label="{title}"><title>{title}</title>{back}'
        f"{legend}{''.join(lines)}{''.join(texts)}</svg>"
    )


def _name(
    graph: Graph,
    node: Node,
    place: tuple[float, float],
    words: tuple[str, str],
    address: Callable[[Node], str] | None,
    *,
    dark: bool,
) -> str:
    """Return a thing's dot, and its name and relation (`words`), which open its card."""
    (x, y), (name, relation) = place, words
    colour = INK[dark]
    if node.first or len(graph.models) > 1:
        colour = _ink(graph, node.first, node.by, dark=dark)[0]
    of = f'<tspan font-size="10" fill="{MUTED[dark]}" dx="6">{clean(relation)}</tspan>'
    said = _said(graph, node.first) if node.first else f"{clean(node.name)}: start of the crawl"
    mark = (
        f"<title>{said}</title>"
        f'<rect x="{x - 6:.0f}" y="{y - ROW / 2:.1f}" width="{wide(name) + 18:.0f}" '
        f'height="{ROW}" fill="transparent"/>'  # to click
        f'<circle cx="{x:.0f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
        f'<text x="{x + 9:.0f}" y="{y + 4:.1f}" stroke="{PAGE[dark]}" stroke-width="3" '
        f'paint-order="stroke">{clean(name)}{of * bool(relation)}</text>'
    )
    if address is None:
        return f"<g>{mark}</g>"
    there = f'href="{clean(address(node))}" target="_self" aria-label="{clean(node.name)}"'
    return f"<a {there}>{mark}</a>"


def _ink(graph: Graph, line: Line | None, by: frozenset[int], *, dark: bool) -> tuple[str, str]:
    """Return the colour of a belief or a thing of some crawls, and dashes of a belief's truth."""
    (light, bright), dash = TRUTHS[line.truth if line else "unknown"]
    if len(graph.models) > 1 and len(by) == 1:
        return ONLY[min(by)][dark], dash
    if len(graph.models) > 1:
        return MUTED[dark], dash
    return (bright if dark else light), dash


def _drawn_legend(graph: Graph, width: int, *, dark: bool) -> tuple[str, float]:
    """Return the legend, and its height."""
    keys = [(name, colours[dark], dash) for name, (colours, dash) in TRUTHS.items()]
    if len(graph.models) > 1:
        only = [(f"only {one}", ONLY[at][dark], "") for at, one in enumerate(graph.models)]
        truths = [(name, INK[dark], dash) for name, _, dash in keys]
        keys = [*only, ("both", MUTED[dark], ""), *truths]
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
    """Return a belief as a line of text, escaped."""
    who = ""
    if len(graph.models) > 1:
        models = [graph.models[number] for number in sorted(line.by)]
        who = f", {'both' if len(models) > 1 else f'only {models[0]}'}"
    return clean(
        f"{line.subject} – {line.relation}: {line.object} ({percent(line.probability)} %, "
        f"{line.truth}{who})"
    )


def clean(text: str) -> str:
    """Return a text for SVG: escaped, without characters that XML forbids."""
    return escape(_INVALID.sub("\N{REPLACEMENT CHARACTER}", text))


def wide(text: str, size: float = LETTER) -> float:
    """Return about how wide a text is, in pixels."""
    full = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return size * (0.52 * (len(text) - full) + full)


def cut(text: str, room: float) -> str:
    """Return a text that fits, cut with an ellipsis; empty without room for three letters."""
    text = " ".join(text.split())
    if wide(text) <= room:
        return text
    kept = text
    while kept and wide(kept + "…") > room:
        kept = kept[:-1]
    return f"{kept.rstrip()}…" if len(kept) > 2 else ""
