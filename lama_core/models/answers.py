"""Where the answer begins and ends in a generated text, for local models and servers.

    <think> ... </think>  (empty lines)  answer  (line break)  ...

The answer is the first line with text that isn't a mark or the content of one. A mark is a name in
`<...>`, `<|...|>` or `[...]`; it opens or closes a block, in any case, also on one line:

    <x> ... </x>   [x] ... [/x]   <|x> ... <x|>   <|start_x|> ... <|end_x|>   <|channel|>x ...

A block isn't the answer, whatever its name is, unless it is one of `ANSWER`, which contain the
answer, or of `TURN`, which surround everything that a model writes. Tags of HTML are part of the
text, unless one is the whole line. Some chat templates open a block themselves, so that a text has
only the mark that closes it: what is before that mark isn't the answer.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

ANSWER = frozenset((
    "answer", "answers", "box", "conclusion", "content", "final", "output", "reply", "response",
    "result", "solution",
))  # fmt: skip
TURN = frozenset((
    "ai", "assistant", "bos", "bot", "call", "chatbot", "cls", "document", "eom", "eos", "eot",
    "human", "im", "inst", "mask", "message", "model", "pad", "return", "s", "sentence", "sep",
    "sys", "system", "text", "turn", "unk", "user",
))  # fmt: skip
HTML = frozenset((
    "blockquote", "body", "center", "cite", "code", "font", "head", "html", "mark", "quote",
    "small", "span", "strong", "table", "title",
))  # fmt: skip
_CLOSES = frozenset(("end", "suffix", "eos", "eot", "eom"))
_NO_NAME = frozenset(("start", "begin", "prefix", "end", "suffix", "of", "id", "token"))
_BARS = "|｜"
_CHANNEL = "channel"  # a mark whose name is the word after it

_NAME = r"[^\W\d_][\w▁ :.\-]*"
_MARK = re.compile(
    rf"""<(?P<angle>[|｜/]*{_NAME}(?:=?["'][^"'<>\n]*["']\s*{_NAME}|=?["'][^"'<>\n]*["'])*[\s/|｜]*)>"""
    rf"|[◁⟨【](?P<other>/?{_NAME})[▷⟩】]"
    rf"|\[(?P<square>/?[^\W\d_][\w \-]+)\]"
)
_CLOSED_SQUARE = re.compile(r"\[/([^\[\]\n]+)\]")
_ROLE = re.compile(r"[^\W_]+(?=\s*\n|\s*[<\[])")
_HEADING = re.compile(r"[^\n<\[]*")
# The form of gpt-oss without its control tokens, which some servers drop.
_DROPPED = re.compile(r"\s*(assistant)?(analysis|commentary)(?=[A-Z\W]).*assistantfinal", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """Where the answer of a text is: `text[start:end]`.

    Attributes:
        start: Index of the answer's first character.
        end: Index after its last one.
        has_reasoning: Whether the text contains a block that isn't the answer.
        in_reasoning: Whether the text ends before such a block does; the answer is empty then.
        is_whole: Whether the answer has ended, with a line break or a mark.
        mark: The first mark before the answer; empty if there is none.
    """

    start: int
    end: int
    has_reasoning: bool = False
    in_reasoning: bool = False
    is_whole: bool = False
    mark: str = ""


@dataclass(frozen=True, slots=True)
class _Mark:
    """A mark. name: its words, without those that say whether it opens or closes."""

    start: int
    end: int
    name: str
    closes: bool
    is_html: bool

    @property
    def is_answer(self) -> bool:
        return not ANSWER.isdisjoint(self.name.split())

    @property
    def is_turn(self) -> bool:
        return TURN.issuperset(self.name.split())


def find_answer(text: str) -> FoundAnswer:
    """Return where the answer of a generated text is; spaces before it on its line belong to it."""
    marks = list(_marks(text))
    last = {mark.name: number for number, mark in enumerate(marks) if mark.closes}
    dropped = _DROPPED.match(text)
    start, limit = dropped.end() if dropped else 0, len(text)
    has_reasoning, first, is_sure, is_ended = bool(dropped), "", True, False
    block: str | None = None  # the name of the open block
    passed: set[str] = set()  # names of marks that are part of the text
    for number, mark in enumerate(marks):
        if mark.start < start:
            continue
        begins_line = not text[text.rfind("\n", 0, mark.start) + 1 : mark.start].strip()
        if block is not None:
            if mark.closes and mark.name in ("", block):
                block, start = None, mark.end
                continue
            is_next = block == _CHANNEL and not mark.closes and mark.name in ("", _CHANNEL)
            is_closed = max(last.get(block, 0), last.get("", 0)) > number
            if not is_next and (is_closed or mark.closes or not (mark.is_answer and begins_line)):
                continue
            block, start, is_sure = None, mark.start, is_next
        is_first = not text[start : mark.start].strip()
        if mark.closes:
            if mark.name in passed or (mark.is_html and not is_first):
                continue
            if not is_first and (mark.is_answer or mark.is_turn):
                limit, is_ended = mark.start, True
                break
            has_reasoning |= not (mark.is_answer or mark.is_turn or mark.is_html)
        elif mark.name == _CHANNEL and is_first:
            heading = _HEADING.match(text, mark.end)
            end = heading.end() if heading else mark.end
            first = first or text[mark.start : end].strip()
            start = end
            if ANSWER.isdisjoint(text[mark.end : end].casefold().split()):
                block, has_reasoning = _CHANNEL, True
            continue
        elif mark.is_html:
            if not is_first or text[mark.end : text.find("\n", mark.end) + 1 or None].strip():
                passed.add(mark.name)
                continue
        elif not mark.is_answer and not mark.is_turn:
            if not is_first and not (begins_line and last.get(mark.name, 0) > number):
                passed.add(mark.name)
                continue
            block, has_reasoning = mark.name, True
        elif not is_first and not (mark.is_answer and begins_line):
            passed.add(mark.name)
            continue
        first = first or text[mark.start : mark.end]
        start = mark.end
        # The names of turns that a mark opens before a role.
        if (
            not mark.closes
            and mark.name in ("", "im", "turn")
            and (role := _ROLE.match(text, start))
        ):
            start = role.end()
    if block is not None:
        return FoundAnswer(len(text), len(text), True, in_reasoning=True, mark=first)
    while True:
        blank = len(text[start:limit]) - len(text[start:limit].lstrip())
        start = text.rfind("\n", start, start + blank) + 1 or start
        end = text.find("\n", start, limit)
        is_ended |= end >= 0
        end = end if end >= 0 else limit
        line = text[start:end].strip()
        if not line or _MARK.sub("", line).strip():
            break
        first, start, is_ended = first or line, end, end == limit and is_ended
    return FoundAnswer(start, end, has_reasoning, is_whole=is_ended and is_sure, mark=first)


def is_paired(mark: str, is_known: Callable[[str], bool]) -> bool:
    """Return whether a mark opens or closes a block, because the other mark of the pair is known.

    Args:
        mark: The mark.
        is_known: Whether a model's template or vocabulary has a mark.
    """
    first, rest = mark[:1], mark[1:]
    others = {first + rest[1:] if rest.startswith("/") else f"{first}/{rest}"}
    if rest.startswith("|") != rest.endswith("|>"):  # <|x> and <x|>
        others.add(f"<{rest[1:-1]}|>" if rest.startswith("|") else f"<|{rest[:-2]}>")
    for one, other in (("start", "end"), ("begin", "end"), ("prefix", "suffix")):
        for word, by in ((one, other), (other, one)):
            others |= {mark.replace(word, by), mark.replace(word.upper(), by.upper())}
    return any(is_known(other) for other in others - {mark})


def opened_block(prompt: str, is_known: Callable[[str], bool]) -> str:
    """Return the mark at the end of a prompt, if it opens a block that isn't the answer; else "".

    Args:
        prompt: The prompt.
        is_known: As for `is_paired`.
    """
    shown = prompt.rstrip()
    mark = next((mark for mark in _marks(shown) if mark.end == len(shown)), None)
    if mark is None or mark.closes or mark.is_answer or mark.is_turn:
        return ""
    text = shown[mark.start :]
    return text if is_paired(text, is_known) else ""


def _marks(text: str) -> Iterator[_Mark]:
    """Yield the marks of a text, in order."""
    closed = {found[1] for found in _CLOSED_SQUARE.finditer(text)}
    for found in _MARK.finditer(text):
        body = found["angle"] or found["other"] or found["square"]
        # In square brackets, a mark is in upper case, paired, a whole line, or before a word that
        # begins without a space.
        if found["square"] and not (body.isupper() or body[0] == "/" or body in closed):
            end = text.find("\n", found.end())
            line = text[text.rfind("\n", 0, found.start()) + 1 : end if end >= 0 else None].strip()
            rest = line.removeprefix(found[0])
            if rest == line or (rest and not rest[0].isalnum()):
                continue
        named = re.split(r"\s+(?=\w+=)", body)[0] if "=" in body else body
        words = re.findall(r"[^\W_]+", re.sub(r"(?i)\bendof", "end of ", named).casefold())
        closes = (
            "/" in (body[0], body[-1])
            or not _CLOSES.isdisjoint(words)
            or words in (["call"], ["return"])
            or (body[-1] in _BARS and body[0] not in _BARS)
        )
        name = " ".join(word for word in words if word not in _NO_NAME)
        # Other tags of HTML have at most three letters, such as <b>, <br> and <div>.
        is_short = len(name) <= 3 and not TURN.issuperset(words)
        is_html = body[0] not in _BARS and (is_short or name in HTML)
        yield _Mark(found.start(), found.end(), name, closes, is_html)
