"""Answer a SPARQL query over triples: reads and writes JSON, in a process that can be stopped.

The first line of standard input is JSON with `query`, `prefixes`, `rows`, `seconds` and `memory`;
the triples follow as N-Triples. It imports only Python's modules and pyoxigraph, to start fast.
"""

import json
import re
import sys
from itertools import islice
from typing import Any

import pyoxigraph

# Texts, IRIs and comments of a query, in which words mean nothing.
QUIET = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|\'\'\'(?:[^\\]|\\.)*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
    r"|<[^<>\s]*>|#[^\n]*",
    re.DOTALL,
)
SERVICE = re.compile(r"(?<![\w:?$.-])SERVICE(?![\w:-])", re.IGNORECASE)
WRITES = re.compile(
    r"(?<![\w:?$.-])(INSERT|DELETE|LOAD|CLEAR|CREATE|DROP|COPY|MOVE|ADD)(?![\w:-])", re.IGNORECASE
)


PREFIXED = re.compile(r"(?<![\w?$%:-])([A-Za-z][\w-]*):")
DECLARED = re.compile(r"PREFIX\s+([A-Za-z][\w-]*):", re.IGNORECASE)
WORD = re.compile(r"(?<![\w:?$@.%-])[A-Za-z]\w*(?![\w-]*:)")
WORDS = set(
    re.findall(
        r"\w+",
        """A
        ABS ADD ALL AS ASC ASK AVG BASE BIND BNODE BOUND BY CEIL CLEAR COALESCE CONCAT CONSTRUCT
        CONTAINS COPY COUNT CREATE DATA DATATYPE DAY DEFAULT DELETE DESC DESCRIBE DISTINCT DROP
        ENCODE_FOR_URI EXISTS FALSE FILTER FLOOR FROM GRAPH GROUP GROUP_CONCAT HAVING HOURS IF IN
        INSERT INTO IRI ISBLANK ISIRI ISLITERAL ISNUMERIC ISTRIPLE ISURI LANG LANGMATCHES LCASE
        LIMIT LOAD MAX MD5 MIN MINUS MINUTES MONTH MOVE NAMED NOT NOW OBJECT OFFSET OPTIONAL ORDER
        PREDICATE PREFIX RAND REDUCED REGEX REPLACE ROUND SAMETERM SAMPLE SECONDS SELECT SEPARATOR
        SERVICE SHA1 SHA256 SHA384 SHA512 SILENT STR STRAFTER STRBEFORE STRDT STRENDS STRLANG STRLEN
        STRSTARTS STRUUID SUBJECT SUBSTR SUM TIMEZONE TO TRIPLE TRUE TZ UCASE UNDEF UNION URI USING
        UUID VALUES VERSION WHERE WITH YEAR""",
    )
)  # of SPARQL
EVERYTHING = re.compile(r"SELECT\s+((DISTINCT|REDUCED)\s+)?\*", re.IGNORECASE)


def _limit(memory: int, seconds: float) -> None:
    """Limit memory and time, and forbid opening files and connections; Windows can't."""
    if sys.platform != "win32":
        import resource
        import signal

        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
        signal.setitimer(signal.ITIMER_REAL, seconds)  # which ends the process


def _said(error: str, asked: dict[str, Any], bare: str) -> str:
    """Return where a query isn't SPARQL, as a sentence; error: pyoxigraph's."""
    known = {*asked["prefixes"], *DECLARED.findall(bare)}
    strange = next((one for one in PREFIXED.finditer(bare) if one[1] not in known), None)
    word = next((one for one in WORD.finditer(bare) if one[0].upper() not in WORDS), None)
    if strange and not (word and word.start() < strange.start()):
        return f"The prefix {strange[1]}: isn't known: declare it, or write the whole IRI in <>."
    place = re.search(r"at (\d+):(\d+)", error)
    if place is None and word is None:
        return f"The query isn't SPARQL ({' '.join(error.split())[:200]}): begin with an example."
    line, column = (int(place[1]), int(place[2])) if place else (sys.maxsize, 0)
    if word:
        before = bare[: word.start()]
        at = before.count("\n") + 1, word.start() - before.rfind("\n")
        line, column = min((line, column), at)
    near = "".join(asked["query"].splitlines()[line - 1 : line])[column - 1 :][:40]
    here = f": {near!r}" if near.strip() else ""
    return f"The query isn't SPARQL from line {line}, character {column} on{here}."


def _text(term: Any) -> str | None:
    """Return a term as readers see it: a literal's text, or an IRI with its prefix."""
    return None if term is None else str(getattr(term, "value", term))


def answer(asked: dict[str, Any], triples: bytes) -> dict[str, Any]:
    """Return the columns and at most one row more than wanted, or the problem as a sentence."""
    bare = QUIET.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), asked["query"])
    if SERVICE.search(bare):
        return {"problem": "SERVICE isn't possible: a query sees only the triples of its crawl."}
    if not asked["query"].strip():
        return {"problem": "The query is empty: write one, such as SELECT * WHERE { ?s ?p ?o }."}
    store = pyoxigraph.Store()
    store.load(triples, format=pyoxigraph.RdfFormat.N_TRIPLES)
    _limit(asked["memory"], asked["seconds"])
    try:
        found = store.query(asked["query"], prefixes=asked["prefixes"])
        if isinstance(found, pyoxigraph.QueryBoolean):
            return {"columns": ["answer"], "rows": [["yes" if found else "no"]]}
        some = list(islice(found, asked["rows"] + 1))
    except SyntaxError as error:
        if WRITES.search(bare):
            return {"problem": "A query only reads: use SELECT, ASK, CONSTRUCT or DESCRIBE."}
        return {"problem": _said(str(error), asked, bare)}
    except (OSError, ValueError, RuntimeError) as error:
        return {"problem": f"The query failed: {error}."}
    if isinstance(found, pyoxigraph.QueryTriples):
        rows = [[_text(one) for one in triple] for triple in some]
        return {"columns": ["subject", "predicate", "object"], "rows": rows}
    names = [variable.value for variable in found.variables]
    if EVERYTHING.search(bare):
        names.sort(key=lambda name: asked["query"].find(f"?{name}"))
    return {"columns": names, "rows": [[_text(row[name]) for name in names] for row in some]}


if __name__ == "__main__":
    head, _, rest = sys.stdin.buffer.read().partition(b"\n")
    sys.stdout.write(json.dumps(answer(json.loads(head), rest)))
