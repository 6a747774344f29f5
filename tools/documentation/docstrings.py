"""Convert docstrings, which are plain text, to Markdown."""

import re
from typing import Any

import griffe

_CODE = re.compile(r"(`+.+?`+)", re.S)
_SECTION = re.compile(r"(Args|Attributes|Returns|Yields|Raises):\n")
_NAME = re.compile(r"^ {4}\S+:", re.M)  # of a parameter, attribute or error


def as_markdown(text: str) -> str:
    """Return a docstring as Markdown, with special characters escaped.

    Indented blocks (formulas, tables) and text in backticks are code and stay as they are. An
    example (`>>>`) becomes a code block.
    """
    return "\n\n".join(_block(block) for block in re.split(r"\n{2,}", text))


def _block(block: str) -> str:
    if block.startswith(">>> "):
        return f"```pycon\n{block}\n```"
    if block.startswith("    "):
        return block
    text = _escape(block)
    if _SECTION.match(block):
        text = _NAME.sub(lambda name: name[0].replace("\\", ""), text)
    return text


def _escape(block: str) -> str:
    parts = _CODE.split(block)
    return "".join(
        part if number % 2 else re.sub(r"([<*_|\[\]])", r"\\\1", part).replace("\\<", "&lt;")
        for number, part in enumerate(parts)
    )


class Docstrings(griffe.Extension):
    """Griffe extension that converts every docstring to Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
