"""The answer within a generated text: the first line with text that follows any reasoning.

    <think> ... </think>  (empty lines)  answer  (line break)  ...

Reasoning is recognised by the tags that open and close it. Some chat templates open it themselves,
so that a text has only the closing tag. In the form of gpt-oss, the answer follows the channel
`final`.
"""

import re
from dataclasses import dataclass

_NAMES = "think|thinking|thought|reasoning|seed:think"
_OPEN = re.compile(
    rf"\s*(<({_NAMES})>|\[THINK\]|◁think▷|(<\|start\|>assistant)?<\|channel\|>analysis)"
)
_CLOSE = re.compile(rf"</({_NAMES})>|\[/THINK\]|◁/think▷|<\|channel\|>final<\|message\|>")


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """Where the answer of a text is: `text[start:end]`.

    Attributes:
        start: Index of the answer's first character.
        end: Index after its last one.
        has_reasoning: Whether the text contains reasoning.
        in_reasoning: Whether the text ends before its reasoning does; the answer is empty then.
        is_whole: Whether the answer's line has ended, with a line break.
    """

    start: int
    end: int
    has_reasoning: bool = False
    in_reasoning: bool = False
    is_whole: bool = False


def find_answer(text: str) -> FoundAnswer:
    """Return where the answer of a generated text is; spaces before it on its line belong to it."""
    closed = list(_CLOSE.finditer(text))
    start = closed[-1].end() if closed else 0
    has_reasoning = bool(closed or _OPEN.match(text))
    if _OPEN.match(text, start):
        return FoundAnswer(len(text), len(text), has_reasoning=True, in_reasoning=True)
    blank = len(text[start:]) - len(text[start:].lstrip())
    start = text.rfind("\n", start, start + blank) + 1 or start
    end = text.find("\n", start)
    is_whole = end >= 0
    return FoundAnswer(start, end if is_whole else len(text), has_reasoning, is_whole=is_whole)
