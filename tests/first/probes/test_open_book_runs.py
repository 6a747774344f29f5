"""`probe --open-book`: the passage before the query, and the runs."""

from dataclasses import replace
from pathlib import Path

import pytest
from births import Reader, write_births, write_text

from lama_core.datasets.passages import load_corpus
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.plan import plan
from lama_core.runs.execute import execute

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_births(tmp_path)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_text(tmp_path)


def test_with_the_open_book_the_model_sees_the_passage_before_the_query(
    data: Path, text: Path
) -> None:
    model = Reader()

    def load(*_: object, **__: object) -> Reader:
        return model

    request = ProbeRequest(str(data), ("table",), candidates="relation")
    (closed,) = plan(request, load=load)
    (opened,) = plan(replace(request, open_book=str(text)), load=load)
    assert closed.open_book is None and "open book" not in closed.options()
    assert closed.digest != opened.digest
    assert closed.prompt_name() == "manual" and opened.prompt_name() == "open-book manual"
    run = execute(opened, load=load)
    assert "Person3 was born in Bern. Person3 was born in [MASK] ." in model.asked
    facts = run.facts.set_index("subject")
    assert facts.loc["Person3", "query"] == "Person3 was born in Bern. Person3 was born in [MASK] ."
    # Of the last person the nearest passage says no city: seven of eight are read, and Rome is
    # said of the last.
    assert facts["rank_filtered"].eq(1).sum() == 7
    digest = load_corpus(str(text)).digest
    assert run.details == {"open_book": {"name": "texts", "digest": digest, "passages": 14}}
    assert execute(closed, load=load).facts["rank_filtered"].eq(1).sum() == 1, "Rome is right once"
