"""How this is measured, on the page Help; and what is said of a model's training sources."""

import shutil
from dataclasses import replace
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from calling import invoke
from opening import open_page
from streamlit.testing.v1 import AppTest

from lama_core.metrics.origins import FactGroup, sentence, trained_on
from lama_core.paths import DOCS, plugin_pages
from lama_core.runs.facts_table import SCHEMA
from lama_core.runs.find import load_run, runs_dir
from lama_core.runs.info import FACTS_FILE, Run, write_info
from pages.ui.help.roles import ROLES
from pages.ui.shared.text import plain
from pages.ui.shared.url_state import title_of
from tools.bench.made_up import make_runs

pytestmark = pytest.mark.usefixtures("home")
ORIGINS = ("written by hand", "WordNet 3.0", "CIA World Factbook and GeoNames, which agree")


def sections() -> list[str]:
    """Every departure that is written down, in its order."""
    text = (DOCS / "departures.md").read_text(encoding="utf-8")
    for page in plugin_pages():
        text += page.read_text(encoding="utf-8").partition("\n## Departures from the papers\n")[2]
    return [line[4:] for line in text.splitlines() if line.startswith("### ")]


def opened(app: AppTest) -> list[str]:
    """The labels of the parts that are unfolded."""
    return [one.label for one in app.expander if one.proto.expanded]


def test_the_page_shows_every_departure_and_an_address_opens_those_of_one_paper() -> None:
    app = open_page("help")
    texts = [one.value for one in app.markdown]
    shown = [line[5:] for text in texts for line in text.splitlines() if line.startswith("#### ")]
    assert shown == sections()
    assert any(text.strip().startswith("Differences between this project") for text in texts)
    assert not opened(app)
    heads = [one.value for one in open_page("help", paper="LPAQA").subheader]
    assert heads[:3] == ["From a sentence to P@1", "Departures from the papers", "Glossary"]
    assert opened(open_page("help", doc="hosting")) == ["Hosting"]
    links = [one.proto for one in open_page("prompts").get("page_link")]
    papers = [one.query_string for one in links if "measured" in one.label]
    assert papers == ["paper=LPAQA"], "a screen with numbers links to its paper's"
    assert opened(open_page("method")) == ["All departures in a table"]


@pytest.fixture
def run() -> Run:
    """A made-up run of the embedded model, of facts with the three origins in turn."""
    made, *others = make_runs(runs_dir(), n_relations=6, n_facts=600)
    for other in others:
        shutil.rmtree(other.info.folder)
    path = made.info.folder / FACTS_FILE
    table = pq.read_table(path)
    named = [ORIGINS[number % 3] for number in range(table.num_rows)]
    column = pa.array(named).dictionary_encode().cast(SCHEMA.field("origin").type)
    place = table.column_names.index("origin")
    pq.write_table(table.set_column(place, "origin", column), path)
    write_info(replace(made.info, model="minilm-mlm"), made.info.folder)
    return load_run(made.info.id)


def test_the_page_and_the_command_say_the_same_of_the_training_sources(run: Run) -> None:
    found = trained_on(run)
    assert found is not None
    counted = run.facts[run.facts["excluded"].isna()]
    outside = counted[counted["origin"] == ORIGINS[0]]
    assert found.outside == FactGroup(len(outside), int((outside["rank_filtered"] == 1).sum()))
    assert found.inside.n == len(counted) - len(outside)
    said = sentence(found, "minilm-mlm", k=1)
    app = open_page("results", data="made-up")
    shown = sentence(found, title_of("minilm-mlm"), k=1)
    assert any(f"- {plain(shown)}" in markdown.value for markdown in app.markdown)
    printed = invoke(["results", run.info.id]).stderr
    assert said in " ".join(printed.split())


def test_each_role_has_ways_to_real_screens() -> None:
    ways = [way for _, every in ROLES.values() for way in every]
    for page, params in {(page, tuple(params.items())): 0 for *_, page, params in ways}:
        app = open_page(PurePosixPath(page).stem, **dict(params))
        assert not app.exception and not app.error and not app.warning
