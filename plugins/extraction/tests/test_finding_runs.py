"""`extract` and `read`: runs beside those of models, and what their mistakes say."""

from dataclasses import replace
from pathlib import Path

import pytest
from births import CITIES, Reader, write_births, write_text
from tiny_models import save_reader_folder

from lama_core.datasets.passages import load_corpus
from lama_core.metrics import score_table
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.plan import plan
from lama_core.runs.alignment import align
from lama_core.runs.execute import execute, execute_all
from lama_core.runs.find import load_run
from lama_core.scoring.retrieval import OpenBook
from lama_core.types import Query
from lama_extraction.plan import plan_extract, plan_read
from lama_extraction.reader import load_reader
from lama_extraction.request import ExtractRequest, ReadRequest

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_births(tmp_path)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_text(tmp_path)


def extracted(data: Path, text: Path, **more: object) -> ExtractRequest:
    return replace(ExtractRequest(dataset=str(data), corpus=str(text)), **more)


def test_the_extractors_answers_are_a_run_like_any_other(data: Path, text: Path) -> None:
    runs = execute_all(plan_extract(extracted(data, text)))
    for run, name in zip(runs, ("RE_n", "RE_o"), strict=True):
        again = load_run(run.info.id)
        assert (again.info.kind, again.info.model, again.info.prompts) == ("cloze", name, "manual")
        facts = again.facts.set_index("subject")
        assert facts.loc[[f"Person{n}" for n in range(7)], "rank_filtered"].tolist() == [1] * 7
        # Nothing is said of the last one's birth: a zero answer, behind all eight cities.
        last = facts.loc["Person7"]
        assert (last["rank_filtered"], last["rank_raw"]) == (8, 8)
        assert last["first"] != last["first"] and last["first_log_prob"] != last["first_log_prob"]
        (line,) = score_table([again], by="relation").to_dict("records")
        assert (line["n"], line["p_at_1"]) == (8, pytest.approx(7 / 8))
        assert again.details["extractor"]["untrained"] == []


def test_the_identity_follows_linking_text_and_limit(data: Path, text: Path) -> None:
    naive, oracle = plan_extract(extracted(data, text))
    (same,) = plan_extract(extracted(data, text, linking=("naive",)))
    (fewer,) = plan_extract(extracted(data, text, linking=("naive",), limit=3))
    (text / "b.txt").write_text("More.", encoding="utf-8")
    (other,) = plan_extract(extracted(data, text, linking=("naive",)))
    assert naive.digest == same.digest
    assert len({one.digest for one in (naive, oracle, fewer, other)}) == 4


def test_the_extractor_stands_beside_a_model_on_the_same_facts(data: Path, text: Path) -> None:
    model = Reader()
    (planned,) = plan(ProbeRequest(str(data), ("table",)), load=lambda *_, **__: model)
    cloze = execute(planned, load=lambda *_, **__: model)
    request = extracted(data, text, candidates="common", models=("table",), linking=("naive",))
    (spec,) = plan_extract(request, load=lambda *_, **__: model)
    (left, right) = align([cloze, execute(spec)])
    assert left.info.candidates_digest == right.info.candidates_digest
    assert left.info.n == right.info.n == 8


def test_a_reader_answers_from_the_passages_nearest_to_a_question(
    data: Path, text: Path, tmp_path: Path
) -> None:
    reader = load_reader(str(save_reader_folder(tmp_path / "reader", "bert")))
    request = ReadRequest(dataset=str(data), corpus=str(text), readers=(str(tmp_path / "reader"),))
    (spec,) = plan_read(request)
    run = execute(spec)
    assert (run.info.model_kind, run.info.prompts) == ("reader", "open-book manual")
    facts = run.facts.set_index("subject")
    # The one passage that names Person3 first is "Person3 was born in Bern."; of York none says
    # anything, so that its fact is a zero answer whatever the reader thinks.
    book = OpenBook(load_corpus(str(text)))
    query = Query(("Person3 was born in ", " ."))
    passages = [one.passage for one in book.index.search(query, 5)]
    assert passages[0] == "Person3 was born in Bern."
    places = {city: number for number, city in enumerate(CITIES)}
    found = reader.find("Person3 was born in what .", passages, places.get)
    assert facts.loc["Person3", "log_prob"] == pytest.approx(found[CITIES.index("Bern")], abs=1e-5)
    assert facts.loc["Person3", "first"] == CITIES[max(found, key=lambda one: found[one])]
    assert facts.loc["Person7", "rank_filtered"] == 8
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.txt").write_text("Person3 was born in York.", encoding="utf-8")
    (other,) = plan_read(replace(request, corpus=str(elsewhere)))
    assert other.digest != spec.digest
