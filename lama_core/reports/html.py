"""Self-contained HTML files: pages and tables, with all text escaped."""

from collections.abc import Iterable, Sequence
from html import escape

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1b2430; background: #fff;
       max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2.5rem }
table { border-collapse: collapse; margin: .6rem 0 }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #e3e6ea; text-align: left;
         vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
figure { margin: 1rem 0 }
.wide { overflow-x: auto } .note { color: #5f6b76 } code { overflow-wrap: anywhere }
"""


def whole_page(title: str, body: str, *, head: str = "") -> str:
    """Return an HTML file; title is plain text, body and head are HTML."""
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>{head}</head>"
        f"<body>{body}</body></html>\n"
    )


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return rows of text as an HTML table, escaped; numbers: the right-aligned columns."""

    def cells(tag: str, texts: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=n' * (column in numbers)}>{escape(text)}</{tag}>"
            for column, text in enumerate(texts)
        )

    head = cells("th", heads)
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<div class=wide><table><tr>{head}</tr>{body}</table></div>"
