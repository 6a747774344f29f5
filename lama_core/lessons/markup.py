"""The texts of lessons: paragraphs and lists with **bold**, *italic* and `code`, and nothing else.

Whatever else stands in a text is shown as it is: no HTML, no link, no image.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Literal, cast

Style = Literal["plain", "bold", "italic", "code"]
_SPAN = re.compile(r"\*\*(?P<bold>[^*\n]+)\*\*|\*(?P<italic>[^*\s][^*\n]*)\*|`(?P<code>[^`\n]+)`")
_BULLET = "- "


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, or a list of several. items: one of a paragraph."""

    is_list: bool
    items: tuple[str, ...]


def blocks(text: str) -> Iterator[Block]:
    """A text's paragraphs and lists; an empty line, or a line that begins with `- `, parts them."""
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


def spans(text: str) -> Iterator[tuple[Style, str]]:
    """A line's pieces, each with its style."""
    at = 0
    for found in _SPAN.finditer(text):
        if found.start() > at:
            yield "plain", text[at : found.start()]
        style = cast(Style, found.lastgroup)
        yield style, found[style]
        at = found.end()
    if at < len(text):
        yield "plain", text[at:]


def as_markdown(text: str, plain: Callable[[str], str]) -> str:
    """A text as Markdown. plain: writes a piece so that Markdown shows it as it is."""
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
    """A text as HTML, escaped."""
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
