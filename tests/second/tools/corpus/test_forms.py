"""The sentence forms of the corpus's sources, and which wordings of the starter facts have one."""

import json

import pytest

from lama_core.metrics.sentence_forms import FORMS_FILE, load_forms, template_form
from lama_core.paths import ASSETS
from tools.training.corpus.source_forms import corpus_forms
from tools.training.corpus.source_list import SOURCES

STARTER = ASSETS / "datasets" / "starter"


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
