"""The triples of a crawl as RDF: exports, and the answers to questions in SPARQL.

Each belief is a triple `subject relation object`, and an `rdf:Statement` with its probability,
truth (right, wrong, unknown) and depth. Names of the data's identifiers are Wikidata's where the
data have them; the others are `urn:lama:entity:NAME`, percent-encoded, with `_` for a space. A
relation of Wikidata is `wdt:P36`, another one `urn:lama:relation:NAME`. Years are literals.

A query runs in a process without open files, so that it can be stopped and can't reach the network.
"""

import csv
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

import pandas as pd

from lama_core.errors import UserError
from lama_core.files import atomic_file, user_path
from lama_core.requests import Function, Request, argument, option
from lama_core.rounding import counted
from lama_core.runs.find import load_run
from lama_core.runs.info import Run
from lama_core.tables import Table, table_of
from lama_entities.crawl import CrawlRequest
from lama_entities.types import name_key, relation_types

if TYPE_CHECKING:
    import pyoxigraph

LAMA = "urn:lama:"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
# Prefix -> what it stands for, in exports and, without a declaration, in queries.
PREFIXES = {
    "rdf": RDF,
    "rdfs": RDFS,
    "xsd": XSD,
    "wd": "http://www.wikidata.org/entity/",
    "wdt": "http://www.wikidata.org/prop/direct/",
    "lama": LAMA,
    "entity": f"{LAMA}entity:",
    "relation": f"{LAMA}relation:",
    "type": f"{LAMA}type:",
}
FORMATS = {"nt": "N_TRIPLES", "ttl": "TURTLE"}
WIKIDATA = re.compile("[QP][1-9][0-9]*")
YEAR = re.compile("[0-9]{4}")
MOST_ROWS, MOST_SECONDS, MEMORY = 10_000, 60.0, 1 << 30
MAX_QUERY = 20_000  # characters
EXAMPLES = {
    "Which cities are believed to be the capital of two countries?": """\
SELECT ?city (GROUP_CONCAT(?name; SEPARATOR=", ") AS ?countries) WHERE {
  ?country wdt:P36|^wdt:P1376 ?capital ; a type:country ; rdfs:label ?name .
  ?capital rdfs:label ?city .
} GROUP BY ?city HAVING (COUNT(DISTINCT ?country) > 1) ORDER BY ?city""",
    "Which wrong beliefs have the highest probability?": """\
SELECT ?subject ?relation ?object ?probability WHERE {
  ?belief rdf:subject/rdfs:label ?subject ; rdf:predicate/rdfs:label ?relation ;
    rdf:object/rdfs:label ?object ; lama:truth "wrong" ; lama:probability ?probability .
} ORDER BY DESC(?probability) LIMIT 20""",
    "Which borders does the model believe in one direction only?": """\
SELECT DISTINCT ?one ?other WHERE {
  ?a wdt:P47 ?b ; rdfs:label ?one . ?b rdfs:label ?other ; wdt:P47 [] .
  FILTER NOT EXISTS { ?b wdt:P47 ?a }
} ORDER BY ?one ?other""",
    "Which things are the answer to most questions?": """\
SELECT ?name (COUNT(*) AS ?beliefs) WHERE {
  ?belief rdf:object/rdfs:label ?name .
} GROUP BY ?name ORDER BY DESC(?beliefs) ?name LIMIT 20""",
    "Which capitals lie in another country than their own, by the model's own words?": """\
SELECT ?capital ?of ?lies_in WHERE {
  ?country wdt:P36 ?city ; a type:country ; rdfs:label ?of .
  ?city rdfs:label ?capital ; wdt:P17 ?other .
  ?other rdfs:label ?lies_in .
  FILTER (?other != ?country) FILTER NOT EXISTS { ?city wdt:P17 ?country }
} ORDER BY ?capital""",
}  # question -> query, to click


def load_crawl(name: str | Path) -> Run:
    """Return a finished crawl by its name, the beginning of its name, or its folder.

    Raises:
        UserError: If there is none.
    """
    return load_run(
        name, kinds=("crawl",), what="crawl", remedy="`runs list` lists them, `crawl` makes them"
    )


def believed_rows(crawl: Run) -> pd.DataFrame:
    """Return the answers of a crawl that are believed, in the columns of `crawl.SCHEMA`."""
    rows = crawl.facts
    found: pd.DataFrame = rows[rows["excluded"].isna()].reset_index(drop=True)
    return found


def all_rows(crawl: Run) -> pd.DataFrame:
    """Return every query's answers; the truth is empty where the answer isn't believed."""
    rows = crawl.facts
    return rows.assign(truth=rows["truth"].where(rows["excluded"].isna()))


def asked_queries(crawl: Run) -> set[tuple[str, str]]:
    """Return the queries of a crawl: the subject's `name_key` and the relation."""
    rows = crawl.facts
    return set(zip(map(name_key, rows["subject"].astype(str)), rows["relation"], strict=True))


def summary(crawl: Run) -> tuple[str, str]:
    """Return what a crawl found, and what it asked."""
    rows, every = believed_rows(crawl), crawl.facts
    truth = rows["truth"].value_counts()
    each = ", ".join(f"{truth.get(one, 0):,} {one}" for one in ("right", "wrong", "unknown"))
    n_queries = len(every.drop_duplicates(["subject", "relation"]))
    n_without = n_queries - len(rows.drop_duplicates(["subject", "relation"]))
    asked = f"{counted(every['subject'].nunique(), 'thing')} asked about"
    most = (crawl.info.request.fields if crawl.info.request else {}).get("most", CrawlRequest.most)
    ended = f"; ended at the limit of {counted(most, 'query')}" * (n_queries >= most)
    return (
        f"{counted(len(rows), 'belief')} ({each})",
        f"{asked}, {rows['object'].nunique():,} named; {n_without:,} of "
        f"{counted(n_queries, 'query')} without a probable answer{ended}",
    )


def iri(kind: str, name: str, identifier: str = "") -> str:
    """Return the IRI of an entity, a relation or a type; identifier: Wikidata's, if known."""
    if WIKIDATA.fullmatch(identifier):
        return PREFIXES["wd"] + identifier
    if kind == "relation" and WIKIDATA.fullmatch(name):
        return PREFIXES["wdt"] + name
    return f"{LAMA}{kind}:{quote(name, safe='').replace('_', '%5F').replace('%20', '_')}"


def short(name: str) -> str:
    """Return an IRI with its prefix."""
    prefix = max(
        (one for one in PREFIXES if name.startswith(PREFIXES[one])),
        key=lambda one: len(PREFIXES[one]),
    )
    return f"{prefix}:{name.removeprefix(PREFIXES[prefix])}"


def triples_of(crawl: Run) -> "Iterator[pyoxigraph.Triple]":
    """Yield the triples of a crawl, of each row in its order."""
    from pyoxigraph import Literal, NamedNode, Triple

    def said(subject: Any, of: str, value: str, kind: str = "string") -> "pyoxigraph.Triple":
        return Triple(subject, NamedNode(of), Literal(value, datatype=NamedNode(XSD + kind)))

    a = NamedNode(f"{RDF}type")
    for one in crawl.info.relations:
        yield said(
            NamedNode(iri("relation", one.name)), f"{RDFS}label", relation_types()[one.name].label
        )
    for number, row in enumerate(believed_rows(crawl).to_dict("records")):
        nodes: list[Any] = []
        for place in ("subject", "object"):
            name, kind = str(row[place]), str(row[f"{place}_type"])
            if kind == "year" and YEAR.fullmatch(name):
                nodes.append(Literal(name, datatype=NamedNode(f"{XSD}gYear")))
                continue
            nodes.append(NamedNode(iri("entity", name, str(row[f"{place}_id"]))))
            yield said(nodes[-1], f"{RDFS}label", name)
            yield Triple(nodes[-1], a, NamedNode(iri("type", kind)))
        subject, obj = nodes
        relation = NamedNode(iri("relation", str(row["relation"])))
        yield Triple(subject, relation, obj)
        belief = NamedNode(f"{LAMA}belief:{crawl.info.digest[:10]}:{number}")
        yield Triple(belief, a, NamedNode(f"{RDF}Statement"))
        for of, node in (("subject", subject), ("predicate", relation), ("object", obj)):
            yield Triple(belief, NamedNode(RDF + of), node)
        yield said(belief, f"{LAMA}probability", f"{row['probability']:.6f}", "decimal")
        yield said(belief, f"{LAMA}truth", str(row["truth"]))
        yield said(belief, f"{LAMA}depth", str(row["depth"]), "integer")


def written(crawl: Run, form: str) -> bytes:
    """Return a crawl as a file: csv has all rows, nt and ttl have what is believed."""
    if form == "csv":
        return all_rows(crawl).to_csv(index=False, quoting=csv.QUOTE_MINIMAL).encode()
    import pyoxigraph

    found = dict.fromkeys(triples_of(crawl))  # each once
    kind = getattr(pyoxigraph.RdfFormat, FORMATS[form])
    prefixes = PREFIXES if form == "ttl" else None
    return pyoxigraph.serialize(found, format=kind, prefixes=prefixes) or b""


RunName = Annotated[str, argument("The crawl's name, the beginning of it, or its folder.")]


@dataclass(frozen=True)
class ExportCrawlRequest(Request, command="crawl-export", python="crawl_export"):
    """The fields of `crawl-export`: a crawl and a format."""

    run: RunName
    format: Annotated[
        Literal["csv", "nt", "ttl"],
        option("csv (all rows), nt (N-Triples) or ttl (Turtle): the beliefs as RDF."),
    ] = "ttl"
    out: Annotated[Path | None, option("The file. Default: named as the crawl, here.")] = None


def _export(request: ExportCrawlRequest) -> Path:
    crawl = load_crawl(request.run)
    path = user_path(request.out or Path(f"{crawl.info.id}.{request.format}"))
    with atomic_file(path) as part:
        part.write_bytes(written(crawl, request.format))
    return path


crawl_export = Function(
    ExportCrawlRequest,
    _export,
    lambda path: path,
    """Write a crawl to a file: CSV, N-Triples or Turtle.

    Returns:
        The file's path.

    Raises:
        UserError: If there is no such crawl, or the file can't be written.
    """,
)


@dataclass(frozen=True)
class QueryCrawlRequest(Request, command="crawl-query", python="crawl_query"):
    """The fields of `crawl-query`: a crawl, a question in SPARQL, and limits."""

    run: RunName
    query: Annotated[
        str, argument("SPARQL: SELECT, ASK, CONSTRUCT or DESCRIBE. The prefixes are known.")
    ]
    rows: Annotated[int, option("The most rows.", ge=1, le=MOST_ROWS)] = 1000
    seconds: Annotated[
        float, option("Stop a longer query after this time.", gt=0, le=MOST_SECONDS)
    ] = 10.0


@dataclass(frozen=True)
class SparqlAnswer:
    """The answer to a query. is_cut: whether it has more rows than the limit."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_cut: bool = False

    @property
    def frame(self) -> pd.DataFrame:
        """The answer as a DataFrame of texts; None for a variable without a value."""
        return pd.DataFrame(list(self.rows), columns=list(self.columns))

    @property
    def table(self) -> Table:
        """The answer for readers."""
        return table_of(self.columns, self.rows)

    def to_json(self) -> Any:
        """Return the answer for `--json`."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"columns": self.columns, "rows": rows, "more": self.is_cut}


@lru_cache(8)
def _stored(run: Run, digest: str) -> bytes:
    """Return a crawl's triples as N-Triples, made once."""
    return written(run, "nt")


def _query(request: QueryCrawlRequest) -> SparqlAnswer:
    crawl = load_crawl(request.run)
    if len(request.query) > MAX_QUERY:
        raise UserError(
            f"The query has {len(request.query):,} characters; the maximum is {MAX_QUERY:,}."
        )
    head = {
        "query": request.query,
        "prefixes": PREFIXES,
        "rows": request.rows,
        "seconds": request.seconds,
        "memory": MEMORY,
    }
    process = Path(__file__).with_name("sparql_process.py")
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(process)],
            input=json.dumps(head).encode() + b"\n" + _stored(crawl, crawl.info.digest),
            capture_output=True,
            timeout=request.seconds + 5,  # for the start
            check=False,
        )
        found = json.loads(done.stdout) if done.returncode == 0 else {}
    except subprocess.TimeoutExpired:
        found = {}
    if not found:
        raise UserError(
            f"The query was stopped: it needs more than {request.seconds:g} seconds or too much "
            "memory. Ask for less, for example with LIMIT, or without a pattern that nothing links."
        )
    if problem := found.get("problem"):
        raise UserError(problem)
    rows = tuple(map(tuple, found["rows"]))
    return SparqlAnswer(tuple(found["columns"]), rows[: request.rows], len(rows) > request.rows)


crawl_query = Function(
    QueryCrawlRequest,
    _query,
    lambda answer: answer.frame,
    """Ask a crawl's beliefs a question in SPARQL.

    It only reads, without SERVICE, and stops at the limits of time and rows.

    Returns:
        A DataFrame with a column for each variable.

    Raises:
        UserError: If there is no such crawl, or the query is wrong or takes too long.
    """,
)
