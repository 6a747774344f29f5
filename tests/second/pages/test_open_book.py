"""The open book on the Cloze page: what is offered to whom, and the passage before the question."""

from math import log, sqrt
from pathlib import Path

import pytest
from opening import ROOT, TIMEOUT, open_page
from streamlit.testing.v1 import AppTest

from lama_core.datasets.passages import load_corpus
from lama_core.models.cache import load_model
from lama_core.paths import CORPUS_SUMMARY, training_dir
from lama_core.queries.blank_answers import query_model
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.retrieval import OpenBook, open_index
from lama_core.scoring.shared_fields import ClozeSettings
from pages.ui.shared import cache, url_state
from pages.ui.shared.messages import plain

pytestmark = pytest.mark.usefixtures("home")
MODEL = "minilm-mlm"
TEXT = "The capital of Wakanda is ___."
PASSAGE = "The capital of *Wakanda* is <b>London</b> $x$."


@pytest.fixture
def corpus() -> None:
    """A training text of two passages, which is ready to be searched."""
    folder = training_dir() / "corpus"
    folder.mkdir(parents=True)
    (folder / "some.txt").write_text(f"{PASSAGE}\nOslo is far away.\n", encoding="utf-8")
    (folder / CORPUS_SUMMARY).write_text("{}", encoding="utf-8")
    open_index(load_corpus("starter"))


def opened(**params: str) -> AppTest:
    return open_page("cloze", **{"text": TEXT, "models": MODEL, **params})


def typed(path: Path) -> AppTest:
    """The page of an owner who typed a path."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    app.session_state[url_state.TYPED] = frozenset({str(path)})
    for key, value in {"text": TEXT, "models": MODEL, "book": str(path)}.items():
        app.query_params[key] = value
    return app.run()


def shown(app: AppTest) -> str:
    return "".join(one.value for one in app.markdown)


def test_the_passage_is_shown_as_text_and_the_model_is_asked_behind_it(corpus: None) -> None:
    app = opened(book="starter", gold="London")
    written = "The capital of *Wakanda* is (b)London(/b) $x$."
    # The passage has eight terms, one of them twice, and the query two of them; all are as rare.
    score = 2 / (sqrt(2) * sqrt(7 + (1 + log(2)) ** 2))
    assert f"**Open-book context** (starter, score {score:.2f}): {plain(written)}" in shown(app)
    query = parse_query(TEXT)
    settings = ClozeSettings(models=(MODEL,))
    candidates = cache.candidates_of(settings)
    model = load_model(MODEL)
    behind = query_model(
        model, OpenBook(load_corpus("starter")).before(query), candidates, gold="London"
    )
    alone = query_model(model, query, candidates, gold="London")
    boxes = "".join(one.proto.body for one in app.get("html"))
    here, there = behind.blanks[0].gold, alone.blanks[0].gold
    assert here and there and here.rank < there.rank, "it can read"
    assert here.shown_log_prob() in boxes and there.shown_log_prob() not in boxes
    assert any("--open-book starter" in one.value for one in app.code)
    without = opened(book="starter", text="Paris is ___.")  # shares no word
    assert any("asked without context" in one.value for one in without.caption)


def test_what_is_not_ready_says_how_it_is_made_and_what_the_owner_types_is_read(
    tmp_path: Path,
) -> None:
    assert opened().selectbox(key="book").options == ["closed"]
    path = tmp_path / "a.txt"
    path.write_text("Wakanda has a king.", encoding="utf-8")
    assert any("has no search index" in one.value for one in typed(path).error)
    open_index(load_corpus(str(path)))
    assert "Wakanda has a king" in shown(typed(path))


@pytest.mark.parametrize("mode", ["public", "at the machine", "from elsewhere"])
def test_no_address_makes_the_app_read_a_text_of_the_machine(
    mode: str, tmp_path: Path, corpus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("Wakanda keeps a secret.", encoding="utf-8")
    open_index(load_corpus(str(secret)))
    if mode == "public":
        monkeypatch.setenv("LAMA_PUBLIC", "1")
    elif mode == "from elsewhere":
        monkeypatch.setattr("pages.ui.shared.visitors.is_local_connection", lambda *_: False)
    read: list[str] = []

    def load(reference: str) -> object:
        read.append(reference)
        return load_corpus(reference)

    monkeypatch.setattr("pages.ui.queries.open_book.load_corpus", load)
    app = opened(book=str(secret))
    assert set(read) <= {"starter"}
    assert "secret" not in shown(app)
    read.clear()
    assert "Open-book context" in shown(opened(book="starter")), (
        "a text by its name is for everybody"
    )
    assert set(read) == {"starter"}


def test_a_passage_is_looked_up_once_and_for_no_longer_text_than_a_question(
    corpus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    look_up = OpenBook.look_up
    monkeypatch.setattr(
        OpenBook, "look_up", lambda self, query: looked.append(query.text()) or look_up(self, query)
    )
    monkeypatch.setenv("LAMA_QUERY_TOKENS", "20")
    text = "Oslo, they say, is a city of ___."
    app = opened(text=text, book="starter")
    app.run()
    assert looked == [parse_query(text).text()] and not app.error
    app = opened(text=f"{'word ' * 17}is a ___ ?", book="starter")
    assert "The text has 20 tokens for retrieval" not in "".join(e.value for e in app.error)
    app = opened(text=f"{'word ' * 18}is a ___ ?", book="starter")
    assert app.error[0].value.startswith("The text has 21 tokens for retrieval")
    assert len(looked) == 2
