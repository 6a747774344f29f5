"""Statements are scored as BEAR's own library scores them (lm-pub-quiz), on BEAR's own facts."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from project_files import SHARED

from lama_core.scoring.blanks import fill
from lama_core.scoring.statement_scores import make_statement

BEAR = SHARED / "bear"
MASKED, CAUSAL = ("bert-cased", "roberta", "electra"), ("gpt2", "pythia", "smollm2")
FAMILIES = (*MASKED, *CAUSAL)
HIDING = {
    "within-word": "within_word_l2r",
    "original": "original",
    "rest-of-sentence": "sentence_l2r",
    "rest-of-answer": "answer_l2r+word_l2r",
}
RELATIONS = ("P103", "P36", "P131", "P20")
N_ANSWERS = 12

pytestmark = pytest.mark.skipif(not BEAR.is_dir(), reason="../shared/data/bear is not here")


def tables(relation: str) -> tuple[list[str], list[str], list[str]]:
    """Templates, subjects and answers of a relation as its files have them."""
    about = json.loads((BEAR / "metadata_relations.json").read_text(encoding="utf-8"))[relation]
    lines = (BEAR / f"{relation}.jsonl").read_text(encoding="utf-8").splitlines()
    subjects = [json.loads(line)["sub_label"] for line in lines]
    return about["templates"], subjects, about["answer_space_labels"][:N_ANSWERS]


def token_scores(
    network: Any, tokenizer: Any, kind: str, hiding: str, template: str, answers: Any, subject: str
) -> list[list[float]]:
    """The library's own score of each token of each statement."""
    from lm_pub_quiz import Evaluator

    metric = {"pll_metric": HIDING[hiding]} if kind == "MLM" else {}
    evaluator = Evaluator.from_model(
        network, model_type=kind, tokenizer=tokenizer, device="cpu", **metric
    )
    found, _spans = zip(
        *evaluator.score_answers(
            template=template, answers=answers, subject=subject, reduction=None, batch_size=32
        ),
        strict=True,
    )
    return [[score for _token, score in statement] for statement in found]


def check(ours: Any, network: Any, tokenizer: Any, hiding: Any, relation: str) -> None:
    """Equal to 1e-4 token by token: all three templates, each of another fact of a relation."""
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    kind = "MLM" if ours.kind == "masked" else "CLM"
    templates, subjects, answers = tables(relation)
    assert len(templates) == 3
    for template, subject in zip(templates, subjects, strict=False):
        query = fill(template, subject)
        statements = [make_statement(query, answer) for answer in answers]
        found = ours.statement_log_probs(statements, hiding=hiding, start_token="always")
        wanted = token_scores(network, tokenizer, kind, hiding, template, answers, subject)
        for one, theirs, statement in zip(found, wanted, statements, strict=True):
            scored = one.log_probs[~np.isnan(one.log_probs)]
            np.testing.assert_allclose(scored, theirs, atol=1e-4, rtol=0, err_msg=statement.text)


@pytest.mark.parametrize("hiding", HIDING)
@pytest.mark.parametrize("family", FAMILIES)
def test_tiny_models_score_bear_as_its_library_does(
    family: str,
    hiding: str,
    tiny_model: Callable[..., Any],
    plain_model: Callable[..., tuple[Any, Any]],
) -> None:
    if family in CAUSAL and hiding != "within-word":
        pytest.skip("nothing is hidden from a left-to-right model")
    network, tokenizer = plain_model(family)
    for relation in RELATIONS:
        check(tiny_model(family), network, tokenizer, hiding, relation)
