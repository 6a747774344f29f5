"""A relation and a subject in many wordings: which are asked, and what comes back."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from data_files import write_lines
from probe_fakes import TableFiller

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import common_vocabulary
from lama_core.datasets.dataset import Dataset, ReadReport, make_dataset
from lama_core.errors import UserError
from lama_core.queries.blank_answers import query_model
from lama_core.queries.kind import Asked, Calls
from lama_core.queries.wordings import (
    BLIND,
    MAX_SUBJECT,
    MAX_WORDINGS,
    PICKED_BLIND,
    RelationQuestion,
    RelationRequest,
    RelationWording,
    first_answers,
    make_relation_question,
    relation,
    relation_wordings,
)
from lama_core.types import Fact, Prompt, Relation

pytestmark = pytest.mark.usefixtures("home")
MANUAL, SAME, BEFORE = "[X] borders [Y].", "[X] is next to [Y].", "[Y] borders [X] too."
PROMPTS = (Prompt(MANUAL), Prompt(SAME, "paraphrased"), Prompt(BEFORE, "paraphrased"))
WORDS = ("Spain", "Italy", "Peru", "spain")


def data(*, prompts: tuple[Prompt, ...] = PROMPTS, negated: str | None = None) -> Dataset:
    """France borders Spain and Italy; the relation `Told` has no template."""
    relations = [
        Relation("P47", "TREx", "shares border with", prompts=prompts, negated_template=negated),
        Relation("Told", "Squad"),
    ]
    facts = [
        Fact(str(number), "France", "P47", word, "TREx")
        for number, word in enumerate(("Spain", "Italy", "Spain"))
    ]
    return make_dataset("small", relations, facts, ReadReport())


def test_the_template_comes_first_then_every_paraphrase_then_the_negation() -> None:
    asked = make_relation_question(data(negated="[X] never borders [Y]."), "P47", " France ")
    assert [(one.kind, one.source, one.template) for one in asked.wordings] == [
        ("manual", "small", MANUAL),
        ("paraphrase", "small", SAME),
        ("paraphrase", "small", BEFORE),
        ("negated", "small", "[X] never borders [Y]."),
    ]
    assert (asked.subject, asked.objects, asked.gold) == ("France", ("Spain", "Italy"), "Spain")
    assert asked.n_agreeing == 3


def test_a_subject_is_asked_with_the_templates_of_its_own_facts() -> None:
    own = Relation("mine", "User", own_templates=1)
    facts = [
        Fact("1", "France", "mine", "Paris", "User", templates=(MANUAL,)),
        Fact("2", "Peru", "mine", "Lima", "User", templates=(SAME,)),
    ]
    given = make_dataset("small", [own], facts, ReadReport())
    asked = make_relation_question(given, "mine", "Peru")
    assert [one.template for one in asked.wordings if one.kind != "negated"] == [SAME]
    with pytest.raises(UserError, match="no template for 'Chile': choose one of its subjects"):
        make_relation_question(given, "mine", "Chile")


def test_a_template_without_a_negation_in_the_data_is_negated_by_the_rule() -> None:
    last = relation_wordings(data(), data().relation("P47"))[-1]
    assert last == RelationWording("negated", "rule", "[X] does not border [Y].")


def test_imported_prompts_are_asked_once_each_the_weightiest_first_and_mined_ones_on_demand(
    home: Path,
) -> None:
    prompts = home / "data" / "datasets" / "lpaqa" / "prompt"
    weighted = (("[X] - [Y] border .", 0.2), ("[X] touches [Y] .", 0.7))
    write_lines(
        prompts / "mine" / "P47.jsonl",
        [{"template": text, "weight": weight} for text, weight in weighted],
    )
    (prompts / "manual_paraphrase").mkdir()
    (prompts / "manual_paraphrase" / "P47.txt").write_text("[X] borders [Y] .\n[X] adjoins [Y] .\n")
    patterns = home / "data" / "datasets" / "pararel" / "pattern_data"
    write_lines(
        patterns / "P47.jsonl", [{"pattern": f"[X] {verb} [Y]."} for verb in ("adjoins", "meets")]
    )
    plain, every = (
        make_relation_question(data(), "P47", "France", mined=mined) for mined in (False, True)
    )
    found = [(one.kind, one.source, one.template) for one in every.wordings]
    assert found[3:7] == [
        ("mined", "lpaqa", "[X] touches [Y] ."),
        ("mined", "lpaqa", "[X] - [Y] border ."),
        ("paraphrase", "lpaqa", "[X] adjoins [Y] ."),
        ("paraphrase", "pararel", "[X] meets [Y]."),
    ]
    assert [(one.kind, one.source, one.template) for one in plain.wordings] == [
        one for one in found if one[0] != "mined"
    ]
    assert plain.n_mined == every.n_mined == 2


def test_beyond_the_limit_the_first_wordings_and_the_negated_one_are_asked() -> None:
    more = tuple(Prompt(f"[X], {number}, [Y].", "paraphrased") for number in range(MAX_WORDINGS))
    asked = make_relation_question(data(prompts=(Prompt(MANUAL), *more)), "P47", "France")
    assert len(asked.wordings) == MAX_WORDINGS
    assert [one.kind for one in asked.wordings][-2:] == ["paraphrase", "negated"]
    assert asked.wordings[-2].template == f"[X], {MAX_WORDINGS - 3}, [Y]."
    assert asked.n_left_out == 2


def test_what_cannot_be_asked_is_refused() -> None:
    for name, subject, said in (
        ("P47", "  ", "empty"),
        ("P47", "x" * (MAX_SUBJECT + 1), "201 characters; the maximum is 200"),
        ("P47", "the ___ of [Y]", "contains a blank"),
        ("P74", "France", "did you mean 'P47'"),
        ("Told", "France", "no template"),
    ):
        with pytest.raises(UserError, match=said):
            make_relation_question(data(), name, subject)


def test_an_unknown_subject_has_no_gold_unless_one_is_given() -> None:
    unknown = make_relation_question(data(), "P47", "Atlantis")
    assert (unknown.objects, unknown.gold) == ((), None)
    assert make_relation_question(data(), "P47", "Atlantis", " Peru ").gold == "Peru"
    assert not unknown.has("Peru")


def filler() -> TableFiller:
    """A model that says Spain, spain, Peru, and Spain to the negated sentence."""
    table = {
        "France borders [MASK].": {"Spain": -1.0, "Italy": -2.0},
        "France is next to [MASK].": {"spain": -1.5, "Spain": -3.0, "Peru": -2.0},
        "[MASK] borders France too.": {"Peru": -0.5},
        "France does not border [MASK].": {"Spain": -0.1},
    }
    return TableFiller(table, WORDS)


def asked_about(question: RelationQuestion, candidates: Candidates, **options: Any) -> Any:
    request = RelationRequest(question.relation, subject=question.subject, **options)
    return Asked(request, question, candidates)


def test_every_wording_has_its_first_answer_and_the_golds_rank() -> None:
    question = make_relation_question(data(), "P47", "France")
    asked = asked_about(question, Candidates("x", WORDS))
    rows = relation.kind.rows(asked, relation.kind.answer(filler(), asked, Calls()))
    assert [(row.word, row.right, row.gold_rank) for row in rows] == [
        ("Spain", True, 1),
        ("spain", True, 3),
        ("Peru", False, 2),
        ("Spain", None, 1),
    ]
    assert [row.log_prob for row in rows] == pytest.approx([-1.0, -1.5, -0.5, -0.1])
    assert {row.note for row in rows} == {""}, "a masked model sees both sides"


def test_the_agreement_leaves_the_negated_wording_aside_and_ignores_case() -> None:
    question = make_relation_question(data(), "P47", "France")
    asked = asked_about(question, Candidates("x", WORDS))
    answer = relation.kind.answer(filler(), asked, Calls())
    assert first_answers(answer) == (("Spain", 2), ("Peru", 1))


@pytest.mark.parametrize(("context", "note"), (("left", BLIND), (None, PICKED_BLIND)))
@pytest.mark.parametrize("gold", ("Paris", "Parisland"))
def test_batched_wordings_get_the_numbers_of_single_sentences(
    context: Any, note: str, gold: str, tiny_model: Callable[..., Any]
) -> None:
    question = replace(make_relation_question(data(), "P47", "France"), gold=gold)
    for family in ("bert-cased", "smollm2"):
        model = tiny_model(family)
        candidates = common_vocabulary([model.vocabulary])
        asked = asked_about(question, candidates, context=context)
        together = relation.kind.answer(model, asked, Calls())
        for query, one in zip(question.queries, together.rows, strict=True):
            alone = query_model(model, query, candidates, gold=gold, context=context)
            first, (blank,) = alone.blanks[0].predictions[0], alone.blanks
            assert (one.word, one.context) == (first.token, alone.context)
            assert one.log_prob == pytest.approx(first.log_prob, abs=1e-4)
            assert blank.gold is not None and one.gold_rank == blank.gold.rank
        told = [one.note for one in together.rows]
        assert told == ["", "", note if model.kind == "causal" else "", ""]
