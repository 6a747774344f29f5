"""What holds for every view of runs: the same numbers everywhere, and facts behind each of them."""

import json
from math import nan
from typing import Any

import pytest
from calling import told

import lama_core as lama
from lama_core.errors import UserError
from lama_core.metrics.fact_answers import AnswerFilter, join_answers
from lama_core.requests import arguments, field_values
from lama_core.runs.find import bundled_dir, load_run
from lama_core.views.choice import RunsRequest
from lama_core.views.table import VIEWS
from lama_core.views.view import Shown, View, show

A, B, C = (
    next(bundled_dir().glob(f"starter-{model}-manual-*")).name
    for model in ("minilm_mlm", "smollm2_135m", "minilm_mlm_twin")
)
STEPS = tuple(f"starter-minilm_mlm_step{step}-manual" for step in (1024, 4096, 0))
THREE_WAYS = (
    B,
    "starter-smollm2_135m-statements_template_0",
    "starter-smollm2_135m-questions_0_shot",
)
# Name of a view -> the fields of its request; without a row, the runs A and B.
ASKED: dict[str, list[dict[str, Any]]] = {
    "scores": [
        {"runs": (A, B)},
        {"runs": (A, B), "by": "source", "k": 5},
        {"runs": (A, B), "by": "type", "relations": ("P36", "P19", "P31")},
        {"runs": (A,), "ranking": "raw", "conceptnet": "facts", "by": "source"},
    ],
    "known-by": [
        {"runs": (A, B)},
        {"runs": (A, B, C), "by": "relation", "relations": ("P36", "P19"), "k": 10},
        {"runs": (A, C), "by": "source"},
    ],
    "analogies": [{"runs": ("starter_analogies-minilm_mlm-type_supervised",)}, {"by": "relation"}],
    "slices": [
        {"runs": (A, B), "relations": ("P36", "P1376"), "k": 10},
        {"runs": (A, C), "slice_by": "origin", "relations": ("P36", "P19")},
    ],
    "compare": [
        {"run_a": A, "run_b": B},
        {"run_a": A, "run_b": B, "slices": True, "k": 10, "relations": ("P36", "P19", "P31")},
    ],
    "training": [
        {"runs": STEPS},
        {"runs": STEPS, "by": "source", "measure": "mean_rank", "k": 5},
        {"runs": STEPS, "by": "relation", "measure": "log_prob", "relations": ("P36", "P19")},
    ],
    "ways": [
        {"runs": THREE_WAYS},
        {"runs": THREE_WAYS, "relations": ("P36", "P19"), "ranking": "raw"},
    ],
    "wording": [
        {"runs": ("starter-minilm_mlm-negated", "starter-minilm_mlm-paraphrases")},
        {"runs": ("starter-minilm_mlm-misprimed",), "relations": ("P36",), "ranking": "raw"},
    ],
    "quartiles": [
        {"runs": (A, B)},
        {"runs": ("starter-minilm_mlm-ten_sentences",), "mean_ranks": True, "relations": ("P36",)},
    ],
    "margins": [{"runs": ("starter-minilm_mlm-statements", "starter-smollm2_135m-statements")}],
    "correlations": [
        {"runs": (A, B), "of": A},
        {"runs": (B,), "source": "ConceptNet", "ranking": "raw"},
    ],
}
# Views and groupings whose conclusion pages make (`metrics.headline`), or that have none.
NO_CONCLUSION = {
    ("scores", None),
    ("scores", "source"),
    ("scores", "type"),
    ("analogies", "relation"),
}
# Columns of a frame that count facts, in views with facts behind each cell.
COUNTED = ("n", "n_excluded", "n_only", "only_a", "only_b")
EVERY = [
    (view, fields) for view in VIEWS for fields in ASKED.get(view.view.name, [{"runs": (A, B)}])
]


_SHOWN: dict[str, Shown[Any, Any]] = {}


def shown(function: Any, fields: dict[str, Any]) -> Shown[Any, Any]:
    """What a view shows; made once in a process, because several tests look at it."""
    key = f"{function.view.name} {fields}"
    if key not in _SHOWN:
        _SHOWN[key] = show(function.view, function.request(**fields))
    return _SHOWN[key]


@pytest.mark.parametrize(("function", "fields"), EVERY)
def test_command_and_function_give_the_same(function: Any, fields: dict[str, Any]) -> None:
    found = shown(function, fields)
    printed = told(*arguments(found.request))
    assert json.loads(json.dumps(printed, allow_nan=False)) == printed
    frame = getattr(lama, function.request.python)(**field_values(found.request))
    assert frame.to_json(orient="records") == found.frame.to_json(orient="records")
    assert len(frame)


@pytest.mark.parametrize(("function", "fields"), EVERY)
def test_its_parts_fit_together(function: Any, fields: dict[str, Any]) -> None:
    found = shown(function, fields)
    view: View[Any, Any] = function.view
    assert view.example.split()[: len(function.request.command)] == [*function.request.command]
    assert view.question.endswith((".", "?")) and view.title
    if keys := view.keys_of(found):
        named = [name for name in ("run", *keys) if name in found.frame]
        assert not found.frame.duplicated(named).any()
    names = [column.name for column in view.columns(found)]
    assert len(set(names)) == len(names)
    assert list(view.tables(found))
    if view.has_figure:
        figure = found.figure
        assert figure.title and figure.caption and figure.by.title and figure.value.title
        assert {figure.by.column, figure.value.column, "said"} <= set(figure.frame)
        assert set(figure.frame[figure.series]) <= set(figure.names)
    if (view.name, fields.get("by")) not in NO_CONCLUSION:
        assert any(letter.isdigit() for letter in found.conclusion)


@pytest.mark.parametrize(("function", "fields"), EVERY)
def test_the_facts_of_a_cell_are_as_many_as_it_counts(
    function: Any, fields: dict[str, Any]
) -> None:
    found = shown(function, fields)
    if found.view.name == "analogies":
        return  # Wrong answers doesn't list the decisions of analogy probes
    runs = [load_run(info.id) for info in found.infos]
    if any(info.beside for info in found.infos):
        from lama_core.runs.alignment import align

        runs = [*align(runs)]
    numbers = {run.info.id: at for at, run in enumerate(runs)}
    ranking = found.request.ranking or runs[0].info.ranking
    joined = join_answers(runs, ranking=ranking)
    for line in found.frame.to_dict("records"):
        for column in (name for name in COUNTED if line.get(name, nan) == line.get(name)):
            facts = found.facts(line, column)
            if facts is None:
                continue
            chosen = AnswerFilter(
                of=numbers[facts.run],
                k=getattr(found.request, "k", 1),
                counting=facts.counting,
                right=tuple(numbers[one] for one in facts.right),
                wrong=tuple(numbers[one] for one in facts.wrong),
                **facts.filter,
            )
            assert len(joined.select(chosen)) == line[column], (line, column)


@pytest.mark.parametrize("function", VIEWS, ids=lambda one: one.view.name)
def test_bad_input_is_one_sentence(function: Any) -> None:
    wrong: list[dict[str, Any]] = [{"runs": ("nosuch",)}]
    if function.view.name == "compare":
        wrong = [{"run_a": A, "run_b": "nosuch"}, {"run_a": A, "run_b": B, "relations": ("no",)}]
    if issubclass(function.request, RunsRequest):
        wrong.append({"runs": (A, B), "relations": ("P3666",)})
    for fields in wrong:
        with pytest.raises(UserError) as raised:
            shown(function, fields)
        assert "\n" not in str(raised.value)
