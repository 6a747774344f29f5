"""Convert docstrings, which are plain text, to Markdown."""

import re
from typing import Any

import griffe

_CODE = re.compile(r"(`+.+?`+)", re.S)


def as_markdown(text: str) -> str:
    """Return a docstring with Markdown's special characters escaped.

    Indented blocks (formulas, tables) and text in backticks are code and stay as they are. An
    example (`>>>`) becomes a code block.
    """
    return "\n\n".join(_block(block) for block in re.split(r"\n{2,}", text))


def _block(block: str) -> str:
    if block.startswith(">>> "):
        return f"```pycon\n{block}\n```"
    return block if block.startswith("    ") else _escape(block)


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
