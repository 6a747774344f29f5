"""Crawls: from seeds to answers and on; stopped, resumed, limited and exported."""

import csv
import io
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from small_world import BELIEFS, TEMPLATES, Believer, crawl_world, write_world

from lama_core.datasets import load_dataset
from lama_core.errors import UserError
from lama_core.probes import making_runs
from lama_core.runs.execute import RunStopped
from lama_core.runs.find import load_run
from lama_core.runs.parts import PART
from lama_core.scoring.preparation import NoFactCounts
from lama_entities import triples
from lama_entities.crawl import CrawlRequest, crawl, plan_crawl
from lama_entities.crawl_page import beliefs_table

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_world(tmp_path)


def told(rows: Any) -> list[tuple[Any, ...]]:
    columns = ["depth", "subject", "relation", "object", "truth"]
    return [*rows[columns].itertuples(index=False, name=None)]


def test_a_crawl_follows_the_answers_that_are_probable_enough(data: Path) -> None:
    model = Believer()
    run = crawl_world(data, model, depth=2)
    assert told(triples.believed_rows(run)) == [
        (1, "Norway", "P36", "Oslo", "right"),
        (1, "Norway", "P47", "Sweden", "right"),
        (1, "Norway", "P47", "France", "wrong"),
        (2, "Oslo", "P1376", "Sweden", "wrong"),
        (2, "Oslo", "P17", "Norway", "right"),
        (2, "Sweden", "P36", "Oslo", "unknown"),
        (2, "Sweden", "P47", "Norway", "right"),
        (2, "France", "P36", "Paris", "right"),
        (2, "France", "P36", "Lyon", "wrong"),
        (2, "France", "P47", "Italy", "right"),
    ]
    assert len(model.asked) == len({*model.asked}) == 2 + 6  # each query once
    facts = run.facts.set_index(["subject", "relation", "object"])
    assert facts.loc[("France", "P36", "Lyon"), "probability"] == pytest.approx(0.15)
    assert facts.loc[("France", "P36", "Lyon"), "right"] == "Paris"
    assert load_run(run.info.id).facts.equals(run.facts)


def test_a_deeper_crawl_asks_no_query_twice_and_rows_say_why_nothing_is_believed(
    data: Path,
) -> None:
    model = Believer()
    notes: list[str] = []
    run = crawl_world(data, model, depth=9, on_note=notes.append)
    assert sorted(model.asked) == sorted(
        TEMPLATES[relation][1].replace("[X]", subject).replace("[Y]", "[MASK]")
        for subject, relation in BELIEFS
    )
    excluded = run.facts[run.facts["excluded"].notna()]
    assert told(excluded)[0][1:4] == ("Lyon", "P1376", "France")
    assert list(excluded["excluded"]) == ["no answer has a probability of 10.0 %"]
    assert notes[0] == "believer: nothing new to ask about at depth 5."
    assert run.info.n == len(run.facts) - 1


def test_an_answer_is_spelled_as_in_the_data_an_article_only_if_its_type_fits(
    tmp_path: Path,
) -> None:
    facts = {
        "P36": [("Norway", "oslo")],
        "P17": [("Oslo", "Norway"), ("the Hague", "Norway")],
        "MadeOf": [("a lyon", "Norway")],
    }
    data = write_world(tmp_path, facts, {"MadeOf": ("made of", "[X] is made of [Y] .")})
    model = Believer(changed={("Norway", "P36"): {"OSLO": 0.4, "lyon": 0.3, "hague": 0.2}})
    rows = triples.believed_rows(crawl_world(data, model, depth=1))
    assert set(rows["object"]) == {"Oslo", "lyon", "the Hague"}  # not "a lyon"
    assert dict(zip(rows["object"], rows["truth"], strict=True))["Oslo"] == "right"


def test_sentences_differ_and_a_thing_has_one_type_and_borders_count_both_ways() -> None:
    (run,) = crawl(["Germany", "Luxembourg"], models=("minilm-mlm",), most=150)
    rows = run.facts.astype({"subject": str, "object": str})
    asked = rows.drop_duplicates(["relation", "subject"])
    assert asked["query"].is_unique
    pairs = [rows[["subject", "subject_type"]], rows[["object", "object_type"]]]
    kinds = pd.concat([one.set_axis(["name", "type"], axis=1).dropna() for one in pairs])
    assert (kinds.groupby("name")["type"].nunique() == 1).all()
    assert not (asked["subject_type"] == "organisation").any()  # "Germany is a member of Germany"
    facts = {(fact.subject, fact.object) for fact in load_dataset("starter").facts_of("P47")}
    assert ("the Netherlands", "Germany") in facts and ("Germany", "the Netherlands") not in facts
    borders = rows[(rows["relation"] == "P47") & rows["excluded"].isna()]
    truth = borders.set_index(["subject", "object"])["truth"].to_dict()
    assert truth["Germany", "the Netherlands"] == "right"
    for (one, other), found in truth.items():
        is_fact = (one, other) in facts or (other, one) in facts
        assert (found == "right") == is_fact


def test_the_limit_of_queries_holds_and_is_said(data: Path) -> None:
    notes: list[str] = []
    model = Believer()
    crawl_world(data, model, depth=3, most=5, on_note=notes.append)
    assert len(model.asked) == 5
    assert notes[0].startswith("believer: 3 queries at depth 2 not asked, because the limit is 5 ")


@pytest.mark.parametrize("polls", range(2, 8))
def test_a_stopped_crawl_resumes_where_it_was(data: Path, tmp_path: Path, polls: int) -> None:
    whole = crawl_world(data, Believer(), depth=4, out=tmp_path / "whole")
    first, numbers = Believer(), count()
    with pytest.raises(RunStopped):
        crawl_world(
            data, first, depth=4, out=tmp_path / "runs", stopped=lambda: next(numbers) >= polls
        )
    assert not (tmp_path / "runs" / whole.info.id).exists()
    second = Believer()
    again = crawl_world(data, second, depth=4, out=tmp_path / "runs")
    assert again.facts.equals(whole.facts)
    kept = (again.info.folder / "facts.parquet").read_bytes()
    assert kept == (whole.info.folder / "facts.parquet").read_bytes()
    assert len(second.asked) < len(BELIEFS)


def test_a_crawl_that_believes_nothing_says_so(data: Path, tmp_path: Path) -> None:
    nothing = Believer(changed={("Norway", one): {} for one in ("P36", "P47")})
    with pytest.raises(UserError, match=r"no answer about Norway a probability of at least 10\.0"):
        crawl_world(data, nothing, depth=2, out=tmp_path)
    assert not list(tmp_path.glob(f"*{PART}"))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"seeds": ("Atlantis",)},
            "doesn't have 'Atlantis': choose its type, such as person or city",
        ),
        ({"seeds": ()}, "Nothing to start from"),
        ({"seeds": ("Norway",), "type": "planet"}, "Unknown type 'planet'"),
        ({"seeds": ("Norway",), "type": "genre"}, "fits the type genre: choose another type."),
        (
            {"seeds": ("Norway",), "type": "city", "relations": ("P36",)},
            "None of the chosen relations of world fits the type city: choose another",
        ),
    ],
)
def test_a_mistake_is_one_sentence(data: Path, fields: dict[str, Any], said: str) -> None:
    request = CrawlRequest(**{"models": ("believer",), "dataset": str(data), **fields})
    with pytest.raises(UserError) as caught:
        plan_crawl(request, load=lambda *_, **__: Believer())
    assert said in str(caught.value) and "--" not in str(caught.value)


ODD = 'La "Haye" <b>&amp;</b> \\ 100%_é 東京'


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Any]:
    """A crawl with markup, quotes and other scripts in a name; the data have identifiers."""
    facts = {
        "P36": [
            {"sub_label": "Norway", "obj_label": ODD, "sub_uri": "Q20", "obj_uri": "no id>"},
        ]
    }
    data = write_world(tmp_path / "odd", facts)
    yield crawl_world(data, Believer(changed={("Norway", "P36"): {ODD: 0.9}}), depth=1)


def test_exports_hold_the_same_names_whatever_they_contain(odd: Any) -> None:
    import pyoxigraph

    plain = triples.written(odd, "nt")
    found = {}
    for form, kind in (("nt", "N_TRIPLES"), ("ttl", "TURTLE")):
        parsed = pyoxigraph.parse(
            triples.written(odd, form), format=getattr(pyoxigraph.RdfFormat, kind)
        )
        found[form] = {str(one) for one in parsed}
    assert found["nt"] == found["ttl"] and len(found["nt"]) == len(plain.splitlines())
    (belief,) = [
        one
        for one in pyoxigraph.parse(plain, format=pyoxigraph.RdfFormat.N_TRIPLES)
        if one.predicate.value.endswith("/P36")
    ]
    assert belief.subject.value == "http://www.wikidata.org/entity/Q20"
    assert belief.object.value.startswith("urn:lama:entity:La_%22Haye%22_%3Cb%3E%26amp%3B%3C%2F")
    rows = list(csv.DictReader(io.StringIO(triples.written(odd, "csv").decode())))
    assert [row["object"] for row in rows] == [ODD]
    (row,) = triples.crawl_query(
        odd.info.id, "SELECT ?name { [] rdf:object/rdfs:label ?name }"
    ).to_dict("records")
    assert row["name"] == ODD


@pytest.mark.parametrize(
    "names", [("a b", "a_b", "a%20b", "A b", "a%5Fb"), ("P36", "p36"), ("é", "e\u0301")]
)
def test_different_names_have_different_iris(names: tuple[str, ...]) -> None:
    assert len({triples.iri("entity", name) for name in names}) == len(names)


QUERIES = {
    "SELECT ?c { ?c wdt:P36 entity:Oslo } ORDER BY ?c": [
        ("urn:lama:entity:Norway",),
        ("urn:lama:entity:Sweden",),
    ],
    "ASK { entity:Oslo wdt:P1376 entity:Sweden }": [("yes",)],
    "SELECT ?t { ?b rdf:subject entity:France ; rdf:object entity:Lyon ; lama:truth ?t }": [
        ("wrong",)
    ],
    "SELECT ?d { entity:Oslo rdfs:label ?l ; a type:city . OPTIONAL { ?l wdt:P36 ?d } }": [(None,)],
    'SELECT ?s { ?s rdfs:label "SERVICE <x> LOAD" } # SERVICE <http://example.org/> {}': [],
}


@pytest.fixture
def world(data: Path) -> str:
    return crawl_world(data, Believer(), depth=4).info.id


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_reads_the_beliefs(world: str, query: str) -> None:
    found = triples.crawl_query(world, query)
    assert [*found.itertuples(index=False, name=None)] == QUERIES[query]


def test_the_examples_are_answered(world: str) -> None:
    crawl = load_run(world, kinds=("crawl",), what="crawl")
    rows = pd.read_csv(io.BytesIO(triples.written(crawl, "csv")), keep_default_na=False)
    assert len(rows) == len(crawl.facts) and {*(rows["excluded"] != "")} == {True, False}
    assert ((rows["truth"] == "") == (rows["excluded"] != "")).all()  # what isn't believed
    answers = [triples.crawl_query(world, query) for query in triples.EXAMPLES.values()]
    capitals, wrong, borders, most, elsewhere = (one.to_dict("records") for one in answers)
    (oslo,) = capitals
    assert (oslo["city"], sorted(oslo["countries"].split(", "))) == ("Oslo", ["Norway", "Sweden"])
    assert [(row["subject"], row["object"]) for row in wrong] == [
        ("Oslo", "Sweden"),
        ("Paris", "Italy"),
        ("Norway", "France"),
        ("France", "Lyon"),
    ]
    assert borders == [{"one": "Norway", "other": "France"}]
    assert most[0] == {"name": "France", "beliefs": "4"}
    assert {tuple(row.values()) for row in elsewhere} == {
        ("Oslo", "Sweden", "Norway"),
        ("Paris", "France", "Italy"),
    }


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "The query is empty"),
        ("SELECT ?s WERE { ?s ?p foo:o }", "from line 1, character 11 on: 'WERE { ?s ?p foo:o }'"),
        ('SELECT * {\n ?s ?p "FOO <x>" .\n FILTR(?s) }', "from line 3, character 2 on: 'FILTR"),
        ("SELECT ?s { ?s foo:bar ?o }", "The prefix foo: isn't known"),
        ("INSERT DATA { <urn:a> <urn:b> 1 }", "A query only reads"),
        ("LOAD <http://example.org/x>", "A query only reads"),
        ("SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", "SERVICE isn't possible"),
        ("SELECT * { service silent ?x { ?s ?p ?o } }", "SERVICE isn't possible"),
        ('SELECT * { ?s ?p "a\\"" . SERVICE<urn:x>{ ?s ?p "b" } }', "SERVICE isn't possible"),
        ("SELECT * {" + "?s ?p ?o ." * 5000 + "}", "characters; the maximum is 20,000"),
        (
            "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n2 ?o }",
            "was stopped",
        ),
    ],
)
def test_a_query_that_is_wrong_or_endless_is_one_sentence(
    world: str, query: str, said: str
) -> None:
    with pytest.raises(UserError) as caught:
        triples.crawl_query(world, query, seconds=0.5)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_long_answer_is_cut_and_says_so(world: str) -> None:
    request = triples.QueryCrawlRequest(world, "SELECT * { ?s ?p ?o }", rows=3)
    answer = triples.crawl_query.answer(request)
    assert len(answer.rows) == 3 and answer.is_cut


def test_a_model_without_beliefs_is_a_note_unless_no_model_has_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes: list[str] = []

    def execute(specs: Any, **_: Any) -> Any:
        if specs[0].model_name == "silent":
            raise NoFactCounts("silent gives no answer: lower it.")
        info = SimpleNamespace(id="run", n=1, n_excluded=0, folder="runs", checkpoint=None)
        return (SimpleNamespace(info=info),)

    def plan(request: CrawlRequest, **_: Any) -> Any:
        return [
            SimpleNamespace(model_name=one, scorer_key=partial(str, one)) for one in request.models
        ]

    monkeypatch.setattr(making_runs, "execute_all", execute)
    for models in (("silent", "believer"), ("believer", "silent")):
        request = CrawlRequest(("Norway",), models=models, on_note=notes.append)
        assert [one.info.id for one in making_runs.make_runs(request, plan)] == ["run"]
        assert "silent has no run: silent gives no answer: lower it." in notes
    notes.clear()
    with pytest.raises(UserError, match="silent gives no answer"):
        alone = CrawlRequest(("Norway",), models=("silent",), on_note=notes.append)
        making_runs.make_runs(alone, plan)
    assert not notes  # the error says it


def test_the_table_of_two_crawls_has_both_probabilities(data: Path) -> None:
    changed = {("Norway", "P36"): {"Oslo": 0.3, "Rome": 0.2}, ("Norway", "P47"): {"Sweden": 0.6}}
    models = (Believer(), Believer("other", changed=changed))
    table = beliefs_table([crawl_world(data, one, depth=1) for one in models], ["A", "B"])
    found = {row["answer"]: (row["A, %"], row["B, %"]) for row in table.to_dict("records")}
    assert found["Oslo"] == (90.0, 30.0) and found["Sweden"] == (60.0, 60.0)
    assert [str(value) for value in (*found["France"], *found["Rome"])] == [
        "20.0",
        "nan",
        "nan",
        "20.0",
    ]


def test_what_only_one_crawl_asked_is_not_what_only_one_believes(data: Path) -> None:
    changed = {("Norway", "P36"): {"Rome": 0.9}}
    crawls = [crawl_world(data, one) for one in (Believer(), Believer("B", changed=changed))]
    table = beliefs_table(crawls, ["A", "B"]).set_index(["subject", "relation", "answer"])
    queries = [
        {(row["subject"], row["relation"]) for row in one.facts.to_dict("records")}
        for one in crawls
    ]
    capitals = table["asked of"][table.index.get_level_values("relation") == "capital"]
    for (subject, _, _), asked in capitals.items():
        of = [name for name, some in zip("AB", queries, strict=True) if (subject, "P36") in some]
        assert asked == ("both" if len(of) == 2 else of[0])
    assert table.loc[("Norway", "capital", "Oslo"), "asked of"] == "both"
    assert {"A", "B"} & {*table["asked of"]}


def test_a_summary_counts_what_was_asked_about_and_what_was_named(data: Path) -> None:
    said = triples.summary(crawl_world(data, Believer(), depth=4))
    assert said == (
        "17 beliefs (12 right, 4 wrong, 1 unknown)",
        "8 things asked about, 8 named; 1 of 16 queries without a probable answer",
    )
