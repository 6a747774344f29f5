"""The sentence forms of the corpus's sources, and that no probe of the starter facts has one."""

import json
import re
from collections.abc import Iterator
from itertools import chain

import pytest

from lama_core.metrics.sentence_forms import FORMS_FILE, form_of, load_forms, template_form
from lama_core.paths import ASSETS, ROOT
from tools.training.corpus.source_forms import corpus_forms, source_forms
from tools.training.corpus.source_list import SOURCES
from tools.training.corpus.source_passages import Passage, with_article
from tools.training.corpus.sources import culture, people, wordnet

STARTER = ASSETS / "datasets" / "starter"
# Wordings of only function words, without which the relation can't be asked as LAMA asks it. The
# README of the facts names them.
EXCEPTIONS: frozenset[str] = frozenset()


def tiny_passages(read: object) -> Iterator[Passage]:
    for name, kind in (("Nile", "river"),):
        verb = "flows through" if kind == "river" else "is in"
        yield Passage(f"key/{name}", f"The {name} {verb} {with_article(kind)}, {kind}.")
    yield from _more()


def _more() -> Iterator[Passage]:
    facts = {"parent": "Alphabet"}
    for label, said in (("owner", "is owned by"), ("parent", "was founded by")):
        yield Passage(label, f"Google {said} {facts[label]}, {len(label)} times, in {label!r}.")


def _never() -> str:
    return f"{1} is never called {2}"


def test_a_source_has_the_forms_of_the_f_strings_that_it_reaches() -> None:
    assert source_forms(tiny_passages) == {
        "nile flows through * river",
        "nile is in * river",
        "google is owned by * times in owner",
        "google is owned by * times in parent",
        "google is founded by * times in owner",
        "google is founded by * times in parent",
    }


def test_each_source_has_its_own_forms() -> None:
    forms = corpus_forms().by_source
    assert {"* lies on continent of *", "* belongs to *"} <= forms["cities"]
    assert "* takes its name from *" in forms["universities"]
    assert "* is owned by *" in forms["companies"] and "* is discovered by *" in forms["elements"]
    assert "* is kind of *" in forms["wordnet"] - forms["wordnet-facts"]
    assert "* grew up speaking *" in forms["wordnet-facts"] - forms["wordnet"]
    copied = {source.name for source in SOURCES} - forms.keys()
    assert copied == {"gcide", "wikitext", "wikipedia", "factbook", "computing"}


def test_what_a_source_writes_has_one_of_its_forms() -> None:
    synsets = (
        "00000001 18 n 02 Dante 0 Dante_Alighieri 0 001 @i 00000002 n 0000 | an Italian poet born "
        "in Florence (1265-1321)",
        "00000002 18 n 01 poet 0 000 | a writer of poems",
    )
    data = "".join(f"{line}\n" for line in synsets).encode()
    lists = json.dumps(
        {
            "List of jazz musicians": [{"text": f"Miles {n}"} for n in range(12)],
            "List of Norwegian musicians": [{"text": "Grieg"}],
        }
    ).encode()
    for passages, read in (
        (wordnet.fact_passages, lambda name: data if name.endswith("noun") else b""),
        (people.passages, lambda name: data if name.endswith("noun") else b""),
        (culture.artist_passages, lambda _: lists),
    ):
        texts = [passage.text for passage in passages(read)]
        assert len(texts) > 10
        forms = [
            re.compile(re.escape(form).replace(r"\*", ".+")) for form in source_forms(passages)
        ]
        for text in texts:
            assert any(form.fullmatch(form_of([text])) for form in forms), text


@pytest.mark.parametrize(
    ("template", "source"),
    (
        ("[X] lies on the continent of [Y].", "cities"),
        ("[X] belongs to the continent of [Y].", "factbook-facts"),
        ("[X] grew up speaking [Y].", "wordnet-facts"),
        ("[X] takes its name from [Y].", "universities"),
        ("[X] is a kind of [Y].", "wordnet"),
        ("The genre of [X] is [Y].", "artists"),
        ("The music of [X] is [Y].", "artists"),
    ),
)
def test_wordings_of_version_0_1_have_a_form_of_a_source(template: str, source: str) -> None:
    assert source in corpus_forms().sources_of(template_form(template))


def wordings() -> Iterator[tuple[str, str]]:
    """Relation and template: templates, paraphrases, and the wordings of the facts' sentences."""
    for file in (
        STARTER / "relations.jsonl",
        ROOT / "tools" / "starter" / "hand" / "relations.jsonl",
    ):
        for line in file.read_text(encoding="utf-8").splitlines():
            relation = json.loads(line)
            more = (relation.get(name, ()) for name in ("paraphrases", "statements"))
            for template in (relation["template"], *chain.from_iterable(more)):
                yield relation["relation"], template


def test_no_wording_of_the_starter_facts_has_a_form_of_a_source() -> None:
    forms = corpus_forms()
    having = {
        f"{relation}: {template} ({', '.join(sources)})"
        for relation, template in wordings()
        if (sources := forms.sources_of(template_form(template))) and template not in EXCEPTIONS
    }
    assert not having, "\n".join(sorted(having))
    readme = (STARTER / "README.md").read_text(encoding="utf-8")
    assert all(template in readme for template in EXCEPTIONS)


@pytest.mark.parametrize("model", ("minilm-mlm", "minilm-mlm-twin"))
def test_an_embedded_model_carries_the_forms_of_the_sources_it_has_read(model: str) -> None:
    folder = ASSETS / "models" / model
    corpus = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))["corpus"]
    read = {source["name"] for source in corpus}
    expected = corpus_forms([source for source in SOURCES if source.name in read])
    assert load_forms(folder / FORMS_FILE).by_source == expected.by_source
