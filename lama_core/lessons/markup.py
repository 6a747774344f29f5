"""The markup of lesson texts: paragraphs and lists, with **bold**, *italic* and `code`.

All other text is shown unchanged: HTML, links and images are not interpreted.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Literal, cast

TextStyle = Literal["plain", "bold", "italic", "code"]
_SPAN = re.compile(r"\*\*(?P<bold>[^*\n]+)\*\*|\*(?P<italic>[^*\s][^*\n]*)\*|`(?P<code>[^`\n]+)`")
_BULLET = "- "


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, which has one item, or a list of items."""

    is_list: bool
    items: tuple[str, ...]


def blocks(text: str) -> Iterator[Block]:
    """Yield a text's paragraphs and lists.

    An empty line ends a paragraph or list; a line with `- ` begins an item of a list.
    """
    for part in re.split(r"\n\s*\n", text.strip()):
        paragraph: list[str] = []
        items: list[str] = []
        for line in map(str.strip, part.splitlines()):
            if line.startswith(_BULLET):
                items.append(line.removeprefix(_BULLET))
            elif items:
                items[-1] += f" {line}"
            else:
                paragraph.append(line)
        if paragraph and any(paragraph):
            yield Block(False, (" ".join(paragraph),))
        if items:
            yield Block(True, tuple(items))


def spans(text: str) -> Iterator[tuple[TextStyle, str]]:
    """Yield the spans of a line with their styles."""
    end = 0
    for match in _SPAN.finditer(text):
        if match.start() > end:
            yield "plain", text[end : match.start()]
        style = cast(TextStyle, match.lastgroup)
        yield style, match[style]
        end = match.end()
    if end < len(text):
        yield "plain", text[end:]


def as_markdown(text: str, plain: Callable[[str], str]) -> str:
    """Return a text as Markdown; plain: escapes Markdown in a span."""
    marks = {"plain": "", "bold": "**", "italic": "*", "code": "`"}

    def line(item: str) -> str:
        return "".join(
            f"{marks[style]}{piece if style == 'code' else plain(piece)}{marks[style]}"
            for style, piece in spans(item)
        )

    return "\n\n".join(
        "\n".join(f"- {line(item)}" for item in block.items)
        if block.is_list
        else line(block.items[0])
        for block in blocks(text)
    )


def as_html(text: str) -> str:
    """Return a text as HTML, escaped."""
    tags = {"plain": "", "bold": "b", "italic": "i", "code": "code"}

    def line(item: str) -> str:
        return "".join(
            f"<{tags[style]}>{escape(piece)}</{tags[style]}>" if tags[style] else escape(piece)
            for style, piece in spans(item)
        )

    return "".join(
        f"<ul>{''.join(f'<li>{line(item)}</li>' for item in block.items)}</ul>"
        if block.is_list
        else f"<p>{line(block.items[0])}</p>"
        for block in blocks(text)
    )
