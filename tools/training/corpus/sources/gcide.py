"""GCIDE, the Collaborative International Dictionary of English: definitions and quotations.

Its file is plain text. An entry begins with an unindented head word; its senses and quotations are
indented paragraphs with tags such as [1913 Webster] for their source. Paragraphs that GCIDE took
from WordNet are excluded, because they may be WordNet's held-out texts.
"""

import gzip
import re
from collections.abc import Iterator

from tools.training.corpus.fetch_sources import ReadMember
from tools.training.corpus.source_passages import Passage, split_sentences, tidy

MEMBER = "usr/share/dictd/gcide.dict.dz"

_TAG = re.compile(r"\[(?:[^\[\]]*(?:Webster|PJC|Century|Dict|RP|AS|RH|MW10|mor|RDH)[^\[\]]*)\]")
_BRACKETED = re.compile(r"\[[^\[\]]*\]")
_LETTER = re.compile(r"\[[=~'`^\"*/,.:]*([A-Za-z]{1,2})[=~'`^\"*/,.:]*\]")
_PRONUNCIATION = re.compile(r"\\[^\\]*\\")
_SENSE = re.compile(r"^\(?(?:\d+|[a-z])[.)]\s*")


def passages(read: ReadMember) -> Iterator[Passage]:
    """Yield senses and quotations; the key is the entry, so that whole entries are held out."""
    text = gzip.decompress(read(MEMBER)).decode("utf-8", errors="replace")
    head, number = "", 0
    body = text[max(0, text.find("\nA \\")) :]
    for block in re.split(r"\n\s*\n", body):
        if not block.strip():
            continue
        if not block.lstrip("\n").startswith(" "):
            number += 1
            head, _, block = _split_head(block)
        if "WordNet" in block:
            continue
        for sentence in _clean(block):
            yield Passage(f"{number}", _phrase(head, sentence, is_quote="--" in block))


def _split_head(block: str) -> tuple[str, str, str]:
    first, _, rest = block.lstrip("\n").partition("\n")
    head = re.split(r"\\|,|\(|\[", first)[0].strip()
    at = rest.find("   ")
    # Grammar and etymology in the head line are dropped; only what follows them is kept.
    definition = rest[at:] if at >= 0 else rest
    return head, first, re.sub(r"^.*?\]\s*$", "", definition, count=1, flags=re.M)


def _clean(block: str) -> list[str]:
    text = _LETTER.sub(r"\1", _TAG.sub(" ", block))
    text = _BRACKETED.sub(" ", _PRONUNCIATION.sub(" ", text))
    text = text.replace("{", "").replace("}", "").replace("''", '"').replace("``", '"')
    text = _SENSE.sub("", tidy(text.replace("--", " - ")))
    return [s for s in split_sentences(text) if len(s.split()) >= 4]


def _phrase(head: str, sentence: str, *, is_quote: bool) -> str:
    return sentence if is_quote or not head else f"{head}: {sentence}"
