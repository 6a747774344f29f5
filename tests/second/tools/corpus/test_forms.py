"""The sentence forms of the corpus's sources, and which wordings of the starter facts have one."""

import json
import re

import pytest

from lama_core.metrics.sentence_forms import FORMS_FILE, form_of, load_forms, template_form
from lama_core.paths import ASSETS
from tools.training.corpus.source_forms import corpus_forms, source_forms
from tools.training.corpus.source_list import SOURCES
from tools.training.corpus.sources import culture, people, wordnet

STARTER = ASSETS / "datasets" / "starter"


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


def test_the_readme_counts_the_starter_wordings_that_have_a_form_of_a_source() -> None:
    forms = corpus_forms()
    relations = [
        json.loads(line)
        for line in (STARTER / "relations.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    seen = [
        [
            bool(forms.sources_of(template_form(template)))
            for template in (relation["template"], *relation["paraphrases"])
        ]
        for relation in relations
    ]
    for relation, found in zip(relations, seen, strict=True):
        assert not all(found), f"{relation['relation']} has no wording that the text doesn't have"
    n_templates, n_seen = sum(map(len, seen)), sum(map(sum, seen))
    n_first = sum(found[0] for found in seen)
    text = " ".join((STARTER / "README.md").read_text(encoding="utf-8").split())
    assert f"Of the {n_templates} templates and paraphrases, {n_seen} have such a form" in text
    assert f"the first wordings of {n_first} of the {len(seen)} relations" in text


@pytest.mark.parametrize("model", ("minilm-mlm", "minilm-mlm-twin"))
def test_an_embedded_model_carries_the_forms_of_the_sources_it_has_read(model: str) -> None:
    folder = ASSETS / "models" / model
    corpus = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))["corpus"]
    read = {source["name"] for source in corpus}
    expected = corpus_forms([source for source in SOURCES if source.name in read])
    assert load_forms(folder / FORMS_FILE).by_source == expected.by_source
