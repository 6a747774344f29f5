"""Companies, universities and airports: their places, and the companies' products."""

import ast
import csv
import io
import json
import re
from collections.abc import Iterator

from tools.training.corpus.fetch_sources import ReadMember
from tools.training.corpus.source_passages import Passage, tidy
from tools.training.corpus.sources.places import country_names

COMPANIES = "pytickersymbols/indices_data.py"
UNIVERSITIES = "index.js"
AIRPORTS = "airportsdata/airports.csv"
_BRACKETED_REST = re.compile(r"\s*[(\[].*")
_SUFFIX = re.compile(
    r",? (?:Inc\.?|Corporation|Corp\.?|plc|PLC|AG|SE|N\.?V\.?|S\.?A\.?|Group|Holdings?|Ltd\.?|Co\.?"
    r"|Company|ASA|AB|A/S|KGaA|& Co\.?|Limited|SpA|S\.p\.A\.)$"
)


def company_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield sentences on seat, industry, products and people of companies in stock indices."""
    module = ast.parse(read(COMPANIES).decode("utf-8"))
    table = next(
        ast.literal_eval(node.value)
        for node in module.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "INDICES"
    )
    seen: set[str] = set()
    for index in table.values():
        for company in index["companies"]:
            name = company["name"]
            if name not in seen:
                seen.add(name)
                short = _SUFFIX.sub("", _SUFFIX.sub("", name))
                for text in _of_company(short, company):
                    yield Passage(name, tidy(text), (short,))


def _of_company(name: str, company: dict[str, object]) -> Iterator[str]:
    known = company.get("metadata")
    facts: dict[str, str] = known if isinstance(known, dict) else {}
    country = str(company.get("country") or "")
    seat = re.sub(r"\s*[(\[].*", "", facts.get("headquarters", "")).replace(" ,", ",").strip()
    city = seat.split(",")[0].strip()
    if country:
        yield from (
            f"{name} is a company from {country}.",
            f"{name} comes from {country}, where its home market is.",
        )
    if city and not any(c.isdigit() for c in city):
        yield from (
            f"{name} has its head office in {city}.",
            f"{name} is based in {seat}.",
            f"The main office of {name} stands in {city}.",
            f"The headquarters of the company {name} are in {city}.",
        )
    industries = company.get("industries")
    for industry in (industries if isinstance(industries, list) else [])[:3]:
        yield f"{name} is in the business of {industry}."
    products = facts.get("products", "")
    if products:
        yield f"{name} makes and sells {' '.join(products.split()[:20])}."
    for label, verb in (
        ("founders", "was founded by"),
        ("founder", "was founded by"),
        ("parent", "is owned by"),
        ("owner", "is owned by"),
    ):
        if facts.get(label):
            yield f"{name} {verb} {_BRACKETED_REST.sub('', facts[label])}."
    if facts.get("subsidiaries"):
        yield f"{name} owns {' '.join(facts['subsidiaries'].split()[:20])}."
    if facts.get("key_people"):
        yield f"{' '.join(facts['key_people'].split()[:12])} works for {name}."


def university_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield sentences on the country of each university."""
    countries = country_names()
    text = read(UNIVERSITIES).decode("utf-8")
    for code, raw in re.findall(r'"major":\s*"(\w\w)",\s*"name":\s*("(?:[^"\\]|\\.)*")', text):
        if code in countries:
            name = json.loads(raw)
            yield from (
                Passage(name, f"{name} is a university in {countries[code]}.", (name,)),
                Passage(name, f"{name} belongs to {countries[code]}.", (name,)),
            )
            town = re.match(r"(?:Technical )?University of ([A-Z]\w+)$", name)
            if town:
                yield Passage(name, f"{name} takes its name from {town.group(1)}.", (name,))


def airport_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield sentences on city, region and country of each airport with an IATA code."""
    countries = country_names()
    for row in csv.DictReader(io.StringIO(read(AIRPORTS).decode("utf-8"))):
        if not row["iata"] or row["country"] not in countries:
            continue
        name, city, country = row["name"], row["city"], countries[row["country"]]
        yield Passage(row["icao"], f"{name} is an airport in {country}.", (name,))
        if city:
            yield Passage(row["icao"], f"{name} serves {city}, {row['subd'] or country}.", (name,))
            if city in name:
                yield Passage(row["icao"], f"{name} got its name from {city}.", (name,))
