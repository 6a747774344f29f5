"""Runs of generated answers on PopQA's facts, whose answers are written down."""

import json
from pathlib import Path

import pytest
from statement_fakes import Writer

from lama_core.errors import ControlTokenError, WindowError
from lama_core.metrics.fact_answers import AnswerFilter, join_answers
from lama_core.metrics.slices import POPULARITY, slice_table
from lama_core.models.protocols import Chat
from lama_core.probes.generation import spec as generation
from lama_core.probes.generation.plan import plan
from lama_core.probes.generation.request import GenerateRequest
from lama_core.probes.generation.spec import GenerationSpec
from lama_core.runs.execute import execute
from lama_core.runs.info import Run
from lama_core.scoring.queries import NO_FIT

HEADER = ("id", "subj", "prop", "obj", "s_pop", "question", "possible_answers")
# Popularity, question, answers, what the model says.
ROWS = (
    ("5", "Who is Ana?", ["doctor", "physician"], "A physician."),
    ("99", "Who is Ben?", ["actor"], "A singer."),
    ("100", "Who is Cleo?", ["queen"], "A queen."),
    ("", "Who is Dan?", ["painter"], "A painter."),
)


MODEL = Writer("answerer", {question: text for _, question, _, text in ROWS})


def write_popqa(folder: Path, *, named: bool = True) -> Path:
    lines = ["\t".join(HEADER)]
    for number, (views, question, answers, _) in enumerate(ROWS):
        cells = [str(number), question.split()[2].rstrip("?"), "occupation", answers[0]]
        given = json.dumps(answers if named else answers[:1]).replace('"', '""')
        lines.append("\t".join([*cells, views, question, f'"{given}"']))
    path = folder / "popQA.tsv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def spec_of(path: Path) -> GenerationSpec:
    request = GenerateRequest(dataset=str(path), models=["answerer"])
    return plan(request, load=lambda *_, **__: MODEL)[0]


@pytest.fixture
def run(home: Path, tmp_path: Path) -> Run:
    return execute(spec_of(write_popqa(tmp_path)), load=lambda *_, **__: MODEL)


def test_the_facts_own_questions_are_asked_and_aliases_count(run: Run) -> None:
    assert list(run.facts["query"]) == [question for _, question, _, _ in ROWS]
    assert list(run.facts["contains"]) == [True, False, True, True]
    (relation,) = run.info.relations
    assert (relation.n, relation.n_excluded) == (4, 0)


def test_popularity_is_a_column_and_a_slicing(run: Run) -> None:
    assert run.facts["popularity"].dropna().tolist() == [5.0, 99.0, 100.0]
    joined = join_answers([run])
    table = slice_table(joined).set_index(["by", "slice"])
    assert table.loc[(POPULARITY, "0 to 99"), "p_at_k"] == 1 / 2
    assert table.loc[(POPULARITY, "100 to 999"), "p_at_k"] == 1 / 1
    assert (POPULARITY, "1,000 to 9,999") not in table.index
    assert len(joined.select(AnswerFilter(popularity_min=99))) == 2
    assert len(joined.select(AnswerFilter())) == 4


def test_an_excluded_question_has_its_reason(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(_model: object, prompt: Chat, _max_tokens: int) -> int:
        if "Ben" in prompt.messages[-1].text:
            raise ControlTokenError("a control token")
        if "Cleo" in prompt.messages[-1].text:
            raise WindowError("too long")
        return 1

    monkeypatch.setattr(generation, "check_prompt", check)
    run = execute(spec_of(write_popqa(tmp_path)), load=lambda *_, **__: MODEL)
    excluded = run.facts["excluded"].dropna()
    assert dict(excluded) == {1: generation.HAS_CONTROL, 2: NO_FIT}


def test_aliases_are_part_of_a_runs_identity_where_there_are_any(tmp_path: Path) -> None:
    spec, plain = (spec_of(write_popqa(tmp_path, named=named)) for named in (True, False))
    assert set(spec.options()) - set(plain.options()) == {"aliases"}
    assert not plain.aliases_digest and len(spec.aliases_digest) == 64


@pytest.mark.parametrize(("n", "is_noted"), ((9, False), (10, True)))
def test_of_ten_answers_it_is_noted_if_most_are_the_same(n: int, is_noted: bool) -> None:
    texts = ["Paris"] * (n // 2 + 1) + [f"City {number}" for number in range((n - 1) // 2)]
    assert len(texts) == n
    notes = [*generation._notes([{"text": text} for text in texts], "toy", 8)]
    assert any("answers are 'Paris'" in note for note in notes) == is_noted
