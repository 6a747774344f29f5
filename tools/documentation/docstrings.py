"""Docstrings as Markdown: they are plain text, in which `<` begins no tag."""

import re
from typing import Any

import griffe

_CODE = re.compile(r"(`+.+?`+)", re.S)


def as_markdown(text: str) -> str:
    """A docstring in which Markdown takes no character of its prose for a sign.

    Indented blocks (formulas, tables) and what stands in backticks are left: they are code. An
    example (`>>>`) is made a block of code.
    """
    return "\n\n".join(_block(one) for one in re.split(r"\n{2,}", text))


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
    """Makes every docstring that is read Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """One object of the library."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
